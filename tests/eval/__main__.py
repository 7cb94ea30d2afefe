"""``python -m tests.eval DIR…``: how good the estimates are, on logs and casts replayed on a virtual clock.

Each boot is estimated twice: as the first one ever on its machine, and with all others as its history (leave one
out). Beside ours stand what tqdm, the median of all boots and the mean of like boots would say at the same moments.
"""

from __future__ import annotations

import argparse
import sys
from multiprocessing import Pool
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from phasetrack.core.model import Priors, Range
from tests.eval.replay import find, looks, read
from tests.eval.score import (
    BASELINES,
    BUCKETS,
    Guess,
    Score,
    bootstrap,
    by_boot,
    interval_score,
    past_of_all,
    score,
    steadiness,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.eval.replay import Look, Start

OURS = "phasetrack"
MODES = {"FIRST START EVER (shipped figures alone)": False, "WITH HISTORY (leave one boot out)": True}
_HEAD = ("bucket", "boots", "cover", "width", "interval", "pinball", "xmed", "xp90", "bias")


def main() -> int:
    """Read, replay, print; 0 when done."""
    asked = argparse.ArgumentParser(prog="python -m tests.eval", description=__doc__)
    asked.add_argument("folders", nargs="+", type=Path)
    asked.add_argument("--boots", action="store_true", help="a line for each boot too")
    options = asked.parse_args()
    with Pool(2) as pool:
        starts = [start for start in pool.map(read, find(options.folders)) if start is not None]
        ready = [start for start in starts if start.total_s]
        print(f"{len(starts)} starts, {len(ready)} of them ready with a time\n")
        for title, learn in MODES.items():
            jobs = [(start, priors_for(start, starts) if learn else None) for start in ready]
            found = pool.starmap(looks, jobs)
            print(f"=== {title} ===")
            report(ready, found, boots=options.boots)
    return 0


def priors_for(start: Start, starts: Sequence[Start]) -> Priors:
    """All other boots as the history of one."""
    return Priors(tuple(past_of_all([other for other in starts if other is not start])))


def report(ready: Sequence[Start], found: Sequence[Sequence[Look]], *, boots: bool) -> None:
    """Print one mode's tables."""
    ours = [Guess(start.name, look.left_s, look.told) for start, ls in zip(ready, found, strict=True) for look in ls]
    theirs = {name: _baseline(name, ready, found) for name in BASELINES}
    print("\nTime to ready. Interval score in seconds, less is better; [95 % over boots]")
    _table(ours, theirs)
    _totals(ours, theirs)
    phase, bars = _phases(ready, found)
    print("\nEnd of the running phase, at moments when a bar moves")
    _table(phase, {"tqdm's own": bars})
    _totals(phase, {"tqdm's own": bars})
    _steady(ready, found)
    if boots:
        _boots(ready, found, theirs)


def _baseline(name: str, ready: Sequence[Start], found: Sequence[Sequence[Look]]) -> list[Guess]:
    guesses = []
    for start, ls in zip(ready, found, strict=True):
        others = [other for other in ready if other is not start]
        for look in ls:
            told = BASELINES[name](start, others, look)
            guesses += [] if told is None else [Guess(start.name, look.left_s, told)]
    return guesses


def _phases(ready: Sequence[Start], found: Sequence[Sequence[Look]]) -> tuple[list[Guess], list[Guess]]:
    ours, bars = [], []
    for start, ls in zip(ready, found, strict=True):
        for look in ls:
            if look.phase_left_s is not None and look.phase_told is not None and look.bar_s is not None:
                ours.append(Guess(start.name, look.phase_left_s, look.phase_told))
                bars.append(Guess(start.name, look.phase_left_s, Range(look.bar_s, look.bar_s, look.bar_s)))
    return ours, bars


def _table(ours: Sequence[Guess], theirs: dict[str, list[Guess]]) -> None:
    print("  {:<10} {:>5} {:>5} {:>8} {:>8} {:>7} {:>5} {:>5} {:>6}".format(*_HEAD))
    for low, high, name in (*BUCKETS, (0, 1e9, "all")):
        for title, guesses in {OURS: list(ours), **theirs}.items():
            found = score([guess for guess in guesses if low <= guess.left_s < high])
            if found is not None:
                _line(name, title, found)


def _line(bucket: str, title: str, s: Score) -> None:
    print(
        f"  {bucket:<10} {s.boots:>5} {s.coverage:>5.0%} {s.width_s:>8.1f} {s.interval:>8.1f} {s.pinball:>7.2f}"
        f" {s.log_median:>5.2f} {s.log_p90:>5.2f} {s.bias:>+6.0%}  {title}"
    )


def _totals(ours: Sequence[Guess], theirs: dict[str, list[Guess]]) -> None:
    """Interval score at the same moments, boot by boot, against each other way."""
    mine = {(guess.boot, guess.left_s): guess for guess in ours}
    for name, guesses in theirs.items():
        same = [mine[guess.boot, guess.left_s] for guess in guesses if (guess.boot, guess.left_s) in mine]
        if not same:
            continue
        a = by_boot(same, lambda g: interval_score(g.left_s, g.told))
        b = by_boot(guesses, lambda g: interval_score(g.left_s, g.told))
        gain = [a[boot] - b[boot] for boot in a]
        low, high = bootstrap(gain)
        print(
            f"  total interval score {fmean(a.values()):.1f} against {fmean(b.values()):.1f} of {name}:"
            f" difference {fmean(gain):+.1f} [{low:+.1f}, {high:+.1f}],"
            f" better in {sum(g < 0 for g in gain)} of {len(gain)} boots"
        )


def _steady(ready: Sequence[Start], found: Sequence[Sequence[Look]]) -> None:
    steady = [steadiness(ls, start.total_s or 1.0) for start, ls in zip(ready, found, strict=True) if ls]
    told = [look for ls in found for look in ls]
    bases = {
        basis: sum(look.basis == basis for look in told) / max(len(told), 1)
        for basis in sorted({look.basis for look in told})
    }
    first = [ls[0].at_s for ls in found if ls]
    print(
        f"\n  finish moved by {fmean(s.jitter for s in steady):.2f} of a boot's time;"
        f" rises of over 10 %: {fmean(s.rises for s in steady):.1f} a boot, unexplained"
        f" {sum(s.unexplained for s in steady) / max(sum(s.phases for s in steady), 1):.3f} a phase"
    )
    print(
        "  told from: "
        + ", ".join(f"{name} {share:.0%}" for name, share in bases.items())
        + f"; first estimate after {max(first):.0f} s\n"
    )


def _boots(ready: Sequence[Start], found: Sequence[Sequence[Look]], theirs: dict[str, list[Guess]]) -> None:
    for start, ls in zip(ready, found, strict=True):
        mine = score([Guess(start.name, look.left_s, look.told) for look in ls])
        if mine is None:
            continue
        others = {n: score([g for g in gs if g.boot == start.name]) for n, gs in theirs.items()}
        said = ", ".join(f"{n.split()[0]} {s.interval:.0f}" for n, s in others.items() if s is not None)
        print(
            f"  {start.name[:38]:<38} {start.total_s or 0:>6.0f} s  cover {mine.coverage:>4.0%}"
            f"  interval {mine.interval:>6.1f}  bias {mine.bias:>+5.0%}  ({said})"
        )
    print()


if __name__ == "__main__":
    sys.exit(main())
