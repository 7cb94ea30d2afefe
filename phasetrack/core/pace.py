"""What a moving bar tells of its own time: neither tqdm's estimate, nor a stall taken for a pace.

Of a bar only the frames at which it moved are known, in whole seconds. Its first item may have opened files or
compiled kernels, a single item may have waited for another process: neither says how long the others will take.
"""

from __future__ import annotations

from itertools import pairwise
from math import log, sqrt
from typing import TYPE_CHECKING

from phasetrack.core.laws import FLOOR_S, Law
from phasetrack.core.past import KNOTS, when_reached

if TYPE_CHECKING:
    from phasetrack.core.model import BarRow

_TRUST_FROM = 0.05  # below this share done, a bar tells nothing yet
_FEW_MOVES, _FEW_SHARE = 3, 0.2  # nor before it has moved so often, or so far: the first item may have compiled

# A bar that was half way to here later than its learned curve by this factor, or earlier, does not follow it.
_REGULAR_RATIO = 1.5
_INSTANT_S, _FLAT = 0.5, 0.02  # bars print whole seconds


def pace(bar: BarRow, spent_s: float, knots: tuple[float, ...]) -> Law | None:
    """What a moving bar tells of the time it takes in all; None before it tells anything.

    With a learned curve its place on the curve decides; without one, the time per item after the first (which
    also opens files and compiles). A bar that has not moved for longer than its pace says has a slower pace.

    Args:
        bar: the bar.
        spent_s: since it began.
        knots: its learned curve, or nothing.
    """
    if not bar.total or bar.done / bar.total < _TRUST_FROM or spent_s <= 0:
        return None
    share = bar.done / bar.total
    if len(bar.curve) < _FEW_MOVES and share < _FEW_SHARE:
        return None
    at_s = bar.curve[-1][0] if bar.curve else bar.elapsed_s or spent_s
    left_s, irregular = _by_items(bar, at_s)
    if knots and _follows(bar, at_s, knots):
        irregular = 0.0
        total = at_s / _on(knots, share)
        overdue_s = spent_s - total * _on(knots, share + 1 / bar.total)
        total += max(overdue_s, 0.0)  # what one item takes longer is no pace
    else:
        total = max(at_s, spent_s) + left_s
    few = 0.45 / sqrt(max(bar.done, 1.0))
    sd = (1.0 - share) * ((0.15 if knots else 0.3) + few + 0.5 * irregular) + 0.02 + 0.3 / max(at_s, 1.0)
    return Law(log(max(total, FLOOR_S)), sd)


def _follows(bar: BarRow, at_s: float, knots: tuple[float, ...]) -> bool:
    """Whether a bar moves as its learned curve does: it took the same share of its time for half of what is done."""
    points = [(0.0, 0.0), *((done, elapsed) for elapsed, done in bar.curve)]
    half = max(when_reached(points, bar.done / 2), _INSTANT_S) / max(at_s, _INSTANT_S)
    share = bar.done / (bar.total or 1.0)
    here = _on(knots, share)
    if here < _FLAT:
        return False  # its first twentieths fell into one second
    usual = max(_on(knots, share / 2), _FLAT) / here
    return abs(log(half / usual)) < log(_REGULAR_RATIO)


def _by_items(bar: BarRow, at_s: float) -> tuple[float, float]:
    """Seconds that the items left will take, and how irregular those before were (0: evenly paced).

    The newest half tells: captures begin with the largest sizes. The longest wait is left out where there are
    enough others: a kernel that compiles, a process that was stopped, say nothing of the items to come.
    """
    points = [(0.0, 0.0), *((elapsed, done) for elapsed, done in bar.curve if done > 0)]
    waits = [(late - early, after - before) for (early, before), (late, after) in pairwise(points)]
    items = (bar.total or 0.0) - bar.done
    mean = at_s / max(bar.done, 1e-9)
    if len(waits) < 3:
        return items * mean, 0.0
    longest = max(waits)
    newest = [wait for wait in waits[-max(len(waits) // 2, 2) :] if wait != longest]
    typical = max(sum(wait for wait, _ in newest), 0.5) / max(sum(done for _, done in newest), 1e-9)
    return items * min(typical, mean), abs(log(mean / typical)) if mean > typical else 0.0


def _on(knots: tuple[float, ...], share: float) -> float:
    at = min(max(share, 0.0), 1.0) * KNOTS
    low = min(int(at), KNOTS - 1)
    before = knots[low - 1] if low else 0.0
    return before + (at - low) * (knots[low] - before)
