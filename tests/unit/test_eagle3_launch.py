"""The launch that was asked for: 25 minutes on eight GPUs with an EAGLE3 draft, 15 of them a silent capture.

It is polled as a person or an agent would: at 0, 10, 130, 310, 500 and 900 s.
"""

from __future__ import annotations

from random import Random

import pytest

from phasetrack.core.model import Outcome, Priors, VerdictState
from tests.launches import BEGAN_S, Launch, Took, learned, polled

POLLS = (0, 10, 130, 310, 500, 900)
DAY_S = 86400.0
FIRST = Launch(Took())

NORMAL = {VerdictState.WAITING, VerdictState.PROGRESSING, VerdictState.QUIET}


def test_the_launch_is_what_was_asked_for():
    assert FIRST.ready_s == pytest.approx(25 * 60, abs=60)


@pytest.mark.parametrize(
    ("at_s", "phase", "progress"),
    [
        (0, None, None),
        (10, None, None),
        (130, "target_load", (67, 163)),
        (310, "draft_load", (4, 12)),  # the second bar is the draft's
        (500, "target_graph", (0, 52)),
        (900, "target_graph", (0, 52)),
    ],
)
def test_at_each_poll_the_right_phase_is_told(at_s, phase, progress):
    known = polled(FIRST, at_s)
    assert known.phase == phase
    assert (None if known.progress is None else (known.progress.done, known.progress.total)) == progress


@pytest.mark.parametrize("at_s", POLLS)
def test_its_silence_is_told_as_normal(at_s):
    known = polled(FIRST, at_s)
    assert known.verdict.state in NORMAL
    if at_s >= 500:
        assert known.silent_s > 100
        assert "normal here" in known.verdict.because


@pytest.mark.parametrize("at_s", POLLS)
def test_the_first_launch_tells_a_range_or_why_there_is_none(at_s):
    eta = polled(FIRST, at_s).eta
    assert eta.basis in {"prior", "live", "overdue"}
    assert eta.mid_s is not None or eta.why


@pytest.mark.parametrize("nth", [2, 3, 4])
@pytest.mark.parametrize("seed", range(2))
def test_from_the_second_launch_on_the_range_holds(nth, seed):
    random = Random(seed)
    later = [Launch(Took().varied(random, 0.07, 0.05), began_s=BEGAN_S + k * DAY_S) for k in range(1, nth)]
    *earlier, one = FIRST, *later
    priors = Priors(tuple(learned(launch) for launch in reversed(earlier)))
    for at_s in POLLS:
        known = polled(one, at_s, priors)
        assert known.outcome in {Outcome.NONE, Outcome.STARTING}
        assert known.eta.low_s <= one.ready_s - at_s <= known.eta.high_s, f"at {at_s} s"
        assert known.verdict.state in NORMAL
