"""A fold over ``EvidenceSample``s: what moved outside the log, and when it last did.

Each kind of movement is a *channel*. A strong one proves work by itself: memory touched, bytes from storage, GPU
memory, compilers, caches, downloads. A weak one does not: a spin lock burns CPU, and a waiting NCCL kernel holds
a GPU at 100 %. The traps that the thresholds stand for:

* ``read_bytes`` does not move with a warm page cache, and nothing that counts read calls moves with mmap; there
  the pages touched (faults, resident memory) tell.
* Sums over living processes fall when a compiler exits. Counters are followed per process and only ever added.
* An idle server is not perfectly still: its main process was seen to burn 0.01 s of CPU in 20 s. A threshold is
  met within one window or not at all; what is left over is forgotten.
* GPU power is judged against this GPU's own lowest and highest, or not at all.

Which of it means what is ``verdict``'s business.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from phasetrack.core.model import Channel, Evidence, Sign
from phasetrack.core.say import size
from phasetrack.core.titles import COMPILER, DETOKENIZER, RANK

if TYPE_CHECKING:
    from phasetrack.core.model import EvidenceSample, ProcessSample

_WINDOW_S = 10.0
_MIB = 1 << 20

# id, title, strong
_CHANNELS = (
    ("memory", "Memory", True),
    ("storage", "Storage", True),
    ("gpu_memory", "GPU memory", True),
    ("compilers", "Compilers", True),
    ("caches", "JIT caches", True),
    ("downloads", "Downloads", True),
    ("cpu", "CPU", False),
    ("gpu_power", "GPU power", False),
)
# What must be gained within a window to count as movement. Idle servers were measured at a tenth of these.
_FAULTS = 512  # 2 MiB of pages
_RSS_BYTES = 8 * _MIB
_READ_BYTES = 256 << 10
_CHARS = _MIB  # read and write calls: eventfds and log lines move them a little all the time
_CPU_S = 0.5
_COMPILER_CPU_S = 0.2
_GPU_BYTES = 8 * _MIB
# Power counts above the middle between a GPU's own lowest and highest, where these lie far enough apart.
_POWER_SPREAD_W = 40.0

# A process born this long before the sample that first shows it was there all along, unseen.
_BORN_SLACK_S = 1.0

_Key = tuple[int, float | None]


@dataclass(slots=True)
class _Meter:
    """One counter or level, and when it last changed by its threshold within a window."""

    channel: str
    threshold: float
    mark: float | None = None
    mark_s: float = 0.0
    since_s: float | None = None
    moved_s: float | None = None

    def see(self, value: float | None, now_s: float) -> None:
        if value is None:
            return
        if self.mark is None:
            self.mark, self.mark_s, self.since_s = value, now_s, now_s
        elif abs(value - self.mark) >= self.threshold * max((now_s - self.mark_s) / _WINDOW_S, 1.0):
            self.mark, self.mark_s, self.moved_s = value, now_s, now_s
        elif now_s - self.mark_s >= _WINDOW_S:
            self.mark, self.mark_s = value, now_s


@dataclass(slots=True)
class _Totals:
    """Counters of a tree, added up per process so that an exit takes nothing back."""

    values: dict[str, float] = field(default_factory=dict)
    last: dict[_Key, ProcessSample] = field(default_factory=dict)

    def add(self, sample: EvidenceSample, before_s: float | None) -> None:
        now: dict[_Key, ProcessSample] = {}
        for process in sample.processes:
            key = (process.pid, process.started_s)
            now[key] = process
            was = self.last.get(key)
            born = was is None and before_s is not None and _born_since(process, before_s)
            if born and process.role == COMPILER:
                self._gain("births", 1)
            for name, value in _counters(process):
                old = 0 if born else value if was is None else dict(_counters(was)).get(name, value)
                self._gain(name, max(value - old, 0))
        self.last = now

    def _gain(self, name: str, amount: float) -> None:
        self.values[name] = self.values.get(name, 0) + amount


def _born_since(process: ProcessSample, before_s: float) -> bool:
    return process.started_s is None or process.started_s >= before_s - _BORN_SLACK_S


def _counters(process: ProcessSample) -> list[tuple[str, float]]:
    pairs = (
        ("cpu", process.cpu_s),
        ("compiler_cpu", process.cpu_s if process.role == COMPILER else None),
        ("faults", process.faults),
        ("read", process.read_bytes),
        ("read_chars", process.read_chars),
        ("write_chars", process.write_chars),
    )
    return [(name, value) for name, value in pairs if value is not None]


class EvidenceFold:
    """Keeps windows of what moved. Bounded: it remembers living processes and marks, no samples."""

    def __init__(self) -> None:
        """Have seen nothing."""
        self.newest: EvidenceSample | None = None
        self._forget()

    def _forget(self) -> None:
        self._first_s: float | None = None
        self._before: EvidenceSample | None = None
        self._totals = _Totals()
        self._meters: dict[str, _Meter] = {}
        self._power: dict[int, tuple[float, float]] = {}  # GPU -> its lowest and highest
        self._moved_s: dict[str, float] = {}  # channels that need more than a meter
        self._since_s: dict[str, float] = {}
        self._rates: dict[str, float] = {}
        self._ranks: dict[_Key, ProcessSample] = {}
        self._lost_s: dict[_Key, float] = {}
        self._stopped_s: dict[_Key, float] = {}
        self._blocked: dict[_Key, tuple[float, int | None]] = {}
        self.gone_at_s: float | None = None
        self._port_open_s: float | None = None

    def feed(self, sample: EvidenceSample) -> None:
        """Take one sample; samples come in the order of their times. Another main process starts anew."""
        if self.newest is not None and sample.root_pid not in {None, self.newest.root_pid}:
            self._forget()
        before, now = self.newest if self._first_s is not None else None, sample.now_s
        self._first_s = now if self._first_s is None else self._first_s
        old = dict(self._totals.values)
        self._totals.add(sample, None if before is None else before.now_s)
        self._measure(sample)
        self._note_power(sample)
        self._note_signs(sample)
        if before is not None and now > before.now_s:
            self._rates = {
                name: (value - old.get(name, 0)) / (now - before.now_s) for name, value in self._totals.values.items()
            }
        self.newest = sample

    def _measure(self, sample: EvidenceSample) -> None:
        now, totals = sample.now_s, self._totals.values
        seen = bool(sample.processes)
        rss = [process.rss_bytes for process in sample.processes if process.rss_bytes is not None]
        self._meter("faults", "memory", _FAULTS).see(totals.get("faults"), now)
        self._meter("rss", "memory", _RSS_BYTES).see(sum(rss) if rss else None, now)
        self._meter("read", "storage", _READ_BYTES).see(totals.get("read"), now)
        self._meter("read_chars", "storage", _CHARS).see(totals.get("read_chars"), now)
        self._meter("write_chars", "storage", _CHARS).see(totals.get("write_chars"), now)
        self._meter("cpu", "cpu", _CPU_S).see(totals.get("cpu"), now)
        self._meter("births", "compilers", 1).see(totals.get("births", 0) if seen else None, now)
        self._meter("compiler_cpu", "compilers", _COMPILER_CPU_S).see(
            totals.get("compiler_cpu", 0) if seen else None, now
        )
        self._meter("cache_files", "caches", 1).see(sample.cache_files, now)
        self._meter("cache_bytes", "caches", 1).see(sample.cache_bytes, now)
        self._meter("downloads", "downloads", 1).see(sample.download_bytes, now)
        for gpu in sample.gpus:
            self._meter(f"gpu{gpu.index}", "gpu_memory", _GPU_BYTES).see(gpu.memory_bytes, now)

    def _meter(self, name: str, channel: str, threshold: float) -> _Meter:
        meter = self._meters.get(name)
        if meter is None:
            meter = self._meters[name] = _Meter(channel, threshold)
        return meter

    def _note_power(self, sample: EvidenceSample) -> None:
        for gpu in sample.gpus:
            if gpu.power_w is None:
                continue
            low, high = self._power.get(gpu.index, (gpu.power_w, gpu.power_w))
            low, high = self._power[gpu.index] = min(low, gpu.power_w), max(high, gpu.power_w)
            if high - low < _POWER_SPREAD_W:
                continue
            self._since_s.setdefault("gpu_power", sample.now_s)
            if gpu.power_w > (low + high) / 2:
                self._moved_s["gpu_power"] = sample.now_s

    def _note_signs(self, sample: EvidenceSample) -> None:
        now = sample.now_s
        if not sample.processes and sample.root_alive is None:
            return  # nothing could be seen this time, which says nothing of anyone
        living = {(p.pid, p.started_s): p for p in sample.processes if p.state != "Z"}
        self._ranks |= {key: p for key, p in living.items() if p.role in {RANK, DETOKENIZER}}
        for key in self._ranks:
            if key in living:
                self._lost_s.pop(key, None)
            else:
                self._lost_s.setdefault(key, now)
        stopped = [key for key, process in living.items() if process.state == "T"]
        self._stopped_s = {key: self._stopped_s.get(key, now) for key in stopped}
        blocked = {key: p for key, p in living.items() if p.state == "D"}
        self._blocked = {key: self._block(key, p, now) for key, p in blocked.items()}
        if _root_is_gone(sample):
            self.gone_at_s = now if self.gone_at_s is None else self.gone_at_s
        elif sample.root_alive:
            self.gone_at_s = None
        if sample.port_open:
            self._port_open_s = now if self._port_open_s is None else self._port_open_s

    def _block(self, key: _Key, process: ProcessSample, now_s: float) -> tuple[float, int | None]:
        was = self._blocked.get(key)
        return was if was is not None and was[1] == process.read_bytes else (now_s, process.read_bytes)

    # --- the view -----------------------------------------------------------------------------------

    def view(self, now_s: float | None = None) -> Evidence | None:
        """All of it as of a moment; None where nothing was ever sampled. Changes nothing.

        Args:
            now_s: our clock; the newest sample's own time where None.
        """
        sample = self.newest
        if sample is None or self._first_s is None:
            return None
        now = sample.now_s if now_s is None else max(now_s, sample.now_s)
        living = tuple(process for process in sample.processes if process.state != "Z")
        gone_s = self.gone_at_s
        keyed = {(p.pid, p.started_s): p for p in sample.processes}
        return Evidence(
            now_s=now,
            age_s=now - sample.now_s,
            watched_s=sample.now_s - self._first_s,
            channels=tuple(self._channels(sample)),
            processes=living,
            root_pid=sample.root_pid,
            root_gone_s=None if gone_s is None else now - gone_s,
            root_zombie=any(p.pid == sample.root_pid and p.state == "Z" for p in sample.processes),
            exit_code=sample.exit_code,
            lost=() if gone_s is not None else self._lost(now),
            stopped=tuple((keyed[key], now - since) for key, since in self._stopped_s.items()),
            blocked=tuple((keyed[key], now - since) for key, (since, _) in self._blocked.items()),
            missing=sample.missing,
            found=sample.found,
            orphan_log=sample.orphan_log,
            port_open_s=self._port_open_s,
            port_owner=sample.port_owner,
        )

    def _lost(self, now_s: float) -> tuple[Sign, ...]:
        first = sorted(self._lost_s, key=lambda key: (self._lost_s[key], key[0]))
        return tuple(
            Sign(f"{self._ranks[key].name} (pid {key[0]}) is gone", now_s - self._lost_s[key]) for key in first
        )

    def _channels(self, sample: EvidenceSample) -> list[Channel]:
        """As of the newest sample: what came after it was not looked at."""
        found = []
        for name, title, strong in _CHANNELS:
            meters = [meter for meter in self._meters.values() if meter.channel == name]
            since = [meter.since_s for meter in meters if meter.since_s is not None]
            moved = [meter.moved_s for meter in meters if meter.moved_s is not None]
            since += [self._since_s[name]] if name in self._since_s else []
            moved += [self._moved_s[name]] if name in self._moved_s else []
            if since:
                ago = sample.now_s - max(moved) if moved else None
                watched = sample.now_s - min(since)
                found.append(Channel(name, title, strong, ago, watched, self._words(name, sample)))
        return found

    def _words(self, name: str, sample: EvidenceSample) -> str:
        rates = self._rates
        if name == "memory":
            return size(sum(p.rss_bytes or 0 for p in sample.processes)) + " resident"
        if name == "storage":
            return size(max(rates.get("read", 0), rates.get("read_chars", 0))) + "/s read"
        if name == "cpu":
            return f"{rates.get('cpu', 0):.1f} cores"
        if name == "gpu_memory":
            return size(sum(gpu.memory_bytes or 0 for gpu in sample.gpus)) + " used"
        if name == "gpu_power":
            return f"{sum(gpu.power_w or 0 for gpu in sample.gpus):.0f} W"
        if name == "caches":
            return "unknown" if sample.cache_files is None else f"{sample.cache_files} files"
        if name == "downloads":
            return f"{size(sample.download_bytes)} incomplete"
        running = sorted({process.name for process in sample.processes if process.role == COMPILER})
        return ", ".join(running[:4]) if running else "none running"


def _root_is_gone(sample: EvidenceSample) -> bool:
    if sample.root_alive is False or sample.exit_code is not None:
        return True
    return any(process.pid == sample.root_pid and process.state == "Z" for process in sample.processes)
