"""tail, status and wait beside a real server: processes that hang, die, or answer over HTTP."""

from __future__ import annotations

import fcntl
import http.server
import os
import threading
from math import inf
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from phasetrack.core.evidence import EvidenceFold
from phasetrack.core.model import Chunk, Tick
from phasetrack.core.tracker import Tracker
from phasetrack.edges.probe import Target, target_by_log
from phasetrack.edges.sampler import EvidenceSampler
from tests.e2e.servers import LOADING, FakeServer, ended, eventually, free_port, phasetrack, start, status
from tests.talk import args, patterns, talk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from phasetrack.core.model import Channel, Evidence


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    """Start fake servers; all are gone afterwards."""
    servers: list[FakeServer] = []

    def begin(*options: object, into: str = "") -> FakeServer:
        servers.append(FakeServer(tmp_path, "--until", LOADING, *options, into=into))
        servers[-1].says(LOADING)
        return servers[-1]

    yield begin
    for server in servers:
        server.end()


# --- finding it -------------------------------------------------------------------------------------


def test_the_server_is_found_by_its_log_and_its_processes_are_known(serve):
    server = serve("--ranks", 2)
    server.child("sglang::scheduler_TP1")
    server.child("sglang::detokenizer")
    code, known = status(server.log)
    evidence = known["evidence"]
    assert code == 3
    assert evidence["root_pid"] == server.process.pid
    assert evidence["found"] == "it has the log open"
    roles = {process["name"]: (process["role"], process["rank"]) for process in evidence["processes"]}
    assert roles["sglang::scheduler_TP0"] == ("rank", "TP0")
    assert roles["sglang::scheduler_TP1"] == ("rank", "TP1")
    assert roles["sglang::detokenizer"] == ("detokenizer", "")
    assert {channel["id"] for channel in evidence["channels"]} >= {"memory", "storage", "cpu", "compilers"}


def test_the_server_is_found_behind_tee(serve, tmp_path):
    server = serve(into=f"tee -a {tmp_path / 'server.log'} >/dev/null")
    known = status(server.log)[1]
    assert known["evidence"]["found"] == "it writes the pipe that the log is made of"
    assert psutil.Process(known["evidence"]["root_pid"]).cmdline()[1].endswith("fake_server.py")


def test_a_given_pid_is_believed(serve):
    server = serve()
    known = status(server.log, "--pid", server.process.pid)[1]
    assert known["evidence"]["found"] == "the pid that was given"


def test_nothing_but_the_log_is_looked_at_where_that_is_asked(serve):
    assert status(serve().log, "--log-only")[1]["evidence"] is None


def test_a_log_that_nobody_writes_has_ended(serve):
    server = serve()
    server.end()
    os.utime(server.log, (0, 0))
    code, known = status(server.log)
    assert (code, known["verdict"]["state"]) == (5, "ended")
    assert phasetrack("wait", server.log).returncode == 5


def test_a_ready_server_whose_process_is_gone_is_over(serve):
    server = serve()
    server.goes_on()
    server.says("ready to roll!")
    assert status(server.log)[0] == 0
    server.end()
    code, known = status(server.log, "--pid", server.process.pid)
    assert (code, known["outcome"]) == (5, "stopped")


# --- hanging and dying ------------------------------------------------------------------------------


def test_a_stopped_scheduler_is_suspect_and_its_going_on_is_seen(serve):
    server = serve()
    scheduler = server.child("sglang::scheduler")
    scheduler.suspend()
    eventually(lambda: scheduler.status() == psutil.STATUS_STOPPED)
    done = phasetrack("status", server.log)
    assert done.returncode == 4
    assert f"kill -CONT {scheduler.pid}" in done.stdout
    scheduler.resume()
    eventually(lambda: scheduler.status() != psutil.STATUS_STOPPED)
    assert phasetrack("status", server.log).returncode == 3


def test_a_wait_may_end_at_the_first_suspicion(serve):
    server = serve()
    waiting = start("wait", "--fail-on", "suspect", "--timeout", "50s", server.log)
    server.child("sglang::scheduler").suspend()
    code, out, _ = ended(waiting)
    assert code == 4
    assert "SIGCONT" in out


def test_a_wait_ends_when_a_rank_is_killed_while_others_live(serve):
    server = serve("--ranks", 2)
    victim = server.child("sglang::scheduler_TP1")
    server.child("sglang::detokenizer")
    waiting = start("wait", "--timeout", "50s", server.log)
    eventually(lambda: "Target weights" in waiting.stderr.readline())
    victim.kill()
    code, out, _ = ended(waiting)
    assert code == 4
    assert f"sglang::scheduler_TP1 (pid {victim.pid}) is gone" in out


def test_a_wait_that_fails_on_nothing_runs_into_its_own_time_limit(serve):
    server = serve()
    server.child("sglang::scheduler").suspend()
    code, out, _ = ended(start("wait", "--fail-on", "none", "--timeout", "5s", server.log))
    assert code == 124
    assert out.startswith("TIMEOUT after 5s: SUSPECT")


def test_a_wait_ends_at_once_when_the_server_dies(serve):
    server = serve()
    waiting = start("wait", server.log)
    eventually(lambda: "Target weights" in waiting.stderr.readline())
    server.end()
    code, out, _ = ended(waiting)
    assert code == 1
    assert "is gone" in out


def test_a_tail_tells_of_a_death_that_the_log_does_not(serve):
    server = serve()
    tail = start("tail", "--output", "json", server.log)
    eventually(lambda: "target_load" in tail.stdout.readline())
    server.end()
    eventually(lambda: '"process.gone"' in tail.stdout.readline())
    assert '"outcome":"failed"' in tail.stdout.readline()
    tail.terminate()
    ended(tail)


def test_ranks_that_a_dead_server_left_behind_are_named_to_whoever_comes_later(serve):
    server = serve("--ranks", 2)
    ranks = [server.child(f"sglang::scheduler_TP{k}").pid for k in range(2)]
    server.process.kill()
    server.process.wait()
    code, known = status(server.log)
    assert code == 1
    assert sorted(known["verdict"]["next_step"].split()[1:]) == sorted(map(str, ranks))
    assert known["verdict"]["because"].startswith("The server's main process is gone")


@pytest.mark.parametrize("what", ["fifo", "lock"])
def test_a_scheduler_that_only_waits_is_quiet_for_a_minute_and_suspect_after_its_dwell(serve, tmp_path, what):
    """Real processes, sampled in the rhythm of a virtual clock: nothing of theirs moves, however fast it runs."""
    held = tmp_path / "held"
    if what == "fifo":
        os.mkfifo(held)
    with (tmp_path / "lock" if what == "fifo" else held).open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = serve("--do", what, "--where", held)
        scheduler = server.child("sglang::scheduler")
        eventually(lambda: scheduler.status() == psutil.STATUS_SLEEPING)
        server.child("sglang::detokenizer")
        tracker, sampler = Tracker(patterns(), "server.log"), EvidenceSampler(str(server.log), gpus_after_s=inf)
        tracker.feed(Chunk(server.log.read_bytes()))
        began = 1_900_000_000.0
        tracker.feed(Tick(began, began))
        states = []
        for k in range(60):
            now = began + 10 * k
            tracker.feed(sampler.sample(tracker.snapshot(now), now))
            states.append(str(tracker.snapshot(now).verdict.state))
    assert set(states[:7]) <= {"progressing", "quiet"}
    assert states[-1] in {"suspect", "stuck"}


def _watched(server: FakeServer, enough: Any) -> Evidence:
    """Real samples in real time until a view shows what is expected."""
    fold, sampler, tracker = EvidenceFold(), EvidenceSampler(str(server.log), gpus_after_s=inf), Tracker(patterns())

    def look() -> Evidence | None:
        now = psutil.time.time()
        fold.feed(sampler.sample(tracker.snapshot(now), now))
        seen = fold.view(now)
        assert seen is not None
        return seen if enough({channel.id: channel for channel in seen.channels}) else None

    return eventually(look)


def test_a_spinning_scheduler_moves_the_cpu_and_nothing_else(serve):
    def spins(channel: dict[str, Channel]) -> bool:
        moved = channel["cpu"].moved_ago_s
        return moved is not None and moved + 1 < min(channel["storage"].flat_s, channel["memory"].flat_s)

    seen = _watched(serve("--do", "spin"), spins)
    assert [channel.id for channel in seen.channels if not channel.strong] == ["cpu"]


def test_touched_memory_is_seen(serve):
    _watched(serve("--do", "touch"), lambda channel: channel["memory"].moved_ago_s is not None)


# --- Kubernetes -------------------------------------------------------------------------------------


def test_a_startup_probe_passes_while_it_starts_and_fails_when_it_is_dead(serve):
    server = serve("--ranks", 2)
    server.child("sglang::scheduler_TP1")
    server.child("sglang::detokenizer")
    assert phasetrack("status", "--startup-probe", server.log).returncode == 0
    server.end()
    assert phasetrack("status", "--startup-probe", "--pid", server.process.pid, server.log).returncode == 1


# --- HTTP -------------------------------------------------------------------------------------------


def test_ready_by_log_waits_for_the_first_good_answer(serve, tmp_path):
    warm = tmp_path / "warm"
    server = serve("--port", free_port(), "--warm", warm)
    waiting = start("wait", "--probe", "health", "--timeout", "50s", server.log)
    server.goes_on()
    server.says('"GET /health HTTP/1.1" 503')
    assert waiting.poll() is None
    warm.touch()
    code, out, _ = ended(waiting)
    assert code == 0
    assert out.startswith("READY")


def test_a_status_may_ask_over_http_and_tells_the_rungs(serve):
    server = serve("--port", free_port())
    server.goes_on()
    server.says("ready to roll!")
    known = status(server.log, "--probe", "health")[1]
    rungs = {rung["id"]: rung["ok"] for rung in known["readiness"]}
    assert rungs == {"process": True, "port": True, "health": True, "token": True, "warm": None}


def test_a_sampled_token_proves_warm(serve):
    server = serve("--port", free_port())
    server.goes_on()
    server.says("ready to roll!")
    tail = start("tail", "--output", "json", "--probe", "generate", server.log)
    server.says('"POST /generate HTTP/1.1" 200')
    tail.terminate()
    ended(tail)


@pytest.mark.parametrize(
    ("host", "asked"),
    [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("::1", "::1"),  # noqa: S104 - what servers bind to, not we
     ("localhost", "localhost"), ("10.1.2.3", "127.0.0.1"), ("gpu-7.example.com", "127.0.0.1"), (None, "127.0.0.1")],
)  # fmt: skip
def test_a_probe_without_a_url_never_leaves_this_machine_whatever_the_log_names(host, asked):
    known = talk(f"42:00 | {args(host=host)}").snapshot
    assert target_by_log(known) == Target(asked, 30000)


class _Foreign(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *args: object) -> None:
        """Print nothing."""


def test_another_server_on_the_port_is_named(serve):
    foreign = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Foreign)
    threading.Thread(target=foreign.serve_forever, daemon=True).start()
    try:
        server = serve()
        port = foreign.server_address[1]
        known = status(server.log, "--url", f"http://127.0.0.1:{port}")[1]
        rung = next(rung for rung in known["readiness"] if rung["id"] == "port")
        assert rung["ok"] is False
        assert "another server answers" in rung["detail"]
    finally:
        foreign.shutdown()
        foreign.server_close()


def test_a_port_that_another_program_holds_is_named_without_asking_it(serve):
    foreign = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Foreign)
    try:
        server = serve("--port", foreign.server_address[1])
        rung = next(rung for rung in status(server.log)[1]["readiness"] if rung["id"] == "port")
        assert rung["ok"] is False
        assert f"(pid {os.getpid()})" in rung["detail"]
    finally:
        foreign.server_close()


def test_a_url_that_is_none_is_a_usage_error(tmp_path):
    (tmp_path / "x.log").touch()
    done = phasetrack("status", "--url", "ftp://host", tmp_path / "x.log")
    assert done.returncode == 2
    assert "not an HTTP URL" in done.stderr
