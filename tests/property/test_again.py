"""Boots that are stepped over because they were read before: the answer is that of reading each of them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from phasetrack.core.again import Again
from phasetrack.core.model import Chunk, Closed
from phasetrack.core.tracker import Tracker
from phasetrack.views.jsonl import snapshot_json
from tests.property.logs import TRACEBACK
from tests.talk import patterns, pieces

SLOW = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


class Loop:
    """A server that starts again and again: what is printed, by a clock that goes on."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 16, 0, 0)  # noqa: DTZ001 - the log's own clock
        self.text = ""

    def say(self, message: str, *, after_s: int = 1, rank: str = "", end: str = "\n") -> None:
        self.now += timedelta(seconds=after_s)
        self.text += f"[{self.now:%Y-%m-%d %H:%M:%S}{rank}] {message}{end}"

    def boot(self, number: int, *, after_s: int = 3, rank: str = "", ends: str = "stop", odd: str = "") -> None:
        """A start with a number that is another each time."""
        self.say(f"server_args=ServerArgs(model_path='/srv/m', tp_size=1, random_seed={number})", after_s=after_s)
        self.say("Init torch distributed begin.", rank=rank)
        self.say("Load weight begin. avail mem=138.42 GB", rank=rank)
        frames = [
            f"Loading safetensors checkpoint shards: {50 * k}% Completed | {k}/2 [00:0{k}<00:01, {number}.5it/s]"
            for k in range(3)
        ]
        self.text += "\r".join(frames) + "\n"
        self.text += odd
        self.say(f"Load weight end. type=A, avail mem={number}.27 GB, mem usage=15.15 GB.", after_s=4, rank=rank)
        self.say("Memory pool end. avail mem=15.87 GB", rank=rank)
        if ends == "fails":
            self.text += TRACEBACK
            return
        self.say("The server is fired up and ready to roll!", after_s=0)
        self.say(f"Decode batch, #running-req: 1, #token: {number}, gen throughput (token/s): 1.58, #queue-req: 0")
        if ends == "stop":
            self.say("SIGTERM received. signum=None frame=None. Draining requests and shutting down...", after_s=9)
        elif ends == "killed":
            self.text += "Killed\n"


def read(data: bytes, cuts=(), *, again: bool) -> tuple[str, int]:
    """The snapshot as JSON, and the bytes that were read of the log."""
    tracker, fed = Tracker(patterns(), "server.log"), 0
    chunks = iter([Chunk(piece) for piece in pieces(data, cuts)])
    for chunk in Again(tracker).unread(chunks) if again else chunks:
        fed += len(chunk.data)
        tracker.feed(chunk)
    open_end = json.dumps(snapshot_json(tracker.snapshot()))
    tracker.feed(Closed())
    return open_end + json.dumps(snapshot_json(tracker.snapshot())), fed


def loop(boots: int, **options) -> bytes:
    said = Loop()
    for k in range(boots):
        said.boot(7 * 11**k % 1000003, **options)
    return said.text.encode()


# --- what is stepped over ----------------------------------------------------------------------------


def test_of_boots_that_differ_in_numbers_only_the_first_ones_and_the_last_are_read():
    data = loop(300)
    whole, _ = read(data, again=False)
    short, fed = read(data, [20_000, 40_000, 100_000], again=True)
    assert short == whole
    assert fed < len(data) // 2


def test_boots_that_fail_are_all_read():
    data = loop(200, ends="fails")
    short, fed = read(data, again=True)
    assert short == read(data, again=False)[0]
    assert fed == len(data)


def test_a_log_from_its_last_line_up_and_a_recording_are_fed_as_they_are():
    items = [Chunk(loop(3), recorded_s=1.0), Chunk(loop(3))]
    assert list(Again(Tracker(patterns())).unread(iter(items)))[-2:] == items


# --- and is as if it were read -----------------------------------------------------------------------

odd = st.sampled_from([
    "", "", "", "some text\n", "[2026-11-30 15:42:46 TP1] Cache flushed successfully!\n", TRACEBACK, "\x1b[2K\n",
    "[2026-11-30 14:00:00] Cache flushed successfully!\n", "2026-11-30T15:42:03.123456789Z x\n", "sglang-1  | x\n",
    "2026-11-30 15:42:03,123 - INFO - flashinfer.jit: x\n",
    "Capturing batches (bs=1):  50%|#   | 1/2 [09:00<00:01,  9s/it]\n",
    "Capturing batches (bs=1):  50%|#   | 1/2 [1:09:00<00:01,  9s/it]\r", "\n\r\n", "[2026-11-30 15:4", "Killed\n",
    "[2026-11-30 15:42:48] server_args=ServerArgs(model_path='/srv/m', tp_size=1)\n", "\x00\x00\n", "[pod/a/b] x\n",
    "\"{'text': 'a\n", "0: x\n",
])  # fmt: skip
behind = st.just("") | st.just("") | st.sampled_from([
    "", "[2026-11-30 15:42:46] WARNING: x\n", "some text\n", "Killed\n", "[2026-11-30 1",
    "[2026-11-30 15:00:01] Load weight begin. avail mem=138.42 GB\n",
    "[2026-11-30 23:00:01 TP0] Init torch distributed begin.\n",
    "[2026-11-30 15:00:01] server_args=ServerArgs(model_path='/srv/m', nnodes=2, node_rank=1)\n",
    TRACEBACK, "  0%|          | 0/3 [00:00<?, ?it/s]", "[2026-11-30 15:00:01] INFO:     x says 'a\n", "\r",
])  # fmt: skip
starts = st.fixed_dictionaries({
    "number": st.integers(0, 10**14),
    "after_s": st.sampled_from([3, 3, 3, 3, 3, 3, 3, 1, 0, -2, -20, 400, 90_000]),
    "rank": st.sampled_from(["", "", "", " TP0", " TP1", " DP1 TP0"]),
    "ends": st.sampled_from(["stop", "stop", "stop", "serves", "fails", "killed"]),
    "odd": odd,
})  # fmt: skip
same = st.builds(lambda number: {"number": number}, st.integers(0, 99_999))


@st.composite
def loops(draw: st.DrawFn) -> bytes:
    said = Loop()
    again = draw(starts)  # one kind of start may come more than once
    for options in draw(st.lists(st.one_of(same, same, same, st.just(again), starts), min_size=4, max_size=20)):
        said.boot(**options)
        said.text += draw(behind)
    text = said.text
    form = draw(st.sampled_from(["plain"] * 6 + ["crlf", "docker", "compose", "two", "undated"]))
    if form == "crlf":
        text = text.replace("\n", "\r\n")
    elif form == "docker":
        text = "".join(f"2026-11-30T15:42:03.123Z {line}\n" for line in text.splitlines())
    elif form == "compose":
        text = "".join(f"sglang-1  | {line}\n" for line in text.split("\n"))
    elif form == "two":
        text = "".join(f"sglang-{k % 2}  | {line}\n" for k, line in enumerate(text.split("\n")))
    elif form == "undated":
        text = text.replace("[2026-11-30 ", "[")
    return text.encode()


@SLOW
@given(loops(), st.lists(st.integers(0, 20_000), max_size=6))
@example(loop(30, ends="serves"), [])
@example(loop(30, ends="killed"), [1000])
@example(loop(30, odd="some text\n"), [])
@example(loop(30, rank=" TP0") + loop(30, rank=" TP1"), [])
@example(b"".join(loop(12).split(b"\n", 400)[:399]) + b"\n", [])
def test_a_log_of_many_boots_tells_the_same_with_those_left_out_that_were_read_before(data, cuts):
    first = data.find(b"\n") + 1  # what a line of arguments looks like is known behind it
    assert read(data, [first, *(first + cut for cut in cuts)], again=True)[0] == read(data, again=False)[0]
