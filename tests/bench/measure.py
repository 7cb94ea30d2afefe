"""CPU time and memory of commands, measured in turn so that a busy machine slows all of them alike."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PHASETRACK = [sys.executable, "-m", "phasetrack"]


@dataclass
class Runs:
    """What the runs of one command took."""

    cpu_s: list[float] = field(default_factory=list)
    rss_mib: list[float] = field(default_factory=list)

    @property
    def median_s(self) -> float:
        return statistics.median(self.cpu_s)

    @property
    def best_s(self) -> float:
        return min(self.cpu_s)


def run(command: Sequence[str], env: Mapping[str, str]) -> tuple[float, float]:
    """CPU seconds (user and system) and peak MiB of one run; its output goes nowhere."""
    pid = os.fork()
    if pid == 0:
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        os.execvpe(command[0], list(command), dict(env))
    _, state, used = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(state) != 2, command  # a wrong command line does nothing fast
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def in_turn(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, Runs]:
    """Run all commands, one after the other, ``rounds`` times; caches are warm after the first."""
    found = {name: Runs() for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | dict.fromkeys(("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), folder)
        env["PYTHONPYCACHEPREFIX"] = folder  # what is installed has its bytecode beside it
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        for command in commands.values():
            run(command, env)
        for _ in range(rounds):
            for name, command in commands.items():
                cpu_s, rss_mib = run(command, env)
                found[name].cpu_s.append(cpu_s)
                found[name].rss_mib.append(rss_mib)
    return found


def table(title: str, found: Mapping[str, Runs], base: str) -> None:
    """Print medians, and each one's ratio to that of ``base``."""
    print(f"\n{title}")
    for name, runs in found.items():
        ratio = runs.median_s / found[base].median_s
        cpu = f"{runs.median_s:7.3f} s CPU (best {runs.best_s:.3f})"
        print(f"  {name:<28} {cpu}  {max(runs.rss_mib):6.1f} MiB  {ratio:5.2f}x")


def verdict(what: str, value: float, limit: float) -> None:
    """Say whether a figure keeps its limit."""
    print(f"  -> {what}: {value:.2f} (limit {limit:g}) {'ok' if value <= limit else 'TOO MUCH'}")


def folder() -> Path:
    """Where large inputs are made: outside the checkout, and cleared by whoever made them."""
    return Path(os.environ.get("BENCH_DIR") or tempfile.gettempdir())


def spent_s(pid: int) -> float:
    """CPU of all threads of a process so far, to the nanosecond: ticks are too coarse for what mostly sleeps."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
