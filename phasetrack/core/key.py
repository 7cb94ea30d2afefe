"""Which boots are alike: the key of a boot from its facts, with levels to fall back to.

The key must stand as soon as ``server_args`` is read, and must not change while the boot goes on; so it is
made of arguments alone. What else tells machines apart (the GPU) is kept beside it and only ever sets likeness
back. The engine prints its version nowhere: the set of its argument names stands for it, which changes with
nearly every release (381 names in 0.5.12, 450 in 0.5.16).
"""

from __future__ import annotations

import re
import zlib
from enum import IntEnum
from typing import TYPE_CHECKING

from phasetrack.core.model import BootKey
from phasetrack.core.plan import number
from phasetrack.core.shipped import SGLANG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from phasetrack.core.model import Snapshot, Value


class Level(IntEnum):
    """How alike a past boot is; the smaller, the more."""

    EXACT = 0
    RELEASE = 1
    FAMILY = 2
    MODEL = 3
    SIZE = 4
    MACHINE = 5
    ANY = 6


# Two GPUs whose free memory differs by more are not the same model.
_SAME_GPU_RATIO = 1.15

# models--Qwen--Qwen3-32B/snapshots/9216db57… of the hub's cache
_HUB = re.compile(r"models--(?:[^/]+--)?(?P<name>[^/]+)/snapshots/(?P<revision>[0-9a-f]{7,40})")
# 32B, 1.5b, 235B-A22B (the first number counts), 8x7B
_BILLIONS = re.compile(r"(?<![\w.])(?:(?P<times>\d+)x)?(?P<size>\d+(?:\.\d+)?)b(?![a-z0-9])")
# Words of a name that change neither its size nor its speed to load.
_SUFFIX = re.compile(
    r"-(?:instruct|chat|base|thinking|it|hf|preview|\d{4}|w\d+a\d+\w*|fp8|fp4|nvfp4|mxfp4|bf16|int4|int8|awq|gptq)(?=-|$)"
)
# Names that hold no size (their model cards): total parameters in billions.
_NAMED_BILLIONS = (
    ("deepseek-v2-lite", 16), ("deepseek-v2", 236), ("deepseek-v3", 671), ("deepseek-r1", 671),
    ("deepseek-v4-flash", 280), ("deepseek-v4", 1000), ("kimi-k2", 1000), ("kimi-vl", 16), ("glm-4.5-air", 106),
    ("glm-4", 355), ("glm-5", 744), ("llama-4-scout", 109), ("llama-4-maverick", 400), ("grok", 300),
    ("minimax", 230), ("qwq", 32), ("laguna-s", 110),
)  # fmt: skip
_SMALL, _MEDIUM, _LARGE = 16.0, 130.0, 300.0
# Between 16-bit and 8-bit weights.
_BYTES_A_BILLION = 1.5e9


def key_of(known: Snapshot) -> BootKey | None:
    """The key of the shown boot; None while its arguments are not known."""
    args = known.facts.get("server_args")
    if not isinstance(args, dict) or not args:
        return None
    gpu = next((sample.name for sample in known.evidence.gpus if sample.name), "") if known.evidence else ""
    memory = known.facts.get("avail_mem_bytes")
    engine = "" if known.engine is None else known.engine.name
    return key_of_args(args, engine=engine, gpu=gpu, gpu_bytes=memory if isinstance(memory, int) else None)


def key_of_args(args: Mapping[str, Value], *, engine: str = "", gpu: str = "", gpu_bytes: int | None = None) -> BootKey:
    """The key from ``server_args``; equal arguments of one engine give equal keys."""
    whose = "" if engine in {"", SGLANG} else f"{engine} "  # no name of a model holds a space
    name, revision = model_name(args)
    axes = _axes(args)
    draft = _draft(args, name)
    extra = str(args.get("model_loader_extra_config") or "")
    loader = f"{args.get('load_format') or 'auto'} {extra if extra != '{}' else ''}".strip()
    release = whose + "|".join(
        (name, revision, str(args.get("quantization") or ""), axes, draft, _switches(args), loader)
    )
    graphs = _digest(
        str(args.get("cuda_graph_bs") or ""), str(args.get("cuda_graph_max_bs") or ""), ",".join(sorted(args))
    )
    cards = cards_of(args)
    has_draft = "draft" if draft else "plain"
    return BootKey(
        exact=f"{release}|{graphs}",
        release=release,
        family=f"{whose}{family(name)}|{cards}|{number(args, 'nnodes', 1)}|{has_draft}",
        size=f"{whose}{size_class(args)}|{device(args)}",
        gpu=gpu,
        gpu_bytes=gpu_bytes,
    )


def likeness(key: BootKey, past: BootKey) -> Level:
    """How alike a past boot is. Another GPU is alike in size at most, another engine in nothing."""
    if _engine_of(past) != _engine_of(key):
        return Level.ANY
    if past.exact == key.exact:
        level = Level.EXACT
    elif past.release == key.release:
        level = Level.RELEASE
    elif past.family == key.family:
        level = Level.FAMILY
    elif model_of(past) == model_of(key):
        level = Level.MODEL
    elif past.size == key.size:
        return Level.SIZE
    else:
        return Level.MACHINE if same_gpu(key, past) is True else Level.ANY
    return Level.SIZE if same_gpu(key, past) is False else level


def _engine_of(key: BootKey) -> str:
    return key.size.rpartition(" ")[0]


def model_of(key: BootKey) -> str:
    """The model's family alone, whatever it runs on."""
    return key.family.partition("|")[0]


def nodes_of(key: BootKey) -> int:
    """Over how many nodes a boot runs."""
    return int(key.family.split("|")[2])


def same_gpu(key: BootKey, past: BootKey) -> bool | None:
    """Whether two boots ran on the same model of GPU; None where that is not known."""
    if key.size.rpartition("|")[2] != past.size.rpartition("|")[2]:
        return False  # Ascend and not
    if key.gpu and past.gpu:
        return key.gpu == past.gpu
    if key.gpu_bytes and past.gpu_bytes:
        return max(key.gpu_bytes, past.gpu_bytes) <= _SAME_GPU_RATIO * min(key.gpu_bytes, past.gpu_bytes)
    return None


def model_name(args: Mapping[str, Value]) -> tuple[str, str]:
    """The model's own name and its revision, from a path or a hub name."""
    path = str(args.get("model_path") or "").rstrip("/")
    revision = str(args.get("revision") or "")
    if found := _HUB.search(path):
        return found["name"], revision or found["revision"][:12]
    return path.rpartition("/")[2], revision


def family(name: str) -> str:
    """``Qwen3-32B-Instruct-FP8`` and ``qwen3_32b`` are one family."""
    plain = re.sub(r"[\s_]+", "-", name.lower())
    return _SUFFIX.sub("", plain)


def billions(args: Mapping[str, Value]) -> float | None:
    """Parameters in all, in billions, by the model's name; None where it does not tell."""
    name = re.sub(r"[\s_]+", "-", model_name(args)[0].lower())
    found = _BILLIONS.search(name.replace("-", " "))
    if found:
        return float(found["size"]) * float(found["times"] or 1)
    return next((float(size) for start, size in _NAMED_BILLIONS if start in name), None)


def size_class(args: Mapping[str, Value], weights_bytes: int | None = None) -> str:
    """``small``, ``medium``, ``large`` or ``huge``.

    Args:
        args: the model's name tells its size; where not, the number of cards does.
        weights_bytes: what one rank has loaded; tells better than cards.
    """
    size = known_size(args, weights_bytes)
    cards = cards_of(args)
    if size is not None:
        return size
    return "small" if cards == 1 else "medium" if cards < 8 else "huge" if cards > 8 else "large"


def known_size(args: Mapping[str, Value], weights_bytes: int | None = None) -> str | None:
    """The same, where the model's name or its weights tell it; None where they do not."""
    size = billions(args)
    if size is None and weights_bytes is not None:
        size = weights_bytes * cards_of(args) / _BYTES_A_BILLION
    if size is None:
        return None
    limits = ((_SMALL, "small"), (_MEDIUM, "medium"), (_LARGE, "large"))
    return next((word for limit, word in limits if size < limit), "huge")


def cards_of(args: Mapping[str, Value]) -> int:
    """How many cards hold one copy of the model."""
    return number(args, "tp_size", 1) * number(args, "pp_size", 1)


def device(args: Mapping[str, Value]) -> str:
    """``npu`` for Ascend, else ``gpu``."""
    return "npu" if args.get("device") == "npu" or args.get("attention_backend") == "ascend" else "gpu"


def _axes(args: Mapping[str, Value]) -> str:
    worker = "w" if number(args, "node_rank", 0) > 0 else ""
    sizes = (number(args, f"{axis}_size", 1) for axis in ("tp", "pp", "dp", "ep"))
    return "x".join(map(str, sizes)) + f"x{number(args, 'nnodes', 1)}{worker}"


def _draft(args: Mapping[str, Value], name: str) -> str:
    algorithm = args.get("speculative_algorithm")
    if not algorithm:
        return ""
    path = str(args.get("speculative_draft_model_path") or "").rstrip("/").rpartition("/")[2]
    return f"{algorithm} {'' if path == name else path}".strip()


def has_own_draft(args: Mapping[str, Value]) -> bool:
    """Whether the draft is a checkpoint of its own (small), not a layer of the target's (reads it all again)."""
    path = str(args.get("speculative_draft_model_path") or "").rstrip("/")
    return bool(path) and path != str(args.get("model_path") or "").rstrip("/")


def _switches(args: Mapping[str, Value]) -> str:
    """Switches that add or remove phases."""
    words = [
        word
        for word in ("disable_cuda_graph", "enable_torch_compile", "skip_server_warmup", "enable_dp_attention")
        if args.get(word) is True
    ]
    mode = args.get("disaggregation_mode")
    words += [str(mode)] if mode not in {None, "null"} else []
    workers = number(args, "tokenizer_worker_num", 1)
    return " ".join([*words, *([f"workers {workers}"] if workers > 1 else [])])


def _digest(*texts: str) -> str:
    return f"{zlib.crc32('|'.join(texts).encode()):08x}"
