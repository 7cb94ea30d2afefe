r"""Lines of a log by offset, read on demand: a gigabyte costs no more than the page that is looked at.

Two forms. *Collapsed*: a line ends at LF and shows what a terminal would show in the end, redraws drawn over
each other. *Raw*: each redraw is a row of its own. Positions are offsets of line starts, so nothing has to be
indexed before the first page; line numbers are counted afterwards (``Numbers``).

A terminator is found, never assumed: a line of twenty megabytes without one is as legal as an empty one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from phasetrack.core.model import End, Segment
from phasetrack.core.redact import redact
from phasetrack.core.segments import LIMIT, Segmenter, clean, overwrite

if TYPE_CHECKING:
    from phasetrack.views.tui.feed import Pages

_BLOCK = 64 * 1024
_AHEAD = 64  # bytes behind a place that tell what a carriage return there means
# How far a terminator is looked for: beyond it a line is cut. Larger than any line of a bar that was ever seen.
_FAR = 64 << 20
_KEPT = 8192  # line ends and texts that are remembered

# A carriage return begins a redraw, unless it only stands before a line feed.
_REDRAW = re.compile(rb"\n|\r+(?=[^\r\n])")
_DRAWN = re.compile(rb"[\r\x00\x08]|\x1b\[\d*A")


class Lines:
    """One form of one log. The log only grows; what has ended is remembered."""

    def __init__(self, pages: Pages, *, raw: bool = False, block: int = _BLOCK) -> None:
        """Read ``pages``, ``block`` bytes at a time; ``raw`` shows each redraw."""
        self._pages = pages
        self._block = block
        self._raw = raw
        self._next: dict[int, int] = {}
        self._previous: dict[int, int] = {}
        self._texts: dict[int, str] = {}

    def start(self, offset: int) -> int:
        """Where the line begins that holds a byte; a terminator belongs to the line that it ends."""
        first = self._pages.begin()
        offset = min(max(offset, first), self._pages.size())
        low = max(offset - _FAR, first)
        stop = offset
        while stop > low:
            begin = max(stop - self._block, low)
            ahead = self._pages.read(begin, stop - begin + _AHEAD)
            at = ahead.rfind(b"\n", 0, stop - begin) + 1
            if self._raw:
                at = max(at, _last_redraw(ahead, offset - begin if stop == offset else stop - begin - 1, at))
            if at > 0:
                return begin + at
            stop = begin
        return low

    def after(self, start: int) -> int | None:
        """Where the next line begins; None for the last one."""
        known = self._next.get(start)
        if known is None:
            known = self._find(start)
            if known is None:
                return None
            if len(self._next) > _KEPT:
                self._next.clear()
                self._previous.clear()
            self._next[start] = known
            self._previous[known] = start
        return known if known < self._pages.size() else None

    def _find(self, start: int) -> int | None:
        position, begun = start, not self._raw
        while position - start < _FAR:
            block = self._pages.read(position, self._block)
            if not block:
                return None
            whole = len(block)
            if self._raw:
                # What a run of carriage returns at the end means is seen with the next block.
                block = block.rstrip(b"\r") if len(block) == self._block else block
                block = block or b"\r" * whole
            skip = 0 if begun else len(block) - len(block.lstrip(b"\r"))
            begun = begun or skip < len(block)
            at = self._stop_in(block, skip)
            if at is not None:
                return position + at
            position += len(block)
        return position

    def _stop_in(self, block: bytes, skip: int) -> int | None:
        """Where the next line begins, within a block."""
        if not self._raw:
            at = block.find(b"\n")
            return None if at < 0 else at + 1
        found = _REDRAW.search(block, skip)
        if found is None:
            return None
        return found.end() if found[0] == b"\n" else found.start()

    def before(self, start: int) -> int | None:
        """Where the line before begins; None for the first one."""
        if start <= self._pages.begin():
            return None
        known = self._previous.get(start)
        return self.start(start - 1) if known is None else known

    def last(self) -> int:
        """Where the last line begins."""
        size = self._pages.size()
        return self.start(max(size - 1, 0))

    def text(self, start: int) -> str:
        """A line as it is shown, secrets masked; of an over-long one its end, which a terminal shows last."""
        known = self._texts.get(start)
        if known is not None:
            return known
        end = self.after(start)
        stop = self._pages.size() if end is None else end
        text = redact(self._shown(start, stop))
        if end is not None:
            if len(self._texts) > _KEPT:
                self._texts.clear()
            self._texts[start] = text
        return text

    def _shown(self, start: int, stop: int) -> str:
        if self._raw:
            return clean(self._pages.read(start, min(stop - start, LIMIT)))
        begin = max(start, stop - LIMIT)
        data = self._pages.read(begin, stop - begin)
        if begin > start and (cut := data.find(b"\r")) >= 0:
            data = data[cut + 1 :]
        return collapse(data)


def _last_redraw(block: bytes, limit: int, least: int) -> int:
    """Where the last redraw begins at or before ``limit``; ``least`` where there is none behind it."""
    while limit >= least:
        last = block.rfind(b"\r", least, limit + 1)
        if last < 0:
            return least
        begin = len(block[:last].rstrip(b"\r"))
        behind = block[last:].lstrip(b"\r")[:1]
        if begin > least and behind not in {b"", b"\n"} and block[begin - 1 : begin] != b"\n":
            return begin
        limit = begin - 1
    return least


def collapse(line: bytes) -> str:
    """What a terminal shows in the end of one line with all its redraws."""
    line = line.rstrip(b"\r\n")
    if _DRAWN.search(line) is None:
        return clean(line)
    frames: list[str] = []
    goes_on = False
    for segment in Segmenter().feed(line + b"\n"):
        assert isinstance(segment, Segment)  # noqa: S101 - nothing is swallowed here
        if goes_on:
            frames[-1] += segment.text
        else:
            frames.append(segment.text)
        goes_on = segment.end is End.CUT
    return overwrite(frames)


def tail(pages: Pages, rows: int) -> tuple[str, ...]:
    """The last lines as a terminal would show them, the newest last; empty ones are left out."""
    lines = Lines(pages)
    found: list[str] = []
    at: int | None = lines.last()
    tried = 0
    while at is not None and len(found) < rows and tried < 4 * rows:
        if text := lines.text(at):
            found.append(text)
        at = lines.before(at)
        tried += 1
    return tuple(reversed(found))


class Numbers:
    """Line numbers by offset, counted in blocks as they are asked for."""

    BLOCK = 1 << 20
    # Blocks that may be counted while a key waits for its picture.
    _AT_ONCE = 16

    def __init__(self, pages: Pages) -> None:
        """Count the line feeds of ``pages``."""
        self._pages = pages
        self._before = [0]  # line feeds before each whole block

    def of(self, offset: int) -> int | None:
        """The number of the line at an offset, from 1; None until ``count_on`` has come so far."""
        block = offset // self.BLOCK
        if block - len(self._before) >= self._AT_ONCE:
            return None
        while len(self._before) <= block:
            if not self._count_block():
                return None
        part = self._pages.read(block * self.BLOCK, offset - block * self.BLOCK)
        return self._before[block] + part.count(b"\n") + 1

    def count_on(self) -> bool:
        """Count one more whole block; False where there is none. For a thread in the background."""
        return self._count_block()

    def _count_block(self) -> bool:
        number = len(self._before) - 1
        data = self._pages.read(number * self.BLOCK, self.BLOCK)
        if len(data) < self.BLOCK:
            return False
        counted = self._before[number] + data.count(b"\n")
        if len(self._before) == number + 1:  # the other thread may have been here
            self._before.append(counted)
        return True
