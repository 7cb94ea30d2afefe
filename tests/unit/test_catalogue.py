"""Every kind of failure of the shipped packs, through the whole pipeline: what is one, and what nearly is.

The lines are the packs' own samples. Each is printed by several ranks at once, their tracebacks put into each other
at random, among the lines of a start.
"""

from __future__ import annotations

import re
from random import Random

import pytest

from phasetrack.core.model import Role, Where
from phasetrack.core.prefix import Learned, parse
from phasetrack.core.redact import redact
from tests.storms import HEAD, Writer, in_pieces, shuffled, traceback
from tests.talk import args, hear, patterns

# That somebody stopped it is no failure: test_blame asks for it.
RULES = [rule for rule in patterns().rules if rule.role is Role.FAILURE and rule.id != "sglang.interrupted"]
RANKS = ["TP0", "TP1", "TP2", "TP3"]
PREAMBLE = {
    "sglang": [
        "[2026-11-30 15:43:55] " + args(tp_size=4, mem_fraction_static=0.8, nnodes=1),
        *(f"[2026-11-30 15:44:13 {rank}] Load weight begin. avail mem=79.10 GB" for rank in RANKS),
    ],
    "vllm": [
        "INFO 11-30 15:43:55 [api_server.py:1000] vLLM API server version 0.9.0",
        "INFO 11-30 15:44:13 [gpu_model_runner.py:1500] Starting to load model /srv/models/m...",
    ],
}
SAMPLES = [(rule, sample) for rule in RULES for sample in rule.must_match if rule.engine == "sglang"]
NEAR_MISSES = [(rule, sample) for rule in RULES for sample in rule.must_not_match if rule.engine == "sglang"]
UNFILLED = re.compile(r"\{\w+\}|unknown[,.)]")


def name(pair) -> str:
    return f"{pair[0].id}: {pair[1][:60]}"


def exception_log(text: str, random: Random) -> list[str]:
    lines = traceback(random, 30, text)
    weave = shuffled if random.random() < 0.5 else in_pieces
    return weave(random, [Writer(rank, lines) for rank in RANKS])


def told(lines: list[str], engine: str = "sglang"):
    """The snapshot of a start that goes on with these lines."""
    return hear("\n".join([*PREAMBLE[engine], *lines]) + "\n", open_end=True).snapshot


@pytest.mark.parametrize("pair", SAMPLES, ids=name)
def test_each_kind_is_told_with_its_cause_and_remedy_whichever_way_ranks_are_mixed(pair):
    rule, sample = pair
    random = Random(sample)
    if rule.where is Where.EXCEPTION:
        lines = exception_log(sample, random)
    elif rule.where is Where.CLUE:
        lines = [sample, f"[2026-11-30 15:44:20 TP1] {HEAD}", *traceback(random, 20, "")[:-1]]
    else:
        lines = [sample]
    known = told(lines)
    failure = known.failure
    if rule.where is Where.ECHO and not rule.fatal:
        assert failure is None
        return
    assert failure is not None
    assert failure.id == rule.id
    assert failure.cause
    assert failure.remedy
    assert UNFILLED.search(failure.cause + failure.remedy) is None, failure.cause + failure.remedy
    assert failure.secondary is (rule.secondary or rule.where is Where.ECHO)
    if rule.where is Where.EXCEPTION:
        assert failure.message.startswith(redact(sample[:600]))  # one without a text has its place behind it
        assert (failure.fatal, failure.phase) == (True, "target_load")
        assert failure.ranks == tuple(RANKS)
    assert failure.fatal is (rule.fatal or rule.where is Where.CLUE)


@pytest.mark.parametrize("pair", NEAR_MISSES, ids=name)
def test_what_is_nearly_of_a_kind_is_told_otherwise_or_not_at_all(pair):
    rule, sample = pair
    message = parse(sample, Learned())[1]
    is_exception = rule.where is Where.EXCEPTION and message == sample
    known = told(exception_log(sample, Random(sample)) if is_exception else [sample])
    assert known.failure is None or known.failure.id != rule.id


@pytest.mark.parametrize("seed", range(4))
def test_the_root_wins_over_what_others_say_of_it_whatever_the_order(seed):
    random = Random(seed)
    closed = "RuntimeError: [/gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.0.0.6]:15006"
    root = "safetensors_rust.SafetensorError: Error while deserializing header: InvalidHeaderDeserialization"
    own = [Writer("TP2", traceback(random, 30, root)), Writer("TP0", traceback(random, 24, closed))]
    own += [Writer(rank, own[1].lines) for rank in ("TP1", "TP3")]
    random.shuffle(own)
    known = told(in_pieces(random, own, 100_000))
    assert (known.failure.id, known.failure.rank) == ("sglang.fail.safetensors", "TP2")
    assert known.failure.echoes[0].startswith("TP0, TP1, TP3: ")


def test_a_vllm_failure_is_told_in_vllms_words():
    trace = ["Traceback (most recent call last):", '  File "<frozen runpy>", line 198, in _run_module_as_main']
    trace += ["    return _run_code(code)", '  File "/opt/site/vllm/engine/core.py", line 5, in run', "    raise X"]
    full = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB"
    )
    failure = told([*trace, full], "vllm").failure
    assert failure.id == "vllm.fail.cuda_oom"
    assert "mem-fraction-static" not in failure.cause + failure.remedy
