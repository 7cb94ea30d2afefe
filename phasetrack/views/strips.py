"""Evidence from outside the log as strips below a chart, each channel scaled to its own largest value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from phasetrack.views.words import size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from phasetrack.core.model import EvidenceSample
    from phasetrack.views.chart import Chart

_SAMPLES_MAX = 240  # points of an evidence strip: one for every few pixels


@dataclass(frozen=True, slots=True)
class Strip:
    """One channel of evidence over the chart's time line."""

    title: str
    left: float
    width: float
    path: str
    tip: str


def evidence_strips(samples: Sequence[EvidenceSample], lag_s: float, drawn: Chart) -> Iterator[Strip]:
    """What was seen outside the log, each channel scaled to its own largest value."""
    if drawn.begin_s is None or len(samples) < 2:
        return
    begin, end = drawn.begin_s, drawn.begin_s + drawn.length_s
    inside = [replace(s, now_s=s.now_s - lag_s) for s in samples if begin <= s.now_s - lag_s <= end]
    for title, unit, values in _channels(inside):
        points = [(at, value) for at, value in values if value is not None]
        most = max((value for _, value in points), default=0.0)
        if len(points) > 1 and most > 0:
            yield _strip(title, points, most, unit(most), drawn)


def _channels(
    samples: Sequence[EvidenceSample],
) -> Iterator[tuple[str, Callable[[float], str], list[tuple[float, float | None]]]]:
    def sums(name: str) -> list[tuple[float, float | None]]:
        """Of a counter of all processes, how fast it grew; a process that ended takes its share along."""
        found = []
        for before, after in pairwise(samples):
            old = {p.pid: getattr(p, name) for p in before.processes}
            pairs = [(old.get(p.pid), getattr(p, name)) for p in after.processes]
            grown = [new - was for was, new in pairs if was is not None and new is not None and new >= was]
            span = after.now_s - before.now_s
            found.append((after.now_s, sum(grown) / span if grown and span > 0 else None))
        return found

    def gpus(name: str) -> list[tuple[float, float | None]]:
        found = []
        for sample in samples:
            values = [getattr(gpu, name) for gpu in sample.gpus if getattr(gpu, name) is not None]
            found.append((sample.now_s, float(max(values)) if values else None))
        return found

    yield "CPU", lambda most: f"up to {most:.1f} cores", sums("cpu_s")
    yield "Disk reads", lambda most: f"up to {size(most)}/s", sums("read_bytes")
    yield "GPU use", lambda most: f"up to {most:.0f} %", gpus("util_percent")
    yield "GPU memory", lambda most: f"up to {size(most)}", gpus("memory_bytes")


def _strip(title: str, points: list[tuple[float, float]], most: float, tip: str, drawn: Chart) -> Strip:
    begin, length = drawn.begin_s or 0.0, drawn.length_s
    thinned = points[:: -(-len(points) // _SAMPLES_MAX)]
    first, last = thinned[0][0], thinned[-1][0]
    span = max(last - first, 1e-9)
    line = "".join(f"L{100 * (at - first) / span:.1f},{100 - 96 * value / most:.1f}" for at, value in thinned)
    left = round(100 * (first - begin) / length, 3)
    return Strip(title, left, round(100 * span / length, 3), f"M0,100{line}L100,100Z", tip)
