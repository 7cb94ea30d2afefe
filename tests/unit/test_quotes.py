"""A server that prints prompts serves on, whatever logs its clients quote; and one that dies has died."""

from __future__ import annotations

import pytest

from phasetrack.core.model import Outcome
from tests.talk import args, hear, log, recording

START = b"".join(recording("01-plain-file").partition(b"ready to roll!\n")[:2]).decode()
ASKED = "[2026-11-30 15:43:00] Receive: obj=GenerateReqInput(rid='a1', text='why is this:\n"
ENDS = "thanks', sampling_params={'temperature': 0, 'stop': ['a', 'b']})\n"
DECODE = (
    "[2026-11-30 15:43:{:02}] Decode batch, #running-req: 1, #token: 48, token usage: 0.00, cuda graph: True, "
    "gen throughput (token/s): 1.58, #queue-req: 0\n"
)
ANSWER = '[2026-11-30 15:43:{:02}] INFO:     127.0.0.1:52188 - "POST /generate HTTP/1.1" 200 OK\n'
LIFE = "".join(DECODE.format(second) for second in range(10, 30)) + ANSWER.format(40)
QUIT = "Received sigquit from a child process. It usually means the child failed."
TRACE = """Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "/opt/site/sglang/srt/models/llama.py", line 503, in load_weights
    param = params_dict['model.norm', 'x']
KeyError: 'model.norm'
"""
QUOTED = {
    "killed": "Killed\n",
    "crashed": "bash: line 1:  2428 Segmentation fault      (core dumped) python\n",
    "quit": f"[2026-11-30 10:00:00] {QUIT}\n",
    "exception": "[2026-11-30 10:00:00 TP0] Scheduler hit an exception: " + TRACE,
    "undated": f"[10:00:00 TP0] {QUIT}\n",
    "stopped": "INFO:     Shutting down\nINFO:     Finished server process [2428]\n",
    "sigterm": "[2026-11-30 10:00:00] SIGTERM received. signum=15 frame=None. Draining requests...\n",
    "boot": "[2026-11-30 10:00:00] " + args(tp_size=1) + "\n[2026-11-30 10:00:10] Load weight begin. avail mem=1 GB\n",
    "untimed boot": args(tp_size=1) + "\nLoad weight begin. avail mem=1 GB\n",
    "hang": "Scheduler watchdog timeout (self.watchdog_timeout=300)\n",
    "stamped hang": "[2026-11-30 10:00:00] Watchdog timeout (self.watchdog_timeout=300)\n",
    "traceback": TRACE,
    "much": f"[2026-11-30 10:00:00] no such thing: 'foo', 'bar'\n{TRACE}Killed\n",
}


def known_of(behind: str, **how: object):
    return hear(START + behind, **how).snapshot


def serves(known) -> bool:
    failed = known.failure is not None and known.failure.fatal
    return (known.outcome, len(known.boots), failed) == (Outcome.READY, 1, False) and "says so" not in (
        known.verdict.because
    )


@pytest.mark.parametrize("quoted", QUOTED.values(), ids=QUOTED)
def test_a_log_that_a_prompt_quotes_is_none_of_the_servers(quoted):
    assert serves(known_of(ASKED + quoted + ENDS + LIFE))
    assert serves(known_of(ASKED + quoted + ENDS))  # nothing follows yet


@pytest.mark.parametrize("quoted", QUOTED.values(), ids=QUOTED)
def test_a_prompt_that_was_cut_is_over_with_the_servers_next_line(quoted):
    assert serves(known_of(ASKED + quoted + LIFE))


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_how_a_quote_is_read_does_not_depend_on_chunks_and_hurry(size):
    text = START + LIFE + ASKED + QUOTED["much"] + ENDS + LIFE + ASKED + QUOTED["boot"] + LIFE
    whole = hear(text)
    parts = hear(text, chunks=range(size, len(text), size)) if size > 1 else hear(text, hurry=False)
    assert serves(whole.snapshot)
    assert parts.records == whole.records


def test_a_prompt_in_one_line_with_escaped_lines_is_a_prompt():
    quoted = r"\n[2026-11-30 15:42:26] Scheduler hit an exception: Traceback (most recent call last):\n RuntimeError: x"
    assert serves(known_of(ASKED.rstrip() + quoted + ENDS))


@pytest.mark.parametrize("asked", [ASKED.rstrip() + "', stream=False)\n", ASKED, '[2026-11-30 15:43:00] {"text": "a\n'])
def test_a_death_behind_a_request_is_one_as_long_as_nothing_lives(asked):
    known = known_of(LIFE + asked + "Killed\n")
    assert (known.outcome, known.failure.message) == (Outcome.FAILED, "Killed")


def test_a_death_in_a_prompt_that_was_cut_is_certain_once_a_stamped_line_tells_of_it():
    known = known_of(ASKED + "Killed\n" + f"[2026-11-30 15:43:01] {QUIT}\n" + LIFE)
    assert known.outcome is Outcome.FAILED


def test_a_failure_that_is_stamped_behind_an_open_quote_is_the_servers():
    known = known_of(ASKED + "[2026-11-30 15:43:02 TP0] Scheduler hit an exception: " + TRACE)
    assert (known.outcome, known.failure.message) == (Outcome.FAILED, "KeyError: 'model.norm'")


def test_a_start_behind_an_open_quote_is_a_new_boot():
    again = log(f"44:00 | {args(tp_size=1)}\n44:10 TP0 | Load weight begin. avail mem=139.13 GB\n")
    known = known_of(ASKED + "Killed\n" + again)
    assert (known.outcome, len(known.boots)) == (Outcome.STARTING, 2)
    assert known.boots[0].outcome is Outcome.FAILED


def test_another_program_of_the_terminal_that_was_killed_is_not_the_server_that_answers_long_after():
    killed = START + DECODE.format(0) + "Killed\n"
    assert hear(killed + DECODE.format(1) + ANSWER.format(2)).snapshot.outcome is Outcome.FAILED  # what was under way
    assert serves(hear(killed + LIFE).snapshot)


def test_a_worker_that_crashed_has_failed_though_the_main_process_still_answers():
    crash = "Fatal Python error: Segmentation fault\n\nThread 0x00007f0000000000 (most recent call first):\n"
    known = known_of(DECODE.format(0) + crash + LIFE)
    assert (known.outcome, known.failure.message) == (Outcome.FAILED, "Fatal Python error: Segmentation fault")


def test_a_server_that_drains_its_requests_has_stopped():
    stop = DECODE.format(0) + "INFO:     Shutting down\nINFO:     Waiting for connections to close.\n"
    known = known_of(stop + "".join(DECODE.format(second) for second in range(1, 50)))
    assert known.outcome is Outcome.STOPPED


def test_what_is_taken_back_is_told():
    heard = hear(START + ASKED + "Killed\n" + LIFE)
    assert [record.data["outcome"] for record in heard.records if record.type == "outcome"] == [
        "ready", "failed", "ready",
    ]  # fmt: skip
