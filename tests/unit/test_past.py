from __future__ import annotations

from dataclasses import replace

import pytest

from phasetrack.core.model import EvidenceSample, ProcessSample, Range
from phasetrack.core.past import KNOTS, cache_of, past_of, remembered, uid_of
from tests.talk import args, hear, recording, recordings, talk

READY = sorted(name for name in recordings() if hear(recording(name)).snapshot.startup_s is not None)


def phase_of(past, phase):
    return next(one for one in past.phases if one.phase == phase)


@pytest.mark.parametrize("name", READY)
def test_the_pieces_of_a_boot_add_up_to_its_start_up_time(name):
    known = hear(recording(name)).snapshot
    past = past_of(known)
    assert past is not None
    assert past.outcome == "ready"
    total = sum(phase.elapsed_s + (phase.gap_s or 0.0) for phase in past.phases)
    assert total == pytest.approx(known.startup_s)


@pytest.mark.parametrize("name", READY)
def test_the_steps_of_a_phase_add_up_to_the_phase(name):
    past = past_of(hear(recording(name)).snapshot)
    for phase in past.phases:
        if phase.steps:
            assert sum(step.elapsed_s for step in phase.steps) == pytest.approx(phase.elapsed_s, abs=1.5)


def test_a_curve_has_twenty_knots_that_never_go_back():
    past = past_of(hear(recording("01-plain-file")).snapshot)
    bars = [step for phase in past.phases for step in phase.steps if step.knots]
    assert bars
    for bar in bars:
        assert len(bar.knots) == KNOTS
        assert list(bar.knots) == sorted(bar.knots)
        assert bar.knots[-1] <= 1.0


def test_a_failed_boot_teaches_what_it_finished_and_of_the_rest_only_that_it_lasted_so_long():
    past = past_of(hear(recording("06b2-truncated-shard")).snapshot)
    assert past.outcome == "failed"
    assert past.startup_s is None
    assert phase_of(past, "bootstrap").complete
    load = phase_of(past, "target_load")
    assert not load.complete
    assert load.gap_s is None


def test_a_boot_that_is_ready_and_fails_later_was_a_start_that_succeeded():
    known = talk(f"""
        42:00     | {args(model_path="/srv/models/m", tp_size=1)}
        42:20     | Load weight begin. avail mem=139.13 GB
        42:26     | Load weight end. elapsed=5.62 s, type=LlamaForCausalLM, avail mem=130.62 GB, mem usage=8.48 GB.
        42:40     | INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)
        42:43     | The server is fired up and ready to roll!
        50:00     | Scheduler hit an exception: Traceback (most recent call last):
                  |   File "/opt/sglang/srt/managers/scheduler.py", line 1, in run
                  | RuntimeError: CUDA error: an illegal memory access was encountered
    """).snapshot
    past = past_of(known)
    assert past.outcome == "ready"
    assert past.startup_s == 43


def test_the_time_after_a_full_bar_is_a_step_of_its_own():
    known = talk(f"""
        42:00 TP0 | {args(model_path="/srv/models/m", tp_size=2)}
        42:20 TP0 | Load weight begin. avail mem=139.13 GB
        42:20 TP1 | Load weight begin. avail mem=139.13 GB
                  | Multi-thread loading shards:   0% Completed | 0/4 [00:00<?, ?it/s]
                 <| Multi-thread loading shards:  50% Completed | 2/4 [00:06<00:06,  3.00s/it]
                 <| Multi-thread loading shards: 100% Completed | 4/4 [00:10<00:00,  2.50s/it]
        42:30 TP0 | Load weight end. elapsed=10.0 s, type=LlamaForCausalLM, avail mem=130.62 GB, mem usage=8.48 GB.
        43:10 TP1 | Load weight end. elapsed=50.0 s, type=LlamaForCausalLM, avail mem=130.62 GB, mem usage=8.48 GB.
        43:11 TP0 | KV Cache is allocated. dtype: torch.bfloat16, #tokens: 512, K size: 2.0 GB, V size: 2.0 GB
    """).snapshot
    load = phase_of(past_of(known), "target_load")
    assert [(step.name, step.elapsed_s) for step in load.steps] == [
        ("lead", 0.0),
        ("Multi-thread loading shards 1", 10.0),
        ("tail", 40.0),
    ]


def test_a_capture_that_waited_for_its_first_size_may_be_cold_and_one_that_did_not_may_be_warm():
    cold = past_of(hear(recording("16a-eagle3-file-coldjit")).snapshot)
    warm = past_of(hear(recording("02-plain-pty")).snapshot)
    assert phase_of(cold, "target_graph").cache == "~cold"
    assert phase_of(warm, "target_graph").cache == "~warm"


def test_a_load_at_the_speed_of_memory_may_be_warm_and_one_at_the_speed_of_a_disk_may_be_anything():
    assert phase_of(past_of(hear(recording("02-plain-pty")).snapshot), "target_load").cache == "~warm"
    assert phase_of(past_of(hear(recording("01-plain-file")).snapshot), "target_load").cache is None


def test_a_stopped_process_is_no_compiler():
    past = past_of(hear(recording("06f-sigstop-60s-in-graph-capture")).snapshot)
    assert phase_of(past, "target_graph").cache is None


@pytest.mark.parametrize(("read_gib", "cache"), [(0, "warm"), (4, "~warm"), (8, "cold")])
def test_what_was_read_from_storage_shows_whether_the_pages_were_there(read_gib, cache):
    known = hear(recording("02-plain-pty")).snapshot
    process = ProcessSample(7, 1, "sglang::scheduler", "rank", "", "R", read_bytes=read_gib << 30)
    row = replace(next(row for row in known.phases if row.phase == "target_load"), cache=None, expected=None)
    known = replace(known, evidence=EvidenceSample(0.0, (process,)))
    assert cache_of(known, row) == cache


def capture(end: str, *inside: str) -> str:
    lines = "".join(f"\n        {line}" for line in inside)
    return f"""
        42:00     | {args(model_path="/srv/models/m-8b", tp_size=1)}
        42:19     | Memory pool end. avail mem=12.19 GB
        42:20     | Capture cuda graph begin. This can take up to several minutes. avail mem=11.90 GB{lines}
        {end}     | Capture cuda graph end. Time elapsed: 30 s. mem usage=0.41 GB. avail mem=11.79 GB.
        43:59     | The server is fired up and ready to roll!
    """


def test_a_cache_is_called_cold_where_the_log_names_a_compiler_and_never_for_its_time_alone():
    named = capture(
        "43:40",
        "42:21     | Loading JIT ops: batch_decode_dtype_q_f16",
        "43:20     | Finished loading JIT ops: batch_decode_dtype_q_f16",
    )
    assert phase_of(past_of(talk(named).snapshot), "target_graph").cache == "cold"
    assert phase_of(past_of(talk(capture("43:40")).snapshot), "target_graph").cache is None


def test_a_bar_of_which_no_step_was_seen_tells_no_cache():
    bar = "          | Capturing batches (bs=160 avail_mem=11.90 GB):   0%|          | 0/23 [00:00<?, ?it/s]"
    assert phase_of(past_of(talk(capture("43:40", bar)).snapshot), "target_graph").cache is None


def test_a_phase_longer_than_usual_is_never_taken_for_warm():
    known = hear(recording("02-plain-pty")).snapshot
    row = next(row for row in known.phases if row.phase == "target_graph")
    assert cache_of(known, replace(row, cache=None)) == "~warm"
    assert cache_of(known, replace(row, cache=None, expected=Range(0.5, 1.0, (row.elapsed_s or 0) - 2))) is None


def test_a_log_without_arguments_or_without_times_teaches_nothing():
    assert past_of(hear("hello\n").snapshot) is None
    assert (
        past_of(hear("Multi-thread loading shards:  50% Completed | 1/2 [00:01<00:01,  1.00it/s]\n").snapshot) is None
    )
    assert remembered(hear("").snapshot) is None


def test_two_readings_of_one_boot_have_one_uid_and_two_boots_have_two():
    data = recording("01-plain-file")
    assert uid_of(hear(data).snapshot) == uid_of(hear(data[: len(data) // 2]).snapshot)
    assert uid_of(hear(data).snapshot) != uid_of(hear(recording("02-plain-pty")).snapshot)


def test_what_is_remembered_holds_no_secret():
    known = talk(f"""
        42:00 | {args(model_path="/srv/models/m", tp_size=1, api_key="sk-aaaaaaaaaaaaaaaaaaaaaaaa")}
        42:20 | Load weight begin. avail mem=139.13 GB
    """).snapshot
    kept = remembered(known, "https://me:hunter2secret@host/server.log")
    assert "sk-aaaa" not in repr(kept)
    assert "hunter2secret" not in repr(kept)
