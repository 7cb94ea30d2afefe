"""The report as a Chrome trace: opens in Perfetto (ui.perfetto.dev) and in ``chrome://tracing``.

The format: "Trace Event Format", docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
Phases are threads of one process, ranks of another; a bar is a counter; ready and the first cause are
instants. Times are whole microseconds since the start began.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from phasetrack.core.model import Status
from phasetrack.core.state import rank_key
from phasetrack.views.curves import spread
from phasetrack.views.gantt import extent, rank_name
from phasetrack.views.jsonl import row_json
from phasetrack.views.words import iso

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import BarRow, PhaseRow, Snapshot

Event = dict[str, Any]

_PHASES, _RANKS = 1, 2
# Figures of a row that a reader of the trace finds under its slice.
_ARGS = ("status", "basis", "elapsed_s", "begin_line", "end_line", "ranks_done", "ranks_seen", "slowest_rank", "skew_s",
         "longest_silence_s", "progress", "note")  # fmt: skip


def report_trace(known: Snapshot) -> str:
    """The postmortem as one JSON object in the trace event format."""
    begin, end = extent(known)
    events = [] if begin is None or end is None else list(_events(known, begin, end))
    untimed = [row_json(row, known.zone) for row in known.phases if row.began_s is None]
    trace = {
        "traceEvents": events,
        "displayTimeUnit": "ms",
        "otherData": {
            "began": iso(begin, known.zone),
            "outcome": str(known.outcome),
            "startup_s": None if known.startup_s is None else round(known.startup_s, 3),
            "between_phases_s": None if known.between_phases_s is None else round(known.between_phases_s, 3),
            "untimed": [{name: row[name] for name in ("phase", "occurrence", *_ARGS)} for row in untimed],
        },
    }
    return json.dumps(trace, ensure_ascii=True, separators=(",", ":")) + "\n"


def _events(known: Snapshot, begin: float, end: float) -> Iterator[Event]:
    yield _name("process_name", _PHASES, 0, "Phases")
    yield _name("process_name", _RANKS, 0, "Ranks")
    for k, row in enumerate(known.phases, 1):
        if row.began_s is not None:
            yield from _thread(_PHASES, k, _title(row))
            yield from _row(known, row, k, begin)
    yield from _ranks(known, begin, end)
    yield from _instants(known, begin)


def _row(known: Snapshot, row: PhaseRow, k: int, begin: float) -> Iterator[Event]:
    shown = row_json(row, known.zone)
    args = {name: shown[name] for name in _ARGS if shown[name] is not None}
    began, span = row.began_s or 0.0, row.elapsed_s or 0.0
    yield {**_slice(_name_of(row), "phase", _PHASES, k, began - begin, span), "args": args}
    names: dict[str, int] = {}
    for bar in row.bars:
        title = " ".join(text for text in (bar.title, bar.rank) if text)
        names[title] = names.get(title, 0) + 1  # replicas draw the same bar, and print no rank
        again = f" ({names[title]})" if names[title] > 1 else ""
        yield from _counters(bar, f"{_title(row)}: {title}{again}", begin)
    reach = began
    for doing in sorted(known.activities, key=lambda doing: doing.began_s or 0.0):
        at = doing.began_s
        if doing.phase != row.phase or at is None or not reach <= at <= began + span:
            continue
        # A slice lies wholly inside the one above it, or the format does not say what is meant.
        reach = min(doing.ended_s if doing.ended_s is not None else began + span, began + span)
        yield {**_slice(doing.title, "activity", _PHASES, k, at - begin, reach - at), "args": {"line": doing.line}}


def _ranks(known: Snapshot, begin: float, end: float) -> Iterator[Event]:
    """Each rank's spans; where two of them overlap, the rank gets a second track."""
    spans = [(span, row) for row in known.phases for span in row.ranks if span.began_s is not None]
    tracks = 0
    for name in sorted({span.rank for span, _ in spans}, key=rank_key):
        ends: list[tuple[int, float]] = []  # of each track: its number, and when its last span ended
        own = sorted(((s, row) for s, row in spans if s.rank == name), key=lambda pair: pair[0].began_s or 0.0)
        for span, row in own:
            began = span.began_s or 0.0
            until = max(span.ended_s if span.ended_s is not None else end, began)
            free = next((k for k, (_, last) in enumerate(ends) if last <= began), None)
            if free is None:
                tracks, free = tracks + 1, len(ends)
                ends.append((tracks, began))
                yield from _thread(_RANKS, tracks, rank_name(name) + (f" ({free + 1})" if free else ""))
            track = ends[free][0]
            ends[free] = (track, until)
            args = {"begin_line": span.begin_line, "end_line": span.end_line, "status": str(span.status)}
            yield {**_slice(_name_of(row), "rank", _RANKS, track, began - begin, until - began), "args": args}


def _counters(bar: BarRow, name: str, begin: float) -> Iterator[Event]:
    """A bar's curve; its name tells target from draft and rank from rank."""
    if bar.began_s is None or not bar.curve:
        return
    points = zip(spread([at for at, _ in bar.curve]), (done for _, done in bar.curve), strict=True)
    for elapsed, done in ((0.0, 0.0), *points):
        at = _us(bar.began_s + elapsed - begin)
        args = {bar.unit or "done": done}
        yield {"ph": "C", "name": name, "cat": "bar", "pid": _PHASES, "tid": 0, "ts": at, "args": args}


def _instants(known: Snapshot, begin: float) -> Iterator[Event]:
    failure = known.failure
    if known.ready_at_s is not None:
        yield {**_instant("Ready", known.ready_at_s - begin), "args": {"line": known.ready_line}}
    if failure is not None and failure.at_s is not None:
        said = {"line": failure.place.line, "message": failure.message[:2000]}
        yield {**_instant("First cause", failure.at_s - begin), "args": said}


def _instant(name: str, at_s: float) -> Event:
    return {"ph": "i", "name": name, "cat": "milestone", "pid": _PHASES, "tid": 0, "ts": _us(at_s), "s": "g"}


def _slice(name: str, kind: str, pid: int, tid: int, at_s: float, span_s: float) -> Event:
    return {"ph": "X", "name": name, "cat": kind, "pid": pid, "tid": tid, "ts": _us(at_s), "dur": _us(span_s)}


def _name(what: str, pid: int, tid: int, name: str) -> Event:
    return {**_meta(what, pid, tid), "args": {"name": name}}


def _meta(what: str, pid: int, tid: int) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0}


def _thread(pid: int, tid: int, name: str) -> Iterator[Event]:
    yield _name("thread_name", pid, tid, name)
    yield {**_meta("thread_sort_index", pid, tid), "args": {"sort_index": tid}}


def _title(row: PhaseRow) -> str:
    return row.title if row.occurrence == 1 else f"{row.title} ({row.occurrence})"


def _name_of(row: PhaseRow) -> str:
    """A slice's name says where it has no end of its own."""
    return _title(row) + (" (not finished)" if row.status in {Status.RUNNING, Status.FAILED} else "")


def _us(seconds: float) -> int:
    """Whole microseconds, never negative: a span may not end before it began."""
    return max(round(seconds * 1_000_000), 0)
