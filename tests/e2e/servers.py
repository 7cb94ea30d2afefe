"""Fake servers as real processes, and phasetrack beside them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent.parent
PHASETRACK = [sys.executable, "-m", "phasetrack"]
PATIENCE_S = 120.0
RECORDING = "01-plain-file"
LOADING = "Load weight begin"


def eventually(condition: Callable[[], Any], what: str = "", patience_s: float = PATIENCE_S) -> Any:
    """Wait for a condition; answer what it gave."""
    end = time.monotonic() + patience_s
    while not (found := condition()):
        assert time.monotonic() < end, f"never: {what or condition}"
        time.sleep(0.02)
    return found


def free_port() -> int:
    """A port of five digits that nobody has."""
    while True:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            if (port := found.getsockname()[1]) >= 10000:
                return int(port)


def fake_command(*options: object) -> list[str]:
    """The command line of a fake server."""
    words = [sys.executable, str(ROOT / "tests" / "fake_server.py"), *map(str, options)]
    return words if options and options[0] in {p.name for p in (ROOT / "fixtures").iterdir()} else [
        *words[:2], RECORDING, *words[2:]
    ]  # fmt: skip


class FakeServer:
    """One fake server with its log."""

    def __init__(self, folder: Path, *options: object, into: str = "") -> None:
        """Start it; its stdout is the log, or a pipe into a command."""
        self.log = folder / "server.log"
        self.go = folder / "go"
        command = [*fake_command(*options), "--go", str(self.go)]
        with self.log.open("ab") as out:
            if into:
                line = " ".join(f"'{word}'" for word in command) + f" 2>&1 | {into}"
                self.process = subprocess.Popen(["sh", "-c", line], start_new_session=True)
            else:
                self.process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)

    def goes_on(self) -> None:
        """Let it print the rest."""
        self.go.touch()

    def says(self, text: str) -> None:
        """Wait until a text stands in its log."""
        eventually(lambda: text.encode() in self.log.read_bytes(), text)

    def child(self, title: str) -> psutil.Process:
        """One of its children, by its title."""

        def find() -> psutil.Process | None:
            for process in psutil.Process(self.process.pid).children(recursive=True):
                try:
                    if process.cmdline()[:1] == [title]:
                        return process
                except (psutil.NoSuchProcess, psutil.ZombieProcess):
                    continue
            return None

        return eventually(find, title)

    def end(self) -> None:
        """Kill whatever is left of it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def phasetrack(*arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run phasetrack to its end."""
    settings: dict[str, Any] = {"capture_output": True, "text": True, "timeout": PATIENCE_S, "cwd": ROOT}
    return subprocess.run([*PHASETRACK, *map(str, arguments)], check=False, **settings | more)


def status(log: Path, *options: object) -> tuple[int, dict[str, Any]]:
    """The exit code and the snapshot of one look."""
    done = phasetrack("status", "--json", *options, log)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def start(*arguments: object, **more: Any) -> subprocess.Popen[str]:
    """Start phasetrack."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen([*PHASETRACK, *map(str, arguments)], text=True, **{**pipes, "cwd": ROOT, **more})


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one that ends by itself."""
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err
