"""How far phases stray between like boots: what is less than that is no news."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrack.core.key import Level, key_of, likeness
from phasetrack.core.past import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from phasetrack.core.model import PastBoot, Snapshot

# Fewer like boots than this tell no spread.
_RUNS_MIN = 3


@dataclass(frozen=True, slots=True)
class Noise:
    """How far a phase strays between like boots."""

    spread_s: float  # P10 to P90
    runs: int


def noise_of(boots: Iterable[PastBoot], known: Snapshot) -> dict[str, Noise]:
    """How far each phase strays over boots that are like the given one.

    Boots of another release, model or parallelism are left out, and of each phase those that found its cache in
    another state: what a cold cache costs is a cause, and no noise. A phase seen too seldom has no entry.
    """
    key = key_of(known)
    caches = {row.phase: kind_of(row.cache) for row in known.phases}
    times: dict[str, list[float]] = defaultdict(list)
    for boot in boots:
        if key is None or likeness(key, boot.key) > Level.RELEASE:
            continue
        for phase in boot.phases:
            cache = caches.get(phase.phase)
            if phase.complete and (cache is None or kind_of(phase.cache) in {None, cache}):
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
