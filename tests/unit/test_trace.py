"""The Chrome trace obeys its format: every event whole, slices nested, counters in order."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from phasetrack.views.trace import report_trace
from tests.talk import args, hear, recording, recordings, talk

# Trace Event Format: what each kind of event must have.
_NEEDS = {
    "M": {"name", "pid", "tid", "args"},
    "X": {"name", "cat", "pid", "tid", "ts", "dur"},
    "C": {"name", "pid", "ts", "args"},
    "i": {"name", "pid", "tid", "ts", "s"},
}
_METADATA = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}


def events(snapshot) -> list[dict]:
    return json.loads(report_trace(snapshot))["traceEvents"]


def check(found: list[dict]) -> None:
    """The format's rules."""
    for event in found:
        assert event["ph"] in _NEEDS
        assert event.keys() >= _NEEDS[event["ph"]]
        for key in ("ts", "dur", "pid", "tid"):
            assert isinstance(event.get(key, 0), int)
            assert event.get(key, 0) >= 0
        if event["ph"] == "M":
            assert list(event["args"]) == [_METADATA[event["name"]]]
        if event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
        if event["ph"] == "i":
            assert event["s"] in {"g", "p", "t"}
    nested(found)
    in_order(found)
    named(found)


def nested(found: list[dict]) -> None:
    """Slices of one track are beside each other or inside each other, never across."""
    tracks = defaultdict(list)
    for event in found:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], -event["dur"]))
    for spans in tracks.values():
        open_ends: list[int] = []
        for begin, minus_length in sorted(spans):
            end = begin - minus_length
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)


def in_order(found: list[dict]) -> None:
    """A counter never goes back in time."""
    counters = defaultdict(list)
    for event in found:
        if event["ph"] == "C":
            counters[event["name"]].append(event["ts"])
    assert all(times == sorted(times) for times in counters.values())


def named(found: list[dict]) -> None:
    """Every track has a name."""
    names = {(e["pid"], e["tid"]) for e in found if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in found if e["ph"] == "X"} <= names
    assert {e["args"]["name"] for e in found if e["name"] == "process_name"} >= {"Phases", "Ranks"} or not found


@pytest.mark.parametrize("name", recordings())
def test_our_recordings_make_valid_traces(name):
    check(events(hear(recording(name)).snapshot))


def test_ranks_are_tracks_and_bars_are_counters():
    found = events(hear(recording("07b-tp2-eagle3-pipe")).snapshot)
    tracks = {e["args"]["name"] for e in found if e["name"] == "thread_name" and e["pid"] == 2}
    assert {"TP0", "TP1"} <= tracks
    counters = {e["name"] for e in found if e["ph"] == "C"}
    assert "Target weights: Multi-thread loading shards TP0" in counters
    last = [e for e in found if e["ph"] == "C" and e["name"].startswith("Target weights")][-1]
    assert last["args"] == {"shards": 64.0}


def test_overlapping_phases_of_a_rank_get_a_second_track():
    heard = talk(
        f"""
        42:00     | {args(tp_size=1)}
        42:09     | Init torch distributed begin.
        42:10     | Load weight begin. avail mem=139.13 GB
        42:20     | Capture cuda graph begin. This can take up to several minutes. avail mem=11.90 GB
        42:30     | Load weight end. type=Llama, dtype=torch.bfloat16, avail mem=130.61 GB, mem usage=8.52 GB.
        42:50     | Capture cuda graph end. Time elapsed: 30 s. mem usage=0.41 GB. avail mem=11.79 GB.
        """
    )
    check(events(heard.snapshot))


def test_what_has_not_ended_says_so():
    heard = talk(
        f"""
        42:00 | {args(tp_size=1)}
        42:10 | Load weight begin. avail mem=139.13 GB
        42:20 | Something else.
        """
    )
    found = events(heard.snapshot)
    check(found)
    assert any(e["name"] == "Target weights (not finished)" for e in found)


def test_a_log_without_times_gives_an_empty_trace_that_names_its_phases():
    bar = "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.00it/s]\n"
    trace = json.loads(report_trace(hear(f"Load weight begin. avail mem=139.13 GB\n{bar}").snapshot))
    check(trace["traceEvents"])
    assert trace["displayTimeUnit"] == "ms"
