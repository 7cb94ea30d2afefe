"""Lines to failing records: tracebacks put together, whoever wrote between them.

A failing record is one log message with a traceback behind it; only its first line carries a stamp and a rank.
Rules:

1. A rule ``where = "record"`` opens a record and is certain at once; ``"line"`` is a record of one line.
2. An untimed ``Traceback`` opens a record that becomes certain at its exception, if it is *uncaught*: its outermost
   frame is a module or a process's bootstrap, and a frame lies in the engine's package. A logged exception
   (``exc_info``), a harness's, a benchmark's or a client's traceback is none.
3. An untimed line that carries a rank goes to that rank's record; any other to the one that can have printed it
   (``weave``).
4. A stamped line of its rank ends a record. Lines without a rank come from several processes, so such a line ends
   only what is complete. Others' lines end it in the end.
5. An export that stands newest first has the traceback before its first line: it is read backwards.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from phasetrack.core.model import Where
from phasetrack.core.raised import BEHIND, HEADER, At, Line, exception_class, frame_of, line_of
from phasetrack.core.redact import redact
from phasetrack.core.secret_lines import SecretLines
from phasetrack.core.state import axes
from phasetrack.core.weave import Weave

if TYPE_CHECKING:
    from collections.abc import Mapping

    from phasetrack.core.model import Event, Place, Rule, Value
    from phasetrack.core.raised import Frame

_NOT_ENGINE = re.compile(r"/(?:tests?|bench\w*|benchmarks?|eval\w*|examples?)[/_.]")
# What a client says whose server is not there yet, and what ends a script that somebody stopped.
_CLIENTS = re.compile(r"Connect|Timeout|URLError|HTTPError|RemoteDisconnected|KeyboardInterrupt|SystemExit")
# No module named 'sglang.srt'
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_UNCAUGHT = {"<module>", "_run_module_as_main", "_run_code", "_bootstrap"}
# The module's own frame stands behind runpy's, a process's behind multiprocessing's.
_OUTER_FRAMES = 4
# Lines kept of a record, of its beginning and of its end; a CUDA graph failure's chain reaches 150.
_HEAD, _LIMIT = 12, 400
_MESSAGE_LIMIT = 600
# Where nothing of a traceback is still to come.
_DONE = BEHIND | {At.OPEN}
# More ranks than this do not run in one log; a hostile log could open as many records as it has lines.
_OPEN_LIMIT = 1024
# So many stamped lines of others, none of which opens a record, may stand in a record.
_PATIENCE = 64
# What the exception says after its first line counts as its text for so many lines; a compiler's output is longer.
_TEXT_LIMIT = 300


@dataclass(slots=True, eq=False)
class FailingRecord:
    """One failing record while its lines come in."""

    key: int
    place: Place
    at_s: float | None
    rank: str
    rule: Rule | None
    fields: Mapping[str, Value]
    lines: list[str]
    exceptions: list[str] = field(default_factory=list)  # of its chain, the root first
    engine: str = ""  # whose package a frame lies in
    frame: Frame | None = None  # the innermost of the engine
    source: str = ""  # what stands there
    uncaught: bool = False
    foreign_frame: bool = False
    mixed: bool = False  # its lines lay among those of other ranks: that this rank printed them is a guess
    idle: int = 0  # stamped lines of others since its last own line
    texts: int = 0  # lines behind its exception
    secrets: SecretLines = field(default_factory=SecretLines)  # what a line of it leaves open

    @property
    def is_complete(self) -> bool:
        """Whether it has come to an exception."""
        return bool(self.exceptions)

    @property
    def message(self) -> str:
        """What it says: its last exception, or its first line."""
        if self.exceptions:
            return self.exceptions[-1]
        return self.lines[0].removesuffix(HEADER).rstrip(": \n") if self.lines else ""

    @property
    def is_terse(self) -> bool:
        """Whether it says nothing: an exception without a text, or none at all behind its first line."""
        if self.exceptions:
            return ": " not in self.message
        return self.rule is not None and self.rule.where is Where.RECORD

    @property
    def place_words(self) -> str:
        """Where it failed: the innermost frame of the engine; empty where none is known."""
        return "" if self.frame is None else f"{self.frame.name} ({self.frame.file}, line {self.frame.line})"

    @property
    def is_certain(self) -> bool:
        """Whether it is a failure of the engine."""
        if self.rule is not None:
            return True
        return self.is_complete and self.uncaught and bool(self.engine) and not self.foreign_frame

    @property
    def is_stray(self) -> bool:
        """Whether it may have ended another program than the engine: nobody caught it, and no client says it."""
        if self.rule is not None or not self.is_complete or not self.uncaught or self.engine:
            return False
        return _CLIENTS.search(exception_class(self.message)) is None

    @property
    def first_lines(self) -> tuple[str, ...]:
        """The lines worth showing: the head, and the end with the exception."""
        if len(self.lines) <= 2 * _HEAD:
            return tuple(self.lines)
        return (*self.lines[:_HEAD], "…", *self.lines[-_HEAD:])


class Failing:
    """The records of one server that are still open."""

    __slots__ = ("_before", "_count", "_open", "_orphans", "_packages", "_weave")

    def __init__(self, packages: Mapping[str, str]) -> None:
        """Know the Python packages whose tracebacks are an engine's."""
        self._packages = tuple((f"/{package}/", engine) for package, engine in packages.items())
        self._open: dict[int, FailingRecord] = {}
        self._weave = Weave()
        self._count = 0
        self._orphans: deque[str] = deque(maxlen=_LIMIT)  # untimed lines since the last stamped one, of no record
        self._before: list[str] = []  # those before the last stamped one

    @property
    def is_open(self) -> bool:
        """Whether a line may still belong to a record."""
        return bool(self._open)

    def begin(self, event: Event, at_s: float | None) -> FailingRecord:
        """Open the record of a failure rule."""
        text = event.text[:_MESSAGE_LIMIT]
        record = self._record(event, at_s, event.rule, event.fields, [text])
        if event.rule is None or event.rule.where is not Where.RECORD:
            return record
        for other in self._open.values():
            other.idle = max(other.idle - 1, 0)  # a record's own first line is no sign that another one is over
        self._join(record, text)
        if text.rstrip().endswith(HEADER) and len(self._open) == 1 and self._before:
            self._backwards(record, self._before)
        return record

    def stamped(self, rank: str) -> None:
        """Take notice of a stamped line: it ends its own rank's record, and in the end all others."""
        if self._orphans or self._before:
            self._before = list(self._orphans)
            self._orphans.clear()
        for record in list(self._open.values()):
            record.idle += 1
            done = self._weave.at(record.key) in _DONE
            if (record.rank == rank and (rank or done)) or record.idle > _PATIENCE:
                self._close(record)
            else:
                self._weave.hush(record.key)

    def text(self, event: Event, at_s: float | None) -> list[FailingRecord]:
        """Take an untimed line; answer the records to which it gave an exception, or more of its text."""
        text, rank = event.text, event.prefix.rank
        tagged = [record for record in self._open.values() if rank and record.rank == rank]
        if tagged:
            key = tagged[-1].key if self._weave.add(tagged[-1].key, text) else None
        else:
            key = self._weave.give(text) if self._open and not rank else None
        if key is None:
            if text.startswith(HEADER):
                self._traceback(event, at_s)
            elif not self._open and text:
                self._orphans.append(text)
            return []
        swapped = None if tagged else self._weave.swapped
        if swapped is not None:
            self._read(self._open[swapped], self._weave.lines(swapped))
        records = [self._took(self._open[key], text), None if swapped is None else self._open[swapped]]
        return [record for record in records if record is not None]

    # --- one record ---------------------------------------------------------------------------------

    def _traceback(self, event: Event, at_s: float | None) -> None:
        """Open the record of a traceback that no line announced."""
        self._join(self._record(event, at_s, None, {}, [HEADER]), HEADER)

    def _record(
        self, event: Event, at_s: float | None, rule: Rule | None, fields: Mapping[str, Value], lines: list[str]
    ) -> FailingRecord:
        self._count += 1
        return FailingRecord(self._count, event.place, at_s, event.prefix.rank, rule, fields, lines)

    def _join(self, record: FailingRecord, head: str) -> None:
        if len(self._open) >= _OPEN_LIMIT:
            self._close(next(iter(self._open.values())))
        self._orphans.clear()
        self._open[record.key] = record
        self._weave.open(record.key, head, _number(record.rank))

    def _close(self, record: FailingRecord) -> None:
        del self._open[record.key]
        self._weave.close(record.key)

    def _took(self, record: FailingRecord, text: str) -> FailingRecord | None:
        """A line was given to a record; what it says of itself is read anew at each exception."""
        record.idle = 0
        if len(record.lines) < _LIMIT:
            record.lines.append(record.secrets.redact(text)[:_MESSAGE_LIMIT])
        at = self._weave.at(record.key)
        if at is At.TEXT:
            record.texts += 1
            if record.exceptions and _says_nothing(record.exceptions[-1]):
                self._read(record, self._weave.lines(record.key))
            return record if record.texts <= _TEXT_LIMIT else None
        if at is At.FRAME and not record.exceptions:
            self._passed(record, text)
        if at is not At.EXCEPTION:
            return None
        record.texts = 0
        self._read(record, self._weave.lines(record.key))
        return record

    def _passed(self, record: FailingRecord, text: str) -> None:
        """Note a frame of a traceback that may never come to its exception."""
        frame = frame_of(text)
        if frame is not None and self._of_engine(record, frame.path):
            record.frame = frame

    def _read(self, record: FailingRecord, lines: list[tuple[str, At]]) -> None:
        """Read a record from its lines, as the tree of all writers has them."""
        record.exceptions = [redact(text)[:_MESSAGE_LIMIT] for text in _exceptions(lines)]
        record.mixed = record.key in self._weave.guessed
        if record.mixed or len(record.lines) >= _LIMIT:
            record.secrets = SecretLines()
            record.lines = [record.secrets.redact(text)[:_MESSAGE_LIMIT] for text, _ in lines]
        record.frame, record.source, record.uncaught, record.foreign_frame = None, "", False, False
        depth, inside = 0, False
        for text, at in lines:
            frame = frame_of(text) if at is At.FRAME else None
            if at is At.HEAD:
                depth = 0
            if frame is None:
                record.source = (
                    redact(text.strip()) if inside and at is At.FRAME and not record.source else record.source
                )
                continue
            depth += 1
            record.uncaught |= depth <= _OUTER_FRAMES and frame.name in _UNCAUGHT
            inside = self._of_engine(record, frame.path)
            if inside:
                record.frame, record.source = frame, ""
        missing = _NO_MODULE.match(record.message)
        if missing is not None and not record.engine:  # a launch without its engine is the engine's failure
            self._of_engine(record, "/" + missing[1].replace(".", "/") + "/")

    def _of_engine(self, record: FailingRecord, path: str) -> bool:
        for package, engine in self._packages:
            if package in path:
                record.foreign_frame |= _NOT_ENGINE.search(path[path.rfind(package) :]) is not None
                record.engine = record.engine or engine
                return True
        return False

    def _backwards(self, record: FailingRecord, orphans: list[str]) -> None:
        """Read a traceback that stands before its first line, from the bottom up to its exception."""
        lines = orphans[::-1]
        ends = [k for k, text in enumerate(lines) if line_of(text) is Line.EXCEPTION]
        if line_of(lines[0]) is not Line.FRAME or not ends:
            return
        for text in lines[: ends[0] + 1]:
            if self._weave.add(record.key, text):
                self._took(record, text)


def _says_nothing(exception: str) -> bool:
    """``ImportError: `` with its text in the lines below."""
    return exception.rstrip().endswith(":") and " " not in exception.strip()


def _exceptions(lines: list[tuple[str, At]]) -> list[str]:
    """The exceptions of a chain; one whose text begins below its class has it behind it."""
    found: list[str] = []
    for text, at in lines:
        if at is At.EXCEPTION:
            found.append(text)
        elif at is At.TEXT and found and _says_nothing(found[-1]):
            found[-1] = f"{found[-1].rstrip()} {text.strip()}"
    return found


def _number(rank: str) -> int | None:
    """A rank's number as its own messages print it: of its tensor-parallel group, or the only one that it has."""
    numbers = axes(rank.upper())
    return numbers.get("TP", next(iter(numbers.values()), None)) if numbers else None
