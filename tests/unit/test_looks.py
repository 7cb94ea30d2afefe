"""Single looks at a server, minutes apart, each by a process of its own: together they tell what a watcher tells."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from phasetrack.beside import look_around
from phasetrack.core.model import Chunk, EvidenceSample, ProcessSample, Tick
from phasetrack.core.tracker import Tracker
from phasetrack.edges.looks import Looks
from tests.beside import ROOT, loading
from tests.talk import args, log, patterns

TEXT = log(f"""
    42:04 | {args(tp_size=1)}
    42:20 | Init torch distributed begin.
    42:21 | Init torch distributed ends. mem usage=0.61 GB
    42:22 | Load weight begin. avail mem=139.13 GB
""")


class Outside:
    """A sampler of a made-up server."""

    interval_s = 2.0

    def __init__(self, processes: tuple[ProcessSample, ...]) -> None:
        self._processes = processes

    def sample(self, known, now_s):
        del known
        return seen(now_s, self._processes)


def seen(at_s, processes):
    return EvidenceSample(now_s=at_s, processes=processes, root_pid=ROOT, root_alive=True)


def faulted(processes, faults):
    """The same processes, the first rank having touched more memory."""
    main, rank, *others = processes
    return (main, replace(rank, faults=rank.faults + faults), *others)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A log that fell silent, earlier looks at its processes, and what a look says now."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "server.log"
    path.write_text(TEXT)
    began = time.time() - 9000
    processes = tuple(replace(each, started_s=began) for each in loading().processes.values())

    def look(silent_s, *ago_s, moved=0, processes=processes):
        now = time.time()
        for ago in ago_s:
            Looks(str(path)).keep(seen(now - ago, faulted(server_processes, moved * int(9000 - ago))))
        tracker = Tracker(patterns(), str(path))
        tracker.feed(Chunk(TEXT.encode()))
        tracker.feed(Tick(now, now - silent_s))
        look_around(tracker, now, [Outside(faulted(processes, moved * 9000))], Looks(str(path)))
        return str(tracker.snapshot(now).verdict.state)

    server_processes = look.processes = processes
    return look


@pytest.mark.parametrize(
    ("silent_s", "ago_s", "told"),
    [
        (640, (), "quiet"),
        (640, (30,), "quiet"),
        (640, (60, 30), "quiet"),
        (640, (300, 200, 100), "suspect"),
        (900, (), "overdue"),
        (900, (1500, 900, 300), "stuck"),
    ],
)
def test_looks_minutes_apart_climb_to_stuck_as_a_watcher_does(server, silent_s, ago_s, told):
    assert server(silent_s, *ago_s) == told
    assert server(silent_s) == told  # and so they do for the next one


def test_what_moved_between_two_looks_is_work(server):
    assert server(640, 600, 450, 300, 150, moved=1000) == "quiet"
    assert server(2400, moved=1000) == "working"


def test_looks_at_an_earlier_server_say_nothing_of_this_one(server):
    again = tuple(replace(process, started_s=process.started_s + 1) for process in server.processes)
    assert server(640, 300, 200, 100, processes=again) == "quiet"


def test_looks_an_hour_apart_are_not_joined(server):
    assert server(640, 5000) == "quiet"


def test_what_is_kept_stays_small_and_leaves_no_name_of_the_log(server, tmp_path):
    server(640, *range(2000, 0, -10))
    (kept,) = (tmp_path / "state" / "phasetrack" / "looks").iterdir()
    assert "server.log" not in kept.name
    times = [json.loads(line)["now_s"] for line in kept.read_text().splitlines()]
    assert times == sorted(times)
    assert 30 < len(times) <= 40
    assert times[-1] - times[0] > 700


def test_a_file_of_looks_that_is_damaged_or_cannot_be_written_is_none(server, tmp_path, monkeypatch):
    server(640)
    (kept,) = (tmp_path / "state" / "phasetrack" / "looks").iterdir()
    kept.write_bytes(b'{"type": "evidence", "now_s": "x"}\n\xff\xfe[1]\n')
    assert server(640) == "quiet"
    blocked = tmp_path / "blocked"
    blocked.write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    assert server(640) == "quiet"
