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
# How far a terminator is looked for: beyond it a line is cut. Larger than any line of a bar that was ever seen.
_FAR = 64 << 20
_KEPT = 8192  # line ends and texts that are remembered

_STOP = re.compile(rb"[\r\n]")
_RUN = re.compile(rb"\r*\n\r*|\r+")
_DRAWN = re.compile(rb"[\r\x00\x08]|\x1b\[\d*A")


class Lines:
    """One form of one log. The log only grows; what has ended is remembered."""

    def __init__(self, pages: Pages, *, raw: bool = False) -> None:
        """Read ``pages``; ``raw`` shows each redraw."""
        self._pages = pages
        self._raw = raw
        self._next: dict[int, int] = {}
        self._previous: dict[int, int] = {}
        self._texts: dict[int, str] = {}

    def start(self, offset: int) -> int:
        """Where the line begins that holds a byte; a terminator belongs to the line that it ends."""
        first = self._pages.begin()
        offset = min(max(offset, first), self._pages.size())
        if self._raw:
            offset = self._out_of_run(offset)
        low = max(offset - _FAR, first)
        stop = offset
        while stop > low:
            begin = max(stop - _BLOCK, low)
            block = self._pages.read(begin, stop - begin)
            at = max(block.rfind(b"\n"), block.rfind(b"\r") if self._raw else -1)
            if at >= 0:
                return begin + at + 1
            stop = begin
        return low

    def _out_of_run(self, offset: int) -> int:
        """The first byte of the run of carriage returns and a line feed that an offset stands in."""
        while offset > 0:
            pair = self._pages.read(offset - 1, 2)
            inside = len(pair) == 2 and (pair[1:] == b"\r" or pair == b"\r\n") and pair[:1] in {b"\r", b"\n"}
            if not inside:
                break
            offset -= 1
        return offset

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
        position = start
        while position - start < _FAR:
            block = self._pages.read(position, _BLOCK)
            if not block:
                return None
            at = self._stop_in(block)
            if at >= 0:
                return self._end_of_run(position + at)
            position += len(block)
        return position

    def _stop_in(self, block: bytes) -> int:
        if not self._raw:
            return block.find(b"\n")
        found = _STOP.search(block)
        return -1 if found is None else found.start()

    def _end_of_run(self, at: int) -> int:
        if not self._raw:
            return at + 1
        found = _RUN.match(self._pages.read(at, 64))
        return at + (1 if found is None else found.end())

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
