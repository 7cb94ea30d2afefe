"""The stream of a log that is being followed: plain lines for people and CI logs, JSON lines for programs.

A plain line is printed for each change, and a heartbeat while the log is silent, so that a CI log shows where a
start stands, and no CI kills a job for its silence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from phasetrack.core.answer import age_s
from phasetrack.core.model import Outcome, Status, VerdictState
from phasetrack.views.jsonl import dumps, record_json
from phasetrack.views.words import clock, count, duration, glyph, progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from phasetrack.core.model import Record, Snapshot, Zone

# Silences after which a heartbeat is due, then one every so often.
_BEATS_S = (30.0, 60.0, 120.0)
_BEAT_EVERY_S = 120.0
# A bar is told at every tenth of its way.
_TENTHS = 10
# States worth a line of their own as soon as they are reached.
_ALARMING = {VerdictState.OVERDUE, VerdictState.SUSPECT, VerdictState.STUCK, VerdictState.DEGRADED}
_MESSAGE_LIMIT = 300
_FAILURES_KEPT = 4096


def json_line(record: Record, zone: Zone, path: str | None = None) -> str:
    """One record as ``tail --output json`` prints it; ``path`` where several logs are followed."""
    line = record_json(record, zone)
    return dumps(line if path is None else {"path": path, **line})


@dataclass(slots=True)
class _Stretch:
    """What is known of one phase of one boot while its records come in."""

    began_s: float | None = None
    ended_s: float | None = None
    progress: str = ""
    tenth: int = -1
    inferred: bool = False


@dataclass(slots=True)
class PlainLines:
    """Turns records into lines; remembers what it said."""

    titles: Mapping[str, str]  # phase -> its name in words
    ascii_only: bool = False
    _phases: dict[tuple[int, str], _Stretch] = field(default_factory=dict)
    _current: dict[int, str] = field(default_factory=dict)
    _outcomes: dict[int, str] = field(default_factory=dict)
    _failures: dict[tuple[int, object], tuple[bool, str]] = field(default_factory=dict)  # fatal, and why

    def lines(self, records: Sequence[Record], known: Snapshot) -> Iterator[str]:
        """Yield a line for each change.

        Args:
            records: new ones, in order.
            known: what is known after them.
        """
        for record in _last_said(records):
            for text in self._texts(record, known):
                yield f"{clock(record.at_s) if record.at_s is not None else '':8}  {text}"

    def _texts(self, record: Record, known: Snapshot) -> Iterator[str]:
        tell = {
            "boot": self._boot, "phase": self._phase, "span": self._span, "progress": self._progress,
            "activity": self._activity, "warning": self._warning, "failure": self._failure, "ready": self._ready,
            "outcome": self._outcome,
        }.get(record.type)  # fmt: skip
        return iter(()) if tell is None else tell(record, known)

    def _boot(self, record: Record, known: Snapshot) -> Iterator[str]:
        server, line = record.data.get("server"), record.data.get("begin_line")
        of = f" of {server}" if server else ""
        at = f" at line {line}" if line is not None else ""
        model = known.facts.get("model_path") if known.boot == record.boot else None
        yield f"Boot {record.boot}{of} begins{at}" + (f": {model}" if model else "")

    def _phase(self, record: Record, known: Snapshot) -> Iterator[str]:
        before, phase = self._current.get(record.boot), str(record.data["phase"])
        self._current[record.boot] = phase
        if before is not None and before not in {"ready", "serving"}:
            yield self._done(record.boot, before, known)
        if phase not in {"ready", "serving"}:
            yield f"{glyph(Status.RUNNING, plain=self.ascii_only)} {self._title(phase)}"

    def _done(self, boot: int, phase: str, known: Snapshot) -> str:
        row = next((row for row in known.phases if row.phase == phase and known.boot == boot), None)
        stretch = self._phases.pop((boot, phase), _Stretch())
        took = None
        if stretch.began_s is not None and stretch.ended_s is not None:
            took = stretch.ended_s - stretch.began_s
        if row is not None and row.began_s is None:
            took = row.elapsed_s  # only its end was printed
        parts = [self._title(phase)]
        parts += [("~" if stretch.inferred else "") + duration(took)] if took is not None else []
        parts += [stretch.progress] if stretch.progress else []
        return f"{glyph(Status.DONE, plain=self.ascii_only)} " + "  ".join(parts)

    def _span(self, record: Record, known: Snapshot) -> Iterator[str]:
        """Keep the phase's first begin and last end; a rank alone is no line."""
        del known
        stretch = self._phases.setdefault((record.boot, str(record.data["phase"])), _Stretch())
        if record.data["edge"] == "begin":
            stretch.began_s = record.at_s if stretch.began_s is None else stretch.began_s
        else:
            stretch.ended_s = record.at_s
        stretch.inferred |= record.data.get("basis") == "inferred"
        return iter(())

    def _progress(self, record: Record, known: Snapshot) -> Iterator[str]:
        del known
        phase, done, total = str(record.data["phase"]), record.data["done"], record.data["total"]
        stretch = self._phases.setdefault((record.boot, phase), _Stretch())
        if not isinstance(done, int | float):
            return
        whole = total if isinstance(total, int | float) and total > 0 else None
        unit = record.data.get("unit")
        stretch.progress = f"{count(done)}/{'?' if whole is None else count(whole)}"
        stretch.progress += f" {unit}" if unit not in {"", "it", None} else ""
        tenth = 0 if whole is None else int(_TENTHS * done / whole)
        if tenth != stretch.tenth:
            stretch.tenth = tenth
            yield f"  {self._title(phase)} {stretch.progress}"

    def _activity(self, record: Record, known: Snapshot) -> Iterator[str]:
        del known
        yield f"  {record.data['title']}" + (" done" if record.data["edge"] == "end" else "")

    def _warning(self, record: Record, known: Snapshot) -> Iterator[str]:
        del known
        yield f"  Warning: {_cut(record.data['message'])}"

    def _failure(self, record: Record, known: Snapshot) -> Iterator[str]:
        """Tell a failure once; more of its text, which came later, without its head."""
        key, fatal = (record.boot, record.data["begin_line"]), bool(record.data["fatal"])
        told, why = self._failures.get(key, (None, ""))
        if told is None and len(self._failures) >= _FAILURES_KEPT:
            self._failures.clear()
        if told is fatal:
            yield f"  says: {_cut(record.data['message'])}"
        else:
            yield self._failed(record)
        cause = known.failure
        of_cause = cause is not None and cause.id == record.data["id"] and known.boot == record.boot
        text = cause.cause if cause is not None and of_cause else ""
        self._failures[key] = fatal, text or why
        if cause is not None and text and text != why:
            yield f"  why: {text}"
            yield from [f"  do:  {cause.remedy}"] if cause.remedy else []

    def _failed(self, record: Record) -> str:
        said = "FAILED" if record.data["fatal"] else "Error"
        rank, line, phase = record.data["rank"], record.data["begin_line"], record.data["phase"]
        where = [self._title(str(phase))] if phase else []
        where += [str(rank)] if rank else []
        where += [f"line {line}"] if line is not None else []
        mark = glyph(Status.FAILED, plain=self.ascii_only)
        return f"{mark} {said} ({', '.join(where)}): {_cut(record.data['message'])}"

    def _ready(self, record: Record, known: Snapshot) -> Iterator[str]:
        before = self._current.get(record.boot, "ready")
        if before not in {"ready", "serving"}:  # the record of the next phase stands behind this one
            yield self._done(record.boot, before, known)
            self._current[record.boot] = "ready"
        took = known.startup_s if known.boot == record.boot else None
        yield f"{glyph(Status.DONE, plain=self.ascii_only)} READY" + (f" after {duration(took)}" if took else "")

    def _outcome(self, record: Record, known: Snapshot) -> Iterator[str]:
        del known
        before, self._outcomes[record.boot] = self._outcomes.get(record.boot), str(record.data["outcome"])
        if record.data["outcome"] == Outcome.STOPPED:
            yield "STOPPED"
        elif record.data["outcome"] == Outcome.STARTING:
            yield "The start goes on: that traceback was not the server's end."
        elif record.data["outcome"] == Outcome.READY and before in {Outcome.FAILED, Outcome.STOPPED}:
            yield "The server serves on: what told of its end was another's text."

    def _title(self, phase: str) -> str:
        return self.titles.get(phase, phase)


@dataclass(slots=True)
class Heartbeat:
    """Says what goes on while the log is silent."""

    ascii_only: bool = False
    _told_s: float = 0.0
    _alarm: VerdictState | None = None

    def line(self, known: Snapshot) -> str | None:
        """Answer the line that is due now, if one is."""
        silent = known.silent_s or 0.0
        state = known.verdict.state
        alarm = state if state in _ALARMING else None
        changed, self._alarm = alarm not in {None, self._alarm}, alarm
        if silent < self._told_s:
            self._told_s = 0.0
        beat = max((beat for beat in (*_BEATS_S, _every(silent)) if beat <= silent), default=0.0)
        due = beat > self._told_s and known.outcome in {Outcome.STARTING, Outcome.NONE}
        if not due and not changed:
            return None
        self._told_s = max(beat, self._told_s)
        return f"{clock(known.now_s)}  {still(known, plain=self.ascii_only)}"

    def next_s(self, known: Snapshot) -> float:
        """How long until a line may be due, if nothing is printed until then."""
        silent = known.silent_s or 0.0
        return min(beat - silent for beat in (*_BEATS_S, _every(silent) + _BEAT_EVERY_S) if beat > silent)


def _every(silent_s: float) -> float:
    return silent_s - silent_s % _BEAT_EVERY_S


def still(known: Snapshot, *, plain: bool = False) -> str:
    """Where a start stands, and whether its silence is normal."""
    row = next((row for row in known.phases if row.phase == known.phase and row.status is Status.RUNNING), None)
    dots = "..." if plain else "…"
    if row is None:
        return f"{dots} {known.verdict.because}"
    parts = [f"{row.title} {progress(row.progress)}".rstrip()]
    parts += [f"in it for {duration(row.elapsed_s)}"] if row.elapsed_s is not None else []
    return f"{dots} {', '.join(parts)}. {known.verdict.because}"


def waiting_line(known: Snapshot) -> str:
    """What is waited for where only a new boot counts, and what stands in the log so far."""
    if not known.boot:
        return "waiting for a new boot"
    age = age_s(known)
    since = "" if age is None else f" {duration(age)} ago"
    return f"waiting for a new boot; boot {known.boot} of this log, {known.outcome}{since}, does not count"


def _last_said(records: Sequence[Record]) -> Iterator[Record]:
    """The records without failures of which a later one says more."""
    last = {(r.boot, r.data["begin_line"], r.data["fatal"]): r for r in records if r.type == "failure"}
    for record in records:
        if record.type != "failure" or last[record.boot, record.data["begin_line"], record.data["fatal"]] is record:
            yield record


def _cut(message: object) -> str:
    text = str(message)
    return text if len(text) <= _MESSAGE_LIMIT else text[: _MESSAGE_LIMIT - 1] + "…"
