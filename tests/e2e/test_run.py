"""phasetrack run: a real server started, followed, and its end passed on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

from phasetrack.edges.recorded import beside, read_evidence
from phasetrack.launch import passed_on
from tests.e2e.servers import PHASETRACK, ROOT, ended, eventually, fake_command, phasetrack, start
from tests.e2e.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from subprocess import Popen

WHOLE = (ROOT / "fixtures" / "01-plain-file" / "server.log").read_bytes()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.fixture
def leftovers() -> Iterator[list[int]]:
    """Servers to be killed afterwards, with what they leave behind: each leads a group of its own."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def _pid(running: Popen[str]) -> int:
    """The server's pid, as run tells it on stderr."""
    line = running.stderr.readline()
    assert "(pid " in line, line
    return int(line.partition("(pid ")[2].partition(")")[0])


# --- exit codes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "code"), [("exit 7", 7), ("exit 1", 1), ("exit 0", 5), ("kill -9 $$", 137), ("kill -15 $$", 143)]
)
def test_the_exit_code_of_a_command_that_was_never_ready_is_passed_on(log, script, code):
    assert phasetrack("run", "--log", log, "--", "sh", "-c", script).returncode == code


def test_a_server_that_was_ready_and_ends_well_gives_0(log):
    done = phasetrack("run", "--log", log, "--", *fake_command("--ends", 0))
    assert done.returncode == 0
    assert "READY after 40 s" in done.stdout


def test_a_server_that_fails_gives_its_own_code_and_the_failure_is_told(log):
    failing = ROOT / "fixtures" / "06a1-mem-fraction-too-small" / "server.log"
    done = phasetrack("run", "--log", log, "--", "sh", "-c", f"cat {failing}; exit 1")
    assert done.returncode == 1
    assert "FAILED" in done.stdout


def test_a_command_that_is_not_there_is_a_usage_error_and_leaves_no_log(log):
    done = phasetrack("run", "--log", log, "--", "no-such-command")
    assert done.returncode == 2
    assert "no-such-command: no such command" in done.stderr
    assert not log.exists()


def test_a_log_that_cannot_be_written_is_a_usage_error(tmp_path):
    done = phasetrack("run", "--log", tmp_path / "missing" / "x.log", "--", "true")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


@pytest.mark.parametrize(
    ("code", "signalled", "expected"),
    [(0, None, 5), (3, None, 3), (-11, None, 139), (-9, signal.SIGTERM, 143), (0, signal.SIGINT, 130), (None, None, 0),
     (-1, signal.SIGHUP, 129), (4, signal.SIGUSR1, 4)],
)  # fmt: skip
def test_what_we_exit_with(code, signalled, expected):
    assert passed_on(code, signalled, None) == expected


# --- the log ----------------------------------------------------------------------------------------


def test_the_commands_output_is_the_log_file_itself(log):
    phasetrack("run", "--log", log, "--", *fake_command("--ends", 0))
    assert log.read_bytes() == WHOLE[: WHOLE.index(b"ready to roll!\n") + len(b"ready to roll!\n")]


def test_a_log_is_named_where_none_was_given_and_the_name_is_told(tmp_path):
    done = phasetrack("run", "--", "echo", "hello", cwd=tmp_path)
    (made,) = tmp_path.iterdir()
    assert made.read_text() == "hello\n"
    assert f"log: {made.name}" in done.stderr


def test_an_older_boot_in_the_same_log_answers_nothing(log):
    log.write_bytes(WHOLE)
    done = phasetrack("run", "--log", log, "--", "sh", "-c", "exit 0")
    assert done.returncode == 5
    assert "READY" not in done.stdout
    assert log.read_bytes() == WHOLE


def test_the_log_is_appended_to_also_where_somebody_cuts_it(log, tmp_path, leftovers):
    log.write_text("older\n")
    go = tmp_path / "go"
    script = "import os, sys, time\nprint('up')\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)\nprint('on')"
    running = start("run", "--log", log, "--", sys.executable, "-c", script, go)
    leftovers.append(_pid(running))
    eventually(lambda: log.read_bytes() == b"older\nup\n")
    os.truncate(log, 0)
    go.touch()
    assert ended(running)[0] == 5
    assert log.read_bytes() == b"on\n"


def test_output_is_unbuffered_and_the_command_leads_a_session_of_its_own(log):
    script = "import os, sys; print(os.environ['PYTHONUNBUFFERED'], os.getsid(0) == os.getpid()); sys.exit(3)"
    assert phasetrack("run", "--log", log, "--", sys.executable, "-c", script).returncode == 3
    assert log.read_text() == "1 True\n"


def test_passthrough_copies_the_log_to_stdout_and_tells_the_news_on_stderr(log):
    done = phasetrack("run", "--passthrough", "--log", log, "--", *fake_command("--ends", 0), text=False)
    assert done.stdout == log.read_bytes()
    assert b"READY after 40 s" in done.stderr


def test_a_recording_holds_the_log_by_arrival_and_the_evidence_beside_it(log, tmp_path):
    cast = tmp_path / "start.cast"
    done = phasetrack("run", "--record", cast, "--log", log, "--", *fake_command("--ends", 0))
    assert done.returncode == 0
    header, *events = [json.loads(line) for line in cast.read_text(encoding="utf-8").splitlines()]
    assert header["version"] == 2
    assert "fake_server.py" in header["command"]
    assert "".join(text for _, _, text in events).encode() == log.read_bytes()
    seen = list(read_evidence(beside(str(cast))))
    assert seen[-1].root_alive is False
    assert seen[-1].exit_code == 0
    report = phasetrack("report", "--format", "json", cast)
    assert json.loads(report.stdout)["outcome"] == "ready"


# --- signals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_reaches_the_server_once_and_names_our_end(log, tmp_path, number, leftovers):
    got = tmp_path / "got"
    script = (
        "import os, signal, sys, time\n"
        "def note(n, f):\n    open(sys.argv[1], 'a').write(f'{n}\\n')\n    time.sleep(0.5)\n    os._exit(0)\n"
        f"signal.signal({int(number)}, note)\nprint('up')\ntime.sleep(60)\n"
    )
    running = start("run", "--log", log, "--", sys.executable, "-c", script, got)
    leftovers.append(_pid(running))
    eventually(lambda: log.read_bytes() == b"up\n")
    running.send_signal(number)
    assert ended(running)[0] == 128 + number
    assert got.read_text() == f"{int(number)}\n"


def test_what_we_were_started_to_ignore_stays_ignored_as_under_nohup(log, tmp_path, leftovers):
    go = tmp_path / "go"
    script = "import os, sys, time\nprint('up')\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)\nsys.exit(3)"
    command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *PHASETRACK, "run", "--log", log, "--", sys.executable]
    running = subprocess.Popen([*command, "-c", script, go], stderr=subprocess.PIPE, text=True)
    leftovers.append(_pid(running))
    eventually(lambda: log.read_bytes() == b"up\n")
    running.send_signal(signal.SIGHUP)
    go.touch()
    assert ended(running)[0] == 3


def test_killing_phasetrack_leaves_the_server_unharmed_and_the_log_whole(log, tmp_path, leftovers):
    go = tmp_path / "go"
    running = start("run", "--log", log, "--", *fake_command("--until", "Load weight begin", "--go", go))
    server = _pid(running)
    leftovers.append(server)
    eventually(lambda: b"Load weight begin" in log.read_bytes())
    running.kill()
    ended(running)
    assert psutil.Process(server).is_running()
    go.touch()
    eventually(lambda: log.read_bytes().endswith(b"ready to roll!\n"))
    assert WHOLE.startswith(log.read_bytes())
    assert phasetrack("status", log).returncode == 0


def test_no_zombie_is_left_while_its_parent_lives(log, leftovers):
    running = start("run", "--log", log, "--", "sh", "-c", "echo up; exec sleep 60")
    server = _pid(running)
    leftovers.append(server)
    eventually(log.read_bytes)
    os.kill(server, signal.SIGKILL)
    assert ended(running)[0] == 137
    assert not psutil.pid_exists(server)


# --- the screen -------------------------------------------------------------------------------------


@pytest.fixture
def screen(log: Path, tmp_path: Path) -> Iterator[Terminal]:
    """A run on a terminal, in the middle of its weights."""
    command = [*PHASETRACK, "run", "--log", str(log), "--"]
    command += fake_command("--until", "Load weight begin", "--go", tmp_path / "go", "--count", tmp_path / "count")
    terminal = Terminal(command, XDG_STATE_HOME=str(tmp_path))
    try:
        terminal.until("STARTING")
        yield terminal
    finally:
        terminal.close()


def _server_of(log: Path) -> psutil.Process:
    def find() -> psutil.Process | None:
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if str(log.parent / "go") in words and "run" not in words:
                return process
        return None

    return eventually(find)


def test_leaving_the_screen_asks_and_may_leave_the_server_running(screen, log, leftovers):
    server = _server_of(log)
    leftovers.append(server.pid)
    screen.send("q")
    screen.until("[d]etach")
    screen.send("d\r")
    assert screen.exit_code() == 0
    assert server.is_running()
    assert f"left running as pid {server.pid}" in screen.text


def test_leaving_the_screen_may_stop_the_server(screen, log, tmp_path, leftovers):
    server = _server_of(log)
    leftovers.append(server.pid)
    screen.send("q")
    screen.until("[s]top")
    screen.send("s\r")
    assert screen.exit_code() == 143
    assert not server.is_running()
    assert (tmp_path / "count").read_text() == "15\n"


def test_a_signal_to_the_screen_reaches_the_server(screen, log, tmp_path, leftovers):
    server = _server_of(log)
    leftovers.append(server.pid)
    screen.process.send_signal(signal.SIGTERM)
    assert screen.exit_code() == 143
    assert not server.is_running()
    assert (tmp_path / "count").read_text() == "15\n"


# Imported by Python itself: waits where the screen is imported, when the server runs already.
HELD = """
import os, sys, time
from importlib.abc import MetaPathFinder
class Hold(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "phasetrack.views.tui.app":
            open({here!r}, "w").close()
            while not os.path.exists({go!r}):
                time.sleep(0.01)
sys.meta_path.insert(0, Hold())
"""


@pytest.mark.parametrize("many", [1, 3])
def test_a_signal_before_the_screen_stands_reaches_the_server_once_and_ends_the_screen(log, tmp_path, many, leftovers):
    here, go = tmp_path / "here", tmp_path / "shown"
    (tmp_path / "sitecustomize.py").write_text(HELD.format(here=str(here), go=str(go)))
    command = [*PHASETRACK, "run", "--log", str(log), "--"]
    command += fake_command("--until", "Load weight begin", "--go", tmp_path / "go", "--count", tmp_path / "count")
    terminal = Terminal(command, XDG_STATE_HOME=str(tmp_path), PYTHONPATH=f"{tmp_path}:{ROOT}")
    try:
        eventually(here.exists)
        eventually(lambda: log.exists() and b"Load weight begin" in log.read_bytes())
        leftovers.append(_server_of(log).pid)
        for _ in range(many):
            terminal.process.send_signal(signal.SIGTERM)
        eventually((tmp_path / "count").exists)
        go.touch()
        assert terminal.exit_code() == 143
        assert terminal.is_restored
    finally:
        terminal.close()
