"""How much of a log is read: all of it, or of a huge one what its latest boot needs (``latest``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrack.core.model import Chunk, Gap
from phasetrack.edges.file import next_data, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


MIB = 1 << 20
WHOLE_BYTES = 64 * MIB  # 0.15 s
TAIL_BYTES = 32 * MIB
MARGIN_BYTES = 64 * 1024
# So far before an opening another one is looked for that it may belong to.
NEAR_BYTES = 4 * MIB


@dataclass(frozen=True, slots=True)
class Reach:
    """How much is read of what; tests make it small."""

    whole_bytes: int = WHOLE_BYTES
    tail_bytes: int = TAIL_BYTES
    margin_bytes: int = MARGIN_BYTES
    near_bytes: int = NEAR_BYTES


@dataclass(frozen=True, slots=True)
class Reading:
    """From where to read, and which parts even of a server that serves; the last part has no end."""

    start: int = 0
    early: tuple[int, float] | None = None  # where and when the boot began that ``start`` opens, if earlier
    parts: tuple[tuple[int, int | None], ...] = ((0, None),)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return self.start == 0 and self.parts[0] == (0, None)

    def onward(self, position: int) -> int:
        """Where to read on once the server serves: ``position`` itself where it lies in a part."""
        for begin, end in self.parts:
            if end is None or position < end:
                return max(begin, position)
        return position


def chunks_of(fd: int, reading: Reading, serves: Callable[[], bool]) -> Iterator[Chunk | Gap]:
    """Yield what is to be read of a file, and what is left out while the server ``serves``."""
    position = reading.start
    while True:
        start = next_data(fd, position)
        if start > position:
            yield Gap(start - position, hole=True)
        position = reading.onward(start) if serves() else start
        if position > start:
            yield Gap(position - start)
        data = read_lines(fd, position)
        if not data:
            return
        yield Chunk(data)
        position += len(data)
