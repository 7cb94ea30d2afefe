"""The gates: coverage on boots of a known law; on our recordings, better scores than the obvious ways to guess."""

from __future__ import annotations

from math import log
from random import Random
from statistics import fmean, median

import pytest

from phasetrack.core.model import Priors, Range
from tests.eval.__main__ import priors_for
from tests.eval.replay import Start, find, looks, read
from tests.eval.score import BASELINES, Guess, by_boot, interval_score, pinball, score, steadiness
from tests.launches import BEGAN_S, Launch, Took, learned, polled
from tests.talk import FIXTURES

DAY_S = 86400.0
LOOKS = 12


def guesses(spread: float, today: float, seeds: range, boots: int = 10, after: int = 5):
    """What is told of boots whose phases follow a known law, once some of them are history."""
    for seed in seeds:
        random, pasts = Random(seed), []
        for k in range(boots):
            took = Took(silent=60).varied(random, spread, today)
            one = Launch(took, tp=1, shards=30, began_s=BEGAN_S + k * DAY_S)
            for j in range(LOOKS) if k >= after else ():
                at_s = one.ready_s * (j + 0.5) / LOOKS
                eta = polled(one, at_s, Priors(tuple(pasts))).eta
                if eta.mid_s is not None:
                    told = Range(eta.low_s, eta.mid_s, eta.high_s)
                    yield Guess(f"{seed}.{k}", one.ready_s - at_s, told)
            pasts.insert(0, learned(one))


@pytest.mark.parametrize(("spread", "today"), [(0.25, 0.0), (0.2, 0.15), (0.3, 0.1)])
def test_on_boots_of_a_known_law_the_range_holds_as_often_as_it_says(spread, today):
    found = list(guesses(spread, today, range(3)))
    assert len(found) > 150
    covered = fmean(guess.told.low_s - 0.5 <= guess.left_s <= guess.told.high_s + 0.5 for guess in found)
    assert 0.7 <= covered <= 0.9
    assert abs(median(log(guess.told.mid_s / guess.left_s) for guess in found)) < 0.1


@pytest.fixture(scope="module")
def starts() -> list[Start]:
    return [start for start in map(read, find([FIXTURES])) if start is not None]


@pytest.fixture(scope="module")
def found(starts):
    return {start: looks(start, priors_for(start, starts), LOOKS) for start in starts if start.total_s}


@pytest.mark.parametrize("name", BASELINES)
def test_with_history_ours_is_better_than_each_obvious_way_to_guess(found, name):
    ours, theirs = [], []
    for start, seen in found.items():
        others = [other for other in found if other is not start]
        for look in seen:
            told = BASELINES[name](start, others, look)
            if told is not None:
                ours.append(Guess(start.name, look.left_s, look.told))
                theirs.append(Guess(start.name, look.left_s, told))
    assert len(ours) > 40
    for loss in (interval_score, pinball):
        mine, other = (
            fmean(by_boot(told, lambda g, loss=loss: loss(g.left_s, g.told)).values()) for told in (ours, theirs)
        )
        assert mine < other


def test_there_is_an_estimate_at_every_look(found):
    for start, seen in found.items():
        assert len(seen) == LOOKS, start.name


def test_estimates_are_not_biased_and_rise_without_a_reason_less_than_once_a_phase(found):
    all_of_them = score([Guess(s.name, look.left_s, look.told) for s, seen in found.items() for look in seen])
    assert abs(all_of_them.bias) < 0.15
    steady = [steadiness(seen, start.total_s) for start, seen in found.items()]
    assert sum(one.unexplained for one in steady) < sum(one.phases for one in steady) * 0.2


def test_the_first_start_ever_is_told_a_range_that_is_wide_and_mostly_true(starts):
    told = [Guess(s.name, look.left_s, look.told) for s in starts if s.total_s for look in looks(s, None, LOOKS)]
    assert score(told).coverage > 0.65


def test_a_score_is_best_for_the_truth():
    assert interval_score(60, Range(60, 60, 60)) == 0
    assert interval_score(60, Range(50, 60, 80)) == 30
    assert interval_score(60, Range(70, 80, 90)) == 20 + 10 * 10
    assert pinball(60, Range(60, 60, 60)) == 0
