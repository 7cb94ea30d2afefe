"""Ranks that fail at once: tracebacks in Python's form, and the ways in which pipes put them into each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

HEAD = "Scheduler hit an exception: Traceback (most recent call last):"
DURING = ["During handling of the above exception, another exception occurred:", "Traceback (most recent call last):"]
ADVICE = [
    "Possible solutions:",
    "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
    "2. set --cuda-graph-max-bs to a smaller value (e.g., 16)",
]

# Calls of a start that a traceback goes through, and torch's module calls between layers.
_CALLS = (
    "init_model_worker", "init_tp_model_worker", "_init_model_runner", "initialize", "init_device_graphs", "capture",
    "_capture_one_stream", "capture_one_batch_size", "run_once", "forward_decode", "set_kv_buffer", "calibrate",
)  # fmt: skip
_MODULE = (
    ("module.py", 1775, "_wrapped_call_impl", "return self._call_impl(*args, **kwargs)"),
    ("module.py", 1786, "_call_impl", "return forward_call(*args, **kwargs)"),
)


@dataclass(frozen=True)
class Writer:
    """One rank, what stands on its stamped first line, and the untagged lines behind it."""

    rank: str
    lines: list[str]
    head: str = HEAD
    clock: str = "15:44:20"

    @property
    def printed(self) -> list[str]:
        """Its record as it is printed."""
        return [f"[2026-11-30 {self.clock} {self.rank}] {self.head}", *self.lines]


def frames(random: Random, count: int, *, marks: bool = False, package: str = "sglang/srt") -> list[str]:
    """So many lines of frames, each calling the next: a stack as deep as a model's."""
    lines: list[str] = []
    name = "run_scheduler_process"
    depth = 0

    def call(path: str, line: int, source: str) -> None:
        lines.append(f'  File "/opt/site/{path}", line {line}, in {name}')
        lines.append(f"    {source}")
        if marks:
            lines.append("    " + "^" * len(source))

    while len(lines) < count:
        depth += 1
        if depth % 4 == 0:
            call(f"{package}/models/layer{depth}.py", random.randrange(100, 4000), f"hidden = self.part{depth}(")
            for path, line, passing, source in _MODULE:
                name = passing
                call(f"torch/nn/modules/{path}", line, source)
            name = "forward"
        else:
            following = f"{random.choice(_CALLS)}_{depth}"
            call(f"{package}/managers/part{depth}.py", random.randrange(100, 4000), f"self.{following}()")
            name = following
    return lines


def traceback(random: Random, count: int, exception: str, *, marks: bool = False) -> list[str]:
    """A traceback of about so many lines behind its header."""
    return [*frames(random, count - 1, marks=marks), exception]


def chained(random: Random, count: int, root: str, wrapper: str, *, marks: bool = False) -> list[str]:
    """A root, what wrapped it, and the advice behind."""
    first = traceback(random, count // 2, root, marks=marks)
    return [*first, *DURING, *traceback(random, count // 2, wrapper, marks=marks), *ADVICE]


def shuffled(random: Random, writers: list[Writer]) -> list[str]:
    """Line by line at random, each writer's own order kept: the worst that a pipe could do."""
    order = [k for k, writer in enumerate(writers) for _ in writer.printed]
    random.shuffle(order)
    lines = [iter(writer.printed) for writer in writers]
    return [next(lines[k]) for k in order]


def in_pieces(random: Random, writers: list[Writer], size: int = 8192) -> list[str]:
    """In pieces of whole lines of about so many bytes, as Python writes a long record."""
    pieces: list[list[list[str]]] = []
    for writer in writers:
        own: list[list[str]] = [[]]
        for line in writer.printed:
            if own[-1] and sum(map(len, own[-1])) + len(line) > size:
                own.append([])
            own[-1].append(line)
        pieces.append(own)
    order = [k for k, own in enumerate(pieces) for _ in own]
    random.shuffle(order)
    left = [iter(own) for own in pieces]
    return [line for k in order for line in next(left[k])]
