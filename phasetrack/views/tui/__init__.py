"""The screen of ``phasetrack tail`` and ``replay``: the only user of textual.

``run_screen`` is the way in. Importing this package is cheap; textual is imported when a screen is shown, after
the switches that it reads while it is imported have been set.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from phasetrack.views.tui.feed import Feed, Left, Options

# Read by textual at its import. Frames a second are for keys that repeat; news is paced by the feed.
_SWITCHES = {"TEXTUAL_ANIMATIONS": "none", "TEXTUAL_SMOOTH_SCROLL": "0", "TEXTUAL_FPS": "30"}
# A key that waits for the feed's thread, several times on its way to a picture, waits this long at most.
_SWITCH_S = 0.001


def prepare() -> None:
    """Set the switches; before textual is imported for the first time."""
    for name, value in _SWITCHES.items():
        os.environ.setdefault(name, value)
    sys.setswitchinterval(_SWITCH_S)


def run_screen(make_feed: Callable[[], Feed], options: Options) -> Left:
    """Show the screen until the user leaves it. The terminal is given back as it was, whatever happens.

    Args:
        make_feed: opens the log; called after the first picture, in the feed's own thread.
        options: what the user asked for.

    Returns:
        The exit code, the last news, and the error that ended it, if one did.
    """
    prepare()
    from phasetrack.errors import Exit
    from phasetrack.views.tui.app import Screen
    from phasetrack.views.tui.feed import Left
    from phasetrack.views.tui.tty import TtyDriver

    screen = Screen(make_feed, options, TtyDriver)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        code = screen.run(mouse=options.mouse)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    screen.spool.close()
    news = None if screen.desk.news.is_reading else screen.desk.news
    if screen.fault is not None:
        return Left(Exit.INTERNAL, news, screen.fault)
    return Left(int(code or 0), news)
