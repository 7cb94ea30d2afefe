"""Every recording of our own gives exactly its golden, however its bytes come in."""

from __future__ import annotations

import json

import pytest

from phasetrack.core.model import Chunk, Closed
from phasetrack.core.tracker import Tracker
from tests.golden.make import dumps, golden
from tests.talk import FIXTURES, Heard, hear, patterns, recording, recordings


def test_every_recording_has_a_golden():
    assert {path.parent.name for path in FIXTURES.glob("*/expected.json")} == set(recordings())


@pytest.mark.parametrize("name", recordings())
def test_a_recording_gives_its_golden(name):
    expected = (FIXTURES / name / "expected.json").read_text(encoding="utf-8")
    assert dumps(golden(hear(recording(name)))) == expected


@pytest.mark.parametrize("name", recordings())
def test_a_recordings_bytes_as_they_arrived_give_its_golden(name):
    """The cast holds the chunks as they were written or polled: bars without an end, lines in pieces."""
    expected = json.loads((FIXTURES / name / "expected.json").read_text(encoding="utf-8"))
    tracker, records = Tracker(patterns(), "server.log"), []
    for chunk in cast(name):
        records += tracker.feed(Chunk(chunk))
        tracker.snapshot()
    records += tracker.feed(Closed())
    assert golden(Heard(tracker, tuple(records), tracker.snapshot())) == expected


def cast(name: str) -> list[bytes]:
    lines = (FIXTURES / name / "server.cast").read_text(encoding="utf-8").splitlines()[1:]
    return [json.loads(line)[2].encode() for line in lines]


@pytest.mark.parametrize("name", recordings())
def test_a_cast_holds_the_bytes_of_its_log(name):
    assert b"".join(cast(name)) == recording(name)
