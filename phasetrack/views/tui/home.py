"""The main screen: ``News``, a size and a look in, styled lines out.

From top to bottom: whose log, the outcome, the verdict, the estimate; the phases; the log's tail; the keys.
Where the height does not suffice the tail shrinks first, then the table shows a window around the current
phase. A failure takes the screen for its message and its first fatal lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from phasetrack.core.model import Outcome
from phasetrack.views.tui import header, scrubber
from phasetrack.views.tui.acts import BOTTOM, TOP, Copy, Draw, OpenLog, Say, Size, Steer, steps
from phasetrack.views.tui.endings import compact_phases, failure_lines, ready_lines
from phasetrack.views.tui.look import BLANK, Line, Span
from phasetrack.views.tui.replay import OpenBoot
from phasetrack.views.tui.rows import focus, table, window
from phasetrack.views.words import size as bytes_of

if TYPE_CHECKING:
    from phasetrack.core.model import Snapshot
    from phasetrack.views.tui.acts import Act
    from phasetrack.views.tui.feed import News
    from phasetrack.views.tui.look import Look

TAIL_ROWS = 8
_ROOMY = 20  # rows from which blank lines are affordable
# [2026-11-30 15:44:43 TP0] Load weight begin.
_STAMP = re.compile(r"\[\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d[^\]]{0,40})\] ")
_UNCUT = 1000
_CAUSE_ROWS = 12  # of a failure's screen, before the table of phases gives way
_STEADY = 14  # rows of the table and the log together from which one may stay blank
# A page of phases is no page: these keys mean something on every screen.
_ELSEWHERE = {"b", " "}
# The way out is shown however narrow the screen is.
_KEPT_KEYS = 2
KEYS = (("enter", "its log"), ("l", "log"), ("r", "ranks"), ("w", "why"), ("?", "help"), ("q", "quit"))


def home(
    news: News,
    size: Size,
    look: Look,
    *,
    path: str,
    selected: int | None = None,
    tail_rows: int = TAIL_ROWS,
    said: str = "",
    named: tuple[tuple[str, str], ...] = KEYS,
) -> list[Line]:
    """The whole main screen, exactly ``size.height`` lines.

    Args:
        news: what there is to show.
        size: of the screen.
        look: glyphs.
        path: the log's name.
        selected: the row that the keys have chosen.
        tail_rows: at most so many lines of the log.
        said: an answer to the last key, instead of the key line.
        named: the keys of the key line.
    """
    foot = [keys(named, size.width, look, said=said)] if size.height >= 8 else []
    head = _head(news, size, look, path)
    room = size.height - len(head) - len(foot)
    body = _body(news, Size(size.width, room), look, selected, tail_rows)
    lines = [*head, *body][: size.height - len(foot)]
    return [*lines, *[BLANK] * (size.height - len(foot) - len(lines)), *foot]


def _head(news: News, size: Size, look: Look, path: str) -> list[Line]:
    known, width, roomy = news.known, size.width, size.height >= _ROOMY
    lines = [*header.identity(news, path, width, look, rows=2 if roomy else 1), *([BLANK] if roomy else [])]
    lines += header.outcome(news, width, 2 if size.height >= 14 else 1, look)
    if news.is_reading:
        return [*lines, BLANK] if roomy else lines
    if known.outcome is Outcome.READY:
        if known.verdict.state != "ready" or header.is_worker(known):
            lines += header.verdict(known, width, 2, look)
        lines += ready_lines(known, width, look)
    elif known.outcome is not Outcome.FAILED:
        lines += header.verdict(known, width, 3 if size.height >= 14 else 2, look)
        lines += header.expectation(known, width, look)
    lines += header.notes(news, width, look, warnings=size.height >= 14)[:3]
    return [*lines, BLANK] if roomy else lines


def _body(news: News, size: Size, look: Look, selected: int | None, tail_rows: int) -> list[Line]:
    known = news.known
    if news.is_reading:
        return _with_tail([], news, size, look, tail_rows)
    if known.outcome is Outcome.FAILED:
        return _failed(news, size, look, selected, tail_rows)
    lines = table(known, size.width, look, selected=selected, steady=size.height >= _STEADY)
    if known.outcome is Outcome.NONE and not known.phases:
        lines = []
    return _with_tail(lines, news, size, look, tail_rows, at=focus(known) if selected is None else selected)


def _failed(news: News, size: Size, look: Look, selected: int | None, tail_rows: int) -> list[Line]:
    """The cause first, then how far it came: as a table where there is room, and the log where there is more."""
    known = news.known
    rows = table(known, size.width, look, selected=selected)
    spare = size.height - len(rows) - 1
    whole = failure_lines(known, size.width, _UNCUT, look)
    if len(whole) <= spare:
        return _with_tail([*whole, BLANK, *rows], news, size, look, tail_rows, least=0)
    if spare >= _CAUSE_ROWS:
        return [*failure_lines(known, size.width, spare, look), BLANK, *rows]
    phases = compact_phases(known, size.width, 2 if size.height >= _CAUSE_ROWS else 1, look)
    if selected is not None:
        phases = window(rows, 3, selected, look)
    return [*failure_lines(known, size.width, size.height - len(phases), look), *phases]


def _with_tail(
    lines: list[Line], news: News, size: Size, look: Look, tail_rows: int, *, at: int = 0, least: int = 3
) -> list[Line]:
    """The table, and below it what the height leaves for the log; the log stands at the bottom."""
    spare = size.height - len(lines)
    least = min(least, size.height // 3) if tail_rows else 0
    tail = min(tail_rows + 1, max(spare, least), len(news.tail) + 1) if tail_rows else 0
    tail = tail if tail > 1 or least else 0
    shown = window(lines, size.height - tail, at, look)
    gap = size.height - len(shown) - tail
    return [*shown, *[BLANK] * gap, *_tail(news, size.width, tail, look)]


def _tail(news: News, width: int, rows: int, look: Look) -> list[Line]:
    if rows < 1:
        return []
    head = [rule(f"log, {bytes_of(news.log_bytes)}", width, look)] if rows > 1 or not news.tail else []
    room = rows - len(head)
    said = [brief(text) if width < 100 else text for text in (news.tail[-room:] if room else ())]
    if not head:  # by itself a bar of the log would pass for a row of the table
        return [Line((Span("log: ", "dim"), look.span(look.cut(text, width - 5)))) for text in said]
    return [*head, *(look.line(look.cut(text, width)) for text in said)]


def brief(text: str) -> str:
    """A log line without the date of its stamp: on a narrow screen the message is worth more."""
    return _STAMP.sub(r"\1 ", text)


def rule(text: str, width: int, look: Look) -> Line:
    """A line across the screen with a title in it."""
    text = look.cut(f"{look.rule * 2} {text} ", width)
    return Line((Span(text + look.rule * (width - cell_len(text)), "dim"),))


def keys(pairs: tuple[tuple[str, str], ...], width: int, look: Look, *, said: str = "") -> Line:
    """The key line; each pair can be clicked. An answer to the last key takes its place."""
    if said:
        return look.line(look.cut(said, width), "bold")
    room = width - sum(_key_cells(pair) for pair in pairs[-_KEPT_KEYS:])
    kept = list(pairs[-_KEPT_KEYS:])
    for number, pair in enumerate(pairs[:-_KEPT_KEYS]):
        room -= _key_cells(pair)
        if room < 0:
            break
        kept.insert(number, pair)
    spans = [span for key, word in kept for span in (Span(key, "key", key), Span(f" {word}", "dim", key), Span("  "))]
    return Line(tuple(spans[:-1]))


def _key_cells(pair: tuple[str, str]) -> int:
    return len(pair[0]) + len(pair[1]) + 3


@dataclass(slots=True)
class Home:
    """The main screen's keys: choose a phase, go to its lines, give the log more or less room."""

    look: Look
    path: str
    selected: int | None = None
    tail_rows: int = TAIL_ROWS

    def lines(self, news: News, size: Size, said: str) -> list[Line]:
        """Draw."""
        return home(
            news, size, self.look, path=self.path, selected=self.selected, tail_rows=self.tail_rows, said=said,
            named=KEYS if news.replay is None else scrubber.keys_of(self.look),
        )  # fmt: skip

    def press(self, key: str, news: News, size: Size) -> Act | None:
        """Take a key."""
        known = news.known
        if key not in _ELSEWHERE and (move := steps(key, len(known.phases))) is not None:
            return self._select(known, (focus(known) if self.selected is None else self.selected) + move)
        if key in TOP | BOTTOM:
            return self._select(known, 0 if key in TOP else len(known.phases) - 1)
        if key == "enter":
            return self._open(known)
        if key == "escape" and self.selected is not None:
            self.selected = None
            return Draw()
        if key == "escape" and news.pinned is not None:
            return Steer(OpenBoot(None))
        if key in {"+", "-"}:
            self.tail_rows = min(max(self.tail_rows + (1 if key == "+" else -1), 0), size.height)
            return Draw()
        if key == "y":
            from phasetrack.views.status import status_line

            return Copy(status_line(known))
        return None

    def choose(self, item: int, news: News) -> Act | None:
        """A click selects a row, a second one goes to its lines."""
        if item == self.selected:
            return self._open(news.known)
        return self._select(news.known, item)

    def answer(self, text: str, news: News, size: Size) -> Act | None:
        """Nothing is asked here."""
        del text, news, size
        return None

    def _select(self, known: Snapshot, item: int) -> Act:
        if not known.phases:
            return Say("no phase has begun yet")
        self.selected = min(max(item, 0), len(known.phases) - 1)
        return Draw()

    def _open(self, known: Snapshot) -> Act:
        """The selected phase's first line; without a choice the failure's, else the current phase's."""
        if self.selected is None and known.failure is not None and known.outcome is Outcome.FAILED:
            return OpenLog(known.failure.place.offset)
        item = focus(known) if self.selected is None else self.selected
        row = known.phases[item] if item < len(known.phases) else None
        if row is None or row.begin_offset is None:
            return Say(f"{row.title}: has no line in the log" if row is not None else "no phase has begun yet")
        return OpenLog(row.begin_offset)
