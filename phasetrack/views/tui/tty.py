"""The terminal itself: where keys come from, where the picture goes, and a terminal that goes away.

Textual draws on standard error and reads keys from standard input. Both may be something else here: a log
comes in by ``-``, errors go to a file. Then ``/dev/tty`` is used for them. And a terminal can vanish (ssh
drops): a write that fails for that reason must not end in a traceback or block the writer's queue for ever.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, TextIO

from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Resize
from textual.geometry import Size

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TTY = "/dev/tty"
# Textual waits so long for a key; a wait that was interrupted by one is shorter.
_WAIT_S = 0.09
_SAVE_TITLE, _RESTORE_TITLE = "\x1b[22;0t", "\x1b[23;0t"


class Surface:
    """A file to draw on that swallows everything once its terminal is gone."""

    def __init__(self, file: TextIO) -> None:
        """Draw on ``file``."""
        self._file = file
        self.is_gone = False

    def write(self, text: str) -> None:
        """Write, or not."""
        self._try(lambda: self._file.write(text))

    def flush(self) -> None:
        """Flush, or not."""
        self._try(self._file.flush)

    def fileno(self) -> int:
        """The descriptor."""
        return self._file.fileno()

    def isatty(self) -> bool:
        """It is what it is for."""
        return True

    def _try(self, act: Callable[[], object]) -> None:
        if self.is_gone:
            return
        try:
            act()
        except (OSError, ValueError):
            self.is_gone = True


class Stop(threading.Event):
    """Tells the thread that reads keys to end; and lets it sleep until there is a key.

    Textual's loop asks for it and then waits a tenth of a second for a key, over and over: a fifth of all that a quiet
    screen costs. Once some such waits have passed, so that a lone escape is known for one, the thread waits here.
    """

    def __init__(self) -> None:
        """Let nobody sleep yet."""
        super().__init__()
        self._sleeper: threading.Thread | None = None
        self._keys = -1
        self._asked_s = self._idle_s = 0.0
        self._woken, self._wake = os.pipe()

    def let_sleep(self, keys: int) -> None:
        """Let the calling thread sleep until ``keys`` can be read."""
        self._sleeper, self._keys, self._idle_s = threading.current_thread(), keys, 0.0

    def is_set(self) -> bool:
        """Whether to end; only the thread that may sleep does so first."""
        if threading.current_thread() is self._sleeper and not super().is_set():
            now = time.monotonic()
            took_s, self._asked_s = now - self._asked_s, now
            self._idle_s = self._idle_s + took_s if _WAIT_S < took_s < 2 * _WAIT_S else 0.0
            if self._idle_s > 2 * ESCAPE_DELAY + _WAIT_S:
                select.select([self._keys, self._woken], [], [])
                self._idle_s, self._asked_s = 0.0, time.monotonic()
        return super().is_set()

    def set(self) -> None:
        """End it."""
        super().set()
        os.write(self._wake, b"x")

    def clear(self) -> None:
        """Let another thread read keys."""
        while select.select([self._woken], [], [], 0)[0]:
            os.read(self._woken, 64)
        super().clear()


class TtyDriver(LinuxDriver):
    """Textual's driver on the controlling terminal."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Open what standard input and error are not."""
        super().__init__(*args, **kwargs)
        out = sys.__stderr__ if _is_tty(sys.__stderr__) else open(TTY, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - lives as long as the screen
        assert out is not None  # noqa: S101
        self._surface = Surface(out)
        self._file = self._surface  # type: ignore[assignment] # all that Textual calls is there
        if not _is_tty(sys.__stdin__):
            self.fileno = os.open(TTY, os.O_RDWR | os.O_NOCTTY)
            self.input_tty = True

        self._stop = self.exit_event = Stop()
        self._is_taken = False

    @property
    def backlog(self) -> int:
        """Writes that the terminal has not taken yet: a slow line is not given more pictures."""
        queue = getattr(self._writer_thread, "_queue", None)
        return 0 if queue is None else int(queue.qsize())

    def _get_terminal_size(self) -> tuple[int, int]:
        """Ask the terminal that is drawn on; standard output may be a file."""
        for descriptor in (self._surface.fileno(), self.fileno):
            try:
                width, height = os.get_terminal_size(descriptor)
            except (OSError, ValueError):
                continue
            if width > 0 and height > 0:
                return width, height
        return super()._get_terminal_size()

    def start_application_mode(self) -> None:
        """Take the terminal."""
        super().start_application_mode()  # type: ignore[no-untyped-call] # Textual's
        loop = asyncio.get_running_loop()
        signal.signal(signal.SIGWINCH, lambda *_: loop.call_soon_threadsafe(self._resize))
        self._is_taken = True
        self.write(_SAVE_TITLE)

    def _resize(self) -> None:
        """Tell the size of now. Textual's own handler reads it, and one that is interrupted tells the old one last."""
        if not getattr(self, "_in_band_window_resize", False):
            size = Size(*self._get_terminal_size())
            self._app.post_message(Resize(size, size))

    def stop_application_mode(self) -> None:
        """Give it back as it was."""
        self._is_taken = False
        self.write(_RESTORE_TITLE)
        super().stop_application_mode()

    def _sigcont_application(self, *_: object) -> None:
        """Go on after a stop; where it came by SIGSTOP, which cannot be caught, the terminal was not given back.

        Taking it a second time would then save the settings of a raw terminal as those to be restored.
        """
        if self._is_taken and self._auto_restart:
            self._must_signal_resume = True
            self.suspend_application_mode()
        super()._sigcont_application()

    def _run_input_thread(self) -> None:
        """Read keys until the end; a terminal that cannot be read any more is a hang-up."""
        self._stop.let_sleep(self.fileno)
        try:
            self.run_input_thread()
        except OSError:
            self._app.call_later(self._app.exit, 129)
        except Exception as fault:  # noqa: BLE001 - a thread's error reaches nobody by itself
            self._app.call_later(self._app._handle_exception, fault)  # noqa: SLF001 - where Textual's own errors go


def _is_tty(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False
