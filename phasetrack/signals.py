"""How we end on a signal: at once while nothing is held, else by an exception that lets everything go.

Imports next to nothing: it is there before anything else is imported, which takes the longest part of a short command.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# How soon an interrupt that a destructor swallowed comes again.
_AGAIN_S = 0.01

_received: list[int] = []  # the signal that ends us


def _take(handler: Callable[[int, FrameType | None], object] | int) -> None:
    for number in _NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def leave_at_once() -> None:
    """From now on a signal ends us where we stand: nothing is held yet, and a traceback would tell nobody anything."""
    _take(lambda number, _: os._exit(128 + number))


def raise_interrupts() -> None:
    """From now on a signal raises KeyboardInterrupt in the main thread, until it gets through."""
    _take(_interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del frame
    if not _received:
        _received.append(number)
        _end_quietly()
    raise KeyboardInterrupt


def _end_quietly() -> None:
    """What is raised in a destructor is swallowed by Python, and told on stderr: come again instead, without a word.

    What else is told by destructors from now on is of things that were half made when the signal came.
    """
    import warnings

    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _interrupt)

    def hook(swallowed: sys.UnraisableHookArgs) -> None:
        if issubclass(swallowed.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)

    sys.unraisablehook = hook


def end(code: int | str | None) -> NoReturn:
    """Exit; after a signal with its code, and at once: whoever is told to end does not wait for threads."""
    if not _received:
        _take(signal.SIG_DFL)  # the answer is out: who ends us now takes nothing from it
        gc.freeze()  # Python looks for garbage once more, 19 ms: all goes with the process
        sys.exit(code)
    _take(signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        sys.stdout.flush()
    finally:
        os._exit(128 + _received[0])
