"""Ready, but not as asked: arguments against what the start printed."""

from __future__ import annotations

import pytest

from phasetrack.core.model import Outcome, VerdictState
from tests.talk import args, hear, log

LOAD = "44:14 | Load weight begin. avail mem=139.13 GB\n"
LOADED = (
    "44:20 | Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=130.65 GB, mem usage=8.48 GB.\n"
)
KV = "44:21 | KV Cache is allocated. dtype: torch.bfloat16, #tokens: {}, K size: 1.00 GB, V size: 1.00 GB\n"
POOL = "44:21 | Memory pool end. avail mem=13.41 GB\n"
CAPACITY = (
    "44:22 | max_total_num_tokens={}, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests={}, "
    "context_len={}, available_gpu_mem=12.50 GB\n"
)
READY = (
    "44:25 | INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)\n"
    "44:27 | The server is fired up and ready to roll!\n"
)


def start(*, tokens: int = 409600, requests: int = 256, context: int = 8192, behind: str = "", **asked: object):
    said = f"43:55 | {args(**({'disable_cuda_graph': True, 'tp_size': 1} | asked))}\n"
    said += LOAD + LOADED + behind + KV.format(tokens) + POOL + CAPACITY.format(tokens, requests, context) + READY
    return hear(log(said), open_end=True).snapshot


def told(known):
    return [(warning.id, warning.asked, warning.got) for warning in known.warnings]


@pytest.mark.parametrize(
    ("asked", "got", "warned"),
    [
        ({"max_running_requests": 512}, {"requests": 256}, ("short.max_running_requests", 512, 256)),
        ({"context_length": 32768}, {"context": 8192}, ("short.context_length", 32768, 8192)),
        ({"max_total_tokens": 900000}, {"tokens": 409600}, ("short.max_total_tokens", 900000, 409600)),
        ({"context_length": 8192}, {"tokens": 4096}, ("short.kv_cache", 8192, 4096)),
        ({"kv_cache_dtype": "fp8_e4m3"}, {}, ("short.kv_cache_dtype", "fp8_e4m3", "bfloat16")),
        ({"speculative_algorithm": "EAGLE3"}, {}, ("short.draft", "EAGLE3", "no draft")),
    ],
)
def test_less_than_was_asked_is_degraded_and_said_with_both_numbers(asked, got, warned):
    known = start(**asked, **got)
    assert told(known) == [warned]
    assert (known.outcome, known.verdict.state) == (Outcome.READY, VerdictState.DEGRADED)
    numbers = [str(part) for part in warned[1:] if part != "no draft"]
    assert all(number in known.warnings[0].message for number in numbers)
    assert known.warnings[0].message.rstrip(".")[1:] in known.verdict.because


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        ({"max_running_requests": 512, "dp_size": 4}, {"requests": 128}),  # each replica takes its part
        ({"max_running_requests": None, "context_length": None, "max_total_tokens": None}, {}),
        ({"kv_cache_dtype": "auto"}, {}),
        ({"kv_cache_dtype": "bf16"}, {}),
        ({"speculative_algorithm": "NGRAM"}, {}),
        ({"context_length": 8192}, {"context": 8192}),
    ],
)
def test_what_was_asked_and_given_is_ready(asked, got):
    known = start(**asked, **got)
    assert (told(known), known.verdict.state) == ([], VerdictState.READY)


def test_a_cache_smaller_than_the_models_own_context_is_said_and_not_degraded():
    known = start(context=131072, tokens=46611)
    assert told(known) == [("short.kv_cache", None, 46611)]
    assert known.verdict.state is VerdictState.READY


def test_a_shard_that_is_missing_is_told_where_the_files_names_count_them():
    file = " | model-00001-of-00064.safetensors: 100%|██████████| 4.98G/4.98G [00:45<00:00, 118MB/s]\n"
    bar = " | Loading safetensors checkpoint shards: 100% Completed | {0}/{0} [00:05<00:00, 10.2it/s]\n"
    said = f"43:55 | {args(tp_size=1, disable_cuda_graph=True)}\n" + LOAD + file
    known = hear(log(said + bar.format(63) + LOADED + READY), open_end=True).snapshot
    assert told(known) == [("short.shards", 64, 63)]
    assert told(hear(log(said + bar.format(64) + LOADED + READY), open_end=True).snapshot) == []


def test_graphs_that_were_switched_off_by_the_engine_are_told_with_its_reason():
    off = "44:23 | Disable piecewise CUDA graph due to existing compilation errors\n"
    known = start(behind=off, disable_cuda_graph=False)
    assert told(known) == [("short.cuda_graphs", "CUDA graphs", "none")]
    assert "due to existing compilation errors" in known.verdict.because
    assert told(start(behind=off, disable_cuda_graph=True)) == []
    assert told(start(disable_cuda_graph=False)) == []
