"""Log files and standard input as chunks of bytes."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from phasetrack.core.model import Chunk
from phasetrack.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_BYTES = 1 << 20


class OpenLog:
    """A log opened for reading once, from its beginning."""

    def __init__(self, stream: BinaryIO, *, ends: bool, changed_s: float | None) -> None:
        """Hold a stream.

        Args:
            stream: open for reading bytes.
            ends: whether its end is an end: a pipe's is, a regular file's is not.
            changed_s: when it last changed, our clock; None for a pipe.
        """
        self._stream = stream
        self.ends = ends
        self.changed_s = changed_s

    def chunks(self, *, lines: int | None = None) -> Iterator[Chunk]:
        """Yield what is there; with ``lines``, no more than that many lines."""
        left = lines
        while (left is None or left > 0) and (data := self._stream.read(CHUNK_BYTES)):
            if left is not None:
                found = data.count(b"\n")
                if found >= left:
                    data = data[: _after_line(data, left)]
                left -= found
            yield Chunk(data)


def _after_line(data: bytes, lines: int) -> int:
    at = 0
    for _ in range(lines):
        at = data.index(b"\n", at) + 1
    return at


@contextmanager
def open_log(path: str) -> Iterator[OpenLog]:
    """Open a log file, or standard input for ``-``.

    Raises:
        SourceError: it is missing, a directory, or not readable; the message says which.
    """
    if path == "-":
        yield OpenLog(sys.stdin.buffer, ends=True, changed_s=None)
        return
    try:
        stream = Path(path).open("rb")  # noqa: SIM115 - closed below
    except OSError as fault:
        raise source_error(path, fault) from None
    with stream:
        facts = os.fstat(stream.fileno())
        regular = stat.S_ISREG(facts.st_mode)
        yield OpenLog(stream, ends=not regular, changed_s=facts.st_mtime if regular else None)


def source_error(path: str, fault: OSError) -> SourceError:
    """Say in one line why a log cannot be read, and what to do."""
    if isinstance(fault, FileNotFoundError):
        return SourceError(f"{path}: no such file (give the server's log; 'phasetrack wait' waits for one to appear)")
    if isinstance(fault, IsADirectoryError):
        return SourceError(f"{path}: is a directory (give the log file in it)")
    if isinstance(fault, PermissionError):
        return SourceError(f"{path}: permission denied (read it as its owner, or pipe it: … | phasetrack status -)")
    return SourceError(f"{path}: {fault.strerror or fault}")
