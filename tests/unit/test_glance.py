"""A look that costs less shows no less: what is new is new at once, and only what a clock tells may be a second old."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from phasetrack.core.model import Chunk, Tick, VerdictState
from phasetrack.core.tracker import Tracker
from tests.talk import FIXTURES, patterns

PICTURE_S = 0.25


@pytest.mark.parametrize("name", ["07b-tp2-eagle3-pipe", "06a1-mem-fraction-too-small", "03a-eagle3-file-coldjit"])
def test_at_every_picture_of_a_start_a_glance_tells_what_a_snapshot_does(name):
    header, *events = map(json.loads, (FIXTURES / name / "server.cast").read_text("utf-8").splitlines())
    live, began, cheaper = Tracker(patterns(), "server.log"), header["timestamp"], 0
    for number in range(int(events[-1][0] / PICTURE_S)):
        now_s = began + number * PICTURE_S
        while events[0][0] <= now_s - began:
            live.feed(Chunk(events.pop(0)[2].encode(), arrived_s=now_s))
        live.feed(Tick(now_s))
        glance, whole = live.glance(now_s), live.snapshot(now_s)
        assert replace(glance, verdict=whole.verdict, eta=None, next_check_s=None, phases=()) == replace(
            whole, eta=None, next_check_s=None, phases=()
        )
        assert [replace(row, expected=None, cache=None) for row in glance.phases] == [
            replace(row, expected=None, cache=None) for row in whole.phases
        ]
        assert (glance.verdict.state, glance.verdict.because) == (whole.verdict.state, whole.verdict.because)
        cheaper += glance.verdict is live.latest.verdict and now_s - live._judged_s > 0
    assert cheaper > 30


def test_a_glance_falls_back_where_silence_is_told():
    live, now_s = Tracker(patterns(), "server.log"), 1_796_100_000.0
    live.feed(Chunk((FIXTURES / "03b-eagle3-pipe" / "server.log").read_bytes()[:14_000], arrived_s=now_s))
    live.feed(Tick(now_s))
    live.feed(Tick(now_s + 90))
    told = live.glance(now_s + 90.9)
    assert told.verdict.state in {VerdictState.QUIET, VerdictState.OVERDUE}
    assert told == live.snapshot(now_s + 90.9)
