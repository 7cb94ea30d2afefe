"""What stands before a message: transport prefixes, stamps, ranks; and where glued pieces part.

A line as found may read, from the outside in::

    sglang-1  | 2026-11-30T15:42:03.123Z [2026-11-30 15:42:03 DP1 TP3 EP3] INFO:     Uvicorn running …
    └ compose ┘ └ docker -t ───────────┘ └ the engine's own ───────────┘ └ level ┘ └ message

Forms that can be nothing else are taken off at sight. Those that a message could begin with as well
(``0: `` of ``srun -l``, a quote of a notebook, any unknown label) are *learned*: taken off untimed lines only
once they were seen before an engine's stamp. Rank tags and their order over the versions: messages of
SGLang 0.2.15 to 0.5.23, ``utils/common.py:configure_logger`` and ``managers/scheduler.py``.
"""

from __future__ import annotations

import json
import re
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core.lazy import later
from phasetrack.core.model import Prefix
from phasetrack.core.segments import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

_RANK = r"(?>(?:(?: [A-Z][A-Z_]{0,20}\d{1,5}){1,8}| encode_server| encode_dp_worker\[\d{1,5}\])?)"
_CLOCK = r"(\d\d):(\d\d):(\d\d)(?>(?:[.,](\d{1,9}))?)"

# [2026-11-30 15:42:03.123 DP1 PP0 TP3 EP3], [14:39:07 TP1] (0.2.15 to 0.3.3)
_ENGINE = re.compile(rf"\[(?:(\d{{4}})-(\d\d)-(\d\d)[ T])?{_CLOCK}({_RANK})\] ?")
# [gpu=0] Init nccl begin. (before 0.2.15)
_GPU = later(r"\[gpu(?:_id)?=(\d{1,5})\] ")
# INFO:     …, WARNING model_config.py:814: …, INFO engine.py:123: …
# and INFO:sglang.srt.x:… of logging's own default
_LEVEL = re.compile(
    r"(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)"
    r"(?::\s+|\s+(?=[\w./]+\.py:\d+: )|:[A-Za-z_][\w.]*:\s*)(?:[\w./]+\.py:\d+: )?"
)
# [torch_launcher.core] [INFO] [worker_0] …: a Python logging wrapper, behind its own stamp
_WRAPPER = later(r"\[[\w.]+\] \[(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\] (?:\[([A-Za-z][\w.-]*)\] )?")
# 2026-11-30T15:42:03.123456789Z (docker -t, kubectl --timestamps, CRI, journald short-iso)
_RFC3339 = later(
    rf"(\d{{4}})-(\d\d)-(\d\d)T{_CLOCK}(Z|[+-]\d\d:?\d\d)(?: std(?:out|err) [FP])? "
    r"(?:[\w.-]+ [\w@./-]+\[\d+\]: )?"
)
# Nov 30 15:42:03 host unit[123]: … (journald short), Nov 30 15:42:03 … (ts)
_SYSLOG = later(rf"([A-Z][a-z][a-z]) +(\d{{1,2}}) {_CLOCK} (?:[\w.-]+ [\w@./-]+\[\d+\]: )?")
_POD = later(r"\[(pod/[^\]\s]+)\] ")
_COMPOSE = later(r"([A-Za-z][\w.-]*?) +\| ?")
# (SGLangEngine pid=1, ip=10.0.0.1) …, (RayTrainWorker(rank=3) pid=1) …
_RAY = later(r"\(([A-Za-z_][\w.:-]*(?:\([^()]*\))?(?: [\w.:]+)*? pid=\d+)(?:, ip=[^)]*)?\) ")
# (EngineCore_DP0 pid=7) …, (Worker_TP1 pid=9) …, (VllmWorker rank=1 pid=9) …, (APIServer pid=1) of vLLM: one server
_PROCESS = later(
    r"\((?P<process>(?P<kind>APIServer|ApiServer|DPCoordinator|DPSupervisor|EngineCore|VllmWorkerProcess|VllmWorker|Worker"
    r"|RayWorkerWrapper|RayWorkerVllm|RayWorkerProc|MainProcess|SpawnProcess|ForkProcess)"
    r"(?P<tail>(?>(?:[_: -](?:rank=)?[A-Z]{0,6}\d{1,5}){0,8})) pid=(?P<pid>\d{1,10}))(?:, ip=[^)]{0,60})?\)(?: |\Z)"
)
_REPEATED = later(r" ?\[repeated \d+x across (?:cluster|all nodes)\].*\Z")
_TORCHRUN = later(r"\[(?:rank|default)(\d+)\]:\s?")
_SRUN = later(r"\s*(\d+): ")
_TRACEBACK = "Traceback (most recent call last):"
_NOTEBOOK = later(r'\s*"((?:[^"\\]|\\.)*)",?')
# dots of a compiler before a stamp; ^C that a terminal echoed, with the traceback right behind it
_DOTS = later(r"\.+(?=\[\d)|(?:\^[CDZ\\])+")
# 2025-05-05 17:53:41,152 - INFO - flashinfer.jit: …; 2026-01-01 00:00:00 | INFO | sglang.srt.x:42 | …
# The engine's own stamp may stand behind it.
_PYTHON = later(
    rf"\[?(\d{{4}})-(\d\d)-(\d\d)[ T]{_CLOCK} ?(Z|[+-]\d\d:?\d\d)?\]?[ \t]*"
    r"(?:(?:[-|:]|(?<=[-|] )[\w.]+(?= [-|] )|\[(?!\d{4}-|\d\d:)[^\]\n]{0,60}\]"
    r"|\b(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\b:?"
    r"|\w+(?:\.\w+)+(?::\d+)?:?|\w+:(?=[ \t])|\([^)\n]{0,60}\))[ \t]+)*"
)
# INFO 06-20 12:35:17 [importing.py:53] … (vLLM's form, also inside SGLang); W0819 05:24:45.091000 1 file.py:630] …
_VLLM = later(rf"(DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) {_CLOCK} \[?[\w./]+(?:\.py)?:\d+\]\s?")
_GLOG = later(rf"[IWEF]\d{{4}} {_CLOCK} +\d+ [\w./-]+:\d+\] ")
_AXIS = later(r"([A-Z]*)(\d+)")
# a stamp of the engine's form inside a message: what stands before it is another writer's text
_EMBEDDED = re.compile(rf"\[\d{{4}}-\d\d-\d\d[ T]{_CLOCK}{_RANK}\] |\[{_CLOCK} (?:DP\d+ )?TP\d+\] ")
_JSON_TEXT = ("log", "message", "msg", "event", "text")
_JSON_TIME = ("time", "timestamp", "ts", "@timestamp", "asctime")
_JSON_STAMP = later(rf"(\d{{4}})-(\d\d)-(\d\d)[ T]{_CLOCK}(Z|[+-]\d\d:?\d\d)?")
_MONTHS = {
    name: k
    for k, name in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1)
}

# A label must stand before this many engine stamps until it is taken off untimed lines too.
_LEARN_AFTER = 3
_LABEL_LIMIT = 80
# Transports within transports; three are seen in practice (kubectl over CRI over a wrapper).
_NESTING = 6
# A stamp beyond these is no clock's; and the calendar ends at 9999, which a bar's elapsed time must not reach.
_FIRST_YEAR, _LAST_YEAR = 2000, 2199


class Learned:
    """What this log's own lines taught about its transport."""

    __slots__ = ("_seen", "label", "notebook", "srun", "year", "yearless")

    def __init__(self) -> None:
        """Know nothing yet."""
        self.srun = False
        self.notebook = False
        self.year: int | None = None  # for stamps that print none
        self.yearless = False  # vLLM's stamps began without one and stay so: a date in between would be years apart
        self.label: re.Pattern[str] | None = None
        self._seen: dict[str, int] = {}

    def copy(self) -> Learned:
        """The same knowledge, to be thrown away."""
        other = Learned()
        other.srun, other.notebook, other.year, other.label = self.srun, self.notebook, self.year, self.label
        other.yearless, other._seen = self.yearless, dict(self._seen)
        return other

    def saw_label(self, text: str) -> None:
        """Count an unknown text that stood before an engine's stamp."""
        key = re.sub(r"\d+", "0", text)
        if len(self._seen) < 64 or key in self._seen:
            self._seen[key] = self._seen.get(key, 0) + 1
        if self._seen.get(key, 0) >= _LEARN_AFTER and self.label is None:
            self.label = re.compile("(" + re.sub(r"\d+", r"\\d+", re.escape(text)) + ")")


class _Seen(NamedTuple):
    """A prefix while it is being taken off."""

    outer_s: float | None = None
    outer_offset_s: int | None = None
    outer_dated: bool = True
    rank: str = ""
    server: str = ""
    foreign: bool = False
    process: str = ""


_NOTHING = _Seen()


def parse(text: str, learned: Learned) -> tuple[Prefix, str]:
    """Take the prefix off a line.

    Returns:
        The prefix and the message behind it. Never raises; a text without any prefix comes back whole.
    """
    found = _ENGINE.match(text)
    if found is not None:
        return _behind_stamp(text, found, _NOTHING, learned)
    return _outside(text, learned, _NOTHING, 0)


def _outside(text: str, learned: Learned, seen: _Seen, depth: int) -> tuple[Prefix, str]:
    """Take transport prefixes off, one at a time, until an engine's stamp or the message is there."""
    while depth < _NESTING:
        depth += 1
        found = _ENGINE.match(text)
        if found is not None:
            return _behind_stamp(text, found, seen, learned, depth)
        step = _peel(text, learned, seen)
        if step is None:
            break
        seen, text = step
    return _unstamped(text, seen, learned)


def _peel(text: str, learned: Learned, seen: _Seen) -> tuple[_Seen, str] | None:
    """Take one transport prefix off, or answer None."""
    first = text[:1]
    if first.isdigit() and (found := _RFC3339.match(text)) is not None:
        stamp = _seconds(*found.group(1, 2, 3, 4, 5, 6, 7))
        return seen._replace(outer_s=stamp, outer_offset_s=_offset(found[8]), outer_dated=True), text[found.end() :]
    if first == "(" and (step := _peel_process(text, seen)) is not None:
        return step
    if first == "[":
        if (found := _POD.match(text)) is not None:
            return seen._replace(server=found[1]), text[found.end() :]
        if (found := _TORCHRUN.match(text)) is not None:
            return seen._replace(rank=f"rank{found[1]}"), text[found.end() :]
        if (found := _GPU.match(text)) is not None:
            return seen._replace(rank=f"GPU{found[1]}"), text[found.end() :]
    if first in {".", "^"} and (found := _DOTS.match(text)) is not None:
        return seen, text[found.end() :]
    if first.isalpha():
        if (found := _SYSLOG.match(text)) is not None and found[1] in _MONTHS:
            return _with_syslog(seen, found, learned), text[found.end() :]
        if (found := _COMPOSE.match(text)) is not None:
            return seen._replace(server=found[1]), text[found.end() :]
    if first == "{" and (step := _json_line(text, seen)) is not None:
        return step
    return _peel_learned(text, learned, seen)


def _peel_process(text: str, seen: _Seen) -> tuple[_Seen, str] | None:
    """Take off the name of one of vLLM's processes, or of a Ray actor.

    An actor may be named as vLLM's are and be another program's: only vLLM's own stamp behind it tells.
    """
    found = _PROCESS.match(text)
    if found is not None and (not found["kind"].startswith("Ray") or _VLLM.match(text, found.end())):
        return seen._replace(process=found["process"], rank=_rank_of(found) or seen.rank), text[found.end() :]
    if (found := _RAY.match(text)) is not None:
        return seen._replace(server=found[1]), _REPEATED.sub("", text[found.end() :])
    return None


def _rank_of(process: re.Match[str]) -> str:
    """The rank that a process's name tells: ``EngineCore_DP0``, ``Worker_DP0_TP1``, ``VllmWorker rank=1``."""
    kind, tail = process["kind"], process["tail"]
    if kind in {"VllmWorkerProcess", "RayWorkerWrapper", "RayWorkerVllm", "RayWorkerProc"}:
        return f"PID{process['pid']}"  # its place in the world is not printed
    axis = {"EngineCore": "DP", "VllmWorker": "TP", "Worker": "TP"}.get(kind)
    return " ".join((name or axis) + k for name, k in _AXIS.findall(tail)) if axis else ""


def _peel_learned(text: str, learned: Learned, seen: _Seen) -> tuple[_Seen, str] | None:
    """Take off what could also begin a message: only before a stamp, or once learned."""
    if (found := _SRUN.match(text)) is not None and (
        learned.srun or _ENGINE.match(text, found.end()) or text.startswith(_TRACEBACK, found.end())
    ):
        learned.srun = True
        return seen._replace(server=f"task {found[1]}"), text[found.end() :]
    if (found := _NOTEBOOK.fullmatch(text)) is not None:
        inner = _unquote(found[1])
        if learned.notebook or _ENGINE.match(inner):
            learned.notebook = True
            return seen, inner
    if learned.label is not None and (found := learned.label.match(text)) is not None:
        return seen._replace(server=seen.server or found[1].strip()), text[found.end() :]
    return None


def _behind_stamp(text: str, found: re.Match[str], seen: _Seen, learned: Learned, depth: int = 0) -> tuple[Prefix, str]:
    year, month, day, hour, minute, second, fraction, rank = found.groups()
    stamp = _seconds(year, month, day, hour, minute, second, fraction)
    if year is not None:
        learned.year, learned.yearless = int(year), False
    end = found.end()
    if depth < _NESTING and text.startswith("[", end):
        outer = seen._replace(outer_s=stamp, outer_dated=year is not None)
        if (own := _ENGINE.match(text, end)) is not None:
            return _behind_stamp(text, own, outer._replace(rank=rank.strip() or seen.rank), learned, depth + 1)
        if (wrapped := _WRAPPER.match(text, end)) is not None:
            if wrapped[1] is None:
                return _prefix(outer, foreign=True), text[wrapped.end() :]
            return _outside(text[wrapped.end() :], learned, outer._replace(server=wrapped[1]), depth + 1)
    level = ""
    if (leveled := _LEVEL.match(text, end)) is not None:
        level, end = leveled[1], leveled.end()
    prefix = Prefix(
        stamp, year is not None, seen.outer_s, seen.outer_offset_s, seen.outer_dated, rank.strip() or seen.rank,
        seen.server, level, True, False, False,
    )  # fmt: skip
    return prefix, text[end:]


def _unstamped(text: str, seen: _Seen, learned: Learned) -> tuple[Prefix, str]:
    """No stamp of the engine's form: a library's form, a bare level, or nothing."""
    first = text[:1]
    if (first.isdigit() or first == "[") and (found := _PYTHON.match(text)) is not None:
        stamp = _seconds(*found.group(1, 2, 3, 4, 5, 6, 7))
        learned.year = int(found[1])
        if (own := _ENGINE.match(text, found.end())) is not None:
            return _behind_stamp(text, own, seen._replace(outer_s=stamp), learned)
        return _prefix(seen, stamp_s=stamp, library=True), text[found.end() :]
    if first in "DIWE" and first:
        if (found := _VLLM.match(text)) is not None:
            return _vllm(found, seen, learned), text[found.end() :]
        if (found := _GLOG.match(text)) is not None:
            return _prefix(seen, library=True), text[found.end() :]
        if (found := _LEVEL.match(text)) is not None:
            return _prefix(seen, level=found[1]), text[found.end() :]
    return (_prefix(seen) if seen is not _NOTHING else _BARE), text


_BARE = Prefix()


def _prefix(
    seen: _Seen, *, stamp_s: float | None = None, library: bool = False, level: str = "", foreign: bool = False
) -> Prefix:
    return Prefix(
        stamp_s, True, seen.outer_s, seen.outer_offset_s, seen.outer_dated, seen.rank, seen.server, level,
        False, foreign, library, seen.process,
    )  # fmt: skip


def _vllm(found: re.Match[str], seen: _Seen, learned: Learned) -> Prefix:
    """A stamp without a year: the log's own year, the transport's, or none at all for the whole log."""
    year = learned.year
    if year is None and seen.outer_s is not None and seen.outer_dated:
        year = date.fromordinal(int(seen.outer_s // 86400) + 719163).year
    learned.yearless |= year is None
    known = year is not None and not learned.yearless
    stamp = _seconds(str(year) if known else None, *found.group(2, 3, 4, 5, 6, 7))
    return _prefix(seen, stamp_s=stamp, library=True, level=found[1])._replace(dated=known)


def _with_syslog(seen: _Seen, found: re.Match[str], learned: Learned) -> _Seen:
    year = learned.year
    if year is None:
        stamp = _seconds(None, None, None, *found.group(3, 4, 5, 6))
        return seen._replace(outer_s=stamp, outer_dated=False)
    stamp = _seconds(str(year), str(_MONTHS[found[1]]), found[2], *found.group(3, 4, 5, 6))
    return seen._replace(outer_s=stamp, outer_dated=True)


def _json_line(text: str, seen: _Seen) -> tuple[_Seen, str] | None:
    """Read a structured log line: docker's json-file, python-json-logger and their like."""
    if not text.endswith("}") or '"' not in text:
        return None
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    inner = next((line[key] for key in _JSON_TEXT if isinstance(line.get(key), str)), None)
    if inner is None:
        return None
    stamp = next((line[key] for key in _JSON_TIME if isinstance(line.get(key), str)), "")
    if (found := _JSON_STAMP.match(stamp)) is not None:
        outer = _seconds(*found.group(1, 2, 3, 4, 5, 6, 7))
        seen = seen._replace(outer_s=outer, outer_offset_s=_offset(found[8]), outer_dated=True)
    return seen, _unpacked(inner)


def _unquote(body: str) -> str:
    try:
        return _unpacked(str(json.loads(f'"{body}"')))
    except ValueError:
        return body


def _unpacked(text: str) -> str:
    """A text that stood escaped in JSON, where frames and escape sequences hide from the segmenter.

    Its frames come one behind the other as glued pieces do.
    """
    frames = (plain(frame.encode("utf-8", "replace").decode()) for frame in re.split(r"[\r\n]+", text))
    return " ".join(frame for frame in frames if frame)


# --- time -------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _day_s(year: str, month: str, day: str) -> float | None:
    if not _FIRST_YEAR <= int(year) <= _LAST_YEAR:
        return None
    try:
        return (date(int(year), int(month), int(day)).toordinal() - 719163) * 86400.0
    except ValueError:
        return None


def _seconds(
    year: str | None, month: str | None, day: str | None, hour: str, minute: str, second: str, fraction: str | None
) -> float | None:
    """Naive seconds since 1970; without a date, seconds since midnight. None for what no clock shows."""
    if hour > "23" or minute > "59" or second > "60":
        return None
    clock = int(hour) * 3600 + int(minute) * 60 + int(second)
    if fraction:
        clock += int(fraction) / 10 ** len(fraction)
    if year is None or month is None or day is None:
        return float(clock)
    start = _day_s(year, month, day)
    return None if start is None else start + clock


def _offset(text: str | None) -> int | None:
    if not text:
        return None
    if text == "Z":
        return 0
    sign = -1 if text[0] == "-" else 1
    return sign * (int(text[1:3]) * 3600 + int(text[-2:]) * 60)


# --- glue -------------------------------------------------------------------------------------------

_QUOTES = "\"'=\\(`"


def split_embedded(message: str, learned: Learned) -> Iterator[str]:
    """Part a message where another writer's stamped record begins inside it.

    ``…it/s][2026-11-30 15:42:03 TP3] Capture…`` gives two pieces; a stamp inside quotes stays where it is.
    """
    start = 0
    for found in _EMBEDDED.finditer(message):
        at = found.start()
        if at > start and message[at - 1] not in _QUOTES:
            yield message[start:at]
            start = at
    if 0 < start <= _LABEL_LIMIT and "%" not in message[:start]:
        learned.saw_label(message[:start])
    yield message[start:]


def may_hold_embedded(message: str) -> bool:
    """Answer fast whether ``split_embedded`` could find anything."""
    return "[" in message and _EMBEDDED.search(message) is not None
