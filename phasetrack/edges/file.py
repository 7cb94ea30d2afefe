"""A log opened once, from its beginning: a file, an archive, a recording, or standard input."""

from __future__ import annotations

import errno
import os
import select
import stat
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from phasetrack.core.model import Chunk, Gap
from phasetrack.edges.turned import END_BYTES, falls, stands_newest_first, turned
from phasetrack.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Small enough that a chunk and its copies stay in the CPU's caches (``tests/bench gigabyte``).
CHUNK_BYTES = 384 << 10
# glibc gives a block of this size back to the kernel, and from then on keeps smaller ones for itself: else it would ask
# for the pages of every chunk anew, 0.4 s a gigabyte. They are never written, so never there.
_KEPT_BYTES = 8 << 20
# A serving line is a tenth of this.
_END_BYTES = 4 << 10
# Enough to tell an archive from a log; a recording's header is one line.
_HEAD_BYTES = 64 * 1024
# First bytes that only an archive has; anything else is not worth the import that tells more.
_ARCHIVES = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"{")
_NAMES = (".gz", ".xz", ".zst")
# Holes shorter than this are read as the zeros that they are.
HOLE_BYTES = 64 * 1024


class OpenLog:
    """A log opened for reading once, from its beginning."""

    def __init__(
        self, chunks: Iterator[Chunk | Gap], *, ends: bool, changed_s: float | None = None, fd: int | None = None
    ) -> None:
        """Hold what will be read.

        Args:
            chunks: its bytes, in order.
            ends: whether its end is an end: a pipe's and an archive's is, a regular file's is not.
            changed_s: when it last changed, our clock; None where it ends.
            fd: of a regular file, which can be read anywhere.
        """
        self._chunks = chunks
        self.fd = fd
        self.ends = ends
        self.changed_s = changed_s

    def chunks(self, *, lines: int | None = None) -> Iterator[Chunk | Gap]:
        """Yield what is there; with ``lines``, no more than up to this line of the file."""
        left, begun = lines, False
        for chunk in self._chunks if left is None or left > 0 else ():
            if left is None or isinstance(chunk, Gap):
                yield chunk
                continue
            if chunk.turned is not None and not begun:
                left, begun = max(chunk.turned.lines + 1 - left, 0), True
            found = chunk.data.count(b"\n")
            if found >= left:
                yield replace(chunk, data=chunk.data[: _after_line(chunk.data, left)])
                return
            left -= found
            yield chunk


def _after_line(data: bytes, lines: int) -> int:
    at = 0
    for _ in range(lines):
        at = data.index(b"\n", at) + 1
    return at


@contextmanager
def open_log(path: str) -> Iterator[OpenLog]:
    """Open a log file, an archive of one, or standard input for ``-``.

    Raises:
        SourceError: it is missing, a directory, or not readable; the message says which.
    """
    bytes(_KEPT_BYTES)
    if path == "-":
        yield OpenLog(_piped(iter(partial(sys.stdin.buffer.read, CHUNK_BYTES), b""), path), ends=True)
        return
    fd = open_to_read(path)
    try:
        yield _opened(fd, path)
    finally:
        os.close(fd)


def open_to_read(path: str) -> int:
    """Open a log, without waiting for the writer of a named pipe; what is no log is refused.

    Raises:
        SourceError: it is missing, a directory, a device, or not readable; the message says which.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as fault:
        raise source_error(path, fault) from None
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or os.isatty(fd):
        return fd
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise source_error(path, IsADirectoryError())
    raise SourceError(f"{path}: is a device (give the server's log file)")


def _opened(fd: int, path: str) -> OpenLog:
    try:
        facts = os.fstat(fd)
        if not stat.S_ISREG(facts.st_mode):
            return OpenLog(_piped(_arriving(fd, path, named=stat.S_ISFIFO(facts.st_mode)), path), ends=True)
        head = os.pread(fd, _HEAD_BYTES, 0)
        if is_archive(head):
            return OpenLog(_unpacked(_blocks(fd), path), ends=True)
        if stands_newest_first(fd, head):
            return OpenLog(_turned(fd, path), ends=True)
    except OSError as fault:
        raise source_error(path, fault) from None
    if is_named_archive(path):
        from phasetrack.edges.archive import MISNAMED

        return OpenLog(chain(_stored(fd, path), [Gap(0, hole=True, why=MISNAMED)]), ends=True)
    return OpenLog(_stored(fd, path), ends=False, changed_s=facts.st_mtime, fd=fd)


def _arriving(fd: int, path: str, *, named: bool) -> Iterator[bytes]:
    """What comes through a pipe. That nobody writes into a named one is seen only by its first read."""
    watch = select.poll()
    watch.register(fd, select.POLLIN)
    begun = False
    while True:
        try:
            data = os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            watch.poll()
            continue
        if not data and named and not begun and not watch.poll(0):
            mend = "start its writer first; 'phasetrack tail' waits for one"
            raise SourceError(f"{path}: a named pipe that nobody writes into ({mend})")
        if not data:
            return
        begun = True
        yield data


def _piped(parts: Iterator[bytes], path: str) -> Iterator[Chunk | Gap]:
    try:
        first = next(parts, b"")
        parts = chain([first], parts)
        yield from _unpacked(parts, path) if is_archive(first) else map(Chunk, filter(None, parts))
    except OSError as fault:
        raise source_error(path, fault) from None


def _blocks(fd: int) -> Iterator[bytes]:
    position = 0
    while data := os.pread(fd, CHUNK_BYTES, position):
        position += len(data)
        yield data


def _stored(fd: int, path: str, position: int = 0) -> Iterator[Chunk | Gap]:
    """A regular file from a byte of it, holes stepped over."""
    try:
        while True:
            start = next_data(fd, position)
            if start > position:
                yield Gap(start - position, hole=True)
            data = read_lines(fd, start)
            if not data:
                return
            yield Chunk(data)
            position = start + len(data)
    except OSError as fault:
        raise source_error(path, fault) from None


def read_lines(fd: int, position: int) -> bytes:
    """Read a chunk that ends with a line, if there is one that ends near: a cut line must be copied with what follows.

    To look before reading takes 2 µs, to copy a chunk 25.
    """
    ahead = os.pread(fd, _END_BYTES, position + CHUNK_BYTES - _END_BYTES)
    return os.pread(fd, CHUNK_BYTES - _END_BYTES + (ahead.rfind(b"\n") + 1 or len(ahead)), position)


def _turned(fd: int, path: str) -> Iterator[Chunk]:
    """A regular file that stands newest line first, from its last line up."""
    try:
        yield from turned(fd)
    except OSError as fault:
        raise source_error(path, fault) from None


def _unpacked(parts: Iterator[bytes], path: str) -> Iterator[Chunk | Gap]:
    from phasetrack.edges import archive

    try:
        head = next(parts)
        parts, unpacker = chain([head], parts), None
        if archive.is_compressed(head):
            unpacker = archive.Unpacker(head, path)
            parts = chain.from_iterable(unpacker.feed(part, CHUNK_BYTES) for part in parts)
        first = next(parts, b"")
        parts = chain([first], parts)
        if archive.is_cast(first):
            yield from archive.cast_chunks(parts)
        elif falls(first[:END_BYTES]):
            yield from _spooled(parts)
        else:
            yield from map(Chunk, filter(None, parts))
    except OSError as fault:
        raise source_error(path, fault) from None
    if unpacker is not None and (lost := unpacker.lost()) is not None:
        yield lost


def _spooled(parts: Iterator[bytes]) -> Iterator[Chunk]:
    """What an archive holds that seems to stand newest line first: only a file can be read from its end."""
    import tempfile

    with tempfile.TemporaryFile(prefix="phasetrack-", buffering=0) as file:
        first = b""
        for part in parts:
            first = first or part
            file.write(part)
        if stands_newest_first(file.fileno(), first[:END_BYTES]):
            yield from turned(file.fileno())
            return
        file.seek(0)
        while data := file.read(CHUNK_BYTES):
            yield Chunk(data)


def next_data(fd: int, position: int) -> int:
    """Where data begins at or behind ``position``: a writer that went on in a truncated file leaves a hole."""
    if os.fstat(fd).st_size - position < HOLE_BYTES:
        return position
    try:
        start = os.lseek(fd, position, os.SEEK_DATA)
    except OSError:
        return position  # no data behind it, or a file system that cannot tell
    return start if start - position >= HOLE_BYTES else position


def is_archive(head: bytes) -> bool:
    """Whether a file that begins so is finished and kept, not a log that may grow."""
    if not head.startswith(_ARCHIVES):
        return False
    from phasetrack.edges import archive

    return archive.is_archive(head)


def is_named_archive(path: str) -> bool:
    """Whether a log's name says that it is kept, and may not grow."""
    return path.lower().endswith(_NAMES)


def bytes_of(path: str, damaged: list[Gap] | None = None) -> Iterator[bytes]:
    """Read a whole log's bytes, holes left out; ``damaged`` takes what could not be read.

    Raises:
        SourceError: as ``open_log``.
    """
    with open_log(path) as log:
        for item in log.chunks():
            if isinstance(item, Chunk):
                yield item.data
            elif item.why and damaged is not None:
                damaged[:] = [item]


def source_error(path: str, fault: OSError) -> SourceError:
    """Say in one line why a log cannot be read, and what to do."""
    path = path or "''"
    if path == "-" and fault.errno == errno.EBADF:
        return SourceError("-: standard input is closed")
    if isinstance(fault, FileNotFoundError):
        return SourceError(f"{path}: no such file (give the server's log; 'phasetrack wait' waits for one to appear)")
    if isinstance(fault, IsADirectoryError):
        return SourceError(f"{path}: is a directory (give the log file in it)")
    if isinstance(fault, PermissionError):
        return SourceError(f"{path}: permission denied (read it as its owner, or pipe it: … | phasetrack status -)")
    return SourceError(f"{path}: {fault.strerror or fault}")
