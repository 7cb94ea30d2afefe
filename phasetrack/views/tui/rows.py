"""The table of phases: one row each, in the order in which they began, planned ones after.

Pure: rows and a width in, lines out. The clock of a row stands left of its bar, because a repaint costs the
bytes up to the last changed cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from phasetrack.core.model import Basis, Outcome, Status
from phasetrack.views.rows import last_seen
from phasetrack.views.tui.look import Line, Span
from phasetrack.views.words import count, duration, progress, span_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from phasetrack.core.model import Activity, PhaseRow, Progress, Snapshot
    from phasetrack.views.tui.look import Look

_TITLE = 22
_ELAPSED = 12
_COUNT = 16
# Room for bars is kept before the first of them is drawn: a table that jumps is hard to follow.
_COUNT_LEAST = 13
_RANKS = 12
_USUAL = 20
_NOTE = 44  # where there is less room a note goes on a line of its own: half of one misleads
_BAR = (8, 32)
_GAP = 2
_NARROW = 56
_CLOCK_LEAST = 10  # "3 min 20 s": a clock that grows must not push the counts about
# Below a second nothing is missing between phases: stamps are whole seconds.
_BETWEEN_S = 1.0


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths in cells; 0 where a column is left out."""

    title: int
    elapsed: int
    bar: int
    count: int
    ranks: int
    usual: int
    note: int


def columns(known: Snapshot, width: int) -> Columns:
    """Fit the columns into a width: what matters least goes first."""
    rows = known.phases
    if width < _NARROW:
        return _narrow(known, width)
    title = min(max((cell_len(_title(row)) for row in rows), default=10), _TITLE)
    counts = min(max(_COUNT_LEAST, *(cell_len(progress(row.progress)) for row in rows), 0), _COUNT)
    ranks = _RANKS if _has_ranks(known) else 0
    usual = _USUAL if width >= 100 and any(row.expected is not None for row in rows) else 0
    left = width - 2 - title - 1 - _ELAPSED - sum(_GAP + size for size in (counts, ranks, usual) if size)
    if left < 0:
        ranks, left = 0, left + (_GAP + ranks if ranks else 0)
    both = left >= _NOTE + _BAR[0] + 2 * _GAP
    bar = min(_BAR[1], left // 2 if both else left - _GAP)
    bar = bar if bar >= _BAR[0] else 0
    left -= _GAP + bar if bar else 0
    note = left - _GAP
    return Columns(title, _ELAPSED, bar, counts, ranks, usual, note if note >= _NOTE else 0)


def _narrow(known: Snapshot, width: int) -> Columns:
    """Title, clock and count alone; a count that is cut would lie, so the title gives way."""
    rows = known.phases
    counts = max((cell_len(short(row.progress)) for row in rows), default=0)
    clock = max(_CLOCK_LEAST, *(cell_len(_spent(known, row)) for row in rows), 0)
    clock = max(clock, cell_len(duration(known.between_phases_s)) if known.between_phases_s else 0)
    title = max((cell_len(_title(row)) for row in rows), default=10)
    room = width - 2 - 1 - clock - (_GAP + counts if counts else 0)
    return Columns(max(min(title, room), 1), clock, 0, counts, 0, 0, 0)


def _has_ranks(known: Snapshot) -> bool:
    sizes = [known.facts.get(name) for name in ("tp_size", "pp_size", "dp_size")]
    asked = any(isinstance(size, int) and size > 1 for size in sizes)
    return asked or any(row.ranks_seen > 1 for row in known.phases)


def table(known: Snapshot, width: int, look: Look, *, selected: int | None = None, steady: bool = False) -> list[Line]:
    """Every row, and what the running one is about; a line's ``item`` is its row.

    ``steady`` keeps a line for the running row's note even while there is none, so that nothing below jumps.
    """
    fit = columns(known, width)
    lines: list[Line] = []
    placed = (known.between_phases_s or 0.0) < _BETWEEN_S
    for number, row in enumerate(known.phases):
        if not placed and (row.status in {Status.PENDING, Status.SKIPPED} or row.phase == "ready"):
            lines.append(_between(known, fit, look))
            placed = True
        note = row_note(known, row, look)
        lines.append(_row(known, row, fit, look, note if fit.note else "", item=number, inverse=number == selected))
        if not fit.note and (note or (steady and row.status is Status.RUNNING)):
            text = look.cut(note, width - 4)
            lines.append(Line((Span(" " * 4), look.span(text, "bold")), number))
    if not placed:
        lines.append(_between(known, fit, look))
    return lines


def focus(known: Snapshot) -> int:
    """The row to look at: the current phase's, else the last that began."""
    running = [n for n, row in enumerate(known.phases) if row.phase == known.phase and row.status is Status.RUNNING]
    begun = [n for n, row in enumerate(known.phases) if row.status not in {Status.PENDING, Status.SKIPPED}]
    return running[-1] if running else begun[-1] if begun else 0


def window(lines: Sequence[Line], height: int, item: int, look: Look) -> list[Line]:
    """The lines around an item that fit; those left out are counted, never dropped in silence."""
    if len(lines) <= height:
        return list(lines)
    if height <= 0:
        return []
    at = next((n for n, line in enumerate(lines) if line.item == item), 0)
    first = min(max(at - height // 3, 0), len(lines) - height)
    kept = list(lines[first : first + height])
    if height < 4:
        return kept
    if first > 0 and at > first:
        kept[0] = look.line(f"  {look.up} {first + 1} more", "dim")
    below = len(lines) - first - height
    if below > 0 and at < first + height - 1:
        kept[-1] = look.line(f"  {look.down} {below + 1} more", "dim")
    return kept


def row_note(known: Snapshot, row: PhaseRow, look: Look) -> str:
    """What a running row is about, beyond its bar."""
    if row.status is Status.FAILED:
        return "failed here" if known.failure is not None and known.failure.phase == row.phase else "not finished"
    if row.status is not Status.RUNNING:
        return last_seen(row)
    if known.ended:
        return "not finished when the log ended"
    parts = [part for part in (_finishing(row), _doing(known, row), _bar_title(row), _waiting(row)) if part]
    if row.phase == "draft_load" and not parts:
        parts.append("a second model, not a restart")
    return look.dot.join(parts)


def _finishing(row: PhaseRow) -> str:
    """A full bar is not the end of a load; the core's note says so, the rank is named where one is known."""
    if not row.note:
        return ""
    if row.note.startswith("finishing"):
        return "all read, finishing: repack"
    return row.note


def _doing(known: Snapshot, row: PhaseRow) -> str:
    activity: Activity | None = known.activity
    if activity is None or activity.phase not in {row.phase, None}:
        return ""
    words = [activity.title, progress(activity.bar)]
    if activity.began_s is not None and known.now_s is not None:
        words.append("for " + duration(max(known.now_s - activity.began_s, 0.0)))
    return " ".join(word for word in words if word)


def _bar_title(row: PhaseRow) -> str:
    """Several bars follow each other inside one phase: a new one is no restart."""
    titles = list(dict.fromkeys(bar.title for bar in row.bars))
    if len(titles) < 2:
        return ""
    which = f"bar {len(titles)} of this phase"
    return f"{titles[-1]}, {which}" if titles[-1] else which


def _waiting(row: PhaseRow) -> str:
    if row.ranks_seen < 2 or not row.ranks_done:
        return ""
    late = [span.rank for span in row.ranks if span.status is Status.RUNNING]
    if not late:
        return ""
    named = row.slowest_rank or late[0]
    return f"waiting for {named}" + (f" and {len(late) - 1} more" if len(late) > 1 else "")


def _title(row: PhaseRow) -> str:
    return row.title if row.occurrence == 1 else f"{row.title} ({row.occurrence})"


def short(value: Progress | None) -> str:
    """``36/64``: progress without its unit."""
    if value is None:
        return ""
    return f"{count(value.done)}/{'?' if value.total is None else count(value.total)}"


def _row(known: Snapshot, row: PhaseRow, fit: Columns, look: Look, note: str, *, item: int, inverse: bool) -> Line:
    tone = _TONES[row.status]
    spans = [
        look.span(look.status(row.status, ended=known.ended) + " ", _GLYPHS[row.status]),
        look.span(look.pad(_title(row), fit.title) + " ", tone),
        look.span(look.pad(_spent(known, row), fit.elapsed, right=True), tone),
    ]
    if fit.bar:
        spans += [Span(" " * _GAP), *_bar(known, row, fit.bar, look)]
    if fit.count:
        text = progress(row.progress) if fit.bar else short(row.progress)
        if cell_len(text) > fit.count:
            text = short(row.progress)
        spans += [Span(" " * _GAP), look.span(look.pad(text, fit.count), tone)]
    if fit.ranks:
        text = f"{row.ranks_done}/{row.ranks_seen} ranks" if row.ranks_seen > 1 else ""
        spans += [Span(" " * _GAP), look.span(look.pad(text, fit.ranks), tone)]
    if fit.usual:
        text = f"usually {span_of(row.expected)}" if row.expected is not None else ""
        spans += [Span(" " * _GAP), look.span(look.pad(text, fit.usual), "dim")]
    if note:
        spans += [Span(" " * _GAP), look.span(look.cut(note, fit.note), tone)]
    return Line(tuple(spans), item, inverse)


_TONES = {
    Status.PENDING: "dim",
    Status.RUNNING: "bold",
    Status.DONE: "",
    Status.SKIPPED: "dim",
    Status.FAILED: "bad",
}
_GLYPHS = _TONES | {Status.RUNNING: "busy", Status.DONE: "good"}


def unreached(known: Snapshot, row: PhaseRow) -> str:
    """What is skipped in a start that came to its end was not reached in one that did not."""
    skipped = row.status is Status.SKIPPED and known.ready_at_s is None and known.outcome is not Outcome.READY
    return "not reached" if skipped else ""


def _spent(known: Snapshot, row: PhaseRow) -> str:
    if words := unreached(known, row):
        return words
    return elapsed(row)


def elapsed(row: PhaseRow) -> str:
    """How long a row has lasted: ``~`` where a boundary was inferred, ``unknown`` where it is."""
    if row.status is Status.PENDING:
        return ""
    if row.status is Status.SKIPPED:
        return "skipped"
    if row.phase == "ready":
        return ""
    mark = "~" if (row.basis is Basis.INFERRED or last_seen(row)) and row.elapsed_s is not None else ""
    return mark + duration(row.elapsed_s)


def _bar(known: Snapshot, row: PhaseRow, width: int, look: Look) -> list[Span]:
    value = row.progress
    if value is None or not value.total:
        return [Span(" " * width)]
    cells = int(width * min(max(value.done / value.total, 0.0), 1.0))
    is_open = row.status is Status.RUNNING and not known.ended
    glyph = look.full_open if is_open and cells == width else look.full
    tone = "busy" if is_open else "bad" if row.status is Status.FAILED else "good"
    return [Span(glyph * cells, tone), Span(look.empty * (width - cells), "track")]


def _between(known: Snapshot, fit: Columns, look: Look) -> Line:
    """Time that no phase claims; nothing is hidden. It is where the start stands when no row runs."""
    now = known.outcome == "starting" and not known.ended
    here = now and not any(row.status is Status.RUNNING for row in known.phases)
    tone = "bold" if here else "dim"
    glyph = look.running if here else look.between
    return Line(
        (
            look.span(glyph + " ", "busy" if here else "dim"),
            look.span(look.pad("between phases", fit.title) + " ", tone),
            look.span(look.pad(duration(known.between_phases_s), fit.elapsed, right=True), tone),
        )
    )
