"""What the screen turns into when a start is over: the first cause of a failure, or what a start has cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.model import Outcome, Status
from phasetrack.views.tui.look import BLANK, Line, Span
from phasetrack.views.words import duration

if TYPE_CHECKING:
    from phasetrack.core.model import Failure, PhaseRow, Snapshot
    from phasetrack.views.tui.look import Look

_LABEL = 7
_LONGEST = 3
# A traceback names its cause at its end and its way in at its beginning: of a long one both are kept.
_RECORD_HEAD = 2


def failure_lines(known: Snapshot, width: int, rows: int, look: Look) -> list[Line]:
    """The message, why, what to do, and the first fatal lines, in no more than ``rows`` lines."""
    failure = known.failure
    if failure is None:
        return [look.line(text) for text in look.wrap(known.verdict.because, width, 2)]
    lines = [look.line(text, "bad") for text in look.wrap(failure.message, width, 4 if rows > 12 else 2)]
    lines += _labelled("why", failure.cause, width, look)
    lines += _labelled("do", failure.remedy or known.verdict.next_step, width, look)
    if failure.inferred:
        lines += _labelled("note", "no line says so: told from what stopped", width, look)
    if len(failure.ranks) > 1:
        shown = ", ".join(failure.ranks[:8]) + (", …" if len(failure.ranks) > 8 else "")
        lines += _labelled("ranks", f"{len(failure.ranks)} say the same: {shown}", width, look)
    for echo in failure.echoes[:2]:
        lines += _labelled("then", echo, width, look, rows=1)
    lines = lines[:rows]
    return lines + _record(failure, width, rows - len(lines), look)


def _labelled(label: str, text: str, width: int, look: Look, *, rows: int = 3) -> list[Line]:
    if not text:
        return []
    parts = look.wrap(text, width - _LABEL, rows)
    heads = [label, *[""] * (len(parts) - 1)]
    return [
        Line((look.span(f"{head:<{_LABEL}}", "dim"), look.span(part))) for head, part in zip(heads, parts, strict=True)
    ]


def _record(failure: Failure, width: int, rows: int, look: Look) -> list[Line]:
    """The first fatal lines: as many as fit, the beginning and the end of them."""
    if rows < 4 or not failure.lines:
        return []
    where = "" if failure.place.line is None else f" at line {failure.place.line:,}"
    head = look.line(f"The first fatal lines{where}", "dim")
    room = rows - 2
    said = [text for text in failure.lines if text != "…"]
    if len(said) > room:
        keep = min(_RECORD_HEAD, room - 1)
        tail = room - keep - 1
        said = [*said[:keep], look.more, *(said[-tail:] if tail else [])]
    return [BLANK, head, *(Line((Span("  "), look.span(look.cut(text, width - 2)))) for text in said)]


def longest(known: Snapshot) -> list[PhaseRow]:
    """The phases that took most of the time."""
    rows = [row for row in known.phases if row.elapsed_s and row.phase not in {"ready", "serving"}]
    return sorted(rows, key=lambda row: -(row.elapsed_s or 0.0))[:_LONGEST]


def ready_lines(known: Snapshot, width: int, look: Look) -> list[Line]:
    """What the start has cost, and how far the server was tried."""
    lines: list[Line] = []
    total = known.startup_s
    parts = []
    for row in longest(known):
        share = f" ({100 * (row.elapsed_s or 0.0) / total:.0f} %)" if total else ""
        parts.append(f"{row.title} {duration(row.elapsed_s)}{share}")
    if parts:
        lines += [look.line(text) for text in look.flow(["Longest: " + parts[0], *parts[1:]], ", ", width, 3)]
    for rung in known.rungs:
        mark = look.between if rung.ok is None else look.done if rung.ok else look.failed
        text = look.dot.join(part for part in (rung.title, rung.detail) if part)
        lines.append(look.line(look.cut(f"{mark} {text}", width), "" if rung.ok else "bold"))
    return lines


def compact_phases(known: Snapshot, width: int, rows: int, look: Look) -> list[Line]:
    """How far it came, on a line or two: what a failure's screen has room for."""
    parts = [
        f"{look.status(row.status)} {row.title}" + (f" {duration(row.elapsed_s)}" if row.elapsed_s else "")
        for row in known.phases
        if row.status in {Status.DONE, Status.FAILED, Status.RUNNING}
    ]
    return [look.line(text, "dim") for text in look.flow(parts, "  ", width, rows)]


def is_over(known: Snapshot) -> bool:
    """Whether the start has come to an end that takes the screen."""
    return known.outcome in {Outcome.READY, Outcome.FAILED}
