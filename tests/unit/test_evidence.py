"""What moved outside the log: the fold over samples, titles of processes, and the recordings of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrack.core.evidence import EvidenceFold
from phasetrack.core.model import EvidenceSample, GpuSample, ProbeResult, ProcessSample
from phasetrack.core.titles import is_launch, title_of
from phasetrack.edges.procfs import parse_stat
from phasetrack.edges.recorded import Recorder, beside, read_evidence

NOW_S = 1_800_000_000.0


def process(pid: int = 1, *, role: str = "main", **more: object) -> ProcessSample:
    made = ProcessSample(pid, 0, "python3", role, "", "S", 1.0, 1000, 0, 10, 1 << 30, NOW_S - 100, 0, 0)
    return replace(made, **more)


def sample(after_s: float, *processes: ProcessSample, **more: object) -> EvidenceSample:
    return replace(EvidenceSample(NOW_S + after_s, processes, root_pid=1, root_alive=True), **more)


def channels(*samples: EvidenceSample) -> dict[str, float | None]:
    """When each channel last moved, in seconds before the last sample."""
    fold = EvidenceFold()
    for one in samples:
        fold.feed(one)
    seen = fold.view()
    assert seen is not None
    return {channel.id: channel.moved_ago_s for channel in seen.channels}


# --- titles -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comm", "command", "role", "rank"),
    [
        ("sglang::schedul", "sglang::scheduler", "rank", ""),
        ("sglang::schedul", "sglang::scheduler_TP3", "rank", "TP3"),
        ("sglang::schedul", "sglang::scheduler_DP1_TP3_EP3", "rank", "DP1 TP3 EP3"),
        ("sglang::schedul", "sglang::scheduler_PP0_TP1", "rank", "PP0 TP1"),
        ("sglang::schedul", "", "rank", ""),  # a zombie has no command line
        ("sglang::detoken", "sglang::detokenizer", "detokenizer", ""),
        ("sglang::data_pa", "sglang::data_parallel_controller", "other", ""),
        ("python3", "python3 -m sglang.launch_server --model-path m", "other", ""),
        ("python3", "python3 -B -c from multiprocessing.spawn import spawn_main", "other", ""),
        ("cicc", "/usr/local/cuda/bin/../nvvm/bin/cicc --c++17", "compiler", ""),
        ("ninja", "ninja -v -C /srv/cache", "compiler", ""),
        ("python3", "python3 /x/torch/_inductor/compile_worker/__main__.py --workers=32", "compiler", ""),
        ("sh", "sh -c -- nvcc x.cu", "other", ""),
    ],
)
def test_a_process_is_told_by_its_title(comm, command, role, rank):
    found = title_of(comm, command)
    assert (found.role, found.rank) == (role, rank)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python3 -m sglang.launch_server --port 1", True),
        ("/opt/bin/python /opt/bin/sglang serve --model-path m", True),
        ("python3 -m sglang.srt.entrypoints.http_server", True),
        ("vim sglang.md", False),
        ("tail -f sglang.log", False),
    ],
)
def test_a_servers_command_line_is_known(command, expected):
    assert is_launch(command) is expected


def test_a_stat_line_is_read_whatever_the_name_holds():
    line = b"42 (a) b (c) T 7 42 42 0 -1 4194304 100 0 3 0 250 50 0 0 20 0 1 0 9000 1000 256 0\n"
    found = parse_stat(line)
    assert (found.pid, found.comm, found.state, found.ppid) == (42, "a) b (c", "T", 7)
    assert (found.faults, found.cpu_s, found.started_ticks) == (103, 3.0, 9000)


# --- channels ---------------------------------------------------------------------------------------


def test_what_does_not_change_does_not_move():
    assert set(channels(sample(0, process()), sample(2, process())).values()) == {None}


@pytest.mark.parametrize(
    ("more", "channel"),
    [
        ({"faults": 10_000}, "memory"),
        ({"rss_bytes": 2 << 30}, "memory"),
        ({"rss_bytes": 1 << 20}, "memory"),
        ({"read_bytes": 1 << 20}, "storage"),
        ({"read_chars": 4 << 20}, "storage"),
        ({"write_chars": 4 << 20}, "storage"),
        ({"cpu_s": 3.0}, "cpu"),
    ],
)
def test_each_counter_moves_its_channel(more, channel):
    moved = channels(sample(0, process()), sample(2, process(**more)))
    assert [name for name, ago in moved.items() if ago is not None] == [channel]


@pytest.mark.parametrize(
    ("before", "after", "channel"),
    [
        ({"cache_files": 1, "cache_bytes": 5}, {"cache_files": 2, "cache_bytes": 5}, "caches"),
        ({"download_bytes": 5}, {"download_bytes": 6}, "downloads"),
        ({"gpus": (GpuSample(0, memory_bytes=0),)}, {"gpus": (GpuSample(0, memory_bytes=1 << 30),)}, "gpu_memory"),
    ],
)
def test_what_grows_around_the_processes_moves_its_channel(before, after, channel):
    moved = channels(sample(0, process(), **before), sample(2, process(), **after))
    assert moved[channel] == 0


def test_what_an_idle_server_does_is_no_movement():
    """Measured in a recording: 0.01 s of CPU in 20 s, a few pages and reads."""
    beats = [
        sample(2 * k, process(cpu_s=1 + 0.001 * k, faults=1000 + 5 * k, read_chars=100 * k, syscalls_read=50 * k))
        for k in range(600)
    ]
    assert set(channels(*beats).values()) == {None}


def test_a_compilers_exit_takes_nothing_back():
    """The sum of CPU over living processes falls when a compiler exits; that is no movement, and hides none."""
    compiler = process(2, role="compiler", cpu_s=50.0, started_s=NOW_S - 50)
    moved = channels(sample(0, process(), compiler), sample(2, process()), sample(4, process(cpu_s=2.0)))
    assert moved["cpu"] == 0
    assert channels(sample(0, process(), compiler), sample(2, process()), sample(4, process()))["cpu"] is None


def test_the_birth_of_a_compiler_is_movement():
    born = process(2, role="compiler", cpu_s=0.0, started_s=NOW_S + 1)
    assert channels(sample(0, process()), sample(2, process(), born))["compilers"] == 0


def test_an_old_process_that_is_seen_for_the_first_time_has_not_moved():
    late = process(2, cpu_s=500.0, faults=9_999_999, rss_bytes=0, started_s=NOW_S - 90)
    moved = channels(sample(0, process()), sample(2, process(), late))
    assert moved["cpu"] is None
    assert moved["memory"] is None


def test_what_cannot_be_read_is_no_channel():
    hidden = process(read_bytes=None, read_chars=None, write_chars=None)
    assert "storage" not in channels(sample(0, hidden), sample(2, hidden))


@given(st.lists(st.floats(0, 500), min_size=2, max_size=40))
def test_gpu_power_counts_only_against_its_own_lowest_and_highest(watts):
    """Never from one level alone, whatever it is."""
    moved = channels(*(sample(2 * k, process(), gpus=(GpuSample(0, power_w=w),)) for k, w in enumerate(watts)))
    if max(watts) - min(watts) < 40:
        assert moved.get("gpu_power") is None


@given(st.lists(st.tuples(st.floats(0.1, 100), st.floats(0, 5), st.booleans()), max_size=30))
def test_any_stream_of_samples_has_a_view_and_looking_changes_nothing(steps):
    fold, now, cpu = EvidenceFold(), 0.0, 0.0
    for step, burned, there in steps:
        now, cpu = now + step, cpu + burned
        fold.feed(sample(now, *([process(cpu_s=cpu)] if there else []), root_alive=there or None))
        assert fold.view(NOW_S + now) == fold.view(NOW_S + now)


def test_a_moment_in_which_nothing_can_be_seen_says_nothing_of_anyone():
    rank = process(2, role="rank")
    fold = EvidenceFold()
    for one in (sample(0, process(), rank), sample(2, root_alive=None), sample(4, process(), rank)):
        fold.feed(one)
        assert fold.view().lost == ()


def test_ages_grow_until_the_next_sample():
    fold = EvidenceFold()
    fold.feed(sample(0, process()))
    assert fold.view(NOW_S + 30).age_s == 30


# --- recordings -------------------------------------------------------------------------------------


def test_evidence_is_read_as_it_was_written(tmp_path):
    cast = str(tmp_path / "a.cast")
    recorder = Recorder(cast, began_s=NOW_S, command="server")
    items = [
        sample(0, process(), process(2, role="rank"), gpus=(GpuSample(0, "H200", 1.0, 2, 3.0),), missing=("GPUs",)),
        ProbeResult(NOW_S + 1, "/health", 200, 1.0, 0, client="127.0.0.1:5"),
    ]
    for item in items:
        recorder.seen(item)
    recorder.close()
    assert list(read_evidence(beside(cast))) == items


def test_a_recording_cut_by_a_kill_is_read_up_to_there(tmp_path):
    cast = str(tmp_path / "a.cast")
    recorder = Recorder(cast, began_s=NOW_S, command="server")
    recorder.seen(sample(0, process()))
    recorder.close()
    path = beside(cast)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    assert len(list(read_evidence(path))) == 1


def test_fields_of_a_newer_version_are_passed_over(tmp_path):
    path = tmp_path / "a.evidence.jsonl"
    path.write_text('{"type":"evidence","now_s":1.0,"aura":"green"}\n{"type":"later"}\nnonsense\n')
    assert [item.now_s for item in read_evidence(path)] == [1.0]


def test_a_character_cut_in_two_is_written_once(tmp_path):
    cast = tmp_path / "a.cast"
    recorder = Recorder(str(cast), began_s=NOW_S, command="server")
    recorder.output("█".encode()[:2], NOW_S)
    recorder.output("█".encode()[2:] + b"!", NOW_S + 1)
    recorder.close()
    assert cast.read_text(encoding="utf-8").splitlines()[1] == '[1.0,"o","█!"]'
