"""What starts took elsewhere: the figures to begin with, before this machine has a history.

From 186 public logs (89 SGLang, 97 vLLM, 16 repositories, 2024 to 2026), by size of the model; typical seconds
and how far apart starts lie, as the standard deviation of log-seconds. They are wide because they must be: half
of the starts are one team's Ascend machines, most others one GPU, and no log tells what disk it read from. An
answer that rests on these alone is marked as ``prior``. The figures are SGLang's: of another engine they speak of
the loads only, which read the same files. A load is judged where the size of the model is known.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core.state import LOADS

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = ("small", "medium", "large", "huge")
_OF_SIZE = {
    "small": "of models under 16B", "medium": "of models of 16B to 130B", "large": "of models of 130B to 300B",
    "huge": "of models of 300B and more", "any": "of any size",
}  # fmt: skip
# How likely each size is where nothing tells it, by the number of cards; before even these are known about as often
# as seen, one team's many starts of the largest counted less.
_LIKELY = ((1, (0.85, 0.15, 0.0, 0.0)), (7, (0.45, 0.5, 0.05, 0.0)), (8, (0.1, 0.3, 0.3, 0.3)))
_LIKELY_BEYOND, _LIKELY_EVER = (0.0, 0.1, 0.3, 0.6), (0.55, 0.25, 0.1, 0.1)
SGLANG = "sglang"


class Figure(NamedTuple):
    """Seconds of one phase: the typical, its spread in log-seconds, and the starts behind it."""

    typical_s: float
    spread: float
    n: int


# phase -> figures for small (under 16 billion parameters), medium, large and huge models (300 and more)
_PHASES: dict[str, tuple[Figure, Figure, Figure, Figure]] = {
    # imports and child processes: 6-28 s whatever the model
    "bootstrap": (Figure(13, 0.40, 30), Figure(16, 0.40, 12), Figure(20, 0.35, 8), Figure(20, 0.35, 24)),
    "download": (Figure(60, 1.2, 0), Figure(300, 1.2, 0), Figure(900, 1.2, 0), Figure(1800, 1.2, 0)),
    # one card joins at once; between nodes up to 234 s
    "dist_init": (Figure(0.4, 1.0, 30), Figure(1.5, 1.2, 12), Figure(3, 1.0, 8), Figure(3.5, 1.2, 24)),
    # 3 s from memory, 65-240 s for 30-80B, 200-900 s for the largest, 4168 s from a network disk
    "target_load": (Figure(5, 0.85, 30), Figure(75, 0.90, 14), Figure(240, 0.70, 8), Figure(280, 0.85, 24)),
    "kv_cache": (Figure(0.3, 0.9, 30), Figure(0.4, 1.0, 12), Figure(0.4, 1.0, 8), Figure(0.4, 1.0, 24)),
    "draft_kv": (Figure(0.3, 0.9, 4), Figure(0.3, 0.9, 8), Figure(0.3, 0.9, 8), Figure(0.3, 0.9, 21)),
    # 6-30 s where kernels are compiled already; 219 and 391 s where not
    "target_graph": (Figure(12, 0.80, 30), Figure(32, 0.80, 12), Figure(34, 0.70, 8), Figure(45, 0.90, 24)),
    "draft_graph": (Figure(3, 0.8, 4), Figure(16, 0.7, 8), Figure(16, 0.7, 8), Figure(9, 0.7, 21)),
    # uvicorn binds its port within the second in 32 of 33 starts
    "http_up": (Figure(0.3, 0.5, 30), Figure(0.3, 0.5, 12), Figure(0.3, 0.5, 8), Figure(0.3, 0.5, 24)),
    # kernels compile in the first request: Ascend takes 17-43 s for any size
    "warmup": (Figure(1.6, 0.9, 30), Figure(3, 1.0, 2), Figure(4, 1.0, 0), Figure(5, 1.0, 3)),
}

# A capture with filled caches and one with empty ones: small models 2-20 s where kernels are compiled already, 32-70 s
# where not; larger ones 13-40 s, and 219 and 391 s. Ascend compiles in each start: one kind (24-72 s).
_FILLED = (Figure(9, 0.6, 17), Figure(25, 0.6, 9), Figure(30, 0.6, 8), Figure(36, 0.6, 20))
_EMPTY = (Figure(45, 0.6, 5), Figure(120, 0.8, 1), Figure(150, 0.8, 0), Figure(200, 0.8, 1))
# How many starts compile, where nothing is known of the machine: 7 of 25.
COLD_SHARE = 0.25
# The first size of a capture takes 0-7 s where kernels are found, 11-114 s where they are compiled.
FIRST_SIZE = Figure(3.0, 0.8, 18)

_WARMUP_ON_ASCEND = Figure(27, 0.30, 41)
# A draft of its own loads in seconds; one inside the target's checkpoint reads all of it again (84-174 s).
_OWN_DRAFT = (Figure(1.2, 0.8, 4), Figure(2.0, 0.9, 9), Figure(2.0, 0.7, 8), Figure(3.0, 0.9, 1))
_INNER_DRAFT_SHARE, _INNER_DRAFT_SPREAD = 0.33, 0.7
# Joining over several nodes waits for the slowest of them.
_NODES_DIST_INIT = Figure(5, 1.4, 21)

# vLLM's "Profile and KV cache" runs the model once and compiles it: 19 and 38 s in two starts of 8B.
_OTHER_KV = Figure(22, 0.9, 2)

# What no phase claims, behind each phase: 15 % of the time of small starts.
GAP = Figure(0.4, 0.9, 89)
# After the last capture the main process wakes up, and with several tokenizer workers waits for the slowest. Before
# its first request to itself a server sleeps for one second.
GAPS = {
    "dist_init": Figure(0.7, 0.7, 49), "target_load": Figure(0.5, 1.1, 45), "target_graph": Figure(0.8, 0.7, 27),
    "draft_graph": Figure(1.0, 1.1, 9), "http_up": Figure(1.0, 0.3, 33),
}  # fmt: skip
_WORKERS_GAP = Figure(12, 0.7, 2)
_EAGER_GAP = Figure(3, 1.4, 4)

# Before its first line a server imports for 11-17 s (18 recorded starts).
SILENT_START = Figure(14, 0.25, 18)

# Shares of a phase with bars: before the first bar, the bar, after it. Of 101 loads the work after a full bar
# was 15 % in the middle and half of the load in one of ten.
BAR_SHARES = {"target_load": (0.04, 0.80, 0.16), "draft_load": (0.08, 0.80, 0.12)}
OTHER_BAR_SHARES = (0.02, 0.80, 0.18)
LEAD_SPREAD, TAIL_SPREAD = 1.2, 1.3


class Shape(NamedTuple):
    """What of a start decides which figures apply."""

    size: str = "any"  # of SIZES, or any: not known
    cards: int = 0  # 0: not known
    engine: str = SGLANG
    ascend: bool = False
    nodes: int = 1
    own_draft: bool = True
    workers: int = 1
    eager: bool = False


def figure(phase: str, shape: Shape) -> Figure:
    """The shipped figure of a phase."""
    if phase == "kv_cache" and shape.engine != SGLANG:
        return _OTHER_KV
    if shape.size == "any":
        return _blend(lambda k: figure(phase, shape._replace(size=SIZES[k])), shape)
    k = SIZES.index(shape.size)
    if phase == "warmup" and shape.ascend:
        return _WARMUP_ON_ASCEND
    if phase == "dist_init" and shape.nodes > 1:
        return _NODES_DIST_INIT
    if phase == "draft_load":
        if shape.own_draft:
            return _OWN_DRAFT[k]
        target = _PHASES["target_load"][k]
        return Figure(target.typical_s * _INNER_DRAFT_SHARE, _INNER_DRAFT_SPREAD, 21)
    return _PHASES.get(phase, (GAP, GAP, GAP, GAP))[k]


def captures(shape: Shape) -> tuple[Figure, Figure] | None:
    """The figures of a capture with filled caches and with empty ones; None where it is of one kind."""
    if shape.engine != SGLANG or shape.ascend:
        return None
    if shape.size == "any":
        return _blend(_FILLED.__getitem__, shape), _blend(_EMPTY.__getitem__, shape)
    k = SIZES.index(shape.size)
    return _FILLED[k], _EMPTY[k]


def _blend(of_size: Callable[[int], Figure], shape: Shape) -> Figure:
    """One wide figure for a start of unknown size."""
    ones = [
        (weight, of_size(SIZES.index(size))) for size, weight in zip(SIZES, _likely(shape.cards), strict=True) if weight
    ]
    middle = sum(weight * log(one.typical_s) for weight, one in ones)
    square = sum(weight * (one.spread**2 + (log(one.typical_s) - middle) ** 2) for weight, one in ones)
    return Figure(exp(middle), sqrt(square), sum(one.n for one in {one for _, one in ones}))


def _likely(cards: int) -> tuple[float, ...]:
    if not cards:
        return _LIKELY_EVER
    return next((weights for most, weights in _LIKELY if cards <= most), _LIKELY_BEYOND)


def speaks_of(phase: str, shape: Shape) -> bool:
    """Whether a phase of such a start can be judged by the shipped figures."""
    if phase in LOADS:
        return shape.size != "any"
    return shape.engine == SGLANG


def starts(shape: Shape) -> str:
    """Which starts the figures are of."""
    engine = "" if shape.engine == SGLANG else "of SGLang "
    return f"public starts {engine}{_OF_SIZE[shape.size]}"


def source(shape: Shape) -> str:
    """The same with their number."""
    return f"{starts(shape)}, n = {figure('target_load', shape).n}"


def gap(phase: str, shape: Shape) -> Figure:
    """The shipped figure of what follows a phase before the next one begins."""
    if shape.workers > 1 and phase in {"draft_graph", "http_up"}:
        return _WORKERS_GAP
    if shape.eager and phase in {"kv_cache", "draft_kv"}:
        return _EAGER_GAP
    return GAPS.get(phase, GAP)


def shares(phase: str) -> tuple[float, float, float]:
    """Shares of a phase before, in and after its bar."""
    return BAR_SHARES.get(phase, OTHER_BAR_SHARES)
