"""How a schedule is played and drawn: idle stretches shortened, and what is long and dull given less room.

Both are lines that never fall, through a few points: a moment of the schedule on one side, a second of playing or
a share of the scrubber's width on the other.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from phasetrack.core.schedule import Schedule

# Serving gets no more of the scrubber than this: a start of two minutes must not vanish beside a week of it.
_SERVING_SHARE = 0.1


class Course:
    """Moments to places along a way, and back."""

    __slots__ = ("_moments", "_places")

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        """Take (moment, place) pairs; neither ever falls."""
        self._moments = [moment for moment, _ in points]
        self._places = [place for _, place in points]

    @property
    def length(self) -> float:
        """Of the way."""
        return self._places[-1] - self._places[0]

    def place(self, moment: float) -> float:
        """Where a moment lies; before the first and behind the last point, that point."""
        return _on(self._moments, self._places, moment)

    def moment(self, place: float) -> float:
        """The moment at a place."""
        return _on(self._places, self._moments, place)


def _on(have: Sequence[float], want: Sequence[float], value: float) -> float:
    if value <= have[0]:
        return want[0]
    if value >= have[-1]:
        return want[-1]
    k = bisect_right(have, value) - 1
    span = have[k + 1] - have[k]
    return want[k] if span <= 0 else want[k] + (value - have[k]) / span * (want[k + 1] - want[k])


def playing(schedule: Schedule, begin_s: float, end_s: float, idle_s: float | None) -> Course:
    """Seconds of playing for each moment between two; a silence longer than ``idle_s`` passes in that time."""
    points, played, at = [(begin_s, 0.0)], 0.0, begin_s
    for low, high, short in _idle(schedule, begin_s, end_s, idle_s) if idle_s is not None else ():
        points.append((low, played + low - at))
        played += low - at + short
        points.append((high, played))
        at = high
    return Course([*points, (end_s, played + end_s - at)])


def _idle(schedule: Schedule, begin_s: float, end_s: float, idle_s: float) -> Iterator[tuple[float, float, float]]:
    """Stretches between outputs that are too long: from, to, and how long they may take."""
    last = begin_s
    first = max(bisect_right(schedule.tos, begin_s) - 1, 0)
    for k in range(first, len(schedule.begins)):
        low, high, parts = max(schedule.froms[k], begin_s), min(schedule.tos[k], end_s), schedule.parts(k)
        if low - last > idle_s:
            yield last, min(low, end_s), idle_s
        if high - low > idle_s * parts:
            yield max(low, last), high, idle_s * parts
        last = max(last, high)
        if schedule.froms[k] >= end_s:
            break
    if end_s - last > idle_s:
        yield last, end_s, idle_s


class Scale:
    """Shares of a scrubber's width, 0 to 1: by playing time, but little room for what follows the start."""

    __slots__ = ("_course", "_shares")

    def __init__(self, course: Course, begin_s: float, settled_s: float, end_s: float) -> None:
        """Take the playing time.

        Args:
            course: seconds of playing.
            begin_s: the first moment.
            settled_s: when the start had come to its end.
            end_s: the last moment.
        """
        self._course = course
        begin, settled, end = (course.place(moment) for moment in (begin_s, settled_s, end_s))
        end = max(end, begin + 1e-9)
        rest = min((end - settled) / (end - begin), _SERVING_SHARE) if settled > begin else 1.0
        self._shares = Course([(begin, 0.0), (settled, 1.0 - rest), (end, 1.0)])

    def share(self, moment: float) -> float:
        """Where a moment lies."""
        return self._shares.place(self._course.place(moment))

    def moment(self, share: float) -> float:
        """The moment at a share."""
        return self._course.moment(self._shares.moment(share))
