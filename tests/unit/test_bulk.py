"""Runs of serving lines: where they end, and how many lines they are."""

from __future__ import annotations

import pytest

from phasetrack.core.bulk import LINES, BulkRuns
from tests.talk import patterns

BATCHES = (
    "Decode batch, #running-req: 1, #token: 48, token usage: 0.00, gen throughput (token/s): 1.58, #queue-req: 0",
    "Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, input throughput (token/s): 0.49",
    "Decode batch. #running-req: 1, #token: 48, token usage: 0.00, #queue-req: 0, fwd occupancy: 99.10%",
)
REQUEST = 'INFO:     127.0.0.1:52174 - "GET /health HTTP/1.1" 200 OK'
# A run is looked for from 32 KiB on.
ENOUGH = 400


def serving(tags: tuple[str, ...], lines: int = ENOUGH) -> list[bytes]:
    """Batches of these ranks in turn, each kind in turn, and every fourth line a request; an hour ends within."""
    told = []
    for k in range(lines):
        stamp = f"[2026-11-30 {15 + (k > lines // 3)}:00:{k % 60:02d}"
        tag, batch = tags[k // 5 % len(tags)], BATCHES[k % 3]
        told.append(f"{stamp}] {REQUEST}\n" if k % 4 == 3 else f"{stamp}{tag}] {batch}\n")
    return [line.encode() for line in told]


def runs(ranks: tuple[str, ...]) -> BulkRuns:
    found = BulkRuns(patterns().bulk)
    found.speak(ranks)
    return found


@pytest.mark.parametrize(
    ("ranks", "tags"),
    [
        ((), ("",)),
        (("TP0", "TP1", "TP2"), (" TP0",)),
        (("TP0", "TP1", "TP2"), (" TP2",)),
        (("TP0", "TP1"), ("",)),
        (("DP0 TP0", "DP1 TP1"), (" DP0 TP0", " DP1 TP1")),
        (tuple(f"TP{k}" for k in range(16)), tuple(f" TP{k}" for k in range(16))),
    ],
)
def test_a_run_is_of_all_serving_lines_whichever_ranks_say_them(ranks, tags):
    lines = serving(tags)
    assert runs(ranks).step(b"".join(lines), 0) == (sum(map(len, lines)), len(lines))


@pytest.mark.parametrize("before", [0, 1, LINES - 1, LINES, LINES + 1, 2 * LINES, 3 * LINES + 5])
@pytest.mark.parametrize(
    "other",
    [
        b"[2026-11-30 15:00:30 TP1] A rank that was silent until now\n",
        b"[2026-11-30 15:00:30 TP1] Decode batch, #running-req: 1, #queue-req: 0\n",
        b"[2026-11-30 15:00:30 TP0] Decode batch, #runn[2026-11-30 15:00:30 TP0] Decode batch, #queue-req: 0\n",
        b"[2026-11-30 15:00:30 TP0] Decode batch, #running-req: Killed\n",
        b"Killed\n",
        b"\n",
        b"[2026-11-30 15:00:30 TP0] Decode batch, #running-req: 1\r#queue-req: 0\n",
    ],
)
def test_a_run_ends_before_any_other_line_however_many_it_has(before, other):
    lines = serving((" TP0",))
    buffer = b"".join([*lines[:before], other, *lines[before:]])
    found = runs(("TP0",)).step(buffer, 0)
    assert found == ((sum(map(len, lines[:before])), before) if before else None)
