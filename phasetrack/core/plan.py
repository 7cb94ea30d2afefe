"""Facts to expectations: ``server_args`` to the phases that this start will go through.

Reads what the engine printed of its own arguments (``ServerArgs(…)``, from 0.5.22 a dict) without parsing it
as Python: the line is 15 kB, may be cut by a terminal, and ``ast`` takes milliseconds where this takes one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from phasetrack.core.lazy import later
from phasetrack.core.redact import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from phasetrack.core.model import Value

# model_path='x', … or 'model_path': 'x', …; a value may be quoted, bracketed, or bare up to the next key
# (the bare form is spelt so that no character is looked at twice: a line holds 380 arguments)
_QUOTED = r"'[^'\\]*+(?:\\.[^'\\]*+)*'|\"[^\"\\]*+(?:\\.[^\"\\]*+)*\""
# CudaGraphConfig(decode=PhaseConfig(backend='full', bs=[1, 2]), …): one value, whatever keys are inside
_WHOLE = r"[A-Z]\w{0,60}\((?>(?:[^()]++|\((?>(?:[^()]++|\([^()]*+\))*)\))*)\)"
_CALL = re.compile(
    rf"(?<!\w)(?P<key>[A-Za-z_]\w*)=(?P<value>(?:{_QUOTED}|{_WHOLE})(?=, [A-Za-z_]\w*=|\)?\Z)"
    r"|[^,]*?(?=\)?\Z)|[^,]*+(?:,(?! [A-Za-z_]\w*=)[^,]*?(?=,|\)?\Z))*)"
)
_DICT = later(
    rf"'(?P<key>[A-Za-z_]\w*)': (?P<value>(?:{_QUOTED})(?=, '[A-Za-z_]\w*': |\}}?\Z)"
    r"|[^,]*?(?=\}?\Z)|[^,]*+(?:,(?! '[A-Za-z_]\w*': )[^,]*?(?=,|\}?\Z))*)"
)
# SpeculativeConfig(method='eagle3', model='d', num_spec_tokens=3)
_NESTED = re.compile(r"\b(?P<name>[A-Z]\w{0,60}+)\((?>(?:[^()]|\([^()]{0,400}+\)){0,2000})\)")
_METHOD = re.compile(r"\bmethod='(?P<method>[^']*)'")
_INT = re.compile(r"[+-]?\d{1,18}\Z")
_FLOAT = re.compile(r"[+-]?\d{0,18}\.\d+(?:e[+-]?\d\d?)?\Z|[+-]?\d{1,18}e[+-]?\d\d?\Z")
_WORDS: dict[str, Value] = {"None": None, "True": True, "False": False}

# Drafts that are a model of their own (NGRAM is a lookup and loads nothing).
_DRAFTLESS = {"NGRAM", "NGRAM_GPU", "SUFFIX", "NONE"}


def parse_args(text: str) -> dict[str, Value]:
    """Read ``server_args``.

    Args:
        text: what follows ``server_args=``; it may end anywhere.

    Returns:
        Argument to value; numbers, booleans and None as such, everything else as redacted text. A last value
        that may have been cut is left out. Never raises.
    """
    text = redact(text).rstrip()
    pattern = _DICT if text.startswith("{") else _CALL
    start = text.find("(") + 1 if pattern is _CALL else 0
    values = {found["key"]: found["value"] for found in pattern.finditer(text, start)}
    if values and (text[-1] not in ")}" or _is_cut(next(reversed(values.values())))):
        values.popitem()
    return {key: _value(value) for key, value in values.items()}


def _is_cut(value: str) -> bool:
    return value[:1] in {"'", '"'} and (len(value) == 1 or value[-1] != value[0])


def parse_config(text: str, names: Mapping[str, str]) -> dict[str, Value]:
    """Read what an engine prints of its configuration, as ``parse_args`` reads arguments.

    Args:
        text: ``model='m', speculative_config=SpeculativeConfig(method='eagle3', model='d'), …``; a configuration
            inside stands for its method, or for its own name where it has none.
        names: the engine's names of arguments -> the names used here.
    """
    found = parse_args(f"({_NESTED.sub(_method, text)})")
    return {names.get(key, key): value for key, value in found.items()}


def _method(config: re.Match[str]) -> str:
    found = _METHOD.search(config[0])
    return repr(config["name"] if found is None else found["method"])


def _value(text: str) -> Value:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    return text


def has_draft(args: Mapping[str, Value]) -> bool | None:
    """Answer whether a draft model is due; None where the arguments do not tell."""
    if "speculative_algorithm" not in args:
        return None
    algorithm = args["speculative_algorithm"]
    return algorithm is not None and str(algorithm).upper() not in _DRAFTLESS


def number(args: Mapping[str, Value], key: str, default: int) -> int:
    """Read a whole number, or the default where it is not one."""
    value = args.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def is_worker_node(args: Mapping[str, Value]) -> bool:
    """Node 1 and above serve no HTTP and never print ready."""
    return number(args, "node_rank", 0) > 0


def expected_phases(args: Mapping[str, Value]) -> tuple[str, ...]:
    """List the phases to expect, in the usual order; empty where nothing is known.

    The order changed with the releases and is only a guess for rows that have not begun.
    """
    if not args:
        return ()
    draft = has_draft(args) is True
    graphs = args.get("disable_cuda_graph") is not True and args.get("disaggregation_mode") != "prefill"
    phases = ["bootstrap", "dist_init", "target_load"]
    phases += ["draft_load"] if draft else []
    phases += ["kv_cache"]
    phases += ["draft_kv"] if draft else []
    phases += ["target_graph"] if graphs else []
    phases += ["draft_graph"] if graphs and draft else []
    if not is_worker_node(args):
        phases += ["http_up"]
        phases += [] if args.get("skip_server_warmup") is True else ["warmup"]
    return (*phases, "ready")
