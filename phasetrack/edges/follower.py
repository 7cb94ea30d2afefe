"""Follow one log file as it is written, rotated, truncated, deleted and made again.

``stat`` is the truth: two of them in, an act out (``decide``), and nothing that watches a file is trusted to
report every change. The stream that comes out is the concatenation of all that stood under the path: a
rotation continues it, so nothing is lost and nothing doubled, and it is for the tracker to say whether the
same server goes on or a new boot begins. What is beyond any reader: bytes that are written after the last
look and cut off before the next one (``copytruncate``).
"""

from __future__ import annotations

import os
import stat
import time
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core.model import Chunk, Gap
from phasetrack.edges.file import CHUNK_BYTES, next_data, source_error
from phasetrack.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# How much of what was read is compared with the file before reading on: a file that was cut and has grown
# past the old place again is told by it, and so is a copy of the same log under a new inode (rsync).
_MARK_BYTES = 256


class Facts(NamedTuple):
    """What ``stat`` says of a file, as far as a follower cares."""

    device: int
    inode: int
    size: int
    mtime_ns: int


class Act(StrEnum):
    """What a follower does next."""

    WAIT = "wait"
    OPEN = "open"
    READ = "read"
    REWIND = "rewind"  # the same file is shorter than what was read of it
    SWITCH = "switch"  # the path leads to another file, which has bytes
    LOST = "lost"  # nothing stands under the path; the writer may still hold what we hold


def decide(held: Facts | None, there: Facts | None, read: int) -> Act:
    """Say what to do.

    Args:
        held: the open file, None where none is open.
        there: what stands under the path now, None where nothing does.
        read: bytes of the open file that were read.
    """
    if held is None:
        return Act.WAIT if there is None else Act.OPEN
    if held.size < read:
        return Act.REWIND
    if held.size > read:
        return Act.READ
    if there is None:
        return Act.LOST
    if (there.device, there.inode) == (held.device, held.inode):
        return Act.WAIT
    # An empty new file may be logrotate's: the server that does not reopen goes on writing to the old one.
    return Act.SWITCH if there.size else Act.WAIT


class Follower:
    """One path, followed. ``read`` until it gives nothing, then wait a little."""

    ended: str | None = None  # a file that stops growing has not ended

    def __init__(self, path: str, say: Callable[[str], None], *, position: int = 0) -> None:
        """Follow ``path`` from a byte of it.

        Args:
            path: of a regular file, which may not exist yet.
            say: takes one line about the file itself: that it is missing, truncated, replaced.
            position: where to begin in the file that is there now.

        Raises:
            SourceError: it is there but cannot be read.
        """
        self.path = path
        self.caught_up = False  # whether the backlog has been read
        self.changed_s: float | None = None  # mtime, our clock; None while nothing is there
        self._say = say
        self._said = ""
        self._fd: int | None = None
        self._position = 0
        self._backlog = 0  # bytes that stood there before we came
        self._mtime_ns = 0
        self._head = self._tail = b""
        self._calm: Facts | None = None  # of the file at the last look, where nothing was new
        found = self._open()
        if found is not None:
            self._position, self._backlog = position, found.size
        else:
            self.caught_up = True
            self._tell(f"{path}: no such file yet; waiting for it")

    @property
    def fd(self) -> int | None:
        """Of the open file."""
        return self._fd

    def start_at(self, position: int) -> None:
        """Begin at a byte of the file that is there; before the first read."""
        self._position = position

    @property
    def position(self) -> int:
        """Bytes of the file read so far."""
        return self._position

    def read(self, limit: int = 8 * CHUNK_BYTES) -> Iterator[Chunk | Gap]:
        """Look once, and yield what is new, about ``limit`` bytes of it. Nothing yielded: nothing new."""
        if self._calm is not None and self._stands_still(self._calm):
            return
        held = None if self._fd is None else _facts(os.fstat(self._fd))
        there = self._there(held)
        act = decide(held, there, self._position)
        if act is Act.WAIT and held is not None and held.mtime_ns != self._mtime_ns and not self._is_as_read():
            act = Act.REWIND  # cut and grown to the very same size
        if held is not None:
            self._mtime_ns = held.mtime_ns
            self.changed_s = held.mtime_ns / 1e9
        yield from self._do(act, limit)
        if act in {Act.WAIT, Act.LOST}:
            self.caught_up = True
        self._calm = there if act is Act.WAIT and there == held else None

    def _stands_still(self, calm: Facts) -> bool:
        """Whether the path leads to the file that is held, and nothing of it has changed: most looks find that."""
        try:
            return _facts_of(self.path) == calm
        except SourceError:
            return False

    def skip_to(self, position: int) -> Gap | None:
        """Leave out what stands before ``position``; None where that was read already."""
        if position <= self._position:
            return None
        gap = Gap(position - self._position)
        self._position, self._tail = position, b""
        return gap

    def close(self) -> None:
        """Let the file go."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    # --- acts ---------------------------------------------------------------------------------------

    def _do(self, act: Act, limit: int) -> Iterator[Chunk | Gap]:
        if act is Act.READ:
            yield from self._drain(limit)
        elif act is Act.OPEN and self._open() is not None:
            self._tell(f"{self.path}: the file is there now")
            yield from self._drain(limit)
        elif act is Act.REWIND:
            self._tell(f"{self.path}: truncated; reading it from its beginning")
            self._rewind()
            yield from self._drain(limit)
        elif act is Act.SWITCH:
            yield from self._drain(None)  # what came between the look and now
            self._switch()
            yield from self._drain(limit)
        elif act is Act.LOST:
            self._tell(f"{self.path}: deleted; following what its writer holds, and waiting for a new file")

    def _there(self, held: Facts | None) -> Facts | None:
        """What stands under the path; what is held is read on while the path may not be looked at."""
        try:
            return _facts_of(self.path)
        except SourceError as fault:
            if held is None:
                raise
            self._tell(f"{fault}; reading on in what is open")
            return held

    def _drain(self, limit: int | None) -> Iterator[Chunk | Gap]:
        while self._fd is not None and (limit is None or limit > 0):
            gap = self._hole()
            if gap is not None:
                yield gap
            data = self._next()
            if not data:
                return
            limit = None if limit is None else limit - len(data)
            yield Chunk(data, time.time() if self.caught_up and self._position > self._backlog else None)

    def _next(self) -> bytes:
        """Read on, if what was read before still stands there."""
        assert self._fd is not None  # noqa: S101
        mark = self._tail
        data = os.pread(self._fd, len(mark) + CHUNK_BYTES, self._position - len(mark))
        if mark and data[: len(mark)] != mark:
            if len(data) < len(mark):
                return b""  # cut this very moment: the next look sees it
            self._anew()
            return self._next()
        fresh = data[len(mark) :]
        if fresh:
            self._note(fresh)
        return fresh

    def _note(self, fresh: bytes) -> None:
        if len(self._head) < _MARK_BYTES and self._position == len(self._head):
            self._head = (self._head + fresh)[:_MARK_BYTES]
        self._position += len(fresh)
        self._tail = fresh[-_MARK_BYTES:] if len(fresh) >= _MARK_BYTES else (self._tail + fresh)[-_MARK_BYTES:]

    def _hole(self) -> Gap | None:
        assert self._fd is not None  # noqa: S101
        start = next_data(self._fd, self._position)
        if start == self._position:
            return None
        if not self._is_as_read():
            self._anew()
            return self._hole()
        gap = Gap(start - self._position, hole=True)
        self._position, self._tail = start, b""
        return gap

    def _anew(self) -> None:
        self._tell(f"{self.path}: truncated and written anew; reading it from its beginning")
        self._rewind()

    def _rewind(self) -> None:
        self._position = self._backlog = 0
        self._head = self._tail = b""

    def _is_as_read(self) -> bool:
        """Whether the last bytes read still stand where they stood."""
        assert self._fd is not None  # noqa: S101
        return os.pread(self._fd, len(self._tail), self._position - len(self._tail)) == self._tail

    def _open(self) -> Facts | None:
        """Hold the file that stands under the path now, from its beginning; None where none does."""
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as fault:
            raise source_error(self.path, fault) from None
        facts = os.fstat(fd)
        if stat.S_ISDIR(facts.st_mode):
            os.close(fd)
            raise source_error(self.path, IsADirectoryError())
        self.close()
        self._fd = fd
        self._mtime_ns = facts.st_mtime_ns
        self.changed_s = self._mtime_ns / 1e9
        self._rewind()
        return _facts(facts)

    def _switch(self) -> None:
        """Turn to the file that stands under the path now; a copy of the same log is read on, not again."""
        head, tail, position = self._head, self._tail, self._position
        try:
            if self._open() is None:
                return
        except SourceError as fault:
            self._tell(f"{fault}; following the old file")
            return
        assert self._fd is not None  # noqa: S101
        if tail and _holds(self._fd, head, 0) and _holds(self._fd, tail, position - len(tail)):
            self._position, self._head, self._tail = position, head, tail
            self._tell(f"{self.path}: replaced by a copy that goes on; reading on")
        else:
            self._tell(f"{self.path}: replaced by a new file; reading it from its beginning")

    def _tell(self, what: str) -> None:
        """Say a thing once, until another is said."""
        if what != self._said:
            self._said = what
            self._say(what)


def _holds(fd: int, text: bytes, position: int) -> bool:
    return os.pread(fd, len(text), position) == text


def _facts(found: os.stat_result) -> Facts:
    return Facts(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _facts_of(path: str) -> Facts | None:
    try:
        return _facts(os.stat(path))  # noqa: PTH116 - the hot path of a follower
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as fault:
        raise source_error(path, fault) from None
