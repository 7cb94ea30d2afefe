"""All pictures of the screen and the way between them, without a terminal.

Keys, clicks and news come in; lines come out, and now and then an ``Act`` that only the app can do: leave or copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.model import Outcome, Snapshot, Verdict, VerdictState
from phasetrack.views.tui.acts import Ask, Back, Copy, OpenLog, Quit, Say, Show, Steer
from phasetrack.views.tui.feed import News
from phasetrack.views.tui.header import title
from phasetrack.views.tui.home import Home
from phasetrack.views.tui.look import BLANK, Line
from phasetrack.views.tui.replay import GoTo, OpenBoot, ToByte
from phasetrack.views.tui.scrubber import GO_TO, framed, steer

if TYPE_CHECKING:
    from collections.abc import Callable

    from phasetrack.views.tui.acts import Act, Size, View
    from phasetrack.views.tui.feed import Pages
    from phasetrack.views.tui.logview import LogView
    from phasetrack.views.tui.look import Look

_VIEWS = {
    "m": "home", "l": "log", "r": "ranks", "w": "why", "b": "boots", "B": "boots", "p": "postmortem", "?": "help",
    "f1": "help",
}  # fmt: skip
NOTHING = News(Snapshot(None, Outcome.NONE, Verdict(VerdictState.WAITING, "")), unread_bytes=0)


class Desk:
    """Holds what is chosen and where one has come from."""

    def __init__(self, look: Look, path: str) -> None:
        """Begin on the main screen, before anything was read."""
        self.look = look
        self.path = path
        self.news = NOTHING
        self.said = ""  # the answer to the last key
        self.asked: str | None = None  # what is being asked for
        self.typed = ""
        self.home = Home(look, path)
        self._views: dict[str, View] = {"home": self.home}
        self._pager: LogView | None = None
        self._log: tuple[Pages, Callable[[], None]] | None = None
        self._trail = ["home"]

    @property
    def view(self) -> View:
        """The picture that is shown."""
        name = self._trail[-1]
        if name == "log":
            return self.pager
        if name not in self._views:
            self._views[name] = _other_view(name, self.look)
        return self._views[name]

    @property
    def pager(self) -> LogView:
        """The log view; made when it is first looked at."""
        if self._pager is None:
            from phasetrack.views.tui.logview import LogView

            self._pager = LogView(self.look)
            if self._log is not None:
                self._pager.open(*self._log)
        return self._pager

    def prepare(self) -> None:
        """Load the code of the views before a key asks for them. For the feed's thread."""
        import phasetrack.views.tui.boots
        import phasetrack.views.tui.help
        import phasetrack.views.tui.logview
        import phasetrack.views.tui.ranks
        import phasetrack.views.tui.why  # noqa: F401

    def open_log(self, pages: Pages, poke: Callable[[], None]) -> None:
        """Take the log's bytes; ``poke`` asks for a new picture. For the feed's thread."""
        self._log = pages, poke
        if self._pager is not None:
            self._pager.open(pages, poke)

    def picture(self, size: Size) -> list[Line]:
        """Exactly as many lines as the screen has."""
        lines = framed(lambda inner: self.view.lines(self.news, inner, self.said), self.news, size, self.look)
        lines = [*lines, *[BLANK] * (size.height - len(lines))][: size.height]
        return lines if self.asked is None else [*lines[:-1], self._entry(size.width)]

    def _entry(self, width: int) -> Line:
        text = self.look.cut_front(self.typed, width - len(self.asked or "") - 1)
        return Line((self.look.span(self.asked or "", "bold"), self.look.span(text), self.look.span(" ", "match")))

    def title(self) -> str:
        """The terminal's title."""
        return title(self.news.known, self.path, self.look, reading=self.news.is_reading)

    def press(self, key: str, size: Size) -> Act | None:
        """Give a key to the view, then to those that work everywhere; answer what is left for the app to do."""
        self.said = ""
        if self.asked is not None:
            return self._do(self._type(key, size))
        return self._do(self._answer(key, size) or self._everywhere(key))

    def click(self, line: Line, key: str, size: Size) -> Act | None:
        """A click on a key's name is that key; on an item it chooses it."""
        if key:
            return self.press(key, size)
        self.said = ""
        return None if line.item is None else self._do(self.view.choose(line.item, self.news))

    def _answer(self, key: str, size: Size) -> Act | None:
        """A replay's keys come first, but for the log's: there the arrows and the space bar scroll."""
        if self.news.replay is None:
            return self.view.press(key, self.news, size)
        if self._trail[-1] == "log":
            return self.view.press(key, self.news, size) or steer(key)
        return steer(key) or self.view.press(key, self.news, size)

    def _type(self, key: str, size: Size) -> Act | None:
        """Take a key into the text that is asked for."""
        if key == "enter" and self.asked == GO_TO:
            text, self.asked = self.typed, None
            return Steer(GoTo(text)) if text.strip() else None
        if key == "enter":
            text, self.asked = self.typed, None
            return self.view.answer(text, self.news, size)
        if key == "escape" or (key == "backspace" and not self.typed):
            self.asked = None
        elif key == "backspace":
            self.typed = self.typed[:-1]
        elif key == "ctrl+u":
            self.typed = ""
        elif key == "ctrl+w":
            self.typed = self.typed.rstrip().rpartition(" ")[0]
        elif len(key) == 1:
            self.typed += key
        return None

    def paste(self, text: str) -> None:
        """Take a pasted text where one is asked for; elsewhere it would be pressed as keys."""
        if self.asked is not None:
            self.typed += text.partition("\n")[0]

    def _everywhere(self, key: str) -> Act | None:
        if key == "q":
            return Quit()
        if key in {"escape", "backspace"}:
            return Back()
        wanted = _VIEWS.get(key)
        if wanted is None:
            return None
        return Back() if wanted == self._trail[-1] else Show(wanted)

    def _do(self, act: Act | None) -> Act | None:
        match act:
            case Quit() | Copy():
                return act
            case Steer(wish):
                self._trail = ["home"] if isinstance(wish, OpenBoot) else self._trail
                return act
            case Ask(prompt):
                self.asked, self.typed = prompt, ""
            case Back():
                self._trail = self._trail[:-1] or ["home"]
            case Show(view):
                self._go(view)
            case OpenLog(offset):
                self.pager.go(offset)
                self._go("log")
                if self.news.replay is not None and offset is not None and offset >= self.news.log_bytes:
                    return Steer(ToByte(offset))
            case Say(text):
                self.said = text
            case _:
                pass
        return None

    def _go(self, view: str) -> None:
        """A view stands in the trail once: going back never goes in circles."""
        self._trail = ["home"] if view == "home" else [*(name for name in self._trail if name != view), view]


def _other_view(name: str, look: Look) -> View:
    """A view that not everybody opens: the first picture does not wait for its code."""
    from phasetrack.views.tui.boots import Boots
    from phasetrack.views.tui.help import Help
    from phasetrack.views.tui.postmortem import Postmortem
    from phasetrack.views.tui.ranks import Ranks
    from phasetrack.views.tui.why import Why

    makers: dict[str, Callable[[Look], View]] = {
        "ranks": Ranks, "why": Why, "boots": Boots, "postmortem": Postmortem, "help": Help,
    }  # fmt: skip
    return makers[name](look)
