"""The text report and the one-line status: readable at 80 columns, and greppable.

The report is in the spirit of ``systemd-analyze blame``: one line a phase, in the order in which they began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.model import Basis, Outcome, Status
from phasetrack.views.words import clock, duration, glyph, iso, progress, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from phasetrack.core.model import PhaseRow, Snapshot, Value

# Facts in the order in which people ask for them: (fact, title)
_FACTS = (
    ("model_path", "model"), ("quantization", "quantization"), ("dtype", "dtype"), ("load_format", "load format"),
    ("tp_size", "tp"), ("pp_size", "pp"), ("dp_size", "dp"), ("ep_size", "ep"), ("nnodes", "nodes"),
    ("node_rank", "node rank"), ("speculative_algorithm", "draft"), ("speculative_draft_model_path", "draft model"),
    ("attention_backend", "attention"), ("disaggregation_mode", "disaggregation"), ("weights_bytes", "weights"),
    ("draft_weights_bytes", "draft weights"), ("kv_tokens", "KV tokens"), ("kv_bytes", "KV size"),
    ("max_total_tokens", "max tokens"), ("max_running_requests", "max requests"), ("context_len_tokens", "context"),
    ("mem_fraction_static", "mem fraction"), ("graph_mem_bytes", "graph memory"),
    ("available_gpu_mem_bytes", "free GPU memory"), ("url", "url"),
)  # fmt: skip
_PARALLEL = {"tp_size", "pp_size", "dp_size", "ep_size", "nnodes"}


def status_line(known: Snapshot, *, plain: bool = False) -> str:
    """One answer now, in one line."""
    dot = " | " if plain else " · "
    return dot.join(_status_parts(known))


def _status_parts(known: Snapshot) -> Iterator[str]:
    if known.outcome is Outcome.NONE:
        yield known.verdict.because
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
        return
    yield f"{str(known.outcome).upper()}: {known.verdict.because}"
    if known.startup_s is not None:
        yield f"took {duration(known.startup_s)} to ready at {iso(known.ready_at_s, known.zone)}"
    if known.failure is not None:
        yield " ".join(
            f"{known.failure.phase or ''} {known.failure.rank or ''} line {known.failure.place.line}".split()
        )


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
    for block in (_failure(known), _silences(known), _warnings(known), _facts(known, width), _boots(known)):
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
        return f"FAILED while serving; was ready at {at} after {duration(known.startup_s)}."
    if known.outcome is Outcome.NONE:
        return known.verdict.because
    return f"{str(known.outcome).upper()}. {known.verdict.because}"


def _table(known: Snapshot, *, plain: bool) -> Iterator[str]:
    total = known.startup_s
    if total is None and known.now_s is not None and known.started_at_s is not None:
        total = known.now_s - known.started_at_s
    yield f"  {'phase':<20} {'begin':<8} {'elapsed':>12} {'share':>5}  {'progress':<15} {'ranks':>5} {'silent':>7}"
    for row in known.phases:
        yield _table_row(row, total, plain=plain)
    if known.between_phases_s is not None:
        share = _share(known.between_phases_s, total)
        yield f"  {'between phases':<20} {'':8} {duration(known.between_phases_s):>12} {share:>5}"
    if any(row.basis is Basis.INFERRED for row in known.phases if row.status is not Status.PENDING):
        yield "  ~ inferred: not printed by the engine"


def _table_row(row: PhaseRow, total: float | None, *, plain: bool) -> str:
    elapsed = "" if row.status in {Status.PENDING, Status.SKIPPED} else duration(row.elapsed_s)
    mark = "~" if row.basis is Basis.INFERRED and elapsed else ""
    ranks = f"{row.ranks_done}/{row.ranks_seen}" if row.ranks_seen > 1 else ""
    begin = clock(row.began_s) if elapsed else str(row.status)
    share = "" if row.phase in {"ready", "serving"} else _share(row.elapsed_s, total)
    silent = _short(row.longest_silence_s)
    title = row.title if row.occurrence == 1 else f"{row.title} ({row.occurrence})"
    line = (
        f"{glyph(row.status, plain=plain)} {title:<20} {begin:<8} {mark + elapsed:>12} {share:>5}"
        f"  {progress(row.progress):<15} {ranks:>5} {silent:>7}"
    )
    return line.rstrip() + (f"  {row.note}" if row.note else "")


def _short(seconds: float | None) -> str:
    if seconds is None or seconds < 1:
        return ""
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


def _share(part: float | None, total: float | None) -> str:
    if part is None or not total:
        return ""
    return f"{100 * part / total:.0f} %"


def _failure(known: Snapshot) -> list[str]:
    failure = known.failure
    if failure is None:
        return []
    where = " ".join(part for part in (failure.phase or "", failure.rank or "", f"line {failure.place.line}") if part)
    lines = [f"First cause ({where}):", f"  {failure.message}"]
    lines += [f"  why:  {failure.cause}"] if failure.cause else []
    lines += [f"  do:   {failure.remedy}"] if failure.remedy else []
    if len(failure.ranks) > 1:
        lines.append(f"  {len(failure.ranks)} ranks say the same: {', '.join(failure.ranks[:8])}")
    lines += [f"  then: {echo}" for echo in failure.echoes[:3]]
    return lines


def _silences(known: Snapshot) -> list[str]:
    slow = [row for row in known.phases if row.slowest_rank is not None and (row.skew_s or 0) >= 1]
    return [f"{row.title}: {row.slowest_rank} was last, {duration(row.skew_s)} after the first." for row in slow]


def _warnings(known: Snapshot) -> list[str]:
    return [
        f"Warning: {warning.message[:160]}" + (f" ({warning.count} times)" if warning.count > 1 else "")
        for warning in known.warnings
    ]


def _facts(known: Snapshot, width: int) -> list[str]:
    pairs = [(title, _fact(known.facts, key)) for key, title in _FACTS if known.facts.get(key) is not None]
    pairs = [(title, text) for title, text in pairs if text]
    return [f"{title:<16} {text}"[:width] for title, text in pairs]


def _fact(facts: Mapping[str, Value], key: str) -> str:
    value = facts[key]
    if key in _PARALLEL and value == 1:
        return ""
    if key.endswith("_bytes") and isinstance(value, int):
        return size(value)
    return f"{value:,}" if isinstance(value, int) and key.endswith(("tokens", "requests")) else str(value)


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
