"""What the screen costs: bytes to the terminal, CPU, first picture, keys. ``python -m tests.bench.screen``.

Every figure stands beside those of named peers measured in the same run, on a pty of 120x40: htop, a Textual
app from stock widgets, one of bare static rows, one of a single widget. A busy machine makes all of them worse.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.bench import measure
from tests.talk import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

COLUMNS, ROWS = 120, 40
MEASURED_S = 30.0
SETTLING_S = 5.0
RECORDING = "07b-tp2-eagle3-pipe"
LINES_PER_S = 10
REPLAY_SPEED = 60


class Cost(NamedTuple):
    """Of one program over a while."""

    bytes_per_s: float
    cpu_percent: float


class Pty:
    """A program on a pty whose other end only counts."""

    def __init__(self, command: list[str]) -> None:
        self.master, slave = os.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        drop = ("TEXTUAL", "SSH_", "NO_COLOR")
        env = {key: value for key, value in os.environ.items() if not key.startswith(drop)}
        env |= {"TERM": "xterm-256color", "LANG": "C.UTF-8"}
        self.began_s = time.monotonic()
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - the only way to own a terminal
        )  # fmt: skip
        os.close(slave)
        self.seen = b""

    def read_for(self, seconds: float, until: Callable[[bytes], bool] = lambda _: False) -> int:
        """Read for a while; answer how many bytes came."""
        end, count = time.monotonic() + seconds, 0
        while (left := end - time.monotonic()) > 0 and not until(self.seen):
            if select.select([self.master], [], [], left)[0]:
                try:
                    data = os.read(self.master, 65536)
                except OSError:
                    break
                count += len(data)
                self.seen = (self.seen + data)[-(1 << 20) :]
        return count

    def press(self, key: str) -> tuple[float, float] | None:
        """Type a key, and wait until its picture has begun to come: seconds, and of CPU; None if nothing changes."""
        self.read_for(0.3)
        began, spent = time.monotonic(), measure.spent_s(self.process.pid)
        os.write(self.master, key.encode())
        came = select.select([self.master], [], [], 1.0)[0]
        return (time.monotonic() - began, measure.spent_s(self.process.pid) - spent) if came else None

    def cost(self, seconds: float = MEASURED_S) -> Cost:
        before, count = measure.spent_s(self.process.pid), self.read_for(seconds)
        return Cost(count / seconds, 100 * (measure.spent_s(self.process.pid) - before) / seconds)

    def close(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self.master)


def ours(log: Path) -> list[str]:
    return [sys.executable, "-m", "phasetrack", "tail", "--no-history", str(log)]


def rival(name: str, log: Path) -> list[str]:
    return [sys.executable, "-m", "tests.bench.rivals", name, str(log)]


class Writer:
    """A log that grows: a recording at its own pace, and plain lines besides."""

    def __init__(self, log: Path) -> None:
        self._log, self._stop = log, threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._play, self._chatter)]
        for thread in self._threads:
            thread.start()

    def _play(self) -> None:
        cast = (FIXTURES / RECORDING / "server.cast").read_text("utf-8")
        events = [json.loads(line) for line in cast.splitlines()[1:]]
        # From where the silence of the imports is over: the busiest part of a start.
        first = next(when for when, _, text in events if "Init torch distributed begin" in text)
        began = time.monotonic()
        with self._log.open("ab", buffering=0) as file:
            for when, kind, text in events:
                if self._stop.wait(max(when - first - (time.monotonic() - began), 0.0)):
                    return
                if kind == "o":
                    file.write(text.encode())

    def _chatter(self) -> None:
        number = 0
        with self._log.open("ab", buffering=0) as file:
            while not self._stop.wait(1 / LINES_PER_S):
                number += 1
                text = f"[2026-11-30 15:54:43 TP0] a line that means nothing, number {number}, {'x' * 40}\n"
                file.write(text.encode())

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def busy(folder: Path) -> list[tuple[str, Cost]]:
    """While a recording plays at its own pace and ten more lines come each second."""
    kinds: list[tuple[str, Callable[[Path], list[str]]]] = [
        ("phasetrack tail", ours),
        ("Textual, static rows at 4 Hz", lambda log: rival("rows", log)),
        ("Textual, stock widgets", lambda log: rival("stock", log)),
    ]
    logs = [folder / f"busy-{number}.log" for number in range(len(kinds))]
    for log in logs:
        log.touch()
    commands = [(name, command(log)) for (name, command), log in zip(kinds, logs, strict=True)]
    return _costs([*commands, *_htop()], logs)


def quiet(folder: Path) -> list[tuple[str, Cost]]:
    """With no new bytes: only clocks tick."""
    log = folder / "quiet.log"
    whole = (FIXTURES / RECORDING / "server.log").read_bytes()
    log.write_bytes(whole[: whole.index(b"Capturing num tokens")])
    commands = [
        ("phasetrack tail", ours(log)),
        ("Textual, one widget", rival("one", log)),
        ("Textual, three clocks at 1 Hz", rival("clocks", log)),
        ("Textual, static rows at 1 Hz", rival("slow", log)),
        ("Textual, stock widgets", rival("stock", log)),
    ]
    return _costs([*commands, *_htop()])


def replayed(folder: Path) -> list[tuple[str, Cost]]:
    """While a start of half an hour is replayed at 60x."""
    cast = folder / "server.cast"
    header, *events = map(json.loads, (FIXTURES / RECORDING / "server.cast").read_text("utf-8").splitlines())
    slower = REPLAY_SPEED * (MEASURED_S + 2 * SETTLING_S) / events[-1][0]
    lines = [header, *([when * slower, kind, text] for when, kind, text in events)]
    cast.write_text("".join(json.dumps(line) + "\n" for line in lines))
    replay = [sys.executable, "-m", "phasetrack", "replay", "--no-history", "--speed", str(REPLAY_SPEED), str(cast)]
    return _costs([("phasetrack replay", replay), ("Textual, static rows at 4 Hz", rival("rows", cast)), *_htop()])


def _htop() -> list[tuple[str, list[str]]]:
    return [("htop", [found])] if (found := shutil.which("htop")) else []


def _costs(commands: list[tuple[str, list[str]]], growing: Sequence[Path] = ()) -> list[tuple[str, Cost]]:
    """All at once, so that whatever else the machine does slows all of them alike."""
    ptys = [Pty(command) for _, command in commands]
    with ThreadPoolExecutor(len(ptys)) as together:
        list(together.map(lambda pty: pty.read_for(SETTLING_S), ptys))
        writers = [Writer(log) for log in growing]
        costs = list(together.map(Pty.cost, ptys))
    for one in (*writers, *ptys):
        one.close()
    return [(name, cost) for (name, _), cost in zip(commands, costs, strict=True)]


def first_picture(folder: Path) -> Iterator[tuple[str, float, float]]:
    """Until something is drawn, on a log of 50 MB: seconds, and seconds of CPU; the best of some."""
    log = _serving(folder, 50_000_000)
    marks = (
        ("Textual, one widget", rival("one", log), b"one widget"),
        ("phasetrack tail", ours(log), b"READING"),
        ("phasetrack tail, its answer", ours(log), b" READY"),
    )
    for name, command, mark in marks:
        times, spent = [], []
        for _ in range(5):
            pty = Pty(command)
            pty.read_for(120.0, lambda seen, mark=mark: mark in seen)
            times.append(time.monotonic() - pty.began_s)
            spent.append(measure.spent_s(pty.process.pid))
            pty.close()
        yield name, min(times), min(spent)


def keys(folder: Path) -> Iterator[tuple[str, float, float, float]]:
    """From a key to its picture, in milliseconds: the median and the worst, and the most CPU that one of them took."""
    logs = (
        ("20 MiB in one line", _one_line(folder)),
        ("200 boots", _boots(folder)),
        ("1 GiB", _serving(folder, 1 << 30)),
    )
    pressed = ("l", "c", *"kkkbbb", "W", *"bb", "W", "c", *"kbb", "g", *"  j", "G", "m") * 2
    for name, log in logs:
        os.utime(log, (0, 0))  # its server is long gone: no clock ticks, and what comes is the key's
        pty = Pty(ours(log))
        pty.read_for(300.0, lambda seen: any(word in seen for word in (b"STARTING", b"READY", b"STOPPED")))
        pty.read_for(SETTLING_S)
        took = [found for found in map(pty.press, pressed) if found is not None]
        waits, spent = sorted(wait for wait, _ in took), max(cpu for _, cpu in took)
        yield name, 1000 * waits[len(waits) // 2], 1000 * waits[-1], 1000 * spent
        pty.close()


def _one_line(folder: Path) -> Path:
    log = folder / "line.log"
    whole = (FIXTURES / RECORDING / "server.log").read_bytes()
    frame = b"\rMulti-thread loading shards:  56% Completed | 36/64 [00:03<00:02, 11.05it/s]"
    log.write_bytes(whole[: whole.index(b"Multi-thread")] + frame * ((20 << 20) // len(frame)))
    return log


def _serving(folder: Path, size: int) -> Path:
    """A start, and then as much serving as it takes."""
    log = folder / f"serving-{size}.log"
    whole = (FIXTURES / RECORDING / "server.log").read_bytes()
    serving = b"".join(line for line in whole.splitlines(keepends=True) if b"Decode batch" in line) * 200
    with log.open("wb") as file:
        file.write(whole[: whole.index(b"SIGTERM")].rpartition(b"\n")[0] + b"\n")
        while file.tell() < size:
            file.write(serving)
    return log


def _boots(folder: Path) -> Path:
    log = folder / "boots.log"
    log.write_bytes((FIXTURES / RECORDING / "server.log").read_bytes() * 200)
    return log


def _print(title: str, rows: list[tuple[str, Cost]], peer: str, bytes_per_s: float) -> Cost:
    """Print the costs, ours first, and whether ours are within their limits and those of a peer."""
    print(f"\n{title}\n  {'':32} {'bytes/s':>9} {'CPU %':>7} {'bytes':>9} {'CPU':>7}")
    found = dict(rows)
    ours = rows[0][1]
    for name, cost in rows:
        ratios = cost.bytes_per_s / max(ours.bytes_per_s, 1), cost.cpu_percent / max(ours.cpu_percent, 0.01)
        print(f"  {name:32} {cost.bytes_per_s:9.0f} {cost.cpu_percent:7.2f} {ratios[0]:6.2f} x {ratios[1]:5.2f} x")
    measure.verdict("bytes/s", ours.bytes_per_s, bytes_per_s)
    measure.verdict(f"CPU beside {peer}", ours.cpu_percent / found[peer].cpu_percent, 1.0)
    return ours


def _print_first_picture(rows: Iterator[tuple[str, float, float]]) -> None:
    print("\nFirst picture on a log of 50 MB")
    found = {}
    for what, seconds, spent in rows:
        found[what] = seconds
        print(f"  {what:32} {seconds:9.2f} s {spent:6.2f} s of CPU", flush=True)
    measure.verdict("s after one widget", found["phasetrack tail"] - found["Textual, one widget"], 0.5)


def _print_keys(rows: Iterator[tuple[str, float, float, float]]) -> None:
    print("\nFrom a key to its picture")
    for what, median, worst, spent in rows:
        print(f"  {what:32} {median:9.0f} ms, at most {worst:.0f} ms and {spent:.0f} ms of CPU", flush=True)
        measure.verdict("ms at most", worst, 100)


def main() -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory(dir=measure.folder()) as name:
        here = Path(name)
        cost = _print("Quiet: no new bytes, clocks tick", quiet(here), "Textual, static rows at 1 Hz", 1000)
        measure.verdict("CPU %", cost.cpu_percent, 1.0)
        title = f"Busy: a recording at 1x, and {LINES_PER_S} lines a second"
        _print(title, busy(here), "Textual, static rows at 4 Hz", 10_000)
        title = f"A replay at {REPLAY_SPEED}x"
        _print(title, replayed(here), "Textual, static rows at 4 Hz", 10_000)
        _print_first_picture(first_picture(here))
        _print_keys(keys(here))


if __name__ == "__main__":
    main()
