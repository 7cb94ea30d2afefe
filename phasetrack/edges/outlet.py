"""Where answers go: standard output and standard error, closed, full or unread, and files.

A result file is there whole or not at all: it is written beside its place and moved there. What cannot be replaced
by a file (a device, a named pipe) is written into, and a link stays a link.
"""

from __future__ import annotations

import io
import os
import select
import stat
import sys
from contextlib import contextmanager, suppress
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from phasetrack.errors import OutputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, BinaryIO


# --- the standard streams ---------------------------------------------------------------------------


class Outlet(io.RawIOBase):
    """A standard stream. The first write that fails is told, if at all; what comes after it goes nowhere."""

    def __init__(self, fd: int, *, tells: bool) -> None:
        """Write to a descriptor; with ``tells``, a write that fails raises ``OutputError``."""
        super().__init__()
        self._fd = fd
        self._tells = tells
        self.is_lost = False

    def writable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """The descriptor."""
        return self._fd

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._fd)

    def write(self, data: Any) -> int:
        """Write what the stream takes; wait for one that takes nothing now."""
        while not self.is_lost:
            try:
                return os.write(self._fd, data)
            except BlockingIOError:
                select.select([], [self._fd], [])
            except OSError as fault:
                self.is_lost = True
                if self._tells:
                    raise OutputError(fault) from None
        return len(data)


def open_streams() -> None:
    """Make standard streams that are closed, full or unread no error of ours.

    A closed one is held by something that can be neither read nor written: else the next file opened, a log perhaps,
    would be taken for it.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if fd else os.O_WRONLY)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115 - for as long as we live
    if sys.stdout is sys.__stdout__:
        sys.stdout = _stream(1, sys.stdout, tells=True)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(2, sys.stderr, tells=False)


def _stream(fd: int, old: io.TextIOWrapper | None, *, tells: bool) -> io.TextIOWrapper:
    """A stream like the one that Python made, never over a character that the terminal does not have."""
    raw = Outlet(fd, tells=tells)
    encoding = "utf-8" if old is None else old.encoding
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors="replace", line_buffering=fd == 2 or raw.isatty())


def is_lost(stream: object) -> bool:
    """Whether a write to a standard stream has failed."""
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return isinstance(raw, Outlet) and raw.is_lost


# --- result files -----------------------------------------------------------------------------------


@contextmanager
def result_file(target: str | Path, inputs: Iterable[str | Path] = ()) -> Iterator[BinaryIO]:
    """Open a file for a result. Where anything goes wrong, what stood there stays.

    Args:
        target: its name; ``-`` is standard output.
        inputs: what the command reads: never written over, under whatever name.

    Raises:
        UsageError: it cannot be written, or is one of the inputs.
        OutputError: standard output cannot be written.
    """
    if str(target) == "-":
        yield sys.stdout.buffer
        return
    if not str(target):
        raise UsageError("the name of the file to write is empty")
    refuse_inputs(target, inputs)
    try:
        if _is_replaceable(target):
            with moved_there(os.path.realpath(target)) as file:
                yield file
        else:
            with Path(target).open("wb") as file:
                yield file
    except OSError as fault:
        raise UsageError(f"{target}: cannot be written: {fault.strerror or fault}") from None


def refuse_inputs(target: str | Path, inputs: Iterable[str | Path]) -> None:
    """Refuse to write over a file that is read.

    Raises:
        UsageError: ``target`` is one of them, be it by a link.
    """
    there = _regular(target)
    for one in inputs if there is not None else ():
        other = _regular(0 if str(one) == "-" else one)
        if other is not None and os.path.samestat(there, other):  # type: ignore[arg-type]  # not None here
            raise UsageError(f"{target}: is read by this command, and would be written over (give another name)")


def refuse_same(*paths: str | Path) -> None:
    """Refuse names of which two mean one file, which may not exist yet.

    Raises:
        UsageError: they do.
    """
    known = [(path, os.path.realpath(path), _regular(path)) for path in paths]
    for (path, real, there), (_, other, other_there) in combinations(known, 2):
        is_one = there is not None and other_there is not None and os.path.samestat(there, other_there)
        if is_one or real == other:
            raise UsageError(f"{path}: two different things would be written into it (give another name)")


def _regular(path: str | Path | int) -> os.stat_result | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - a descriptor perhaps
    except (OSError, ValueError):
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _is_replaceable(target: str | Path) -> bool:
    """Whether a new file may be moved to this name: nothing stands there, or a file, and it is no descriptor's."""
    if os.path.abspath(target).startswith(("/dev/", "/proc/")):  # noqa: PTH100 - links stay
        return False
    return _regular(target) is not None or not os.path.exists(target)  # noqa: PTH110 - beside os.path


@contextmanager
def moved_there(target: str) -> Iterator[BinaryIO]:
    """Open a file that takes a regular file's place when it is whole, with its rights and owner; nothing else stays.

    Raises:
        OSError: it cannot be written.
    """
    part = Path(target).with_name(f".phasetrack-{os.getpid()}.part")
    old = _regular(target)
    try:
        with part.open("xb") as file:
            if old is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
                with suppress(OSError):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
            yield file
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
