"""What looking outside the log costs, beside psutil's own way: run ``python -m tests.bench.sampling``.

A tree of thirty processes, looked at fifty times; CPU time of the looking thread, and its share of a core at the
pace of one look every two seconds. Figures depend on how many processes the machine has: both ways list them all.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from phasetrack.core.evidence import EvidenceFold
from phasetrack.core.model import Outcome, Snapshot
from phasetrack.core.summary import NO_VERDICT
from phasetrack.edges.sampler import INTERVAL_S, EvidenceSampler

if TYPE_CHECKING:
    from collections.abc import Callable

CHILDREN = 29
LOOKS = 50

_PARENT = f"""
import subprocess, sys, time
children = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) for _ in range({CHILDREN})]
print("up", flush=True)
time.sleep(600)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        with log.open("wb") as out:
            parent = subprocess.Popen([sys.executable, "-c", _PARENT], stdout=out)
        try:
            while not log.read_bytes():
                time.sleep(0.05)
            _measure(log, parent.pid)
        finally:
            tree = psutil.Process(parent.pid)
            for process in [*tree.children(recursive=True), tree]:
                process.kill()
            parent.wait()


def _measure(log: Path, pid: int) -> None:
    known = Snapshot(None, Outcome.STARTING, NO_VERDICT, silent_s=3.0, facts={"port": 30000})
    sampler, fold = EvidenceSampler(str(log)), EvidenceFold()
    first = _cpu_s(lambda: sampler.sample(known, time.time()), 1)
    ours = _cpu_s(lambda: fold.feed(sampler.sample(known, time.time())), LOOKS)
    theirs = _cpu_s(lambda: _with_psutil(pid), LOOKS)
    machine = len(psutil.pids())
    sys.stdout.write(
        f"{CHILDREN + 1} processes of {machine} on this machine\n"
        f"finding the server and the first look: {first * 1e3:.1f} ms of CPU\n"
        f"a look and its fold: {ours * 1e3:.2f} ms of CPU, {ours / INTERVAL_S:.2%} of a core at one every two seconds\n"
        f"psutil (children, cpu, memory, I/O, status): {theirs * 1e3:.2f} ms; ours is {ours / theirs:.2f} of it\n"
    )


def _cpu_s(look: Callable[[], object], times: int) -> float:
    began = time.thread_time()
    for _ in range(times):
        look()
    return (time.thread_time() - began) / times


def _with_psutil(pid: int) -> None:
    root = psutil.Process(pid)
    for process in [root, *root.children(recursive=True)]:
        with process.oneshot():
            process.cpu_times(), process.memory_info(), process.io_counters(), process.status()


if __name__ == "__main__":
    main()
