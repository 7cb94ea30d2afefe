"""A server seen from outside, made up sample by sample: how tests of evidence and verdicts talk to the core.

A ``Scene`` is a log (a conversation, see ``talk``) with processes beside it on a virtual clock. ``pass_`` lets time go
by while a process does what it is told to.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from phasetrack.core.model import Chunk, EvidenceSample, GpuSample, ProbeResult, ProcessSample
from phasetrack.core.titles import MAIN, title_of
from phasetrack.core.tracker import Tracker
from tests.talk import args, log, patterns

if TYPE_CHECKING:
    from phasetrack.core.model import Record, Snapshot

BEGAN_S = 1_800_000_000.0
ROOT = 100
_EVERY_S = 2.0
_SAMPLES = 20  # of one stretch of time, at most


@dataclass
class Scene:
    """A log and the processes beside it."""

    tracker: Tracker = field(default_factory=lambda: Tracker(patterns(), "server.log"))
    now_s: float = BEGAN_S
    processes: dict[int, ProcessSample] = field(default_factory=dict)
    more: dict[str, object] = field(default_factory=dict)  # of every sample: caches, GPUs, what is missing
    records: list[Record] = field(default_factory=list)

    def says(self, text: str) -> Scene:
        """The log grows, now."""
        self.records += self.tracker.feed(Chunk(log(text).encode(), arrived_s=self.now_s))
        return self

    def runs(self, pid: int, title: str, *, state: str = "S", **more: object) -> Scene:
        """A process is there from now on, or changes."""
        found = title_of(title, title)
        made = ProcessSample(
            pid=pid, ppid=1 if pid == ROOT else ROOT, name=found.name, role=MAIN if pid == ROOT else found.role,
            rank=found.rank, state=state, cpu_s=10.0, faults=100_000, read_bytes=0, rss_bytes=1 << 30,
            started_s=self.now_s, read_chars=1 << 20, write_chars=0,
        )  # fmt: skip
        self.processes[pid] = replace(made, **more)
        return self

    def is_(self, pid: int, **more: object) -> Scene:
        """A process changes."""
        self.processes[pid] = replace(self.processes[pid], **more)
        return self

    def ends(self, *pids: int) -> Scene:
        """Processes are gone."""
        for pid in pids:
            del self.processes[pid]
        return self

    def looks(self, **more: object) -> Scene:
        """One sample, now."""
        sample = EvidenceSample(
            now_s=self.now_s, processes=tuple(self.processes.values()), root_pid=ROOT,
            root_alive=ROOT in self.processes,
        )  # fmt: skip
        self.records += self.tracker.feed(replace(sample, **{**self.more, **more}))
        return self

    def pass_(self, seconds: float, every_s: float | None = None, **rates: float) -> Scene:
        """Time goes by, sampled every two seconds, more rarely where it is long.

        ``rates`` are what each second adds to the first rank, or to the main process: ``cpu_s=1, faults=500``.
        """
        every_s = every_s or max(_EVERY_S, seconds / _SAMPLES)
        worker = next((pid for pid, p in self.processes.items() if p.rank or p.role == "rank"), ROOT)
        until = self.now_s + seconds
        while self.now_s < until:
            step = min(every_s, until - self.now_s)
            self.now_s += step
            if worker in self.processes:
                was = self.processes[worker]
                gained = {
                    name: getattr(was, name) + type(getattr(was, name))(rate * step) for name, rate in rates.items()
                }
                self.processes[worker] = replace(was, **gained)
            self.looks()
        return self

    def answers(self, path: str, status: int | None, *, took_s: float = 0.01, **more: object) -> Scene:
        """The server answers over HTTP."""
        result = ProbeResult(self.now_s, path, status, took_s, **more)  # type: ignore[arg-type]
        self.records += self.tracker.feed(result)
        return self

    @property
    def known(self) -> Snapshot:
        """All that is known now."""
        return self.tracker.snapshot(self.now_s)

    @property
    def state(self) -> str:
        """The verdict in a word."""
        return str(self.known.verdict.state)


def gpus(*memory_gib: float, power_w: float = 80.0) -> tuple[GpuSample, ...]:
    """GPUs with so much memory in use."""
    return tuple(GpuSample(k, "H200", 0.0, int(gib * (1 << 30)), power_w) for k, gib in enumerate(memory_gib))


def loading(ranks: int = 1, **server_args: object) -> Scene:
    """A server in the middle of its weights, all of its processes there."""
    titles = ["sglang::scheduler"] if ranks == 1 else [f"sglang::scheduler_TP{k}" for k in range(ranks)]
    scene = Scene().runs(ROOT, "python3")
    for k, title in enumerate(titles):
        scene.runs(ROOT + 1 + k, title)
    scene.runs(ROOT + 90, "sglang::detokenizer").looks()
    scene.says(f"42:04 | {args(tp_size=ranks, **server_args)}")
    for k in range(ranks):
        rank = f" TP{k}" if ranks > 1 else ""
        scene.says(f"""
            42:20{rank} | Init torch distributed begin.
            42:21{rank} | Init torch distributed ends. mem usage=0.61 GB
            42:22{rank} | Load weight begin. avail mem=139.13 GB
        """)
    return scene
