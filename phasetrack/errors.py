"""What can go wrong outside a log, and the exit codes.

Few types, told apart by who is wrong: the command line, a pattern file, a source. Nothing about a log's
content is an error. ``cli`` alone turns these into words on stderr and an exit code.
"""

from __future__ import annotations

import errno
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes, stable (README, "Exit codes")."""

    OK = 0
    FAILED = 1
    USAGE = 2
    STARTING = 3
    STUCK = 4
    OVER = 5
    BLIND = 6
    INTERNAL = 70
    DEADLINE = 124
    HANGUP = 129
    INTERRUPTED = 130
    TERMINATED = 143


class PhasetrackError(Exception):
    """Base of all errors that a user can mend. The message names the thing, the fact and the next step."""

    exit_code = Exit.USAGE


class UsageError(PhasetrackError):
    """The command line asks for something impossible."""


class PatternError(PhasetrackError):
    """A pattern file is wrong in form."""

    def __init__(self, path: str, item: str, fact: str, mend: str = "") -> None:
        """Name the file, the item in it, what is wrong, and how to mend it."""
        self.path, self.item, self.fact, self.mend = path, item, fact, mend
        where = f"{path}: {item}" if item else path
        super().__init__(f"{where}: {fact}" + (f" ({mend})" if mend else ""))


class SourceError(PhasetrackError):
    """A log cannot be observed: missing, unreadable, not a file."""

    exit_code = Exit.BLIND


class OutputError(PhasetrackError):
    """Standard output takes no more: it is closed, the disk is full, or its reader has gone, which is no fault."""

    def __init__(self, fault: OSError) -> None:
        """Say what the system said."""
        self.is_unread = isinstance(fault, BrokenPipeError)
        self.exit_code = Exit.OK if self.is_unread else Exit.USAGE
        why = "it is closed" if fault.errno == errno.EBADF else fault.strerror
        super().__init__(f"standard output cannot be written: {why}")


class HistoryError(PhasetrackError):
    """The history of earlier boots cannot be read or written. Tracking never needs it."""

    exit_code = Exit.BLIND
