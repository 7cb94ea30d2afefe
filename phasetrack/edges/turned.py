"""Exports that stand newest line first, as some web consoles write them: read from their last line up.

The one place that turns them. Everything behind it sees lines in the order in which they were written, tracebacks and
all; ``Chunk.turned`` says so, and ``core.mirror`` tells their places in the file.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from phasetrack.core.model import Chunk, Turned
from phasetrack.core.prefix import Learned, parse
from phasetrack.core.segments import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# How much of each end of a file is looked at.
END_BYTES = 64 * 1024
_BLOCK_BYTES = 256 * 1024
# Ranks write out of turn by as much; a log in order rises by more within its first lines.
_TURN_S = 1.0
_STAMPS = 3


def falls(head: bytes, tail: bytes = b"") -> bool:
    """Whether the times of a log's first lines, and of its last ones, only fall.

    Args:
        head: how it begins.
        tail: how it ends; none where that cannot be had.
    """
    newest = oldest = None
    steps = 0
    for stamp in _stamps((head.split(b"\n"), tail.split(b"\n")[1:])):
        if oldest is not None and newest is not None:
            if stamp > oldest + _TURN_S:
                return False
            steps += stamp < oldest
        newest = stamp if newest is None else newest
        oldest = stamp if oldest is None else min(oldest, stamp)
    return newest is not None and oldest is not None and steps >= _STAMPS - 1 and newest - oldest > _TURN_S


def _stamps(parts: Iterable[list[bytes]]) -> Iterator[float]:
    learned = Learned()
    for lines in parts:
        for raw in lines:
            prefix, _ = parse(clean(raw[:512]), learned)
            stamp = prefix.outer_s if prefix.stamp_s is None else prefix.stamp_s
            if stamp is not None:
                yield stamp


def stands_newest_first(fd: int, head: bytes) -> bool:
    """Whether a regular file does that begins so. A log in order is known by its first lines."""
    return falls(head[:END_BYTES], _tail(fd, len(head)))


def _tail(fd: int, begin: int) -> bytes:
    size = os.fstat(fd).st_size
    start = max(begin, size - END_BYTES)
    return os.pread(fd, size - start, start) if start < size else b""


def turned(fd: int) -> Iterator[Chunk]:
    """Yield a regular file's lines, the last one first."""
    size = os.fstat(fd).st_size
    lines, last = _count(fd, size)
    whole = Turned(lines, size + (last != b"\n"))
    position, rest = size, b""
    while position > 0:
        begin = max(position - _BLOCK_BYTES, 0)
        block = os.pread(fd, position - begin, begin) + rest
        position = begin
        cut = block.find(b"\n") + 1 or len(block) if begin else 0
        rest, block = block[:cut], block[cut:]
        if block:
            found = block.removesuffix(b"\n").split(b"\n")
            yield Chunk(b"".join(line + b"\n" for line in reversed(found)), turned=whole)


def _count(fd: int, size: int) -> tuple[int, bytes]:
    """The lines of a file, and its last byte."""
    lines, position, last = 0, 0, b"\n"
    while position < size and (block := os.pread(fd, _BLOCK_BYTES, position)):
        lines += block.count(b"\n")
        position, last = position + len(block), block[-1:]
    return lines + (last != b"\n"), last
