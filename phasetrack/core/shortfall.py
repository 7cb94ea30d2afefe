"""Ready, but not as asked: what a start got instead of what its arguments say, with both numbers.

Much of it SGLang says itself; those lines are warnings of the pack. Here is what only a comparison tells: the
arguments against the facts that the start printed. What no line tells cannot be told: a checkpoint that lacks a
shard loads without a word, unless the names of its files were printed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from phasetrack.core import plan
from phasetrack.core.model import Warned
from phasetrack.core.state import GRAPHS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import Value
    from phasetrack.core.state import Boot

# model-00012-of-00064.safetensors
_SHARD_OF = re.compile(r"-\d+-of-0*(\d{1,6})\.\w+")
# Arguments in which graphs are switched off on purpose.
_GRAPH_ARGS = ("cuda_graph_config", "cuda_graph_backend_decode", "cuda_graph_mode", "compilation_config")


def shortfalls(boot: Boot) -> Iterator[Warned]:
    """What is less, or other, than was asked for. To be called once the boot is ready."""
    if boot.headless:
        return
    yield from _capacity(boot)
    yield from _backend(boot)
    yield from _graphs(boot)
    yield from _draft(boot)
    yield from _shards(boot)


def _capacity(boot: Boot) -> Iterator[Warned]:
    replicas = max(plan.number(boot.args, "dp_size", 1), 1)
    asked, got = _number(boot.args.get("max_running_requests")), _number(boot.fact("max_running_requests"))
    if asked and got and got * replicas < asked and not _said(boot, "fewer_requests"):
        yield _less("max_running_requests", asked, got, f"at most {got * replicas} requests run at once, not {asked}")
    asked, got = _number(boot.args.get("context_length")), _number(boot.fact("context_len_tokens"))
    if asked and got and got < asked:
        yield _less("context_length", asked, got, f"the context is {got} tokens, not the {asked} of --context-length")
    asked, got = _number(boot.args.get("max_total_tokens")), _number(boot.fact("max_total_tokens"))
    if asked and got and got < asked and not _said(boot, "fewer_tokens"):
        yield _less("max_total_tokens", asked, got, f"the KV cache holds {got} tokens, not the {asked} asked for")
    length, got = _number(boot.fact("context_len_tokens")), _number(boot.fact("max_total_tokens"))
    if length and got and got < length:
        given = boot.args.get("context_length") is not None
        text = f"the KV cache holds {got} tokens, less than one request of full length ({length})"
        yield Warned("short.kv_cache", _sentence(text), None, 1, length if given else None, got)


def _backend(boot: Boot) -> Iterator[Warned]:
    asked, got = _word(boot.args.get("attention_backend")), _word(boot.fact("attention_backend"))
    if asked and got and asked != got:
        yield _less("attention_backend", asked, got, f"the attention backend is {got}, not {asked}")
    asked, got = _word(boot.args.get("kv_cache_dtype")), _word(boot.fact("kv_dtype"))
    if asked and got and asked != "auto" and not _short_type(got).startswith(_short_type(asked)):
        yield _less("kv_cache_dtype", asked, got, f"the KV cache is {got}, not {asked}")


def _graphs(boot: Boot) -> Iterator[Warned]:
    why = boot.fact("graph_off")
    if why is None or boot.args.get("disable_cuda_graph") is not False or any(map(boot.has, GRAPHS)):
        return
    if any("disabled" in str(boot.args.get(name, "")).lower() for name in _GRAPH_ARGS):
        return
    said = f"no CUDA graph was recorded ({why})"
    yield Warned("short.cuda_graphs", _sentence(said), None, 1, "CUDA graphs", "none")


def _draft(boot: Boot) -> Iterator[Warned]:
    """A draft that was asked for, in a start whose target's load was seen and no second one."""
    algorithm = boot.args.get("speculative_algorithm")
    due = "draft_load" in boot.plan and plan.has_draft(boot.args)
    loaded = boot.row("target_load")
    told = loaded is not None and any(span.end is not None and span.strong for span in loaded.spans.values())
    if due and told and not boot.has("draft_load") and not boot.has("draft_graph"):
        text = f"--speculative-algorithm is {algorithm}, but no draft was loaded"
        yield Warned("short.draft", _sentence(text), None, 1, str(algorithm), "no draft")


def _shards(boot: Boot) -> Iterator[Warned]:
    """Fewer files than their own names count. A bar that stops short proves nothing: pastes drop frames."""
    row, named = boot.row("target_load"), boot.shards_named
    for bar in row.bars if row is not None and named else ():
        if bar.unit == "shards" and bar.total is not None and bar.total < named:
            text = f"{bar.total:g} shards were loaded of a checkpoint of {named}: weights may be missing"
            yield Warned("short.shards", _sentence(text), bar.place.line, 1, named, int(bar.total))


def shards_named(desc: str) -> int:
    """How many shards a checkpoint has by the name of one of them; 0 where it is no such name."""
    found = _SHARD_OF.search(desc) if "-of-" in desc else None
    return 0 if found is None else int(found[1])


def _less(name: str, asked: Value, got: Value, text: str) -> Warned:
    return Warned(f"short.{name}", _sentence(text), None, 1, asked, got)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _said(boot: Boot, words: str) -> bool:
    """Whether the engine has said it itself."""
    return any(words in key for key in boot.warnings)


def _number(value: Value) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _word(value: Value) -> str:
    return value.lower().removeprefix("torch.") if isinstance(value, str) else ""


def _short_type(name: str) -> str:
    return name.replace("bfloat", "bf").replace("float", "fp")
