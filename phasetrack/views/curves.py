"""A bar's progress as a curve."""

from __future__ import annotations

from itertools import accumulate, groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phasetrack.core.model import BarRow


def curve_path(bar: BarRow) -> str:
    """A bar's progress as an area in a box of 100 x 100: time to the right, done upwards."""
    times = spread([x for x, _ in bar.curve])
    span, total = max(times[-1] if times else 0.0, 1e-9), bar.total or 1.0
    points = [(_pct(x / span), 100 - _pct(y / total)) for x, (_, y) in zip(times, bar.curve, strict=True)]
    return "M0,100" + "".join(f"L{x:g},{y:g}" for x, y in points) + "L100,100Z"


def spread(times: list[float]) -> list[float]:
    """Bars print whole seconds; frames of one second are set evenly into it, where they were. Never back in time."""
    times = list(accumulate(times, max))
    groups = [(at, len(list(same))) for at, same in groupby(times)]
    if all(n == 1 for _, n in groups):
        return times
    return [at + (k + 1) / n for at, n in groups for k in range(n)]


def _pct(fraction: float) -> float:
    return round(min(max(fraction, 0.0), 1.0) * 100, 1)
