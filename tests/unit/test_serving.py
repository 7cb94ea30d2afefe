"""A healthy server answers wrong requests for days: nothing of that is a failure."""

from __future__ import annotations

import sys
from random import Random

from phasetrack.core.model import Outcome
from tests.talk import hear, recording

LINES = 200_000  # a command takes more: python -m tests.unit.test_serving 1000000
STATUSES = ["200 OK"] * 8 + ["400 Bad Request", "404 Not Found", "503 Service Unavailable", "500 Internal Server Error"]
DECODE = (
    "Decode batch, #running-req: 1, #token: 48, token usage: 0.00, cuda graph: True, gen throughput (token/s): 1.58"
)
RAISED = """Exception in ASGI application
Traceback (most recent call last):
  File "/opt/site/starlette/routing.py", line 76, in app
    response = await f(request)
  File "/opt/site/sglang/srt/managers/tokenizer_manager.py", line 500, in generate_request
    raise ValueError(msg)
ValueError: The input (9000 tokens) is longer than the model's context length (8192 tokens).
"""
CLIENT = """Traceback (most recent call last):
  File "/opt/site/sglang/bench_serving.py", line 800, in <module>
    run_benchmark(args)
AssertionError: no successful request
"""
TASK = """Task exception was never retrieved
Traceback (most recent call last):
  File "/opt/site/sglang/srt/managers/tokenizer_manager.py", line 1200, in handle_loop
    await self.recv_from_detokenizer.recv_pyobj()
asyncio.exceptions.CancelledError
"""
# Programs that write into the same file, without any stamp.
SCRIPT = """Traceback (most recent call last):
  File "/srv/load.py", line 12, in <module>
    main()
"""
OTHERS = (
    CLIENT,
    SCRIPT + "requests.exceptions.HTTPError: 400 Client Error: Bad Request for url: http://127.0.0.1:30000/v1",
    SCRIPT + "openai.BadRequestError: Error code: 400 - {'object': 'error', 'message': 'too long'}",
    SCRIPT + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    SCRIPT + "ModuleNotFoundError: No module named 'datasets'",
    "./load.sh: line 12:  4242 Killed                  python3 -m sglang.bench_serving --num-prompts 1000",
    "usage: load.py [-h]\nload.py: error: unrecognized arguments: --rate 3",
)
FREEZE = """post-warmup freeze_gc failed
Traceback (most recent call last):
  File "/opt/site/sglang/srt/entrypoints/http_server.py", line 2000, in _execute_server_warmup
    requests.post(url)
ConnectionError: refused
"""


def serving(random: Random, count: int) -> str:
    """So many lines of a server that has clients of all kinds."""
    said: list[str] = []
    while len(said) < count:
        stamp = f"[2026-11-30 {16 + len(said) // 40_000:02d}:{len(said) // 700 % 60:02d}:{len(said) // 12 % 60:02d}] "
        kind = random.random()
        if kind < 0.55:
            said.append(f"{stamp}{DECODE}, #queue-req: 0")
        elif kind < 0.99:
            said.append(f'{stamp}INFO:     10.0.0.9:{random.randrange(2**16)} - "POST /v1/completions HTTP/1.1" '
                        f"{random.choice(STATUSES)}")  # fmt: skip
        elif kind < 0.996:
            said += (stamp + random.choice([RAISED, FREEZE, TASK])).splitlines()
        elif kind < 0.998:
            said += random.choice(OTHERS).splitlines()
        else:
            said.append(f"{stamp}Error in request: no such model")
    return "\n".join(said) + "\n"


def healthy(count: int):
    """A start that came to ready, and so many lines of its service."""
    start = recording("01-plain-file").partition(b"ready to roll!\n")
    return hear(b"".join(start[:2]) + serving(Random(1), count).encode(), open_end=True)


def fatal(heard) -> list[str]:
    return [str(record.data) for record in heard.records if record.type == "failure" and record.data["fatal"]]


def test_no_client_makes_a_healthy_server_fail_however_long_it_serves():
    heard = healthy(LINES)
    assert heard.snapshot.outcome is Outcome.READY
    assert heard.snapshot.failure is None
    assert fatal(heard) == []


def test_a_crash_among_clients_errors_is_found_where_it_stands():
    start = recording("01-plain-file").partition(b"ready to roll!\n")
    before, behind = serving(Random(2), 500), serving(Random(3), 500)
    crash = "[2026-11-30 16:00:59] Scheduler hit an exception: " + RAISED.partition("\n")[2].replace("Value", "Memory")
    heard = hear(b"".join(start[:2]) + (before + crash + behind).encode(), open_end=True)
    line = (b"".join(start[:2]) + before.encode()).count(b"\n") + 1
    failure = heard.snapshot.failure
    assert (failure.place.line, failure.after_ready) == (line, True)
    assert failure.message.startswith("MemoryError: ")
    assert heard.snapshot.ready_at_s is not None


if __name__ == "__main__":
    heard = healthy(int(sys.argv[1]))
    sys.stdout.write(f"{heard.snapshot.sources[0].lines} lines: {heard.snapshot.outcome}, {len(fatal(heard))} fatal\n")
