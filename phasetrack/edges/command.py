"""A server started by us, whose stdout and stderr *are* the log file.

No pipe runs through phasetrack: the child holds the file itself (``O_APPEND``), in a session of its own, so that
killing phasetrack, or closing its terminal, takes nothing from the server, and every reader of the log sees what any
other does.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from phasetrack.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

# What a terminal sends to all that runs in it; the rest goes to the one that was started, as from a supervisor:
# SGLang's main process drains its requests on SIGTERM, which its ranks would not survive.
_TO_ALL = {signal.SIGINT, signal.SIGQUIT}


class Command:
    """One started server. Signals reach it once each; whoever starts it collects it by ``poll``."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        """Start it.

        Args:
            arguments: the command line.
            log: its stdout and stderr, appended to; made where it is missing.

        Raises:
            UsageError: the log cannot be written, or there is no such command.
        """
        self.arguments = tuple(arguments)
        self.log = log
        self.signalled: int | None = None  # the first signal that was passed on
        is_new = not log.exists()
        if not is_new and not log.is_file() and not log.is_dir():
            raise UsageError(f"--log {log}: is no regular file, and a log is read again while it is written")
        try:
            output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as fault:
            raise UsageError(f"--log {log}: cannot be written: {fault.strerror}") from None
        try:
            self.began_at = os.fstat(output).st_size  # what stood in the log before is none of ours
            self._process = self._start(output)
        except UsageError:
            if is_new:
                log.unlink(missing_ok=True)
            raise
        finally:
            os.close(output)

    def _start(self, output: int) -> subprocess.Popen[bytes]:
        name = self.arguments[0]
        try:
            return subprocess.Popen(  # noqa: S603 - the user's own command line, no shell
                self.arguments,
                stdin=subprocess.DEVNULL if os.isatty(0) else None,  # in its own session it could not read our terminal
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={"PYTHONUNBUFFERED": "1", **os.environ},
            )
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(f"run: {name}: no such command (give its path, or look at PATH)") from None
        except OSError as fault:
            raise UsageError(f"run: {name}: cannot be started: {fault.strerror}") from None

    @property
    def pid(self) -> int:
        """Of the process that was started."""
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit code once it has ended (negative: by a signal), and no zombie is left; None while it lives."""
        return self._process.poll()

    def pass_on(self, number: int) -> None:
        """Send it a signal that we were sent: Ctrl-C to all its processes, as a terminal would."""
        if self.signalled is None:
            self.signalled = number
        if self.poll() is not None:
            return
        try:
            if number in _TO_ALL:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)
        except ProcessLookupError:
            pass  # it has just ended by itself

    def stop(self) -> None:
        """Ask it to end, as ``kill`` does."""
        self.pass_on(signal.SIGTERM)


def log_name(stamp: str) -> Path:
    """A log's name where none was given: in the current folder, where it is found again, and ours alone."""
    return Path(f"phasetrack-run-{stamp}-{os.getpid()}.log")
