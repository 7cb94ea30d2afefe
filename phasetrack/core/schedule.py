"""A log on a clock: when each of its bytes was written, as far as the log itself tells.

1. A stamp counts as printed. Stamps have whole seconds, so lines of one second come together.
2. Inside a bar its own elapsed field counts, from where the bar began (*inferred*), between the stamps around it.
3. Text without any time is *spread* evenly over the bytes between its neighbours. The lines of a failing record
   come with its first one: they were one message.
4. Time never turns back. Where a clock was set back, or another log was pasted behind, the schedule goes on where
   it was. A stamp that fits neither what was before nor what follows (a server with another clock, a damaged
   line) counts as none.
5. Where most stamps run backwards the log stands newest first, and no time in it says when a line was written:
   all is spread. Where there is no stamp at all the whole is spread over a length that says nothing.
6. A recording knows when each piece came (*exact*).

Times are seconds on the log's own clock, or on the recorder's; they only ever grow along the bytes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil, isfinite, isnan
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core.stamps import EXACT, INFERRED, STAMPED, Notes, straighten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# Without any time: a length to play, by the bytes, within bounds.
_BYTES_PER_S = 2048
_NOMINAL_S = (10.0, 600.0)
# What is spread is cut at lines into pieces no shorter than this, and into no more than so many over the whole log.
_PIECE_S = 0.25
_PIECES = 65536
# Bytes of one time that are given at once; a line's end is looked for no further than this.
_PIECE_BYTES = 1 << 20
_SHORT_BYTES, _LINE_BYTES = 512, 64 * 1024


class How(StrEnum):
    """How a time is known."""

    EXACT = "exact"  # a recording kept it
    STAMPED = "stamped"
    INFERRED = "inferred"  # from a bar's own elapsed field
    SPREAD = "spread"  # evenly between its neighbours


_HOWS = {INFERRED: How.INFERRED, STAMPED: How.STAMPED, EXACT: How.EXACT}


class Piece(NamedTuple):
    """Bytes that fall due together."""

    end: int  # offset behind its last byte
    due_s: float


class Due(NamedTuple):
    """When a byte was written, and how that is known."""

    at_s: float
    how: How


class Jump(NamedTuple):
    """A place where the log's clock goes back and stays there."""

    offset: int
    back_s: float


# --- the schedule -----------------------------------------------------------------------------------


@dataclass(slots=True)
class Schedule:
    """When each byte of a log was written. Read only, once it is laid."""

    size: int = 0
    begin_s: float = 0.0
    end_s: float = 0.0
    timeless: bool = False  # no time in the log says when anything was written
    backwards: bool = False  # it stands newest first
    jumps: tuple[Jump, ...] = ()
    odd: int = 0  # stamps that fit nowhere
    # stretches of bytes: where each begins, from when to when it was written, how that is known, its lines
    begins: array[int] = field(default_factory=lambda: array("q"))
    froms: array[float] = field(default_factory=lambda: array("d"))
    tos: array[float] = field(default_factory=lambda: array("d"))
    hows: list[How] = field(default_factory=list)
    lines: array[int] = field(default_factory=lambda: array("q"))
    # what the log's own clock said where
    told_at: array[int] = field(default_factory=lambda: array("q"))
    told_s: array[float] = field(default_factory=lambda: array("d"))

    def when(self, offset: int) -> Due:
        """When a byte was written, and how that is known."""
        k = bisect_right(self.begins, offset) - 1
        if k < 0:
            return Due(self.begin_s, How.SPREAD)
        begin, end = self._bounds(k)
        share = min(max((offset - begin) / max(end - begin, 1), 0.0), 1.0)
        return Due(self.froms[k] + share * (self.tos[k] - self.froms[k]), self.hows[k])

    def written(self, at_s: float) -> int:
        """How many bytes were written by a moment."""
        k = bisect_right(self.froms, at_s) - 1
        if k < 0:
            return 0
        begin, end = self._bounds(k)
        if at_s >= self.tos[k]:
            return end
        return begin + int((end - begin) * (at_s - self.froms[k]) / (self.tos[k] - self.froms[k]))

    def reaches(self, offset: int, read: Callable[[int, int], bytes]) -> float:
        """The moment from which on a byte is there: its piece falls due as a whole."""
        k = max(bisect_right(self.begins, offset) - 1, 0)
        begin = self.begins[k] if self.begins else 0
        return next((piece.due_s for piece in self.pieces(begin, read) if piece.end > offset), self.end_s)

    def clock(self, at_s: float) -> float | None:
        """What the log's own clock showed then; None where the log has none that can be used."""
        if not self.told_s or self.timeless:
            return None
        k = bisect_right(self.told_at, at_s, key=self._when_told) - 1
        if k < 0:
            return self.told_s[0] + at_s - self._when_told(self.told_at[0])
        return self.told_s[k] + at_s - self._when_told(self.told_at[k])

    def find(self, clock_s: float, begin_s: float, end_s: float) -> float | None:
        """When the log's own clock came to show a time, between two moments; None where it did not.

        Args:
            clock_s: the time; less than a day is a time of day.
            begin_s: the earliest moment.
            end_s: the latest.
        """
        first, last = self.clock(begin_s), self.clock(end_s)
        if first is None or last is None:
            return None
        if clock_s < _DAY_S <= first:
            clock_s += first - first % _DAY_S
            clock_s += _DAY_S if clock_s < first and clock_s + _DAY_S <= last else 0.0
        low = bisect_left(self.told_at, begin_s, key=self._when_told)
        high = bisect_right(self.told_at, end_s, key=self._when_told)
        k = next((k for k in range(low, high) if self.told_s[k] >= clock_s), None)
        if k is None:
            return begin_s if clock_s <= first else end_s if clock_s <= last else None
        known_s, since = (self.told_s[k - 1], self._when_told(self.told_at[k - 1])) if k > low else (first, begin_s)
        return min(since + max(clock_s - known_s, 0.0), self._when_told(self.told_at[k]))

    def _when_told(self, offset: int) -> float:
        return self.when(offset).at_s

    def pieces(self, position: int, read: Callable[[int, int], bytes]) -> Iterator[Piece]:
        """What falls due from a byte on, in order; the same pieces wherever one begins.

        Args:
            position: the end of a piece, or the beginning.
            read: the log's bytes: offset, count.
        """
        k = max(bisect_right(self.begins, position) - 1, 0)
        while position < self.size:
            begin, end = self._bounds(k)
            if self.tos[k] > self.froms[k]:
                yield from self._cut(k, position, read)
                position, k = end, k + 1
                continue
            due = self.froms[k]
            while k + 1 < len(self.begins) and self.tos[k + 1] == due and end - begin < _PIECE_BYTES:
                k += 1
                end = self._bounds(k)[1]
            while position < end:
                position = min(position + _PIECE_BYTES, end)
                yield Piece(position, due)
            k += 1

    def _cut(self, k: int, position: int, read: Callable[[int, int], bytes]) -> Iterator[Piece]:
        """The pieces of a stretch that is spread: cut behind lines, each cut found by itself."""
        begin, end = self._bounds(k)
        parts = self.parts(k)
        for part in range(1, parts + 1):
            at = end if part == parts else self._line_end(begin + part * (end - begin) // parts, end, read)
            if at > position:
                position = at
                yield Piece(at, self.when(at).at_s if at < end else self.tos[k])

    def _line_end(self, offset: int, end: int, read: Callable[[int, int], bytes]) -> int:
        for most in (_SHORT_BYTES, _LINE_BYTES):
            found = read(offset, min(most, end - offset)).find(b"\n")
            if found >= 0:
                return offset + found + 1
        return end

    def parts(self, k: int) -> int:
        """Into how many pieces a stretch is cut."""
        begin, end = self._bounds(k)
        least = max(self.size / _PIECES, 1.0)
        by_time = ceil((self.tos[k] - self.froms[k]) / _PIECE_S)
        return max(min(self.lines[k], by_time, ceil((end - begin) / least)), 1)

    def _bounds(self, k: int) -> tuple[int, int]:
        return self.begins[k], self.begins[k + 1] if k + 1 < len(self.begins) else self.size

    def shares(self) -> dict[How, float]:
        """Which share of the bytes is timed how."""
        found = dict.fromkeys(How, 0.0)
        for k, how in enumerate(self.hows):
            begin, end = self._bounds(k)
            found[how] += (end - begin) / max(self.size, 1)
        return found

    def add(self, begin: int, from_s: float, to_s: float, how: How, lines: int) -> None:
        """Go on with a stretch; one that only continues the last is joined with it."""
        if self.begins and from_s == to_s == self.tos[-1] == self.froms[-1] and how is self.hows[-1]:
            self.lines[-1] += lines
            return
        if self.begins and self.begins[-1] == begin:
            return
        self.begins.append(begin)
        self.froms.append(from_s)
        self.tos.append(to_s)
        self.hows.append(how)
        self.lines.append(lines)


_DAY_S = 86400.0


def lay(heard: Notes, size: int, *, arrived: Notes | None = None, began_s: float | None = None) -> Schedule:
    """Lay the schedule of a log.

    Args:
        heard: what reading it told.
        size: bytes of the log.
        arrived: of a recording, when its pieces came.
        began_s: of a recording, when it began.
    """
    which = [k for k, kind in enumerate(heard.kinds) if kind == STAMPED]
    straight = straighten([heard.times[k] for k in which])
    found = Schedule(size, backwards=straight.backwards, odd=sum(at is None for at in straight.times))
    found.jumps = tuple(Jump(heard.offsets[which[k]], back_s) for k, back_s in straight.jumps)
    if arrived is not None and arrived.offsets:
        _lay_arrivals(found, arrived)
    else:
        _lay_stamps(found, heard, dict(zip(which, zip(straight.times, straight.shifts, strict=True), strict=True)))
    if not found.begins:
        _lay_evenly(found, heard)
    if found.begins:
        found.begins[0] = 0
    found.begin_s = found.froms[0] if found.froms else 0.0
    found.begin_s = min(found.begin_s, began_s) if began_s is not None and isfinite(began_s) else found.begin_s
    found.end_s = max(found.tos[-1] if found.tos else found.begin_s, found.begin_s)
    for k, at in zip(which, straight.times, strict=True):
        if at is not None:
            found.told_at.append(heard.offsets[k])
            found.told_s.append(heard.times[k])
    return found


def _lay_arrivals(found: Schedule, arrived: Notes) -> None:
    for offset, at_s, lines in zip(arrived.offsets, arrived.times, arrived.lines, strict=True):
        found.add(offset, at_s, at_s, How.EXACT, lines)


def _lay_stamps(found: Schedule, heard: Notes, stamps: dict[int, tuple[float | None, float]]) -> None:
    """Stamps where they stand, bars between them, the rest spread over what is left."""
    if found.backwards:
        return
    values = _bars_between([_value(heard, k, stamps) for k in range(len(heard.offsets))], heard)
    last: float | None = None
    waiting: tuple[int, int] | None = None  # untimed text: where it begins, and its lines
    for k, value in enumerate(values):
        if value is None:
            begin, lines = waiting or (heard.offsets[k], 0)
            waiting = begin, lines + heard.lines[k]
            continue
        if waiting is not None:
            found.add(waiting[0], value if last is None else last, value, How.SPREAD, waiting[1])
        found.add(heard.offsets[k], value, value, _HOWS[heard.kinds[k]], heard.lines[k])
        last, waiting = value, None
    if waiting is not None and last is not None:
        found.add(waiting[0], last, last, How.SPREAD, waiting[1])


def _value(heard: Notes, k: int, stamps: dict[int, tuple[float | None, float]]) -> float | None:
    if heard.kinds[k] == STAMPED:
        return stamps[k][0]
    return None if isnan(heard.times[k]) else heard.times[k]


def _bars_between(values: list[float | None], heard: Notes) -> list[float | None]:
    """Hold what bars tell between the stamps around them; where a clock was set back, on their stamp's side."""
    following: list[float] = []
    after = float("inf")
    for k in range(len(values) - 1, -1, -1):
        value = values[k]
        after = value if heard.kinds[k] == STAMPED and value is not None else after
        following.append(after)
    shift, last = 0.0, -float("inf")
    for k, (value, after) in enumerate(zip(values, reversed(following), strict=True)):
        if value is None:
            continue
        if heard.kinds[k] == STAMPED:
            shift, last = value - heard.times[k], value
        else:
            last = values[k] = min(max(value + shift, last), after)
    return values


def _lay_evenly(found: Schedule, heard: Notes) -> None:
    """No time can be used: even spacing by bytes."""
    found.timeless = True
    if not found.size:
        return
    stamps = [at_s for at_s in heard.times if not isnan(at_s)]
    low, high = (min(stamps), max(stamps)) if stamps else (0.0, 0.0)
    if high <= low:
        high = low + min(max(found.size / _BYTES_PER_S, _NOMINAL_S[0]), _NOMINAL_S[1])
    found.add(0, low, high, How.SPREAD, sum(heard.lines))
