"""What can be followed: a file that grows, a pipe, or something finished that is read like them."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from phasetrack.core.model import Chunk
from phasetrack.edges.file import (
    CHUNK_BYTES,
    is_archive,
    is_named_archive,
    open_log,
    open_to_read,
    source_error,
)
from phasetrack.edges.follower import Follower
from phasetrack.edges.stdin import Pipe
from phasetrack.edges.turned import END_BYTES, stands_newest_first

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from phasetrack.core.model import Gap


class Live(Protocol):
    """A source of chunks that may give more later."""

    @property
    def caught_up(self) -> bool:
        """Whether all that was there before us has been read."""

    @property
    def changed_s(self) -> float | None:
        """When it last grew, our clock; None where only arrivals tell."""

    @property
    def ended(self) -> str | None:
        """Why nothing more will come; None while something may."""

    def read(self, limit: int = ...) -> Iterator[Chunk | Gap]:
        """Yield what is new, about ``limit`` bytes of it."""

    def close(self) -> None:
        """Let it go."""


class Finished:
    """An archive or a recording: read like a live log, and ended with its last byte."""

    changed_s: float | None = None

    def __init__(self, path: str, say: Callable[[str], None]) -> None:
        """Open it; what it holds is read later. ``say`` takes the line that it is damaged."""
        self._path, self._say = path, say
        self._stack = ExitStack()
        self._chunks = self._stack.enter_context(open_log(path)).chunks()
        self.caught_up = False
        self.ended: str | None = None

    def read(self, limit: int = 8 * CHUNK_BYTES) -> Iterator[Chunk | Gap]:
        """Yield the next ``limit`` bytes."""
        while limit > 0 and self.ended is None:
            chunk = next(self._chunks, None)
            if chunk is None:
                self.caught_up = True
                self.ended = "the input ended"
                return
            limit -= len(chunk.data) if isinstance(chunk, Chunk) else 0
            if not isinstance(chunk, Chunk) and chunk.why:
                self._say(f"{self._path}: {chunk.why}")
            yield chunk

    def close(self) -> None:
        """Close the file."""
        self._stack.close()


def open_live(path: str, say: Callable[[str], None], *, position: int = 0) -> Live:
    """Open a log to be followed, ``-`` for standard input.

    Raises:
        SourceError: it is there but cannot be read.
    """
    if path == "-":
        return Pipe(sys.stdin.fileno(), path, say)
    try:
        facts = os.stat(path)  # noqa: PTH116 - beside os.open
        if stat.S_ISREG(facts.st_mode) and _is_kept(path, say):
            return Finished(path, say)
        if not stat.S_ISREG(facts.st_mode) and not stat.S_ISDIR(facts.st_mode):
            return Pipe(open_to_read(path), path, say)  # a named pipe: waits for its writer
    except FileNotFoundError:
        pass
    except OSError as fault:
        raise source_error(path, fault) from None
    return Follower(path, say, position=position)


def _is_kept(path: str, say: Callable[[str], None]) -> bool:
    """Whether a regular file is no log that may grow: an archive, or an export."""
    with open(path, "rb", buffering=0) as stream:  # noqa: PTH123 - beside os.open
        head = stream.read(END_BYTES)
        if is_archive(head) or is_named_archive(path):
            return True
        if found := stands_newest_first(stream.fileno(), head):
            say(f"{path}: newest line first; reading it from its last line up, and counting from there")
        return found
