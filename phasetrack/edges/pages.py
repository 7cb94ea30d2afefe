"""The bytes of a log by offset in the stream, for who looks back: a pager.

A file is not copied: it is read where it stands, and a rotated one is held open, so that what a tracker has
seen can still be shown. What cannot be read twice (a pipe, an archive) is kept in temporary files without a
name, up to a limit; then the oldest of it is given up.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_right
from contextlib import suppress
from typing import NamedTuple

# A server that logs for weeks into a pipe must not fill the disk: 16 pieces of 128 MiB.
PIECE_BYTES = 128 << 20
PIECES = 16


class Held(NamedTuple):
    """A piece of the stream and where its bytes stand."""

    start: int  # offset in the stream
    fd: int
    position: int  # of its first byte in the file


class LogPages:
    """What was read of one log. ``take`` is for one thread, the rest for any."""

    def __init__(self, path: str | None) -> None:
        """Begin empty.

        Args:
            path: of a regular file that is followed; None for what must be kept here.
        """
        self._path = path
        self._held: tuple[Held, ...] = ()
        self._size = 0
        self._begin = 0
        self._fds: list[int] = []

    def begin(self) -> int:
        """The first byte that can still be had."""
        return self._begin

    def size(self) -> int:
        """Bytes of the stream so far."""
        return self._size

    def read(self, offset: int, count: int) -> bytes:
        """Up to ``count`` bytes; fewer at the end, zeros for what is no longer to be had. Never raises."""
        count = min(count, self._size - offset)
        if count <= 0 or offset < 0:
            return b""
        held = self._held
        parts: list[bytes] = []
        while count > 0:
            k = bisect_right(held, offset, key=lambda piece: piece.start) - 1
            until = held[k + 1].start if k + 1 < len(held) else self._size
            wanted = min(count, until - offset)
            parts.append(_read(held[k], offset, wanted) if k >= 0 else bytes(wanted))
            offset, count = offset + wanted, count - wanted
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def take(self, data: bytes | int, position: int | None = None) -> None:
        """Take what the stream went on with.

        Args:
            data: bytes, or how many were stepped over.
            position: where their end stands in the followed file.
        """
        size = data if isinstance(data, int) else len(data)
        if self._path is None:
            self._keep(data)
        elif position is not None:
            self._note(position - size)
        self._size += size

    def close(self) -> None:
        """Let every file go; what is read afterwards is zeros."""
        self._held = ()
        for fd in self._fds:
            with suppress(OSError):
                os.close(fd)
        self._fds.clear()

    # --- a file that is followed --------------------------------------------------------------------

    def _note(self, position: int) -> None:
        """Go on in the same file, or, where the place does not follow, in the one that stands there now."""
        last = self._held[-1] if self._held else None
        if last is not None and last.position + self._size - last.start == position:
            return
        assert self._path is not None  # noqa: S101
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        if last is not None and _same(fd, last.fd):
            self._begin = self._size  # cut and written anew: what stood there is gone
            self._held = ()
        self._fds.append(fd)
        self._held = (*self._held, Held(self._size, fd, position))

    # --- what must be kept --------------------------------------------------------------------------

    def _keep(self, data: bytes | int) -> None:
        last = self._held[-1] if self._held else None
        if last is None or self._size - last.start >= PIECE_BYTES:
            last = self._new_piece()
        if last is None or isinstance(data, int):
            return
        with suppress(OSError):  # a full disk: what does not fit reads as zeros
            os.pwrite(last.fd, data, self._size - last.start)

    def _new_piece(self) -> Held | None:
        try:
            with tempfile.TemporaryFile(prefix="phasetrack-") as file:
                fd = os.dup(file.fileno())
        except OSError:
            return None
        self._fds.append(fd)
        piece = Held(self._size, fd, 0)
        kept = (*self._held, piece)
        self._held = kept[-PIECES:]
        for old in kept[:-PIECES]:
            self._fds.remove(old.fd)
            os.close(old.fd)
            self._begin = self._held[0].start
        return piece


def _read(piece: Held, offset: int, count: int) -> bytes:
    try:
        data = os.pread(piece.fd, count, piece.position + offset - piece.start)
    except OSError:
        data = b""
    return data if len(data) == count else data + bytes(count - len(data))


def _same(one: int, other: int) -> bool:
    facts, known = os.fstat(one), os.fstat(other)
    return (facts.st_dev, facts.st_ino) == (known.st_dev, known.st_ino)
