"""What ``tail --output plain`` prints of records, and when a silence is worth a line."""

from __future__ import annotations

import pytest

from phasetrack.core.answer import Want, answer
from phasetrack.core.model import Chunk
from phasetrack.core.tracker import Tracker
from phasetrack.errors import Exit
from phasetrack.views.events import Heartbeat, PlainLines
from tests.storms import HEAD
from tests.talk import args, hear, log, patterns, recording, talk

START = f"""
    42:00      | {args(tp_size=1)}
    42:10      | Init torch distributed begin.
    42:11      | Init torch distributed ends. mem usage=0.10 GB
    42:12      | Load weight begin. avail mem=139.13 GB
"""
LOADED = """
               | Loading safetensors checkpoint shards:   0% Completed | 0/20 [00:00<?, ?it/s]
              <| Loading safetensors checkpoint shards:   5% Completed | 1/20 [00:01<00:19,  1.00s/it]
              <| Loading safetensors checkpoint shards:  10% Completed | 2/20 [00:02<00:18,  1.00s/it]
              <| Loading safetensors checkpoint shards: 100% Completed | 20/20 [00:20<00:00,  1.00s/it]
    42:33      | Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=123.27 GB, mem usage=15.15 GB.
    42:34      | The server is fired up and ready to roll!
"""


def lines(heard, **options):
    titles = {phase.id: phase.title for phase in patterns().phases.values()}
    return list(PlainLines(titles, **options).lines(heard.records, heard.snapshot))


def test_each_change_is_a_line_and_a_bar_is_told_by_tenths():
    assert lines(talk(START + LOADED), ascii_only=True) == [
        "15:42:00  Boot 1 begins at line 1: /srv/models/m",
        "15:42:00  > Start processes",
        "15:42:10  + Start processes  10 s",
        "15:42:10  > Distributed init",
        "15:42:12  + Distributed init  1.0 s",
        "15:42:12  > Target weights",
        "15:42:12    Target weights 0/20 shards",
        "15:42:14    Target weights 2/20 shards",
        "15:42:32    Target weights 20/20 shards",
        "15:42:34  + Target weights  21 s  20/20 shards",
        "15:42:34  + READY after 34 s",
    ]


def test_a_failure_tells_cause_and_remedy():
    told = lines(
        talk(
            START
            + """
    42:13      | Scheduler hit an exception: Traceback (most recent call last):
               |   File "/opt/sglang/srt/managers/scheduler.py", line 2412, in run_scheduler_process
               | torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""
        )
    )
    assert any("FAILED" in line and "OutOfMemoryError" in line for line in told)
    assert any(line.lstrip("0123456789: ").startswith("do:") for line in told)
    assert sum("FAILED" in line for line in told) == 1


def test_a_failure_whose_exception_comes_later_is_told_once():
    parts = [START + f"    42:13 | {HEAD}\n"]
    parts += [
        """
               |   File "/opt/sglang/srt/managers/scheduler.py", line 2412, in run_scheduler_process
               | torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
"""
    ]
    view = PlainLines({phase.id: phase.title for phase in patterns().phases.values()})
    tracker, told = Tracker(patterns(), "server.log"), []
    for part in parts:
        records = tracker.feed(Chunk(log(part).encode()))
        told += view.lines(records, tracker.snapshot())
    assert sum("FAILED" in line for line in told) == 1
    assert any(
        line.endswith("says: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.") for line in told
    )
    assert sum("  why: A GPU was full" in line for line in told) == 1


def test_a_hang_that_ends_the_server_is_told_as_both_and_explained_once():
    hang = """
    42:50 TP0  | Watchdog timeout (self.watchdog_timeout=300)
    42:51 TP0  | Pyspy dump for PID 2428:
    42:56      | Received sigquit from a child process. It usually means the child failed.
"""
    told = [line[10:] for line in lines(talk(START + hang)) if line[10:].startswith(("✗", "  why", "  Warning"))]
    assert [line.partition(":")[0].partition(" (")[0] for line in told] == ["✗ Error", "  why", "✗ FAILED"]


def test_a_server_that_serves_on_is_told():
    start = recording("01-plain-file").partition(b"ready to roll!\n")
    alive = 'Killed\n[2026-11-30 15:43:40] INFO:     127.0.0.1:52188 - "POST /generate HTTP/1.1" 200 OK\n'
    told = lines(hear(b"".join(start[:2]) + alive.encode()))
    assert told[-1].endswith("The server serves on: what told of its end was another's text.")


def silent(seconds):
    return hear(log(START), open_end=True, now_s=1000.0 + seconds, output_s=1000.0).snapshot


def test_a_heartbeat_is_due_after_30_60_120_s_and_then_every_two_minutes():
    beat = Heartbeat()
    due = [second for second in range(600) if beat.line(silent(second)) is not None]
    assert due == [30, 60, 120, 240, 360, 480]


def test_a_heartbeat_says_phase_progress_elapsed_silence_and_whether_that_is_normal():
    started = log(START) + "Loading safetensors checkpoint shards:   5% Completed | 1/20 [00:01<00:19,  1.00s/it]\r\r"
    known = hear(started, open_end=True, now_s=1031.0, output_s=1000.0).snapshot
    told = Heartbeat().line(known)
    assert told is not None
    for part in ("Target weights 1/20", "in it for", "silent for 31 s", "normal"):
        assert part in told


def test_output_starts_the_silence_anew():
    beat = Heartbeat()
    assert beat.line(silent(70)) is not None
    assert beat.line(silent(71)) is None
    assert beat.line(silent(1)) is None
    assert beat.line(silent(31)) is not None


def test_a_server_that_is_ready_has_no_heartbeat():
    known = hear(log(START + LOADED), open_end=True, now_s=2000.0, output_s=1000.0).snapshot
    assert Heartbeat().line(known) is None


# --- when a wait is over ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "want", "code"),
    [
        (START, Want(), None),
        (START + LOADED, Want(), Exit.OK),
        (START, Want("dist_init"), Exit.OK),
        (START, Want("target_graph"), None),
        (START + LOADED, Want("draft_load"), Exit.OK),  # it has none, and is past it
        (START + LOADED, Want(after_boot=1), None),
    ],
)
def test_a_wait_is_over_when_what_was_wanted_has_come(text, want, code):
    assert answer(talk(text, open_end=True).snapshot, want) == code


def test_a_wait_is_over_when_nothing_more_will_come():
    assert answer(talk(START).snapshot, Want()) is Exit.OVER
    assert answer(talk(START).snapshot, Want(after_boot=1)) is Exit.OVER
