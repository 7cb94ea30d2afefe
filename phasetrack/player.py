"""A tape on a virtual clock, as a screen's feed.

The clock is ours times the speed; what is shown is ``Rerun``'s. A way that takes long (the first time far into a
large log) is gone in slices, so that the screen lives meanwhile; a slow machine plays slower, and never skips.
"""

from __future__ import annotations

import os
import queue
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrack.core.hindsight import hindsight
from phasetrack.core.where import FORMS, where
from phasetrack.reel import NoPlaceError, Reel, Turn, before, locate, play_plain
from phasetrack.views.tui.replay import (
    Faster,
    GoTo,
    OpenBoot,
    PlayPause,
    Replay,
    Skip,
    SkipPhase,
    ToByte,
    ToShare,
)
from phasetrack.watch import HZ, SSH_HZ

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from phasetrack.core.model import Snapshot
    from phasetrack.core.where import Where
    from phasetrack.edges.history import History
    from phasetrack.tape import Tape
    from phasetrack.views.tui.replay import Wish

SPEEDS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
# The longest wait at a time: leaving the screen waits for it.
_SLICE_S = 0.2
# A way is gone for so long before a picture is due.
_PATIENCE_S = 0.15
# Of a phase that has run for longer than this at the present speed, "previous" means its own begin.
_AGAIN_S = 2.0
# A second that was asked for is shown, whatever the last digits of its sum are.
_ROUNDED_S = 1e-4


@dataclass(frozen=True, slots=True)
class Begin:
    """How a replay begins."""

    speed: float = 1.0
    place: Where | None = None
    idle_s: float | None = None
    boot: int | None = None
    demo: bool = False


class Written:
    """A log's bytes up to the moment that is shown (``views.tui.feed.Pages``)."""

    def __init__(self, tape: Tape) -> None:
        """Show none of them yet."""
        self._pages = tape.pages
        self.until = 0

    def begin(self) -> int:
        """The first byte that can still be had."""
        return self._pages.begin()

    def size(self) -> int:
        """Bytes written by then."""
        return self.until

    def read(self, offset: int, count: int) -> bytes:
        """Up to ``count`` bytes of what was written by then."""
        return self._pages.read(offset, min(count, self.until - offset))


class Player:
    """Feeds a screen from a tape (``views.tui.feed.Feed``). ``wish`` and ``pages`` are for any thread."""

    def __init__(
        self,
        tape: Tape,
        begin: Begin,
        *,
        history: History | None = None,
        hz: float | None = None,
        ours: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to play; the tape is read by ``next``, step by step.

        Args:
            tape: a log, not read yet.
            begin: how the replay begins.
            history: of earlier boots.
            hz: pictures a second; None chooses by whether this is an ssh session.
            ours: the clock that the virtual one follows.
        """
        self._ours = ours
        self._tape = tape
        self._begin = begin
        self._history = history
        self._period_s = 1.0 / (hz or (SSH_HZ if "SSH_CONNECTION" in os.environ else HZ))
        self._wishes: queue.SimpleQueue[Wish] = queue.SimpleQueue()
        self._reading: Generator[int] | None = tape.read()
        self._drawn_s = 0.0
        self._reel: Reel | None = None
        self._playing = True
        self._speed = begin.speed
        self._goal: float | None = None  # a moment that is on its way to be shown
        self._from = (0.0, 0.0)  # our clock and the playing time, when both were last the same
        self._said = ""
        self.pages = Written(tape)
        self.replay: Replay | None = None

    # --- the feed -----------------------------------------------------------------------------------

    def wish(self, wish: Wish) -> None:
        """Take a wish; it is granted before the next picture."""
        self._wishes.put(wish)

    def next(self) -> Snapshot | None:
        """Answer what was known at the moment that the clock shows, where that is worth a new picture."""
        if self._reading is not None:
            return self._read_on(self._reading)
        if not self._is_time():
            return None
        assert self._reel is not None  # noqa: S101 - the tape was read
        self._move(self._reel)
        known = self._reel.rerun.snapshot()
        self.pages.until = self._reel.rerun.position
        self.replay = self._stands(self._reel, known)
        self._drawn_s = self._ours()
        return known

    @property
    def unread_bytes(self) -> int | None:
        """What is left to read; None once all of it was read."""
        if self._reading is None:
            return None
        try:
            return max(os.stat(self._tape.path).st_size - self._tape.pages.size(), 0)  # noqa: PTH116
        except OSError:
            return 0

    @property
    def notice(self) -> str:
        """Nothing happens to a log that is at rest."""
        return ""

    @property
    def pinned(self) -> int | None:
        """Where the text of an earlier boot ends that is played; None: it is the latest, or the only one."""
        if self._reel is None or self._reel.part.boot in {0, self._tape.latest}:
            return None
        return min(self._reel.part.end_offset, self.pages.until)

    def close(self) -> None:
        """Let go of the log."""
        if self._reading is not None:
            self._reading.close()
        self._tape.close()

    def _read_on(self, reading: Generator[int]) -> Snapshot | None:
        until = self._ours() + self._period_s
        for size in reading:
            self.pages.until = size
            if self._ours() >= until:
                return self._tape.sketch()
        self._reading = None
        self._load(self._tape.checked(self._begin.boot))
        if self._begin.place is not None:
            self._said = self._go(self._begin.place)
        return None

    def _is_time(self) -> bool:
        """Wait for a wish, or until the next picture is due; grant what was wished."""
        due = self._drawn_s + self._period_s if self._playing or self._goal is not None else float("inf")
        try:
            wish = self._wishes.get(timeout=min(max(due - self._ours(), 0.0), _SLICE_S))
        except queue.Empty:
            return self._ours() >= due or self.replay is None
        self._said = self._grant(wish)
        while not self._wishes.empty():
            self._said = self._grant(self._wishes.get())
        return True

    # --- the clock ----------------------------------------------------------------------------------

    def _move(self, reel: Reel) -> None:
        """Bring the state to where the clock is, or as far as it comes in a while."""
        began = self._ours()
        wanted = self._goal
        if wanted is None and self._playing:
            wanted = reel.course.moment(self._from[1] + (began - self._from[0]) * self._speed)
        if wanted is None:
            return
        there = reel.rerun.seek(wanted, lambda: self._ours() - began > _PATIENCE_S or not self._wishes.empty())
        if there and self._goal is not None:
            self._goal = None
            self._set(reel)
        elif not there and self._goal is None:
            self._set(reel)  # slower than was asked for
        if there and reel.rerun.at_s >= reel.part.end_s:
            self._playing = False

    def _set(self, reel: Reel) -> None:
        """The clock goes on from what is shown."""
        self._from = self._ours(), reel.course.place(reel.rerun.at_s)

    def _at(self, reel: Reel) -> float:
        return reel.rerun.at_s if self._goal is None else self._goal

    def _seek(self, reel: Reel, at_s: float) -> None:
        self._goal = min(max(at_s, reel.part.begin_s), reel.part.end_s)

    # --- wishes -------------------------------------------------------------------------------------

    def _grant(self, wish: Wish) -> str:
        """Do what is wished; answer in words where there is something to say."""
        reel = self._reel
        assert reel is not None  # noqa: S101 - the tape was read
        match wish:
            case PlayPause():
                return self._turn(reel)
            case Faster(steps):
                return self._change_speed(reel, steps)
            case Skip(seconds):
                self._seek(reel, self._at(reel) + seconds)
            case SkipPhase(steps):
                return self._skip_phase(reel, steps)
            case ToShare(share):
                self._seek(reel, reel.scale.moment(share))
            case ToByte(offset):
                self._playing = False
                self._seek(self._reel_of(self._tape.boot_at(offset)), self._tape.reaches(offset))
            case GoTo(text):
                try:
                    return self._go(where(text))
                except ValueError:
                    return f"{text}: no place ({FORMS})"
            case OpenBoot(boot):
                self._load(self._tape.latest if boot is None else boot)
        return ""

    def _turn(self, reel: Reel) -> str:
        self._playing = not self._playing
        if self._playing and self._at(reel) >= reel.part.end_s:
            self._seek(reel, reel.part.begin_s)
        self._set(reel)
        return ""

    def _change_speed(self, reel: Reel, steps: int) -> str:
        slower = [speed for speed in SPEEDS if speed < self._speed]
        faster = [speed for speed in SPEEDS if speed > self._speed]
        if steps > 0:
            self._speed = faster[0] if faster else self._speed
        else:
            self._speed = slower[-1] if slower else self._speed
        self._set(reel)
        return ""

    def _skip_phase(self, reel: Reel, steps: int) -> str:
        at = self._at(reel)
        if steps < 0:
            settling = _AGAIN_S * self._speed if self._playing else 0.0
            before = [turn for turn in reel.turns if turn.at_s < at - settling]
            found = before[-1] if before else Turn(reel.part.begin_s, "", "the beginning")
        else:
            after = [turn for turn in reel.turns if turn.at_s > at]
            found = after[0] if after else Turn(reel.part.end_s, "", "the end")
        self._seek(reel, found.at_s)
        return found.title

    def _go(self, place: Where) -> str:
        """Go to a place; answer in words where there is none."""
        reel = self._reel
        assert reel is not None  # noqa: S101 - the tape was read
        try:
            boot, at_s = locate(reel, place)
        except NoPlaceError as fault:
            return str(fault)
        self._seek(self._reel_of(boot), at_s)
        return ""

    # --- boots --------------------------------------------------------------------------------------

    def _reel_of(self, boot: int) -> Reel:
        assert self._reel is not None  # noqa: S101 - the tape was read
        return self._reel if boot in {0, self._reel.part.boot} else self._load(boot)

    def _load(self, boot: int) -> Reel:
        reel = self._reel = Reel(self._tape, boot, self._begin.idle_s, self._history)
        self._goal = reel.part.begin_s
        return reel

    # --- what is shown ------------------------------------------------------------------------------

    def _stands(self, reel: Reel, known: Snapshot) -> Replay:
        at, part = reel.rerun.at_s, reel.part
        clock_s = self._tape.schedule.clock(at + _ROUNDED_S)
        way = None
        if self._goal is not None:
            way = (at - part.begin_s) / max(self._goal - part.begin_s, 1e-9)
        return Replay(
            playing=self._playing,
            speed=self._speed,
            share=reel.scale.share(at),
            clock_s=clock_s,
            how=str(self._tape.schedule.when(max(reel.rerun.position - 1, 0)).how),
            spent_s=at - part.begin_s,
            total_s=part.end_s - part.begin_s,
            stages=reel.stages,
            marks=reel.marks,
            truth=reel.truth,
            came=hindsight(known, reel.truth, clock_s),
            idle_s=self._begin.idle_s,
            boots=len(reel.truth.boots),
            note=self._tape.note,
            said=self._said,
            going=way,
            demo=self._begin.demo,
        )


def print_plain(
    tape: Tape, begin: Begin, out: Callable[[str], None], *, history: History | None, paced: bool, plain: bool
) -> Iterator[str]:
    """Read a tape and print it as a plain tail would have; yields notes on it for the user.

    Args:
        tape: a log, not read yet.
        begin: how the replay begins.
        out: prints a line.
        history: of earlier boots.
        paced: wait between lines as the speed asks; else print at once.
        plain: no characters beyond ASCII.

    Raises:
        NoPlaceError: the log has no such place.
        SourceError: it cannot be read.
        UsageError: it has no such boot.
    """
    for _ in tape.read():
        pass
    if tape.note:
        yield tape.note
    reel = Reel(tape, tape.checked(begin.boot), begin.idle_s, history)
    moment = reel.part.begin_s
    if begin.place is not None:
        boot, moment = locate(reel, begin.place)
        reel = reel if boot in {0, reel.part.boot} else Reel(tape, boot, begin.idle_s, history)
    reel.rerun.seek(before(moment))
    began, first = time.monotonic(), reel.course.place(moment)

    def until(at_s: float) -> None:
        due = began + (reel.course.place(at_s) - first) / begin.speed
        time.sleep(max(due - time.monotonic(), 0.0) if paced else 0.0)

    play_plain(reel, out, until=until, plain=plain)
    tape.close()
