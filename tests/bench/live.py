"""How soon followed logs tell what was appended, and what following costs while nothing is."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from tests.bench.measure import PHASETRACK, spent_s

if TYPE_CHECKING:
    from pathlib import Path

_ARGS = "[2026-11-30 15:42:04] server_args=ServerArgs(model_path='/srv/models/m', tp_size=1, port=30000)\n"
_BEGIN = "[2026-11-30 15:42:30] Load weight begin. avail mem=138.42 GB\n"


def follow_many(folder: Path, *, logs_count: int, appends: int, idle_s: float) -> tuple[list[float], float]:
    """Append frames of a bar to logs in turn; answer the sorted delays, and the share of a core used while idle."""
    logs = [folder / f"{k}.log" for k in range(logs_count)]
    for log in logs:
        log.write_text(_ARGS + _BEGIN)
    command = [*PHASETRACK, "tail", "--output", "json", "--log-only", "--no-history", *map(str, logs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tail:
        seen: dict[tuple[str, float], float] = {}
        reader = threading.Thread(target=_read, args=(tail, seen), daemon=True)
        reader.start()
        _append(logs[0], 0)
        _until(lambda: (str(logs[0]), 0.0) in seen)
        time.sleep(2)  # the start is over
        idle = _used_s(tail.pid, idle_s)
        delays = []
        for k in range(1, appends + 1):
            log = logs[k % logs_count]
            began = time.monotonic()
            _append(log, k)
            _until(lambda log=log, k=k: (str(log), float(k)) in seen)
            delays.append(seen[str(log), float(k)] - began)
            time.sleep(0.013 * (k % 7))  # at no fixed place of the reader's rhythm
        tail.terminate()
    return sorted(delays), idle


def _append(log: Path, done: int) -> None:
    with log.open("a") as out:
        out.write(f"Loading safetensors checkpoint shards:  1% Completed | {done}/100000 [00:01<00:03,  1.74s/it]\r ")


def _read(tail: subprocess.Popen[str], seen: dict[tuple[str, float], float]) -> None:
    assert tail.stdout is not None
    for line in tail.stdout:
        record = json.loads(line)
        if record["type"] == "progress":
            seen[record["path"], record["done"]] = time.monotonic()


def _used_s(pid: int, wait_s: float) -> float:
    before, began = spent_s(pid), time.monotonic()
    time.sleep(wait_s)
    return (spent_s(pid) - before) / (time.monotonic() - began)


def _until(condition: object) -> None:
    while not condition():  # type: ignore[operator]
        time.sleep(0.0005)
