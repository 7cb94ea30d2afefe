"""What is said of a log that was read from its last line up, in the lines and offsets of the file as it is.

The tracker counts what it is fed. So its answers are turned at the very end, by the names of their fields: everything
before may go on comparing places, and a replay, which shows the lines in the order of time, keeps them as counted.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from phasetrack.core.fixed import Fixed
from phasetrack.core.model import Chunk, Place, Record, Snapshot, Warned
from phasetrack.core.tracker import Tracker

if TYPE_CHECKING:
    from phasetrack.core.model import Input, Turned

NEWEST_FIRST = Warned("log.newest_first", "newest line first: read from the last line up, lines as in the file", None)


class Mirror:
    """Where the lines that were read stand in the file."""

    def __init__(self, turned: Turned) -> None:
        """Know nothing but the size of the file."""
        self._turned = turned
        self._begins = array("q", [0])  # of each line as read, and of the next one

    def take(self, data: bytes) -> None:
        """Note the lines that are read."""
        begin, at = self._begins[-1], 0
        while at := data.find(b"\n", at) + 1:
            self._begins.append(begin + at)

    def of(self, value: Any) -> Any:
        """A value with every place in it turned."""
        if isinstance(value, Place):
            return Place(self._line(value.line), value.frame, self._offset(value.offset))
        if isinstance(value, Fixed):
            parts = {name: getattr(value, name) for name in value.__slots__}
            changed = {name: new for name, old in parts.items() if (new := self._named(name, old)) is not old}
            return replace(value, **changed) if changed else value  # type: ignore[type-var]  # made by ``fixed``
        if isinstance(value, tuple) and type(value) is tuple:
            return tuple(map(self.of, value))
        return value

    def _named(self, name: str, value: Any) -> Any:
        if name == "data":
            return {key: self._named(key, part) for key, part in value.items()} if value else value
        if value is not None and (name == "line" or name.endswith("_line")):
            return self._line(value)
        if value is not None and (name == "offset" or name.endswith("_offset")):
            return self._offset(value)
        return self.of(value)

    def _line(self, line: int | None) -> int | None:
        return None if line is None else self._turned.lines + 1 - line

    def _offset(self, offset: int) -> int:
        k = min(bisect_right(self._begins, offset), len(self._begins) - 1)
        return self._turned.bytes - self._begins[k] + offset - self._begins[k - 1] if k else 0


class Reader(Tracker):
    """A tracker of a saved log, which may stand newest line first."""

    _mirror: Mirror | None = None

    def feed(self, item: Input) -> list[Record]:
        """Take one input, as the tracker does; places are those of the file."""
        if isinstance(item, Chunk) and item.turned is not None:
            self._mirror = self._mirror or Mirror(item.turned)
            self._mirror.take(item.data)
        records = super().feed(item)
        return records if self._mirror is None else [self._mirror.of(record) for record in records]

    def snapshot(self, now_s: float | None = None) -> Snapshot:
        """Tell all that is known, and that the log stands newest line first."""
        known = super().snapshot(now_s)
        if self._mirror is None:
            return known
        turned: Snapshot = self._mirror.of(known)
        return replace(turned, warnings=(*turned.warnings, NEWEST_FIRST))
