"""Ranks: phases as rows, ranks as one-cell columns, the straggler named.

Sixty-four ranks fit into eighty columns; more are put together, and a cell then shows the worst of its ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrack.core.model import Status
from phasetrack.views.tui.acts import BOTTOM, TOP, Draw, OpenLog, Say, steps
from phasetrack.views.tui.home import keys, rule
from phasetrack.views.tui.look import BLANK, Line, Span
from phasetrack.views.tui.rows import elapsed, focus, window
from phasetrack.views.words import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from phasetrack.core.model import PhaseRow, RankSpan, Snapshot
    from phasetrack.views.tui.acts import Act, Size
    from phasetrack.views.tui.feed import News
    from phasetrack.views.tui.look import Look

KEYS = (("j k", "choose"), ("enter", "its log"), ("esc", "back"), ("?", "help"), ("q", "quit"))
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
_TITLE = 16
_WORST = (Status.FAILED, Status.RUNNING, Status.PENDING, Status.DONE, Status.SKIPPED)
_TONES = {
    Status.DONE: "good",
    Status.RUNNING: "busy",
    Status.PENDING: "track",
    Status.SKIPPED: "track",
    Status.FAILED: "bad",
}


def ranks_of(known: Snapshot) -> list[str]:
    """Every rank that any phase has named, in the order of the core; lines without one do not count."""
    named = {span.rank: None for row in known.phases for span in row.ranks if span.rank}
    return sorted(named, key=_order)


def _order(rank: str) -> tuple[tuple[str, int], ...]:
    """``DP1 TP10`` after ``DP1 TP9``."""
    return tuple((axis.rstrip("0123456789"), int("0" + axis.lstrip(_LETTERS))) for axis in rank.split())


@dataclass(frozen=True, slots=True)
class Grid:
    """How ranks are spread over cells."""

    ranks: tuple[str, ...]
    per_cell: int
    cells: int


def grid(known: Snapshot, width: int) -> Grid:
    """As many ranks a cell as the width demands."""
    ranks = ranks_of(known)
    room = max(width - _TITLE, 1)
    per_cell = max(-(-len(ranks) // room), 1)
    return Grid(tuple(ranks), per_cell, -(-len(ranks) // per_cell))


def picture(known: Snapshot, size: Size, look: Look, selected: int | None, said: str = "") -> list[Line]:
    """The whole view, exactly ``size.height`` lines."""
    foot = [keys(KEYS, size.width, look, said=said)]
    shown = grid(known, size.width)
    at = focus(known) if selected is None else selected
    if not shown.ranks:
        words = "This log names no ranks: it is of one process, or nothing has been said by them yet."
        body = [look.line(text) for text in look.wrap(words, size.width, 3)]
        return [*body, *[BLANK] * (size.height - len(body) - 1), *foot]
    head = _head(shown, size.width, look)
    begun = [(n, row) for n, row in enumerate(known.phases) if row.ranks and any(span.rank for span in row.ranks)]
    rows = [_row(row, n, shown, look, inverse=n == selected) for n, row in begun]
    about = _about(known, at, size.width, look)[: max(size.height - len(head) - 4, 0)]
    room = size.height - len(head) - len(about) - len(foot)
    table = window(rows, room, at, look)
    return [*head, *table, *[BLANK] * (room - len(table)), *about, *foot]


def _head(shown: Grid, width: int, look: Look) -> list[Line]:
    count = len(shown.ranks)
    many = f", {shown.per_cell} ranks a cell: the worst of them is shown" if shown.per_cell > 1 else ""
    signs = ((look.rank_done, "done"), (look.rank_running, "in it"), (look.rank_pending, "not begun"))
    legend = "  ".join(
        f"{glyph} {word}" for glyph, word in (*signs, (look.rank_failed, "failed"), (look.skipped, "silent"))
    )
    return [
        look.line(look.cut(f"{count} ranks, {shown.ranks[0]} to {shown.ranks[-1]}{many}", width), "bold"),
        look.line(look.cut(legend, width), "dim"),
        Line((Span(" " * _TITLE), look.span(ruler(shown), "dim"))),
    ]


def ruler(shown: Grid) -> str:
    """Numbers of ranks above their cells: each tenth, each where its group begins when there are axes."""
    cells = [" "] * shown.cells
    marks = _group_marks(shown) or {cell: str(cell * shown.per_cell) for cell in range(0, shown.cells, 10)}
    for cell, word in marks.items():
        free = not "".join(cells[max(cell - 1, 0) : cell + len(word)]).strip()
        if free and cell + len(word) <= shown.cells:
            cells[cell : cell + len(word)] = word
    return "".join(cells).rstrip()


def _group_marks(shown: Grid) -> dict[int, str]:
    """Where a new outer axis begins: ``DP1``, ``PP0``."""
    marks: dict[int, str] = {}
    last = ""
    for number, rank in enumerate(shown.ranks):
        outer = " ".join(rank.split()[:-1])
        if outer and outer != last:
            marks[number // shown.per_cell] = outer
        last = outer
    return marks


def _row(row: PhaseRow, item: int, shown: Grid, look: Look, *, inverse: bool) -> Line:
    spans = {span.rank: span for span in row.ranks}
    absent = Status.SKIPPED if row.status is Status.DONE else Status.PENDING
    cells: list[Span] = []
    for cell in range(shown.cells):
        part = shown.ranks[cell * shown.per_cell : (cell + 1) * shown.per_cell]
        status = _worst([spans[rank].status if rank in spans else absent for rank in part])
        glyph = _glyph(status, look)
        tone = _TONES[status]
        if cells and cells[-1].style == tone:
            cells[-1] = Span(cells[-1].text + glyph, tone)
        else:
            cells.append(Span(glyph, tone))
    tone = "bold" if row.status is Status.RUNNING else ""
    return Line((look.span(look.pad(_short_title(row), _TITLE - 1) + " ", tone), *cells), item, inverse)


def _short_title(row: PhaseRow) -> str:
    title = row.title.replace("CUDA ", "").replace("Distributed", "Distr.")
    return title if row.occurrence == 1 else f"{title} {row.occurrence}"


def _worst(found: Sequence[Status]) -> Status:
    return next((status for status in _WORST if status in found), Status.PENDING)


def _glyph(status: Status, look: Look) -> str:
    return {
        Status.DONE: look.rank_done,
        Status.RUNNING: look.rank_running,
        Status.FAILED: look.rank_failed,
        Status.SKIPPED: look.skipped,
    }.get(status, look.rank_pending)


def _about(known: Snapshot, item: int, width: int, look: Look) -> list[Line]:
    """The chosen phase in sentences: who is done, who is waited for, how far they lie apart."""
    if item >= len(known.phases):
        return []
    row = known.phases[item]
    lines = [rule(f"{row.title}, {elapsed(row) or row.status}", width, look)]
    return [*lines, *(look.line(look.cut(text, width)) for text in _sentences(known, row))]


def _sentences(known: Snapshot, row: PhaseRow) -> list[str]:
    if not any(span.rank for span in row.ranks):
        return ["Not begun yet." if row.status is Status.PENDING else "No line of this phase names a rank."]
    late = [span for span in row.ranks if span.status is Status.RUNNING and span.rank]
    failed = [span for span in row.ranks if span.status is Status.FAILED and span.rank]
    said = [f"{row.ranks_done} of {row.ranks_seen} ranks done."]
    if late and row.ranks_done:
        since = max((span.ended_s for span in row.ranks if span.ended_s is not None), default=None)
        said.append(f"Waited for: {_names(late)}.")
        if since is not None and known.now_s is not None:
            said.append(f"The last of the others was done {duration(max(known.now_s - since, 0.0))} ago.")
    if failed:
        said.append(f"Not finished: {_names(failed)}.")
    if not late and row.slowest_rank is not None and row.skew_s is not None:
        said.append(f"{row.slowest_rank} was last, {duration(row.skew_s)} after the first.")
    ended = [span for span in row.ranks if span.ended_s is not None and span.rank]
    if len(ended) > 1 and row.began_s is not None and row.skew_s:
        slow = sorted(ended, key=lambda span: -(span.ended_s or 0.0))[:6]
        said.append("Slowest: " + ", ".join(f"{s.rank} {duration((s.ended_s or 0.0) - row.began_s)}" for s in slow))
    return said


def _names(spans: Sequence[RankSpan]) -> str:
    names = [span.rank for span in spans]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


@dataclass(slots=True)
class Ranks:
    """The view's keys."""

    look: Look
    selected: int | None = None

    def lines(self, news: News, size: Size, said: str) -> list[Line]:
        """Draw."""
        return picture(news.known, size, self.look, self.selected, said)

    def press(self, key: str, news: News, size: Size) -> Act | None:
        """Take a key."""
        rows = [n for n, row in enumerate(news.known.phases) if any(span.rank for span in row.ranks)]
        move = steps(key, size.height // 2)
        if move is None and key in TOP | BOTTOM:
            move = -len(rows) if key in TOP else len(rows)
        if move is not None:
            if not rows:
                return Say("no ranks yet")
            at = self.selected if self.selected is not None else focus(news.known)
            near = min(range(len(rows)), key=lambda n: abs(rows[n] - at))
            self.selected = rows[min(max(near + move, 0), len(rows) - 1)]
            return Draw()
        if key == "enter":
            return self._open(news.known)
        return None

    def _open(self, known: Snapshot) -> Act | None:
        at = focus(known) if self.selected is None else self.selected
        row = known.phases[at] if at < len(known.phases) else None
        return None if row is None or row.begin_offset is None else OpenLog(row.begin_offset)

    def choose(self, item: int, news: News) -> Act | None:
        """A click selects, a second one opens."""
        if item == self.selected:
            return self._open(news.known)
        self.selected = item
        return Draw()

    def answer(self, text: str, news: News, size: Size) -> Act | None:
        """Nothing is asked here."""
        del text, news, size
        return None
