"""``State`` to ``Snapshot``: pure, and the only way out of the core.

Nothing is decided here that a line could change; only sums, orders and words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core import plan
from phasetrack.core.blame import whole_cause
from phasetrack.core.machine import OF_RANKS, ordered_rows, summarize_boot
from phasetrack.core.model import (
    Activity,
    BarRow,
    Basis,
    Engine,
    Outcome,
    PhaseRow,
    Progress,
    RankSpan,
    Snapshot,
    Status,
    TimingCheck,
    Verdict,
    VerdictState,
)
from phasetrack.core.state import GRAPHS, LOADS, axes, rank_key, version_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from phasetrack.core.model import Bar, BootSummary, PatternSet, Source, Value
    from phasetrack.core.state import BarTrack, Boot, Doing, Row, Span, State

# Stamps have whole seconds.
_STAMP_S = 1.0
NO_VERDICT = Verdict(VerdictState.WAITING, "")

# Facts of server_args that a reader wants to see; the rest is in ``server_args``.
SHOWN_ARGS = (
    "model_path", "served_model_name", "tp_size", "pp_size", "dp_size", "ep_size", "nnodes", "node_rank", "dtype",
    "quantization", "kv_cache_dtype", "context_length", "mem_fraction_static", "max_running_requests",
    "chunked_prefill_size", "attention_backend", "load_format", "disable_cuda_graph", "cuda_graph_max_bs",
    "enable_torch_compile", "speculative_algorithm", "speculative_draft_model_path", "speculative_num_steps",
    "disaggregation_mode", "enable_dp_attention", "skip_server_warmup", "tokenizer_worker_num", "host", "port",
    "device",
)  # fmt: skip


def summarize(
    state: State,
    patterns: PatternSet,
    source: Source,
    *,
    boot: Boot | None,
    silent_s: float | None,
    lived_s: float,
    ended: bool,
    peek: tuple[Row, Bar] | None = None,
) -> Snapshot:
    """Put together all that is known, without the verdict and the estimate.

    Args:
        state: what the lines said.
        patterns: all packs, merged.
        source: how much was read.
        boot: the boot to show.
        silent_s: how long ago the last output was.
        lived_s: for how much of that the start went on: the rest is not its time.
        ended: nothing more will come.
        peek: the bar of the open tail, and its row.
    """
    if boot is None:
        return Snapshot(
            state.clock.newest_s, Outcome.NONE, NO_VERDICT, sources=(source,), silent_s=silent_s, ended=ended
        )
    now = boot.heard_s
    running_now = None if now is None else now if boot.is_over else now + lived_s
    rows = tuple(_rows(boot, patterns, running_now, peek))
    current = next((row for row in rows if row.phase == boot.phase and row.status is Status.RUNNING), None)
    last = summarize_boot(boot)
    starting = boot.outcome is Outcome.STARTING
    return Snapshot(
        now_s=running_now if starting else now,
        outcome=boot.outcome,
        verdict=NO_VERDICT,
        zone=state.clock.zone,
        engine=_engine(boot, patterns),
        sources=(source,),
        boots=_boots(state),
        boot=boot.number,
        phase=boot.phase,
        activity=_current_activity(boot) if starting else None,
        progress=None if current is None else current.progress,
        silent_s=silent_s,
        phases=rows,
        between_phases_s=_between(boot, rows, running_now),
        started_at_s=last.started_at_s,
        ready_at_s=boot.ready_at_s,
        ready_line=None if boot.ready is None else boot.ready.line,
        ready_offset=None if boot.ready is None else boot.ready.offset,
        startup_s=last.startup_s,
        failure=whole_cause(boot),
        warnings=tuple(boot.warnings.values()),
        facts=_facts(boot),
        activities=tuple(_activity(doing) for doing in boot.doing.values()),
        timings=_timings(boot, rows),
        drift=_drift(boot),
        unopened=_unopened(boot),
        ended=ended,
    )


def _boots(state: State) -> tuple[BootSummary, ...]:
    live = [summarize_boot(boot) for boot in state.live.values()]
    return tuple(sorted([*state.past, *live], key=lambda boot: boot.boot))


def _engine(boot: Boot, patterns: PatternSet) -> Engine:
    version = boot.fact("version")
    since, until = boot.since, boot.until
    if since is not None and until is not None and version_key(since) > version_key(until):
        since = until = None  # a fork, or a build between releases: its wording tells nothing
    return Engine(
        boot.engine,
        patterns.titles.get(boot.engine, boot.engine),
        None if version is None else str(version),
        since,
        until,
        patterns.packs.get(boot.engine, ""),
    )


# --- rows -------------------------------------------------------------------------------------------


def _rows(boot: Boot, patterns: PatternSet, now: float | None, peek: tuple[Row, Bar] | None) -> list[PhaseRow]:
    ordered = ordered_rows(boot)
    if boot.is_excerpt:
        ordered = [row for row in ordered if row.phase != "bootstrap"]
    rows = [_row(boot, row, patterns, now, ordered, peek) for row in ordered]
    seen = {row.phase for row in ordered}
    over = boot.ready is not None or boot.is_over
    for phase in boot.plan:
        if phase not in seen and phase != "ready":
            status = Status.SKIPPED if over else Status.PENDING
            rows.append(PhaseRow(phase, _title(patterns, boot.engine, phase), 1, status))
    if boot.ready is not None:
        at, line, offset = boot.ready_at_s, boot.ready.line, boot.ready.offset
        took, title = None if at is None else 0.0, _title(patterns, boot.engine, "ready")
        rows.append(PhaseRow("ready", title, 1, Status.DONE, at, at, took, line, line, offset, offset))
    elif not over:
        rows.append(PhaseRow("ready", _title(patterns, boot.engine, "ready"), 1, Status.PENDING))
    return rows


def _title(patterns: PatternSet, engine: str, phase: str) -> str:
    info = patterns.phases_of(engine).get(phase)
    return phase if info is None else info.title


def _row(
    boot: Boot,
    row: Row,
    patterns: PatternSet,
    now: float | None,
    ordered: list[Row],
    peek: tuple[Row, Bar] | None,
) -> PhaseRow:
    spans = row.all_spans()
    done = [span for span in row.spans.values() if not span.is_open]
    due = _ranks_due(boot, row)
    is_open = row.is_open or due > len(row.spans)
    began = row.began_s if boot.opened or row.phase != "bootstrap" else None
    ended = None if is_open else _ended(row, spans, ordered)
    first = min(spans, key=lambda span: span.begin.offset)
    last = None if is_open else max((s.end for s in spans if s.end is not None), key=lambda place: place.offset)
    progress = _peeked(row, peek) or _progress(row)
    bars = tuple(map(_bar_row, row.bars))
    full = progress is not None and progress.total is not None and progress.done >= progress.total
    basis = Basis.LOGGED
    if any(span.basis is Basis.INFERRED for span in spans) or any(
        s.end_basis is Basis.INFERRED for s in spans if s.end
    ):
        basis = Basis.INFERRED
    return PhaseRow(
        phase=row.phase,
        title=_title(patterns, boot.engine, row.phase),
        occurrence=row.occurrence,
        status=_status(boot, is_open=is_open),
        began_s=began,
        ended_s=ended,
        elapsed_s=_elapsed(row, began, ended if not is_open else now, basis),
        begin_line=first.begin.line,
        end_line=None if last is None else last.line,
        begin_offset=first.begin.offset,
        end_offset=None if last is None else last.offset,
        basis=basis,
        progress=progress,
        ranks_done=len(done),
        ranks_seen=max(len(row.spans), due),
        slowest_rank=_slowest(row),
        skew_s=_skew(done) if not is_open else None,
        longest_silence_s=row.silence_s,
        silence_from_s=row.silence_from_s,
        silence_end_offset=None if row.silence_end is None else row.silence_end.offset,
        note="finishing (repack, slowest rank)" if is_open and full and row.phase in LOADS and not boot.is_over else "",
        bars=bars,
        ranks=tuple(_rank_span(boot, span) for span in sorted(row.spans.values(), key=lambda s: rank_key(s.rank))),
    )


def _status(boot: Boot, *, is_open: bool) -> Status:
    if not is_open:
        return Status.DONE
    return Status.FAILED if boot.is_over else Status.RUNNING


def _ended(row: Row, spans: list[Span], ordered: list[Row]) -> float | None:
    """The last end over its ranks; the start's own row ends where the first rank begins."""
    if row.phase == "bootstrap":
        others = [other for other in ordered if other is not row]
        starts = [other.began_s for other in others if other.began_s is not None]
        if others and not others[0].spans and others[0].hint is not None and not others[0].hint.strong:
            return None  # a bar without a time came first
        if starts:
            return max(min(starts), row.began_s or min(starts))
    return max((span.ended_s for span in spans if span.ended_s is not None), default=None)


def _elapsed(row: Row, began: float | None, until: float | None, basis: Basis) -> float | None:
    """How long a row lasted: by its stamps; no less than its bars say where a boundary was not printed."""
    by_rank: dict[str, float] = {}
    for track in row.bars:
        if track.elapsed_s is not None:
            by_rank[track.rank] = by_rank.get(track.rank, 0.0) + track.elapsed_s
    of_bars = max(by_rank.values(), default=None)
    if began is None or until is None:
        return of_bars if began is None else None
    stamped = max(until - began, 0.0)
    is_longer = basis is Basis.INFERRED and of_bars is not None and of_bars > stamped + _STAMP_S
    return of_bars if is_longer else stamped


def _ranks_due(boot: Boot, row: Row) -> int:
    """How many ranks are to come to the end of a phase that not all have ended; 0 where that is not known.

    By the arguments, or, in an excerpt, by their numbers: where TP7 is, there are TP0 to TP6. Later phases show
    that all have come to its end.
    """
    over = boot.ready is not None or any(other.begin.offset > row.begin.offset for other in boot.rows)
    if row.phase not in OF_RANKS or len(row.spans) < 2 or (over and not row.is_open):
        return 0
    numbers = [axes(rank) for rank in row.spans]
    if any(list(number) != ["TP"] for number in numbers):
        return 0
    places = [number["TP"] for number in numbers]
    if boot.args and plan.number(boot.args, "dp_size", 1) == plan.number(boot.args, "pp_size", 1) == 1:
        nodes = max(plan.number(boot.args, "nnodes", 1), 1)
        here = plan.number(boot.args, "tp_size", 1) // nodes
        return here if row.is_open and len(boot.nodes) < 2 else 0
    return max(places) - min(places) + 1 if boot.is_excerpt else 0


def _slowest(row: Row) -> str | None:
    if len(row.spans) < 2:
        return None
    waiting = sorted((span.rank for span in row.spans.values() if span.is_open), key=rank_key)
    if waiting:
        return waiting[0] if len(waiting) < len(row.spans) else None
    ended = [span for span in row.spans.values() if span.ended_s is not None]
    return max(ended, key=lambda s: (s.ended_s or 0.0, rank_key(s.rank))).rank if ended else None


def _skew(done: list[Span]) -> float | None:
    ends = [span.ended_s for span in done if span.ended_s is not None]
    return max(ends) - min(ends) if len(ends) > 1 else None


def _rank_span(boot: Boot, span: Span) -> RankSpan:
    status = _status(boot, is_open=span.is_open)
    line = None if span.end is None else span.end.line
    return RankSpan(span.rank, status, span.began_s, span.ended_s, span.begin.line, line, span.basis)


def _progress(row: Row) -> Progress | None:
    """The bar that holds the phase back: of each rank's newest bar, the least full."""
    newest: dict[str, BarTrack] = {}
    for track in row.bars:
        newest[track.rank] = track
    if not newest:
        return None
    moving = [track for track in newest.values() if not track.is_full] or [row.bars[-1]]
    track = min(moving, key=lambda track: track.fraction)
    return Progress(track.done, track.total, track.unit, track.rate_per_s)


def _peeked(row: Row, peek: tuple[Row, Bar] | None) -> Progress | None:
    """The bar of the open tail: its frame has no terminator yet, but a terminal would show it."""
    if peek is None or peek[0] is not row:
        return None
    bar, known = peek[1], _progress(row)
    if known is not None and known.total == bar.total and bar.done < known.done:
        return None
    unit = bar.unit if known is None else known.unit
    return Progress(bar.done, bar.total, unit, bar.rate_per_s)


def _bar_row(track: BarTrack) -> BarRow:
    return BarRow(
        track.title, track.done, track.total, track.unit, track.began_s, track.last_s, track.elapsed_s,
        track.rate_per_s, track.rank, tuple(track.curve),
    )  # fmt: skip


def _between(boot: Boot, rows: tuple[PhaseRow, ...], now: float | None) -> float | None:
    """Time of the start that no phase claims: the whole less the union of the rows."""
    start = boot.started_at_s if boot.opened else None
    end = boot.ready_at_s if boot.ready_at_s is not None else now
    if start is None or end is None:
        return None
    spans = sorted(
        (max(row.began_s, start), min(_until(row, end), end))
        for row in rows
        if row.began_s is not None and row.status is not Status.PENDING
    )
    covered, reach = 0.0, start
    for begin, stop in spans:
        if stop > reach:
            covered += stop - max(begin, reach)
            reach = stop
    return max(end - start - covered, 0.0)


def _until(row: PhaseRow, end: float) -> float:
    if row.ended_s is not None:
        return row.ended_s
    return end if row.status is not Status.DONE or row.began_s is None else row.began_s


# --- the rest ---------------------------------------------------------------------------------------


def _activity(doing: Doing) -> Activity:
    bar = doing.bar
    progress = None if bar is None else Progress(bar.done, bar.total, bar.unit, bar.rate_per_s)
    return Activity(doing.id, doing.title, doing.phase, doing.began_s, doing.ended_s, doing.place.line, progress)


def _current_activity(boot: Boot) -> Activity | None:
    running = [doing for doing in boot.doing.values() if doing.open and doing.phase == boot.phase]
    return _activity(max(running, key=lambda doing: doing.place.offset)) if running else None


def _facts(boot: Boot) -> Mapping[str, Value]:
    facts: dict[str, Value] = {name: boot.args[name] for name in SHOWN_ARGS if boot.args.get(name) is not None}
    facts |= {name: value for name, (_, value) in boot.facts.items()}
    if boot.args:
        facts["server_args"] = dict(boot.args)
    return facts


def _timings(boot: Boot, rows: tuple[PhaseRow, ...]) -> tuple[TimingCheck, ...]:
    """The engine's own figures (0.5.18+) beside those derived from the log."""
    by_phase = {row.phase: row.elapsed_s for row in rows}
    pairs = (("engine_load_weight_s", "target_load"), ("engine_kv_cache_allocation_s", "kv_cache"))
    checks = []
    for fact, phase in pairs:
        value = boot.fact(fact)
        if isinstance(value, float | int):
            checks.append(TimingCheck(phase, float(value), by_phase.get(phase)))
    return tuple(checks)


def _unopened(boot: Boot) -> str | None:
    """Why it is not known when the start began; None where its opening line was seen."""
    if boot.opened:
        return None
    if boot.found_serving:
        return "begins while the server was serving already"
    if boot.is_excerpt:
        return "begins in the middle of this start: how long it has taken is not known"
    return "holds no line that opens this start: when it began is not known"


def _drift(boot: Boot) -> str | None:
    """Say when an engine's known landmarks are missing: the log is newer than the pack."""
    phases = {row.phase for row in boot.rows}
    expected = [phase for phase in boot.plan if phase in {*LOADS, "kv_cache", *GRAPHS}]
    missing = [phase for phase in expected if phase not in phases]
    if boot.ready is None or boot.headless or boot.stamped < 20 or len(missing) * 2 <= len(expected):
        return None
    return f"looks newer than the pack: no line of {', '.join(missing)} was recognised"
