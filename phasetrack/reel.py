"""One boot of a tape, ready to be played: its part, its pace, its landmarks; and played as plain lines."""

from __future__ import annotations

from math import inf, nextafter
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core.model import Outcome, Status
from phasetrack.core.pacing import Scale, playing
from phasetrack.core.where import After, AtLine, AtPhase, AtShare, AtTime
from phasetrack.rerun import Rerun
from phasetrack.views.tui.replay import Mark, Stage
from phasetrack.views.words import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from phasetrack.core.where import Where
    from phasetrack.edges.history import History
    from phasetrack.tape import Tape

# With nothing else due, a snapshot is taken this often: a verdict can change with the clock alone.
_REST_S = 10.0
# Bytes in which lines are counted at a time.
_COUNT_BYTES = 1 << 16


class Turn(NamedTuple):
    """A moment worth going to."""

    at_s: float
    phase: str  # that begins there; empty for an outcome
    title: str


class Reel:
    """What a player needs of one boot."""

    def __init__(self, tape: Tape, boot: int, idle_s: float | None, history: History | None) -> None:
        """Prepare a boot; 0 for a log that has none.

        Args:
            tape: a log that was read.
            boot: its number.
            idle_s: a longer silence passes in this time.
            history: of earlier boots.
        """
        self.tape = tape
        self.part = tape.stretch(boot)
        self.truth = tape.truth(boot)
        self.rerun = Rerun(tape, boot=None if boot in {0, tape.latest} else boot, history=history)
        self.course = playing(tape.schedule, self.part.begin_s, self.part.end_s, idle_s)
        self.scale = Scale(self.course, self.part.begin_s, self.part.settled_s, self.part.end_s)
        begins, ends = list(self._begins()), list(self._ends())
        self.turns = sorted([*begins, *ends])
        self.marks = tuple(Mark(turn.title, self.scale.share(turn.at_s)) for turn in ends)
        shares = [0.0, *(self.scale.share(turn.at_s) for turn in begins[1:]), 1.0]
        self.stages = tuple(Stage(turn.title, turn.phase, shares[k], shares[k + 1]) for k, turn in enumerate(begins))

    def _begins(self) -> Iterator[Turn]:
        """The phases that began, in the order of the log."""
        rows = [row for row in self.truth.phases if row.status not in {Status.PENDING, Status.SKIPPED}]
        begun = sorted((row.begin_offset, row.phase, row.title) for row in rows if row.begin_offset is not None)
        return (Turn(self.tape.reaches(offset), phase, title) for offset, phase, title in begun if phase != "ready")

    def _ends(self) -> Iterator[Turn]:
        truth = self.truth
        if truth.ready_offset is not None:
            yield Turn(self.tape.reaches(truth.ready_offset), "", "ready")
        if truth.outcome is Outcome.FAILED and truth.failure is not None and not truth.failure.inferred:
            yield Turn(self.tape.reaches(truth.failure.place.offset), "", "failed")
        elif truth.outcome is Outcome.STOPPED:
            yield Turn(self.part.end_s, "", "stopped")


class NoPlaceError(Exception):
    """A place that this log does not have, in words."""


def locate(reel: Reel, place: Where) -> tuple[int, float]:
    """Find a place that a user named: the boot that it lies in, and the moment.

    Raises:
        NoPlaceError: there is none.
    """
    part, tape = reel.part, reel.tape
    match place:
        case After(seconds):
            return part.boot, min(part.begin_s + seconds, part.end_s)
        case AtShare(share):
            return part.boot, reel.scale.moment(share)
        case AtLine(line):
            offset = _offset_of(tape, line)
            return tape.boot_at(offset), tape.reaches(offset)
        case AtTime(clock_s):
            return _at_time(reel, clock_s)
        case AtPhase(name):
            return part.boot, _at_phase(reel, name.lower())


def _at_time(reel: Reel, clock_s: float) -> tuple[int, float]:
    """In the boot that is played, if its clock ever showed that time; else in another."""
    tape, part, schedule = reel.tape, reel.part, reel.tape.schedule
    found = schedule.find(clock_s, part.begin_s, part.end_s)
    if found is not None:
        return part.boot, found
    found = schedule.find(clock_s, schedule.begin_s, tape.end_s)
    if found is None:
        raise NoPlaceError(tape.note if schedule.timeless else f"the log's clock never shows {clock(clock_s)}")
    return tape.boot_at(schedule.written(found)), found


def _at_phase(reel: Reel, name: str) -> float:
    for turn in reel.turns:
        if name in {turn.phase, turn.title} or turn.title.lower().startswith(name):
            return turn.at_s
    phases = ", ".join(turn.phase or turn.title for turn in reel.turns)
    raise NoPlaceError(f"{name}: no phase of this boot ({phases})" if phases else "this log holds no phase")


def _offset_of(tape: Tape, line: int) -> int:
    """Where a line begins."""
    at, left = 0, line - 1
    while left > 0 and (data := tape.pages.read(at, _COUNT_BYTES)):
        found = data.count(b"\n")
        if found >= left:
            for _ in range(left):
                at, data = at + data.index(b"\n") + 1, data[data.index(b"\n") + 1 :]
            left = 0
        else:
            at, left = at + len(data), left - found
    if line < 1 or left > 0 or at >= tape.pages.size():
        raise NoPlaceError(f"this log has no line {line:,}")
    return at


def play_plain(reel: Reel, out: Callable[[str], None], *, until: Callable[[float], None], plain: bool) -> None:
    """Print what a plain tail would have printed while the log was written, with its times.

    Args:
        reel: the boot; its rerun stands where to begin.
        out: prints a line.
        until: waits for a moment, or not.
        plain: no characters beyond ASCII.
    """
    from phasetrack.views.events import Heartbeat, PlainLines
    from phasetrack.views.status import status_line

    tape, rerun, part = reel.tape, reel.rerun, reel.part
    shown = tape.going if part.boot in {0, tape.latest} else {part.boot}
    lines = PlainLines({info.id: info.title for info in tape.patterns.phases.values()}, plain)
    beat, due = Heartbeat(plain), max(rerun.at_s, part.begin_s)
    while not rerun.ended and rerun.at_s < part.end_s:
        at_s = min(rerun.next_s, due, part.end_s)
        until(at_s)
        records = [record for told in rerun.play(at_s) for record in told if record.boot in shown]
        if not records and at_s < due:
            continue
        known = rerun.snapshot()
        for line in lines.lines(records, known):
            out(line)
        said = None if known.ended else beat.line(known)
        if said is not None:
            out(said)
        due = at_s + min(beat.next_s(known), _REST_S)
    out(status_line(rerun.snapshot(), plain=plain))


def before(moment: float) -> float:
    """The last moment at which a line of this one was not there yet."""
    return nextafter(moment, -inf)
