"""The shipped vLLM pack: its own samples, and starts composed from vLLM's message templates (0.4 to 0.33)."""

from __future__ import annotations

import re
from time import perf_counter

import pytest

from phasetrack.core.check import check
from phasetrack.core.classify import Classifier
from phasetrack.core.model import Outcome, Role, Where
from phasetrack.core.patterns import load_pack
from phasetrack.core.plan import parse_config
from phasetrack.core.prefix import Learned, parse
from phasetrack.errors import PatternError
from tests.talk import ROOT, Heard, hear, patterns

PACK = load_pack((ROOT / "patterns" / "vllm.toml").read_text(encoding="utf-8"), "vllm.toml")

API, CORE = "APIServer pid=2428", "EngineCore pid=2431"
MODEL = "/srv/models/Llama-3.1-rand-64shard"
CONFIG = f"model='{MODEL}', speculative_config=None, tokenizer='{MODEL}', tensor_parallel_size=1, enforce_eager=False"
EAGLE = CONFIG.replace("=None", "=SpeculativeConfig(method='eagle3', model='/srv/models/EAGLE3', num_spec_tokens=3)")
STARTED = "INFO:     Application startup complete."
ASSIGNED = "rank 0 in world size 1 is assigned as DP rank 0, PP rank 0, TP rank 0, EP rank N/A"
HEADER = "Traceback (most recent call last):"
CORE_FRAME = '  File "/opt/site/vllm/v1/engine/core.py", line 1299, in run_engine_core'
API_TRACE = (
    HEADER,
    '  File "/opt/bin/vllm", line 10, in <module>',
    '  File "/opt/site/vllm/entrypoints/cli/main.py", line 54, in main',
)


def says(clock: str, text: str, process: str = CORE, *, level: str = "INFO", source: str = "core.py:116") -> str:
    """One line of one of vLLM's processes, without a name where it has none."""
    return f"{f'({process}) ' if process else ''}{level} 11-30 15:{clock} [{source}] {text}\n"


def raw(process: str, *texts: str) -> str:
    """Lines that a process writes past its log."""
    return "".join(f"({process}) {text}\n" if process else f"{text}\n" for text in texts)


def shards(process: str, *done: int, total: int = 4) -> str:
    """A weight bar as it is redrawn: the name, a carriage return, the frame without a name, a line feed."""
    name = f"({process}) " if process else ""
    return "".join(
        f"{name}\rLoading safetensors checkpoint shards: {100 * k // total:3d}% Completed | {k}/{total} "
        f"[00:{k:02d}<00:03,  1.00it/s]\n"
        for k in done
    )


def sizes(process: str, *done: int, total: int = 35, name: str = "Capturing CUDA graphs (decode, FULL)") -> str:
    """A capture bar, all frames in one line."""
    frames = (f"{name}: {100 * k // total:3d}%|  | {k}/{total} [00:00<00:01, 30.00it/s]" for k in done)
    return "".join([f"({process}) " if process else "", *(f"\r{frame}" for frame in frames), "\n"])


def begun(config: str = CONFIG, process: str = CORE) -> str:
    """The first lines of a start, up to its distributed init."""
    return (
        says("42:04", f"vLLM server version 0.26.0, serving model {MODEL}", API, source="api_utils.py:345")
        + says("42:06", "Resolved architecture: LlamaForCausalLM", API, source="model.py:623")
        + says("42:14", f"Initializing a V1 LLM engine (v0.26.0) with config: {config}", process)
        + says("42:20", "world_size=1 rank=0 local_rank=0 distributed_init_method=tcp://10.0.0.4:41649 backend=nccl")
        + says("42:21", ASSIGNED)
    )


def loaded() -> str:
    """The load of a single process."""
    return (
        says("42:22", f"Starting to load model {MODEL}...")
        + shards(CORE, 0, 1, 2, 3, 4)
        + raw(CORE, "")
        + says("42:28", "Loading weights took 5.75 seconds")
    )


def sized() -> str:
    """From the end of the load to the engine's own ready line."""
    return (
        says("42:30", "Model loading took 14.96 GiB memory and 7.500000 seconds")
        + says("42:38", f"Using cache directory: {MODEL}/rank_0_0/backbone for vLLM's torch.compile")
        + says("42:38", "Dynamo bytecode transform time: 7.80 s")
        + says("42:49", "torch.compile took 18.70 s in total")
        + says("42:50", "Available KV cache memory: 50.25 GiB")
        + says("42:50", "GPU KV cache size: 399,360 tokens")
        + sizes(CORE, 0, 17, 35)
        + says("42:56", "Graph capturing finished in 6 secs, took 0.88 GiB")
        + says("42:58", "init engine (profile, create kv cache, warmup model) took 27.50 s (compilation: 18.70 s)")
    )


def served() -> str:
    """The API server's last lines."""
    return (
        says("43:02", "Starting vLLM server on http://127.0.0.1:8000", API)
        + says("43:03", "Route: /health, Methods: GET", API)
        + raw(API, "INFO:     Started server process [2428]", "INFO:     Waiting for application startup.", STARTED)
    )


def whole(config: str = CONFIG) -> str:
    """A start of one GPU."""
    return begun(config) + loaded() + sized() + served()


def failing(clock: str, process: str, first: str, *texts: str) -> str:
    """A logged traceback: vLLM's prefix, and a carriage return more, on each line of it."""
    return "".join(says(clock, text, process, level="ERROR").replace("\n", "\r\n") for text in (first, HEADER, *texts))


def ids(heard: Heard) -> list[tuple[str, Outcome]]:
    return [(boot.failure_id or "", boot.outcome) for boot in heard.snapshot.boots]


# --- the pack as a whole ----------------------------------------------------------------------------


def test_both_shipped_packs_together_have_no_problem():
    assert check(patterns(), perf_counter) == []


def test_every_rule_is_vllms_and_names_its_source():
    assert [rule.id for rule in PACK.rules if not rule.id.startswith("vllm.") or not rule.source] == []


def test_a_compilation_may_be_silent_as_long_as_the_longest_that_users_report():
    assert PACK.phases["kv_cache"].silence.long_s >= 2219


def test_what_importing_vllm_prints_is_a_note_and_no_more():
    assert [rule.id for rule in PACK.rules if rule.generic and rule.role is not Role.FACT] == []


def test_kinds_of_failure_end_the_start():
    assert [rule.id for rule in PACK.rules if rule.where is Where.EXCEPTION and not rule.fatal] == []


def test_no_advice_names_a_flag_of_another_engine():
    flags = re.compile(
        r"--(?:tp-size|mem-fraction-static|dist-init-addr|disable-cuda-graph|model-path)\b|[Ss][Gg][Ll]ang"
    )
    advice = {rule.id: " ".join((rule.cause, rule.remedy, *rule.remedies.values())) for rule in PACK.rules}
    assert [rule for rule, text in advice.items() if flags.search(text)] == []


def test_a_kind_that_both_engines_know_is_told_with_the_advice_of_the_boots_engine():
    classifier, error = (
        Classifier(patterns()),
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    )
    assert classifier.kind_of(error, "vllm").id == "vllm.fail.cuda_oom"
    assert classifier.kind_of(error, "sglang").id == "sglang.fail.cuda_oom"
    assert classifier.kind_of(error).id == "sglang.fail.cuda_oom"


@pytest.mark.parametrize(
    ("process", "rank"),
    [
        ("APIServer pid=1", ""),
        ("APIServer_1 pid=1", ""),
        ("EngineCore pid=1", ""),
        ("EngineCore_0 pid=1", "DP0"),
        ("EngineCore_DP3 pid=1", "DP3"),
        ("Worker pid=1", ""),
        ("Worker_TP1 pid=1", "TP1"),
        ("Worker_DP0_PP1_TP3_EP7 pid=1", "DP0 PP1 TP3 EP7"),
        ("VllmWorker rank=5 pid=1", "TP5"),
        ("VllmWorker-5 pid=1", "TP5"),
        ("VllmWorkerProcess pid=353", "PID353"),
        ("MainProcess pid=1", ""),
        ("SpawnProcess-1:2 pid=1", ""),
    ],
)
def test_a_process_names_its_rank_and_no_server(process, rank):
    found, message = parse(says("42:22", "Starting to load model m...", process).rstrip(), Learned())
    assert (found.process, found.rank, found.server, message) == (process, rank, "", "Starting to load model m...")


def test_a_ray_worker_is_vllms_where_vllms_stamp_stands_behind_its_name():
    line = says("42:22", "Starting to load model m...", "RayWorkerWrapper pid=480, ip=10.0.0.5").rstrip()
    assert parse(line, Learned())[0].rank == "PID480"
    nested = parse(f"({CORE}) {line}", Learned())[0]
    assert (nested.process, nested.rank) == ("RayWorkerWrapper pid=480", "PID480")
    other = parse("(RayWorkerWrapper pid=480, ip=10.0.0.5) [2026-11-30 15:42:22 TP1] x", Learned())[0]
    assert (other.server, other.rank) == ("RayWorkerWrapper pid=480", "TP1")


def test_a_configuration_inside_the_configuration_stands_for_its_method():
    text = EAGLE + ", parser=Backend(names=('a', 'b'), model='x'), seed=0, device_config=cuda"
    args = parse_config(text, {"model": "model_path", "speculative_config": "speculative_algorithm"})
    assert args["model_path"] == MODEL
    assert args["speculative_algorithm"] == "eagle3"
    assert (args["parser"], args["seed"], args["enforce_eager"]) == ("Backend", 0, False)


@pytest.mark.parametrize(
    ("table", "item", "fact"),
    [
        ("[arguments]\nmodel = 3\n", "[arguments]", "names to names"),
        ('arguments = "x"\n', "[arguments]", "names to names"),
        ('[[phase]]\nid = "x"\ntitle = "X"\nplanned = "no"\n', "[[phase]] x", "planned must be true or false"),
        ("[[rule]]\nid = 'a.b'\nrole = 'end'\nmatch = 'some'\nthen = 'tea'\n", "[[rule]] a.b", "unknown phase 'tea'"),
    ],
)  # fmt: skip
def test_a_wrong_form_is_named(table, item, fact):
    head = '[pack]\nschema = 1\nengine = "mine"\n'
    with pytest.raises(PatternError) as caught:
        load_pack(table + head if table.startswith("arguments") else head + table, "mine.toml")
    assert caught.value.item == item
    assert fact in caught.value.fact


# --- whole starts -----------------------------------------------------------------------------------


def test_a_start_of_one_gpu_is_told_phase_by_phase_up_to_ready():
    heard = hear(whole())
    assert heard.rows == [
        "bootstrap 42:04-42:20 done",
        "dist_init 42:20-42:21 done",
        "target_load 42:22-42:30 done 4/4",
        "kv_cache 42:30-42:50 done ~",
        "target_graph 42:50-42:56 done 35/35 ~",
        "http_up 43:02-43:03 done",
        "ready 43:03-43:03 done",
    ]
    known = heard.snapshot
    assert (known.engine.name, known.engine.title, known.engine.version) == ("vllm", "vLLM", "0.26.0")
    assert (known.outcome, known.startup_s, known.boot) == (Outcome.READY, 59.0, 1)
    assert known.ready_line == whole().count("\n")
    assert [row.phase for row in known.phases if row.status in {"pending", "skipped"}] == []
    assert known.drift is None


def test_what_the_start_says_of_itself_becomes_facts_under_the_usual_names():
    facts = hear(whole()).snapshot.facts
    assert facts["model_path"] == MODEL
    assert facts["kv_tokens"] == 399360
    assert facts["weights_bytes"] == round(14.96 * 2**30)
    assert (facts["tp_size"], facts["disable_cuda_graph"]) == (1, False)
    assert facts["torch_compile_s"] == 18.7


@pytest.mark.parametrize("between", ["\r", "\n", "", "\r\r"])
def test_the_load_is_followed_whatever_stands_between_a_process_and_its_bar(between):
    text = begun() + loaded().replace(") \rLoading", f") {between}Loading")
    heard = hear(text)
    assert heard.told("progress") == [f"target_load {k}/4" for k in range(5)]
    assert heard.row("target_load").longest_silence_s == 2.0
    assert heard.snapshot.sources[0].unmatched_lines == 0


def test_the_compilation_is_an_activity_of_the_profiling_run():
    text = (begun() + loaded() + sized()).split(f"({CORE}) INFO 11-30 15:42:49")[0]
    known = hear(text, open_end=True).snapshot
    assert known.phase == "kv_cache"
    assert (known.activity.id, known.activity.phase) == ("torch_compile", "kv_cache")
    assert hear(whole()).told("activity") == ["torch_compile begin", "torch_compile end"]


def test_a_server_without_graphs_waits_for_none():
    known = hear(begun(CONFIG.replace("eager=False", "eager=True"))).snapshot
    assert [row.phase for row in known.phases if row.status == "pending"] == [
        "target_load",
        "kv_cache",
        "http_up",
        "ready",
    ]


def test_the_colours_of_a_terminal_change_nothing():
    plain = hear(whole())
    coloured = re.sub(r"^\((\w+ pid=\d+)\) ", "\x1b[1;36m(\\1)\x1b[0;0m ", whole(), flags=re.MULTILINE)
    assert "\x1b[1;36m(EngineCore" in coloured
    assert (hear(coloured).story, hear(coloured).rows) == (plain.story, plain.rows)


def test_the_newest_form_colours_each_part_of_its_prefix():
    line = re.compile(r"^\((\w+ pid=\d+)\) INFO (\S+ \S+) (\[\S+\]) ", re.MULTILINE)
    parts = "\x1b[0;36m(\\1)\x1b[0;0m \x1b[32mINFO\x1b[0m \x1b[90m\\2\x1b[0m \x1b[90m\\3\x1b[0m "
    assert hear(line.sub(parts, whole())).rows == hear(whole()).rows


def test_the_logo_stands_for_the_version_line():
    logo = says("42:04", "", API) + "".join(
        says("42:04", text, API).replace("\n", "\r\n")
        for text in (
            "       █     █     █▄   ▄█",
            " ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.26.0",
            f"  █▄█▀ █     █     █     █  model   {MODEL}",
            "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀",
        )
    )
    known = hear(logo).snapshot
    assert (known.engine.version, known.facts["model_path"], known.outcome) == ("0.26.0", MODEL, Outcome.STARTING)


@pytest.mark.parametrize("step", [1, 2, 7, 64, 1000])
def test_any_cut_of_the_bytes_gives_the_same_story(step):
    text = whole(EAGLE) + failing("44:00", CORE, "EngineCore encountered a fatal error.", CORE_FRAME, "ValueError: x")
    data = text.encode()
    assert hear(data, chunks=range(step, len(data), step)).story == hear(data).story


def test_a_start_without_an_api_server_never_claims_to_be_ready():
    text = "".join(
        says("42:14", f"Initializing a V1 LLM engine (v0.26.0) with config: {CONFIG}", "") + loaded() + sized()
    )
    known = hear(text).snapshot
    assert (known.outcome, known.phase) == (Outcome.STARTING, "target_graph")


def test_after_ready_it_serves():
    text = whole() + raw(API, 'INFO:     127.0.0.1:52174 - "POST /v1/completions HTTP/1.1" 200 OK')
    assert hear(text).snapshot.phase == "serving"
    stats = "Engine 000: Avg prompt throughput: 252.4 tokens/s, Avg generation throughput: 89.2 tokens/s"
    assert hear(whole() + says("43:20", stats, API)).snapshot.phase == "serving"


def test_requests_are_stepped_over_at_speed_and_nothing_between_them_is_lost():
    request = raw(API, 'INFO:     127.0.0.1:52174 - "POST /v1/completions HTTP/1.1" 200 OK')
    coloured = request.replace(f"({API})", f"\x1b[1;36m({API})\x1b[0;0m")
    poll = raw(API, 'INFO:     127.0.0.1:52176 - "GET /health HTTP/1.1" 200 OK')
    stats = says("50:00", "Engine 000: Avg prompt throughput: 252.4 tokens/s", API)
    died = failing("50:10", CORE, "EngineCore encountered a fatal error.", CORE_FRAME, "RuntimeError: CUDA error: x")
    text = whole() + request * 9 + stats + (request + coloured) * 9 + poll * 3 + request * 9 + died
    heard = hear(text)
    line_by_line = hear(text, chunks=[k for k, char in enumerate(text.encode()) if char == ord("\n")])
    assert heard.story == line_by_line.story
    assert heard.snapshot.failure.place.line == text[: text.index("EngineCore encountered")].count("\n") + 1
    assert heard.snapshot.sources[0].lines == text.count("\n")
    assert heard.tracker._segmenter.frames == line_by_line.tracker._segmenter.frames


def test_a_clean_shutdown_is_no_failure():
    text = whole() + says("50:00", "[shutdown] API server: shutdown triggered", API)
    known = hear(text + raw(API, "INFO:     Application shutdown complete.")).snapshot
    assert (known.outcome, known.failure) == (Outcome.STOPPED, None)


def test_a_start_that_is_interrupted_was_stopped():
    text = begun() + loaded() + raw(API, *API_TRACE, "KeyboardInterrupt: terminated")
    known = hear(text).snapshot
    assert (known.outcome, known.failure) == (Outcome.STOPPED, None)


# --- stamps without a year --------------------------------------------------------------------------


def test_times_are_those_of_a_day_where_no_year_is_known():
    known = hear(whole()).snapshot
    assert not known.zone.dated
    assert known.started_at_s == 15 * 3600 + 42 * 60 + 4


def test_a_librarys_dated_line_in_between_moves_no_time():
    dated = raw(CORE, "2026-11-30 15:42:50,929 - INFO - autotuner.py:256 - flashinfer.jit: Autotuning starts ...")
    text = whole().replace(sizes(CORE, 0, 17, 35), dated + sizes(CORE, 0, 17, 35))
    assert hear(text).rows == hear(whole()).rows
    assert hear(text).snapshot.startup_s == 59.0


def test_a_transports_stamps_tell_the_year():
    text = "".join(f"2026-11-30T15:59:00.123456789Z {line}\n" for line in begun().splitlines())
    known = hear(text).snapshot
    assert known.zone.dated
    assert known.started_at_s % 86400 == 15 * 3600 + 42 * 60 + 4


def test_a_start_over_midnight_goes_forward():
    text = whole().replace("11-30 15:42", "11-30 23:59").replace("11-30 15:43", "12-01 00:00")
    assert hear(text).snapshot.startup_s == 59.0


# --- drafts -----------------------------------------------------------------------------------------


def test_a_draft_is_loaded_inside_the_load_and_both_end_together():
    text = (
        begun(EAGLE)
        + loaded()
        + says("42:29", "Loading drafter model...")
        + shards(CORE, 0, 1, total=1)
        + says("42:30", "Loading weights took 0.75 seconds")
        + sized()
        + served()
    )
    heard = hear(text)
    assert heard.rows[2:4] == ["target_load 42:22-42:29 done 4/4 ~", "draft_load 42:29-42:30 done 1/1"]
    assert heard.order == [
        "bootstrap",
        "dist_init",
        "target_load",
        "draft_load",
        "kv_cache",
        "target_graph",
        "http_up",
        "ready",
    ]
    facts = heard.snapshot.facts
    assert facts["speculative_algorithm"] == "eagle3"
    assert (facts["weights_bytes"], "draft_weights_bytes" in facts) == (round(14.96 * 2**30), False)


def test_the_speculators_graphs_are_the_drafts_and_one_line_ends_both():
    captured = (
        sizes(CORE, 0, 35)
        + says("42:53", "Capturing model for speculator...")
        + sizes(CORE, 0, 20, total=20, name="Capturing decode CUDA graphs (FULL)")
    )
    heard = hear(begun(EAGLE) + loaded() + sized().replace(sizes(CORE, 0, 17, 35), captured) + served())
    assert heard.rows[4:6] == ["target_graph 42:50-42:53 done 35/35 ~", "draft_graph 42:53-42:56 done 20/20"]


def test_a_draft_that_no_line_tells_of_is_not_said_to_be_skipped():
    known = hear(whole(EAGLE)).snapshot
    assert [row.phase for row in known.phases if row.status == "skipped"] == []


# --- many processes ---------------------------------------------------------------------------------

WORKERS = ("Worker_TP0 pid=2440", "Worker_TP1 pid=2441")


def on_both(clock: str, text: str) -> str:
    return "".join(says(clock, text, worker) for worker in WORKERS)


def loaded_by_two() -> str:
    return (
        on_both("42:22", f"Starting to load model {MODEL}...")
        + shards(WORKERS[0], 0, 2, 4)
        + says("42:28", "Model loading took 7.50 GiB memory and 5.500000 seconds", WORKERS[1])
        + says("42:30", "Model loading took 7.50 GiB memory and 7.500000 seconds", WORKERS[0])
    )


def test_workers_are_ranks_and_the_engine_ends_the_cache_of_all():
    text = (
        begun(CONFIG.replace("parallel_size=1", "parallel_size=2"))
        + loaded_by_two()
        + on_both("42:50", "Available KV cache memory: 50.25 GiB")
        + says("42:51", "GPU KV cache size: 399,360 tokens")
        + says("42:51", "GPU KV cache size: 399,360 tokens")
        + sizes(WORKERS[0], 0, 35)
        + on_both("42:56", "Graph capturing finished in 5 secs, took 0.88 GiB")
        + served()
    )
    heard = hear(text)
    load, cache = heard.row("target_load"), heard.row("kv_cache")
    assert [rank.rank for rank in load.ranks] == ["TP0", "TP1"]
    assert (load.slowest_rank, load.skew_s) == ("TP0", 2.0)
    assert [(rank.rank, rank.ended_s % 60) for rank in cache.ranks] == [("TP0", 51.0), ("TP1", 51.0)]
    assert heard.snapshot.phases[3].occurrence == 1
    assert heard.snapshot.outcome is Outcome.READY


def test_a_replica_ends_its_own_cache_only():
    config = CONFIG.replace("tensor_parallel_size=1", "data_parallel_size=2")
    cores = ("EngineCore_DP0 pid=2431", "EngineCore_DP1 pid=2432")
    text = begun(config, cores[0])
    for core in cores:
        text += says("42:22", f"Starting to load model {MODEL}...", core)
        text += says("42:28", "Model loading took 14.96 GiB and 5.500000 seconds", core)
    text += says("42:40", "GPU KV cache size: 399,360 tokens", cores[0])
    ranks = {rank.rank: rank.status for rank in hear(text, open_end=True).row("kv_cache").ranks}
    assert ranks == {"DP0": "done", "DP1": "running"}


def test_each_replicas_first_line_belongs_to_the_one_start():
    text = begun(CONFIG, "EngineCore_DP0 pid=2431")
    text += says("42:22", f"Initializing a V1 LLM engine (v0.26.0) with config: {CONFIG}", "EngineCore_DP1 pid=2432")
    assert len(hear(text).snapshot.boots) == 1


def test_an_old_engines_nameless_workers_are_ranks_of_one_server():
    main, worker = "", "VllmWorkerProcess pid=2451"

    def both(clock: str, text: str) -> str:
        return says(clock, text, main, source="worker.py:232") + says(clock, text, worker, source="worker.py:232")

    text = (
        says("42:04", "vLLM API server version 0.6.4.post1", main)
        + says("42:09", f"Initializing an LLM engine (v0.6.4.post1) with config: {CONFIG}", main)
        + says("42:16", "Worker ready; awaiting tasks", worker)
        + both("42:20", "vLLM is using nccl==2.21.5")
        + both("42:22", f"Starting to load model {MODEL}...")
        + shards("", 0, 2, 4).replace("\r", "")
        + both("42:30", "Loading model weights took 7.5000 GB")
        + both("42:36", "Memory profiling results: total_gpu_memory=139.72GiB")
        + says("42:36", "# GPU blocks: 175884, # CPU blocks: 6553", main)
        + both("42:38", "Capturing cudagraphs for decoding. This may lead to unexpected consequences")
        + both("42:50", "Graph capturing finished in 12 secs, took 0.48 GiB")
        + raw("", "INFO:     Started server process [2428]", STARTED)
    ).replace("[worker.py:232]", "worker.py:232]")
    heard = hear(text)
    assert heard.rows == [
        "bootstrap 42:04-42:20 done",
        "dist_init 42:20-42:22 done ~",
        "target_load 42:22-42:30 done 4/4",
        "kv_cache 42:36-42:36 done ~",
        "target_graph 42:38-42:50 done",
        "http_up 42:50-42:50 done",
        "ready 42:50-42:50 done",
    ]
    assert [rank.rank for rank in heard.row("target_load").ranks] == ["", "PID2451"]
    assert len(heard.snapshot.boots) == 1


# --- failures ---------------------------------------------------------------------------------------

LACKING = "KeyError: 'layers.0.self_attn.q_norm.weight'"
API_ECHO = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"


def test_the_engines_traceback_names_the_cause_and_the_api_servers_folds_under_it():
    text = (
        begun(EAGLE)
        + loaded()
        + says("42:29", "Loading drafter model...")
        + failing("42:31", CORE, "EngineCore failed to start.", CORE_FRAME, "    raise e")
        + raw(CORE, "Process EngineCore:")
        + failing("42:31", CORE, CORE_FRAME, LACKING).split("\n", 2)[2]
        + raw(CORE, HEADER, '  File "/usr/lib/python3.12/multiprocessing/process.py", line 314, in _bootstrap', LACKING)
        + raw(API, *API_TRACE, API_ECHO)
    )
    known = hear(text).snapshot
    failure = known.failure
    assert (known.outcome, failure.id, failure.phase) == (Outcome.FAILED, "vllm.fail.checkpoint_key", "draft_load")
    assert (failure.message, failure.place.line) == (LACKING, text[: text.index("EngineCore failed")].count("\n") + 1)
    assert len(known.boots) == 1


def test_a_worker_fails_first_and_says_so():
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 23 GiB"
    later = "RuntimeError: Worker failed with error 'CUDA out of memory', please check the stack trace above"
    text = (
        begun()
        + loaded_by_two()
        + failing("42:40", WORKERS[1], "WorkerProc hit an exception.", CORE_FRAME, oom)
        + failing("42:40", CORE, "EngineCore failed to start.", CORE_FRAME, later)
    )
    failure = hear(text).snapshot.failure
    assert (failure.id, failure.rank, failure.phase) == ("vllm.fail.cuda_oom", "TP1", "kv_cache")
    assert "--max-num-batched-tokens" in failure.remedy


def test_processes_that_write_in_turn_keep_their_tracebacks_apart():
    ours = failing("42:40", WORKERS[0], "WorkerProc failed to start.", CORE_FRAME, "ValueError: mine").splitlines(True)
    theirs = failing(
        "42:40", WORKERS[1], "WorkerProc failed to start.", CORE_FRAME, "ImportError: not mine"
    ).splitlines(True)
    woven = "".join(line for pair in zip(ours, theirs, strict=True) for line in pair)
    heard = hear(begun() + loaded_by_two() + woven)
    assert (heard.snapshot.failure.message, heard.snapshot.failure.rank) == ("ValueError: mine", "TP0")


def test_an_api_server_that_refuses_its_arguments_fails_alone():
    text = says("42:04", "vLLM API server version 0.11.2", API)
    refused = "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig"
    known = hear(text + raw(API, *API_TRACE, refused)).snapshot
    assert (known.outcome, known.failure.id, known.failure.phase) == (
        Outcome.FAILED,
        "vllm.fail.validation",
        "bootstrap",
    )


def test_too_little_memory_for_the_cache_is_named_with_its_figures():
    short = (
        "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (10.10 GiB). Try increasing it."
    )
    text = begun() + loaded() + sized().split(f"({CORE}) INFO 11-30 15:42:50")[0]
    failure = hear(text + failing("42:50", CORE, "EngineCore failed to start.", CORE_FRAME, short)).snapshot.failure
    assert (failure.id, failure.phase) == ("vllm.fail.kv_too_small", "kv_cache")


def test_a_worker_that_is_killed_is_missed_by_the_engine():
    text = begun() + loaded_by_two()
    died = "Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor."
    known = hear(text + says("42:50", died, level="ERROR")).snapshot
    assert (known.outcome, known.failure.id) == (Outcome.FAILED, "vllm.fail.worker_died")


def test_an_error_of_one_request_leaves_the_server_ready():
    trace = failing("44:00", API, "Error in chat completion stream generator.", CORE_FRAME, "ValueError: x")
    assert hear(whole() + trace).snapshot.outcome is Outcome.READY


def test_an_engine_that_dies_while_it_serves_has_failed():
    trace = failing("44:00", CORE, "EngineCore encountered a fatal error.", CORE_FRAME, "RuntimeError: CUDA error: x")
    known = hear(whole() + trace).snapshot
    assert (known.outcome, known.failure.id, known.failure.after_ready) == (Outcome.FAILED, "vllm.fail.cuda", True)


# --- several starts, several engines ----------------------------------------------------------------


def test_a_restart_is_a_boot_of_its_own():
    failed = begun() + failing("42:25", CORE, "EngineCore failed to start.", CORE_FRAME, "ValueError: x")
    later = whole().replace("15:4", "16:4")
    assert ids(hear(failed + later)) == [("vllm.fail.engine_core", Outcome.FAILED), ("", Outcome.READY)]
    assert ids(hear(begun() + loaded() + later)) == [("", Outcome.STARTING), ("", Outcome.READY)]
    assert ids(hear(whole() + later)) == [("", Outcome.READY), ("", Outcome.READY)]


def test_engines_that_run_one_after_the_other_without_a_server_are_boots_of_their_own():
    one = says("42:14", f"Initializing a V1 LLM engine (v0.26.0) with config: {CONFIG}", "") + loaded() + sized()
    assert len(hear(one + one.replace("15:4", "16:4")).snapshot.boots) == 2


SGLANG = """\
[2026-11-30 15:42:04] server_args=ServerArgs(model_path='/srv/models/m', tp_size=1, skip_server_warmup=True)
[2026-11-30 15:42:22] Init torch distributed begin.
[2026-11-30 15:42:23] Init torch distributed ends. mem usage=0.10 GB
[2026-11-30 15:42:23] Load weight begin. avail mem=139.13 GB
[2026-11-30 15:42:30] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=130.65 GB
[2026-11-30 15:42:31] KV Cache is allocated. #tokens: 1919335, K size: 58.57 GB, V size: 58.57 GB
[2026-11-30 15:42:31] Memory pool end. avail mem=13.41 GB
[2026-11-30 15:42:32] INFO:     Started server process [2428]
[2026-11-30 15:42:32] INFO:     Application startup complete.
[2026-11-30 15:42:32] INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)
"""
FIRED = "[2026-11-30 15:42:34] The server is fired up and ready to roll!\n"
INSIDE = "".join(
    says(clock, text, "")
    for clock, text in (
        ("42:01", "Automatically detected platform cuda."),
        ("42:22", "Found nccl from library libnccl.so.2"),
        ("42:22", "vLLM is using nccl==2.21.5"),
        ("42:23", "rank 0 in world size 1 is assigned as DP rank 0, PP rank 0, TP rank 0"),
        ("42:24", "Using Flash Attention backend."),
        ("42:25", "Loading weights took 1.50 seconds"),
    )
).splitlines(keepends=True)


def test_what_vllm_prints_inside_sglang_opens_and_changes_nothing():
    plain = hear(SGLANG + FIRED)
    lines = (SGLANG + FIRED).splitlines(keepends=True)
    mixed = "".join([INSIDE[0], *lines[:2], *INSIDE[1:4], *lines[2:4], *INSIDE[4:], *lines[4:]])
    heard = hear(mixed)
    assert heard.story == plain.story
    assert heard.rows == plain.rows
    assert heard.snapshot.engine.name == "sglang"
    assert heard.snapshot.zone.dated


def test_that_uvicorn_has_started_makes_no_sglang_server_ready():
    known = hear(SGLANG).snapshot
    assert (known.outcome, known.phase) == (Outcome.STARTING, "http_up")


def test_one_log_may_hold_both_engines():
    heard = hear(SGLANG + FIRED + whole().replace("15:4", "16:4"))
    assert [boot.outcome for boot in heard.snapshot.boots] == [Outcome.READY, Outcome.READY]
    assert heard.snapshot.engine.name == "vllm"
    heard = hear(whole() + (SGLANG + FIRED).replace("15:4", "16:4"))
    assert [boot.outcome for boot in heard.snapshot.boots] == [Outcome.READY, Outcome.READY]
    assert heard.snapshot.engine.name == "sglang"
