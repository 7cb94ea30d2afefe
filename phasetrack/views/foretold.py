"""Ranges that were given, beside what came true: of the whole start, and of each phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrack.core.model import Range
from phasetrack.core.say import duration
from phasetrack.views.gantt import WORTH_S
from phasetrack.views.rows import usual_sources
from phasetrack.views.template import cut
from phasetrack.views.words import cache_words, span_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from phasetrack.core.model import Snapshot

_STAMP_S = 1.0  # what most logs can tell


@dataclass(frozen=True, slots=True)
class Told:
    """What was said of the time left at one moment of the start."""

    at_s: float  # log clock
    title: str  # of the phase that began then
    left: Range
    source: str


def expected_lines(known: Snapshot) -> Iterator[dict[str, object]]:
    """What was expected of each phase beside what came true, on one scale."""
    rows = [(row, row.expected) for row in known.phases if row.expected is not None and row.expected.high_s >= WORTH_S]
    reach = max((max(expected.high_s, row.elapsed_s or 0.0) for row, expected in rows), default=0.0)
    for row, expected in rows:
        came_s = row.elapsed_s if row.ended_s is not None else None
        yield _range_line(cut(row.title, 80), expected, came_s, reach) | {"remark": cache_words(row.cache)}


def told_lines(known: Snapshot, told: Sequence[Told]) -> Iterator[dict[str, object]]:
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


def sources_of(known: Snapshot, told: Sequence[Told]) -> str:
    """Where the ranges come from, in one sentence; what changed on the way stands in its order."""
    start = ", then ".join(dict.fromkeys(one.source for one in told if one.source))
    phases = " and ".join(usual_sources(known.phases))
    eta = known.eta
    left = "" if eta is None or not eta.source else eta.source + (f" ({eta.why})" if eta.why else "")
    parts = (("the whole start", start), ("each phase", phases), ("what is still to come", left))
    said = [f"{what} by {source}" for what, source in parts if source]
    return cut("Ranges hold the middle 80 %" + (": " + "; ".join(said) if said else "") + ".", 1000)
