"""What starts took elsewhere: the figures to begin with, before this machine has a history.

From 186 public logs (89 SGLang, 97 vLLM, 16 repositories, 2024 to 2026), by size of the model; typical seconds
and how far apart starts lie, as the standard deviation of log-seconds. They are wide because they must be: half
of the starts are one team's Ascend machines, most others one GPU, and no log tells what disk it read from. An
answer that rests on these alone is marked as ``prior``.
"""

from __future__ import annotations

from typing import NamedTuple

SOURCE = "public starts of this size"

SIZES = ("small", "medium", "large", "huge")


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
    "kv_cache": (Figure(0.5, 0.9, 30), Figure(0.6, 1.0, 12), Figure(0.6, 1.0, 8), Figure(0.7, 1.0, 24)),
    "draft_kv": (Figure(0.5, 0.9, 4), Figure(0.6, 1.0, 8), Figure(0.6, 1.0, 8), Figure(0.7, 1.0, 21)),
    # 6-30 s where kernels are compiled already; 219 and 391 s where not
    "target_graph": (Figure(12, 0.80, 30), Figure(32, 0.80, 12), Figure(34, 0.70, 8), Figure(45, 0.90, 24)),
    "draft_graph": (Figure(3, 0.8, 4), Figure(16, 0.7, 8), Figure(16, 0.7, 8), Figure(9, 0.7, 21)),
    "http_up": (Figure(0.6, 0.7, 30), Figure(0.6, 0.7, 12), Figure(0.6, 0.7, 8), Figure(0.8, 1.0, 24)),
    # kernels compile in the first request: Ascend takes 17-43 s for any size
    "warmup": (Figure(1.6, 0.9, 30), Figure(3, 1.0, 2), Figure(4, 1.0, 0), Figure(5, 1.0, 3)),
}

_WARMUP_ON_ASCEND = Figure(27, 0.30, 41)
# A draft of its own loads in seconds; one inside the target's checkpoint reads all of it again (84-174 s).
_OWN_DRAFT = (Figure(1.2, 0.8, 4), Figure(2.0, 0.9, 9), Figure(2.0, 0.7, 8), Figure(3.0, 0.9, 1))
_INNER_DRAFT_SHARE, _INNER_DRAFT_SPREAD = 0.33, 0.7
# Joining over several nodes waits for the slowest of them.
_NODES_DIST_INIT = Figure(5, 1.4, 21)

# What no phase claims, behind each phase: 15 % of the time of small starts.
GAP = Figure(0.6, 0.9, 89)
# After the last capture the main process wakes up, and with several tokenizer workers waits for the slowest.
GAPS = {"draft_graph": Figure(1.5, 1.1, 21), "target_graph": Figure(1.0, 0.8, 60), "target_load": Figure(1.0, 1.0, 60)}
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

    size: str = "small"
    ascend: bool = False
    nodes: int = 1
    own_draft: bool = True
    workers: int = 1
    eager: bool = False


def figure(phase: str, shape: Shape) -> Figure:
    """The shipped figure of a phase."""
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
