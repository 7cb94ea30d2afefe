"""Stamps to one timeline per log: the log's own wall clock.

* An engine's stamp is taken as printed. One without a date counts days from the first, and turns to the next
  day where the clock goes back by more than half a day; in a log that prints dates it is another writer's, and
  counts for the day nearest to the newest time.
* A transport's stamp (docker, kubectl, journald) may be in another time zone. The difference to the engine's
  clock is learned from lines that carry both, rounded to a quarter of an hour; until then it counts as none.
* PyTorch's native code stamps its lines itself, in the process's own time zone. Such a stamp counts where it lies
  just after the time that is known.
* A library's stamp counts only where it lies just after the newest time known: a router's or client's lines
  in the same file may be hours away.
"""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

from phasetrack.core.model import Zone

if TYPE_CHECKING:
    from phasetrack.core.model import Prefix

_DAY_S = 86400.0
_HALF_DAY_S = _DAY_S / 2
_QUARTER_S = 900.0
_NEAR_S = 3600.0
# [E207 01:29:36.730311765 ProcessGroupNCCL.cpp:616]: month without a zero, day
_NATIVE = re.compile(r"\[[IWEF](1?\d)(\d\d) (\d\d):(\d\d):(\d\d)(\.\d{1,9})? \w+\.cpp:\d+\]")
# A collective call that hangs is given up after half an hour, seldom after two. Stamps of whole seconds are behind.
_NATIVE_AFTER_S = 7200.0
_NATIVE_BEFORE_S = 2.0
_EPOCH = date(1970, 1, 1).toordinal()
_FIRST_DATE_S = 10 * 365 * _DAY_S


class Clock:
    """Turns prefixes into points in time; remembers what it learned of the log's clocks."""

    __slots__ = ("_day_s", "_difference_s", "_last_time_of_day_s", "engine_seen", "newest_s", "offset_s", "undated")

    def __init__(self) -> None:
        """Know nothing."""
        self.newest_s: float | None = None
        self.engine_seen = False
        self.undated = False
        self.offset_s: int | None = None  # printed by the transport, where no engine stamp stands beside it
        self._day_s = 0.0
        self._last_time_of_day_s: float | None = None
        self._difference_s: float | None = None

    @property
    def zone(self) -> Zone:
        """How to print this log's times."""
        return Zone(dated=not self.undated, offset_s=None if self.engine_seen else self.offset_s)

    def at(self, prefix: Prefix, *, known: bool) -> float | None:
        """Place a prefix on the timeline, or answer None where it has no time.

        Args:
            prefix: what stood before the message.
            known: whether a rule of the engine claims the message.
        """
        if prefix.foreign:
            return None
        moment = self._engine(prefix, known=known) if prefix.stamp_s is not None else self._transport(prefix)
        if moment is not None and (self.newest_s is None or moment > self.newest_s):
            self.newest_s = moment
        return moment

    def _engine(self, prefix: Prefix, *, known: bool) -> float | None:
        stamp = prefix.stamp_s
        if stamp is None or (prefix.library and not known and not self._is_near(stamp)):
            return None
        if not prefix.dated:
            stamp = self._nearest(stamp) if self.engine_seen and not self.undated else self._undated(stamp)
        elif prefix.outer_s is not None and prefix.outer_dated:
            self._difference_s = round((stamp - prefix.outer_s) / _QUARTER_S) * _QUARTER_S
        self.engine_seen = True
        return stamp

    def _nearest(self, stamp: float) -> float:
        newest = self.newest_s or 0.0
        return stamp + round((newest - stamp) / _DAY_S) * _DAY_S

    def _undated(self, stamp: float) -> float:
        self.undated = True
        if self._last_time_of_day_s is not None and self._last_time_of_day_s - stamp > _HALF_DAY_S:
            self._day_s += _DAY_S
        elif self._last_time_of_day_s is not None and stamp - self._last_time_of_day_s > _HALF_DAY_S and self._day_s:
            return self._day_s - _DAY_S + stamp  # a line of yesterday, late
        self._last_time_of_day_s = stamp
        return self._day_s + stamp

    def _transport(self, prefix: Prefix) -> float | None:
        if prefix.outer_s is None or prefix.outer_dated == self.undated:
            return None
        if prefix.outer_offset_s is not None:
            self.offset_s = prefix.outer_offset_s
        if not prefix.outer_dated:
            return None
        return prefix.outer_s + (self._difference_s or 0.0)

    def _is_near(self, stamp: float) -> bool:
        return self.newest_s is not None and 0 <= stamp - self.newest_s <= _NEAR_S


def native_s(text: str, heard_s: float) -> float | None:
    """When PyTorch's native code wrote a line (log clock); None without a stamp that is to be trusted.

    Args:
        text: the line.
        heard_s: the newest time that is known.
    """
    found = _NATIVE.match(text)
    if found is None:
        return None
    month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5))
    clock_s = hour * 3600 + minute * 60 + second + float(found[6] or 0)
    if heard_s < _FIRST_DATE_S:  # a log without dates counts days from its first
        clock_s += round((heard_s - clock_s) / _DAY_S) * _DAY_S
    else:
        today = date.fromordinal(int(heard_s // _DAY_S) + _EPOCH)
        try:
            day_of = date(today.year + (today.month > month), month, day)  # in January, the next year's
        except ValueError:
            return None
        clock_s += (day_of.toordinal() - _EPOCH) * _DAY_S
    return clock_s if -_NATIVE_BEFORE_S <= clock_s - heard_s <= _NATIVE_AFTER_S else None
