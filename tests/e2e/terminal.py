"""A real terminal for tests: a pty with a process behind it and an emulator (pyte) that shows what a user sees.

Nothing sleeps: ``until`` reads what the process writes until a condition on the screen holds.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
from typing import TYPE_CHECKING

import pyte

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 120.0
# What pyte does not know: the kitty keyboard protocol, queries, titles on a stack. It has one screen only, so
# that turning to the other one empties it.
_UNKNOWN = re.compile(rb"\x1b\[[<>=][0-9;]*u|\x1b\[\?[0-9;]*\$p|\x1b\[2[23];0t")
_SCREENS = re.compile(rb"(\x1b\[\?1049[hl])")


class Terminal:
    """A pty of a size, with a command as the leader of its session."""

    def __init__(self, command: list[str], *, columns: int = 80, rows: int = 24, **environment: str) -> None:
        """Start the command."""
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.written = b""
        self.master, slave = os.openpty()
        self.resize(columns, rows)
        self.attributes = termios.tcgetattr(slave)
        env = {
            k: v for k, v in os.environ.items() if not k.startswith(("NO_COLOR", "SSH_", "TEXTUAL", "COLUMNS", "LINES"))
        }
        env |= {
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "PYTHONWARNINGS": "ignore",
        } | environment
        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=env,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - the only way to own a terminal
        )
        self._slave = slave

    def resize(self, columns: int, rows: int) -> None:
        """Change the size, as a window does."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def send(self, keys: str) -> None:
        """Type."""
        os.write(self.master, keys.encode())

    @property
    def text(self) -> str:
        """What stands on the screen."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def until(self, condition: Callable[[Terminal], bool] | str, patience_s: float = PATIENCE_S) -> None:
        """Read until a text stands on the screen, or a condition holds."""
        wanted = condition if callable(condition) else lambda self: condition in self.text
        end = time.monotonic() + patience_s
        while not wanted(self):
            left = end - time.monotonic()
            assert left > 0, f"never came: {condition}\n{self.text}"
            if not self._read(min(left, 0.5)) and self.process.poll() is not None and not wanted(self):
                raise AssertionError(f"ended with {self.process.returncode} before: {condition}\n{self.text}")

    def _read(self, wait_s: float) -> bool:
        if not select.select([self.master], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.written += data
        for piece in _SCREENS.split(_UNKNOWN.sub(b"", data)):
            if _SCREENS.fullmatch(piece):
                self.screen.reset()
            else:
                self._stream.feed(piece)
        return bool(data)

    def exit_code(self, patience_s: float = PATIENCE_S) -> int:
        """Wait for the end; whatever it writes on its way is read."""
        end = time.monotonic() + patience_s
        while self.process.poll() is None:
            assert time.monotonic() < end, f"does not end\n{self.text}"
            self._read(0.05)
        while self._read(0):
            pass
        return self.process.returncode

    def hang_up(self) -> None:
        """The line drops: the terminal is gone for good."""
        os.close(self._slave)
        os.close(self.master)
        self.master = self._slave = -1

    @property
    def is_restored(self) -> bool:
        """Whether the terminal is as it was: its settings, its main screen, its cursor, its mouse."""
        modes = {}
        for mode in (b"1049", b"25", b"1000", b"1003", b"1006", b"2004", b"1004"):
            on, off = self.written.rfind(b"\x1b[?" + mode + b"h"), self.written.rfind(b"\x1b[?" + mode + b"l")
            modes[mode] = on > off
        shown = modes.pop(b"25") or b"\x1b[?25l" not in self.written
        return termios.tcgetattr(self._slave) == self.attributes and shown and not any(modes.values())

    def close(self) -> None:
        """End whatever still runs."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for fd in (self.master, self._slave):
            if fd >= 0:
                os.close(fd)
