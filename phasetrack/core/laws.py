"""Laws of durations, on log-seconds: what is believed before, what observations make of it, and draws from it.

A duration is log-normal: starts are never negative, often a few times longer and sometimes ten times. Belief in
its middle is a normal law; each group of observations moves it by its own precision, so that one like boot
outweighs many distant ones. Draws are stratified and seeded by name: the same question gives the same answer,
and an estimate does not tremble between two looks.
"""

from __future__ import annotations

import zlib
from functools import cache
from math import exp, log, sqrt
from statistics import NormalDist, fmean, median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Stratified draws need fewer than independent ones: P10 and P90 of 200 lie within 1 % of those of 10 000.
DRAWS = 200

# Spread of one key on one machine, in log-seconds, and how many boots it weighs against those seen.
_WITHIN, _WITHIN_WEIGHT = 0.22, 4.0
# A belief is loosened to this share of the distance that like boots lie away from it.
_FAR = 0.7
# The most distant group whose own spread tells something of this one's.
_NEAR = 2
# Boots older by one count so much less.
_FADING = 0.93
# An observation further from the middle than this factor (in logs) counts as if it stood there: a process that
# was stopped for a minute must not teach that captures take a minute.
_OUTLIER = 0.9
# Stamps have a resolution of one second: nothing shorter can be told apart. What reads as no second took a third of
# one at most on average, mostly much less (a port is bound in milliseconds), and a start has a dozen such pieces.
FLOOR_S = 0.25
_ROUNDING_S = 0.4

_NORMAL = NormalDist()


class Law(NamedTuple):
    """A normal law of log-seconds."""

    mu: float
    sd: float

    @property
    def median_s(self) -> float:
        """The middle."""
        return exp(self.mu)

    def survival(self, spent_s: float) -> float:
        """The share that lasts longer."""
        if spent_s <= 0:
            return 1.0
        return 1.0 - _NORMAL.cdf((log(spent_s) - self.mu) / self.sd)

    def density(self, other: Law) -> float:
        """How likely another measurement of the same thing is."""
        sd = sqrt(self.sd**2 + other.sd**2)
        return _NORMAL.pdf((other.mu - self.mu) / sd) / sd

    def blend(self, other: Law) -> Law:
        """Both by their precision."""
        a, b = self.sd**-2, other.sd**-2
        return Law((a * self.mu + b * other.mu) / (a + b), (a + b) ** -0.5)


class Seen(NamedTuple):
    """One observed duration."""

    seconds: float
    group: int  # how distant the boot is
    source: str  # its exact key: boots of one key share what sets them apart
    complete: bool = True


def of_seconds(typical_s: float, spread: float) -> Law:
    """A law from its middle in seconds and its spread in log-seconds."""
    return Law(log(max(typical_s, FLOOR_S)), spread)


def learn(before: Law, seen: Sequence[Seen], apart: Mapping[int, float]) -> Law:
    """What the next one will take.

    Args:
        before: the belief without any observation.
        seen: observations, the newest first within each group. Incomplete ones count by what is expected beyond.
        apart: how far boots of each group lie from this one, in log-seconds; groups beyond teach nothing.
    """
    law = before
    for _ in range(3 if any(not one.complete for one in seen) else 1):
        law = _learn(before, [(one, _logs(one, law)) for one in seen], apart)
    return law


def _logs(one: Seen, law: Law) -> float:
    """Log-seconds; of an incomplete observation, what the law expects beyond it."""
    seconds = max(one.seconds, FLOOR_S)
    if one.complete:
        return log(seconds)
    a = (log(seconds) - law.mu) / law.sd
    tail = max(1.0 - _NORMAL.cdf(a), 1e-6)
    return max(law.mu + law.sd * _NORMAL.pdf(a) / tail, log(seconds))


def _learn(before: Law, seen: list[tuple[Seen, float]], apart: Mapping[int, float]) -> Law:
    nearest = [x for one, x in seen if one.group == 0]
    middle = median(nearest) if len(nearest) >= 3 else None
    within = _within([(one.source, _tame(x, middle) if one.group == 0 else x) for one, x in seen if one.group <= _NEAR])
    spread = _modest(before, seen)
    precision, weighted = spread**-2, before.mu * spread**-2
    for group, distance in apart.items():
        ours = [(one.source, _tame(x, middle) if group == 0 else x) for one, x in seen if one.group == group]
        if not ours:
            continue
        weights = [_FADING**k for k in range(len(ours))]
        mean = sum(w * x for w, (_, x) in zip(weights, ours, strict=True)) / sum(weights)
        sources = len({source for source, _ in ours})
        rounding = (_ROUNDING_S / max(exp(mean), FLOOR_S)) ** 2
        # what sets other keys apart averages out over them; what sets this one apart from them does not
        variance = (within**2 + rounding) / sum(weights) + distance**2 * (1.0 + 1.0 / sources)
        precision += 1 / variance
        weighted += mean / variance
    sd = sqrt(1 / precision + (within**2 if seen else 0.0))
    return Law(weighted / precision, min(sd, max(before.sd, within * 1.5)))


def _modest(before: Law, seen: list[tuple[Seen, float]]) -> float:
    """The spread of the belief before; where the nearest boots lie far from it, it knows little of them."""
    nearest = min((one.group for one, _ in seen), default=None)
    ours = [x for one, x in seen if one.group == nearest]
    if not ours or nearest is None or nearest > _NEAR:
        return before.sd
    return max(before.sd, _FAR * abs(fmean(ours) - before.mu))


def _tame(x: float, middle: float | None) -> float:
    return x if middle is None else min(max(x, middle - _OUTLIER), middle + _OUTLIER)


def _within(logs: list[tuple[str, float]]) -> float:
    """The spread of one key: a usual one, moved by what was seen of keys that were started more than once."""
    keys: dict[str, list[float]] = {}
    for key, x in logs:
        keys.setdefault(key, []).append(x)
    squares, freedom = 0.0, 0
    for ours in keys.values():
        mean = fmean(ours)
        squares += sum((x - mean) ** 2 for x in ours)
        freedom += len(ours) - 1
    return sqrt((_WITHIN_WEIGHT * _WITHIN**2 + squares) / (_WITHIN_WEIGHT + freedom))


# --- draws ------------------------------------------------------------------------------------------


@cache
def strata(name: str) -> tuple[float, ...]:
    """The middles of equal slices of 0 to 1, in an order of the name's own."""
    state = zlib.crc32(name.encode()) or 1
    order = list(range(DRAWS))
    for k in range(DRAWS - 1, 0, -1):
        state = (state * 1103515245 + 12345) % 2**31
        j = (state >> 8) % (k + 1)
        order[k], order[j] = order[j], order[k]
    return tuple((k + 0.5) / DRAWS for k in order)


@cache
def normal_strata(name: str) -> tuple[float, ...]:
    """The same as normal deviates."""
    return tuple(map(_NORMAL.inv_cdf, strata(name)))


def beyond(mu: float, sd: float, spent_s: float, u: float) -> float:
    """A duration that is longer than what has been spent, at quantile ``u`` of those that are."""
    if spent_s <= 0:
        return exp(mu + sd * _NORMAL.inv_cdf(u))
    a = (log(spent_s) - mu) / sd
    if a > 4.0:  # far beyond: the tail falls like an exponential of this length
        return spent_s * (1.0 - log(1.0 - u) * sd / a)
    below = _NORMAL.cdf(a)
    return max(exp(mu + sd * _NORMAL.inv_cdf(min(below + (1.0 - below) * u, 1.0 - 1e-9))), spent_s)


def quantile(ordered: Sequence[float], share: float) -> float:
    """A quantile of sorted values."""
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])
