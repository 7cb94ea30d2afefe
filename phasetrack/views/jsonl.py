"""Snapshot and records as JSON: the public contract of ``DESIGN.md`` §8, and nothing else.

Field names carry units; absent knowledge is null. Redaction happened in the core.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from phasetrack.core.model import SCHEMA
from phasetrack.views.words import iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from phasetrack.core.model import (
        Activity,
        BarRow,
        BootSummary,
        Eta,
        Failure,
        PhaseRow,
        Progress,
        Range,
        Record,
        Snapshot,
        Verdict,
        Warned,
        Zone,
    )

Json = dict[str, Any]


def dumps(value: Json, *, indent: int | None = None, separators: tuple[str, str] = (",", ":")) -> str:
    """Print JSON that any reader takes: no NaN, no lone surrogates. The separators are those where none is indented."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=None if indent else separators)
    return text.encode("utf-8", "replace").decode()


def snapshot_text(known: Snapshot) -> Iterator[str]:
    """The snapshot as indented JSON, piece by piece: a file may hold some ten thousand boots."""
    head, mark, tail = dumps(snapshot_json(replace(known, boots=())), indent=2).partition('"boots": []')
    yield head + mark[:-1]
    for k, boot in enumerate(known.boots):
        yield ("," if k else "") + "\n    {\n      " + _flat(boot_json(boot, known.zone)) + "\n    }"
    yield ("\n  ]" if known.boots else "]") + tail + "\n"


def _flat(value: Json) -> str:
    """The inside of an object of plain values, indented as within a list of an object: several times faster so."""
    return dumps(value, separators=(",\n      ", ": "))[1:-1]


def snapshot_json(known: Snapshot) -> Json:
    """The snapshot as ``status --json`` and ``report --format json`` print it."""
    zone = known.zone
    return {
        "schema": SCHEMA,
        "now": iso(known.now_s, zone),
        "engine": None if known.engine is None else asdict(known.engine),
        "sources": [asdict(source) for source in known.sources],
        "boots": [boot_json(boot, zone) for boot in known.boots],
        "boot": known.boot,
        "outcome": str(known.outcome),
        "verdict": verdict_json(known.verdict, zone),
        "phase": known.phase,
        "activity": _activity(known.activity),
        "progress": progress_json(known.progress),
        "silent_s": _rounded(known.silent_s),
        "phases": [row_json(row, zone) for row in known.phases],
        "between_phases_s": _rounded(known.between_phases_s),
        "started_at": iso(known.started_at_s, zone),
        "ready_at": iso(known.ready_at_s, zone),
        "ready_line": known.ready_line,
        "ready_offset": known.ready_offset,
        "startup_s": _rounded(known.startup_s),
        "eta": eta_json(known.eta, zone),
        "next_check_s": _rounded(known.next_check_s),
        "failure": failure_json(known.failure, zone),
        "warnings": [_warning(warning) for warning in known.warnings],
        "facts": _plain(known.facts),
        "activities": [_activity(activity, zone) for activity in known.activities],
        "readiness": [asdict(rung) for rung in known.rungs],
        "evidence": evidence_json(known),
        "timings": [asdict(check) for check in known.timings],
        "drift": known.drift,
        "ended": known.ended,
    }


def record_json(record: Record, zone: Zone) -> Json:
    """One entry of the event stream."""
    return {
        "type": record.type,
        "boot": record.boot,
        "line": record.place.line,
        "frame": record.place.frame,
        "at": iso(record.at_s, zone),
        **_plain(record.data),
    }


def row_json(row: PhaseRow, zone: Zone) -> Json:
    """One phase."""
    return {
        "phase": row.phase,
        "title": row.title,
        "occurrence": row.occurrence,
        "status": str(row.status),
        "began": iso(row.began_s, zone),
        "ended": iso(row.ended_s, zone),
        "elapsed_s": _rounded(row.elapsed_s),
        "begin_line": row.begin_line,
        "end_line": row.end_line,
        "begin_offset": row.begin_offset,
        "end_offset": row.end_offset,
        "basis": str(row.basis),
        "progress": progress_json(row.progress),
        "ranks_done": row.ranks_done,
        "ranks_seen": row.ranks_seen,
        "slowest_rank": row.slowest_rank,
        "skew_s": _rounded(row.skew_s),
        "longest_silence_s": _rounded(row.longest_silence_s),
        "longest_silence_from": iso(row.silence_from_s, zone),
        "expected_s": _range(row.expected),
        "cache": row.cache,
        "note": row.note or None,
        "bars": [_bar(bar, zone) for bar in row.bars],
    }


def eta_json(eta: Eta | None, zone: Zone) -> Json | None:
    """How long still; ``finish_at`` is the middle on the log's clock."""
    if eta is None:
        return None
    said = asdict(eta)
    said["finish_at"] = iso(said.pop("finish_s"), zone)
    del said["phase_left"]
    return said | {"phase_left_s": _range(eta.phase_left)}


def _range(value: Range | None) -> Json | None:
    return None if value is None else {"low": value.low_s, "mid": value.mid_s, "high": value.high_s}


def boot_json(boot: BootSummary, zone: Zone) -> Json:
    """One boot of the file in short."""
    return {
        "boot": boot.boot,
        "line": boot.line,
        "offset": boot.offset,
        "outcome": str(boot.outcome),
        "started_at": iso(boot.started_at_s, zone),
        "ready_at": iso(boot.ready_at_s, zone),
        "startup_s": _rounded(boot.startup_s),
        "server": boot.server or None,
        "failure": boot.failure_id,
    }


def verdict_json(verdict: Verdict, zone: Zone) -> Json:
    """The verdict with its evidence."""
    return {
        "state": str(verdict.state),
        "because": verdict.because,
        "for": [asdict(sign) for sign in verdict.signs_for],
        "against": [asdict(sign) for sign in verdict.signs_against],
        "missing": list(verdict.missing),
        "next_step": verdict.next_step or None,
        "deadline": None if verdict.deadline_at_s is None else iso(verdict.deadline_at_s, zone),
        "deadline_why": verdict.deadline_why or None,
    }


def evidence_json(known: Snapshot) -> Json | None:
    """What was seen outside the log, newest sample; times are Unix time."""
    sample = known.evidence
    if sample is None:
        return None
    channels = [asdict(channel) | {"flat_s": channel.flat_s} for channel in known.channels]
    return asdict(sample) | {"channels": channels}


def failure_json(failure: Failure | None, zone: Zone) -> Json | None:
    """The first cause."""
    if failure is None:
        return None
    return {
        "id": failure.id,
        "fatal": failure.fatal,
        "phase": failure.phase,
        "rank": failure.rank,
        "line": failure.place.line,
        "offset": failure.place.offset,
        "at": iso(failure.at_s, zone),
        "message": failure.message,
        "cause": failure.cause or None,
        "remedy": failure.remedy or None,
        "lines": list(failure.lines),
        "ranks": list(failure.ranks),
        "echoes": list(failure.echoes),
        "after_ready": failure.after_ready,
        "inferred": failure.inferred,
        "repeats": failure.repeats,
        "rank_is_guess": failure.mixed,
        "clue": failure.clue or None,
    }


def progress_json(progress: Progress | None) -> Json | None:
    """K of N."""
    return None if progress is None else asdict(progress)


def _activity(activity: Activity | None, zone: Zone | None = None) -> Json | None:
    if activity is None:
        return None
    short = {"id": activity.id, "title": activity.title, "bar": progress_json(activity.bar)}
    if zone is None:
        return short
    times = {"phase": activity.phase, "began": iso(activity.began_s, zone), "ended": iso(activity.ended_s, zone)}
    return short | times | {"line": activity.line}


def _bar(bar: BarRow, zone: Zone) -> Json:
    return {
        "title": bar.title,
        "done": bar.done,
        "total": bar.total,
        "unit": bar.unit,
        "rank": bar.rank or None,
        "began": iso(bar.began_s, zone),
        "elapsed_s": bar.elapsed_s,
        "rate_per_s": bar.rate_per_s,
        "curve": [list(point) for point in bar.curve],
    }


def _warning(warning: Warned) -> Json:
    return asdict(warning)


def _plain(data: Mapping[str, Any]) -> Json:
    return {key: dict(value) if hasattr(value, "items") else value for key, value in data.items()}


def _rounded(value: float | None) -> float | None:
    """Milliseconds are the finest that any log prints; more digits would be noise."""
    return None if value is None else round(value, 3)
