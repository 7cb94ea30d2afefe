"""Standard input, or any pipe, as a live source: chunks as they come, and an end when its writer is gone."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

from phasetrack.core.model import Chunk
from phasetrack.edges.file import CHUNK_BYTES, is_archive, source_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from phasetrack.core.model import Gap
    from phasetrack.edges.archive import Unpacker


class Pipe:
    """A stream that can only be read once, from now on."""

    caught_up = True
    changed_s: float | None = None  # what a pipe gives has just arrived

    def __init__(self, fd: int, path: str, say: Callable[[str], None]) -> None:
        """Read from an open file descriptor, which stays the caller's; ``say`` takes the line that it is damaged."""
        self.fd = fd
        self.ended: str | None = None
        self._path, self._say = path, say
        self._begun = False
        self._unpacker: Unpacker | None = None

    def read(self, limit: int = 8 * CHUNK_BYTES) -> Iterator[Chunk | Gap]:
        """Yield what is there, about ``limit`` bytes of it, without waiting for more.

        Raises:
            SourceError: it cannot be read.
        """
        while limit > 0 and self.ended is None and self.wait(0):
            try:
                data = os.read(self.fd, CHUNK_BYTES)
            except BlockingIOError:
                return
            except OSError as fault:
                raise source_error(self._path, fault) from None
            limit -= len(data)
            if not data:
                yield from self._end()
            for piece in self._plain(data) if data else ():
                yield Chunk(piece, time.time())

    def _plain(self, data: bytes) -> Iterable[bytes]:
        if not self._begun and is_archive(data):
            from phasetrack.edges import archive

            self._unpacker = archive.Unpacker(data, self._path) if archive.is_compressed(data) else None
        self._begun = True
        return [data] if self._unpacker is None else self._unpacker.feed(data, CHUNK_BYTES)

    def _end(self) -> Iterator[Gap]:
        self.ended = "the input ended"
        if self._unpacker is not None and (lost := self._unpacker.lost()) is not None:
            self._say(f"{self._path}: {lost.why}")
            yield lost

    def wait(self, wait_s: float) -> bool:
        """Wait until there is something to read; answer whether there is."""
        return self.ended is None and bool(select.select([self.fd], [], [], wait_s)[0])

    def close(self) -> None:
        """Nothing of it is ours."""


def wait_any(pipes: Iterable[Pipe], wait_s: float) -> None:
    """Wait until one of the pipes has something to read, or ends."""
    select.select([pipe.fd for pipe in pipes], [], [], wait_s)
