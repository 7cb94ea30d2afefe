"""The text report and the one-line status: readable at 80 columns, and greppable.

The report is in the spirit of ``systemd-analyze blame``: one line a phase, in the order in which they began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.answer import age_s
from phasetrack.core.model import Outcome, VerdictState
from phasetrack.views.cause import cause_text, issue_block
from phasetrack.views.facts import shown_facts
from phasetrack.views.rows import cells, last_ranks, share, total_s, usual
from phasetrack.views.words import clock, duration, eta_words, glyph, iso, progress, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import PhaseRow, Snapshot


def status_line(known: Snapshot, *, plain: bool = False) -> str:
    """One answer now, in one line."""
    dot = " | " if plain else " · "
    return dot.join(_status_parts(known))


def _status_parts(known: Snapshot) -> Iterator[str]:
    if known.outcome is Outcome.NONE:
        yield known.verdict.because
        yield from _expected(known)
        return
    row = next((row for row in known.phases if row.phase == known.phase), None)
    if known.outcome is Outcome.STARTING and row is not None:
        yield f"{str(known.verdict.state).upper()}: {row.title}" + (
            f" {text}" if (text := progress(row.progress)) else ""
        )
        if known.activity is not None:
            yield known.activity.title + (f" {progress(known.activity.bar)}" if known.activity.bar else "")
        if row.elapsed_s is not None:
            yield f"in it for {duration(row.elapsed_s)}"
        if row.ranks_seen > 1:
            yield f"{row.ranks_done} of {row.ranks_seen} ranks done"
        yield known.verdict.because
        yield from _act(known)
        yield from _expected(known)
        return
    yield f"{str(known.outcome).upper()}: {known.verdict.because}"
    yield from _ages(known)
    if known.startup_s is not None:
        yield f"took {duration(known.startup_s)} to ready at {iso(known.ready_at_s, known.zone)}"
    if known.failure is not None:
        yield " ".join(
            f"{known.failure.phase or ''} {known.failure.rank or ''} line {known.failure.place.line}".split()
        )


def _act(known: Snapshot) -> Iterator[str]:
    """When the engine itself gives up, and what one could do."""
    verdict = known.verdict
    if verdict.deadline_at_s is not None and verdict.state is not VerdictState.PROGRESSING:
        yield f"gives up at {clock(verdict.deadline_at_s)} if nothing changes ({verdict.deadline_why})"
    if verdict.next_step:
        yield f"try: {verdict.next_step}"


def _expected(known: Snapshot) -> Iterator[str]:
    """How long still, and when to ask again."""
    if words := eta_words(known.eta):
        yield words
    if known.next_check_s is not None and not known.ended:
        yield f"look again in {duration(round(known.next_check_s))}"


def _ages(known: Snapshot) -> Iterator[str]:
    """How old the answer is: a log may still hold yesterday's ready."""
    age = age_s(known)
    if age is None or known.silent_s is None:
        return
    yield f"{duration(age)} ago"
    if known.outcome is Outcome.READY and age - known.silent_s >= 1:
        yield f"last output {duration(known.silent_s)} ago"


def waited_line(
    known: Snapshot,
    *,
    was_so: bool,
    timed_out: str | None,
    reached: str | None = None,
    fired: str = "",
    plain: bool = False,
) -> str:
    """The answer of ``wait`` in one line.

    Args:
        known: the snapshot at its end.
        was_so: whether the answer stood in the log before the wait began.
        timed_out: the time limit that has passed, as it was given.
        reached: the phase that was waited for, and has come, in words.
        fired: the engine's own limit that ended the start.
        plain: ASCII only.
    """
    line = status_line(known, plain=plain)
    if timed_out is not None:
        return f"TIMEOUT after {timed_out}: {line}"
    if reached is not None:
        line = f"REACHED {reached}: {line}"
    line += f" (the engine's own limit has passed: {fired})" if fired else ""
    return line + (" (it was so before this wait began; --new waits for the next boot)" if was_so else "")


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
        last_ranks(known),
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
    parts.append(f"draft {draft}" if draft else "no draft")
    return ", ".join(parts)


def _range(low: str | None, high: str | None) -> str:
    if low is None and high is None:
        return "(version unknown)"
    return f"({low or '…'} to {high or '…'} by its wording)"


def outcome_line(known: Snapshot) -> str:
    """The outcome in a sentence."""
    at = iso(known.ready_at_s, known.zone)
    if known.outcome is Outcome.READY:
        return f"READY at {at} after {duration(known.startup_s)}. {known.verdict.because}"
    if known.outcome is Outcome.STOPPED and known.ready_at_s is not None:
        return f"STOPPED; was ready at {at} after {duration(known.startup_s)}."
    if known.outcome is Outcome.FAILED and known.ready_at_s is not None:
        return f"FAILED while serving; was ready at {at} after {duration(known.startup_s)}. {known.verdict.because}"
    if known.outcome is Outcome.NONE:
        return known.verdict.because
    return f"{str(known.outcome).upper()}. {known.verdict.because}"


def _table(known: Snapshot, *, plain: bool) -> Iterator[str]:
    total = total_s(known)
    yield f"  {'phase':<20} {'begin':<8} {'elapsed':>12} {'share':>5}  {'progress':<15} {'ranks':>5} {'silent':>7}"
    for row in known.phases:
        yield _table_row(row, total, plain=plain)
    if known.between_phases_s is not None:
        part = share(known.between_phases_s, total)
        yield f"  {'between phases':<20} {'':8} {duration(known.between_phases_s):>12} {part:>5}"
    if any(cells(row, total).inferred for row in known.phases):
        yield "  ~ inferred: not printed by the engine"


def _table_row(row: PhaseRow, total: float | None, *, plain: bool) -> str:
    cell = cells(row, total)
    elapsed = f"~{cell.elapsed}" if cell.inferred and cell.elapsed else cell.elapsed
    line = (
        f"{glyph(row.status, plain=plain)} {cell.title:<20} {cell.begin:<8} {elapsed:>12} {cell.share:>5}"
        f"  {cell.progress:<15} {cell.ranks:>5} {cell.silent:>7}"
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
        lines.append(f"{mark} {boot.boot:>3}  line {boot.line or '?':<9} {started:<20} {boot.outcome}{took}")
    return lines
