r"""Lines of a log by offset, read on demand: a gigabyte costs no more than the page that is looked at.

Two forms. *Collapsed*: a line ends at LF and shows what a terminal would show in the end, redraws drawn over
each other. *Raw*: each redraw is a row of its own. Positions are offsets of line starts, so nothing has to be
indexed before the first page; line numbers are counted afterwards (``Numbers``).

A terminator is found, never assumed: a line of twenty megabytes without one is as legal as an empty one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from phasetrack.core.secret_lines import SecretLines
from phasetrack.core.segments import LIMIT, clean

if TYPE_CHECKING:
    from phasetrack.views.tui.feed import Pages

_BLOCK = 64 * 1024
_LARGE = 1 << 20  # and while nothing is found
_AHEAD = 64  # bytes behind a place that tell what a carriage return there means
# How far a terminator is looked for: beyond it a line is cut. Larger than any line of a bar that was ever seen.
_FAR = 64 << 20
# So far above a line a secret may have begun that goes on in it: a private key, anything else.
_ABOVE, _NEAR = 8192, 400
_KEPT = 8192  # line ends and texts that are remembered

# A carriage return begins a redraw, unless it only stands before a line feed.
_REDRAW = re.compile(rb"\n|\r+(?=[^\r\n])")
_BREAKS = re.compile(rb"[\r\n]+")
_FRAMES = re.compile(rb"\r+|\x1b\[\d*A")
_DRAWN = re.compile(rb"[\r\x00\x08]|\x1b\[\d*A")


class Lines:
    """One form of one log. The log only grows; what has ended is remembered."""

    def __init__(self, pages: Pages, *, raw: bool = False, block: int = _BLOCK) -> None:
        """Read ``pages``, ``block`` bytes at a time; ``raw`` shows each redraw."""
        self._pages = pages
        self._block = block
        self._raw = raw
        self._next: dict[int, int] = {}
        self._open: tuple[int, int] = (-1, 0)  # the start of a line without an end, and up to where it has none
        self._last: tuple[int, int] = (0, -1)  # up to where the last line was looked for, and its start
        self._previous: dict[int, int] = {}
        self._texts: dict[int, str] = {}

    def start(self, offset: int) -> int:
        """Where the line begins that holds a byte; a terminator belongs to the line that it ends."""
        first = self._pages.begin()
        offset = min(max(offset, first), self._pages.size())
        low = max(offset - _FAR, first)
        stop = offset
        block = self._block
        while stop > low:
            begin, block = max(stop - block, low), min(2 * block, _LARGE)
            back = max(begin - 1, low)  # a redraw is known by the byte before it
            ahead = self._pages.read(back, stop - back + _AHEAD)
            at = ahead.rfind(b"\n", 0, stop - back) + 1
            if self._raw:
                at = _last_redraw(ahead, stop - back - (stop != offset), at)
            if at > 0:
                return back + at
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
        if start == self._open[0] and not self._raw:
            position = self._open[1]
        size = self._block
        while position - start < _FAR:
            block = self._pages.read(position, size)
            if not block:
                self._open = (start, position)
                return None
            whole = len(block)
            if self._raw:
                # What a run of carriage returns at the end means is seen with the next block.
                block = (block.rstrip(b"\r") if whole == size else block) or block
            skip = 0 if begun else len(block) - len(block.lstrip(b"\r"))
            begun = begun or skip < len(block)
            at = self._stop_in(block, skip)
            if at is not None:
                return position + at
            position, size = position + len(block), min(2 * size, _LARGE)
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
        """Where the last line begins. What has been looked at is not looked at again: it may be long."""
        size = self._pages.size()
        seen, start = self._last
        if start < self._pages.begin() or size < seen or self._raw or not self._is_one_line(seen, size):
            start = self.start(max(size - 1, 0))
        self._last = (size, start)
        return start

    def _is_one_line(self, seen: int, size: int) -> bool:
        """Whether no line has begun between two sizes of the log."""
        if size - seen > _BLOCK:
            return False
        return b"\n" not in self._pages.read(max(seen - 1, 0), size - max(seen, 1))

    def text(self, start: int) -> str:
        """A line as it is shown, secrets masked; of an over-long one its end, which a terminal shows last."""
        known = self._texts.get(start)
        if known is not None:
            return known
        end = self.after(start)
        stop = self._pages.size() if end is None else end
        text = self._redacted(start, self._shown(start, stop))
        if end is not None:
            if len(self._texts) > _KEPT:
                self._texts.clear()
            self._texts[start] = text
        return text

    def _redacted(self, start: int, text: str) -> str:
        """A line without its secrets, of which one may have begun in a line above."""
        secrets = SecretLines()
        above = self._pages.read(begin := max(start - _ABOVE, self._pages.begin()), start - begin)
        key = above.rfind(b"-----BEGIN ")
        for line in _BREAKS.split(above[key if key >= 0 else -_NEAR :]):
            secrets.redact(clean(line))
        return secrets.redact(text)

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
    """What a terminal shows in the end of one line with all its redraws.

    A redraw begins in the first column and leaves standing what it does not reach. Blanks at its end reach:
    bars wipe out their longer selves with them. So only frames longer than all later ones still show, by their
    ends.
    """
    line = line.rstrip(b"\r\n")
    if _DRAWN.search(line) is None:
        return clean(line)
    shown = ""
    for frame in reversed(_FRAMES.split(line.replace(b"\0", b""))):
        if len(frame) > len(shown):
            shown += _with_blanks(frame)[len(shown) :]
    return shown.rstrip()


def _with_blanks(frame: bytes) -> str:
    return clean(frame) + " " * (len(frame) - len(frame.rstrip(b" ")))


def tail(lines: Lines, rows: int, end: int | None = None) -> tuple[str, ...]:
    """The last lines, the newest last, or those before a byte; empty ones are left out."""
    found: list[str] = []
    at: int | None = lines.last() if end is None else lines.start(end - 1)
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
