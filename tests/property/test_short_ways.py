"""What is stepped over at speed changes nothing but the speed."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phasetrack.core.model import Chunk, Closed
from phasetrack.core.tracker import Tracker
from tests.property.logs import logs
from tests.talk import patterns, pieces

SLOW = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read(data: bytes, cuts=(), **options):
    """Records, snapshot and counts of a log."""
    tracker = Tracker(patterns(), "server.log", **options)
    records = []
    for piece in pieces(data, cuts):
        records += tracker.feed(Chunk(piece))
    records += tracker.feed(Closed())
    return records, tracker.snapshot()


@SLOW
@given(logs())
def test_short_ways_tell_the_same_as_the_long_one(data):
    assert read(data) == read(data, hurry=False)


@SLOW
@given(logs(long_runs=False), st.data())
def test_short_ways_tell_the_same_however_the_log_is_cut(data, draw):
    cuts = draw.draw(st.lists(st.integers(0, len(data)), max_size=20))
    assert read(data, cuts) == read(data, hurry=False)
