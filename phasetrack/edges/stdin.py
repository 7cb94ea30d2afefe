"""Standard input, or any pipe, as a live source: chunks as they come, and an end when its writer is gone."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING

from phasetrack.core.model import Chunk
from phasetrack.edges.file import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Pipe:
    """A stream that can only be read once, from now on."""

    caught_up = True
    changed_s: float | None = None  # what a pipe gives has just arrived

    def __init__(self, fd: int) -> None:
        """Read from an open file descriptor, which stays the caller's."""
        self.fd = fd
        self.ended: str | None = None

    def read(self, limit: int = 8 * CHUNK_BYTES) -> Iterator[Chunk]:
        """Yield what is there, about ``limit`` bytes of it, without waiting for more."""
        while limit > 0 and self.ended is None and self.wait(0):
            data = os.read(self.fd, CHUNK_BYTES)
            limit -= len(data)
            if not data:
                self.ended = "the input ended"
                return
            yield Chunk(data, time.time())

    def wait(self, wait_s: float) -> bool:
        """Wait until there is something to read; answer whether there is."""
        return self.ended is None and bool(select.select([self.fd], [], [], wait_s)[0])

    def close(self) -> None:
        """Nothing of it is ours."""


def wait_any(pipes: Iterable[Pipe], wait_s: float) -> None:
    """Wait until one of the pipes has something to read, or ends."""
    select.select([pipe.fd for pipe in pipes], [], [], wait_s)
