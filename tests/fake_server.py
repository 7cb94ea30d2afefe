"""A server made from a recording: it prints the recorded log, has children with SGLang's titles, and answers /health.

Started as a program, its stdout being the log::

    python tests/fake_server.py 01-plain-file --until 'Load weight begin' --go GO --port 30000 --ranks 2 --do sleep

It prints up to and with the first line that holds ``--until``, waits for the file ``--go`` to appear, and prints the
rest. /health is refused before Uvicorn's line, 503 before the ready line, then 200; the body is empty. Children do as
``--do`` says: sleep, spin, touch (memory), fifo (open one that nobody writes), lock (wait for a held one).
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"

# What a child does until it is killed; its parent's death does not end it, as it does not end SGLang's.
_CHILD = """
import fcntl, os, sys, time
what, where = sys.argv[1:]
kept = []
if what == "fifo":
    open(where)
elif what == "lock":
    fcntl.flock(open(where), fcntl.LOCK_EX)
while what == "spin":
    pass
while what == "touch":
    kept = [bytearray(8 << 20)]
    time.sleep(0.05)
time.sleep(3600)
"""


def main() -> None:
    options = _options()
    signal.signal(signal.SIGTERM, lambda number, frame: _stop(number, frame, options))
    children = _children(options)
    log = (FIXTURES / options.recording / "server.log").read_bytes()
    log = log.replace(b"30000", str(options.port or 30000).encode())
    cut = _after(log, options.until.encode()) if options.until else 0
    _say(log[:cut])
    if options.go:
        _await(options.go)
    server = _serve(options.port) if options.port else None
    ready = log.find(b"The server is fired up")
    _say(log[cut:ready])
    if options.warm:
        _await(options.warm)
    if server is not None:
        server.is_ready = True
    _say(log[ready : _after(log, b"ready to roll!")])
    if options.ends is not None:
        for child in children:
            child.kill()
            child.wait()
        sys.exit(options.ends)
    while True:
        time.sleep(3600)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("recording")
    parser.add_argument("--until", default="")
    parser.add_argument("--go", type=Path)
    parser.add_argument("--warm", type=Path, help="wait for this file before the ready line")
    parser.add_argument("--port", type=int)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--do", default="sleep")
    parser.add_argument("--where", default="")
    parser.add_argument("--ends", type=int, help="end with this exit code after the ready line")
    parser.add_argument("--count", type=Path, help="add a line here for each SIGTERM, and end by it")
    return parser.parse_args()


def _children(options: argparse.Namespace) -> list[subprocess.Popen[bytes]]:
    titles = [f"sglang::scheduler_TP{k}" for k in range(options.ranks)] if options.ranks > 1 else ["sglang::scheduler"]
    return [_child(title, options.do, options.where) for title in titles] + [_child("sglang::detokenizer", "sleep", "")]


def _child(title: str, what: str, where: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([title, "-c", _CHILD, what, where], executable=sys.executable)


def _stop(number: int, frame: object, options: argparse.Namespace) -> None:
    del frame
    if options.count:
        with options.count.open("a") as out:
            out.write(f"{number}\n")
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _after(log: bytes, text: bytes) -> int:
    return log.index(b"\n", log.index(text)) + 1


def _say(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _await(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)


_WORDS = {200: "OK", 503: "Service Unavailable"}


class _Server(ThreadingHTTPServer):
    is_ready = False
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        good = self.path != "/health" or self.server.is_ready
        if self.path == "/health" and good:
            time.sleep(1)  # one token, in SGLang's steps of a second
        self._answer(200 if good else 503, b"")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(200, b"{}")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        client = f"{self.client_address[0]}:{self.client_address[1]}"
        asked = f'"{self.command} {self.path} HTTP/1.1" {status} {_WORDS[status]}'
        _say(f"[2026-11-30 15:42:42] INFO:     {client} - {asked}\n".encode())

    def log_message(self, *args: object) -> None:
        """Print nothing of its own."""


def _serve(port: int) -> _Server:
    server = _Server(("127.0.0.1", port), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


if __name__ == "__main__":
    main()
