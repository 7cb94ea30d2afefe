"""Starts that ended without a message: what their last lines tell."""

from __future__ import annotations

from phasetrack.core.model import Outcome, VerdictState
from tests.talk import args, hear, log

BAR = (
    " | Loading safetensors checkpoint shards:   0% Completed | 0/64 [00:00<?, ?it/s]\n"
    " | Loading safetensors checkpoint shards:  37% Completed | 24/64 [01:00<01:40,  2.50s/it]\n"
)
START = (
    f"43:55 | {args(tp_size=4, nnodes=2, node_rank=1)}\n"
    + "".join(f"44:13 TP{k} | Init torch distributed begin.\n" for k in range(4))
)  # fmt: skip
LOADING = START + "".join(
    f"44:14 TP{k} | {text}\n"
    for k in range(4)
    for text in ("Init torch distributed ends. mem usage=0.10 GB", "Load weight begin. avail mem=79.10 GB")
)


def told(talk: str):
    return hear(log(talk)).snapshot


def signs(known):
    return [sign.text for sign in known.verdict.signs_for]


def test_a_log_that_stops_inside_a_bar_says_how_far_it_was_and_where_to_look():
    known = told(LOADING + BAR)
    assert (known.outcome, known.verdict.state) == (Outcome.STARTING, VerdictState.ENDED)
    assert "in Target weights at 24 of 64 shards" in known.verdict.because
    assert "it stops inside a bar: a process that is killed has no time for more" in signs(known)
    assert "killed process" in known.verdict.next_step


def test_a_process_that_left_without_tidying_up_is_named_as_a_sign():
    leaked = "/usr/lib/python3.12/multiprocessing/resource_tracker.py:279: UserWarning: resource_tracker: There appear"
    known = told(LOADING + f" | {leaked}\n")
    assert f"line 14: {leaked}" in signs(known)
    assert known.outcome is Outcome.STARTING


def test_a_rank_that_did_not_come_as_far_as_the_others_is_named():
    done = "".join(
        f"44:30 TP{k} | Load weight end. type=L, dtype=torch.bfloat16, avail mem=60.00 GB\n" for k in (0, 1, 3)
    )
    assert "TP2 had not come as far as the others" in signs(told(LOADING + done))
    assert not any("as far as the others" in text for text in signs(told(LOADING)))


def test_a_node_that_nobody_joined_is_told_as_one_of_several():
    assert any("node 1 of 2" in text and "another node may be missing" in text for text in signs(told(START)))


def test_a_hang_without_a_text_gives_no_reason_to_look_for_a_kill():
    assert told(LOADING).verdict.next_step == ""


def test_a_stop_from_outside_in_a_healthy_phase_says_when_and_how_much_longer_it_wanted():
    trace = ["Traceback (most recent call last):", '  File "<frozen runpy>", line 88, in _run_code', "    exec(code)"]
    trace += ['  File "/opt/site/sglang/srt/entrypoints/engine.py", line 8, in wait', "    time.sleep(1)"]
    known = told(LOADING + BAR + "".join(f" | {line}\n" for line in [*trace, "KeyboardInterrupt: terminated"]))
    assert (known.outcome, known.verdict.state) == (Outcome.STOPPED, VerdictState.STOPPED)
    said = known.verdict.because
    assert said.startswith("Stopped from outside 79 s after the start, in Target weights at 24 of 64 shards")
    assert "this start needs longer: at its pace Target weights wanted 100 s more" in said
