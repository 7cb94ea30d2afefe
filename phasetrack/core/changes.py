"""Phases of two boots side by side: how much each changed, whether that is noise, and what changed inside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from phasetrack.core.differing import arguments_for
from phasetrack.core.model import Status
from phasetrack.core.say import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from phasetrack.core.differing import FactChange
    from phasetrack.core.model import PhaseRow, Snapshot
    from phasetrack.core.noise import Noise

# Assumed where history knows nothing. Our own recordings of one server on one machine strayed by up to a third
# in starting processes (17 to 23 s), and by far less in everything else.
_ASSUMED_SHARE = 0.25
# A reason is named if it makes up this share of a phase's change.
_REASON_SHARE = 0.3
_NO_WORK = {"ready", "serving"}
_UNBEGUN = {Status.PENDING, Status.SKIPPED}


@dataclass(frozen=True, slots=True)
class Change:
    """One phase in both boots."""

    phase: str
    title: str
    occurrence: int
    a_s: float | None  # None: this boot has no such phase, or its time is not known
    b_s: float | None
    delta_s: float | None  # None where one of the times is not known
    kind: str  # same, noise, slower, faster, only_a, only_b, unfinished, unknown
    band_s: float | None = None  # changes up to this are noise
    runs: int = 0  # like boots behind the band; 0: assumed
    reasons: tuple[str, ...] = ()


def changes_of(
    a: Snapshot, b: Snapshot, facts: Sequence[FactChange], noise: Mapping[str, Noise], resolution: float
) -> Iterator[Change]:
    """Put the phases of two boots side by side, in the order of the second."""
    ours, theirs = _begun(a), _begun(b)
    for key in _in_order(list(ours), list(theirs)):
        one, two = ours.get(key), theirs.get(key)
        row = two or one
        if row is None or row.phase in _NO_WORK:
            continue
        pair = (_took(one), _took(two))
        change = change_of(row.phase, row.title, row.occurrence, pair, noise.get(row.phase), resolution, (one, two))
        if _is_cut(one, a) or _is_cut(two, b):
            why = (_not_done(one, a, "A"), _not_done(two, b, "B"))
            change = replace(change, delta_s=None, kind="unfinished", band_s=None, reasons=tuple(filter(None, why)))
        yield _with_reasons(change, a, b, (one, two), facts)


def _not_done(row: PhaseRow | None, known: Snapshot, name: str) -> str:
    if not _is_cut(row, known):
        return ""
    return f"{name} never began it" if row is None else f"{name} did not finish it"


def _is_cut(row: PhaseRow | None, known: Snapshot) -> bool:
    """Whether a boot did not come as far as the end of this phase."""
    return known.ready_at_s is None and (row is None or row.status is not Status.DONE)


def _begun(known: Snapshot) -> dict[tuple[str, int], PhaseRow]:
    return {(row.phase, row.occurrence): row for row in known.phases if row.status not in _UNBEGUN}


def _in_order(a: list[tuple[str, int]], b: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """B's order, with what only A has behind its forerunner in A."""
    order = list(b)
    for k, key in enumerate(a):
        if key not in order:
            before = next((order.index(other) + 1 for other in reversed(a[:k]) if other in order), 0)
            order.insert(before, key)
    return order


def _took(row: PhaseRow | None) -> float | None:
    return None if row is None else row.elapsed_s


def change_of(
    phase: str,
    title: str,
    occurrence: int,
    pair: tuple[float | None, float | None],
    noise: Noise | None,
    resolution: float,
    rows: tuple[PhaseRow | None, PhaseRow | None] | None = None,
) -> Change:
    """Tell how much one phase changed, and what that counts for."""
    a_s, b_s = pair
    if rows is not None and (rows[0] is None or rows[1] is None):
        took = b_s if rows[0] is None else a_s
        delta = None if took is None else took if rows[0] is None else 0.0 - took
        return Change(phase, title, occurrence, a_s, b_s, delta, "only_b" if rows[0] is None else "only_a")
    if a_s is None or b_s is None:
        return Change(phase, title, occurrence, a_s, b_s, None, "unknown")
    assumed = max(2 * resolution, _ASSUMED_SHARE * max(a_s, b_s))
    band, runs = (assumed, 0) if noise is None else (max(noise.spread_s, resolution), noise.runs)
    delta = b_s - a_s
    kind = "same" if delta == 0 else "noise" if abs(delta) <= band else "slower" if delta > 0 else "faster"
    return Change(phase, title, occurrence, a_s, b_s, delta, kind, band, runs)


def resolution_of(known: Snapshot) -> float:
    """The finest seconds that a log's stamps tell: most logs print whole ones."""
    times = [t for row in known.phases for t in (row.began_s, row.ended_s) if t is not None]
    return 1.0 if all(t == int(t) for t in times) else 0.1


def told_once(changes: list[Change]) -> Iterator[Change]:
    """The phases of a draft share their reason: the longest of them tells it."""
    drafts = [change for change in changes if is_of_draft(change)]
    longest = max(drafts, key=lambda change: abs(change.delta_s or 0.0), default=None)
    for change in changes:
        yield replace(change, reasons=()) if is_of_draft(change) and change is not longest else change


def _with_reasons(
    change: Change,
    a: Snapshot,
    b: Snapshot,
    rows: tuple[PhaseRow | None, PhaseRow | None],
    facts: Sequence[FactChange],
) -> Change:
    if change.delta_s is None or change.kind in {"same", "noise"}:
        return change
    reasons = [
        *_caches(rows),
        *_inside(change.delta_s, a, b, rows),
        *_silences(change.delta_s, rows),
        *arguments_for(change.phase, facts),
    ]
    return replace(change, reasons=tuple(reasons[:5]))


def _caches(rows: tuple[PhaseRow | None, PhaseRow | None]) -> Iterator[str]:
    """The page cache of a load or the compiled kernels of a capture: there or not."""
    one, two = (None if row is None else row.cache for row in rows)
    if {one, two} == {"cold", "warm"}:
        yield f"{one} cache in A, {two} in B"


def _inside(delta: float, a: Snapshot, b: Snapshot, rows: tuple[PhaseRow | None, PhaseRow | None]) -> Iterator[str]:
    """Bars and activities whose own time changed by a good part of the phase's change."""
    if rows[0] is None or rows[1] is None:
        return
    ours, theirs = _parts(a, rows[0]), _parts(b, rows[1])
    for title in sorted(set(ours) | set(theirs), key=lambda t: -abs(theirs.get(t, 0.0) - ours.get(t, 0.0))):
        one, two = ours.get(title), theirs.get(title)
        moved = (two or 0.0) - (one or 0.0)
        if moved * delta <= 0 or abs(moved) < _REASON_SHARE * abs(delta):
            continue
        if one is None or two is None:
            yield f"{title} ({duration(abs(moved))}) only in {'B' if one is None else 'A'}"
        else:
            yield f"{title}: {duration(one)} in A, {duration(two)} in B"


def _parts(known: Snapshot, row: PhaseRow) -> dict[str, float]:
    """Seconds of each bar of the phase and of each activity inside it, the longest rank's."""
    parts: dict[str, float] = {}
    for bar in row.bars:
        parts[bar.title] = max(parts.get(bar.title, 0.0), bar.elapsed_s or 0.0)
    for doing in known.activities:
        if doing.phase == row.phase and doing.began_s is not None and doing.ended_s is not None:
            parts[doing.title] = parts.get(doing.title, 0.0) + max(doing.ended_s - doing.began_s, 0.0)
    return parts


def _silences(delta: float, rows: tuple[PhaseRow | None, PhaseRow | None]) -> Iterator[str]:
    if rows[0] is None or rows[1] is None:
        return
    one, two = rows[0].longest_silence_s or 0.0, rows[1].longest_silence_s or 0.0
    if (two - one) * delta > 0 and abs(two - one) >= _REASON_SHARE * abs(delta):
        yield f"silent for {duration(one)} in A, {duration(two)} in B"


def is_of_draft(change: Change) -> bool:
    """Whether this is a phase of a draft model that only one of the boots has."""
    return change.phase.startswith("draft_") and change.kind in {"only_a", "only_b"}
