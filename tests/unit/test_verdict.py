"""Is it stuck? Every rung of the ladder, on a virtual clock."""

from __future__ import annotations

import pytest

from phasetrack.core.model import Outcome
from tests.beside import ROOT, Scene, gpus, loading
from tests.talk import args

RANK = ROOT + 1

# --- calm -------------------------------------------------------------------------------------------


def test_before_the_first_line_a_living_process_is_waited_for():
    scene = Scene().runs(ROOT, "python3").pass_(12)
    assert scene.state == "waiting"
    assert "process 100 is alive for 12 s" in scene.known.verdict.because


def test_output_is_progress():
    assert loading().state == "progressing"


def test_a_silence_within_what_healthy_starts_show_is_quiet():
    scene = loading().pass_(60, faults=10_000)
    assert scene.state == "quiet"
    assert "normal here" in scene.known.verdict.because


def test_a_silence_beyond_that_is_working_while_memory_is_touched():
    scene = loading().pass_(2400, faults=10_000)
    assert scene.state == "working"
    assert "Memory moves" in scene.known.verdict.because


def test_a_silence_beyond_that_is_overdue_where_nothing_outside_can_be_seen():
    scene = loading()
    scene.processes.clear()
    scene.now_s += 2400
    known = scene.known
    assert known.verdict.state == "overdue"
    assert any("evidence is" in text for text in known.verdict.missing)


@pytest.mark.parametrize("hours", [1, 20])
def test_a_log_alone_never_goes_past_overdue(hours):
    scene = Scene().says(f"42:04 | {args(tp_size=1)}\n42:20 | Load weight begin. avail mem=139.13 GB")
    scene.now_s += hours * 3600
    assert scene.state == "overdue"
    assert "nothing outside the log was looked at" in scene.known.verdict.missing


def test_twenty_hours_of_quiet_work_are_never_called_stuck():
    scene, seen = loading(), set()
    for _ in range(20 * 4):
        scene.pass_(900, every_s=450, read_bytes=100_000)
        seen.add(scene.state)
    assert seen <= {"quiet", "working", "progressing"}


def test_twenty_hours_of_a_worker_node_that_waits_for_the_others_are_never_called_stuck():
    scene, seen = loading(nnodes=2, node_rank=1), set()
    for _ in range(20 * 4):
        scene.pass_(900, every_s=450)
        seen.add(scene.state)
    assert "stuck" not in seen
    assert "the other nodes cannot be seen from here" in scene.known.verdict.missing


def test_twenty_hours_of_an_idle_ready_server_are_ready():
    scene = loading().says("""
        42:40 | KV Cache is allocated. #tokens: 1000, K size: 1.00 GB, V size: 1.00 GB
        42:50 | The server is fired up and ready to roll!
    """)
    scene.pass_(20 * 3600)
    assert scene.state == "ready"


# --- climbing ---------------------------------------------------------------------------------------


def test_a_healthy_wait_for_anothers_build_lock_is_not_suspected():
    """Seen in a recording: 32 s without output, CPU or I/O, while another server compiled; here a minute."""
    scene = loading().pass_(60)
    assert scene.state == "quiet"


def test_flat_evidence_is_suspect_only_after_its_dwell():
    scene = loading()
    states = [scene.pass_(10).state for _ in range(20)]
    assert states[4:11] == ["quiet"] * 7
    assert states[-1] == "suspect"
    signs = [sign.text for sign in scene.known.verdict.signs_for]
    assert any("Memory flat" in text for text in signs)
    assert any("Storage flat" in text for text in signs)


def test_a_suspect_that_is_held_for_ten_minutes_is_stuck_and_names_a_command():
    scene = loading(2)
    scene.pass_(600)
    assert scene.state == "suspect"
    scene.pass_(200)
    assert scene.state == "stuck"
    assert scene.known.verdict.next_step == f"py-spy dump --pid {RANK}"


def test_there_is_no_estimate_while_nothing_moves_and_there_is_one_again_when_something_does():
    scene = loading()
    assert scene.known.eta.mid_s is not None
    scene.pass_(300)
    assert scene.state == "suspect"
    assert (scene.known.eta.mid_s, scene.known.eta.why) == (None, "nothing moves; no estimate while that lasts")
    scene.pass_(2, faults=10_000)
    assert "nothing moves" not in scene.known.eta.why


def test_any_movement_leaves_suspect_at_once():
    scene = loading().pass_(300)
    assert scene.state == "suspect"
    scene.pass_(2, faults=5000)
    assert scene.state == "quiet"
    scene.pass_(100)
    assert scene.state == "quiet"  # and climbs again only after the dwell
    scene.pass_(100)
    assert scene.state == "suspect"


def test_output_leaves_suspect_at_once():
    scene = (
        loading().pass_(300).says("42:59 | Load weight end. elapsed=37.00 s, type=LlamaForCausalLM, mem usage=1.00 GB")
    )
    assert scene.state == "progressing"


def test_a_spinning_process_is_busy_and_not_working():
    scene = loading().pass_(280, cpu_s=1.0)
    assert scene.state == "quiet"
    scene.pass_(60, cpu_s=1.0)
    assert scene.state == "suspect"
    assert any("CPU is busy" in sign.text for sign in scene.known.verdict.signs_against)


def test_a_busy_cpu_on_a_gpu_that_draws_its_full_power_is_work():
    """Two weak signs together, as while kernels are tuned; a waiting NCCL kernel draws little more than an idle GPU."""
    scene = loading()
    scene.more["gpus"] = gpus(100, power_w=90)
    scene.pass_(20)
    scene.more["gpus"] = gpus(100, power_w=600)
    scene.pass_(1000, cpu_s=1.0)
    assert scene.state == "working"


def test_full_gpu_utilisation_proves_nothing():
    scene = loading()
    scene.more["gpus"] = tuple(type(gpu)(gpu.index, gpu.name, 100.0, gpu.memory_bytes, 90.0) for gpu in gpus(100))
    scene.pass_(400, cpu_s=1.0)
    assert scene.state == "suspect"


def test_one_channel_alone_is_never_enough_to_suspect():
    """Another user's process: its I/O cannot be read, and there is no GPU."""
    scene = loading()
    for pid in scene.processes:
        scene.is_(pid, read_bytes=None, read_chars=None, write_chars=None)
    fresh = Scene(processes=scene.processes)
    fresh.says(f"42:04 | {args(tp_size=1)}\n42:20 | Load weight begin. avail mem=139.13 GB").pass_(900)
    assert fresh.state == "overdue"


def test_movement_of_gpu_memory_is_work():
    scene = loading()
    scene.pass_(100)
    for gib in range(40):
        scene.more["gpus"] = gpus(gib)
        scene.pass_(30, every_s=30)
    assert scene.state == "working"


def test_growing_caches_are_work():
    scene = loading()
    for files in range(50):
        scene.more |= {"cache_files": files, "cache_bytes": files * 1000}
        scene.pass_(30, every_s=30)
    assert scene.state == "working"
    assert "JIT caches" in scene.known.verdict.because


def test_a_growing_download_is_work():
    scene = loading()
    for mib in range(50):
        scene.more["download_bytes"] = mib << 20
        scene.pass_(30, every_s=30)
    assert "Downloads" in scene.known.verdict.because


def test_compilers_are_work_and_their_exit_takes_nothing_back():
    scene = loading()
    for k in range(20):
        scene.runs(500 + k, "cicc", cpu_s=0.0).pass_(2)
        scene.is_(500 + k, cpu_s=20.0).pass_(28, every_s=28)
        scene.ends(500 + k).pass_(30, every_s=30)
    assert scene.state == "working"


def test_a_verdict_keeps_its_age_while_it_stays():
    scene = loading().pass_(200)
    first = scene.known.verdict
    scene.pass_(30)
    assert scene.known.verdict.state == first.state == "suspect"
    assert scene.known.verdict.since_s == first.since_s


def test_looking_changes_nothing():
    scene = loading().pass_(200)
    assert scene.known == scene.known


# --- hard signs -------------------------------------------------------------------------------------


def test_a_stopped_process_is_suspect_at_once_and_names_sigcont():
    scene = loading().pass_(2, faults=9999).is_(RANK, state="T").pass_(2)
    verdict = scene.known.verdict
    assert verdict.state == "suspect"
    assert "SIGCONT" in verdict.because
    assert verdict.next_step == f"kill -CONT {RANK}"


def test_a_process_that_goes_on_is_no_suspect_any_more():
    scene = loading().is_(RANK, state="T").pass_(4).is_(RANK, state="R").pass_(2, faults=100)
    assert scene.state == "progressing"


def test_a_debuggers_stop_is_no_sign():
    assert loading().is_(RANK, state="t").pass_(4).state == "progressing"


def test_a_process_that_stays_stopped_is_stuck():
    assert loading().is_(RANK, state="T").pass_(680).state == "stuck"


def test_a_rank_that_is_gone_while_others_wait_is_stuck():
    scene = loading(4).pass_(2).ends(RANK + 2).pass_(8)
    verdict = scene.known.verdict
    assert verdict.state == "stuck"
    assert "sglang::scheduler_TP2 (pid 103) is gone" in verdict.because
    assert "3 other ranks wait" in verdict.because


def test_a_zombie_rank_is_gone():
    assert loading(2).pass_(2).is_(RANK, state="Z").pass_(8).state == "stuck"


def test_a_dead_detokenizer_is_stuck():
    assert loading().pass_(2).ends(ROOT + 90).pass_(8).state == "stuck"


def test_a_rank_that_was_dead_before_we_came_is_missed_by_its_lines_in_the_log():
    scene = loading(2).ends(RANK + 1)
    fresh = Scene(processes=scene.processes, now_s=scene.now_s)
    fresh.says(f"42:04 | {args(tp_size=2)}")
    for rank in ("TP0", "TP1"):
        fresh.says(f"42:20 {rank} | Init torch distributed begin.")
    fresh.pass_(6)
    assert fresh.state == "stuck"
    assert "TP1 has no process" in fresh.known.verdict.because


def test_a_rank_that_compiles_its_imports_is_not_missed():
    """Its title comes with its first line; a sample from before that line knows less than the log."""
    scene = Scene().runs(ROOT, "python3").runs(RANK, "python3").runs(ROOT + 90, "sglang::detokenizer").looks()
    scene.now_s += 1
    scene.says(f"42:04 | {args(tp_size=1)}\n42:20 | Init torch distributed begin.")
    assert scene.state == "progressing"


def test_a_scheduler_that_was_dead_before_we_came_is_missed():
    scene = Scene().runs(ROOT, "python3").runs(ROOT + 90, "sglang::detokenizer")
    scene.says(f"42:04 | {args(tp_size=1)}\n42:20 | Init torch distributed begin.").pass_(6)
    assert scene.state == "stuck"
    assert "the scheduler has no process" in scene.known.verdict.because


def test_replicas_that_still_import_are_not_missed():
    """Seen with two replicas: the controller starts its schedulers late, and they take their titles later still."""
    scene = Scene().runs(ROOT, "python3").runs(ROOT + 90, "sglang::detokenizer").runs(RANK, "python3")
    scene.runs(ROOT + 50, "sglang::data_parallel_controller")
    scene.says(f"42:04 | {args(tp_size=1, dp_size=2)}\n42:20 | Init torch distributed begin.").pass_(100)
    assert scene.state == "quiet"


def test_storage_that_does_not_answer_is_stuck():
    scene = loading().is_(RANK, state="D").pass_(200)
    assert scene.state == "suspect"
    scene.pass_(150)
    assert scene.state == "stuck"
    assert "state D" in scene.known.verdict.because


def test_slow_storage_is_work():
    scene = loading().is_(RANK, state="D").pass_(2000, read_bytes=50_000)
    assert scene.state == "working"


def test_a_watchdogs_text_is_stuck_and_failed_once_the_process_goes():
    scene = loading().says("47:44 | Watchdog timeout (self.watchdog_timeout=300)").pass_(2)
    assert scene.state == "stuck"
    scene.ends(*scene.processes).pass_(4)
    assert scene.known.outcome is Outcome.FAILED
    assert scene.known.failure.id == "sglang.fail.watchdog"


# --- the end of the process -------------------------------------------------------------------------


def test_a_main_process_that_dies_without_a_word_has_failed():
    scene = loading().pass_(2).ends(*scene_pids(loading())).pass_(4)
    known = scene.known
    assert (known.outcome, known.verdict.state) == (Outcome.FAILED, "failed")
    assert known.failure.inferred
    assert [record.type for record in scene.records[-2:]] == ["failure", "outcome"]


def scene_pids(scene: Scene) -> list[int]:
    return list(scene.processes)


@pytest.mark.parametrize("code", [-15, -2, 143, 130, 129])
def test_a_main_process_that_was_asked_to_end_was_stopped(code):
    scene = loading().pass_(2)
    scene.processes.clear()
    scene.more["exit_code"] = code
    assert scene.pass_(4).known.outcome is Outcome.STOPPED


def test_a_killed_main_process_names_the_out_of_memory_killer():
    scene = loading().pass_(2)
    scene.processes.clear()
    scene.more["exit_code"] = -9
    assert "out-of-memory" in scene.pass_(4).known.failure.cause


SCRIPT = """
    | Traceback (most recent call last):
    |   File "/srv/launch.py", line 3, in <module>
    |     import torch
    | ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory
"""


def test_a_dead_main_process_whose_log_ends_with_its_exception_says_why():
    scene = loading().says(SCRIPT).pass_(2)
    assert scene.known.outcome is Outcome.STARTING
    scene.processes.clear()
    scene.more["exit_code"] = 1
    known = scene.pass_(4).known
    assert (known.outcome, known.failure.id) == (Outcome.FAILED, "sglang.fail.import")
    assert "libcudnn.so.9" in known.verdict.because


def test_a_main_process_that_failed_before_any_line_of_the_engine_says_why():
    scene = Scene().runs(ROOT, "python3").says(SCRIPT).pass_(2)
    scene.processes.clear()
    scene.more["exit_code"] = 1
    known = scene.pass_(4).known
    assert (known.outcome, known.failure.id) == (Outcome.FAILED, "sglang.fail.import")
    assert [record.type for record in scene.records[-2:]] == ["failure", "outcome"]


def test_a_main_process_that_ended_by_itself_was_not_killed():
    scene = loading().ends(ROOT)
    scene.more["exit_code"] = 0
    failure = scene.pass_(4).known.failure
    assert failure.cause == "It ended by itself."
    assert failure.remedy == ""


def test_orphans_of_a_dead_main_process_are_named():
    scene = loading(2).pass_(2).ends(ROOT).pass_(4)
    verdict = scene.known.verdict
    assert verdict.state == "failed"
    assert "orphans" in verdict.signs_for[-1].text
    assert verdict.next_step == f"kill {RANK} {RANK + 1}"


def test_a_zombie_main_process_is_gone():
    assert loading().pass_(2).is_(ROOT, state="Z").pass_(4).known.outcome is Outcome.FAILED


def test_a_ready_server_whose_process_is_gone_has_stopped():
    scene = loading().says("42:50 | The server is fired up and ready to roll!").pass_(2)
    scene.processes.clear()
    assert scene.pass_(4).known.outcome is Outcome.STOPPED


def test_a_ready_server_that_lost_a_rank_is_degraded():
    scene = loading(2).says("42:50 | The server is fired up and ready to roll!").pass_(2).ends(RANK).pass_(8)
    assert scene.state == "degraded"


def test_another_main_process_is_looked_at_anew():
    scene = loading(2).pass_(2).ends(RANK).pass_(8)
    assert scene.state == "stuck"
    scene.processes = {1000: loading().processes[ROOT]}
    scene.looks(root_pid=1000, root_alive=True)
    assert scene.state == "progressing"


def test_a_process_younger_than_the_log_has_not_printed_yet():
    """With >> the file still holds yesterday's ready."""
    scene = loading().says("42:50 | The server is fired up and ready to roll!")
    scene.now_s += 3600
    scene.runs(ROOT, "python3").looks()
    scene.now_s += 8
    known = scene.looks().known
    assert (known.outcome, known.boot, len(known.boots)) == (Outcome.NONE, 0, 1)
    assert known.verdict.state == "waiting"
    assert "alive for 8.0 s. What the log holds is of an older start." in known.verdict.because


def test_a_log_that_nobody_has_open_has_ended():
    scene = Scene().says(f"42:04 | {args(tp_size=1)}\n42:20 | Load weight begin. avail mem=139.13 GB")
    scene.looks(root_pid=None, root_alive=None, orphan_log=True)
    assert scene.state == "ended"
    assert "no process of this machine" in scene.known.verdict.signs_for[0].text


# --- deadlines --------------------------------------------------------------------------------------


def test_ranks_that_have_loaded_wait_a_known_time_for_the_others():
    scene = loading(2).says("42:30 TP0 | Load weight end. elapsed=8.00 s, type=LlamaForCausalLM, mem usage=1.00 GB")
    verdict = scene.pass_(100).known.verdict
    assert verdict.deadline_why
    assert verdict.deadline_at_s is not None
    left = verdict.deadline_s - scene.now_s
    assert left == pytest.approx(380, abs=1)


def test_a_distributed_init_gives_up_by_its_own_argument():
    scene = Scene().says(f"42:04 | {args(tp_size=2, dist_timeout=600)}\n42:20 TP0 | Init torch distributed begin.")
    verdict = scene.known.verdict
    assert verdict.deadline_s - scene.now_s == pytest.approx(600)
    assert verdict.deadline_why == "--dist-timeout 600"


def test_a_deadline_that_has_passed_is_not_shown():
    scene = Scene().says(f"42:04 | {args(tp_size=2, dist_timeout=600)}\n42:20 TP0 | Init torch distributed begin.")
    scene.now_s += 700
    assert scene.known.verdict.deadline_s is None


def test_a_load_of_one_rank_has_no_deadline():
    assert loading().known.verdict.deadline_s is None


# --- polls ------------------------------------------------------------------------------------------


def test_a_health_checks_access_lines_do_not_break_a_silence():
    scene = loading().says("42:40 | Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)")
    for _ in range(30):
        scene.pass_(5).says('42:45 | INFO:     127.0.0.1:52138 - "GET /health HTTP/1.1" 503 Service Unavailable')
    assert scene.known.silent_s == pytest.approx(150)


def test_a_users_request_breaks_a_silence():
    scene = loading().pass_(60).says('42:45 | INFO:     10.0.0.1:52138 - "POST /generate HTTP/1.1" 200 OK')
    assert scene.known.silent_s == 0


def test_our_own_sampled_request_is_known_by_its_connection():
    scene = loading().pass_(60).answers("/generate", None, client="127.0.0.1:5555", pending=True)
    scene.says('42:45 | INFO:     127.0.0.1:5555 - "POST /generate HTTP/1.1" 200 OK')
    assert scene.known.silent_s == pytest.approx(60)
