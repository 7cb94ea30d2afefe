"""The log, whole: move, search, jump between phases and errors, follow its end.

A position is a row: the offset of a line's start, and which of its rows it is where long lines are wrapped.
Searching and counting run in threads, which only ever set a value and ask for a new picture.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from phasetrack.views.tui import find
from phasetrack.views.tui.acts import BOTTOM, TOP, Ask, Back, Copy, Draw, Say, steps
from phasetrack.views.tui.home import keys, rule
from phasetrack.views.tui.look import BLANK, Line, Span
from phasetrack.views.tui.paging import Lines, Numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from phasetrack.core.model import Snapshot
    from phasetrack.views.tui.acts import Act, Size
    from phasetrack.views.tui.feed import News, Pages
    from phasetrack.views.tui.look import Look

KEYS = (
    ("esc", "back"), ("/", "search"), ("n N", "next"), ("e E", "errors"), ("{ }", "phases"), ("f", "follow"),
    ("c", "raw"), ("y", "copy"), ("W", "wrap"), ("?", "help"), ("q", "quit"),
)  # fmt: skip
_GUTTER = 2
_LEAST_STATUS = 20
# Bytes in which new lines are counted for one picture; more are counted in the next ones.
_COUNT_BYTES = 4 << 20


class Row(NamedTuple):
    """A row of the log as it is shown."""

    start: int  # offset of its line
    part: int = 0  # which row of a wrapped line


class Hunt:
    """One search, running in a thread of its own."""

    def __init__(self, wanted: find.Query, *, forward: bool) -> None:
        """Look for ``wanted``."""
        self.wanted = wanted
        self.forward = forward
        self.is_off = False
        self.is_done = False
        self.fraction = 0.0
        self.found: int | None = None
        self.trouble = ""

    def run(self, pages: Pages, start: int, poke: Callable[[], None]) -> None:
        """Search to the end."""
        try:
            self.found = find.search(
                pages, self.wanted, start, forward=self.forward, is_off=lambda: self.is_off, progress=self._tell(poke)
            )
        except TimeoutError:
            self.trouble = "this expression takes too long on this log"
        self.is_done = True
        poke()

    def _tell(self, poke: Callable[[], None]) -> Callable[[float], None]:
        def told(fraction: float) -> None:
            if int(fraction * 20) > int(self.fraction * 20):
                self.fraction = fraction
                poke()

        return told


class LogView:
    """The pager."""

    def __init__(self, look: Look) -> None:
        """Begin without a log: the feed opens it."""
        self.look = look
        self.follow = True
        self.raw = False
        self.wrap = False
        self.column = 0
        self.top = Row(0)
        self.cursor = Row(0)
        self._pages: Pages | None = None
        self._lines: Lines | None = None
        self._other: Lines | None = None  # the other form, with all that it remembers of long lines
        self._numbers: Numbers | None = None
        self._poke: Callable[[], None] = lambda: None
        self._counting = False
        self._hunt: Hunt | None = None
        self._query: find.Query | None = None
        self._shown: list[Row] = []
        self._jump: int | None = None
        self._left = 0  # size when the end was left
        self._counted = 0  # up to where new lines were counted since
        self._new = 0
        self._width = 80

    def open(self, pages: Pages, poke: Callable[[], None]) -> None:
        """Take the log; ``poke`` asks for a new picture from any thread."""
        self._pages, self._poke = pages, poke
        self._lines, self._numbers = Lines(pages, raw=self.raw), Numbers(pages)
        self._other = None

    @property
    def is_searching(self) -> bool:
        """Whether a search is still on its way."""
        return self._hunt is not None and not self._hunt.is_done

    def go(self, offset: int | None) -> None:
        """Go to the line that holds a byte; None stays where it was left."""
        if offset is not None:
            self._leave_end()
            self._jump = offset

    # --- rows ---------------------------------------------------------------------------------------

    def _parts(self, lines: Lines, start: int) -> tuple[str, ...]:
        text = self.look.text(lines.text(start))
        return _chopped(text, self._width) if self.wrap else (text,)

    def _next(self, lines: Lines, row: Row) -> Row | None:
        if self.wrap and row.part + 1 < len(self._parts(lines, row.start)):
            return Row(row.start, row.part + 1)
        after = lines.after(row.start)
        return None if after is None else Row(after)

    def _previous(self, lines: Lines, row: Row) -> Row | None:
        if row.part > 0:
            return Row(row.start, row.part - 1)
        before = lines.before(row.start)
        if before is None:
            return None
        return Row(before, len(self._parts(lines, before)) - 1 if self.wrap else 0)

    def _move(self, lines: Lines, row: Row, rows: int) -> Row:
        step = self._next if rows > 0 else self._previous
        for _ in range(abs(rows)):
            moved = step(lines, row)
            if moved is None:
                break
            row = moved
        return row

    def _end(self, lines: Lines) -> Row:
        last = lines.last()
        return Row(last, len(self._parts(lines, last)) - 1 if self.wrap else 0)

    def _page(self, lines: Lines, height: int) -> list[Row]:
        rows = [self.top]
        while len(rows) < height and (following := self._next(lines, rows[-1])) is not None:
            rows.append(following)
        return rows

    def _settle(self, lines: Lines, height: int) -> None:
        """Put the cursor where it belongs, and the page around it."""
        size = 0 if self._pages is None else self._pages.size()
        if self._jump is not None:
            self.cursor = Row(lines.start(self._jump))
            self.top = self._move(lines, self.cursor, -(height // 3))
            self._jump = None if self._jump < size else self._jump  # a replay is on its way there
        elif self.follow:
            self.cursor = self._end(lines)
            self.top = self._move(lines, self.cursor, 1 - height)
        elif max(self.cursor.start, self.top.start) >= size:  # a replay went back behind it
            self.cursor = self.top = self._end(lines)
        self._shown = self._page(lines, height)
        if self.cursor < self.top:
            self.top = self.cursor
            self._shown = self._page(lines, height)
        elif self.cursor > self._shown[-1]:
            self.top = self._move(lines, self.cursor, 1 - height)
            self._shown = self._page(lines, height)

    # --- the picture --------------------------------------------------------------------------------

    def lines(self, news: News, size: Size, said: str) -> list[Line]:
        """Draw."""
        self._take_hunt()
        height = max(size.height - 2, 1)
        self._width = max(size.width - _GUTTER, 1)
        lines = self._lines
        if lines is None or self._pages is None or not self._pages.size():
            body = [self.look.line("nothing has been written yet", "dim")]
            self._shown = []
        else:
            self._settle(lines, height)
            body = [self._draw(lines, row, number) for number, row in enumerate(self._shown)]
        body = [*body, *[BLANK] * (height - len(body))]
        return [*body, self._status(news, size), keys(KEYS, size.width, self.look, said=said or self._search_words())]

    def _draw(self, lines: Lines, row: Row, number: int) -> Line:
        parts = self._parts(lines, row.start)
        text = parts[min(row.part, len(parts) - 1)]
        mark = self.look.cursor if row == self.cursor else " "
        text = text if self.wrap else self.look.cut(text[self.column :], self._width)
        tone = "bad" if find.is_error(text) else ""
        spans = [Span(mark + " ", "busy"), *self._marked(text, tone)]
        return Line(tuple(spans), number)

    def _marked(self, text: str, tone: str) -> Iterator[Span]:
        at = 0
        for begin, end in self._query.marks(text) if self._query is not None else ():
            yield Span(text[at:begin], tone)
            yield Span(text[begin:end], "match")
            at = end
        yield Span(text[at:], tone)

    def _status(self, news: News, size: Size) -> Line:
        """Where this is: line, share, phase; and what came since the end was left."""
        parts = [self._number_words()]
        total = self._pages.size() if self._pages is not None else 0
        if total:
            parts.append(f"{100 * min(self.cursor.start, total) // total} %")
        if phase := _phase_at(news.known, self.cursor.start):
            parts.append(phase)
        parts.append("each redraw" if self.raw else "as a terminal shows it")
        if self.column:
            parts.append(f"from column {self.column + 1}")
        badge = "following" if self.follow else self._badge()
        words = self.look.text(f" {badge} ") if badge else ""
        if size.width - cell_len(words) < _LEAST_STATUS:
            words = ""
        head = rule(self.look.dot.join(part for part in parts if part), size.width - cell_len(words), self.look)
        return Line((*head.spans, Span(words, "bold", "G")))

    def _number_words(self) -> str:
        if self._numbers is None:
            return ""
        number = self._numbers.of(self.cursor.start)
        if number is None:
            self._count_behind()
            return "line not counted yet"
        return f"line {number:,}"

    def _count_behind(self) -> None:
        """Count line feeds in a thread, once; what is asked for later is near what was counted."""
        numbers = self._numbers
        if self._counting or numbers is None:
            return
        self._counting = True

        def count() -> None:
            while numbers.count_on():
                pass
            self._counting = False
            self._poke()

        threading.Thread(target=count, name="phasetrack-count", daemon=True).start()

    def _badge(self) -> str:
        """How many lines came since the end was left."""
        assert self._pages is not None  # noqa: S101 - a log that was left was open
        size = self._pages.size()
        if self._counted < size:
            data = self._pages.read(self._counted, min(size - self._counted, _COUNT_BYTES))
            self._counted += len(data)
            self._new += data.count(b"\n")
        more = "+" if self._counted < size else ""
        return f"{self.look.down} {self._new:,}{more} new" if self._new else ""

    def _leave_end(self) -> None:
        if self.follow and self._pages is not None:
            self._left = self._counted = self._pages.size()
            self._new = 0
        self.follow = False

    # --- keys ---------------------------------------------------------------------------------------

    def press(self, key: str, news: News, size: Size) -> Act | None:
        """Take a key."""
        lines, self._jump = self._lines, None
        if self._hunt is not None:
            self._hunt.is_off = True
            self._hunt = None
            if key == "escape":
                return Say("search stopped")
        if key in {"escape", "enter"}:
            if key == "escape" and self._query is not None:
                self._query = None
                return Draw()
            return Back()
        if lines is None or self._pages is None:
            return None
        if (rows := steps(key, size.height - 2)) is not None:
            return self._scroll(lines, rows, size.height - 2)
        return self._switch(lines, key) or self._jump_by(lines, key, news)

    def _scroll(self, lines: Lines, rows: int, height: int) -> Act:
        if rows < 0:
            self._leave_end()
        cursor = self._move(lines, self.cursor, rows)
        if abs(rows) > 1 and not self.follow:
            bottom = self._move(lines, self._end(lines), 1 - height)
            self.top = min(self._move(lines, self.top, rows), max(bottom, self.top))
        self.cursor = cursor
        if rows > 0 and cursor == self._end(lines):
            self.follow = True
        return Draw()

    def _switch(self, lines: Lines, key: str) -> Act | None:
        if key in {"left", "right"}:
            self.column = max(self.column + (self._width // 2 if key == "right" else -(self._width // 2)), 0)
        elif key == "W":
            self.wrap, self.column = not self.wrap, 0
            self.cursor, self.top = Row(self.cursor.start), Row(self.top.start)
        elif key == "c" and self._pages is not None:
            at = self.cursor.start
            self.raw = not self.raw
            self._lines, self._other = self._other or Lines(self._pages, raw=self.raw), lines
            self._jump = None if self.follow else at
        elif key == "f":
            if self.follow:
                self._leave_end()
            else:
                self.follow = True
        elif key == "y":
            return Copy(lines.text(self.cursor.start))
        else:
            return None
        return Draw()

    def _jump_by(self, lines: Lines, key: str, news: News) -> Act | None:
        if key in BOTTOM:
            self.follow = True
        elif key in TOP:
            self._leave_end()
            self._jump = 0
        elif key in {"{", "}"}:
            return self._to_phase(lines, news.known, forward=key == "}")
        elif key in {"e", "E"}:
            return self._start(lines, find.ERRORS, forward=key == "e")
        elif key in {"n", "N"}:
            if self._query is None:
                return Say("nothing was searched for: / asks")
            return self._start(lines, self._query, forward=key == "n")
        elif key == "/":
            return Ask("/")
        else:
            return None
        return Draw()

    def _to_phase(self, lines: Lines, known: Snapshot, *, forward: bool) -> Act:
        """To where the next or the last phase began."""
        starts = sorted({(lines.start(offset), title) for offset, title in _marks(known)})
        here = self.cursor.start
        if forward:
            found = next(((at, title) for at, title in starts if at > here), None)
        else:
            found = next(((at, title) for at, title in reversed(starts) if at < here), None)
        if found is None:
            return Say("no later phase" if forward else "no earlier phase")
        self.go(found[0])
        return Say(f"here begins: {found[1]}")

    def choose(self, item: int, news: News) -> Act | None:
        """A click puts the cursor on a row."""
        del news
        if item < len(self._shown):
            self._leave_end()
            self.cursor = self._shown[item]
        return Draw()

    # --- searching ----------------------------------------------------------------------------------

    def answer(self, text: str, news: News, size: Size) -> Act | None:
        """Search for what was typed."""
        del news, size
        if not text:
            self._query = None
            return Draw()
        self._query = find.query(text)
        return None if self._lines is None else self._start(self._lines, self._query, forward=True, here=True)

    def _start(self, lines: Lines, wanted: find.Query, *, forward: bool, here: bool = False) -> Act:
        """Begin a search behind the cursor's line, or with it; a page stays where it is until something is found."""
        assert self._pages is not None  # noqa: S101 - there are lines
        if self.follow and forward and here:
            self._leave_end()
            start = 0
        elif forward and not here:
            after = lines.after(self.cursor.start)
            start = self._pages.size() if after is None else after
        else:
            start = self.cursor.start
        self._leave_end()
        self._hunt = Hunt(wanted, forward=forward)
        threading.Thread(
            target=self._hunt.run, args=(self._pages, start, self._poke), name="phasetrack-search", daemon=True
        ).start()
        return Draw()

    def _take_hunt(self) -> None:
        if self._hunt is not None and self._hunt.is_done and self._hunt.found is not None:
            self._jump = self._hunt.found
            self._hunt = None

    def _search_words(self) -> str:
        """How a search goes; what was found needs no words."""
        hunt = self._hunt
        if hunt is None:
            return ""
        if not hunt.is_done:
            return f"searching for {hunt.wanted.text}: {100 * hunt.fraction:.0f} % (any key stops)"
        if hunt.trouble:
            return hunt.trouble
        return f"{hunt.wanted.text}: not found {'below' if hunt.forward else 'above'}"


def _marks(known: Snapshot) -> Iterator[tuple[int, str]]:
    """Offsets between which ``{`` and ``}`` jump."""
    for row in known.phases:
        if row.begin_offset is not None:
            yield row.begin_offset, row.title
    if known.failure is not None:
        yield known.failure.place.offset, "the failure"
    for boot in known.boots:
        yield boot.offset, f"boot {boot.boot}"


def _phase_at(known: Snapshot, offset: int) -> str:
    begun = [row for row in known.phases if row.begin_offset is not None and row.begin_offset <= offset]
    if not begun:
        return ""
    return "in " + max(begun, key=lambda row: row.begin_offset or 0).title


@lru_cache(maxsize=64)
def _chopped(text: str, width: int) -> tuple[str, ...]:
    """Rows of one line; each of them is asked for when a page is drawn."""
    return tuple(_chop(text, width)) or ("",)


def _chop(text: str, width: int) -> Iterator[str]:
    """Rows of a width, as a terminal wraps; in one pass, since a line may be long."""
    if cell_len(text) == len(text):
        yield from (text[at : at + width] for at in range(0, len(text), width))
        return
    begin = used = 0
    for at, letter in enumerate(text):
        cells = cell_len(letter)
        if used + cells > width and at > begin:
            yield text[begin:at]
            begin, used = at, 0
        used += cells
    yield text[begin:]
