"""Our own recordings with what was seen beside them, second by second, as a live follower would have shown them."""

from __future__ import annotations

import pytest

from phasetrack.core.model import Chunk, Outcome, Tick
from phasetrack.core.tracker import Tracker
from tests.probes import START_S, acted, recorded_with_probes, replay
from tests.talk import patterns, recording, recordings

CALM = {"waiting", "progressing", "quiet", "working"}
HARMED = {"06e-kill9-scheduler-in-load", "06f-sigstop-60s-in-graph-capture", "06i-sigterm-in-boot-pty"}


@pytest.mark.parametrize("name", sorted(set(recorded_with_probes()) - HARMED))
def test_a_healthy_start_is_never_worse_than_quiet_or_working(name):
    states = {known.verdict.state for _, known in replay(name) if known.outcome in {Outcome.NONE, Outcome.STARTING}}
    assert {str(state) for state in states} <= CALM


def test_a_scheduler_stopped_for_a_minute_is_suspect_within_five_seconds_and_recovers_within_five():
    name = "06f-sigstop-60s-in-graph-capture"
    stop, cont = acted(name, "stop"), acted(name, "cont")
    for t, known in replay(name):
        if stop + 5 <= t <= cont:
            assert known.verdict.state == "suspect"
            assert "SIGCONT" in known.verdict.because
            assert known.verdict.next_step == "kill -CONT 6694"
        elif t < stop or t >= cont + 5:
            assert known.verdict.state not in {"suspect", "stuck", "overdue"}


def test_a_killed_scheduler_is_a_failed_start_within_fifteen_seconds():
    name = "06e-kill9-scheduler-in-load"
    killed = acted(name, "kill9")
    assert [known.verdict.state for t, known in replay(name) if t >= killed + 15 or t > 48][-1] == "failed"
    assert all(known.verdict.state != "failed" for t, known in replay(name) if t < killed)


def test_a_killed_scheduler_is_seen_where_the_engine_says_nothing():
    """SGLang up to 0.5.9 may never notice: the same processes, with a log that stops at the kill."""
    name = "06e-kill9-scheduler-in-load"
    killed = acted(name, "kill9")
    states = [known.verdict.state for t, known in replay(name, log_until=killed) if t >= killed + 4]
    assert set(states) <= {"suspect", "stuck", "failed"}
    assert states[-1] == "failed"


def test_a_start_killed_by_sigterm_without_a_word_is_seen_as_gone():
    name = "06i-sigterm-in-boot-pty"
    *_, (_, known) = replay(name)
    assert known.outcome is Outcome.STOPPED
    assert "is gone (exit code -15)" in known.verdict.signs_for[0].text


def test_a_rung_is_never_climbed_before_its_time():
    """The recorded answers: refused, then 503, then 200 with an empty body after one generated token."""
    rungs = {}
    for t, known in replay("01-plain-file", http=True):
        for rung in known.rungs:
            if rung.ok and rung.id not in rungs:
                rungs[rung.id] = t
    assert list(rungs) == ["process", "port", "health", "token"]
    assert rungs["port"] == pytest.approx(52, abs=2)
    assert rungs["health"] == pytest.approx(54, abs=2)


def test_a_server_that_compiles_for_its_first_request_stays_ready():
    states = {known.verdict.state for t, known in replay("03a-eagle3-file-coldjit") if 112 < t < 183}
    assert states == {"ready"}


def test_no_line_of_a_log_alone_is_worse_than_overdue_unless_it_says_so_itself():
    """Every recording, cut after many of its lines and silent for twenty hours from there."""
    day_s = 20 * 3600.0
    for name in recordings():
        lines = recording(name).splitlines(keepends=True)
        tracker, step = Tracker(patterns(), name), max(1, len(lines) // 60)
        for k in range(0, len(lines), step):
            tracker.feed(Chunk(b"".join(lines[k : k + step])))
            tracker.feed(Tick(START_S + day_s, START_S))
            known = tracker.snapshot(START_S + day_s)
            assert known.verdict.state not in {"suspect", "stuck"}, (name, k)
