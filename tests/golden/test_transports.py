"""One whole recording inside everything that carries logs: the same phases, times and progress."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.golden.make import golden
from tests.talk import hear, recording

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "07b-tp2-eagle3-pipe"


def stamped(k: int, line: bytes) -> bytes:
    """Docker's stamps in another zone and a little later than the engine's: they move on with the lines."""
    return b"2026-11-30T%02d:%02d:%02d.123456789Z " % (7 + k // 3600, k // 60 % 60, k % 60) + line


TRANSPORTS: dict[str, Callable[[int, bytes], bytes]] = {
    "compose": lambda _, line: b"sglang-1  | " + line,
    "kubectl --prefix": lambda _, line: b"[pod/a-0/main] " + line,
    "ray in colour": lambda _, line: b"\x1b[36m(SGLangEngine pid=77, ip=10.0.0.1)\x1b[0m " + line,
    "srun -l": lambda _, line: b"0: " + line,
    "CRI": lambda _, line: b"2026-11-30T15:56:00.1Z stderr F " + line,
    "colour": lambda _, line: b"\x1b[32m" + line + b"\x1b[0m",
    "CR LF": lambda _, line: line + b"\r",
    "CR CR LF": lambda _, line: line + b"\r\r",
    "an unknown label": lambda _, line: b"<node 3> " + line,
    "mpirun": lambda _, line: b"[1,0]<stderr>:" + line,
    "a Python wrapper": lambda _, line: b"[2026-11-30 15:56:00] [a.b] [INFO] [w_0] " + line,
    "Python's logging": lambda _, line: b"2026-11-30 15:56:00,000 - root - INFO - " + line,
    "journald short": lambda _, line: b"Nov 30 15:56:00 host sglang[12]: " + line,
    "journald short-iso": lambda _, line: b"2026-11-30T15:56:00+0000 host sglang[12]: " + line,
    "ts": lambda _, line: b"Nov 30 15:56:00 " + line,
    "a clock": lambda _, line: b"15:56:00 " + line,
    "docker's json-file": lambda _, line: json.dumps({"log": line.decode() + "\n", "stream": "stderr"}).encode(),
    "a notebook": lambda _, line: b"      " + json.dumps(line.decode() + "\n").encode() + b",",
}


def told(data: bytes) -> list[dict[str, Any]]:
    kept = ("phase", "occurrence", "status", "began", "ended", "elapsed_s", "progress", "ranks_done", "ranks_seen")
    return [{key: row.get(key) for key in kept} for row in golden(hear(data))["phases"]]


@cache
def plain() -> list[dict[str, Any]]:
    return told(recording(NAME))


@pytest.mark.parametrize("name", TRANSPORTS)
def test_a_transport_around_a_log_changes_nothing(name):
    lines = recording(NAME).split(b"\n")[:-1]
    wrapped = b"".join(TRANSPORTS[name](k, line) + b"\n" for k, line in enumerate(lines))
    assert told(wrapped) == plain()


def test_a_transports_own_clock_dates_what_the_engine_does_not():
    """Where it stamps every line it tells when a bar's line was written; engine's stamps stay as they are."""
    lines = recording(NAME).split(b"\n")[:-1]
    heard = golden(hear(b"".join(stamped(k, line) + b"\n" for k, line in enumerate(lines))))
    assert [row["phase"] for row in heard["phases"]] == [row["phase"] for row in plain()]
    assert heard["started_at"] == "2026-11-30T15:54:41"
    assert heard["ready_at"] == "2026-11-30T15:55:39"
