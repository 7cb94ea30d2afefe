"""How good an estimate was: proper scores, by how long it truly took, with intervals over boots.

Interval score (Winkler; Gneiting & Raftery 2007) of a P10–P90 range: its width, and ten times each miss beyond it.
A point is a range of no width. Every boot weighs the same within a bucket.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from random import Random
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core.key import likeness
from phasetrack.core.laws import quantile
from phasetrack.core.model import Range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from phasetrack.core.model import PastBoot
    from tests.eval.replay import Look, Start

BUCKETS = (
    (0, 60, "0–1 min"),
    (60, 180, "1–3 min"),
    (180, 600, "3–10 min"),
    (600, 1800, "10–30 min"),
    (1800, 1e9, "> 30 min"),
)
ALPHA = 0.2
_LEAST_S = 1.0  # nothing finer than a second is promised


class Guess(NamedTuple):
    """One prediction of what is left, and the truth."""

    boot: str
    left_s: float
    told: Range


@dataclass(frozen=True, slots=True)
class Score:
    """Means over boots of one way to guess, in one bucket."""

    boots: int
    looks: int
    coverage: float
    width_s: float
    interval: float  # seconds
    pinball: float  # seconds, mean of P10, P50, P90
    log_median: float  # exp of the median |log(told / true)|
    log_p90: float
    bias: float  # median of told / true, less 1


def interval_score(left_s: float, told: Range) -> float:
    """Seconds; less is better."""
    return (told.high_s - told.low_s) + 2 / ALPHA * (max(told.low_s - left_s, 0.0) + max(left_s - told.high_s, 0.0))


def pinball(left_s: float, told: Range) -> float:
    """Mean pinball loss at P10, P50 and P90, in seconds."""
    pairs = ((0.1, told.low_s), (0.5, told.mid_s), (0.9, told.high_s))
    return fmean(max(q * (left_s - value), (q - 1) * (left_s - value)) for q, value in pairs)


def by_boot(guesses: Iterable[Guess], value: Callable[[Guess], float]) -> dict[str, float]:
    """Mean of a value for each boot."""
    values: dict[str, list[float]] = {}
    for guess in guesses:
        values.setdefault(guess.boot, []).append(value(guess))
    return {boot: fmean(found) for boot, found in values.items()}


def score(guesses: Sequence[Guess]) -> Score | None:
    """All scores of some guesses; None where there are none."""
    if not guesses:
        return None
    logs = [log(max(g.told.mid_s, _LEAST_S) / max(g.left_s, _LEAST_S)) for g in guesses]
    sizes = sorted(abs(x) for x in logs)

    def mean(value: Callable[[Guess], float]) -> float:
        return fmean(by_boot(guesses, value).values())

    return Score(
        boots=len({g.boot for g in guesses}),
        looks=len(guesses),
        coverage=mean(lambda g: float(g.told.low_s - 0.5 <= g.left_s <= g.told.high_s + 0.5)),
        width_s=mean(lambda g: g.told.high_s - g.told.low_s),
        interval=mean(lambda g: interval_score(g.left_s, g.told)),
        pinball=mean(lambda g: pinball(g.left_s, g.told)),
        log_median=exp(quantile(sizes, 0.5)),
        log_p90=exp(quantile(sizes, 0.9)),
        bias=exp(median(logs)) - 1,
    )


def bootstrap(values: Sequence[float], rounds: int = 400) -> tuple[float, float]:
    """P2.5 and P97.5 of the mean, drawing boots with replacement; the same each time."""
    if len(values) < 2:
        return (values[0], values[0]) if values else (0.0, 0.0)
    means = []
    for k in range(rounds):
        picks = Random(k).choices(range(len(values)), k=len(values))
        means.append(fmean(values[pick] for pick in picks))
    means.sort()
    return quantile(means, 0.025), quantile(means, 0.975)


# --- what others would say --------------------------------------------------------------------------


def whole_boot_median(start: Start, others: Sequence[Start], look: Look) -> Range | None:
    """The median of all boots' totals less what has passed, with their P10 and P90."""
    del start
    totals = sorted(other.total_s for other in others if other.total_s is not None)
    if not totals:
        return None
    cut = [max(quantile(totals, q) - look.at_s, _LEAST_S) for q in (0.1, 0.5, 0.9)]
    return Range(*cut)


def like_boots_mean(start: Start, others: Sequence[Start], look: Look) -> Range | None:
    """The mean of the most like boots' totals less what has passed, with their spread."""
    if start.past is None:
        return None
    pairs = [(likeness(start.past.key, o.past.key), o.total_s) for o in others if o.past and o.total_s is not None]
    if not pairs:
        return None
    best = min(level for level, _ in pairs)
    totals = [total for level, total in pairs if level == best]
    mean = fmean(totals)
    spread = 1.2816 * (stdev(totals) if len(totals) > 1 else 0.25 * mean)
    return Range(*(max(mean + k * spread - look.at_s, _LEAST_S) for k in (-1, 0, 1)))


def tqdm(start: Start, others: Sequence[Start], look: Look) -> Range | None:
    """The bar's own estimate: a point, and only while a bar moves."""
    del start, others
    return None if look.bar_s is None else Range(look.bar_s, look.bar_s, look.bar_s)


BASELINES: dict[str, Callable[[Start, Sequence[Start], Look], Range | None]] = {
    "whole-boot median": whole_boot_median,
    "mean of like boots": like_boots_mean,
    "tqdm's own": tqdm,
}


# --- steadiness -------------------------------------------------------------------------------------


class Steadiness(NamedTuple):
    """How the told finish moved over one boot."""

    jitter: float  # seconds of movement, as a share of the boot's total
    rises: int  # by over a tenth of what remained
    unexplained: int
    phases: int


def steadiness(looks: Sequence[Look], total_s: float) -> Steadiness:
    """Movement of the finish between looks that told a number."""
    told = [look for look in looks if look.number]
    moved, rises, unexplained = 0.0, 0, 0
    for before, after in pairwise(told):
        step = after.finish_s - before.finish_s
        moved += abs(step)
        if step > 0.1 * max(after.told.mid_s, _LEAST_S) and step > 2.0:
            rises += 1
            unexplained += not after.why
    return Steadiness(moved / total_s, rises, unexplained, len({look.phase for look in looks}))


def past_of_all(starts: Sequence[Start]) -> list[PastBoot]:
    """What is learned of the starts, the newest first."""
    pasts = [start.past for start in starts if start.past is not None]
    return sorted(pasts, key=lambda past: -(past.began_s or 0.0))
