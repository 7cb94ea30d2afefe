"""A start in the words that every report uses."""

from __future__ import annotations

from phasetrack.views.markdown import report_markdown
from phasetrack.views.plain import report_text
from phasetrack.views.rows import fate
from tests.talk import args, hear, log

BEGUN = f"42:04 | {args(tp_size=1)}\n42:22 | Init torch distributed begin.\n"
AGAIN = f"46:04 | {args(tp_size=1)}\n"
FAILED = "42:30 | Scheduler hit an exception: Traceback (most recent call last):\n | ValueError: x\n"


def fates(text, *, ended=True):
    known = hear(log(text), open_end=not ended).snapshot
    return [fate(known, boot) for boot in known.boots]


def test_a_start_that_another_one_followed_is_unfinished():
    assert fates(BEGUN + AGAIN, ended=False) == ["unfinished", "starting"]


def test_a_start_whose_log_has_ended_is_unfinished():
    assert fates(BEGUN) == ["unfinished"]


def test_what_a_line_says_of_a_start_stays():
    assert fates(BEGUN + FAILED + AGAIN, ended=False) == ["failed", "starting"]


def test_the_reports_list_an_unfinished_start_as_such():
    known = hear(log(BEGUN + AGAIN)).snapshot
    for text in (report_text(known), report_markdown(known)):
        assert "unfinished" in text
