"""The report as one HTML file: a picture of the start that reads without scripts, and moves with them.

One file, no network (a content policy in it forbids any), under 500 kB for any log: every list has a limit
beside its reason, and what is left out is said. All text goes through jinja2's escaping; log text is never
part of a script or a style.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from phasetrack import __version__
from phasetrack.core.model import Outcome, Range, VerdictState
from phasetrack.core.say import duration
from phasetrack.views.facts import shown_facts
from phasetrack.views.gantt import ALL, FAMILIES, WORTH_S, chart, curve_path, rank_name
from phasetrack.views.rows import last_ranks, share, total_s
from phasetrack.views.words import clock, count, iso, size, span_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jinja2 import Environment

    from phasetrack.core.model import BarRow, EvidenceSample, Failure, PhaseRow, Snapshot, Value
    from phasetrack.views.gantt import Chart, Limits

# A page is no larger, whatever the log holds: one that would be is drawn again with less of everything.
_PAGE_BYTES = 490_000
_SHARES = (1.0, 0.3, 0.1, 0.03)
_STAMP_S = 1.0  # what most logs can tell
_SAMPLES_MAX = 240  # points of an evidence strip: one for every few pixels

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
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


@dataclass(frozen=True, slots=True)
class Strip:
    """One channel of evidence over the chart's time line."""

    title: str
    left: float
    width: float
    path: str
    tip: str


@dataclass(frozen=True, slots=True)
class Told:
    """What was said of the time left at one moment of the start."""

    at_s: float  # log clock
    title: str  # of the phase that began then
    left: Range
    source: str


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
        last_ranks=last_ranks(known)[:12],
        evidence=list(_strips(*seen, drawn)),
        curves=[_card(row, bar) for row, bar in cards[: limits.cards]],
        curves_left_out=max(len(cards) - limits.cards, 0),
        expected=list(_expected(known))[: limits.lanes],
        told=list(_told(known, told))[: limits.lanes],
        sources=_sources(known, told),
        rank_table=_rank_table(known, limits.rank_cells),
        warnings=list(_warnings(known, limits)),
        boots=list(_boots(known, limits.boots)),
        facts=[(title, cut(text, limits.text)) for title, text in shown_facts(known.facts)],
        **_arguments(known.facts, limits),
    )


# --- jinja ------------------------------------------------------------------------------------------


def render(template: str, **data: object) -> str:
    """Fill a template of this package."""
    text = _environment().get_template(template).render(data)
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from base64 import b64encode
    from hashlib import sha256

    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("phasetrack.views", "templates")
    env = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    # Our own files: the only text that is not escaped. The policy lets this one script run, and no other.
    style, script = (loader.get_source(env, name)[0] for name in ("page.css", "page.js"))
    digest = b64encode(sha256(script.encode()).digest()).decode()
    env.globals |= {
        "style": Markup(style),  # noqa: S704 - ours
        "script": Markup(script),  # noqa: S704 - ours
        "script_hash": f"sha256-{digest}",
        "version": __version__,
    }
    env.filters |= {"duration": duration, "size": size}
    return env


def cut(text: str, most: int = ALL.text) -> str:
    """A text of any length in bounded room."""
    return text if len(text) <= most else text[: most - 1] + "…"


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
    return Head(
        word, rest, cut(because), " · ".join(text for text in (engine_words(known), began or "") if text),
        cut(str(facts.get("model_path") or "")), cut(path), tuple(cut(part, 80) for part in parts),
    )  # fmt: skip


def _many(facts: Mapping[str, Value], key: str) -> bool:
    return facts.get(key) not in {None, 1}


def engine_words(known: Snapshot) -> str:
    """``SGLang 0.5.12``, or the range of versions that its wording tells."""
    engine = known.engine
    if engine is None:
        return ""
    if engine.version is not None:
        return f"{engine.title} {engine.version}"
    if engine.version_low is None and engine.version_high is None:
        return engine.title
    return f"{engine.title} {engine.version_low or '…'} to {engine.version_high or '…'} by its wording"


def headline(known: Snapshot) -> tuple[str, str]:
    """The outcome in a word, and the rest of the sentence."""
    took = duration(known.startup_s)
    was_ready = f"was ready after {took}" if known.startup_s is not None else "was ready"
    title = next((row.title for row in known.phases if row.phase == known.phase), "")
    if known.outcome is Outcome.READY:
        return ("Degraded" if known.verdict.state is VerdictState.DEGRADED else "Ready", f"after {took}")
    if known.outcome is Outcome.STOPPED:
        return "Stopped", f"· {was_ready}" if known.ready_at_s is not None else "before it was ready"
    if known.outcome is Outcome.FAILED:
        return (
            "Failed",
            f"while serving · {was_ready}" if known.ready_at_s is not None else f"in {title or 'the start'}",
        )
    if known.outcome is Outcome.STARTING:
        return ("Unfinished" if known.ended else str(known.verdict.state).capitalize(), f"in {title or 'the start'}")
    return "No start", "in this log"


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


def failure_block(failure: Failure, known: Snapshot, limits: Limits = ALL) -> dict[str, object]:
    """The first cause in words; the Markdown report uses it too."""
    title = next((row.title for row in known.phases if row.phase == failure.phase), failure.phase or "")
    at = "" if failure.at_s is None else clock(failure.at_s)
    line = "" if failure.place.line is None else f"line {failure.place.line}"
    inferred = "inferred: no line says so" if failure.inferred else ""
    lines = [cut(line, limits.text) for line in failure.lines[: limits.lines]]
    ranks = ", ".join(failure.ranks[:16]) + (f" and {len(failure.ranks) - 16} more" if len(failure.ranks) > 16 else "")
    return {
        "where": " · ".join(text for text in (title, failure.rank or "", line, at, inferred) if text),
        "message": cut(failure.message, 5 * limits.text),
        "cause": cut(failure.cause, 2000),
        "remedy": cut(failure.remedy, 2000),
        "ranks": f"{ranks} say the same" if len(failure.ranks) > 1 else "",
        "lines": [] if lines == [failure.message] else lines,
        "echoes": [cut(echo) for echo in failure.echoes[:8]],
    }


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


def _expected(known: Snapshot) -> Iterator[dict[str, object]]:
    """What was expected of each phase beside what came true, on one scale."""
    rows = [(row, row.expected) for row in known.phases if row.expected is not None and row.expected.high_s >= WORTH_S]
    reach = max((max(expected.high_s, row.elapsed_s or 0.0) for row, expected in rows), default=0.0)
    for row, expected in rows:
        came_s = row.elapsed_s if row.ended_s is not None else None
        cache = f"{row.cache} cache" if row.cache else ""
        yield _range_line(cut(row.title, 80), expected, came_s, reach) | {"remark": cache}


def _told(known: Snapshot, told: Sequence[Told]) -> Iterator[dict[str, object]]:
    """What each estimate meant for the whole start, beside how long it took."""
    begin = known.started_at_s
    if begin is None:
        return
    spent = [(one, one.at_s - begin) for one in told]
    reach = max([known.startup_s or 0.0, *(at + one.left.high_s for one, at in spent)], default=0.0)
    for one, at in spent:
        whole = Range(at + one.left.low_s, at + one.left.mid_s, at + one.left.high_s)
        yield _range_line(cut(one.title, 80), whole, known.startup_s, reach) | {"remark": f"said at +{duration(at)}"}


def _range_line(title: str, expected: Range, came_s: float | None, reach_s: float) -> dict[str, object]:
    def at(seconds: float) -> float:
        return round(100 * min(seconds / max(reach_s, 1e-9), 1.0), 2)

    so = "not finished"
    if came_s is not None:
        early, late = expected.low_s - _STAMP_S, expected.high_s + _STAMP_S
        so = "sooner" if came_s < early else "later" if came_s > late else "as expected"
    return {
        "title": title,
        "low": at(expected.low_s),
        "mid": at(expected.mid_s),
        "width": round(at(expected.high_s) - at(expected.low_s), 2),
        "true": None if came_s is None else at(came_s),
        "range": span_of(expected),
        "came": duration(came_s) if came_s is not None else "",
        "so": so,
    }


def _sources(known: Snapshot, told: Sequence[Told]) -> str:
    """Where the ranges come from, each source once."""
    runs = max((row.expected.runs for row in known.phases if row.expected is not None), default=0)
    like = f"{runs} like boot{'s' if runs > 1 else ''} of this machine" if runs else "public starts of this size"
    now = () if known.eta is None else (known.eta.source, known.eta.why)
    named = [text.rstrip(".") for text in (like, *(one.source for one in told), *now) if text]
    return cut("Ranges (the middle 80 %) from " + "; ".join(dict.fromkeys(named)) + ".", 1000)


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
        outcome = str(boot.outcome) + (f" ({boot.failure_id})" if boot.failure_id else "")
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


# --- evidence ---------------------------------------------------------------------------------------


def _strips(samples: Sequence[EvidenceSample], lag_s: float, drawn: Chart) -> Iterator[Strip]:
    """What was seen outside the log, each channel scaled to its own largest value."""
    if drawn.begin_s is None or len(samples) < 2:
        return
    begin, end = drawn.begin_s, drawn.begin_s + drawn.length_s
    inside = [replace(s, now_s=s.now_s - lag_s) for s in samples if begin <= s.now_s - lag_s <= end]
    for title, unit, values in _channels(inside):
        points = [(at, value) for at, value in values if value is not None]
        most = max((value for _, value in points), default=0.0)
        if len(points) > 1 and most > 0:
            yield _strip(title, points, most, unit(most), drawn)


def _channels(
    samples: Sequence[EvidenceSample],
) -> Iterator[tuple[str, Callable[[float], str], list[tuple[float, float | None]]]]:
    def sums(name: str) -> list[tuple[float, float | None]]:
        """Of a counter of all processes, how fast it grew; a process that ended takes its share along."""
        found = []
        for before, after in pairwise(samples):
            old = {p.pid: getattr(p, name) for p in before.processes}
            pairs = [(old.get(p.pid), getattr(p, name)) for p in after.processes]
            grown = [new - was for was, new in pairs if was is not None and new is not None and new >= was]
            span = after.now_s - before.now_s
            found.append((after.now_s, sum(grown) / span if grown and span > 0 else None))
        return found

    def gpus(name: str) -> list[tuple[float, float | None]]:
        found = []
        for sample in samples:
            values = [getattr(gpu, name) for gpu in sample.gpus if getattr(gpu, name) is not None]
            found.append((sample.now_s, float(max(values)) if values else None))
        return found

    yield "CPU", lambda most: f"up to {most:.1f} cores", sums("cpu_s")
    yield "Disk reads", lambda most: f"up to {size(most)}/s", sums("read_bytes")
    yield "GPU use", lambda most: f"up to {most:.0f} %", gpus("util_percent")
    yield "GPU memory", lambda most: f"up to {size(most)}", gpus("memory_bytes")


def _strip(title: str, points: list[tuple[float, float]], most: float, tip: str, drawn: Chart) -> Strip:
    begin, length = drawn.begin_s or 0.0, drawn.length_s
    thinned = points[:: -(-len(points) // _SAMPLES_MAX)]
    first, last = thinned[0][0], thinned[-1][0]
    span = max(last - first, 1e-9)
    line = "".join(f"L{100 * (at - first) / span:.1f},{100 - 96 * value / most:.1f}" for at, value in thinned)
    left = round(100 * (first - begin) / length, 3)
    return Strip(title, left, round(100 * span / length, 3), f"M0,100{line}L100,100Z", tip)
