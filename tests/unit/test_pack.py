"""The shipped SGLang pack against its own samples and our own recordings (``fixtures/``)."""

from __future__ import annotations

import re
from pathlib import Path
from time import perf_counter

import pytest

from phasetrack.core.check import check
from phasetrack.core.classify import Classifier
from phasetrack.core.model import Role, Where
from phasetrack.core.patterns import STANDARD, load_pack
from phasetrack.core.prefix import Learned, parse
from phasetrack.core.segments import Segmenter

ROOT = Path(__file__).parents[2]
PACK = load_pack((ROOT / "patterns" / "sglang.toml").read_text(encoding="utf-8"), "sglang.toml")
RULES = {rule.id: rule for rule in PACK.rules}
LOGS = sorted((ROOT / "fixtures").glob("*/server.log"))
BULK = [re.compile(pattern) for pattern in PACK.bulk]
GIB = 2**30

# What a start prints besides: true, and nobody's landmark.
NOISE = ("Spec v2 is enabled", "SPECULATIVE_MOE_")


def events(log):
    segmenter, classifier = Segmenter(), Classifier(PACK)
    data = log.read_bytes()
    for segment in (*segmenter.feed(data), *segmenter.close()):
        yield from classifier.classify(segment)


def claimed(text):
    """The rules and facts that one line gives."""
    segmenter, classifier = Segmenter(), Classifier(PACK)
    (segment,) = segmenter.feed(f"{text}\n".encode())
    return [(event.rule and event.rule.id, dict(event.fields)) for event in classifier.classify(segment)]


def rule_of(text):
    return [rule for rule, _ in claimed(text)]


def messages(log):
    """Whole lines behind their prefix, each once but for its digits."""
    lines = log.read_bytes().decode("utf-8", "replace").splitlines()
    kinds = {re.sub(r"\d", "0", line): line for line in lines if line.startswith("[20") and "\x1b" not in line}
    return [parse(line, Learned())[1] for line in kinds.values()]


# --- the pack as a whole ----------------------------------------------------------------------------


def test_the_shipped_pack_has_no_problem():
    assert check(PACK, perf_counter) == []


def test_every_phase_is_described():
    assert set(PACK.phases) == STANDARD


@pytest.mark.parametrize("name", ["sglang.toml", "vllm.toml"])
def test_every_starting_phase_says_how_long_it_is_silent(name):
    pack = load_pack((ROOT / "patterns" / name).read_text(encoding="utf-8"), name)
    for phase in pack.phases.values():
        if phase.id not in {"ready", "serving"}:
            assert phase.silence is not None, phase.id
            assert phase.silence.source, phase.id
            assert phase.quiet_why, phase.id


def test_capture_may_be_silent_for_the_twenty_minutes_that_users_report():
    assert PACK.phases["target_graph"].silence.long_s >= 1200


def test_a_deadline_says_who_gives_up():
    for phase in PACK.phases.values():
        assert (phase.deadline_s is None) == (phase.deadline_why == ""), phase.id


def test_every_rule_names_its_source():
    assert [rule.id for rule in PACK.rules if not rule.source] == []


def test_versions_of_a_rule_run_forward():
    def order(version):
        return [int(part) for part in re.findall(r"\d+", version)]

    for rule in PACK.rules:
        if rule.since and rule.until:
            assert order(rule.since) <= order(rule.until), rule.id


def test_kinds_of_failure_end_the_start():
    assert [rule.id for rule in PACK.rules if rule.where is Where.EXCEPTION and not rule.fatal] == []


def test_only_a_watchdog_is_a_line_that_is_bad_and_not_fatal():
    # The machine takes such a line for a hang.
    assert [rule.id for rule in PACK.rules if rule.where is Where.LINE and not rule.fatal] == ["sglang.fail.watchdog"]


def test_every_role_has_rules():
    assert {rule.role for rule in PACK.rules} == set(Role)


@pytest.mark.parametrize(
    "line",
    [
        "INFO:     Started server process [2428]",
        "INFO:     Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)",
        'INFO:     127.0.0.1:52152 - "GET /health HTTP/1.1" 200 OK',
        "INFO 11-30 15:42:22 [weight_utils.py:252] Using model weights format ['*.safetensors']",
        "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:02<00:06,  2.10s/it]",
        "Multi-thread loading shards:  33% Completed | 1/3 [00:01<00:03,  1.74s/it]",
        "INFO 11-30 15:42:22 [backends.py:251] Cache the graph for dynamic shape for later use",
        "INFO 11-30 15:42:22 [custom_all_reduce.py:216] Registering 120 cuda graph addresses",
        "RuntimeError: CUDA error: out of memory",
    ],
)
def test_what_vllm_prints_too_never_opens_a_boot(line):
    ids = [rule for rule in rule_of(line) if rule] or [Classifier(PACK).kind_of(line).id]
    assert [RULES[rule].generic for rule in ids] == [True]


# --- bulk -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", range(len(BULK)))
def test_each_bulk_expression_takes_lines_of_our_recordings(k):
    taken = [message for log in LOGS for message in messages(log) if BULK[k].fullmatch(message)]
    assert len(taken) >= 5


def test_every_batch_and_access_line_of_our_recordings_is_bulk():
    serving = re.compile(r'(?:Prefill|Decode) batch|\S+ - "')
    left = [
        message
        for log in LOGS
        for message in messages(log)
        if serving.match(message) and not any(bulk.fullmatch(message.rstrip(", ")) for bulk in BULK)
    ]
    assert left == []


SERVING = [
    *(
        f"Decode batch{head} #running-req: 1, #token: 48, token usage: 0.00, gen throughput (token/s): 1.58{tail}"
        for head, tail in [
            (",", ", #queue-req: 0"),
            (".", ", #queue-req: 0"),
            (".", ", largest-len: 0, #queue-req: 0, "),
            (" [12],", ", #queue-req: 0, "),
            (",", ", #queue-req: 0, est. decode TFLOPS/s (per GPU): 1.20, est. read BW (GB/s per GPU): 3.40"),
            (",", ", #queue-req: 0, fwd occupancy: 99.10%"),
        ]
    ),
    *(
        f"Prefill batch{head} #new-seq: 1, #new-token: 11, #cached-token: 0, token usage: 0.00{tail}"
        for head, tail in [
            (",", ", #running-req: 0, #queue-req: 0, cuda graph: True, input throughput (token/s): 0.49"),
            (",", ", #queue-req: 0, input throughput (token/s): 0.49, est. prefill TFLOPS/s (per GPU): 1.20"),
            (",", ", #queue-req: 0, input throughput (token/s): 0.49, waiting-image-req: 0, cuda graph: True"),
            (".", ", #running-req: 0, #queue-req: 0"),
            (".", ", #running-req: 0, #unbootstrapped-req: 0, #queue-req: 0, #transferring-req: 0 "),
            ("(mixed #running-req: 3).", ", #queue-req: 0"),
        ]
    ),
    '127.0.0.1:52174 - "GET /health HTTP/1.1" 200 OK',
    '127.0.0.1:52138 - "POST /v1/chat/completions?x=1 HTTP/1.1" 503 Service Unavailable',
]


@pytest.mark.parametrize("line", SERVING)
def test_serving_lines_of_every_era_are_bulk(line):
    assert any(bulk.fullmatch(line.rstrip(", ")) for bulk in BULK)


@pytest.mark.parametrize("line", SERVING)
@pytest.mark.parametrize(
    "other",
    [
        "Traceback (most recent call last):",
        "[2026-11-30 15:42:46 TP1] Scheduler hit an exception: Traceback (most recent call last):",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "Fatal Python error: Segmentation fault",
        "Killed",
        "\r  0%|          | 0/36 [00:00<?, ?it/s]",
    ],
)
def test_no_bulk_expression_takes_a_line_that_something_else_is_glued_to(line, other):
    for cut in range(1, len(line) + 1):
        assert not any(bulk.fullmatch(line[:cut] + other) for bulk in BULK), line[:cut] + other


def test_no_bulk_expression_takes_two_lines():
    for line in SERVING:
        assert not any(bulk.fullmatch(f"{line}\n{line}") for bulk in BULK)


# --- our recordings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.parent.name)
def test_every_stamped_line_of_our_recordings_is_known(log):
    unknown = {event.text for event in events(log) if event.rule is None and event.prefix.engine}
    assert [text for text in unknown if not text.startswith(NOISE)] == []


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.parent.name)
def test_every_bar_of_our_recordings_is_known(log):
    assert {event.bar.desc for event in events(log) if event.bar is not None and event.rule is None} == set()


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.parent.name)
def test_no_line_of_our_recordings_is_claimed_twice(log):
    classifier = Classifier(PACK)
    texts = {re.sub(r"\d", "0", event.text): event.text for event in events(log) if event.rule and event.bar is None}
    for text in texts.values():
        assert len(classifier.candidates(text)) == 1, text


def landmarks(name):
    """The phases' own rules in their order, repetitions and bars left out."""
    seen = []
    for event in events(ROOT / "fixtures" / name / "server.log"):
        rule = event.rule
        if rule is None or event.bar is not None or rule.role not in {Role.BEGIN, Role.END} or rule.activity:
            continue
        if not seen or seen[-1] != rule.id:
            seen.append(rule.id)
    return [rule.removeprefix("sglang.") for rule in seen]


def test_a_plain_start_of_0_5_12_reads_as_it_went():
    assert landmarks("01-plain-file") == [
        "server_args", "dist_init.begin", "dist_init.end", "target_load.begin", "target_load.end", "kv_cache.end",
        "target_graph.begin", "target_graph.end", "target_graph.begin", "target_graph.end", "http_up.begin",
        "http_up.end", "warmup.model_info", "ready", "shutdown.sigterm", "shutdown.draining",
    ]  # fmt: skip


def test_a_speculative_start_of_0_5_16_reads_as_it_went():
    assert landmarks("16a-eagle3-file-coldjit")[:20] == [
        "server_args", "dist_init.begin", "dist_init.end", "target_load.begin", "target_load.end", "dist_init.begin",
        "dist_init.end", "target_load.begin", "target_load.end", "kv_cache.end", "target_graph.begin_named",
        "target_graph.end_named", "target_graph.begin_named", "target_graph.end_named", "draft_graph.begin_named",
        "draft_graph.end_named", "draft_graph.begin_named", "draft_graph.end_named", "http_up.begin", "http_up.end",
    ]  # fmt: skip


def test_facts_carry_their_unit():
    facts = {}
    for event in events(ROOT / "fixtures" / "01-plain-file" / "server.log"):
        facts.update(event.fields)
    assert facts["kv_tokens"] == facts["max_total_tokens"] == 1919335
    assert facts["weights_bytes"] == round(8.48 * GIB)
    assert facts["kv_k_bytes"] == facts["kv_v_bytes"] == round(58.57 * GIB)
    assert facts["weight_load_s"] == 5.62
    assert facts["model_class"] == "LlamaForCausalLM"
    assert facts["kv_dtype"] == "bfloat16"
    assert facts["attention_backend"] == "fa3"
    assert facts["max_running_requests"] == 4096
    assert facts["context_len_tokens"] == 8192
    assert facts["pid"] == 2428
    assert facts["url"] == "http://127.0.0.1:30000"


def test_a_quantised_load_keeps_its_quantisation():
    line = (
        "[2026-11-30 15:42:28 TP0] Load weight end. elapsed=61.50 s, type=DeepseekV3ForCausalLM, quant=fp8, fmt=e4m3, "
        "avail mem=52.25 GB, mem usage=85.50 GB."
    )
    ((rule, facts),) = claimed(line)
    assert rule == "sglang.target_load.end"
    assert facts["quant"] == "fp8"
    assert facts["after_load_bytes"] == round(52.25 * GIB)


def test_a_capacity_that_was_cut_says_what_was_asked_and_what_was_got():
    line = "[2026-11-30 15:42:28] max_running_requests was reduced from the requested 4096 to 1024 (per dp worker)"
    ((rule, facts),) = claimed(line)
    assert rule == "sglang.warn.fewer_requests"
    assert facts == {"asked": 4096, "got": 1024}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("06a1-mem-fraction-too-small", "sglang.fail.no_kv_memory"),
        ("06b2-truncated-shard", "sglang.fail.safetensors"),
        ("06c-wrong-model-path", "sglang.fail.model_path"),
        ("06e-kill9-scheduler-in-load", "sglang.fail.worker_vanished"),
    ],
)
def test_the_last_line_of_a_traceback_names_its_kind(name, kind):
    lines = (ROOT / "fixtures" / name / "server.log").read_text(encoding="utf-8").splitlines()
    exceptions = [line for line in lines if re.match(r"[A-Za-z_][\w.]*(?:Error|Exception): ", line)]
    found = Classifier(PACK).kind_of(exceptions[-1])
    assert found is not None
    assert found.id == kind


def test_a_line_glued_to_a_bar_is_claimed_behind_it():
    line = "Multi-thread loading shards:  20% Completed | 13/64 [00:01<00:04, 11.21it/s]"
    stamped = "[2026-11-30 16:01:23 DP1] Load weight begin. avail mem=139.13 GB"
    assert rule_of(line + stamped) == ["sglang.target_load.bar", "sglang.target_load.begin"]


def test_words_tell_draft_graphs_from_the_targets():
    begin = "[2026-11-30 15:40:23 TP0] Capture {} begin. This can take up to several minutes. avail mem=7.93 GB"
    for what, phase in [
        ("cuda graph", "target_graph"),
        ("npu graph", "target_graph"),
        ("draft cuda graph", "draft_graph"),
        ("draft extend cuda graph", "draft_graph"),
    ]:
        (rule,) = rule_of(begin.format(what))
        assert RULES[rule].phase == phase, what
