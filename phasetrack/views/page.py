"""The report as one HTML file: a picture of the start that reads without scripts, and moves with them.

One file, no network (a content policy in it forbids any), under 500 kB for any log: every list has a limit
beside its reason, and what is left out is said. All text goes through jinja2's escaping; log text is never
part of a script or a style.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrack.core.model import Outcome
from phasetrack.core.say import duration
from phasetrack.views.chart import ALL
from phasetrack.views.curves import curve_path
from phasetrack.views.facts import shown_facts
from phasetrack.views.foretold import expected_lines, sources_of, told_lines
from phasetrack.views.gantt import FAMILIES, chart, rank_name
from phasetrack.views.headline import engine_words, failure_block, headline
from phasetrack.views.rows import fate, gaps, last_ranks, share, total_s
from phasetrack.views.strips import evidence_strips
from phasetrack.views.template import cut, render
from phasetrack.views.words import count, iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from phasetrack.core.model import BarRow, EvidenceSample, PhaseRow, Snapshot, Value
    from phasetrack.views.chart import Chart, Limits
    from phasetrack.views.foretold import Told

# A page is no larger, whatever the log holds: one that would be is drawn again with less of everything.
_PAGE_BYTES = 490_000
_SHARES = (1.0, 0.3, 0.1, 0.03)

_LEGEND = (
    ("boot", "start and init"), ("load", "weights"), ("memory", "KV cache"), ("graph", "CUDA graphs"),
    ("serve", "HTTP and warm-up"), ("failed", "failed"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Head:
    """The first lines of the page."""

    word: str
    rest: str
    because: str
    engine: str
    model: str
    path: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure that a reader wants first."""

    title: str
    value: str
    more: str = ""


def report_page(
    known: Snapshot, *, told: Sequence[Told] = (), evidence: Sequence[EvidenceSample] = (), lag_s: float = 0.0
) -> str:
    """Draw a postmortem as one HTML file.

    Args:
        known: the snapshot.
        told: the estimates that were given while the server started, oldest first.
        evidence: samples taken while the server started, oldest first; none where nothing was recorded.
        lag_s: our clock less the log's, to place the samples on the log's time line.
    """
    page = ""
    for share_of in _SHARES:
        page = _page(known, told, (evidence, lag_s), ALL.scaled(share_of))
        if len(page.encode()) <= _PAGE_BYTES:
            break
    return page


def _page(known: Snapshot, told: Sequence[Told], seen: tuple[Sequence[EvidenceSample], float], limits: Limits) -> str:
    drawn = chart(known, limits=limits)
    cards = [(row, bar) for row in known.phases for bar in row.bars if len(bar.curve) > 2 and bar.total]
    return render(
        "report.html.j2",
        known=known,
        head=_head(known),
        figures=list(_figures(known)),
        failure=None if known.failure is None else failure_block(known.failure, known, limits),
        chart=drawn,
        between=share(known.between_phases_s, total_s(known)) if known.between_phases_s is not None else "",
        legend=list(_legend(drawn)),
        last_ranks=[*last_ranks(known)[:12], *gaps(known)],
        evidence=list(evidence_strips(*seen, drawn)),
        curves=[_card(row, bar) for row, bar in cards[: limits.cards]],
        curves_left_out=max(len(cards) - limits.cards, 0),
        expected=list(expected_lines(known))[: limits.lanes],
        told=list(told_lines(known, told))[: limits.lanes],
        sources=sources_of(known, told),
        rank_table=_rank_table(known, limits.rank_cells),
        warnings=list(_warnings(known, limits)),
        boots=list(_boots(known, limits.boots)),
        facts=[(title, cut(text, limits.text)) for title, text in shown_facts(known.facts)],
        **_arguments(known.facts, limits),
    )


# --- the head ---------------------------------------------------------------------------------------


def _head(known: Snapshot) -> Head:
    word, rest = headline(known)
    facts = known.facts
    draft = facts.get("speculative_algorithm")
    parts = [f"{key[:2]} {facts[key]}" for key in ("tp_size", "pp_size", "dp_size", "ep_size") if _many(facts, key)]
    parts += [f"draft {draft}"] if draft else []
    path = known.sources[0].path if known.sources else ""
    began = iso(known.started_at_s, known.zone)
    because = "" if known.outcome is Outcome.STOPPED else known.verdict.because
    because += "" if known.unopened is None else f" This log {known.unopened}."
    return Head(
        word, rest, cut(because), " · ".join(text for text in (engine_words(known), began or "") if text),
        cut(str(facts.get("model_path") or "")), cut(path), tuple(cut(part, 80) for part in parts),
    )  # fmt: skip


def _many(facts: Mapping[str, Value], key: str) -> bool:
    return facts.get(key) not in {None, 1}


def _figures(known: Snapshot) -> Iterator[Figure]:
    total = total_s(known)
    if total is not None:
        yield Figure("Start to ready" if known.startup_s is not None else "Until the log ends", duration(total))
    timed = [row for row in known.phases if row.elapsed_s is not None and row.phase not in {"serving", "ready"}]
    if timed:
        row = max(timed, key=lambda row: row.elapsed_s or 0.0)
        yield Figure("Longest phase", duration(row.elapsed_s), f"{row.title} {share(row.elapsed_s, total)}".rstrip())
    silent = [row for row in known.phases if (row.longest_silence_s or 0) >= 1 and row.phase != "serving"]
    if silent:
        row = max(silent, key=lambda row: row.longest_silence_s or 0.0)
        yield Figure("Longest silence", duration(row.longest_silence_s), f"in {row.title}")
    if known.between_phases_s is not None:
        yield Figure("Between phases", duration(known.between_phases_s))
    if known.eta is not None and known.eta.mid_s is not None and known.eta.low_s is not None:
        high = known.eta.high_s if known.eta.high_s is not None else known.eta.mid_s
        yield Figure("Still to come", f"{duration(known.eta.low_s)} to {duration(high)}", known.eta.source)


# --- the blocks -------------------------------------------------------------------------------------


def _legend(drawn: Chart) -> Iterator[tuple[str, str]]:
    lanes = drawn.lanes
    families = {lane.family for lane in lanes if lane.span is not None}
    yield from ((key, text) for key, text in _LEGEND if key in families)
    marks: tuple[tuple[str, str, Callable[..., object]], ...] = (
        ("curve-key", "done so far, inside its bar", lambda lane: lane.curves),
        ("silence", "silent: nothing was printed", lambda lane: lane.silence),
        ("doing", "work inside a phase", lambda lane: lane.activities),
        ("rank", "one rank", lambda lane: lane.strips),
        ("late", "the last rank", lambda lane: any(strip.kind for strip in lane.strips)),
        ("range-key", "expected", lambda lane: lane.expected),
    )
    yield from ((key, text) for key, text, shows in marks if any(shows(lane) for lane in lanes))


def _card(row: PhaseRow, bar: BarRow) -> dict[str, str]:
    unit = "" if bar.unit in {"", "it"} else f" {bar.unit}"
    total = "?" if bar.total is None else count(bar.total)
    rate = "" if bar.rate_per_s is None else f"{count(bar.rate_per_s)}{unit}/s"
    done = f"{count(bar.done)}/{total}{unit}"
    return {
        "family": FAMILIES.get(row.phase, "other"),
        "title": cut(row.title, 80),
        "bar": cut(" ".join(text for text in (bar.title, bar.rank) if text), 120),
        "path": curve_path(bar),
        "tip": cut(f"{row.title}, {bar.title}: {done} after {duration(bar.elapsed_s)}", 200),
        "done": done,
        "rate": rate,
        "elapsed": duration(bar.elapsed_s),
    }


def _rank_table(known: Snapshot, cells_max: int) -> dict[str, object] | None:
    rows = [row for row in known.phases if len(row.ranks) > 1][:16]
    names = list(dict.fromkeys(span.rank for row in rows for span in row.ranks))
    if not rows:
        return None
    most = max(cells_max // len(rows), 1)
    spans = [{span.rank: span for span in row.ranks} for row in rows]
    lines = []
    for name in names[:most]:
        line = []
        for row, by_rank in zip(rows, spans, strict=True):
            span = by_rank.get(name)
            known_s = span is not None and span.began_s is not None and span.ended_s is not None
            took = (span.ended_s or 0.0) - (span.began_s or 0.0) if span is not None and known_s else None
            text = "" if span is None else str(span.status) if took is None else f"{max(took, 0.0):.1f}"
            line.append({"text": text, "last": row.slowest_rank == name and (row.skew_s or 0) > 0})
        lines.append({"name": rank_name(name), "cells": line})
    return {"titles": [cut(row.title, 60) for row in rows], "rows": lines, "left_out": max(len(names) - most, 0)}


def _warnings(known: Snapshot, limits: Limits) -> Iterator[dict[str, str]]:
    for warning in known.warnings[: limits.warnings]:
        line = "" if warning.line is None else f"line {warning.line}"
        times = f"{warning.count} times" if warning.count > 1 else ""
        yield {"message": cut(warning.message, limits.text), "more": ", ".join(text for text in (line, times) if text)}
    if len(known.warnings) > limits.warnings:
        yield {"message": f"{len(known.warnings) - limits.warnings} more kinds of warnings", "more": ""}


def _boots(known: Snapshot, most: int) -> Iterator[dict[str, object]]:
    if len(known.boots) < 2:
        return
    for boot in known.boots[-most:]:
        outcome = fate(known, boot) + (f" ({boot.failure_id})" if boot.failure_id else "")
        yield {
            "number": boot.boot,
            "line": "" if boot.line is None else boot.line,
            "started": iso(boot.started_at_s, known.zone) or "time unknown",
            "outcome": outcome,
            "took": "" if boot.startup_s is None else duration(boot.startup_s),
            "shown": boot.boot == known.boot,
        }


def _arguments(facts: Mapping[str, Value], limits: Limits) -> dict[str, object]:
    given = facts.get("server_args")
    pairs = sorted(given.items()) if isinstance(given, Mapping) else []
    listed = [(cut(str(name), 80), cut(str(value), limits.text // 2)) for name, value in pairs[: limits.arguments]]
    return {"arguments": listed, "arguments_count": len(pairs)}
