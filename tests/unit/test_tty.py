"""The thread that reads keys sleeps while there are none."""

from __future__ import annotations

import os
import select
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest

from phasetrack.views.tui.tty import Stop

if TYPE_CHECKING:
    from collections.abc import Iterator


class Reader(NamedTuple):
    """A loop as Textual's is: it asks whether to end, and waits a tenth of a second for a key."""

    stop: Stop
    rounds: list[float]
    keys: list[bytes]
    type: int
    thread: threading.Thread


@pytest.fixture
def reader() -> Iterator[Reader]:
    keys, typed = os.pipe()
    stop, rounds, read = Stop(), [], []

    def loop() -> None:
        stop.let_sleep(keys)
        while not stop.is_set():
            rounds.append(time.monotonic())
            if select.select([keys], [], [], 0.1)[0]:
                read.append(os.read(keys, 64))

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    yield Reader(stop, rounds, read, typed, thread)
    stop.set()
    thread.join(5)
    os.close(keys)
    os.close(typed)


def until_asleep(reader: Reader) -> int:
    while time.monotonic() - reader.rounds[-1] < 0.5:
        time.sleep(0.05)
    return len(reader.rounds)


def test_it_looks_a_few_times_and_then_sleeps_until_a_key_is_there(reader):
    slept = until_asleep(reader)
    assert 2 <= slept <= 20
    os.write(reader.type, b"q")
    while not reader.keys:
        time.sleep(0.01)
    assert reader.keys == [b"q"]
    # Behind a key it looks again for a while: a lone escape is one once nothing has followed it.
    assert until_asleep(reader) >= slept + 3


def test_who_ends_it_waits_for_nothing_and_may_let_another_begin(reader):
    until_asleep(reader)
    began = time.monotonic()
    assert not reader.stop.is_set()
    reader.stop.set()
    reader.thread.join(5)
    assert not reader.thread.is_alive()
    assert time.monotonic() - began < 1
    reader.stop.clear()
    assert not reader.stop.is_set()
