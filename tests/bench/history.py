"""``python -m tests.bench.history [BOOTS]``: how long a history of 100,000 boots takes to answer.

A hundred set-ups of twenty models on two kinds of GPU, boots of each all over the file: what a shared home of a
busy group holds after years. Asked as a session does (open, read, close), and as a person does (a process).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from phasetrack.core.key import key_of_args
from phasetrack.core.past import remembered
from phasetrack.edges.history import Store
from tests.talk import hear, recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from phasetrack.core.model import BootKey, Remembered

BOOTS = 100_000
_GPUS = ("NVIDIA H200", "NVIDIA H100")


def _key(k: int) -> BootKey:
    name = f"model-{k % 20}-{8 + k % 5}b"
    args = {"model_path": f"/srv/models/{name}", "tp_size": 2 ** (k % 4), "cuda_graph_max_bs": k % 100}
    return key_of_args(args, gpu=_GPUS[k % 2])


def _boots(many: int) -> Iterator[Remembered]:
    one = remembered(hear(recording("07b-tp2-eagle3-pipe")).snapshot)
    assert one is not None
    for k in range(many):
        past = replace(one.past, key=_key(k * 7919 % 100_003), began_s=1.6e9 + 300 * k)
        yield replace(one, uid=f"{k:032d}", past=past)


def _took(act: Callable[[], object], times: int = 9) -> float:
    found = []
    for _ in range(times):
        began = time.perf_counter()
        act()
        found.append(time.perf_counter() - began)
    return median(found)


def main() -> None:
    """Make the history, ask it, print."""
    many = int(sys.argv[1]) if len(sys.argv) > 1 else BOOTS
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        store = Store(Path(folder) / "phasetrack" / "history.db")
        began = time.perf_counter()
        store.remember(_boots(many), now_s=1.8e9)
        _say(f"{many} boots, {store.path.stat().st_size / 2**20:.0f} MiB, in {time.perf_counter() - began:.1f} s")
        for name, key in (
            ("past boots like one", _key(12345)),
            ("of a model never seen", key_of_args({"model_path": "/srv/models/never-seen-7b"})),
        ):
            _say(f"  {name} ({len(store.priors(key).boots)}): {1e3 * _took(partial(store.priors, key)):.1f} ms")
        one = next(_boots(1))
        fresh = (replace(one, uid=f"new {k}") for k in range(1000))
        _say(f"  one more boot: {1e3 * _took(lambda: store.remember([next(fresh)], now_s=1.8e9)):.1f} ms")
        _say(f"  the newest twenty: {1e3 * _took(lambda: store.boots(20)):.1f} ms")
        _list("phasetrack history list")
        os.environ["XDG_STATE_HOME"] = f"{folder}/empty"
        _list("the same of an empty history")


def _cpu_s(act: Callable[[], object], times: int = 9) -> float:
    """Of the processes that it starts."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(times):
        act()
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime) / times


def _list(name: str) -> None:
    took, cpu = _took(_run), _cpu_s(_run)
    _say(f"  {name}: {1e3 * took:.0f} ms, {1e3 * cpu:.0f} ms of it on a core")


def _run() -> None:
    command = [sys.executable, "-m", "phasetrack", "history", "list"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
