from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from phasetrack.core.eta import Past, Told, estimate, known_silences
from phasetrack.core.forecast import _first_size, _planned, _Running, expected
from phasetrack.core.key import key_of_args
from phasetrack.core.laws import Law, of_seconds
from phasetrack.core.likes import Likes, Part
from phasetrack.core.model import BarRow, Chunk, Outcome, PastBoot, Priors, Status, Tick, VerdictState
from phasetrack.core.pace import pace
from phasetrack.core.past import timed_rows
from phasetrack.core.tracker import Tracker
from tests.launches import BEGAN_S, Launch, Took, learned, polled
from tests.talk import args, hear, patterns, recording, recordings, talk

TOOK = Took(silent=120)
HOUR_S = 3600.0


def launch(day: int = 0, **took: float) -> Launch:
    return Launch(replace(TOOK, **took), tp=2, shards=40, began_s=BEGAN_S + day * 24 * HOUR_S)


def history(*launches: Launch) -> Priors:
    return Priors(tuple(learned(one) for one in reversed(launches)))


PLAIN = history(*(launch(day, shards=200 + day) for day in range(4)))


def test_there_is_an_estimate_from_the_first_second():
    known = polled(launch(9), 0)
    assert known.outcome is Outcome.NONE
    assert known.eta.basis == "prior"
    assert 0 < known.eta.low_s < known.eta.mid_s < known.eta.high_s


def test_before_the_first_line_the_last_boots_here_are_the_best_guess():
    one = launch(9)
    eta = polled(one, 5, PLAIN).eta
    assert eta.basis == "learned"
    assert eta.source == "the last 4 ready boots here"
    assert eta.low_s <= one.ready_s - 5 <= eta.high_s


@pytest.mark.parametrize("text", [b"this is a build log\n" * 5000, bytes(range(1, 256)) * 20])
def test_a_log_of_something_else_gets_no_estimate(text):
    tracker = Tracker(patterns(), "other.log")
    tracker.feed(Chunk(text))
    assert tracker.snapshot(BEGAN_S).eta is None


def test_a_boot_that_failed_is_not_counted_as_one_like_which_this_one_gets_ready():
    failed = replace(learned(launch(1)), outcome="failed", startup_s=None)
    before = polled(launch(9), 5, Priors((failed, *history(launch()).boots))).eta
    assert (before.runs, before.source) == (1, "the last ready boot here and public starts of any size, n = 76")
    eta = polled(launch(9), 35, Priors((failed,))).eta
    assert (eta.basis, eta.runs) == ("prior", 0)
    assert eta.source == (
        "the finished phases of 1 boot here that did not get ready and public starts of models of 300B and more, n = 24"
    )


def unnamed(tp: int) -> str:
    return f"""
        42:00     | {args(model_path="/srv/models/m", tp_size=tp)}
        42:10     | Init torch distributed begin.
        42:11     | Init torch distributed ends. elapsed=1.00 s, mem usage=0.09 GB
        42:11     | Load weight begin. avail mem=139.13 GB
    """


LOADED = """
        42:14     | Load weight end. elapsed=3 s, type=Llama, avail mem=130 GB, mem usage=8.52 GB.
"""


def test_a_load_is_judged_by_the_size_of_the_weights_or_not_at_all():
    early = talk(unnamed(2), open_end=True).snapshot
    load = next(row for row in early.phases if row.phase == "target_load")
    assert load.expected is None
    assert early.eta.source == "public starts of any size, n = 52"
    later = talk(unnamed(2) + LOADED, open_end=True).snapshot
    load = next(row for row in later.phases if row.phase == "target_load")
    assert load.expected.source == "public starts of models under 16B"
    assert later.eta.source == "public starts of models under 16B, n = 30"


def test_the_first_estimate_ever_does_not_jump_once_the_number_of_cards_is_known():
    one = recording("07b-tp2-eagle3-pipe")
    lines = one.splitlines(keepends=True)
    at = next(k for k, line in enumerate(lines) if b"server_args=" in line)
    eta = hear(b"".join(lines[: at + 1]), open_end=True).snapshot.eta
    assert eta.low_s < 58 < eta.high_s
    assert eta.low_s < eta.mid_s < eta.high_s


def test_the_shipped_figures_say_of_another_engine_only_what_its_loads_take():
    known = Likes(None, {"model_path": "/srv/m-8b", "tp_size": 1}, None, engine="vllm")
    assert expected(known, "target_load", 1).source == "public starts of SGLang of models under 16B"
    assert expected(known, "kv_cache", 1) is None
    assert expected(known, "bootstrap", 1) is None
    assert known.body("kv_cache")[0].law.median_s > 10
    ours = Likes(None, {"model_path": "/srv/m-8b", "tp_size": 1}, None)
    assert expected(ours, "kv_cache", 1).source == "public starts of models under 16B"


@pytest.mark.parametrize(
    ("priors", "basis", "source"),
    [
        (None, "prior", "public starts of models of 300B and more, n = 24"),
        (PLAIN, "learned", "4 like boots"),
        (history(launch()), "learned", "1 like boot and public starts of models of 300B and more, n = 24"),
    ],
)
def test_an_estimate_names_its_source(priors, basis, source):
    eta = polled(launch(9), 35, priors).eta
    assert (eta.basis, eta.source) == (basis, source)


@pytest.mark.parametrize("at_s", [30, 100, 200, 270, 300, 330, 360, 420, 500, 560, 600])
def test_with_like_boots_the_range_holds_all_through_a_start(at_s):
    one = launch(9)
    eta = polled(one, at_s, PLAIN).eta
    left = one.ready_s - at_s
    assert eta.low_s - 1 <= left <= eta.high_s + 1
    assert eta.mid_s == pytest.approx(left, rel=0.3, abs=3)


def test_what_is_told_has_two_significant_figures_and_is_never_nothing():
    one = launch(9)
    for at_s in range(20, int(one.ready_s), 37):
        eta = polled(one, at_s, PLAIN).eta
        for figure in (eta.low_s, eta.mid_s, eta.high_s):
            assert figure >= 1
            assert figure == float(f"{figure:.2g}")
        assert eta.low_s <= eta.mid_s <= eta.high_s


def test_the_share_of_a_start_is_one_of_time_and_no_bar_parks_at_the_end():
    one = launch(9)
    for at_s in range(30, int(one.ready_s), 50):
        share = polled(one, at_s, PLAIN).eta.done_fraction
        assert share == pytest.approx((at_s - 14) / (one.ready_s - 14), abs=0.1)


def test_once_a_start_is_over_there_is_nothing_to_estimate():
    one = launch(9)
    known = polled(one, one.ready_s + 5, PLAIN)
    assert known.outcome is Outcome.READY
    assert known.eta is None
    assert known.next_check_s is None


# --- silent and counted phases ----------------------------------------------------------------------


def test_silence_within_what_like_boots_took_moves_the_end_no_later():
    one = launch(9)
    early, late = (polled(one, at_s, PLAIN) for at_s in (365, 440))
    assert early.phase == late.phase == "target_graph"
    assert late.eta.finish_s == pytest.approx(early.eta.finish_s, abs=25)


def test_longer_than_all_like_boots_is_overdue_and_no_number():
    one = launch(9, silent=900)
    eta = polled(one, 800, PLAIN).eta
    assert eta.basis == "overdue"
    assert eta.mid_s is None
    assert "longer than in all 4 like boots (at most 3 min" in eta.why
    assert polled(one, 800, PLAIN).next_check_s == 60


def test_a_first_start_is_overdue_only_beyond_nearly_all_that_is_known():
    one = launch(9, silent=3000)
    assert polled(one, 400).eta.basis == "prior"
    assert polled(one, 1000).eta.basis == "prior"  # users tell of captures of 15 to 20 minutes
    assert polled(one, 2000).eta.basis == "overdue"


def test_a_bar_that_stands_adds_what_it_stood_and_says_nothing_of_the_items_to_come():
    curve = tuple((float(k), float(k)) for k in range(1, 21))
    bar = BarRow("shards", 20, 100, "shards", 0.0, 20.0, 20.0, 1.0, curve=curve)
    assert pace(bar, 20, ()).median_s == pytest.approx(100, rel=0.05)
    assert pace(bar, 80, ()).median_s == pytest.approx(160, rel=0.05)


def test_a_first_item_that_compiled_says_nothing_of_the_items_to_come():
    curve = ((60.0, 1.0), (61.0, 2.0), (62.0, 3.0), (63.0, 4.0), (64.0, 5.0), (65.0, 6.0))
    bar = BarRow("sizes", 6, 36, "graphs", 0.0, 65.0, 65.0, 0.1, curve=curve)
    assert pace(bar, 65, ()).median_s == pytest.approx(95, rel=0.1)  # by its mean pace it would be 390


def test_before_a_bar_has_moved_by_a_twentieth_it_tells_nothing():
    bar = BarRow("shards", 4, 100, "shards", 0.0, 8.0, 8.0, 0.5, curve=((2.0, 1.0), (8.0, 4.0)))
    assert pace(bar, 8, ()) is None
    assert pace(replace(bar, done=0, curve=()), 8, ()) is None


def test_a_learned_curve_decides_where_a_bar_stands():
    slow_start = tuple(0.8 + 0.01 * k for k in range(1, 21))  # four fifths of the time at the first twentieth
    curve = tuple((80.0 + k, 1.0 + k) for k in range(5))
    bar = BarRow("sizes", 5, 36, "graphs", 0.0, 84.0, 84.0, 0.2, curve=curve)
    assert pace(bar, 84, slow_start).median_s == pytest.approx(101, rel=0.05)


def test_history_of_a_load_is_dropped_where_its_bar_runs_many_times_slower():
    one = launch(9, shards=2000)
    eta = polled(one, 500, PLAIN).eta
    left = one.ready_s - 500
    assert eta.basis == "live"
    assert "times slower than in earlier boots" in eta.why
    assert eta.low_s <= left <= eta.high_s


def test_the_engines_own_estimate_is_never_ours():
    """tqdm would say 0 s at a full bar, and knows nothing of the tail and the captures behind."""
    at_full = 14 + 25 + 6 + 2 + 200 + 1
    eta = polled(launch(9), at_full, PLAIN).eta
    assert eta.low_s > 100
    assert eta.phase_left.mid_s == pytest.approx(39, rel=0.4)


# --- steady -----------------------------------------------------------------------------------------


def follow(one: Launch, priors: Priors | None, step_s: float = 5.0):
    """A live screen: the clock ticks, and each estimate is steady against the one before."""
    tracker = Tracker(patterns(), "server.log")
    if priors is not None:
        tracker.feed(priors)
    at, pieces = 14.0, list(one.pieces)
    while at < one.ready_s:
        while pieces and pieces[0][0] <= at:
            when, data = pieces.pop(0)
            tracker.feed(Chunk(data, arrived_s=one.began_s + when))
        tracker.feed(Tick(one.began_s + at))
        yield at, tracker.snapshot(one.began_s + at)
        at += step_s


@pytest.mark.parametrize("changed", [{}, {"silent": 300}, {"shards": 500}, {"shards": 90}, {"tail": 200}])
def test_the_finish_moves_later_only_with_a_reason(changed):
    before = None
    for at_s, known in follow(launch(9, **changed), PLAIN):
        eta = known.eta
        if eta is None or eta.finish_s is None:
            continue
        if before is not None and eta.finish_s > before + 2:
            assert eta.why, f"at {at_s} s the finish moved from {before} to {eta.finish_s} and no one says why"
        before = eta.finish_s


def test_a_phase_that_outlasts_what_was_told_is_a_reason():
    one = launch(9)
    at_s = one.began["warmup"] + 10
    known, past = polled(one, at_s), Past()
    told = Told(known.boot, "warmup", known.now_s - 1, 4)
    eta = estimate(known, past.likes(known, PLAIN), told)[0].eta
    assert eta.mid_s > 10  # as many like boots took a minute
    assert eta.why == "Warm-up request lasts longer than was told"


def test_a_start_like_all_others_moves_its_finish_hardly_at_all():
    finishes = [known.eta.finish_s for at_s, known in follow(launch(9), PLAIN) if at_s > 20]
    moved = sum(abs(b - a) for a, b in pairwise(finishes))
    assert moved < 250


def test_asking_changes_nothing_and_the_same_question_gets_the_same_answer():
    known = polled(launch(9), 200, PLAIN)
    likes = Likes(None, {}, None)
    assert estimate(known, likes, None)[0].eta == estimate(known, likes, None)[0].eta
    assert polled(launch(9), 200, PLAIN).eta == known.eta


def test_a_finish_within_a_tenth_stays_where_it_was_told():
    known = polled(launch(9), 200, PLAIN)
    told = Told(known.boot, known.phase, known.eta.finish_s + 10, 4)
    again, kept = estimate(known, Likes(None, {}, None), told)
    del again
    fresh = polled(launch(9), 200, PLAIN).eta
    assert fresh.finish_s == known.eta.finish_s
    assert kept is not None


# --- beside the estimate ----------------------------------------------------------------------------


def test_each_phase_tells_what_is_usual_for_it():
    rows = {row.phase: row for row in polled(launch(9), 100, PLAIN).phases}
    assert rows["target_load"].expected.low_s < 243 < rows["target_load"].expected.high_s
    assert rows["draft_graph"].status is Status.PENDING
    assert rows["draft_graph"].expected.mid_s == pytest.approx(90, rel=0.35)
    assert rows["draft_graph"].expected.runs == 4
    assert rows["ready"].expected is None


def test_silence_that_like_boots_lived_through_is_normal():
    quarter_hour = history(*(launch(day, silent=1900) for day in range(3)))
    one = launch(9, silent=1900)
    assert polled(one, 1700).verdict.state is VerdictState.OVERDUE
    known = polled(one, 1700, quarter_hour)
    assert known.verdict.state in {VerdictState.PROGRESSING, VerdictState.QUIET}


def test_when_to_ask_again_follows_from_what_remains():
    one = launch(9)
    assert polled(one, 60, PLAIN).next_check_s > 100
    assert polled(one, one.ready_s - 5, PLAIN).next_check_s <= 10
    assert all(5 <= polled(one, at_s, PLAIN).next_check_s <= 180 for at_s in range(20, 600, 60))


def test_a_log_without_times_says_so_instead_of_guessing():
    known = talk(
        f"| {args(model_path='/srv/models/m', tp_size=1)}\n| Load weight begin. avail mem=139 GB", open_end=True
    )
    assert known.snapshot.eta is None or known.snapshot.eta.mid_s is None


@pytest.mark.parametrize("name", recordings())
def test_wherever_a_log_ends_what_is_told_makes_sense(name):
    data = recording(name)
    for cut in range(0, len(data), max(len(data) // 12, 1)):
        known = hear(data[:cut], open_end=True, now_s=BEGAN_S + HOUR_S, output_s=BEGAN_S + HOUR_S - 7).snapshot
        eta = known.eta
        if eta is None:
            assert known.outcome is not Outcome.STARTING
        elif eta.mid_s is None:
            assert eta.why
        else:
            assert 1 <= eta.low_s <= eta.mid_s <= eta.high_s
            assert eta.source
            assert 0 <= eta.done_fraction <= 1


def test_two_kinds_of_boots_are_told_apart_by_what_the_run_shows():
    """Loads take 10 s with cached pages and 200 s without; once one has lasted 60 s it is of the second kind."""
    fast = [_with_cache(learned(launch(day, shards=8, tail=2)), "warm") for day in range(3)]
    slow = [learned(launch(day)) for day in range(3, 6)]
    one = launch(9)
    eta = polled(one, 44, Priors((*slow, *fast))).eta
    assert eta.high_s - eta.low_s > 150  # either
    later = polled(one, 110, Priors((*slow, *fast))).eta
    assert later.low_s <= one.ready_s - 110 <= later.high_s
    assert later.high_s - later.low_s < eta.high_s - eta.low_s


def _with_cache(past: PastBoot, cache: str) -> PastBoot:
    phases = tuple(replace(one, cache=cache) if one.phase == "target_load" else one for one in past.phases)
    return replace(past, phases=phases)


def test_a_silence_that_like_boots_came_through_here_is_known_from_then_on():
    phases = patterns().phases_of("SGLang")
    likes = Past().likes(polled(launch(9), 100), history(launch(silent=3000)))
    before, after = phases["target_graph"].silence, known_silences(phases, likes)["target_graph"].silence
    assert before.long_s < 3000 < after.long_s
    assert after.n == before.n + 1
    assert after.source.startswith("1 like boots on this machine were silent here for up to 50")


def test_nothing_lies_between_phases_that_touch():
    """The processes have started when the first rank joins; the warm-up has ended when the server is ready."""
    known = polled(launch(9), 20)
    names = {piece.name for piece in _planned(known, timed_rows(known), Past().likes(known, None))}
    assert {"warmup", "gap http_up"} <= names
    assert "gap warmup" not in names
    running = _Running(known, timed_rows(known), Past().likes(known, None))
    assert [piece.name for piece in running.pieces()] == ["bootstrap"]


def test_what_takes_no_time_adds_none():
    """A port is bound in milliseconds, and the first request to itself comes after a second's sleep."""
    likes = Past().likes(polled(launch(9), 20), None)
    assert expected(likes, "http_up", 1).mid_s < 0.5
    assert likes.gap("http_up")[0].law.median_s == pytest.approx(1)


def test_how_long_ranks_took_to_join_says_little_of_the_disk():
    quick, slow = launch(9, dist=1), launch(9, dist=60)
    mids = [polled(one, one.began["target_load"] + 1).eta.mid_s for one in (quick, slow)]
    assert mids[0] < mids[1] < 1.9 * mids[0]


def test_boots_on_other_cards_teach_less_than_boots_on_these():
    known, past = polled(launch(9), 100), learned(launch(shards=2000))
    here, elsewhere = (
        Past().likes(known, Priors((replace(past, key=replace(past.key, gpu_bytes=gpu_bytes)),)))
        for gpu_bytes in (past.key.gpu_bytes, past.key.gpu_bytes // 2)
    )
    none = Past().likes(known, None)
    usual, near, far = (likes.body("target_load")[0].law for likes in (none, here, elsewhere))
    assert usual.median_s < far.median_s < 800 < near.median_s
    assert near.sd < far.sd


def test_how_long_several_nodes_wait_for_each_other_is_told_by_the_same_set_up_alone():
    def likes(nodes: int, of: int, **changed: object) -> Likes:
        args = {"model_path": "/srv/models/DeepSeek-R1", "tp_size": 16, "nnodes": nodes}
        past = learned(launch())
        past = replace(past, key=key_of_args({**args, **changed, "nnodes": of}))
        return Likes(key_of_args(args), args, Priors((past,)))

    def law(known: Likes) -> Law:
        return known.body("dist_init")[0].law

    assert law(likes(2, 1)) == law(likes(2, 2, model_path="/srv/models/DeepSeek-V3.2")) == of_seconds(5, 1.4)
    assert law(likes(2, 2)).sd < 0.5
    assert law(likes(1, 2)) == of_seconds(3.5, 1.2)
    assert law(likes(1, 1)).sd < 0.5


def test_a_first_start_whose_first_size_stands_is_told_as_one_that_compiles():
    one = launch(9, silent=300)
    begun = one.began["target_graph"]
    early, later = (polled(one, begun + after_s).eta.phase_left for after_s in (2, 40))
    assert later.mid_s > 2 * early.mid_s
    for after_s in (40, 100, 200, 300):
        eta = polled(one, begun + after_s).eta
        assert eta.low_s <= one.ready_s - begun - after_s <= eta.high_s


def test_a_first_size_that_took_no_time_found_its_kernels_and_so_do_later_bars():
    cold, warm = Part(0.5, of_seconds(200, 0.8), cold=True), Part(0.5, of_seconds(30, 0.6), cold=False)

    def weights(*bars: BarRow, spent_s: float) -> list[float]:
        return [part.weight for part in _first_size((cold, warm), list(bars), spent_s)]

    stands = BarRow("sizes", 0, 36, "graphs", 0.0, 0.0, 0.0, None)
    moves = replace(stands, done=2, elapsed_s=3.0, curve=((2.0, 1.0), (3.0, 2.0)))
    assert weights(stands, spent_s=0) == [0.5, 0.5]
    assert weights(stands, spent_s=30) == [0.5, pytest.approx(0.01)]
    assert weights(moves, spent_s=3) == [pytest.approx(0.01), 0.5]
    assert weights(moves, stands, spent_s=30) == [pytest.approx(0.01), 0.5]
    assert weights(replace(stands, total=2), spent_s=30) == [0.5, 0.5]  # its first size is half of it
