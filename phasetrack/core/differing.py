"""What differs between two boots beside their times, and which of it bears on which phase."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from phasetrack.core.model import Snapshot, Value

# Differ in every boot and explain nothing.
_VOLATILE = {"random_seed", "pid", "server_args", "boot_id", "nccl_port"}
_KINDS = ("version", "argument", "memory", "other")
# Below this, two sizes of memory are the same: free memory differs by as much from boot to boot.
_MEMORY_SHARE = 0.01

# Which arguments bear on which phase.
_BEARS = {
    "draft": re.compile(r"speculative|draft"),
    "graph": re.compile(r"^(?!speculative).*graph|torch_compile|piecewise|\bbs\b|compiler|attention_backend"),
    "load": re.compile(
        r"^(?!speculative|draft).*(?:model_path|load|quantization|dtype|revision|cpu_offload|weight)|^(?:tp|pp|ep)_size$"
    ),
    "kv": re.compile(r"mem_fraction|kv_cache|max_total_tokens|page_size|max_running_requests|hicache"),
    "init": re.compile(r"^(?:tp|pp|dp|ep)_size$|nnodes|dist_|nccl|all_reduce"),
    "warmup": re.compile(r"warmup|deep_gemm|attention_backend"),
    "bootstrap": re.compile(r"^dp_size$|tokenizer|nnodes|disaggregation"),
}
_OF_PHASE = {
    "bootstrap": ("bootstrap",), "download": ("load",), "dist_init": ("init",), "target_load": ("load",),
    "draft_load": ("draft",), "kv_cache": ("kv",), "draft_kv": ("draft",), "target_graph": ("graph",),
    "draft_graph": ("draft", "graph"), "warmup": ("warmup",), "http_up": (),
}  # fmt: skip
_SWITCHES = (
    "speculative_algorithm", "disable_cuda_graph", "disable_piecewise_cuda_graph", "enable_torch_compile",
    "skip_server_warmup", "model_path", "quantization", "load_format", "tp_size", "pp_size", "dp_size", "ep_size",
    "nnodes", "attention_backend", "mem_fraction_static",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact that differs."""

    name: str
    kind: str  # argument, version, memory, other
    a: Value
    b: Value
    one_sided: bool = False  # an argument that only one of them knows


def differing_facts(a: Snapshot, b: Snapshot) -> Iterator[FactChange]:
    """What differs: the version first, then arguments that both know, memory, the rest, what only one knows."""
    versions = version_of(a), version_of(b)
    if versions[0] != versions[1]:
        yield FactChange("version", "version", *versions)
    ours, theirs = _args(a), _args(b)
    # A boot of the history brings a few of its arguments only: what it lacks is no difference.
    arguments = list(_arguments_that_differ(ours, theirs)) if ours and theirs else []
    yield from (fact for fact in arguments if not fact.one_sided)
    named = {fact.name for fact in arguments}
    rest = [
        _fact(name, a.facts.get(name), b.facts.get(name), is_argument=name in ours or name in theirs)
        for name in sorted({*a.facts, *b.facts} - named)
    ]
    differing = [fact for fact in rest if fact is not None]
    yield from sorted(differing, key=lambda fact: _KINDS.index(fact.kind))
    yield from (fact for fact in arguments if fact.one_sided)


def _args(known: Snapshot) -> Mapping[str, Value]:
    given = known.facts.get("server_args")
    return given if isinstance(given, Mapping) else {}


def _arguments_that_differ(a: Mapping[str, Value], b: Mapping[str, Value]) -> Iterator[FactChange]:
    for name in sorted({*a, *b} - _VOLATILE):
        if a.get(name) != b.get(name):
            yield FactChange(name, "argument", a.get(name), b.get(name), one_sided=(name in a) != (name in b))


def _fact(name: str, a: Value, b: Value, *, is_argument: bool) -> FactChange | None:
    """One fact that is no argument; times are the phases' business."""
    if a == b or name in _VOLATILE or name.endswith("_s"):
        return None
    kind = "argument" if is_argument else "version" if name.endswith("version") else "other"
    kind = "memory" if name.endswith(("_bytes", "_tokens")) else kind
    if kind == "memory" and _close(a, b):
        return None
    return FactChange(name, kind, a, b)


def _close(a: Value, b: Value) -> bool:
    if not isinstance(a, int | float) or not isinstance(b, int | float):
        return False
    return abs(a - b) <= _MEMORY_SHARE * max(abs(a), abs(b))


def version_of(known: Snapshot) -> str | None:
    """The engine's version, or the range that its wording tells."""
    engine = known.engine
    if engine is None:
        return None
    low, high = engine.version_low, engine.version_high
    return engine.version or (None if low is None and high is None else f"{low or '…'} to {high or '…'}")


def arguments_for(phase: str, facts: Sequence[FactChange]) -> Iterator[str]:
    """Say which differing arguments bear on a phase, the weightiest first."""
    topics = [_BEARS[topic] for topic in _OF_PHASE.get(phase, ())]
    found = [
        fact
        for fact in facts
        if fact.kind == "argument" and not fact.one_sided and any(topic.search(fact.name) for topic in topics)
    ]
    # What follows from a switch needs no mention beside it.
    switches = [fact for fact in found if fact.name in _SWITCHES]
    for fact in sorted(switches or found, key=_weight)[:2]:
        yield f"{fact.name}: {_short(fact.a)} in A, {_short(fact.b)} in B"


def _weight(fact: FactChange) -> tuple[int, int, str]:
    """A switch says more than the list of sizes that follows from it."""
    rank = _SWITCHES.index(fact.name) if fact.name in _SWITCHES else len(_SWITCHES)
    return rank, len(str(fact.a)) + len(str(fact.b)), fact.name


def _short(value: Value) -> str:
    text = "unset" if value is None else str(value)
    return text if len(text) <= 48 else text[:47] + "…"
