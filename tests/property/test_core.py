"""What holds for every log, and for what is none. Each property is one sentence, and stands on top of its test."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from phasetrack.core.model import Chunk, Closed
from phasetrack.core.tracker import Tracker
from phasetrack.views.jsonl import record_json, snapshot_json
from phasetrack.views.plain import report_text
from phasetrack.views.status import status_line
from tests.golden.make import golden
from tests.talk import Heard, hear, patterns, recording, recordings

if TYPE_CHECKING:
    from collections.abc import Callable

SLOW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
names = st.sampled_from(recordings())


@cache
def whole(name: str) -> Heard:
    return hear(recording(name))


def records(heard: Heard) -> list[str]:
    return [json.dumps(record_json(record, heard.tracker.zone)) for record in heard.records]


def seen(heard: Heard) -> str:
    """The whole snapshot as JSON."""
    return json.dumps(snapshot_json(heard.snapshot))


# --- chunking ----------------------------------------------------------------------------------------


@SLOW
@given(names, st.lists(st.integers(0, 80_000), max_size=12), st.booleans())
def test_any_chunking_and_any_peeks_give_the_same_records_and_the_same_snapshot(name, cuts, peeks):
    data = recording(name)
    pieced = hear(data, chunks=[cut % (len(data) + 1) for cut in cuts], peeks=peeks)
    assert records(pieced) == records(whole(name))
    assert seen(pieced) == seen(whole(name))


@settings(SLOW, max_examples=15)
@given(names, st.integers(0, 80_000), st.integers(1, 400))
def test_a_stretch_fed_byte_by_byte_gives_the_same_records(name, start, length):
    data = recording(name)
    start %= len(data)
    pieced = hear(data, chunks=range(start, min(start + length, len(data))), peeks=True)
    assert records(pieced) == records(whole(name))


# --- interleaving ------------------------------------------------------------------------------------

TAG = re.compile(rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d((?: [A-Z_]+\d+)*)\] ")


def by_writer(data: bytes) -> list[tuple[bytes, bytes]]:
    """Whole physical lines with what stands behind them untagged, each with its writer's rank."""
    blocks: list[tuple[bytes, bytes]] = []
    for line in data.splitlines(keepends=True) if b"\r" not in data else data.split(b"\n"):
        text = line if line.endswith(b"\n") else line + b"\n"
        found = TAG.match(text)
        if found is None and blocks:
            blocks[-1] = (blocks[-1][0], blocks[-1][1] + text)
        else:
            blocks.append((found[1] if found is not None else b"", text))
    return blocks


def interleaved(blocks: list[tuple[bytes, bytes]], choose: Callable[[int], int]) -> bytes:
    """The blocks in another order: each writer's own order kept, and never an earlier second before a later one."""
    queues: dict[bytes, list[bytes]] = {}
    for writer, block in blocks:
        queues.setdefault(writer, []).append(block)
    out = []
    while queues:
        least = min(_second(queue[0]) for queue in queues.values())
        ready = sorted(writer for writer, queue in queues.items() if _second(queue[0]) == least)
        writer = ready[choose(len(ready))]
        out.append(queues[writer].pop(0))
        if not queues[writer]:
            del queues[writer]
    return b"".join(out)


def _second(block: bytes) -> bytes:
    return block[:21] if TAG.match(block) else b""


def told(heard: Heard) -> list[object]:
    """Phases, times and progress, without the lines that an order decides."""
    rows = golden(heard)["phases"]
    kept = (
        "phase",
        "occurrence",
        "status",
        "began",
        "ended",
        "elapsed_s",
        "basis",
        "ranks_done",
        "ranks_seen",
        "progress",
    )
    return [{key: row.get(key) for key in kept} for row in rows]


@settings(SLOW, max_examples=40)
@given(st.data())
def test_ranks_interleaved_otherwise_give_the_same_phases_times_and_progress(data):
    """Each rank's own order is kept, and untagged text stays behind its record."""
    name = data.draw(st.sampled_from(["07a-tp2-file", "07b-tp2-eagle3-pipe"]))
    blocks = by_writer(recording(name))
    mixed = interleaved(blocks, lambda count: data.draw(st.integers(0, count - 1)))
    assert told(hear(mixed)) == told(whole(name))


# --- hostile bytes -----------------------------------------------------------------------------------

TERMINAL = (
    b"\r", b"\n", b"\r\n", b"\x1b[A", b"\x1b[", b"\x1b]0;", b"\x00" * 9, b"\xff\xfe", b"\xe2\x96", b"\b\b", b"^C",
)  # fmt: skip
STAMPS = (
    b"[2026-11-30 15:42:22 TP0] ", b"[15:42:22 TP1] ", b"[9999-12-31 23:59:59] ", b"[0001-01-01 00:00:00] ", b"0: ",
    b"2026-11-30T15:42:03.123456789Z ", b"sglang-1  | ", b"(x pid=1) ", b'{"log":"', b'\\u001b[31m\\ud800"}',
)  # fmt: skip
MESSAGES = (
    b"server_args=ServerArgs(tp_size=2, nnodes=2, node_rank=1)", b"Load weight begin. avail mem=1.00 GB",
    b"Load weight end. elapsed=1.0 s, type=A, avail mem=1.00 GB, mem usage=1.00 GB.",
    b"Init torch distributed begin.", b"Capture cuda graph begin.", b"Capture draft cuda graph begin. x", b"Killed",
    b"INFO:     Uvicorn running on http://x", b"The server is fired up and ready to roll!", b"SIGTERM received. x",
    b"Scheduler hit an exception: Traceback (most recent call last):\n", b"9" * 5000,
    b"Traceback (most recent call last):\n", b'  File "/sglang/x.py", line 1, in <module>\n', b"ValueError: x\n",
    b"KeyboardInterrupt\n", b"Memory pool end. avail mem=1 GB", b"Killed",
)  # fmt: skip
BARS = (
    b"  0%|          | 0/3 [00:00<?, ?it/s]", b"Capturing batches (bs=1):  50%|##   | 1/2 [9999:59:59<00:01,  9s/it]",
    b"Multi-thread loading shards: 100% Completed | 99999999999/1 [00:01<00:00, 0.00s/it]", b"%|", b"[", b"]",
)  # fmt: skip
BITS = st.sampled_from(TERMINAL + STAMPS + MESSAGES + BARS)


def views(heard: Heard) -> None:
    """All that a user could be shown of it: none may raise."""
    text = seen(heard)
    assert "NaN" not in text
    assert "Infinity" not in text
    for plain in (False, True):
        assert "\x1b" not in report_text(heard.snapshot, plain=plain) + status_line(heard.snapshot, plain=plain)
    records(heard)


@settings(SLOW, max_examples=150)
@given(st.lists(BITS | st.binary(max_size=12), max_size=24).map(b"".join))
@example(b"[2026-11-30 15:42:22 TP" + b"9" * 5000 + b"] x\n")
@example(b"[9999-12-31 23:59:59] Init torch distributed begin.\n  0%|  | 0/3 [9999:00:00<?, ?it/s]\n")
@example(b"[0001-01-01 00:00:00] server_args=ServerArgs()\nCapturing batches:  50%|##   | 1/2 [9999:59:59<0, 9s/it]\n")
def test_feed_never_raises_and_every_view_can_show_what_came_of_it(data):
    views(hear(data))
    views(hear(data, open_end=True))


@settings(SLOW, max_examples=50)
@given(names, st.data())
def test_feed_never_raises_on_a_log_that_was_damaged(name, data):
    """Cut short, bits turned, spliced with another, holed with NUL."""
    raw = bytearray(recording(name))
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, max(len(raw) - 1, 0)))
        match data.draw(st.integers(0, 4)):
            case 0:
                del raw[place:]
            case 1 if raw:
                raw[place] ^= 1 << data.draw(st.integers(0, 7))
            case 2:
                other = recording(data.draw(names))
                start = data.draw(st.integers(0, len(other)))
                raw[place:place] = other[start : start + data.draw(st.integers(0, 9000))]
            case 3:
                raw[place:place] = b"\0" * data.draw(st.integers(1, 5000))
            case _:
                raw[place:place] = data.draw(BITS)
    views(hear(bytes(raw)))


# --- time --------------------------------------------------------------------------------------------


@SLOW
@given(st.lists(names, min_size=1, max_size=2), st.lists(st.integers(0, 160_000), min_size=2, max_size=12))
def test_now_never_runs_backwards(logs, cuts):
    data = b"".join(map(recording, logs))
    heard, start, last = Tracker(patterns()), 0, None
    for cut in sorted(cut % (len(data) + 1) for cut in cuts):
        heard.feed(Chunk(data[start:cut]))
        start = cut
        known = heard.snapshot()
        if known.boot == 1 and known.now_s is not None:
            assert last is None or known.now_s >= last
            last = known.now_s


@SLOW
@given(names, st.integers(0, 160))
def test_the_answer_at_a_line_of_the_whole_log_is_that_of_the_lines_until_there(name, line):
    """No line is read with a look ahead."""
    data = recording(name)
    lines = data.split(b"\n")
    head = b"".join(part + b"\n" for part in lines[: min(line, len(lines) - 1)])
    tracker = Tracker(patterns(), "server.log")
    for chunk in (head, data[len(head) :]):
        if chunk is head:
            tracker.feed(Chunk(chunk))
            then = snapshot_json(tracker.snapshot())
        else:
            tracker.feed(Chunk(chunk))
    alone = Tracker(patterns(), "server.log")
    alone.feed(Chunk(head))
    assert then == snapshot_json(alone.snapshot())


# --- what is no log ----------------------------------------------------------------------------------


@settings(SLOW, max_examples=50)
@given(st.text(max_size=400) | st.binary(max_size=400).map(lambda data: data.decode("latin-1")))
def test_a_text_that_is_no_log_has_no_start_up(text):
    heard = hear(text.encode("utf-8", "replace"))
    assert heard.snapshot.outcome == "none"
    assert heard.snapshot.boots == ()


@settings(SLOW, max_examples=20)
@given(names)
def test_closing_twice_changes_nothing(name):
    heard = whole(name)
    before = seen(heard)
    assert heard.tracker.feed(Closed()) == []
    assert json.dumps(snapshot_json(heard.tracker.snapshot())) == before


# --- serving at speed --------------------------------------------------------------------------------

SERVING = st.lists(
    st.tuples(
        st.integers(-3, 6),  # seconds after the line before: ranks write out of turn
        st.sampled_from(["", " TP0", " DP1 TP0"]),
        st.sampled_from(
            [
                "Decode batch, #running-req: 1, #token: 48, gen throughput (token/s): 1.58, #queue-req: 0",
                "Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00, #queue-req: 0",
                'INFO:     127.0.0.1:52174 - "GET /health HTTP/1.1" 200 OK',
                "Load weight begin. avail mem=1.00 GB",
                "something else",
            ]
        ),
    ),
    max_size=40,
)


@settings(SLOW, max_examples=40)
@given(SERVING, st.lists(st.integers(0, 6000), max_size=6))
def test_lines_that_are_stepped_over_move_the_time_as_if_each_had_been_read(lines, cuts):
    """Whatever was swallowed with its neighbours, however the bytes came in."""
    second, text = 0, []
    for step, rank, message in lines:
        second = max(second + step, 0)
        text.append(f"[2026-11-30 15:{43 + second // 60:02d}:{second % 60:02d}{rank}] {message}\n")
    start = recording("01-plain-file").split(b"fired up and ready to roll!\n")[0] + b"fired up and ready to roll!\n"
    data = start + "".join(text).encode()
    pieced = hear(data, chunks=[len(start) + cut for cut in cuts])
    assert seen(pieced) == seen(hear(data))
    assert records(pieced) == records(hear(data))
    stamps = [line[1:20] for line in data.decode().splitlines() if line.startswith("[2026")]
    assert snapshot_json(pieced.snapshot)["now"] == max(stamps).replace(" ", "T")
