"""Conversations: lines in, transitions out. Every order of phases, and every rule at the top of ``core/machine.py``.

The logs are composed from SGLang's own message templates (0.2.15 to 0.5.23); ``tests/talk.py`` says how they are
spelt. A story is the stream of records in words: ``target_load TP0 end ~`` is an end that was not printed.
"""

from __future__ import annotations

import pytest

from tests.talk import Heard, args, hear, log, talk

DIST = "Init torch distributed begin."
DISTED = "Init torch distributed ends. elapsed=0.21 s, mem usage=0.10 GB"
LOAD = "Load weight begin. avail mem=139.13 GB"
LOADED = "Load weight end. elapsed=5.62 s, type=LlamaForCausalLM, avail mem=130.65 GB, mem usage=8.48 GB."
OLD_LOADED = "Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=130.65 GB"
KV = "KV Cache is allocated. #tokens: 1919335, K size: 58.57 GB, V size: 58.57 GB"
POOL = "Memory pool end. avail mem=13.41 GB"
GRAPH = "Capture cuda graph begin. This can take up to several minutes. avail mem=12.80 GB"
GRAPHED = "Capture cuda graph end. Time elapsed: 2.00 s. mem usage=0.30 GB. avail mem=12.50 GB."
DRAFT_GRAPH = "Capture draft cuda graph begin. This can take up to several minutes. avail mem=7.93 GB"
DRAFT_GRAPHED = "Capture draft cuda graph end. Time elapsed: 4.11 s. mem usage=0.07 GB. avail mem=7.86 GB."
TOTAL = (
    "max_total_num_tokens=1919335, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=4096, "
    "context_len=8192, available_gpu_mem=12.50 GB"
)
FAIL = "Scheduler hit an exception: Traceback (most recent call last):"
QUIT = "Received sigquit from a child process. It usually means the child failed."
UVICORN = "INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)"
FIRED = "The server is fired up and ready to roll!"
PREFILL = (
    "Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0,"
)
DECODE = (
    "Decode batch, #running-req: 1, #token: 48, token usage: 0.00, cuda graph: True, gen throughput (token/s): 1.58, "
    "#queue-req: 0"
)


def at(clock: str, *texts: str, rank: str = "") -> str:
    """Some messages of one rank at one time."""
    return "".join(f"{clock} {rank} | {text}\n" for text in texts)


def raw(*texts: str) -> str:
    """Untimed lines."""
    return "".join(f" | {text}\n" for text in texts)


def shards(*done: int, total: int = 4) -> str:
    """A weight bar's frames on one line."""
    frames = (
        f"Multi-thread loading shards: {100 * k // total:3d}% Completed | {k}/{total} [00:{k:02d}<00:03,  1.00it/s]"
        for k in done
    )
    return "\n <| ".join(["", *frames]).replace("\n <| ", " | ", 1) + "\n"


def sizes(*done: int, total: int = 4, name: str = "Capturing batches (bs=8 avail_mem=17.21 GB): ") -> str:
    """A capture bar's frames on one line; without a name as the first paint is."""
    frames = (f"{name}{100 * k // total:3d}%|####  | {k}/{total} [00:{k:02d}<00:03,  1.00it/s]" for k in done)
    return "\n <| ".join(["", *frames]).replace("\n <| ", " | ", 1) + "\n"


def loads(second: int, rank: str = "") -> str:
    """Distributed init, weights, pool and graphs of one rank without a draft."""
    return (
        at(f"42:{second:02d}", DIST, DISTED, LOAD, rank=rank)
        + at(f"42:{second + 6:02d}", LOADED, KV, POOL, rank=rank)
        + at(f"42:{second + 7:02d}", GRAPH, rank=rank)
        + at(f"42:{second + 9:02d}", GRAPHED, TOTAL, rank=rank)
    )


ONE = at("42:04", args(tp_size=1))
HTTP = at(
    "43:00", "INFO:     Started server process [2428]", "INFO:     Waiting for application startup.",
    "INFO:     Application startup complete.", UVICORN,
)  # fmt: skip
WARM = (
    at("43:01", 'INFO:     127.0.0.1:52174 - "GET /model_info HTTP/1.1" 200 OK', PREFILL)
    + at("43:02", 'INFO:     127.0.0.1:52174 - "POST /generate HTTP/1.1" 200 OK')
)  # fmt: skip
READY = at("43:03", FIRED)
UP = HTTP + WARM + READY
UP_ROWS = ["http_up 43:00-43:00 done", "warmup 43:01-43:03 done", "ready 43:03-43:03 done"]


def later(text: str, minutes: int) -> str:
    """The same conversation some minutes later."""
    for minute in (44, 43, 42):
        text = text.replace(f"{minute}:", f"{minute + minutes}:")
    return text


def outcome(heard: Heard) -> tuple[str, str, str | None]:
    known = heard.snapshot
    return str(known.outcome), str(known.verdict.state), known.phase


def cause(heard: Heard) -> tuple[str, str | None, str | None, int | None, str]:
    failure = heard.snapshot.failure
    assert failure is not None
    return failure.id, failure.phase, failure.rank, failure.place.line, failure.message


def boots(heard: Heard) -> list[tuple[int, str, int | None, str]]:
    return [(boot.boot, str(boot.outcome), boot.line, boot.server) for boot in heard.snapshot.boots]


# --- the order of phases, era by era -----------------------------------------------------------------


def test_a_plain_start_told_whole():
    heard = talk(
        ONE
        + at("42:22", DIST, DISTED, LOAD) + shards(0, 2, 4) + at("42:28", LOADED, KV, POOL)
        + at("42:29", GRAPH) + sizes(0, name="") + sizes(0, 4) + at("42:31", GRAPHED, TOTAL) + UP + at("43:09", DECODE)
    )  # fmt: skip
    assert heard.story == [
        "boot 1", "bootstrap begin", "now bootstrap",
        "bootstrap end", "dist_init begin", "now dist_init", "dist_init end",
        "target_load begin", "now target_load", "target_load 0/4", "target_load 2/4", "target_load 4/4",
        "target_load end", "kv_cache begin ~", "now kv_cache", "kv_cache end",
        "target_graph begin", "now target_graph", "target_graph 0/4", "target_graph 4/4", "target_graph end",
        "http_up begin", "now http_up", "http_up end", "warmup begin", "now warmup", "warmup end",
        "ready", "outcome ready", "now ready", "now serving",
    ]  # fmt: skip
    assert heard.rows == [
        "bootstrap 42:04-42:22 done", "dist_init 42:22-42:22 done", "target_load 42:22-42:28 done 4/4",
        "kv_cache 42:28-42:28 done ~", "target_graph 42:29-42:31 done 4/4", *UP_ROWS,
    ]  # fmt: skip
    assert outcome(heard) == ("ready", "ready", "serving")
    assert heard.snapshot.startup_s == 59


def test_the_oldest_logs_have_no_dates_no_capture_end_and_an_untimed_uvicorn():
    """0.2.15 to 0.3.3: max_total_num_tokens proves the capture over."""
    old = at("42:04", "server_args=ServerArgs(model_path='/srv/models/m', tp_size=2)")
    for rank in ("TP0", "TP1"):
        old += at("42:22", "Init nccl begin.", rank=rank) + at("42:24", LOAD, rank=rank)
    for rank in ("TP0", "TP1"):
        old += at(
            "42:28", OLD_LOADED, POOL, "Capture cuda graph begin. This can take up to several minutes.", rank=rank
        )
    for rank in ("TP0", "TP1"):
        old += at("42:40", "max_total_num_tokens=1000000, max_prefill_tokens=16384, context_len=8192", rank=rank)
    old += raw(UVICORN, 'INFO:     127.0.0.1:52174 - "GET /get_model_info HTTP/1.1" 200 OK')
    old += at("42:42", "Prefill batch. #new-seq: 1, #new-token: 7, #cached-token: 0, #running-req: 0, #queue-req: 0")
    heard = hear(log(old + raw(FIRED), stamp="[15:{clock}{rank}] {text}"))
    assert heard.rows == [
        "bootstrap 42:04-42:22 done", "dist_init 42:22-42:24 done ~", "target_load 42:24-42:28 done",
        "kv_cache ?-42:28 done ~", "target_graph 42:28-42:40 done ~", "http_up 42:40-42:40 done",
        "warmup 42:40-42:42 done", "ready 42:42-42:42 done",
    ]  # fmt: skip
    assert heard.snapshot.zone.dated is False
    assert heard.snapshot.startup_s == 38


def test_logs_without_any_time_give_an_order_and_no_durations():
    lines = ["server_args=ServerArgs(model_path='m', tp_size=1)"]
    lines += [f"[gpu=0] {text}" for text in ("Init nccl begin.", LOAD, OLD_LOADED, POOL)]
    heard = hear("".join(f"{line}\n" for line in [*lines, UVICORN, FIRED]))
    assert heard.order == ["bootstrap", "dist_init", "target_load", "kv_cache", "http_up", "ready"]
    assert {row.elapsed_s for row in heard.snapshot.phases if row.phase != "ready"} <= {None, 0.0}
    assert outcome(heard)[0] == "ready"
    assert heard.snapshot.startup_s is None


OLD_ORDER = (
    at("42:04", args(tp_size=1, speculative_algorithm="EAGLE3"))
    + loads(22)
    + at("42:32", DIST, DISTED, LOAD) + at("42:33", LOADED, KV, POOL)
    + at("42:34", DRAFT_GRAPH) + at("42:36", DRAFT_GRAPHED, TOTAL) + UP
)  # fmt: skip
NEW_ORDER = (
    at("42:04", args(tp_size=1, speculative_algorithm="EAGLE3"))
    + at("42:22", DIST, DISTED, LOAD)
    + at("42:28", LOADED, DIST, DISTED, LOAD) + at("42:30", LOADED, KV, POOL, KV, POOL)
    + at("42:32", "Capture target prefill CUDA graph begin. backend=breakable, num_tokens=[4, 8], avail mem=14.37 GB")
    + at("42:34", "Capture target prefill CUDA graph end. elapsed=2.00 s, mem usage=1.57 GB, avail mem=12.80 GB.")
    + at("42:34", "Capture target verify CUDA graph begin. backend=full, num_tokens_per_req=3, bs=[1], avail mem=12 GB")
    + at("42:36", "Capture target verify CUDA graph end. elapsed=2.00 s, mem usage=1.57 GB, avail mem=12.80 GB.")
    + at("42:36", "Capture draft prefill CUDA graph begin. backend=breakable, num_tokens=[4], avail mem=12.65 GB")
    + at("42:37", "Capture draft prefill CUDA graph end. elapsed=1.00 s, mem usage=0.06 GB, avail mem=10.98 GB.")
    + at("42:37", "Capture draft decode CUDA graph begin. backend=full, num_tokens_per_req=1, bs=[1], avail mem=11 GB")
    + at("42:39", "Capture draft decode CUDA graph end. elapsed=1.00 s, mem usage=0.06 GB, avail mem=10.98 GB.", TOTAL)
    + UP
)  # fmt: skip


def test_before_0_5_14_the_draft_comes_after_the_targets_graphs():
    heard = talk(OLD_ORDER)
    assert heard.rows == [
        "bootstrap 42:04-42:22 done", "dist_init 42:22-42:22 done", "target_load 42:22-42:28 done",
        "kv_cache 42:28-42:28 done ~", "target_graph 42:29-42:31 done", "draft_load 42:32-42:33 done ~",
        "draft_kv 42:33-42:33 done ~", "draft_graph 42:34-42:36 done", *UP_ROWS,
    ]  # fmt: skip


def test_from_0_5_14_both_loads_come_first_and_both_pools_back_to_back():
    heard = talk(NEW_ORDER)
    assert heard.rows == [
        "bootstrap 42:04-42:22 done", "dist_init 42:22-42:22 done", "target_load 42:22-42:28 done",
        "draft_load 42:28-42:30 done ~", "kv_cache 42:30-42:30 done ~", "draft_kv 42:30-42:30 done ~",
        "target_graph 42:32-42:36 done", "draft_graph 42:36-42:39 done", *UP_ROWS,
    ]  # fmt: skip


def test_from_0_5_21_there_is_no_second_distributed_init():
    heard = talk(
        at("42:04", "server_args={'model_path': '/srv/models/m', 'tp_size': 1, 'speculative_algorithm': 'EAGLE3'}")
        + at("42:20", "Init parallel begin.")
        + at("42:21", "Init parallel ends. elapsed=1.20 s", "Memory baseline taken. mem usage=0.42 GB", LOAD)
        + at("42:28", LOADED, "Memory baseline taken. mem usage=9.00 GB", LOAD)
        + at("42:30", LOADED, KV, POOL, KV, POOL)
        + at("42:31", "Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=11.83 GB")
        + at("42:33", "Capture target decode CUDA graph end. bs=[1], elapsed=2.0 s, mem usage=0.2 GB, avail mem=11 GB.")
        + at("42:33", "Capture draft decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=11.04 GB")
        + at("42:34", "Capture draft decode CUDA graph end. bs=[1], elapsed=1.0 s, mem usage=0.1 GB, avail mem=10 GB.")
        + UP
    )
    assert [row.rpartition(" done")[0] for row in heard.rows] == [
        "bootstrap 42:04-42:20", "dist_init 42:20-42:21", "target_load 42:21-42:28", "draft_load 42:28-42:30",
        "kv_cache 42:30-42:30", "draft_kv 42:30-42:30", "target_graph 42:31-42:33", "draft_graph 42:33-42:34",
        *(row.rpartition(" done")[0] for row in UP_ROWS),
    ]  # fmt: skip


def test_overlapped_loading_ends_after_the_graphs():
    heard = talk(
        ONE + at("42:22", DIST, DISTED, LOAD)
        + at("42:24", "Prepared capture-safe model in 2.10 s")
        + at("42:24", "Started checkpoint prefetching 0.10 s after capture-safe model prep")
        + at("42:26", KV, POOL)
        + at("42:27", "Capture target decode CUDA graph begin. backend=full, num_tokens_per_req=1, avail mem=11.83 GB")
        + at("42:40", "Capture target decode CUDA graph end. elapsed=13.0 s, mem usage=0.2 GB, avail mem=11.65 GB.")
        + at("42:45", "Load weight end. Committed real weights after CUDA graph capture in 1.20 s (capture overlap "
             "window 20.10 s, startup overlap total 31.00 s)", TOTAL) + UP
    )  # fmt: skip
    assert heard.rows[2:5] == [
        "target_load 42:22-42:45 done", "kv_cache 42:26-42:26 done ~", "target_graph 42:27-42:40 done",
    ]  # fmt: skip


def test_several_draft_layers_are_one_draft():
    """Multi-layer MTP loads and captures once for each step."""
    step = "Capture draft extend CUDA graph {}. step={}, elapsed=1.97 s, mem usage=0.06 GB, avail mem=10.98 GB."
    heard = talk(
        at("42:04", args(tp_size=1, speculative_algorithm="NEXTN"))
        + at("42:22", DIST, DISTED, LOAD) + at("42:28", LOADED, DIST, DISTED, LOAD)
        + at("42:30", LOADED, LOAD) + at("42:32", LOADED, LOAD) + at("42:34", LOADED, KV, POOL, KV, POOL, KV, POOL)
        + at("42:36", GRAPH) + at("42:38", GRAPHED)
        + at("42:38", step.format("begin", 0)) + at("42:39", step.format("end", 0))
        + at("42:39", step.format("begin", 1)) + at("42:40", step.format("end", 1)) + UP
    )  # fmt: skip
    assert heard.rows[2:8] == [
        "target_load 42:22-42:28 done", "draft_load 42:28-42:34 done ~", "kv_cache 42:34-42:34 done ~",
        "draft_kv 42:34-42:34 done ~", "target_graph 42:36-42:38 done", "draft_graph 42:38-42:40 done",
    ]  # fmt: skip


def test_without_graphs_there_are_none_and_none_is_expected():
    heard = talk(
        at("42:04", args(tp_size=1, disable_cuda_graph=True))
        + at("42:22", DIST, DISTED, LOAD) + at("42:28", LOADED, KV, POOL, TOTAL) + UP
    )  # fmt: skip
    assert heard.order == ["bootstrap", "dist_init", "target_load", "kv_cache", "http_up", "warmup", "ready"]
    assert [row.phase for row in heard.snapshot.phases] == heard.order


# --- rule 1: whose line ------------------------------------------------------------------------------


def wrapped(tag: str, text: str) -> list[str]:
    """A log behind a Python wrapper that names its worker."""
    return [f"[2026-11-30 15:50:00] [launcher.core] [INFO] [{tag}] {line}" for line in log(text).splitlines()]


def mixed(*logs: list[str]) -> str:
    """Logs of equal length, line by line in turn."""
    return "".join(f"{line}\n" for lines in zip(*logs, strict=True) for line in lines)


@pytest.mark.parametrize("arguments", [{"port": 30001}, {}])
def test_two_servers_mixed_line_by_line_are_told_apart_by_their_tags(arguments):
    """Replicas in containers of their own have equal arguments."""
    second = at("42:04", args(tp_size=1, **arguments)) + loads(24) + later(UP, 1)
    text = mixed(wrapped("worker_0", ONE + loads(22) + UP), wrapped("worker_1", second))
    for boot, ready in ((1, "43:03"), (2, "44:03")):
        heard = hear(text, boot=boot)
        assert heard.rows[-1] == f"ready {ready}-{ready} done"
        assert "draft_load" not in heard.order
    assert boots(hear(text)) == [(1, "ready", 1, "worker_0"), (2, "ready", 2, "worker_1")]


def test_two_containers_of_compose_are_two_boots():
    first = [f"sglang-1  | {line}" for line in log(ONE + loads(22) + UP).splitlines()]
    second = [f"sglang-2  | {line}" for line in log(ONE + loads(22) + UP).splitlines()]
    assert boots(hear(mixed(first, second))) == [(1, "ready", 1, "sglang-1"), (2, "ready", 2, "sglang-2")]


def test_a_harness_line_belongs_to_no_boot():
    harness = "[2026-11-30 15:41:00] [launcher.core] [INFO] Starting 2 workers\n"
    heard = hear(harness + log(ONE + loads(22)) + harness.replace("Starting", "Load weight begin. Starting"))
    assert boots(heard) == [(1, "starting", 2, "")]
    assert heard.snapshot.started_at_s == hear(log(ONE)).snapshot.started_at_s


def test_a_label_that_is_learned_late_does_not_open_a_second_boot():
    text = "".join(f"<node-3> {line}\n" for line in log(ONE + loads(22) + UP).splitlines())
    heard = hear(text)
    assert [boot[:2] for boot in boots(heard)] == [(1, "ready")]


# --- rule 2: where a boot begins ---------------------------------------------------------------------


def test_a_boot_begins_at_the_first_stamped_line_before_its_arguments():
    heard = talk(at("42:03", "Attention backend not specified. Use fa3 backend by default.") + ONE)
    assert heard.rows == ["bootstrap 42:03-? running"]
    assert boots(heard) == [(1, "starting", 1, "")]


def test_a_stamped_line_long_before_is_no_part_of_it():
    heard = talk(at("31:03", "A tool of its own says something.") + ONE)
    assert heard.rows == ["bootstrap 42:04-? running"]


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (ONE + loads(22) + UP + at("43:09", DECODE), "ready"),
        (ONE + at("42:22", DIST, LOAD) + at("42:28", FAIL) + raw("ValueError: x") + at("42:29", QUIT), "failed"),
        (ONE + at("42:22", DIST, DISTED, LOAD) + shards(0, 1), "starting"),
        (ONE + loads(22) + UP + at("43:09", "SIGTERM received. signum=None frame=None. Draining requests and shutting "
                                  "down..."), "stopped"),
    ],
)  # fmt: skip
def test_a_restart_into_the_same_file_is_a_second_boot(first, told):
    again = later(ONE + loads(22) + UP, 4)
    heard = talk(first + again)
    line = log(first).count("\n") + 1
    assert boots(heard) == [(1, told, 1, ""), (2, "ready", line, "")]
    assert heard.rows[0] == "bootstrap 46:04-46:22 done"
    assert heard.snapshot.startup_s == 59
    assert boots(talk(first + again, boot=1))[0] == (1, told, 1, "")
    assert talk(first + again, boot=1).rows == talk(first).rows


def test_a_restart_after_the_clock_was_put_back_is_a_second_boot():
    """A container that comes back in another time zone must not be ready by yesterday's line."""
    heard = talk(ONE + loads(22) + UP + at("12:04", args(tp_size=1)) + at("12:22", DIST, DISTED, LOAD))
    assert [boot[:2] for boot in boots(heard)] == [(1, "ready"), (2, "starting")]
    assert heard.rows[:2] == ["bootstrap 12:04-12:22 done", "dist_init 12:22-12:22 done"]


def test_the_count_of_loads_begins_anew_with_each_boot():
    heard = talk(OLD_ORDER + later(ONE + loads(22), 4))
    assert heard.order == ["bootstrap", "dist_init", "target_load", "kv_cache", "target_graph"]


def test_a_begin_that_its_rank_has_passed_opens_a_boot_once_the_old_one_is_over():
    heard = talk(ONE + loads(22) + UP + at("46:22", DIST, DISTED, LOAD))
    assert [boot[:2] for boot in boots(heard)] == [(1, "ready"), (2, "starting")]


def test_a_begin_with_an_earlier_stamp_opens_none():
    heard = talk(ONE + loads(22) + UP + at("42:22", DIST, DISTED, LOAD))
    assert [boot[:2] for boot in boots(heard)] == [(1, "ready")]


def test_stray_lines_of_other_ranks_after_a_failure_belong_to_the_old_boot():
    heard = talk(
        at("42:04", args(tp_size=2))
        + at("42:22", DIST, DISTED, LOAD, rank="TP0") + at("42:22", DIST, DISTED, LOAD, rank="TP1")
        + at("42:28", FAIL, rank="TP0") + raw("ValueError: x") + at("42:28", LOADED, KV, POOL, GRAPH, rank="TP1")
        + at("42:29", QUIT)
    )  # fmt: skip
    assert [boot[:2] for boot in boots(heard)] == [(1, "failed")]
    assert cause(heard)[1:] == ("target_load", "TP0", 8, "ValueError: x")


def test_arguments_printed_twice_are_one_boot():
    assert [boot[:2] for boot in boots(talk(ONE + ONE + loads(22)))] == [(1, "starting")]


def test_each_boot_of_a_crash_loop_has_its_own_beginning():
    crash = raw(
        "Traceback (most recent call last):",
        '  File "<frozen runpy>", line 198, in _run_module_as_main',
        '  File "/opt/site/sglang/launch_server.py", line 11, in <module>',
        "ValueError: boom",
    )
    early = "Attention backend not specified. Use fa3 backend by default."
    loop = [at(f"42:{k}3", early) + at(f"42:{k}4", args(tp_size=1), "Tokenizer loaded.") + crash for k in range(3)]
    heard = talk("".join(loop))
    assert boots(heard) == [(1, "failed", 1, ""), (2, "failed", 8, ""), (3, "failed", 15, "")]
    assert heard.rows == ["bootstrap 42:23-? failed"]


CLUSTER = {"tp_size": 2, "nnodes": 2, "dist_init_addr": "10.0.0.4:20000"}


@pytest.mark.parametrize("tags", [("0: ", "1: "), ("", ""), ("[pod/a/main] ", "[pod/b/main] ")])
def test_two_nodes_in_one_log_are_one_boot(tags):
    one, two = (at("42:04", args(node_rank=k, **CLUSTER)) for k in (0, 1))
    parts = [(0, one), (1, two), (0, at("42:22", DIST, rank="TP0")), (1, at("42:22", DIST, rank="TP1"))]
    parts += [(k, at("42:24", DISTED, LOAD, rank=f"TP{k}")) for k in (0, 1)]
    parts += [(k, at(f"42:2{8 + k}", LOADED, KV, POOL, GRAPH, GRAPHED, rank=f"TP{k}")) for k in (0, 1)]
    text = "".join(f"{tags[k]}{line}\n" for k, part in [*parts, (0, UP)] for line in log(part).splitlines())
    heard = hear(text)
    assert [boot[:2] for boot in boots(heard)] == [(1, "ready")]
    assert heard.rows[2] == "target_load 42:24-42:29 done"
    assert (heard.row("target_load").ranks_seen, heard.row("target_load").slowest_rank) == (2, "TP1")
    assert heard.snapshot.facts["node_rank"] == 0


# --- rule 3: target or draft -------------------------------------------------------------------------


def test_in_0_4_2_the_drafts_capture_has_the_targets_words():
    same = "Capture cuda graph begin. This can take up to several minutes."
    sized = "KV Cache is allocated. K size: 4.23 GB, V size: 4.23 GB."
    heard = talk(
        at("42:04", args(tp_size=1, speculative_algorithm="EAGLE"))
        + at("42:22", DIST, LOAD, rank="TP0") + at("42:28", OLD_LOADED, sized, POOL, same, rank="TP0")
        + at("42:32", "Capture cuda graph end. Time elapsed: 2.00 s", DIST, LOAD, rank="TP0")
        + at("42:33", OLD_LOADED, sized, POOL, same, rank="TP0")
        + at("42:36", "Capture cuda graph end. Time elapsed: 2.00 s", TOTAL, rank="TP0") + UP
    )  # fmt: skip
    assert [row.split()[0] for row in heard.rows] == [
        "bootstrap", "dist_init", "target_load", "kv_cache", "target_graph", "draft_load", "draft_kv", "draft_graph",
        "http_up", "warmup", "ready",
    ]  # fmt: skip
    assert "draft_graph 42:33-42:36" in heard.rows[7]


def test_a_second_bar_inside_one_load_is_no_draft():
    """A secondary weight source of the same model draws a bar of its own before the load's end."""
    heard = talk(
        ONE + at("42:22", DIST, DISTED, LOAD) + shards(0, 2, 4) + shards(0, 1, 2, total=2) + at("42:28", LOADED)
    )
    assert heard.order == ["bootstrap", "dist_init", "target_load"]
    assert [(bar.done, bar.total) for bar in heard.row("target_load").bars] == [(4, 4), (2, 2)]


def test_a_draft_inside_the_targets_checkpoint_has_equal_totals():
    heard = talk(
        at("42:04", args(tp_size=1, speculative_algorithm="NEXTN"))
        + at("42:22", DIST, DISTED, LOAD) + shards(0, 4)
        + at("42:28", LOADED, DIST, DISTED, LOAD) + shards(0, 2)
    )  # fmt: skip
    assert heard.rows[2:] == ["target_load 42:22-42:28 done 4/4", "draft_load 42:28-? running 2/4 ~"]


def test_ngram_has_no_draft_to_load():
    heard = talk(at("42:04", args(tp_size=1, speculative_algorithm="NGRAM")) + loads(22) + UP)
    assert not any("draft" in row.phase for row in heard.snapshot.phases)


def test_a_weight_update_while_serving_is_neither():
    heard = talk(
        ONE + loads(22) + UP + at("43:09", DECODE)
        + at("44:00", "Update engine weights online from disk begin. avail mem=9.13 GB")
    )  # fmt: skip
    assert "draft_load" not in heard.order
    assert outcome(heard) == ("ready", "ready", "serving")


# --- rule 4: a rank's next begin closes its open span --------------------------------------------------


def test_an_end_that_is_not_printed_is_inferred_from_the_ranks_next_begin():
    heard = talk(at("42:04", args(tp_size=2)) + at("42:22", DIST, rank="TP0") + at("42:24", LOAD, rank="TP0"))
    assert heard.spans[-2:] == ["dist_init TP0 end ~", "target_load TP0 begin"]


def test_another_ranks_begin_closes_nothing():
    heard = talk(at("42:04", args(tp_size=2)) + at("42:22", DIST, rank="TP1") + at("42:24", LOAD, rank="TP0"))
    assert "dist_init TP1 end ~" not in heard.spans
    assert heard.snapshot.phase == "dist_init"


def test_a_phase_spans_all_its_ranks_and_names_the_slowest():
    text = (
        at("42:04", args(tp_size=2))
        + at("42:22", DIST, rank="TP1") + at("42:23", DIST, rank="TP0") + at("42:24", DISTED, rank="TP0")
        + at("42:24", DISTED, LOAD, rank="TP1") + at("42:25", LOAD, rank="TP0") + shards(0, 4)
        + at("42:28", LOADED, rank="TP0")
    )  # fmt: skip
    waiting = talk(text).row("target_load")
    assert (waiting.ranks_done, waiting.ranks_seen, waiting.slowest_rank) == (1, 2, "TP1")
    assert waiting.note == "finishing (repack, slowest rank)"
    done = talk(text + at("42:40", LOADED, rank="TP1")).row("target_load")
    assert (done.ranks_done, done.ranks_seen, done.slowest_rank, done.skew_s, done.note) == (2, 2, "TP1", 12, "")
    assert done.elapsed_s == 16


# --- rule 5: HTTP up and ready close the rest ----------------------------------------------------------


def test_http_up_proves_that_every_rank_has_finished():
    heard = talk(ONE + at("42:22", DIST, DISTED, LOAD) + at("42:28", LOADED, KV, POOL, GRAPH) + HTTP)
    assert "target_graph 42:29-43:00 done ~" in heard.rows or "target_graph 42:28-43:00 done ~" in heard.rows


def test_planned_phases_are_pending_until_ready_and_skipped_after():
    before = talk(ONE + at("42:22", DIST))
    assert [row.phase for row in before.snapshot.phases if row.status == "pending"] == [
        "target_load", "kv_cache", "target_graph", "http_up", "warmup", "ready",
    ]  # fmt: skip
    after = talk(ONE + at("42:22", DIST, DISTED, LOAD) + at("42:28", LOADED, KV, POOL) + UP)
    assert [row.phase for row in after.snapshot.phases if row.status == "skipped"] == ["target_graph"]


def test_http_up_ends_at_the_first_uvicorn_line_even_before_its_start():
    """With several tokenizer workers Uvicorn's parent speaks before its children start."""
    worker = ("INFO:     Started server process [{}]", "INFO:     Application startup complete.")
    heard = talk(
        at("42:04", args(tp_size=1, tokenizer_worker_num=2)) + loads(22)
        + at("43:00", UVICORN, "INFO:     Started parent process [77]")
        + at("43:10", *(text.format(78) for text in worker))
        + at("43:12", 'INFO:     127.0.0.1:1 - "GET /model_info HTTP/1.1" 200 OK')
        + at("43:14", f"INFO:     {FIRED}")
        + at("43:20", *(text.format(79) for text in worker)) + at("43:24", f"INFO:     {FIRED}")
    )  # fmt: skip
    assert heard.rows[-3:] == ["http_up 43:00-43:00 done", "warmup 43:12-43:14 done", "ready 43:14-43:14 done"]
    assert heard.story.count("ready") == 1


def test_skipping_the_warmup_prints_ready_before_uvicorn():
    heard = talk(
        at("42:04", args(tp_size=1, skip_server_warmup=True)) + loads(22)
        + at("43:00", "INFO:     Started server process [1]", "INFO:     Waiting for application startup.", FIRED)
        + at("43:01", "INFO:     Application startup complete.", UVICORN) + at("43:05", DECODE)
    )  # fmt: skip
    assert heard.rows[-2:] == ["http_up 43:00-43:01 done", "ready 43:00-43:00 done"]
    assert outcome(heard) == ("ready", "ready", "serving")
    assert "warmup" not in [row.phase for row in heard.snapshot.phases]


# --- rule 6: bars --------------------------------------------------------------------------------------


def test_one_weight_bar_serves_all_ranks_of_a_world_with_dp_attention():
    heard = talk(
        at("42:04", args(tp_size=2, dp_size=2, enable_dp_attention=True))
        + at("42:22", DIST, DISTED, LOAD, rank="DP0 TP0") + at("42:22", DIST, DISTED, LOAD, rank="DP1 TP1")
        + shards(0, 2, 4)
        + at("42:28", LOADED, KV, POOL, GRAPH, rank="DP0 TP0") + at("42:28", LOADED, KV, POOL, GRAPH, rank="DP1 TP1")
        + sizes(0, name="") + sizes(0, 2, 4)
        + at("42:31", GRAPHED, rank="DP0 TP0") + at("42:31", GRAPHED, rank="DP1 TP1") + UP
    )  # fmt: skip
    assert [(bar.rank, bar.done) for bar in heard.row("target_load").bars] == [("DP0 TP0", 4)]
    assert [(bar.rank, bar.done) for bar in heard.row("target_graph").bars] == [("DP0 TP0", 4)]


def test_replicas_draw_their_bars_in_turn_on_one_line():
    heard = talk(
        at("42:04", args(tp_size=1, dp_size=2)) + at("42:05", "Launch DP0 starting at GPU #0.")
        + at("42:22", DIST, DISTED, LOAD, rank="DP0") + at("42:23", DIST, DISTED, LOAD, rank="DP1")
        + shards(0, 1, 0, 2, 1, 4)
        + at("42:28", LOADED, KV, POOL, GRAPH, rank="DP0") + shards(3) + sizes(0, name="", total=2) + shards(4)
        + at("42:30", LOADED, KV, POOL, GRAPH, rank="DP1") + sizes(0, total=2)
        + sizes(0, name="", total=2) + sizes(0, 1, 0, 2, 1, 2, total=2)
        + at("42:33", GRAPHED, rank="DP0") + at("42:33", GRAPHED, rank="DP1") + UP
    )  # fmt: skip
    assert [(bar.rank, bar.done) for bar in heard.row("target_load").bars] == [("DP0", 4), ("DP1", 4)]
    assert [(bar.rank, bar.done) for bar in heard.row("target_graph").bars] == [("DP0", 2), ("DP1", 2)]
    assert heard.row("target_load").progress is not None


def test_the_progress_of_replicas_is_the_one_that_holds_the_phase_back():
    heard = talk(
        at("42:04", args(tp_size=1, dp_size=2))
        + at("42:22", DIST, DISTED, LOAD, rank="DP0") + at("42:23", DIST, DISTED, LOAD, rank="DP1") + shards(0, 1, 0, 3)
    )  # fmt: skip
    progress = heard.row("target_load").progress
    assert progress is not None
    assert (progress.done, progress.total) == (0, 4)


def test_a_replica_that_compiles_and_one_that_captures_keep_their_bars_apart():
    """Both bars have as many steps."""
    named = {"Compiling num tokens (num_tokens=8): ": "compiling", "Capturing num tokens (num_tokens=8): ": "capturing"}
    compiling, capturing = named
    heard = talk(
        at("42:04", args(tp_size=1, dp_size=2))
        + at("42:22", DIST, DISTED, LOAD, rank="DP0") + at("42:22", DIST, DISTED, LOAD, rank="DP1")
        + at("42:28", LOADED, KV, POOL, GRAPH, rank="DP0") + sizes(0, name="") + sizes(0, name=compiling)
        + at("42:30", LOADED, KV, POOL, GRAPH, rank="DP1") + sizes(0, name="") + sizes(0, name=compiling)
        + sizes(4, name=compiling) + sizes(0, name="") + sizes(0, name=capturing) + sizes(3, name=capturing)
        + sizes(1, name=compiling) + sizes(4, name=capturing) + sizes(2, name=compiling)
    )  # fmt: skip
    bars = [(bar.title.split()[0], bar.rank, bar.done) for bar in heard.row("target_graph").bars]
    assert bars == [("Compiling", "DP0", 4), ("Compiling", "DP1", 2), ("Capturing", "DP0", 4)]


def test_a_pipeline_stage_without_a_weight_bar_still_ends_on_its_own():
    heard = talk(
        at("42:04", args(tp_size=1, pp_size=2))
        + at("42:22", DIST, DISTED, LOAD, rank="PP0") + at("42:22", DIST, DISTED, LOAD, rank="PP1") + shards(0, 4)
        + at("42:28", LOADED, KV, POOL, GRAPH, rank="PP1") + at("42:29", LOADED, KV, POOL, GRAPH, rank="PP0")
        + at("42:31", GRAPHED, rank="PP0") + at("42:32", GRAPHED, rank="PP1") + UP
    )  # fmt: skip
    assert heard.rows[2:5] == [
        "target_load 42:22-42:29 done 4/4", "kv_cache 42:28-42:29 done ~", "target_graph 42:28-42:32 done",
    ]  # fmt: skip
    assert [(bar.rank, bar.done) for bar in heard.row("target_load").bars] == [("PP0", 4)]


def test_a_frame_painted_twice_is_one_step():
    heard = talk(ONE + at("42:22", DIST, DISTED, LOAD) + shards(0, 0, 2, 2, 4, 4))
    assert heard.told("progress") == ["target_load 0/4", "target_load 2/4", "target_load 4/4"]


def test_a_record_glued_behind_a_bar_is_heard():
    text = log(ONE + at("42:22", DIST, DISTED, LOAD) + shards(0, 4)).rstrip("\n")
    heard = hear(text + log(at("42:28", LOADED)))
    assert heard.spans[-1] == "target_load end"
    assert heard.row("target_load").end_line == heard.snapshot.sources[0].lines


def test_an_open_bar_is_seen_before_its_line_ends():
    text = log(ONE + at("42:22", DIST, DISTED, LOAD)) + "\r" + log(shards(0, 3)).strip().replace("\n", "")
    heard = hear(text, open_end=True)
    progress = heard.snapshot.progress
    assert progress is not None
    assert (progress.done, progress.total, progress.unit) == (3, 4, "shards")


def test_bar_times_come_from_the_bars_own_clock():
    """A bar has no stamp: it began with its rank's load, and says how long it has run."""
    heard = talk(ONE + at("42:22", DIST, DISTED, LOAD) + shards(0, 2, 4))
    bar = heard.row("target_load").bars[0]
    assert (bar.began_s, bar.last_s) == (heard.row("target_load").began_s, (heard.row("target_load").began_s or 0) + 4)


def test_a_full_bar_is_not_the_end():
    heard = talk(ONE + at("42:22", DIST, DISTED, LOAD) + shards(0, 4), open_end=True)
    assert heard.snapshot.phase == "target_load"
    assert heard.row("target_load").status == "running"


def test_where_the_log_level_hides_all_else_bars_alone_open_their_phase():
    heard = talk(sizes(0, name="") + sizes(0, 2, 4))
    assert heard.row("target_graph").status == "running"
    assert heard.row("target_graph").basis == "inferred"
    assert outcome(heard)[0] == "starting"


def test_weight_bars_are_kept_where_a_later_bar_shows_whose_they_were():
    heard = talk(shards(0, 2, 4) + sizes(0, name="") + sizes(0, 2, 4))
    assert heard.order == ["bootstrap", "target_load", "target_graph"]


def test_weight_bars_are_kept_where_a_line_of_the_engine_follows():
    heard = talk(shards(0, 2, 4) + at("42:28", LOADED))
    assert heard.told("progress") == ["target_load 0/4", "target_load 2/4", "target_load 4/4"]
    assert heard.row("target_load").began_s is None
    places = [(record.place.line, record.place.frame) for record in heard.records]
    assert places == sorted(places)


def test_weight_bars_alone_are_no_engines():
    """Other programs draw the same: nothing is invented."""
    assert outcome(talk(shards(0, 2, 4))) == ("none", "ended", None)


def test_weight_bars_before_the_arguments_were_another_programs():
    heard = talk(shards(0, 2, 4) + ONE)
    assert heard.told("progress") == []
    assert "target_load" not in heard.order


# --- rule 7: ready -------------------------------------------------------------------------------------


def test_a_ready_line_after_sigterm_does_not_count():
    heard = talk(
        ONE + loads(22) + HTTP
        + at("43:01", "SIGTERM received. signum=None frame=None. Draining requests and shutting down...") + READY
    )  # fmt: skip
    assert outcome(heard)[:2] == ("stopped", "stopped")
    assert heard.snapshot.ready_at_s is None


def test_a_stop_after_ready_remembers_the_ready():
    heard = talk(
        ONE + loads(22) + UP
        + at("43:09", "SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    )  # fmt: skip
    assert outcome(heard)[0] == "stopped"
    assert heard.snapshot.startup_s == 59


def test_a_prefill_server_warms_up_without_graphs():
    text = (
        at("42:04", args(tp_size=1, disaggregation_mode="prefill"))
        + at("42:05", "CommonKVBootstrapServer started successfully on 0.0.0.0:8998")
        + at("42:22", DIST, DISTED, LOAD) + at("42:28", LOADED, KV, POOL, TOTAL)
        + HTTP + at("43:01", "Start of pd disaggregation warmup ...")
    )  # fmt: skip
    heard = talk(text + at("43:04", "End of prefill disaggregation mode warmup with status 200, resp: []", FIRED))
    assert heard.rows[-2:] == ["warmup 43:01-43:04 done", "ready 43:04-43:04 done"]
    assert outcome(heard)[:2] == ("ready", "ready")
    assert "target_graph" not in [row.phase for row in heard.snapshot.phases]
    failed = talk(text + at("43:04", "Disaggregation warmup failed (mode=prefill), status codes: [500]", FIRED))
    assert outcome(failed)[:2] == ("ready", "degraded")
    assert cause(failed)[0] == "sglang.fail.pd_warmup"


def test_refused_health_checks_before_ready_are_no_failures():
    heard = talk(
        ONE + loads(22) + HTTP
        + at("43:01", 'INFO:     127.0.0.1:1 - "GET /health_generate HTTP/1.1" 503 Service Unavailable') + WARM + READY
    )  # fmt: skip
    assert outcome(heard)[:2] == ("ready", "ready")


def test_a_worker_nodes_health_server_is_its_ready_and_node_0_decides():
    heard = talk(
        at("42:04", args(node_rank=1, **CLUSTER)) + loads(22, rank="TP1")
        + at("42:32", "Dummy health check server started in background thread at 10.0.0.9:30000")
    )  # fmt: skip
    assert outcome(heard)[:2] == ("ready", "ready")
    assert "node 0" in heard.snapshot.verdict.because
    assert not {"http_up", "warmup"} & {row.phase for row in heard.snapshot.phases}


def test_an_engine_in_a_program_never_prints_ready_and_none_is_invented():
    heard = talk(at("42:04", f"INFO engine.py:123: {args(tp_size=1)}") + loads(22) + at("43:10", PREFILL, DECODE))
    assert outcome(heard)[0] == "starting"
    assert heard.snapshot.ready_at_s is None


# --- rule 8: failures ----------------------------------------------------------------------------------

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79 GiB"


def test_the_earliest_failure_in_time_is_the_cause_and_the_rest_fold_under_it():
    heard = talk(
        at("42:04", args(tp_size=2))
        + at("42:22", DIST, DISTED, LOAD, rank="TP0") + at("42:22", DIST, DISTED, LOAD, rank="TP1")
        + at("42:31", FAIL, rank="TP0") + raw("RuntimeError: a peer is gone")
        + at("42:30", FAIL, rank="TP1") + raw('  File "/opt/site/sglang/srt/x.py", line 1, in f', "    y()", OOM)
        + at("42:32", QUIT) + raw("Killed")
    )  # fmt: skip
    assert cause(heard)[1:] == ("target_load", "TP1", 10, OOM)
    assert heard.snapshot.failure is not None
    assert QUIT in heard.snapshot.failure.echoes
    assert heard.told("outcome") == ["outcome failed"]


def test_a_failure_stands_where_its_record_begins_and_says_its_last_line():
    heard = talk(
        ONE + at("42:22", DIST, DISTED, LOAD) + shards(0, 2).rstrip("\n") + "\n"
        + at("42:28", FAIL)
        + raw('  File "/opt/site/sglang/srt/managers/scheduler.py", line 1, in run', "    x()", "ValueError: first", "")
        + raw("During handling of the above exception, another exception occurred:", "")
        + raw("Traceback (most recent call last):", '  File "/opt/sglang/y.py", line 2, in g', "KeyError: 'second'")
    )  # fmt: skip
    assert cause(heard)[1:] == ("target_load", None, 6, "KeyError: 'second'")


def test_only_a_consequence_is_a_cause_where_nothing_else_is_said():
    heard = talk(ONE + at("42:22", DIST, DISTED, LOAD) + at("42:40", QUIT))
    assert outcome(heard)[0] == "failed"
    assert cause(heard)[1:4] == ("target_load", None, 5)


def test_an_uncaught_traceback_before_any_line_of_the_engine_is_the_engines():
    heard = talk(
        raw(
            "Traceback (most recent call last):",
            '  File "<frozen runpy>", line 198, in _run_module_as_main',
            '  File "/opt/site/sglang/launch_server.py", line 11, in <module>',
            "    run()",
            "ValueError: no such option",
        )
    )
    assert outcome(heard)[0] == "failed"
    assert cause(heard)[1:] == ("bootstrap", None, 1, "ValueError: no such option")


@pytest.mark.parametrize(
    "path",
    ["/opt/site/other/x.py", "/opt/site/sglang/bench_serving.py", "/opt/site/sglang/test/run_eval.py", "client.py"],
)
def test_a_harness_or_clients_traceback_is_not(path):
    trace = raw(
        "Traceback (most recent call last):", f'  File "{path}", line 11, in <module>', "    x()", "ValueError: boom"
    )
    assert outcome(talk(trace))[0] == "none"
    assert outcome(talk(ONE + loads(22) + UP + at("43:09", DECODE) + trace))[:2] == ("ready", "ready")


def test_a_logged_exception_of_a_healthy_start_is_no_failure():
    heard = talk(
        ONE + loads(22) + HTTP + WARM + at("43:03", "post-warmup freeze_gc failed: boom")
        + raw("Traceback (most recent call last):",
              '  File "/opt/site/sglang/srt/http_server.py", line 1, in _wait_and_warmup', "ValueError: boom")
        + READY
    )  # fmt: skip
    assert outcome(heard)[:2] == ("ready", "ready")


def test_an_uncaught_traceback_is_taken_back_if_the_start_goes_on():
    heard = talk(
        ONE + at("42:22", DIST, DISTED, LOAD)
        + raw("Traceback (most recent call last):",
              '  File "/opt/site/sglang/tools/x.py", line 1, in <module>', "ValueError: boom")
        + at("42:28", LOADED, KV, POOL) + UP
    )  # fmt: skip
    assert heard.told("outcome") == ["outcome failed", "outcome starting", "outcome ready"]
    assert outcome(heard)[0] == "ready"
    assert any(warning.message == "ValueError: boom" for warning in heard.snapshot.warnings)


@pytest.mark.parametrize("echo", ["", "^C"])
def test_a_keyboard_interrupt_before_ready_is_a_stop(echo):
    heard = talk(
        ONE + at("42:22", DIST, DISTED, LOAD) + shards(0, 1)
        + raw(f"{echo}Traceback (most recent call last):", '  File "<frozen runpy>", line 198, in _run_module_as_main',
              '  File "/opt/site/sglang/launch_server.py", line 11, in <module>', "KeyboardInterrupt")
    )  # fmt: skip
    assert outcome(heard)[0] == "stopped"
    assert heard.snapshot.failure is None


def test_a_watchdogs_word_is_stuck_and_failed_once_the_process_goes():
    text = ONE + loads(22) + HTTP + WARM + at("48:10", "Watchdog timeout (self.watchdog_timeout=300)")
    assert outcome(talk(text)) == ("starting", "stuck", "warmup")
    gone = talk(text + at("48:12", QUIT))
    assert outcome(gone)[0] == "failed"
    assert cause(gone)[0] == "sglang.fail.watchdog"


def test_leaked_semaphores_alone_leave_the_start_going():
    heard = talk(
        ONE + at("42:22", DIST, DISTED, LOAD)
        + raw("/usr/lib/python3.12/multiprocessing/resource_tracker.py:279: UserWarning: resource_tracker: There "
              "appear to be 1 leaked semaphore objects to clean up at shutdown")
    )  # fmt: skip
    assert outcome(heard)[0] == "starting"


def test_a_failure_while_serving_says_so():
    heard = talk(ONE + loads(22) + UP + at("43:09", DECODE) + at("44:00", FAIL) + raw(OOM))
    assert outcome(heard)[0] == "failed"
    failure = heard.snapshot.failure
    assert failure is not None
    assert (failure.phase, failure.after_ready) == ("serving", True)
    assert heard.snapshot.startup_s == 59


def test_a_failed_request_while_serving_is_none():
    heard = talk(
        ONE + loads(22) + UP + at("43:09", DECODE) + at("44:00", "Exception in ASGI application") + raw("ValueError: x")
    )
    assert outcome(heard)[:2] == ("ready", "ready")


# --- rule 9: time --------------------------------------------------------------------------------------


def test_a_span_that_would_end_before_it_began_has_length_0():
    heard = talk(ONE + at("42:22", DIST) + at("42:20", DISTED))
    row = heard.row("dist_init")
    assert (row.elapsed_s, row.ended_s) == (0, row.began_s)


def test_the_newest_time_never_goes_back():
    heard = talk(ONE + at("42:30", DIST) + at("42:22", DISTED), open_end=True)
    assert heard.snapshot.now_s == talk(ONE + at("42:30", DIST), open_end=True).snapshot.now_s


def test_the_longest_silence_goes_to_the_phase_that_it_interrupted():
    heard = talk(ONE + at("42:22", DIST, DISTED, LOAD) + shards(0, 4) + at("51:22", LOADED, KV, POOL))
    assert heard.row("bootstrap").longest_silence_s == 18
    assert heard.row("target_load").longest_silence_s == 9 * 60 - 4


def test_what_no_phase_claims_stands_between_the_phases():
    heard = talk(ONE + loads(22) + UP)
    claimed = sum(row.elapsed_s or 0 for row in heard.snapshot.phases)
    assert heard.snapshot.between_phases_s == 59 - claimed


# --- activities ----------------------------------------------------------------------------------------


def test_an_activity_nests_in_its_phase_and_never_replaces_it():
    text = (
        ONE + at("42:22", DIST, DISTED, LOAD) + at("42:28", LOADED, KV, POOL)
        + at("42:29", "Running FlashInfer autotune...")
    )  # fmt: skip
    running = talk(text, open_end=True).snapshot
    assert (running.phase, running.activity and running.activity.id) == ("kv_cache", "flashinfer_autotune")
    done = talk(text + at("42:40", "FlashInfer autotune completed."), open_end=True).snapshot
    assert done.activity is None
    assert [doing.id for doing in done.activities] == ["flashinfer_autotune"]


def test_a_gated_launch_is_a_pause_that_is_wanted():
    heard = talk(
        ONE + at("42:22", "Init parallel begin.", "Gated launch waiting for activation. rank=0")
        + at("42:52", "Gated launch still waiting for activation. rank=0 elapsed=30.0 s"), open_end=True,
    )  # fmt: skip
    assert heard.snapshot.activity is not None
    assert (heard.snapshot.phase, heard.snapshot.activity.id) == ("dist_init", "hold")


def test_a_bar_of_an_activity_moves_the_activity_and_not_the_phase():
    compiling = "DeepGEMM warmup:  25%|##5       | 4096/16384 [00:31<01:33, 132.57it/s]"
    heard = talk(
        ONE + at("42:22", DIST, DISTED, LOAD) + at("42:28", LOADED, KV, POOL, GRAPH) + raw(compiling), open_end=True
    )
    activity = heard.snapshot.activity
    assert activity is not None
    assert activity.bar is not None
    assert (activity.bar.done, activity.bar.total) == (4096, 16384)
    assert heard.snapshot.progress is None


# --- what is known -------------------------------------------------------------------------------------


def test_facts_are_the_first_ranks_and_the_drafts_have_a_name_of_their_own():
    heard = talk(OLD_ORDER.replace("mem usage=8.48 GB", "mem usage=1.00 GB").replace(KV, KV.replace("1919335", "77")))
    facts = heard.snapshot.facts
    assert (facts["weights_bytes"], facts["draft_weights_bytes"], facts["kv_tokens"]) == (2**30, 2**30, 77)
    assert facts["speculative_algorithm"] == "EAGLE3"
    low = talk(
        at("42:04", args(tp_size=2)) + at("42:28", KV.replace("1919335", "8"), rank="TP1") + at("42:28", KV, rank="TP0")
    )
    assert low.snapshot.facts["kv_tokens"] == 1919335


def test_the_engines_own_timings_stand_beside_the_derived_ones():
    heard = talk(
        ONE + loads(22) + at("42:41", "Engine startup timings (s): load_weight=5.50, kv_cache_allocation=0.25, "
                             "scheduler_e2e=30.50, cuda_graph={prefill=9.50, decode=2.25}, tokenizer_e2e=41.00") + UP
    )  # fmt: skip
    assert [(check.name, check.engine_s, check.derived_s) for check in heard.snapshot.timings] == [
        ("target_load", 5.5, 6), ("kv_cache", 0.25, 0),
    ]  # fmt: skip


def test_a_log_newer_than_the_pack_says_so():
    unknown = "".join(at("42:30", f"A new wording number {k} of a future release") for k in range(30))
    heard = talk(ONE + at("42:22", DIST, DISTED) + unknown + UP)
    assert heard.snapshot.drift is not None
    assert talk(ONE + loads(22) + unknown + UP).snapshot.drift is None


def test_a_text_that_is_no_log_has_no_boot():
    for text in ("", "hello\nworld\n", "def main():\n    return 5\n", "\x00\x01\xff" * 99, "INFO: ready to roll\n" * 9):
        assert outcome(hear(text)) == ("none", "ended", None)
        assert boots(hear(text)) == []
