"""What is left out of a huge log changes no answer: the full reader's and the hasty one's are the same."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from phasetrack.core.model import Chunk, Closed
from phasetrack.core.tracker import Tracker
from phasetrack.edges.reading import Reach, chunks_of
from phasetrack.run import reading_of
from tests.bench.logs import Clock, boot, serving, stop
from tests.talk import patterns

if TYPE_CHECKING:
    from pathlib import Path

    from phasetrack.core.model import PhaseRow, Snapshot

TRACEBACK = """Traceback (most recent call last):
  File "/opt/site/sglang/srt/managers/scheduler.py", line 2412, in run_scheduler_process
    scheduler.event_loop_overlap()
RuntimeError: CUDA error: an illegal memory access was encountered
"""
POLL = 'INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 503 Service Unavailable'


def fatal(clock: Clock) -> str:
    end = "Received sigquit from a child process. It usually means the child failed."
    return f"{clock.after(1)} TP0] Scheduler hit an exception: {TRACEBACK}{clock.after(1)}] {end}\n"


def harmless(clock: Clock) -> str:
    return f"{clock.after(1)}] Exception in ASGI application\n" + TRACEBACK.replace("run_scheduler_process", "__call__")


def random_log(rng: random.Random) -> bytes:
    """Some boots, each as it may go."""
    clock = Clock()
    return "".join(_life(clock, rng) for _ in range(rng.randrange(1, 5))).encode()


def _life(clock: Clock, rng: random.Random) -> str:
    early = f"{clock.after(0.2)}] Attention backend not specified. Use fa3 backend by default.\n"
    text = early if rng.random() < 0.4 else ""
    text += boot(clock, rng, ranks=rng.choice([1, 1, 2]), shards=rng.choice([2, 6]), graphs=4)
    text = "a warning without a stamp\n" + text if rng.random() < 0.2 else text
    match rng.choice(["serves", "serves", "killed", "fails", "twice"]):
        case "killed":
            return text[: rng.randrange(2500, len(text))] + rng.choice(["", "\n"])
        case "fails":
            return text[: text.index("Load weight begin") - len("[2026-11-02 08:00:12] ")] + fatal(clock)
        case "twice":
            args = text.index("server_args=")
            begin, end = text.rfind("\n", 0, args) + 1, text.index("\n", args) + 1
            text = text[:end] + text[begin:end] + text[end:]
    return text + _service(clock, rng)


def _service(clock: Clock, rng: random.Random) -> str:
    parts = []
    for _ in range(rng.randrange(12)):
        parts.append(serving(clock, rng, rng.randrange(1, 300)))
        parts += [harmless(clock)] if rng.random() < 0.25 else []
    match rng.choice(["goes on", "stops", "fails", "is killed"]):
        case "stops":
            parts.append(stop(clock))
        case "fails":
            parts.append(fatal(clock))
        case "is killed" if parts:
            parts[-1] = parts[-1][: rng.randrange(len(parts[-1]))] + rng.choice(["", "Killed\n", "\n"])
    return "".join(parts) + "".join(f"{clock.after(5)}] {POLL}\n" for _ in range(rng.choice([0, 0, 0, 3])))


def told(known: Snapshot) -> object:
    """All that a snapshot tells, but for line numbers, which need what was left out, and counts of what was read."""
    failure = known.failure and replace(known.failure, place=known.failure.place._replace(line=None))
    return replace(
        known,
        sources=(),
        boots=tuple(replace(one, boot=0, line=None) for one in known.boots[-1:]),
        boot=0,
        phases=tuple(map(_unnumbered, known.phases)),
        ready_line=None,
        failure=failure,
        warnings=tuple(replace(warning, line=None) for warning in known.warnings),
        activities=tuple(replace(activity, line=None) for activity in known.activities),
    )


def _unnumbered(row: PhaseRow) -> PhaseRow:
    ranks = tuple(replace(span, begin_line=None, end_line=None) for span in row.ranks)
    return replace(row, begin_line=None, end_line=None, ranks=ranks)


def hasty(log: Path, reach: Reach) -> Snapshot:
    fd = os.open(log, os.O_RDONLY)
    try:
        reading = reading_of(patterns(), fd, reach)
        start = reading.start
        tracker = Tracker(
            patterns(), line=None if start else 1, offset=start, early=reading.early, midway=start > 0
        )  # fmt: skip
        for chunk in chunks_of(fd, reading, lambda: tracker.serves):
            tracker.feed(chunk)
    finally:
        os.close(fd)
    tracker.feed(Closed())
    return tracker.snapshot()


@pytest.mark.parametrize("seed", range(60))
def test_the_latest_boot_is_told_as_if_all_had_been_read(tmp_path, seed):
    rng = random.Random(seed)
    data = random_log(rng)
    log = tmp_path / "server.log"
    log.write_bytes(data)
    whole = Tracker(patterns())
    whole.feed(Chunk(data))
    whole.feed(Closed())
    reach = Reach(0, rng.choice([3000, 9000, 20000]), rng.choice([3000, 6000]), rng.choice([20000, 1_000_000]))
    assert told(hasty(log, reach)) == told(whole.snapshot())


def test_what_is_left_out_is_said_and_line_numbers_that_need_it_are_unknown(tmp_path):
    rng, clock = random.Random(1), Clock()
    first = (boot(clock, rng) + stop(clock)).encode()
    data = first + (boot(clock, rng) + serving(clock, rng, 6000) + fatal(clock)).encode()
    log = tmp_path / "server.log"
    log.write_bytes(data)
    known = hasty(log, Reach(0, 3000, 1000, 1000))
    (source,) = known.sources
    assert (source.bytes, source.lines, source.scanned_from) == (len(data), None, len(first))
    assert source.skipped_bytes > 100_000
    assert known.failure is not None
    place = known.failure.place
    assert (place.line, data[place.offset :].partition(b"] ")[2][:9]) == (None, b"Scheduler")


def test_a_small_log_is_read_whole(tmp_path):
    log = tmp_path / "server.log"
    log.write_text(boot(Clock(), random.Random(1)))
    known = hasty(log, Reach())
    assert (known.sources[0].scanned_from, known.sources[0].skipped_bytes, known.boots[0].line) == (0, 0, 1)
