"""wait: every exit code that the log alone gives, reached by a real process beside a log that grows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.command import home, phasetrack
from tests.e2e.servers import PHASETRACK, ended
from tests.talk import recording

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READY = recording("01-plain-file")
LATER = recording("16b-plain-file")
FAILED = recording("06a1-mem-fraction-too-small")
# Up to its weights, and up to a server at work.
LOADING = READY[: READY.index(b"Load weight begin")]
SERVING = READY[: READY.index(b"SIGTERM received") - len("[2026-11-30 15:42:53] ")]
LOADED = READY[len(LOADING) : READY.index(b"Capture")]
HANGING = SERVING + (
    b"[2026-11-30 15:52:53] Watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n"
    b"[2026-11-30 15:52:53] self.cur_batch.batch_size()=1\n"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


class Waiting:
    """A wait as a process, that has begun to look at its log."""

    def __init__(self, log: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [*PHASETRACK, "wait", str(log), "--log-only", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, text=True, env=home(log.parent),
        )  # fmt: skip
        self.heard = ""

    def until_it_says(self, text: str) -> None:
        """Read its stderr up to a line that holds a text."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.heard += line
            if text in line:
                return
        pytest.fail(f"it never said {text!r}, but {self.heard!r}")

    def end(self) -> tuple[int, str, str]:
        code, out, err = ended(self.process)
        return code, out, self.heard + err


def appends(data: bytes) -> Callable[[Path], None]:
    def append(log: Path) -> None:
        with log.open("ab") as out:
            out.write(data)

    return append


# --- codes that come while it waits -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "comes", "options", "code", "said"),
    [
        (LOADING, SERVING[len(LOADING) :], (), 0, "READY"),
        (LOADING, LOADED, ("--until", "target_load"), 0, "REACHED Target weights"),
        (LOADING, FAILED, (), 1, "FAILED"),
        (LOADING, HANGING[len(LOADING) :], ("--until", "ready", "--new"), 124, "TIMEOUT"),
        (SERVING, READY[len(SERVING) :], ("--new",), 124, "TIMEOUT"),
        (LOADING, b"", (), 124, "TIMEOUT after 2s"),
    ],
    ids=["ready", "a phase", "failed", "an old boot that goes on", "an old boot that stops", "nothing comes"],
)
def test_what_comes_is_answered_by_its_code(log, there, comes, options, code, said):
    log.write_bytes(there)
    waiting = Waiting(log, *options, "--timeout", "2s" if code == 124 else "50s")
    waiting.until_it_says("waiting for a new boot" if "--new" in options else "Start processes")
    appends(comes)(log)
    found, out, err = waiting.end()
    assert (found, out.count("\n")) == (code, 1), (out, err)
    assert said in out


def test_a_log_that_does_not_exist_is_waited_for(log):
    waiting = Waiting(log, "--timeout", "50s")
    waiting.until_it_says("waiting for it")
    log.write_bytes(SERVING)
    assert waiting.end()[0] == 0


def test_a_server_whose_log_says_that_it_hangs_is_4(log):
    log.write_bytes(LOADING)
    waiting = Waiting(log, "--timeout", "50s")
    waiting.until_it_says("Start processes")
    appends(b"[2026-11-30 15:52:53] Watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n")(log)
    code, out, _ = waiting.end()
    assert code == 4
    assert "STUCK" in out.upper()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_with_its_code(log, number, code):
    log.write_bytes(LOADING)
    waiting = Waiting(log)
    waiting.until_it_says("Start processes")
    waiting.process.send_signal(number)
    assert waiting.end()[:2] == (code, "")


# --- codes that stand in the log already ----------------------------------------------------------------


def test_a_server_that_was_stopped_is_5(log):
    log.write_bytes(READY)
    assert Waiting(log).end()[0] == 5


def test_a_pipe_that_ends_in_the_middle_of_a_start_is_5(tmp_path):
    assert phasetrack("wait", "-", folder=tmp_path, stdin=LOADING).returncode == 5


def test_a_folder_is_6(tmp_path):
    assert phasetrack("wait", tmp_path, folder=tmp_path).returncode == 6


@pytest.mark.parametrize("options", [("--until", "tea"), ("--timeout", "soon"), ("--timeout", "")])
def test_a_wrong_option_is_2_and_named(log, tmp_path, options):
    done = phasetrack("wait", log, *options, folder=tmp_path)
    assert done.returncode == 2
    assert options[0] in done.stderr


# --- old boots --------------------------------------------------------------------------------------------


def test_a_ready_that_stood_there_before_is_answered_with_its_age(log):
    log.write_bytes(SERVING)
    long_ago = time.time() - 26 * 3600
    os.utime(log, (long_ago, long_ago))
    code, out, _ = Waiting(log).end()
    assert code == 0
    assert "1 d 2 h ago" in out
    assert "--new waits for the next boot" in out


def test_only_a_new_boot_counts_where_that_is_asked_for(log):
    log.write_bytes(SERVING)
    waiting = Waiting(log, "--new", "--timeout", "50s", "--json")
    waiting.until_it_says("waiting for a new boot")
    appends(LATER[: LATER.index(b"SIGTERM received") - len("[2026-11-30 16:20:17] ")])(log)
    code, out, _ = waiting.end()
    known = json.loads(out)
    assert (code, known["boot"], known["outcome"]) == (0, 2, "ready")


@pytest.mark.parametrize("how", ["truncated", "a new file"])
def test_a_restart_in_the_place_of_an_old_log_is_new(log, how):
    log.write_bytes(SERVING)
    waiting = Waiting(log, "--new", "--timeout", "50s")
    waiting.until_it_says("waiting for a new boot")
    if how == "a new file":
        log.unlink()
    log.write_bytes(LATER[: LATER.index(b"SIGTERM received") - len("[2026-11-30 16:20:17] ")])
    code, out, err = waiting.end()
    assert (code, "it was so before" in out) == (0, False), err


# --- what goes where ----------------------------------------------------------------------------------------


def test_progress_goes_to_stderr_and_the_answer_to_stdout(log):
    log.write_bytes(LOADING)
    waiting = Waiting(log, "--timeout", "50s")
    waiting.until_it_says("Start processes")
    appends(SERVING[len(LOADING) :])(log)
    _, out, err = waiting.end()
    assert out.startswith("READY: ")
    assert "Target weights 64/64 shards" in err
    assert "READY after" in err


def test_a_wait_without_a_time_limit_says_so(log):
    log.write_bytes(READY)
    assert "no --timeout given" in Waiting(log).end()[2]
    assert "no --timeout given" not in Waiting(log, "--timeout", "1h30m").end()[2]
