from __future__ import annotations

from math import exp, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasetrack.core.laws import DRAWS, Law, Seen, beyond, learn, of_seconds, strata

APART = {0: 0.0, 1: 0.12, 2: 0.35, 3: 0.7}
PRIOR = of_seconds(30, 0.8)


def seen(*seconds: float, group: int = 0, complete: bool = True) -> list[Seen]:
    return [Seen(s, group, "one key", complete) for s in seconds]


def test_without_observations_the_belief_stays():
    assert learn(PRIOR, [], APART) == PRIOR


def test_one_like_boot_outweighs_the_public_figures():
    assert learn(PRIOR, seen(600), APART).median_s == pytest.approx(600, rel=0.1)


def test_the_more_boots_the_narrower_and_never_narrower_than_they_lie_apart():
    one, many = learn(PRIOR, seen(60), APART), learn(PRIOR, seen(*[60, 55, 66] * 8), APART)
    apart = learn(PRIOR, seen(*[60, 30, 120] * 8), APART)
    assert many.sd < one.sd < PRIOR.sd
    assert apart.sd > 0.4


def test_distant_boots_move_a_belief_less_than_like_ones():
    near, far = learn(PRIOR, seen(300), APART), learn(PRIOR, seen(300, group=3), APART)
    assert PRIOR.median_s < far.median_s < near.median_s
    assert far.sd > near.sd


def test_many_distant_boots_never_make_one_sure():
    assert learn(PRIOR, seen(*[300] * 50, group=3), APART).sd > 0.5


def test_a_boot_that_was_stopped_for_a_minute_does_not_teach_that_a_phase_takes_one():
    assert learn(PRIOR, seen(12, 11, 13, 72, 12), APART).median_s == pytest.approx(13, rel=0.25)


def test_a_cut_boot_tells_only_that_it_lasted_at_least_so_long():
    cut_short, cut_late = learn(PRIOR, seen(5, complete=False), APART), learn(PRIOR, seen(200, complete=False), APART)
    assert cut_short.median_s > 20  # never read as a duration of 5 s
    assert cut_late.median_s > 200


@settings(deadline=None)
@given(st.floats(-2, 8), st.floats(0.05, 2), st.floats(0.01, 1e5), st.floats(0.001, 0.999))
def test_what_is_not_over_yet_lasts_longer_than_it_has(mu, sd, spent, u):
    assert beyond(mu, sd, spent, u) >= spent


def test_what_remains_follows_the_law_given_that_it_is_not_over():
    law = Law(log(100), 0.5)
    survivors = sorted(x for x in (beyond(law.mu, law.sd, 0, (k + 0.5) / 9999) for k in range(9999)) if x > 120)
    asked = [beyond(law.mu, law.sd, 120, q) for q in (0.1, 0.5, 0.9)]
    found = [survivors[int(q * len(survivors))] for q in (0.1, 0.5, 0.9)]
    assert asked == pytest.approx(found, rel=0.02)


def test_far_beyond_all_that_is_known_what_remains_is_a_share_of_what_has_passed():
    left = beyond(log(10), 0.2, 1000, 0.5) - 1000
    assert 1 < left < 200


def test_draws_are_the_same_each_time_and_fill_all_slices():
    assert strata("a phase") == strata("a phase")
    assert strata("a phase") != strata("another")
    assert sorted(strata("a phase")) == [(k + 0.5) / DRAWS for k in range(DRAWS)]


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e6), max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_any_history_gives_a_law(seconds, complete):
    law = learn(PRIOR, [Seen(s, k % 5, str(k), complete[k]) for k, s in enumerate(seconds)], APART)
    assert law.sd > 0
    assert exp(min(law.mu, 50)) > 0
