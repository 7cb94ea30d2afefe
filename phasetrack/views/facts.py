"""Facts in words: which are shown first, what they are called, and how their values are printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from phasetrack.views.words import size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from phasetrack.core.model import Value

# Facts in the order in which people ask for them: (fact, title)
_SHOWN = (
    ("model_path", "model"), ("quantization", "quantization"), ("dtype", "dtype"), ("load_format", "load format"),
    ("tp_size", "tp"), ("pp_size", "pp"), ("dp_size", "dp"), ("ep_size", "ep"), ("nnodes", "nodes"),
    ("node_rank", "node rank"), ("speculative_algorithm", "draft"), ("speculative_draft_model_path", "draft model"),
    ("attention_backend", "attention"), ("disaggregation_mode", "disaggregation"), ("weights_bytes", "weights"),
    ("draft_weights_bytes", "draft weights"), ("kv_tokens", "KV tokens"), ("kv_bytes", "KV size"),
    ("max_total_tokens", "max tokens"), ("max_running_requests", "max requests"), ("context_len_tokens", "context"),
    ("mem_fraction_static", "mem fraction"), ("graph_mem_bytes", "graph memory"),
    ("available_gpu_mem_bytes", "free GPU memory"), ("url", "url"),
)  # fmt: skip
_PARALLEL = {"tp_size", "pp_size", "dp_size", "ep_size", "nnodes"}
_DEFAULTS: dict[str, Value] = {
    "node_rank": 0, "disaggregation_mode": "null", "dtype": "auto", "load_format": "auto",
}  # fmt: skip
_TITLES = dict(_SHOWN) | {
    "avail_mem_bytes": "free memory before the load", "after_load_bytes": "free memory after the load",
    "after_pool_bytes": "free memory after the KV cache", "kv_k_bytes": "KV keys", "kv_v_bytes": "KV values",
    "host_ram_bytes": "host memory", "checkpoint_bytes": "checkpoint", "kv_upper_tokens": "KV tokens at most",
    "kv_budget_bytes": "KV budget", "context_length": "context",
}  # fmt: skip
_UNITS = ("_bytes", "_tokens", "_count")


def shown_facts(facts: Mapping[str, Value]) -> list[tuple[str, str]]:
    """List the facts that people ask for: (title, value in words), in their order."""
    pairs = [(title, fact_text(key, facts[key])) for key, title in _SHOWN if facts.get(key) is not None]
    return [(title, text) for title, text in pairs if text]


def fact_title(key: str) -> str:
    """Name a fact: ``KV tokens`` for ``kv_tokens``; one without a name of its own by its key in words."""
    if key in _TITLES:
        return _TITLES[key]
    if key.startswith("draft_") and key.removeprefix("draft_") in _TITLES:
        return f"draft {_TITLES[key.removeprefix('draft_')]}"
    plain = next((key.removesuffix(unit) for unit in _UNITS if key.endswith(unit)), key)
    return re.sub(r"\bkv\b", "KV", plain.replace("_", " "))


def fact_text(key: str, value: Value) -> str:
    """Print a fact's value; empty where it says nothing, as a single rank or a default does."""
    if (key in _PARALLEL and value == 1) or (key in _DEFAULTS and value == _DEFAULTS[key]):
        return ""
    if value is None:
        return "unknown"
    if key.endswith("_bytes") and isinstance(value, int):
        return "" if value < 0 else size(value)  # free memory that came back while graphs were recorded
    return f"{value:,}" if isinstance(value, int) and key.endswith(("tokens", "requests")) else str(value)
