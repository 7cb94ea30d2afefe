r"""Bytes to segments: a log is what a terminal would have been sent.

Rules, each with a test of its name in ``tests/unit/test_segments.py``:

1. ``\n``, ``\r\n``, ``\r\r\n`` end a line. A lone ``\r`` ends a *frame*: the line is about to be redrawn.
   A trailing ``\r`` waits for the next byte.
2. A frame is a segment of its own as soon as its terminator is there, so a ten-minute bar is seen while it
   moves. ``peek`` shows the open tail and consumes nothing.
3. Text is decoded per segment, never per chunk; bad bytes become U+FFFD. Escape sequences go after the cut;
   cursor-up (nested bars) ends a frame; a backspace takes a character back.
4. A run of NUL (a truncated file that its writer goes on writing at the old offset) is stepped over.
5. A text of ``LIMIT`` bytes without a terminator is cut there and goes on as the next frame.
6. The result does not depend on how the bytes were chunked, nor on peeks.
7. ``swallow`` finds whole lines that may be stepped over in one C call; the owner switches it on only where
   such lines change nothing but the time (a boot that serves).

Splitting here or in the classifier would differ only in taste, but for one thing: glued pieces (§3.5 of the
design) need the prefix grammar, so they are cut in ``prefix``.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING, Protocol, TypeAlias

from phasetrack.core.frames import Frames, run_at
from phasetrack.core.model import Bulk, End, Place, Segment

if TYPE_CHECKING:
    from collections.abc import Iterator

# server_args lines are 15 kB, request dumps reach megabytes; nothing that a rule knows is longer than this.
LIMIT = 64 * 1024

# Ranks write out of turn, but no rank so late: the newest stamp of a run stands in its last bytes.
_TURN_BYTES = 8 * 1024

# The engine's stamp at a line's begin: as text it sorts as its time does.
_stamp = itemgetter(slice(24))

# A character class alone is found several times faster than an alternation: this is the hot loop.
_STOP = re.compile(rb"[\n\r\x1b\x00]")
# A cursor goes up by a few lines only; without a bound an escape's tail could not be told from a text.
_CUT = re.compile(rb"\r*\n|\r+|\x1b\[\d{0,4}A|\x00+")
_UNSURE = re.compile(rb"\r+")
_UNSURE_TAIL = re.compile(rb"(?:\r+|\x1b(?:\[\d{0,4})?)\Z")
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?"  # CSI, also one cut short
    r"|[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\|\Z)?"  # OSC, DCS, PM, APC, SOS
    r"|[ -/]*[0-Z\\-~]?)"  # two-byte and charset sequences
)
# C0 and C1, byte order marks, line separators, and what turns the direction of writing (it could forge a line)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


Piece: TypeAlias = Segment | Bulk | Frames


class Swallow(Protocol):
    """Knows whole lines that may be stepped over."""

    def step(self, buffer: bytes, position: int) -> tuple[int, int] | None:
        """Answer where the run ends that begins with the line at ``position``, and its lines; None for no run."""


class Segmenter:
    """Cuts a byte stream. Sans-IO: ``feed`` it, take what it yields."""

    __slots__ = ("_buffer", "_frame", "_line", "_offset", "_scanned", "frames", "paints", "reached", "swallow")

    def __init__(self, *, line: int | None = 1, offset: int = 0) -> None:
        """Start at ``offset`` bytes; ``line`` is None where the lines before were not counted."""
        self._buffer = b""
        self._scanned = 0  # bytes of the buffer known to hold no terminator
        self._offset = offset  # of the buffer's first byte
        self._line = line
        self._frame = 0  # frames of this line so far
        self.frames = 0  # of the whole stream
        self.reached = offset  # where the text of the newest segment ends
        self.swallow: Swallow | None = None
        self.paints = False  # whether runs of frames of a bar come as ``Frames``

    @property
    def offset(self) -> int:
        """Bytes consumed so far, the open tail left out."""
        return self._offset

    @property
    def line(self) -> int | None:
        """The line that the next byte belongs to."""
        return self._line

    @property
    def is_at_begin(self) -> bool:
        """Whether the next byte begins a line."""
        return not self._buffer and self._frame == 0

    @property
    def pending(self) -> int:
        """Bytes of the open tail."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yield what ``data`` completes. Take all of it before the next call. Never raises."""
        buffer = self._buffer + data if self._buffer else data
        base, size = self._offset, len(buffer)
        position, scan = 0, self._scanned
        while True:
            if self.swallow is not None and self._frame == 0:
                run = self.swallow.step(buffer, position)
                if run is not None:
                    yield self._step_over(buffer, position, *run)
                    position = scan = run[0]
            if self.paints and self._frame > 0 and (until := run_at(buffer, position)) is not None:
                yield self._painted(buffer[position:until], base + position)
                position = scan = until
            found = _find_cut(buffer, scan)
            if found is not None and found.end() == size and _UNSURE.fullmatch(found[0]):
                found = None  # a carriage return at the very end waits for the next byte
            end = found.start() if found is not None else size
            if end - position > LIMIT:
                yield from self._emit(buffer[position : position + LIMIT], base + position, End.CUT)
                position += LIMIT
                scan = position
            elif found is None:
                break
            else:
                kind = _KINDS[found[0][-1]]
                yield from self._emit(buffer[position:end], base + position, kind)
                if kind is End.LF:
                    self._line = None if self._line is None else self._line + 1
                    self._frame = 0
                position = scan = found.end()
        unsure = _UNSURE_TAIL.search(buffer, max(position, size - 8))
        self._scanned = (size if unsure is None else unsure.start()) - position
        self._buffer = buffer[position:]
        self._offset = base + position

    def peek(self) -> Segment | None:
        """Show the open tail without consuming it; None where there is none."""
        text = clean(_UNSURE_TAIL.sub(b"", self._buffer[:LIMIT]))
        if not text:
            return None
        return Segment(text, Place(self._line, self._frame + 1, self._offset), End.OPEN)

    def close(self) -> Iterator[Segment]:
        """Yield the tail as the last segment: the input ended."""
        tail, self._buffer, self._scanned = self._buffer, b"", 0
        yield from self._emit(_UNSURE_TAIL.sub(b"", tail), self._offset, End.CUT)
        self._offset += len(tail)

    def skip(self, count: int, *, hole: bool) -> Iterator[Segment]:
        """Step over ``count`` bytes that were not read. A hole holds no line end, but ends the text before it."""
        if hole:
            yield from self.close()
        else:  # the rest of the open line is not read: it is no text
            self._offset += len(self._buffer)
            self._buffer, self._scanned = b"", 0
            self._line, self._frame = None, 0
        self._offset += count

    def step_over(self, size: int, lines: int, frames: int) -> None:
        """Step over whole lines whose meaning is known: ``size`` bytes."""
        self._offset += size
        self._line = None if self._line is None else self._line + lines
        self.frames += frames

    def _emit(self, raw: bytes, offset: int, end: End) -> Iterator[Segment]:
        r"""Empty frames count for nothing: a bar that begins with ``\r`` has its text in frame 1."""
        text = clean(raw)
        if text:
            self._frame += 1
            self.frames += 1
            self.reached = offset + len(raw)
            yield Segment(text, Place(self._line, self._frame, offset), end)

    def _painted(self, run: bytes, offset: int) -> Frames:
        count = sum(map(bool, run.split(b"\r")))
        found = Frames(run, count, Place(self._line, self._frame + 1, offset))
        self._frame += count
        self.frames += count
        return found

    def _step_over(self, buffer: bytes, position: int, end: int, lines: int) -> Bulk:
        told = _last_lines(buffer, position, end)
        newest, last = clean(max(reversed(told), key=_stamp)), clean(told[-1])  # the same line, unless ranks disagree
        found = Bulk(lines, Place(self._line, 1, self._offset + position), newest, last, end - position)
        self._line = None if self._line is None else self._line + lines
        self.frames += lines
        return found


def _last_lines(buffer: bytes, position: int, end: int) -> list[bytes]:
    """The lines at the end of a run, one at least."""
    floor = max(position, end - _TURN_BYTES)
    if floor > position:
        floor = (buffer.find(b"\n", floor, end - 1) + 1) or position
    return buffer[floor:end].split(b"\n")[:-1]


def _find_cut(buffer: bytes, position: int) -> re.Match[bytes] | None:
    """Find the next terminator; an escape that is none is stepped over."""
    while (stop := _STOP.search(buffer, position)) is not None:
        if (found := _CUT.match(buffer, stop.start())) is not None:
            return found
        position = stop.end()
    return None


_KINDS = {ord("\n"): End.LF, ord("\r"): End.CR, ord("A"): End.CR, 0: End.CUT}


def clean(raw: bytes) -> str:
    r"""Decode one segment and take out what a terminal would not show. Never raises.

    A line's own end (``\r\n``) may still be on it; trailing blanks go too.
    """
    return plain(raw.decode("utf-8", "replace"))


def plain(text: str) -> str:
    """Take out of a text what a terminal would not show. Never raises."""
    if text.isprintable():
        return text.rstrip()
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\b" in text:
        text = _backspaced(text)
    return _CONTROL.sub("", text.replace("\n", "")).rstrip()


def _backspaced(text: str) -> str:
    """Take a character back for each backspace."""
    kept: list[str] = []
    for char in text:
        if char != "\b":
            kept.append(char)
        elif kept:
            kept.pop()
    return "".join(kept)
