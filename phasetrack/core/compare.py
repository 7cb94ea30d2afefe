"""Two snapshots to a ``Comparison``: which phase explains the difference, and what differs beside it.

A change counts only beyond a *band*: how far the same phase strays between like boots. History knows it; where
it does not, a quarter of the phase and never less than twice what the log's stamps can tell is assumed, and
said. Phases that only one of the boots has are no noise, however short.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from phasetrack.core.differing import arguments_for, differing_facts, version_of
from phasetrack.core.key import Level, key_of, likeness
from phasetrack.core.model import Outcome, Status
from phasetrack.core.say import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from phasetrack.core.differing import FactChange
    from phasetrack.core.model import PastBoot, PhaseRow, Snapshot

# Assumed where history knows nothing. Our own recordings of one server on one machine strayed by up to a third
# in starting processes (17 to 23 s), and by far less in everything else.
_ASSUMED_SHARE = 0.25
# Fewer like boots than this tell no spread.
_RUNS_MIN = 3
# A reason is named if it makes up this share of a phase's change.
_REASON_SHARE = 0.3
_NO_WORK = {"ready", "serving"}
_UNBEGUN = {Status.PENDING, Status.SKIPPED}


@dataclass(frozen=True, slots=True)
class Noise:
    """How far a phase strays between like boots."""

    spread_s: float  # P10 to P90
    runs: int


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two boots."""

    label: str
    outcome: Outcome
    startup_s: float | None
    version: str | None
    model: str | None
    boot: int
    failed_in: str | None = None  # title of the phase
    cause: str = ""


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


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two boots, the explanation first."""

    a: Side
    b: Side
    delta_s: float | None  # of the whole start
    because: str
    first: str | None  # the phase that explains the most; None where nothing does
    causes: tuple[Change, ...]  # the changes that explain the difference, the largest first
    phases: tuple[Change, ...]
    between: Change
    facts: tuple[FactChange, ...]
    assumed: bool  # the bands are assumed, not learned


def compare(
    a: Snapshot, b: Snapshot, *, names: tuple[str, str] = ("A", "B"), noise: Mapping[str, Noise] | None = None
) -> Comparison:
    """Compare two boots phase by phase.

    Args:
        a: the boot to compare with.
        b: the boot that is asked about: a positive difference means that it is slower.
        names: what to call them.
        noise: phase to its spread over like boots (``noise_of``); None where history knows nothing.
    """
    facts = tuple(differing_facts(a, b))
    resolution = 1.0 if _whole_seconds(a) or _whole_seconds(b) else 0.1
    known = noise or {}
    phases = tuple(_told_once(list(_changes(a, b, facts, known, resolution))))
    between = _change(
        "between", "between phases", 1, (a.between_phases_s, b.between_phases_s), known.get("between"), resolution
    )
    delta = None if a.startup_s is None or b.startup_s is None else b.startup_s - a.startup_s
    causes = tuple(_causes([*phases, between], delta))
    sides = _side(a, names[0]), _side(b, names[1])
    return Comparison(
        a=sides[0], b=sides[1], delta_s=delta, because=_because(sides, delta, causes), causes=causes,
        first=causes[0].phase if causes else None, phases=phases, between=between, facts=facts,
        assumed=not any(change.runs for change in phases),
    )  # fmt: skip


def noise_of(boots: Iterable[PastBoot], known: Snapshot) -> dict[str, Noise]:
    """How far each phase strays over boots that are like the given one.

    Boots of another release, model or parallelism are left out, and of each phase those that found its cache in
    another state: what a cold cache costs is a cause, and no noise. A phase seen too seldom has no entry.
    """
    key = key_of(known)
    caches = {row.phase: row.cache for row in known.phases}
    times: dict[str, list[float]] = defaultdict(list)
    for boot in boots:
        if key is None or likeness(key, boot.key) > Level.RELEASE:
            continue
        for phase in boot.phases:
            cache = caches.get(phase.phase)
            if phase.complete and (cache is None or phase.cache in {None, cache}):
                times[phase.phase].append(phase.elapsed_s)
        gaps = [phase.gap_s for phase in boot.phases if phase.gap_s is not None]
        if gaps:
            times["between"].append(sum(gaps))
    return {phase: Noise(_spread(all_s), len(all_s)) for phase, all_s in times.items() if len(all_s) >= _RUNS_MIN}


def wider(a: Mapping[str, Noise], b: Mapping[str, Noise]) -> dict[str, Noise]:
    """Of two kinds of boots the larger spread, phase by phase."""
    both = sorted({*a, *b})
    return {phase: max(filter(None, (a.get(phase), b.get(phase))), key=lambda noise: noise.spread_s) for phase in both}


def _spread(all_s: Sequence[float]) -> float:
    """P90 less P10; of few runs the whole range."""
    ordered = sorted(all_s)
    skip = len(ordered) // 10
    return ordered[-1 - skip] - ordered[skip]


# --- phases -----------------------------------------------------------------------------------------


def _changes(
    a: Snapshot, b: Snapshot, facts: Sequence[FactChange], noise: Mapping[str, Noise], resolution: float
) -> Iterator[Change]:
    ours, theirs = _begun(a), _begun(b)
    for key in _in_order(list(ours), list(theirs)):
        one, two = ours.get(key), theirs.get(key)
        row = two or one
        if row is None or row.phase in _NO_WORK:
            continue
        pair = (_took(one), _took(two))
        change = _change(row.phase, row.title, row.occurrence, pair, noise.get(row.phase), resolution, (one, two))
        if _is_cut(one, a) or _is_cut(two, b):
            change = replace(change, delta_s=None, kind="unfinished", band_s=None)
        yield _with_reasons(change, a, b, (one, two), facts)


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


def _change(
    phase: str,
    title: str,
    occurrence: int,
    pair: tuple[float | None, float | None],
    noise: Noise | None,
    resolution: float,
    rows: tuple[PhaseRow | None, PhaseRow | None] | None = None,
) -> Change:
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


def _whole_seconds(known: Snapshot) -> bool:
    """Whether the log stamps no finer than that."""
    times = [t for row in known.phases for t in (row.began_s, row.ended_s) if t is not None]
    return all(t == int(t) for t in times)


# --- reasons ----------------------------------------------------------------------------------------


def _told_once(changes: list[Change]) -> Iterator[Change]:
    """The phases of a draft share their reason: the longest of them tells it."""
    drafts = [change for change in changes if _is_drafts(change)]
    longest = max(drafts, key=lambda change: abs(change.delta_s or 0.0), default=None)
    for change in changes:
        yield replace(change, reasons=()) if _is_drafts(change) and change is not longest else change


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
        *_inside(change.delta_s, a, b, rows),
        *_silences(change.delta_s, rows),
        *arguments_for(change.phase, facts),
    ]
    return replace(change, reasons=tuple(reasons[:5]))


def _caches(rows: tuple[PhaseRow | None, PhaseRow | None]) -> Iterator[str]:
    """The page cache of a load or the compiled kernels of a capture: there or not."""
    one, two = (None if row is None else row.cache for row in rows)
    if one is not None and two is not None and one != two:
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


def _causes(changes: list[Change], delta: float | None) -> Iterator[Change]:
    """What moved the start in the direction in which it moved, the largest first; nothing unless both got ready.

    The phases of a draft that only one boot has are one cause: they come together, the largest of them first.
    """
    if delta is None:
        return
    moved = [c for c in changes if c.delta_s and c.kind not in {"same", "noise", "unknown", "unfinished"}]
    total = delta or sum(c.delta_s or 0.0 for c in moved)
    groups: dict[str, list[Change]] = defaultdict(list)
    for change in moved:
        if (change.delta_s or 0.0) * total > 0:
            groups["draft" if _is_drafts(change) else f"{change.phase}-{change.occurrence}"].append(change)
    for group in sorted(groups.values(), key=lambda group: -abs(sum(c.delta_s or 0.0 for c in group))):
        yield from sorted(group, key=lambda c: -abs(c.delta_s or 0.0))


def _is_drafts(change: Change) -> bool:
    return change.phase.startswith("draft_") and change.kind in {"only_a", "only_b"}


# --- words ------------------------------------------------------------------------------------------


def _side(known: Snapshot, label: str) -> Side:
    failure = known.failure
    model = known.facts.get("model_path")
    phase = failure.phase if failure is not None else None
    title = next((row.title for row in known.phases if row.phase == phase), phase)
    return Side(
        label, known.outcome, known.startup_s, version_of(known), None if model is None else str(model), known.boot,
        failed_in=title if known.outcome is Outcome.FAILED else None,
        cause="" if failure is None else failure.cause or failure.message,
    )  # fmt: skip


def _because(sides: tuple[Side, Side], delta: float | None, causes: Sequence[Change]) -> str:
    if delta is None:
        return " ".join(_how(side, name) for side, name in zip(sides, "AB", strict=True))
    a, b = sides
    if delta == 0:
        return f"Both were ready after {duration(a.startup_s)}. {_first(causes, 0.0)}"
    word = "later" if delta > 0 else "sooner"
    times = f"({duration(a.startup_s)} to {duration(b.startup_s)})"
    return f"B was ready {duration(abs(delta))} {word} than A {times}. {_first(causes, abs(delta))}"


def _how(side: Side, name: str) -> str:
    if side.failed_in is not None:
        return f"{name} failed in {side.failed_in}: {side.cause.rstrip('.')}."
    if side.startup_s is not None:
        return f"{name} was ready after {duration(side.startup_s)}."
    return f"{name} did not get ready."


def _first(causes: Sequence[Change], total_s: float) -> str:
    """The largest cause in a sentence, with its reasons."""
    if not causes:
        return "No phase changed by more than the usual noise."
    first = causes[0]
    together = [c for c in causes if _is_drafts(c)] if _is_drafts(first) else [first]
    moved = abs(sum(c.delta_s or 0.0 for c in together))
    names = " and ".join(filter(None, [", ".join(c.title for c in together[:-1]), together[-1].title]))
    where = {"only_a": " (only in A)", "only_b": " (only in B)"}.get(first.kind, "")
    verb = "explain" if len(together) > 1 else "explains"
    what = f"{verb} {duration(moved)} of it" if moved <= total_s else f"alone made {duration(moved)}"
    why = f": {'; '.join(first.reasons[:2])}" if first.reasons else ""
    return f"{names[:1].upper()}{names[1:]}{where} {what}{why}."
