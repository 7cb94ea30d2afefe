"""What is odd about a log as a whole, and how its answers say so."""

from __future__ import annotations

import pytest

from phasetrack.core.past import remembered
from phasetrack.views.status import status_line
from tests.talk import args, hear, log

READY = log(f"42:04 | {args(tp_size=1)}\n42:50 | The server is fired up and ready to roll!\n")
SAID_S = 1796053370.0  # 2026-11-30T15:42:50, as if the log's clock were UTC
DAY_S = 86400.0


def known(text, written_s, now_s=None):
    now_s = written_s + 15 if now_s is None else now_s
    return hear(text, open_end=True, now_s=now_s, output_s=written_s).snapshot


@pytest.mark.parametrize(
    ("days", "words"), [(108, "108 d 0 h older than the file"), (-2, "2 d 0 h later than the file")]
)
def test_an_answer_of_a_log_with_other_dates_than_its_file_is_given_no_age(days, words):
    answer = known(READY, SAID_S + days * DAY_S)
    assert [warning.id for warning in answer.warnings] == ["log.dated"]
    assert words in status_line(answer)
    assert " ago" not in status_line(answer)


@pytest.mark.parametrize("hours", [-12, -1, 0, 14])
def test_a_time_zone_is_nothing_odd(hours):
    answer = known(READY, SAID_S + hours * 3600)
    assert answer.warnings == ()
    assert "15 s ago" in status_line(answer)


def test_a_server_that_was_ready_long_ago_is_nothing_odd():
    assert known(READY, SAID_S, SAID_S + 30 * DAY_S).warnings == ()


def test_bars_without_messages_will_never_say_ready():
    bars = "".join(
        f"Loading safetensors checkpoint shards: {25 * k}% Completed | {k}/4 [00:0{k}<00:03,  1.00it/s]\n"
        for k in range(5)
    )
    (warning,) = known(
        bars + "Capturing batches (bs=8 avail_mem=17.21 GB):  50%|#####     | 2/4 [00:01<00:01]\n", 0
    ).warnings
    assert warning.id == "log.bars_only"
    assert "--probe health" in warning.message


BACK = log(f"""
    42:04 | {args(tp_size=1)}
    42:22 | Init torch distributed begin.
    42:23 | Load weight begin. avail mem=139.13 GB
""") + log("42:30 | The server is fired up and ready to roll!\n").replace(" 15:", " 14:")


def test_a_start_whose_clock_went_back_took_nobody_knows_how_long():
    answer = hear(BACK).snapshot
    assert answer.startup_s is None
    assert [warning.id for warning in answer.warnings] == ["log.clock_back"]
    assert "-" not in status_line(answer).partition("took")[2]


def test_nothing_is_learned_of_a_start_whose_clock_went_back():
    assert remembered(hear(BACK).snapshot) is None
    assert remembered(hear(READY).snapshot) is not None
