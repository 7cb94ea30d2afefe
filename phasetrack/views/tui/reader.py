"""A text that is longer than the screen: scrolled by the usual keys. Why, boots and help are such texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.views.tui.acts import Back, Draw, moved
from phasetrack.views.tui.home import keys
from phasetrack.views.tui.look import BLANK

if TYPE_CHECKING:
    from phasetrack.views.tui.acts import Act, Size
    from phasetrack.views.tui.feed import News
    from phasetrack.views.tui.look import Line, Look

KEYS = (("j k", "scroll"), ("esc", "back"), ("?", "help"), ("q", "quit"))


class Reader:
    """Holds how far a text is scrolled."""

    def __init__(self, look: Look) -> None:
        """Begin at the top."""
        self.look = look
        self.top = 0
        self._length = 0

    def text(self, news: News, width: int) -> list[Line]:
        """The whole text; each kind of reader has its own."""
        raise NotImplementedError

    def lines(self, news: News, size: Size, said: str) -> list[Line]:
        """Draw."""
        whole = self.text(news, size.width)
        room = max(size.height - 1, 1)
        self._length = len(whole)
        self.top = min(self.top, max(len(whole) - room, 0))
        page = whole[self.top : self.top + room]
        below = len(whole) - self.top - len(page)
        if below > 0:
            page[-1] = self.look.line(f"{self.look.down} {below + 1} more lines", "dim")
        return [*page, *[BLANK] * (room - len(page)), keys(KEYS, size.width, self.look, said=said)]

    def press(self, key: str, news: News, size: Size) -> Act | None:
        """Take a key."""
        del news
        page = max(size.height - 1, 1)
        top = moved(key, page, self.top, self._length - page + 1)
        if top is not None:
            self.top = top
            return Draw()
        return Back() if key == "enter" else None

    def choose(self, item: int, news: News) -> Act | None:
        """Nothing to choose."""
        del item, news
        return None

    def answer(self, text: str, news: News, size: Size) -> Act | None:
        """Nothing is asked here."""
        del text, news, size
        return None
