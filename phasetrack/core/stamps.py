"""The times that are met while a log is read, and which of its stamps can be used.

Kept apart from ``schedule`` because a tracker fills these in, line by line, and knows of no schedule.
"""

from __future__ import annotations

from array import array
from itertools import pairwise
from math import isfinite, nan
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core.tracks import title_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from phasetrack.core.model import Bar, Bulk, Event

# How a note's time is known; the larger, the surer.
NONE, INFERRED, STAMPED, EXACT = range(4)

# A stamp up to this far behind the newest is a late line of another process.
_SLACK_S = 60.0
# A step forward by more than this is looked at twice: do the next stamps come back?
_LEAP_S = 3600.0
# So many stamps ahead tell whether a clock was set, or one line is odd.
_AHEAD = 16


class Notes:
    """The times that were met while a log was read, in its order. Lines of the same time are kept as one note."""

    def __init__(self) -> None:
        """Know nothing."""
        self.offsets = array("q")
        self.times = array("d")  # nan: none
        self.kinds = bytearray()
        self.lines = array("q")
        self._bars: dict[tuple[str, float | None], tuple[float, float]] = {}  # -> (elapsed before, when it began)
        self._newest_s: float | None = None

    def hear(self, event: Event, at_s: float | None, *, held: bool) -> None:
        """Take one event and the time that the machine gave it; ``held``: a failing record is open."""
        bar, prefix = event.bar, event.prefix
        kind = STAMPED
        if bar is not None and prefix.stamp_s is None and prefix.outer_s is None:
            kind, at_s = INFERRED, at_s if at_s is not None else self._began_at(bar)
        if at_s is not None and isfinite(at_s):
            self._newest_s = at_s if self._newest_s is None else max(self._newest_s, at_s)
            self._add(event.place.offset, at_s, kind)
        elif not held:
            self._add(event.place.offset, nan, NONE)

    def step_over(self, run: Bulk, at_s: float | None) -> None:
        """Take a run of serving lines, of which the last one's time is known."""
        self._add(run.place.offset, nan, NONE, run.lines)
        if at_s is not None and isfinite(at_s):
            self._newest_s = at_s
            self._add(run.place.offset + run.bytes - 1, at_s, STAMPED)

    def arrive(self, offset: int, at_s: float) -> None:
        """Take when the bytes from ``offset`` on were recorded. A damaged recording's clock never turns back."""
        before = self.times[-1] if self.times else at_s
        self._add(offset, max(at_s, before) if isfinite(at_s) else before, EXACT)

    def _began_at(self, bar: Bar) -> float | None:
        """A frame's time where no phase claims the bar: it began no earlier than what stands before any frame."""
        if bar.elapsed_s is None or self._newest_s is None:
            return None
        key = title_of(bar), bar.total
        elapsed, base = self._bars.get(key, (0.0, self._newest_s - bar.elapsed_s))
        if bar.elapsed_s < elapsed - 1:
            base = self._newest_s - bar.elapsed_s  # another bar with the same words
        base = max(base, self._newest_s - bar.elapsed_s) if bar.elapsed_s == elapsed == 0 else base
        self._bars[key] = bar.elapsed_s, base
        return base + bar.elapsed_s

    def _add(self, offset: int, at_s: float, kind: int, lines: int = 1) -> None:
        if self.offsets and offset <= self.offsets[-1]:  # pieces that stand in one segment: the surest one tells
            if kind >= self.kinds[-1]:
                self.times[-1], self.kinds[-1] = at_s, kind
        elif self.offsets and kind == self.kinds[-1] and (kind == NONE or at_s == self.times[-1]):
            self.lines[-1] += lines
        else:
            self.offsets.append(offset)
            self.times.append(at_s)
            self.kinds.append(kind)
            self.lines.append(lines)


# --- stamps that can be used ------------------------------------------------------------------------


class Straight(NamedTuple):
    """Stamps on one timeline that never turns back."""

    times: list[float | None]  # None: fits nowhere
    shifts: list[float]  # of each stamp, what was added to it
    jumps: list[tuple[int, float]]  # which stamp, and by how much the clock was set back
    backwards: bool = False


def straighten(stamps: Sequence[float]) -> Straight:
    """Put stamps, in the order of the log, on a timeline that never turns back."""
    steps = [after - before for before, after in pairwise(stamps)]
    rises, falls = sum(step > 0 for step in steps), sum(step < 0 for step in steps)
    if falls > max(rises, 1):
        return Straight([None] * len(stamps), [0.0] * len(stamps), [], backwards=True)
    found = Straight([], [], [])
    shift, last, odd = 0.0, -float("inf"), -float("inf")
    for k, stamp in enumerate(stamps):
        at: float | None = stamp + shift
        behind = last - stamp - shift
        if behind > _SLACK_S and _stays_behind(stamps, k, last - shift):
            shift, at = shift + behind, last
            found.jumps.append((k, behind))
        elif behind > _SLACK_S or (-behind > _LEAP_S and isfinite(last) and _comes_back(stamps, k, odd)):
            at, odd = None, stamp
        elif behind > 0:
            at = last
        last = last if at is None else at
        found.times.append(at)
        found.shifts.append(shift)
    return found


def _stays_behind(stamps: Sequence[float], k: int, newest: float) -> bool:
    return all(stamp < newest for stamp in stamps[k + 1 : k + 1 + _AHEAD])


def _comes_back(stamps: Sequence[float], k: int, odd: float) -> bool:
    """Whether a leap forward is taken back; at the log's end, whether one like it was taken back before."""
    ahead = stamps[k + 1 : k + 1 + _AHEAD]
    again = len(ahead) < _AHEAD and abs(stamps[k] - odd) < _LEAP_S
    return again or any(stamp < stamps[k] - _LEAP_S / 2 for stamp in ahead)
