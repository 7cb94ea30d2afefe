"""The text report: readable at 80 columns, and greppable.

The report is in the spirit of ``systemd-analyze blame``: one line a phase, in the order in which they began.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from phasetrack.core.model import Outcome
from phasetrack.core.plan import has_draft, is_worker_node
from phasetrack.views.cause import cause_text, issue_block
from phasetrack.views.facts import shown_facts
from phasetrack.views.rows import cells, fate, gaps, last_ranks, share, total_s, usual
from phasetrack.views.words import duration, glyph, iso, ready_when, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import PhaseRow, Snapshot


def report_text(known: Snapshot, *, plain: bool = False, width: int = 80) -> str:
    """The postmortem as text.

    Args:
        known: the snapshot.
        plain: ASCII glyphs only.
        width: columns; nothing but log text is wider.
    """
    lines = [*_head(known), ""]
    if known.phases:
        lines += [*_table(known, plain=plain), ""]
    for block in (
        cause_text(known, width),
        usual(known),
        [*last_ranks(known), *gaps(known)],
        _warnings(known),
        _facts(known, width),
        _boots(known),
        issue_block(known) if known.outcome is Outcome.FAILED else [],
    ):
        lines += [*block, ""] if block else []
    return "\n".join(lines).rstrip() + "\n"


def _head(known: Snapshot) -> Iterator[str]:
    for source in known.sources:
        lines = "" if source.lines is None else f", {source.lines} lines"
        yield f"{source.path}  ({size(source.bytes)}{lines})"
    if known.engine is not None:
        yield _engine_line(known)
    yield outcome_line(known)
    if known.drift is not None:
        yield f"Note: this log {known.drift}."
    if known.unopened is not None:
        yield f"Note: this log {known.unopened}."


def _engine_line(known: Snapshot) -> str:
    engine = known.engine
    if engine is None:
        return ""
    version = engine.version or _range(engine.version_low, engine.version_high)
    draft = known.facts.get("speculative_algorithm")
    parts = [f"{engine.title} {version}".rstrip()]
    if known.facts.get("model_path"):
        parts.append(str(known.facts["model_path"]))
    parts += [
        f"{key[:2]} {known.facts[key]}"
        for key in ("tp_size", "pp_size", "dp_size")
        if known.facts.get(key) not in {None, 1}
    ]
    if draft or _is_draftless(known):
        parts.append(f"draft {draft}" if draft else "no draft")
    return ", ".join(parts)


def _is_draftless(known: Snapshot) -> bool:
    """Whether the arguments tell that no draft is due; in a log without them nobody knows."""
    args = known.facts.get("server_args")
    return isinstance(args, Mapping) and has_draft(args) is False


def _range(low: str | None, high: str | None) -> str:
    if low is None and high is None:
        return "(version unknown)"
    return f"({low or '…'} to {high or '…'} by its wording)"


def outcome_line(known: Snapshot) -> str:
    """The outcome in a sentence."""
    when = ready_when(known)
    was = "this node was up" if is_worker_node(known.facts) else "was ready"
    if known.outcome is Outcome.READY:
        return f"READY {when}. {known.verdict.because}"
    if known.outcome is Outcome.STOPPED and known.ready_offset is not None:
        return f"STOPPED; {was} {when}."
    if known.outcome is Outcome.FAILED and known.ready_offset is not None:
        return f"FAILED while serving; {was} {when}. {known.verdict.because}"
    if known.outcome is Outcome.NONE:
        return known.verdict.because
    if known.outcome is Outcome.STARTING and known.ended:
        return f"UNFINISHED. {known.verdict.because}"
    return f"{str(known.outcome).upper()}. {known.verdict.because}"


def _table(known: Snapshot, *, plain: bool) -> Iterator[str]:
    total = total_s(known)
    yield f"  {'phase':<20} {'begin':<8} {'elapsed':>12} {'share':>5}  {'progress':<15} {'ranks':>5} {'silent':>6}"
    for row in known.phases:
        yield _table_row(row, total, plain=plain)
    if known.between_phases_s is not None:
        part = share(known.between_phases_s, total)
        yield f"  {'between phases':<20} {'':8} {duration(known.between_phases_s):>12} {part:>5}".rstrip()
    if any(cells(row, total).inferred for row in known.phases):
        yield "  ~ inferred: not printed by the engine"


def _table_row(row: PhaseRow, total: float | None, *, plain: bool) -> str:
    cell = cells(row, total)
    elapsed = f"~{cell.elapsed}" if cell.inferred and cell.elapsed else cell.elapsed
    line = (
        f"{glyph(row.status, plain=plain)} {cell.title:<20} {cell.begin:<8} {elapsed:>12} {cell.share:>5}"
        f"  {cell.progress}{cell.ranks:>{max(21 - len(cell.progress), 0)}} {cell.silent:>6}"
    )
    return line.rstrip() + (f"  {cell.note}" if cell.note else "")


def _warnings(known: Snapshot) -> list[str]:
    return [
        f"Warning: {warning.message[:160]}" + (f" ({warning.count} times)" if warning.count > 1 else "")
        for warning in known.warnings
    ]


def _facts(known: Snapshot, width: int) -> list[str]:
    return [f"{title:<16} {text}"[:width] for title, text in shown_facts(known.facts)]


def _boots(known: Snapshot) -> list[str]:
    if len(known.boots) < 2:
        return []
    lines = ["Boots in this file:"]
    for boot in known.boots[-20:]:
        mark = "*" if boot.boot == known.boot else " "
        took = "" if boot.startup_s is None else f" after {duration(boot.startup_s)}"
        started = iso(boot.started_at_s, known.zone) or "time unknown"
        lines.append(f"{mark} {boot.boot:>3}  line {boot.line or '?':<9} {started:<20} {fate(known, boot)}{took}")
    return lines
