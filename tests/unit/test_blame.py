"""Failing logs in, the first cause out: what failed, where, why, what to do, and what only followed from it."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest

from phasetrack.core.advice import headline
from phasetrack.core.model import Outcome, VerdictState
from tests.storms import ADVICE, DURING, HEAD
from tests.talk import args, hear, log

ARGS = args(tp_size=2, mem_fraction_static=0.8, nnodes=1)
SITE = "/opt/site/sglang/srt"
QUIT = "Received sigquit from a child process. It usually means the child failed."
LOAD = "Load weight begin. avail mem=139.13 GB"
LOADED = "Load weight end. elapsed=5.87 s, type=LlamaForCausalLM, avail mem=130.00 GB, mem usage=9.13 GB."
FIRED = "The server is fired up and ready to roll!"


def frame(path: str, line: int, name: str, source: str) -> list[str]:
    return [f'  File "{path}", line {line}, in {name}', f"    {source}"]


TRACE = [
    *frame(f"{SITE}/managers/scheduler.py", 4025, "run_scheduler_process", "scheduler = Scheduler("),
    *frame(f"{SITE}/models/llama.py", 503, "load_weights", "param = params_dict[name]"),
]


def text(*lines: str) -> str:
    """Untimed lines of a conversation."""
    return "".join(f" | {line}\n" for line in lines)


def failed(*lines: str, rank: str = "TP0", clock: str = "44:20") -> str:
    """A record of a rank with these lines behind its header."""
    return f"{clock} {rank} | {HEAD}\n" + text(*lines)


def start(*, loading: bool = True) -> str:
    said = f"43:55 | {ARGS}\n44:13 TP0 | {LOAD}\n44:13 TP1 | {LOAD}\n"
    return said if loading else said.splitlines()[0] + "\n"


def told(talk: str, **how: object):
    return hear(log(talk), **how).snapshot


# --- one record ---------------------------------------------------------------------------------------


def test_a_chain_gives_its_root_the_message_its_end_and_advice_is_no_cause():
    chain = [*TRACE, "RuntimeError: CUDA error: no kernel image is available for execution on the device", "", *DURING]
    known = told(start() + failed(*chain, *TRACE, "Exception: Capture cuda graph failed: CUDA error", *ADVICE))
    assert known.failure.id == "sglang.fail.no_kernel_image"
    assert known.failure.message == "Exception: Capture cuda graph failed: CUDA error"
    assert (known.failure.phase, known.failure.rank, known.failure.place.line) == ("target_load", "TP0", 4)
    assert known.failure.lines[-1] == ADVICE[-1]


def test_a_wrapper_that_tells_more_than_an_unknown_root_names_the_kind():
    chain = [*TRACE, "RuntimeError: scales must be calibrated", *DURING, *TRACE]
    known = told(start() + failed(*chain, "Exception: Capture cuda graph failed: scales must be calibrated.", *ADVICE))
    assert known.failure.id == "sglang.fail.capture"
    assert known.failure.cause == "Recording the GPU graphs failed: scales must be calibrated."


def test_a_compilers_error_a_hundred_lines_below_the_exception_is_the_reason():
    build = ["RuntimeError: Ninja build failed. Ninja output:", "ninja: Entering directory `/root/.cache/flashinfer'"]
    build += [f"[{k}/200] c++ -MMD -MF part{k}.o.d -c part{k}.cu" for k in range(100)]
    error = '/root/.cache/flashinfer/op.cu(12): error: identifier "half2" is undefined'
    known = told(start() + failed(*TRACE, *build, error, "ninja: build stopped: subcommand failed."))
    assert known.failure.id == "sglang.fail.jit_build"
    assert known.failure.message == build[0]
    assert known.failure.clue == error
    assert known.failure.cause.endswith(error)


def test_a_bare_assertion_is_told_by_the_line_that_holds_it():
    check = frame(f"{SITE}/models/roberta.py", 93, "forward", "assert torch.equal(positions, expected)")
    known = told(start() + failed(*TRACE, *check, "AssertionError"))
    assert known.failure.id == "sglang.fail.assertion"
    assert "`assert torch.equal(positions, expected)`" in known.failure.cause
    assert "forward (roberta.py, line 93)" in known.failure.cause


def test_a_failure_of_which_no_text_tells_is_told_by_its_place():
    check = frame(f"{SITE}/models/roberta.py", 93, "forward", "assert torch.equal(positions, expected)")
    bare = told(start() + failed(*TRACE, *check, "AssertionError"))
    assert bare.failure.message == "AssertionError, in forward (roberta.py, line 93)"
    assert headline(bare.failure).count("roberta.py") == 1
    cut_off = told(start() + failed(*TRACE, *frame("/opt/site/torch/nn.py", 9, "f", "g()")) + f"44:21 | {QUIT}\n")
    assert cut_off.failure.message == "Scheduler hit an exception, in load_weights (llama.py, line 503)"
    assert cut_off.failure.lines[1:3] == tuple(TRACE[:2])
    said = told(start() + failed(*TRACE, "ValueError: no"))
    assert said.failure.message == "ValueError: no"


def test_a_failure_within_lora_is_told_as_one_of_lora():
    layer = frame(f"{SITE}/lora/layers.py", 61, "__init__", "weight=base_layer.w2_weight,")
    layer += frame("/opt/site/torch/nn/modules/module.py", 1964, "__getattr__", "raise AttributeError(")
    known = told(start() + failed(*TRACE, *layer, "AttributeError: 'MoE' object has no attribute 'w2_weight'"))
    assert "LoRA" in known.failure.cause
    assert "--enable-lora" in known.failure.remedy
    other = told(start() + failed(*TRACE, "AttributeError: 'MoE' object has no attribute 'w2_weight'"))
    assert "LoRA" not in other.failure.cause + other.failure.remedy


def test_what_ascend_says_below_its_exception_is_the_reason():
    said = ["RuntimeError: NPU function error: call aclnnAdd failed, error code is 161002"]
    said += ["[ERROR] 2026-11-30-15:44:20 (PID:2428, Device:0, RankID:-1) ERR00100 PTA call acl api failed."]
    said += ["[PID: 2428] 2026-11-30-15:44:20.123.456 AclNN_Parameter_Error(EZ1001): other has 9 dimensions."]
    inside = f'AssertionError: {{"message":"{said[0]}' + r"\n[PID: 9] AclNN_Parameter_Error(EZ1001): other has 9.\n"
    for lines in (said, [inside + '","code":500}']):
        known = told(start() + failed(*TRACE, *lines))
        assert known.failure.id == "sglang.fail.npu_op"
        assert "other has 9" in known.failure.cause
        assert "not at versions first" in known.failure.remedy


# --- when ---------------------------------------------------------------------------------------------

HUNG = "[rank1]:[E1130 {}.730311765 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: x"


@pytest.mark.parametrize(
    ("clock", "after_s"),
    [("15:54:29", 16.73 + 600), ("15:44:12", -0.27), ("23:54:29", 0), ("07:54:29", 0), ("15:40:00", 0)],
)
def test_a_native_stamp_dates_its_line_unless_its_clock_is_another(clock, after_s):
    known = told(start() + text(HUNG.format(clock)))
    begun_s = known.phases[0].ended_s
    assert known.failure.at_s - begun_s == pytest.approx(after_s, abs=0.01)


def test_a_native_stamp_of_the_new_year_is_the_next_years():
    lines = log(start()).replace("2026-11-30 15:4", "2026-12-31 23:5") + HUNG.format("00:05:00").replace(
        "E1130", "E101"
    )
    failure = hear(lines + "\n").snapshot.failure
    assert datetime.fromtimestamp(failure.at_s, UTC).isoformat().startswith("2027-01-01T00:05:00")


def test_a_native_stamp_counts_in_a_log_without_dates():
    lines = "".join(line.replace("2026-11-30 ", "") + "\n" for line in log(start()).splitlines())
    known = hear(lines + HUNG.format("15:54:29") + "\n").snapshot
    assert known.failure.at_s - known.phases[0].ended_s == pytest.approx(616.73, abs=0.01)


def test_the_text_of_a_native_error_is_the_reason_of_the_abort():
    said = ["terminate called after throwing an instance of 'c10::Error'"] * 2
    said += ["  what():  CUDA error: an illegal memory access was encountered", "", "Fatal Python error: Aborted"]
    known = told(start() + text(*said) + f"44:21 | {QUIT}\n")
    assert (known.failure.id, known.failure.place.line) == ("sglang.clue.native_what", 4)
    assert known.failure.cause.endswith(": CUDA error: an illegal memory access was encountered")


def test_what_nccl_says_below_its_exception_is_told():
    said = ["torch.distributed.DistBackendError: NCCL error in: x.cpp:94, invalid usage, NCCL version 2.27.5"]
    said += ["ncclInvalidUsage: This usually reflects invalid usage of NCCL library.", "Last error:"]
    said += ["Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000"]
    known = told(start() + failed(*TRACE, *said) + f"44:21 | {QUIT}\n")
    assert known.failure.cause.startswith("Two ranks were given the same GPU")
    assert "(tp 2)" in known.failure.remedy


def test_what_only_a_later_rank_says_of_the_same_failure_is_told_too():
    said = ["torch.distributed.DistBackendError: NCCL error in: x.cpp:94, unhandled cuda error, NCCL version 2.27.5"]
    clue = "Cuda failure 2 'out of memory'"
    known = told(start() + failed(*TRACE, *said) + failed(*TRACE, *said, "Last error:", clue, rank="TP1"))
    assert known.failure.rank == "TP0"
    assert known.failure.cause == f"NCCL found no GPU memory left for its buffers: {clue}"


def test_an_argument_that_the_main_process_refuses_is_told_by_its_last_line():
    trace = [
        *frame("<frozen runpy>", 198, "_run_module_as_main", "return _run_code()"),
        *frame(f"{SITE}/server_args.py", 700, "__post_init__", "raise ValueError("),
    ]
    known = told(start(loading=False) + text(DURING[1], *trace, "ValueError: page_size 3 does not fit fa3."))
    assert (known.outcome, known.failure.id) == (Outcome.FAILED, "sglang.fail.other")
    assert known.failure.cause == "SGLang refused to start: page_size 3 does not fit fa3."
    assert "page_size 3 does not fit fa3" in known.verdict.because


def test_a_traceback_that_stands_newest_first_is_read_from_the_bottom():
    lines = log(start() + failed(*TRACE, "KeyError: 'model.layers.78.mlp.input_scale'") + f"44:21 | {QUIT}\n")
    known = hear("".join(line + "\n" for line in reversed(lines.splitlines()))).snapshot
    assert known.failure.id == "sglang.fail.checkpoint_key"
    assert known.failure.message == "KeyError: 'model.layers.78.mlp.input_scale'"


@pytest.mark.parametrize(
    "wrap",
    [
        "2026-11-30T15:44:20.123456789Z {}",
        "sglang-1  | {}",
        "2026-11-30T15:44:20.123456789Z stderr F {}",
        "[pod/sglang-0/server] {}",
        "(SGLangEngine pid=4242) {}",
    ],
)
def test_a_record_holds_together_in_every_transport(wrap):
    lines = log(start() + failed(*TRACE, "KeyError: 'model.layers.3.mlp.scale'")).splitlines()
    known = hear("".join(wrap.format(line) + "\n" for line in lines)).snapshot
    assert known.failure.message == "KeyError: 'model.layers.3.mlp.scale'"
    assert known.failure.rank == "TP0"
    assert len(known.failure.lines) == 2 + len(TRACE)


# --- causes and consequences --------------------------------------------------------------------------


def test_what_another_rank_only_noticed_gives_way_to_the_cause_that_was_written_later():
    closed = "RuntimeError: [/gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.0.0.6]:15006"
    known = told(start() + failed(*TRACE, closed) + failed(*TRACE, "MemoryError: no", rank="TP1", clock="44:22"))
    assert (known.failure.rank, known.failure.message) == ("TP1", "MemoryError: no")
    assert known.failure.echoes[0].startswith("TP0: RuntimeError: [/gloo")


def test_a_cause_much_later_is_none_of_what_came_before():
    closed = "RuntimeError: [/gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.0.0.6]:15006"
    known = told(start() + failed(*TRACE, closed) + failed(*TRACE, "MemoryError: no", rank="TP1", clock="48:22"))
    assert known.failure.rank == "TP0"


def test_ranks_that_say_the_same_are_counted_and_the_quit_is_an_echo():
    full = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {} has a total capacity of 79 GiB"
    )
    known = told(start() + failed(*TRACE, full.format(0)) + failed(*TRACE, full.format(1), rank="TP1")
                 + f"44:21 | {QUIT}\n" + text("Killed"))  # fmt: skip
    assert (known.failure.ranks, known.failure.repeats) == (("TP0", "TP1"), 2)
    assert known.failure.echoes == (QUIT, "Killed")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-9, "was killed (exit code -9, SIGKILL)"),
        (-7, "memory that could not be backed (exit code -7, SIGBUS)"),
        (-11, "crashed in native code (exit code -11, SIGSEGV)"),
        (-15, "was asked to end from outside (exit code -15, SIGTERM)"),
        (1, "ended with exit code 1"),
    ],
)
def test_an_exit_code_says_more_than_that_a_worker_is_dead(code, words):
    dead = "Rank 1 scheduler is dead. Please check if there are relevant logs."
    known = told(start() + f"45:20 | {dead}\n45:20 | Exit code: {code}\n45:21 | {QUIT}\n" + text("Killed"))
    assert known.failure.place.line == 4
    assert known.failure.message == f"{dead} Exit code: {code}"
    assert words in known.failure.cause
    assert "Killed" in known.failure.echoes


def test_a_parent_that_kills_itself_after_a_failure_is_no_cause():
    known = told(
        start() + failed(*TRACE, "KeyError: 'model.layers.3.mlp.scale'") + f"44:21 | {QUIT}\n" + text("Killed")
    )
    assert known.failure.id == "sglang.fail.checkpoint_key"


CASCADE = (
    f"44:22 | {QUIT}",
    "44:22 | Rank 1 scheduler is dead. Please check if there are relevant logs.",
    "44:22 | Exit code: -9",
    "44:23 | Subprocess detokenizer (pid=2431) crashed with exit code -15. Triggering SIGQUIT for cleanup...",
    "44:22 | kill_process_tree called: parent_pid=766, include_parent=True, pid=766",
    " | Killed",
    " | ./entrypoint.sh: line 12:  4242 Killed                  python3 -m sglang.launch_server",
    " | command terminated with exit code 137",
    " | srun: error: node1: task 0: Killed",
    " | slurmstepd: error: Detected 1 oom_kill event in StepId=4242.0. Some of the step tasks have been OOM Killed.",
    " | terminate called without an active exception",
    " | Fatal Python error: Aborted",
    " | /usr/lib/python3.12/multiprocessing/resource_tracker.py:301: UserWarning: resource_tracker: There appear",
    "44:23 TP1 | Scheduler hit an exception: Traceback (most recent call last):\n"
    + text(*TRACE, "RuntimeError: [/gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.0.0.6]:15006"),
    "44:23 | DataParallelController hit an exception: Traceback (most recent call last):\n" + text(*TRACE, "EOFError"),
    text(DURING[1], *frame("<frozen runpy>", 198, "_run_module_as_main", "return _run_code(code)"), *TRACE)
    + " | RuntimeError: Rank 0 scheduler died during initialization (exit code: -9).",
)


@pytest.mark.parametrize("seed", range(20))
def test_what_follows_from_a_failure_never_replaces_it_in_whatever_order(seed):
    random = Random(seed)
    said = [line.rstrip("\n") + "\n" for line in random.sample(CASCADE, random.randrange(3, len(CASCADE)))]
    for cause in ("ValueError: page_size 3 does not fit fa3.", "KeyError: 'model.layers.3.mlp.scale'"):
        known = told(start() + failed(*TRACE, cause, clock="44:21") + "".join(said))
        assert (known.failure.message, known.failure.rank, known.failure.place.line) == (cause, "TP0", 4)


def test_a_vanished_worker_names_its_rank():
    trace = frame("<frozen runpy>", 198, "_run_module_as_main", "return _run_code(code, main_globals, None,")
    trace += frame(f"{SITE}/entrypoints/engine.py", 1342, "_wait_for_scheduler_ready", "raise _scheduler_died_error()")
    died = "RuntimeError: Rank 1 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), …"
    known = told(start() + text(DURING[1], *trace, died))
    assert (known.failure.id, known.failure.rank) == ("sglang.fail.worker_vanished", "TP1")


def test_a_timeout_before_a_traceback_that_was_cut_off_is_its_reason():
    waited = "[rank1]:[W1130 15:44:20.100 socket.cpp:487] [c10d] waitForInput: socket X timed out after 1800000ms"
    known = told(start() + text(waited) + failed(*TRACE) + f"44:20 | {QUIT}\n")
    assert known.failure.id == "sglang.clue.store_timeout"
    assert "for 30 min 00 s" in known.failure.cause


def test_a_hang_is_stuck_and_becomes_the_cause_once_the_process_goes():
    hang = "44:50 TP0 | Watchdog timeout (self.watchdog_timeout=300)\n"
    known = told(start() + hang, open_end=True)
    assert known.verdict.state is VerdictState.STUCK
    known = told(start() + hang + f"44:51 | {QUIT}\n")
    assert (known.outcome, known.failure.id) == (Outcome.FAILED, "sglang.fail.watchdog")
    assert "(5 min 00 s)" in known.failure.cause


# --- exceptions from outside the engine's code ----------------------------------------------------------

SCRIPT = [DURING[1], *frame("/srv/launch.py", 3, "<module>", "import torch")]
NO_LIBRARY = "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"


def test_a_launch_scripts_exception_at_the_end_of_the_log_is_the_cause():
    heard = hear(log(start() + text(*SCRIPT, NO_LIBRARY)))
    known = heard.snapshot
    assert (known.outcome, known.failure.id, known.failure.message) == (
        Outcome.FAILED,
        "sglang.fail.import",
        NO_LIBRARY,
    )
    assert known.verdict.state is VerdictState.FAILED
    assert [record.type for record in heard.records[-2:]] == ["failure", "outcome"]


def test_while_the_log_may_go_on_a_launch_scripts_exception_is_nothing_yet():
    known = told(start() + text(*SCRIPT, NO_LIBRARY), open_end=True)
    assert (known.outcome, known.failure) == (Outcome.STARTING, None)


def test_a_scripts_exception_is_forgotten_once_the_start_goes_on():
    known = told(start() + text(*SCRIPT, NO_LIBRARY) + f"44:20 TP0 | {LOADED}\n")
    assert (known.outcome, known.failure) == (Outcome.STARTING, None)


def test_a_scripts_exception_before_the_kill_is_the_cause():
    known = told(start() + text(*SCRIPT, "ValueError: unknown cluster", "Killed"))
    assert (known.outcome, known.failure.message) == (Outcome.FAILED, "ValueError: unknown cluster")
    assert known.failure.cause.startswith("The log ends with an exception outside the engine's own code")
    assert known.failure.echoes == ("Killed",)


@pytest.mark.parametrize(
    "said",
    [
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='127.0.0.1', port=30000): Max retries exceeded",
        "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>",
        "KeyboardInterrupt",
    ],
)
def test_a_client_that_waits_for_the_server_is_none_of_its_failures(said):
    known = told(start() + text(*SCRIPT, said))
    assert (known.outcome, known.failure) == (Outcome.STARTING, None)


def test_an_exception_before_the_arguments_was_another_programs():
    known = told(text(*SCRIPT, NO_LIBRARY) + start())
    assert (known.outcome, known.failure) == (Outcome.STARTING, None)


def test_a_log_without_an_engines_line_says_how_it_ends():
    known = hear("\n".join([*SCRIPT, NO_LIBRARY]) + "\n").snapshot
    assert known.outcome is Outcome.NONE
    assert known.verdict.because.endswith(f"the log ends with {NO_LIBRARY}")


def test_an_engine_that_is_not_installed_is_its_own_failure():
    said = "ModuleNotFoundError: No module named 'sglang'"
    known = hear("\n".join([*SCRIPT, said]) + "\n", open_end=True).snapshot
    assert (known.outcome, known.failure.message, known.engine.name) == (Outcome.FAILED, said, "sglang")


def test_a_traceback_under_a_task_number_is_read_without_any_stamp():
    trace = frame("<frozen runpy>", 198, "_run_module_as_main", "return _run_code()") + TRACE
    lines = [DURING[1], *trace, "ValueError: page_size 3 does not fit fa3."]
    known = hear("".join(f"0: {line}\n" for line in lines)).snapshot
    assert known.failure.message == "ValueError: page_size 3 does not fit fa3."


def test_an_exception_whose_text_begins_below_its_class_has_it_in_its_message():
    trace = frame("<frozen runpy>", 198, "_run_module_as_main", "return _run_code()") + TRACE
    below = ["ImportError: ", "", "[sgl_kernel] CRITICAL: Could not load any common_ops library!", "", "GPU Info:"]
    known = told(start(loading=False) + text(DURING[1], *trace, *below))
    assert known.failure.id == "sglang.fail.import"
    assert known.failure.message == "ImportError: [sgl_kernel] CRITICAL: Could not load any common_ops library!"


def test_once_the_weights_are_there_it_is_the_cache_that_does_not_fit():
    full = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
        "79.10 GiB of which 1.20 GiB is free."
    )
    loaded = "".join(f"44:19 {rank} | {LOADED}\n" for rank in ("TP0", "TP1"))
    known = told(start() + loaded + failed(*TRACE, full))
    assert known.failure.cause.startswith("The KV cache took too much")


def test_a_log_that_names_a_writer_on_every_line_keeps_few_of_them():
    heard = hear("".join(f"w{k}-1  | Traceback (most recent call last):\n" for k in range(2000)), open_end=True)
    blame = heard.tracker._machine._blame
    assert len(blame._failing) <= 256


# --- what is no failure -------------------------------------------------------------------------------


def test_a_failure_while_serving_keeps_when_it_was_ready():
    known = told(start() + f"44:40 | {FIRED}\n" + failed(*TRACE, "RuntimeError: CUDA error: unknown", clock="50:00"))
    assert (known.outcome, known.failure.after_ready) == (Outcome.FAILED, True)
    assert known.ready_at_s is not None


def test_a_benchmark_clients_traceback_in_the_same_file_is_none():
    trace = frame("/opt/site/sglang/bench_serving.py", 800, "<module>", "run_benchmark(args)")
    known = told(start() + text(DURING[1], *trace, "AssertionError: no successful request") + f"44:40 | {FIRED}\n")
    assert (known.outcome, known.failure) == (Outcome.READY, None)


@pytest.mark.parametrize("clock", ["44:14", "44:40"])
def test_an_interrupt_is_a_stop_and_no_failure(clock):
    trace = frame("<frozen runpy>", 198, "_run_module_as_main", "return _run_code(code, main_globals, None,")
    trace += frame(f"{SITE}/entrypoints/engine.py", 800, "wait", "time.sleep(1)")
    known = told(start() + f"{clock} TP0 | Using model weights format\n" + text(DURING[1], *trace, "KeyboardInterrupt"))
    assert (known.outcome, known.failure) == (Outcome.STOPPED, None)


def test_a_process_that_left_without_tidying_up_fails_nothing():
    leaked = "/usr/lib/python3.12/multiprocessing/resource_tracker.py:279: UserWarning: resource_tracker: There appear"
    known = told(start() + text(leaked))
    assert (known.outcome, known.failure) == (Outcome.STARTING, None)
    assert [warning.id for warning in known.warnings] == ["sglang.echo.resource_tracker"]
