"""The boots of one file, the newest first: what became of each, and the way to its screen and to its first line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrack.core.model import Outcome
from phasetrack.views.rows import fate
from phasetrack.views.tui.acts import Draw, OpenLog, Say, Steer, moved
from phasetrack.views.tui.home import keys
from phasetrack.views.tui.look import BLANK, Line
from phasetrack.views.tui.replay import OpenBoot
from phasetrack.views.tui.rows import window
from phasetrack.views.words import duration, iso

if TYPE_CHECKING:
    from phasetrack.core.model import BootSummary, Snapshot
    from phasetrack.views.tui.acts import Act, Size
    from phasetrack.views.tui.feed import News
    from phasetrack.views.tui.look import Look

KEYS = (("j k", "choose"), ("enter", "open"), ("l", "its log"), ("esc", "back"), ("?", "help"), ("q", "quit"))
_TONES = {Outcome.READY: "good", Outcome.FAILED: "bad", Outcome.STARTING: "bold"}


def _ordered(news: News) -> list[BootSummary]:
    """All boots of the file; of a replay those that came later, too: the list is a way through it."""
    known = news.known if news.replay is None else news.replay.truth
    return sorted(known.boots, key=lambda boot: -boot.boot)


@dataclass(slots=True)
class Boots:
    """The view."""

    look: Look
    selected: int = 0

    def lines(self, news: News, size: Size, said: str) -> list[Line]:
        """Draw."""
        known = news.known
        boots = _ordered(news)
        self.selected = min(self.selected, max(len(boots) - 1, 0))
        head = [self.look.line(f"{len(boots)} boots in this log" if len(boots) != 1 else "1 boot in this log", "bold")]
        rows = [
            self._row(known, boot, number, size.width)
            for number, boot in enumerate(boots)
            if abs(number - self.selected) <= size.height
        ]
        room = size.height - 2
        shown = window(rows, room, self.selected, self.look)
        return [*head, *shown, *[BLANK] * (room - len(shown)), keys(KEYS, size.width, self.look, said=said)]

    def _row(self, known: Snapshot, boot: BootSummary, number: int, width: int) -> Line:
        shown = "shown" if boot.boot == known.boot else ""
        took = "" if boot.startup_s is None else f"after {duration(boot.startup_s)}"
        started = iso(boot.started_at_s, known.zone) or "time unknown"
        cause = (boot.failure_id or "").rpartition(".")[2].replace("_", " ")
        text = f"{boot.boot:>4}  {started:<19}  {fate(known, boot):<10}  {took or cause:<22}  {boot.server} {shown}"
        tone = _TONES.get(boot.outcome, "")
        return Line((self.look.span(self.look.cut(text, width), tone),), number, number == self.selected)

    def press(self, key: str, news: News, size: Size) -> Act | None:
        """Take a key."""
        boots = _ordered(news)
        at = moved(key, size.height - 2, self.selected, len(boots)) if key != "b" else None
        if at is not None:
            self.selected = at
            return Draw()
        if key not in {"enter", "l"}:
            return None
        if not boots:
            return Say("no boot yet")
        return OpenLog(boots[self.selected].offset) if key == "l" else self._open(boots)

    def _open(self, boots: list[BootSummary]) -> Act:
        return Steer(OpenBoot(boots[self.selected].boot if self.selected else None))

    def choose(self, item: int, news: News) -> Act | None:
        """A click selects, a second one opens."""
        boots = _ordered(news)
        if item == self.selected and boots:
            return self._open(boots)
        self.selected = item
        return Draw()

    def answer(self, text: str, news: News, size: Size) -> Act | None:
        """Nothing is asked here."""
        del text, news, size
        return None
