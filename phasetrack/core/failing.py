"""Lines to failing records: tracebacks put together, causes told from consequences.

A failing record is one log message with a traceback behind it; only its first line carries a stamp and a
rank. Rules:

1. A rule ``where = "record"`` opens a record and is certain at once; ``"line"`` is a record of one line.
2. An untimed ``Traceback`` opens a record that becomes certain at its end, if it is *uncaught*: its outermost
   frame is a module or a process's bootstrap, and a frame lies in the engine's package. A logged exception
   (``exc_info``), a harness's, a benchmark's or a client's traceback is none.
3. The message is the last exception line; the kind is that of the first exception in the chain that any rule
   knows, so that the root wins over what wrapped it.
4. ``"echo"`` lines are consequences. They fold under the first cause; only where no cause was printed does a
   fatal echo stand for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from phasetrack.core.model import Where
from phasetrack.core.redact import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from phasetrack.core.model import Event, Place, Rule

HEADER = "Traceback (most recent call last):"

_FRAME = re.compile(r'\s*File "(?P<path>[^"]*)", line \d+(?:, in (?P<name>.*))?')
_CHAIN = ("During handling of the above exception", "The above exception was the direct cause")
# ``torch.OutOfMemoryError: …``, ``EOFError``; not the rest of a frame that a paste wrapped (``duler_process``)
_EXCEPTION = re.compile(
    r"(?P<kind>(?:[A-Za-z_]\w*\.)*[A-Z]\w*)"
    r"(?::(?P<text>[ \t].*)?|(?<=Error)|(?<=Exception)|(?<=Interrupt)|(?<=Exit)|(?<=Empty))\Z",
    re.DOTALL,
)
_NOT_ENGINE = re.compile(r"/(?:tests?|bench\w*|benchmarks?|eval\w*|examples?)[/_.]")
_UNCAUGHT = {"<module>", "_run_module_as_main", "_run_code", "_bootstrap"}
# The module's own frame stands behind runpy's, a process's behind multiprocessing's.
_OUTER_FRAMES = 4
# Lines kept of a record; a CUDA graph failure's chain reaches 150.
_HEAD, _LIMIT = 12, 400
_MESSAGE_LIMIT = 600


@dataclass(slots=True)
class FailingRecord:
    """One failing record while its lines come in."""

    place: Place
    at_s: float | None
    rank: str
    rule: Rule | None
    fields: Mapping[str, object]
    lines: list[str]
    message: str
    in_trace: bool = False
    frames: int = 0  # of the traceback that is open
    exceptions: list[str] = field(default_factory=list)
    engine: str = ""  # whose package a frame lies in
    foreign_frame: bool = False
    uncaught: bool = False
    complete: bool = False
    told: bool = False  # the machine has it already

    @property
    def is_certain(self) -> bool:
        """Whether it is a failure of the engine."""
        if self.rule is not None:
            return True
        return self.complete and self.uncaught and bool(self.engine) and not self.foreign_frame


class Failing:
    """The records of one server that are still open."""

    __slots__ = ("_open", "_packages")

    def __init__(self, packages: Mapping[str, str]) -> None:
        """Know the Python packages whose tracebacks are an engine's."""
        self._packages = tuple((f"/{package}/", engine) for package, engine in packages.items())
        self._open: list[FailingRecord] = []

    @property
    def is_open(self) -> bool:
        """Whether a line may still belong to a record."""
        return bool(self._open)

    def begin(self, event: Event, at_s: float | None) -> FailingRecord:
        """Open the record of a failure rule."""
        record = FailingRecord(
            event.place, at_s, event.prefix.rank, event.rule, event.fields, [event.text[:_MESSAGE_LIMIT]],
            event.text[:_MESSAGE_LIMIT],
        )  # fmt: skip
        if event.rule is not None and event.rule.where is Where.RECORD:
            self.stamped(event.prefix.rank)
            self._open.append(record)
            record.in_trace = event.text.rstrip().endswith(HEADER)
        else:
            record.complete = True
        return record

    def stamped(self, rank: str) -> None:
        """A stamped line of a rank ends that rank's open record, and every one that is complete."""
        self._open = [record for record in self._open if record.rank != rank and not record.complete]

    def text(self, event: Event, at_s: float | None) -> FailingRecord | None:
        """Take an untimed line; answer the record that it completed, if any."""
        text = event.text
        if text.startswith(HEADER):
            self._traceback(event, at_s)
            return None
        if not self._open:
            return None
        record = self._owner(event.prefix.rank)
        if len(record.lines) < _LIMIT:
            record.lines.append(redact(text[:_MESSAGE_LIMIT]))
        if record.in_trace:
            return self._trace_line(record, text)
        if text.startswith(_CHAIN):
            record.complete = False
        return None

    def _traceback(self, event: Event, at_s: float | None) -> None:
        record = self._owner(event.prefix.rank) if self._open else None
        if record is None or (record.complete and record.rule is None):
            record = FailingRecord(event.place, at_s, event.prefix.rank, None, {}, [], HEADER)
            self._open.append(record)
        record.lines.append(redact(event.text[:_MESSAGE_LIMIT]))
        record.in_trace, record.complete, record.frames = True, False, 0

    def _owner(self, rank: str) -> FailingRecord:
        tagged = [record for record in self._open if rank and record.rank == rank]
        return (tagged or self._open)[-1]

    def _trace_line(self, record: FailingRecord, text: str) -> FailingRecord | None:
        found = _FRAME.match(text)
        if found is not None:
            self._frame(record, found["path"], found["name"] or "")
            return None
        if text[:1].isspace() or _EXCEPTION.match(text) is None:
            return None
        record.in_trace, record.complete = False, True
        record.exceptions.append(redact(text[:_MESSAGE_LIMIT]))
        record.message = record.exceptions[-1]
        return record

    def _frame(self, record: FailingRecord, path: str, name: str) -> None:
        record.frames += 1
        record.uncaught |= record.frames <= _OUTER_FRAMES and name in _UNCAUGHT
        for package, engine in self._packages:
            if package in path:
                record.foreign_frame |= _NOT_ENGINE.search(path[path.rfind(package) :]) is not None
                record.engine = record.engine or engine


def first_lines(record: FailingRecord) -> tuple[str, ...]:
    """The lines worth showing: the head, and the end with the exception."""
    if len(record.lines) <= 2 * _HEAD:
        return tuple(record.lines)
    return (*record.lines[:_HEAD], "…", *record.lines[-_HEAD:])


def exception_class(message: str) -> str:
    """``torch.OutOfMemoryError: CUDA …`` gives ``OutOfMemoryError``; empty where it is no exception line."""
    found = _EXCEPTION.match(message)
    return "" if found is None else found["kind"].rpartition(".")[2]
