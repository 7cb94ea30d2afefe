"""Whether a piece of a log is later than a moment: what was known at T must not know the line after T.

Only reading a line tells its time: a bar's frame has none but its own, and that counts from its phase's begin. So
each segment is read here first, by a machine of its own, before the tracker's may see it. Kept apart from
``tracker`` because everything but ``--at`` does without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.classify import Classifier
from phasetrack.core.machine import Machine
from phasetrack.core.model import Bulk, End, Segment

if TYPE_CHECKING:
    from collections.abc import Callable

    from phasetrack.core.model import Event, PatternSet

_DAY_S = 86400.0


class Until:
    """Reads one segment ahead of a tracker."""

    def __init__(self, patterns: PatternSet, until_s: float) -> None:
        """Take the moment (log clock); less than a day is a time of day, on the day of the log's first time."""
        self._until_s = until_s
        self._classifier = Classifier(patterns)
        self._machine = Machine(patterns, self._classifier.kind_and_facts, self._classifier.reading)

    def is_past(self, item: Segment | Bulk, timed: Callable[[Event], Event]) -> bool:
        """Read the next segment; answer whether it is later than the moment."""
        run = item if isinstance(item, Bulk) else None
        segment = Segment(item.newest, item.place, End.LF) if isinstance(item, Bulk) else item
        for event in self._classifier.classify(segment):
            if run is not None:
                self._machine.bulk(run, timed(event))
            else:
                self._machine.advance(timed(event))
        newest = self._newest()
        if newest is None:
            return False
        self._until_s = on_day_of(self._until_s, newest)
        return newest > self._until_s

    def _newest(self) -> float | None:
        """The newest time of any line or frame."""
        state = self._machine.state
        times = [state.clock.newest_s, *(boot.heard_s for boot in state.live.values())]
        return max((at_s for at_s in times if at_s is not None), default=None)


def on_day_of(until_s: float, newest_s: float) -> float:
    """Put a time of day on the calendar of a log that prints dates: early in the morning is the next day's."""
    if until_s >= _DAY_S or newest_s < _DAY_S:
        return until_s
    moment = newest_s - newest_s % _DAY_S + until_s
    return moment if newest_s - moment < _DAY_S / 2 else moment + _DAY_S
