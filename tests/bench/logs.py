"""Large logs for the benchmarks, made from the engine's message templates with a seed: the same every time.

Nothing of them is kept: a benchmark writes them to a temporary folder.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIB = 1 << 20
_START = datetime(2026, 11, 2, 8, 0, 0)  # noqa: DTZ001 - the log's own wall clock
# Fields of ServerArgs that stand in every such line; real ones have 350.
_FILLER = ", ".join(f"option_{k}={value}" for k, value in enumerate(["None", "False", "0.875", "'auto'", "8192"] * 24))


class Clock:
    """The log's own wall clock."""

    def __init__(self, start: datetime = _START) -> None:
        self.now = start

    def after(self, seconds: float) -> str:
        """A stamp so much later, without its end."""
        self.now += timedelta(seconds=seconds)
        return f"[{self.now:%Y-%m-%d %H:%M:%S}"


def boot(clock: Clock, rng: random.Random, *, ranks: int = 1, shards: int = 16, graphs: int = 12) -> str:
    """One start up to ready: about 10 kB with the default sizes."""
    tags = [f" TP{k}" if ranks > 1 else "" for k in range(ranks)]
    lines = [
        (
            f"{clock.after(12)}] server_args=ServerArgs(model_path='/srv/models/m', tp_size={ranks}, port=30000, "
            f"speculative_algorithm=None, random_seed={rng.randrange(1 << 30)}, {_FILLER})"
        ),
        *(f"{clock.after(0.2)}{tag}] Init torch distributed begin." for tag in tags),
        *(f"{clock.after(0.1)}{tag}] Init torch distributed ends. mem usage=0.10 GB" for tag in tags),
        *(f"{clock.after(0.1)}{tag}] Load weight begin. avail mem=138.42 GB" for tag in tags),
    ]
    lines += ["\r".join(_bar("Loading safetensors checkpoint shards", shards, rng, done="% Completed ")) + "\n"]
    clock.after(shards * 0.2)
    lines += [
        *(f"{clock.after(0.3)}{tag}] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, "
          f"avail mem=123.27 GB, mem usage=15.15 GB." for tag in tags),
        *(f"{clock.after(0.2)}{tag}] KV Cache is allocated. #tokens: 876234, K size: 53.48 GB, V size: 53.48 GB"
          for tag in tags),
        *(f"{clock.after(0.1)}{tag}] Memory pool end. avail mem=15.87 GB" for tag in tags),
        *(f"{clock.after(0.1)}{tag}] Capture cuda graph begin. This can take up to several minutes. avail mem=15.31 GB"
          for tag in tags),
        "\r".join(_bar("Capturing batches (bs=48 avail_mem=15.20 GB)", graphs, rng)) + "\n",
        *(f"{clock.after(0.1)}{tag}] Capture cuda graph end. Time elapsed: 8.21 s. mem usage=0.71 GB. "
          f"avail mem=14.60 GB." for tag in tags),
        (f"{clock.after(0.1)}{tags[0]}] max_total_num_tokens=876234, chunked_prefill_size=8192, "
         "max_prefill_tokens=16384, max_running_requests=2048, context_len=131072, available_gpu_mem=14.60 GB"),
        f"{clock.after(0.4)}] INFO:     Started server process [{rng.randrange(1, 99999)}]",
        f"{clock.after(0)}] INFO:     Waiting for application startup.",
        f"{clock.after(0.1)}] INFO:     Application startup complete.",
        f"{clock.after(0)}] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)",
        f'{clock.after(1)}] INFO:     127.0.0.1:52152 - "GET /model_info HTTP/1.1" 200 OK',
        (f"{clock.after(0.2)}{tags[0]}] Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, "
         "token usage: 0.00, #running-req: 0, #queue-req: 0, "),
        f'{clock.after(1.2)}] INFO:     127.0.0.1:52154 - "POST /generate HTTP/1.1" 200 OK',
        f"{clock.after(0)}] The server is fired up and ready to roll!",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def stop(clock: Clock) -> str:
    """The end of a server that was asked to stop."""
    return (
        f"{clock.after(30)}] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
        f"{clock.after(4)}] Gracefully exiting... Remaining number of requests 0. Remaining requests rids=[].\n"
    )


def _bar(desc: str, total: int, rng: random.Random, *, done: str = "%|") -> Iterator[str]:
    for k in range(total + 1):
        body = f"{'█' * (10 * k // total):<10}| " if done == "%|" else "| "
        yield (
            f"{desc}: {100 * k // total:3d}{done}{body}{k}/{total} "
            f"[00:{k // 5 % 60:02d}<00:{(total - k) // 5 % 60:02d}, {rng.uniform(3, 6):5.2f}it/s]"
        )


def serving(clock: Clock, rng: random.Random, lines: int, *, tag: str = "") -> str:
    """Lines of a server at work, a minute of them: batches of both kinds, and requests."""
    said = []
    for k in range(lines):
        stamp = f"[{clock.now:%Y-%m-%d %H:%M}:{60 * k // lines:02d}"
        kind = rng.random()
        if kind < 0.55:
            said.append(
                f"{stamp}{tag}] Decode batch, #running-req: {rng.randrange(1, 99)}, "
                f"#token: {rng.randrange(1, 1 << 20)}, token usage: 0.{rng.randrange(100):02d}, cuda graph: True, "
                f"gen throughput (token/s): {rng.uniform(1, 9999):.2f}, #queue-req: {rng.randrange(40)}"
            )
        elif kind < 0.75:
            said.append(
                f"{stamp}{tag}] Prefill batch, #new-seq: {rng.randrange(1, 9)}, #new-token: {rng.randrange(1, 9999)}, "
                f"#cached-token: {rng.randrange(9999)}, token usage: 0.{rng.randrange(100):02d}, "
                f"#running-req: {rng.randrange(99)}, #queue-req: {rng.randrange(9)}, #pending-token: 0, "
                f"cuda graph: True, input throughput (token/s): {rng.uniform(1, 9999):.2f}"
            )
        else:
            path = rng.choice(["/v1/chat/completions", "/generate", "/health", "/v1/completions"])
            said.append(
                f"{stamp}] INFO:     10.0.{rng.randrange(255)}.{rng.randrange(255)}:{rng.randrange(1 << 16)} - "
                f'"POST {path} HTTP/1.1" 200 OK'
            )
    clock.after(60)
    return "\n".join(said) + "\n"


def served(path: Path, size: int, *, boots: int = 5, seed: int = 1) -> Path:
    """Some boots, the last of which has been serving ever since, up to ``size`` bytes."""
    rng, clock = random.Random(seed), Clock()
    with path.open("wb") as out:
        for k in range(boots):
            out.write(boot(clock, rng, ranks=4, shards=64, graphs=52).encode())
            out.write(serving(clock, rng, 400, tag=" TP0").encode())
            if k < boots - 1:
                out.write(stop(clock).encode())
        minutes = [(clock.now.strftime("%Y-%m-%d %H:%M"), serving(clock, rng, 7000, tag=" TP0")) for _ in range(16)]
        blocks = [(minute.encode(), text.encode()) for minute, text in minutes]
        while out.tell() < size:
            for minute, block in blocks:
                out.write(block.replace(minute, f"{clock.now:%Y-%m-%d %H:%M}".encode()))
                clock.after(60)
        out.truncate(size - size % 1)
    return path


def one_long_line(path: Path, *, size: int = 64 * MIB, line: int = 20 * MIB, seed: int = 2) -> Path:
    """A start whose weight bar was redrawn for ``line`` bytes without a line feed, then serving."""
    rng, clock = random.Random(seed), Clock()
    head, _, rest = boot(clock, rng).partition("Loading safetensors")
    with path.open("wb") as out:
        out.write(head.encode())
        frame, total = 0, line // 110
        while out.tell() < line:
            k = min(frame * 1000 // total, 1000)
            out.write(
                f"\rLoading safetensors checkpoint shards: {k // 10:3d}% Completed | {k}/1000 "
                f"[{frame // 600 % 60:02d}:{frame // 10 % 60:02d}<10:00, {rng.uniform(3, 6):5.2f}it/s]".encode()
            )
            frame += 1
        out.write(b"\nLoading safetensors" + rest.encode())
        while out.tell() < size:
            out.write(serving(clock, rng, 5000).encode())
    return path


def many_boots(path: Path, *, boots: int = 20_000, seed: int = 3) -> Path:
    """One file that a unit with Restart=always has appended to for months."""
    rng, clock = random.Random(seed), Clock()
    with path.open("wb") as out:
        for _ in range(boots):
            out.write(boot(clock, rng, shards=24, graphs=36).encode())
            out.write(serving(clock, rng, 3).encode())
            out.write(stop(clock).encode())
    return path
