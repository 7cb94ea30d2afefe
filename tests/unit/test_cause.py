"""The first cause in the report, and the block that goes into an issue."""

from __future__ import annotations

from phasetrack.views.cause import cause_text, issue_block
from phasetrack.views.jsonl import snapshot_json
from phasetrack.views.plain import report_text
from phasetrack.views.status import status_line
from tests.storms import HEAD
from tests.talk import args, hear, log

SECRET = "hf_abcdefghijklmnopqrstuvwx"  # noqa: S105 - a made-up token
TRACE = [
    '  File "/home/somebody/venv/sglang/srt/managers/scheduler.py", line 4025, in run_scheduler_process',
    "    scheduler = Scheduler(",
]
FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB "
)
FULL += "of which 1.20 GiB is free."


def known():
    said = f"43:55 | {args(tp_size=2, mem_fraction_static=0.9, api_key=SECRET)}\n"
    said += "".join(f"44:13 {rank} | Load weight begin. avail mem=79.10 GB\n" for rank in ("TP0", "TP1"))
    for rank in ("TP0", "TP1"):
        said += f"44:20 {rank} | {HEAD}\n" + "".join(f" | {line}\n" for line in [*TRACE, f"    f('{SECRET}')", FULL])
    said += "44:21 | Received sigquit from a child process. It usually means the child failed.\n"
    return hear(log(said)).snapshot


def test_the_report_says_where_why_what_to_do_who_said_it_and_what_followed():
    text = "\n".join(cause_text(known(), 80))
    assert text.startswith("First cause: Target weights, TP0, line 4, 15:44:20 (25 s after the start)\n  torch.OutOf")
    said = " ".join(text.split())
    assert "why: The weights do not fit: GPU 0 holds 79.10 GiB, 1.20 GiB of it were left" in said
    assert "do: Spread the weights over more GPUs (--tp-size, now 2)" in said
    assert "  ranks: 2 say the same: TP0, TP1" in text
    assert "  then:  Received sigquit" in text
    assert max(map(len, text.splitlines())) <= 80


def test_flags_are_not_broken_at_their_hyphens():
    assert not any(line.endswith("-") for line in cause_text(known(), 60))


def test_the_headline_and_the_one_line_status_name_cause_and_message():
    for text in (report_text(known()).splitlines()[2], status_line(known())):
        assert "FAILED" in text
        assert "The weights do not fit: GPU 0 holds 79.10 GiB" in text
        assert "torch.OutOfMemoryError: CUDA out of memory" in text


def test_the_block_for_an_issue_holds_the_traceback_and_no_secret_and_no_home():
    block = "\n".join(issue_block(known()))
    assert "run_scheduler_process" in block
    assert FULL in block
    assert SECRET not in block + report_text(known())
    assert "somebody" not in block
    assert "/home/[user]/venv/sglang" in block
    assert block.count("```") == 2


def test_the_block_cannot_be_closed_by_a_line_of_the_log():
    said = f"43:55 | {args(tp_size=1)}\n44:20 TP0 | {HEAD}\n | ```\n" + "".join(f" | {line}\n" for line in TRACE)
    block = issue_block(hear(log(said + " | ValueError: ```` # heading\n")).snapshot)
    assert block[1].startswith("`````")


def test_json_tells_how_many_said_it_and_what_stood_beside():
    failure = snapshot_json(known())["failure"]
    assert (failure["repeats"], failure["rank_is_guess"], failure["clue"]) == (2, False, None)
    assert failure["ranks"] == ["TP0", "TP1"]
