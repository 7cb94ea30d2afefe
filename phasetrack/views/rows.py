"""A phase row in words: the same cells in the text, Markdown and HTML report.

If each view spelled its own figures, two formats of one log would sooner or later disagree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from phasetrack.core.model import Basis, Outcome, Status
from phasetrack.views.words import cache_words, clock, duration, progress, span_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from phasetrack.core.model import BootSummary, PhaseRow, Snapshot

# Milestones and what comes after the start have no share of it.
_SHARELESS = {"ready", "serving"}
# A phase that takes less has no "usually" worth a line.
_WORTH_S = 2.0
# Stamps have whole seconds.
_STAMP_S = 1.0
# Stretches between phases that are worth a line.
_GAP_S, _GAP_SHARE, _GAPS = 5.0, 0.1, 3
_UNBEGUN = {Status.PENDING, Status.SKIPPED}


@dataclass(frozen=True, slots=True)
class Cells:
    """One line of the table of phases; empty where there is nothing to say."""

    title: str
    begin: str
    elapsed: str
    share: str
    progress: str
    ranks: str
    silent: str
    note: str
    inferred: bool


def cells(row: PhaseRow, total_s: float | None) -> Cells:
    """Put a row into words.

    Args:
        row: the phase.
        total_s: what its share is of; see ``total_s``.
    """
    begun = row.status not in _UNBEGUN
    return Cells(
        title=row.title if row.occurrence == 1 else f"{row.title} ({row.occurrence})",
        begin=clock(row.began_s) if begun else str(row.status),
        elapsed=duration(row.elapsed_s) if begun else "",
        share="" if row.phase in _SHARELESS else share(row.elapsed_s, total_s),
        progress=last_seen(row) or progress(row.progress),
        ranks=f"{row.ranks_done}/{row.ranks_seen}" if row.ranks_seen > 1 else "",
        silent=short(row.longest_silence_s),
        note=row.note,
        inferred=begun and (row.basis is Basis.INFERRED or bool(last_seen(row))),
    )


def last_seen(row: PhaseRow) -> str:
    """``last seen 115/163``: a bar of a phase that is over, though none of its frames was full; else empty."""
    bar = row.progress
    if row.status is not Status.DONE or bar is None or bar.total is None or bar.done >= bar.total:
        return ""
    return f"last seen {progress(replace(bar, unit=''))}"


def total_s(known: Snapshot) -> float | None:
    """What shares are of: the start, or the time until now where it is not finished; None where a part is longer."""
    total = known.startup_s
    if total is None and known.now_s is not None and known.started_at_s is not None:
        total = known.now_s - known.started_at_s
    parts = (row.elapsed_s or 0.0 for row in known.phases if row.phase not in _SHARELESS)
    return None if total is None or max(parts, default=0.0) > total + _STAMP_S else total


def share(part: float | None, total: float | None) -> str:
    """``48 %``; empty where unknown."""
    return "" if part is None or not total else f"{min(100 * part / total, 100):.0f} %"


def short(seconds: float | None) -> str:
    """A silence in few cells; below a second it is none."""
    if seconds is None or seconds < 1:
        return ""
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


def last_ranks(known: Snapshot) -> list[str]:
    """Say which rank a phase had to wait for."""
    slow = [row for row in known.phases if row.slowest_rank is not None and (row.skew_s or 0) >= 1]
    return [f"{row.title}: {row.slowest_rank} was last, {duration(row.skew_s)} after the first." for row in slow]


def gaps(known: Snapshot) -> list[str]:
    """Say where the time between phases lies, the longest stretches first."""
    total, reach, last = total_s(known), known.started_at_s, ""
    if total is None or reach is None:
        return []
    found: list[tuple[float, str]] = []
    timed = [row for row in known.phases if row.began_s is not None and row.phase != "serving"]
    for row in sorted(timed, key=lambda row: row.began_s or 0.0):
        gap = (row.began_s or 0.0) - reach
        if gap >= max(_GAP_S, _GAP_SHARE * total) and last:
            found.append((gap, f"Between phases: {duration(gap)} after {last}, before {row.title}."))
        if row.ended_s is None:
            reach = float("inf")
        elif row.ended_s >= reach:
            reach, last = row.ended_s, row.title
    return [text for _, text in sorted(found, key=lambda one: -one[0])[:_GAPS]]


def usual(known: Snapshot) -> list[str]:
    """What each phase usually takes beside what it took, and whether it found its caches filled."""
    if not known.facts.get("server_args"):
        return []  # like what, nobody knows
    rows = [row for row in known.phases if row.expected is not None and row.expected.high_s >= _WORTH_S]
    done = [row for row in rows if row.status is Status.DONE and row.elapsed_s is not None]
    if not done:
        return []
    source = "; ".join(usual_sources(done))
    return [f"Usually ({source}):", *(_usual(row, is_mixed=";" in source) for row in done)]


def usual_sources(rows: Sequence[PhaseRow]) -> list[str]:
    """Where "usually" comes from: like boots, and what the shipped figures are of where no like boot tells."""
    ranges = [row.expected for row in rows if row.expected is not None]
    runs = max((one.runs for one in ranges), default=0)
    like = f"{runs} like boot{'s' if runs > 1 else ''} of this machine" if runs else ""
    return list(dict.fromkeys(text for text in (like, *(one.source for one in ranges)) if text))


def _usual(row: PhaseRow, *, is_mixed: bool) -> str:
    low, high = (0.0, 0.0) if row.expected is None else (row.expected.low_s, row.expected.high_s)
    took = row.elapsed_s or 0.0
    said = "longer" if took > high + 1 else "shorter" if took < low - 1 else ""
    source = row.expected.source if is_mixed and row.expected is not None else ""
    remark = ", ".join(text for text in (said, cache_words(row.cache), source) if text)
    return f"  {row.title:<20} {span_of(row.expected):>12}   took {duration(took):>12}  {remark}".rstrip()


def fate(known: Snapshot, boot: BootSummary) -> str:
    """What became of a boot; of one that no line ended, but another boot or the log's end did, that much is known."""
    if boot.outcome is not Outcome.STARTING:
        return str(boot.outcome)
    if boot.boot == known.boot:
        return "unfinished" if known.ended else "starting"
    followed = any(other.boot > boot.boot and other.server == boot.server for other in reversed(known.boots))
    return "unfinished" if followed else "starting"
