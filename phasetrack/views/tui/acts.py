"""What a key can lead to, and what every view of the screen can do.

A view is plain data and pure functions around it: it draws lines and answers keys with an ``Act``. Only the
app knows Textual, threads and the terminal, so each view is tested by pressing keys and reading lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from phasetrack.views.tui.feed import News
    from phasetrack.views.tui.look import Line
    from phasetrack.views.tui.replay import Wish


@dataclass(frozen=True, slots=True)
class Size:
    """Of the screen, in cells."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Quit:
    """Leave the screen."""

    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class Back:
    """Go back to the view before."""


@dataclass(frozen=True, slots=True)
class Show:
    """Go to another view."""

    view: str


@dataclass(frozen=True, slots=True)
class OpenLog:
    """Go to a place of the log; None: where it was left, or its end."""

    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """Put a text on the clipboard of the terminal's user."""

    text: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for a line of text; the view gets it by ``answer``."""

    prompt: str


@dataclass(frozen=True, slots=True)
class Say:
    """Tell something in the key line until the next key."""

    text: str


@dataclass(frozen=True, slots=True)
class Steer:
    """Ask the feed for something: another moment of a replay, an earlier boot."""

    wish: Wish


@dataclass(frozen=True, slots=True)
class Draw:
    """The key has changed what is shown, and nothing else."""


Act: TypeAlias = "Quit | Back | Show | OpenLog | Copy | Ask | Say | Steer | Draw"


class View(Protocol):
    """One of the app's pictures."""

    def lines(self, news: News, size: Size, said: str) -> list[Line]:
        """Draw exactly ``size.height`` lines; ``said`` stands in for the key line where it is not empty."""

    def press(self, key: str, news: News, size: Size) -> Act | None:
        """Take a key; None: not one of this view's."""

    def choose(self, item: int, news: News) -> Act | None:
        """Take a click on an item."""

    def answer(self, text: str, news: News, size: Size) -> Act | None:
        """Take what was asked for."""


DOWN = frozenset({"j", "down"})
UP = frozenset({"k", "up"})
TOP = frozenset({"g", "home"})
BOTTOM = frozenset({"G", "end"})
HALF_DOWN = frozenset({"ctrl+d"})
HALF_UP = frozenset({"ctrl+u"})
PAGE_DOWN = frozenset({"pagedown", " ", "ctrl+f"})
PAGE_UP = frozenset({"pageup", "b", "ctrl+b"})
WHEEL_ROWS = 3


def steps(key: str, page: int) -> int | None:
    """Rows that a key moves by, downward; None: the key moves nothing by rows."""
    half = max(page // 2, 1)
    moves = (
        (DOWN, 1), (UP, -1), (HALF_DOWN, half), (HALF_UP, -half), (PAGE_DOWN, max(page - 1, 1)),
        (PAGE_UP, -max(page - 1, 1)), (frozenset({"wheel_down"}), WHEEL_ROWS), (frozenset({"wheel_up"}), -WHEEL_ROWS),
    )  # fmt: skip
    return next((rows for keys, rows in moves if key in keys), None)


def moved(key: str, page: int, at: int, count: int) -> int | None:
    """Where in a list of ``count`` a key goes to from ``at``; None: it goes nowhere."""
    move = steps(key, page)
    if key in TOP | BOTTOM:
        move = -count if key in TOP else count
    return None if move is None else min(max(at + move, 0), max(count - 1, 0))
