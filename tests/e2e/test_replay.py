"""Replays from outside: a real process on a real pty with seeks and speeds, and plain lines in a pipe."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.command import PHASETRACK, phasetrack
from tests.e2e.test_screen import start as start  # noqa: PLC0414 - a fixture
from tests.talk import FIXTURES, recording

if TYPE_CHECKING:
    from tests.e2e.terminal import Terminal
    from tests.e2e.test_screen import Start

CAST = FIXTURES / "07b-tp2-eagle3-pipe" / "server.cast"
LOG = FIXTURES / "07b-tp2-eagle3-pipe" / "server.log"
FAILED = FIXTURES / "06a1-mem-fraction-too-small" / "server.log"


def replay(start: Start, *arguments: object, **options: int | str) -> Terminal:
    command = [*PHASETRACK, "replay", "--no-history", *map(str, arguments)]
    return start(command, **{"columns": 110, "rows": 34} | options)  # type: ignore[arg-type]


def spent(screen: Terminal) -> int:
    """Seconds since the begin, as the screen tells them; -1 while it tells none."""
    found = re.search(r"(\d+)(?:\.\d)? s of \d+ s", screen.text)
    return -1 if found is None else int(found[1])


def row(screen: Terminal) -> str:
    """The scrubber."""
    return screen.text.splitlines()[-2]


# --- on a terminal -----------------------------------------------------------------------------------


def test_a_start_is_played_at_speed_from_its_first_line_to_its_end(start):
    screen = replay(start, CAST, "--speed", 20)
    screen.until("✓ Target weights")  # a row that stays: a busy machine leaves pictures out
    screen.until("STOPPED")
    screen.until("paused")
    screen.send("q")
    assert screen.exit_code() == 0
    assert screen.is_restored
    assert "Replay, as it was known at 15:55:47" in screen.text
    assert "was ready at 15:55:39" in screen.text


def test_keys_go_anywhere_at_once(start):
    screen = replay(start, LOG, "--from", "+20s")
    screen.until(lambda it: 20 <= spent(it) < 55)
    screen.send(" ")
    screen.until("paused")
    at = spent(screen)
    screen.send("\x1b[C")
    screen.until(lambda it: spent(it) == at + 10)
    screen.send("\x1b[D\x1b[D")
    screen.until(lambda it: spent(it) == at - 10)
    screen.send(":15:55:20\r")
    screen.until("~15:55:20")
    screen.until("Came true: ready in 19 s")
    screen.send("[")
    screen.until("Target CUDA graphs 0/23 graphs")
    screen.send("]")
    screen.until("STARTING  Draft weights")
    screen.send("9")
    screen.until("READY")
    screen.send("0")
    screen.until("0 s of 66 s")
    screen.send(">>>")
    screen.until("paused, 10×")
    screen.send("q")
    assert screen.exit_code() == 0
    assert screen.is_restored


def test_a_failure_is_found_by_its_mark_and_read_in_the_log(start):
    screen = replay(start, FAILED, "--from", "50%")
    screen.until("STARTING")
    screen.send(" p")
    screen.until("First cause")
    assert "✗" in row(screen)
    screen.send("G")
    screen.send("gjjjj")
    screen.send("\r")
    screen.until(lambda it: re.search(r"▌ .*Scheduler hit an exception", it.text) is not None)
    screen.send("\x1b")
    screen.until("First cause")
    screen.send("m")
    screen.until("✗ FAILED")
    screen.send("q")
    assert screen.exit_code() == 0


def test_a_click_on_the_scrubber_goes_there(start):
    screen = replay(start, CAST, "--from", "10%")
    screen.until("Came true")
    screen.send(" ")
    screen.until("paused")
    y = next(k for k, line in enumerate(screen.screen.display) if line.startswith("Start processes  "))
    x = screen.screen.display[y].index("Target CUDA")
    screen.send(f"\x1b[<0;{x + 2};{y + 1}M\x1b[<0;{x + 2};{y + 1}m")
    screen.until("STARTING  Target CUDA graphs")
    screen.send("q")
    assert screen.exit_code() == 0


def test_a_piped_log_can_be_replayed_with_keys_from_the_terminal(start):
    shell = start(["bash", "-c", f"zcat -f {LOG} | {' '.join(PHASETRACK)} replay --no-history -"], rows=34)
    shell.until("standard input")
    shell.until("Came true")
    shell.send(" 6")
    shell.until("STARTING  Target CUDA graphs")
    shell.send("q")
    assert shell.exit_code() == 0
    assert shell.is_restored


def test_the_demo_is_a_replay_on_a_terminal(start):
    screen = start([*PHASETRACK, "demo"], columns=80, rows=24)
    screen.until("Demo: a recording of a real start, with exact times. q leaves")
    screen.until("▶ 5×")
    screen.send(" 7")
    screen.until("STARTING")
    screen.send("q")
    assert screen.exit_code() == 0


def test_a_log_that_is_not_there_is_told_as_by_every_command(start, tmp_path):
    screen = replay(start, tmp_path / "no.log")
    assert screen.exit_code() == 6
    assert "no such file" in screen.text
    assert screen.is_restored


def test_an_earlier_boot_is_opened_from_the_list_in_a_live_screen(start, tmp_path):
    log = tmp_path / "server.log"
    second = recording("03b-eagle3-pipe").replace(b"2026-11-30", b"2026-12-01")
    log.write_bytes(recording("06a1-mem-fraction-too-small") + second[: second.index(b"Capturing num tokens")])
    screen = start.tail("--no-history", "--log-only", str(log), rows=34)
    screen.until("STARTING  Target CUDA graphs")
    screen.send("b")
    screen.until("2 boots in this log")
    screen.send("j\r")
    screen.until("FAILED")
    screen.until("an earlier boot of this file: esc goes back to the latest")
    screen.send("p")
    screen.until("First cause")
    screen.send("\x1b")
    screen.until(lambda it: "First cause" not in it.text)
    screen.send("\x1b")
    screen.until("STARTING  Target CUDA graphs")
    screen.send("q")
    assert screen.exit_code() == 0


# --- in a pipe ---------------------------------------------------------------------------------------


def news(text: str) -> list[str]:
    """The lines of a plain tail but those that only a clock tells, and what is known of the model by then."""
    lines = [line for line in text.splitlines() if "…" not in line]
    return [re.sub(r"(Boot \d+ begins at line \d+).*", r"\1", line) for line in lines]


@pytest.mark.parametrize("name", ["03b-eagle3-pipe", "06b2-truncated-shard", "06i-sigterm-in-boot-pty", "07d-dp2-file"])
def test_plain_lines_are_those_of_a_tail(name, tmp_path):
    log = FIXTURES / name / "server.cast"
    told = phasetrack("replay", "--plain", "--no-history", log, folder=tmp_path)
    tailed = phasetrack("tail", "--output", "plain", "--no-history", log, folder=tmp_path)
    assert (told.returncode, told.stderr) == (0, "")
    assert news(told.stdout) == news(tailed.stdout)


def test_a_silence_is_told_when_it_lasted(tmp_path):
    log = FIXTURES / "03a-eagle3-file-coldjit" / "server.log"
    told = phasetrack("replay", log, "--no-history", folder=tmp_path).stdout
    assert "15:39:57  … Target CUDA graphs 0/23 graphs, in it for 30 s. Target CUDA graphs: silent for 30 s" in told


def test_an_archive_is_played_too(tmp_path):
    packed = tmp_path / "server.log.gz"
    packed.write_bytes(gzip.compress(LOG.read_bytes()))
    told = phasetrack("replay", "--no-history", packed, folder=tmp_path).stdout
    assert told == phasetrack("replay", "--no-history", LOG, folder=tmp_path).stdout
    assert "READY after 58 s" in told


def test_a_begin_and_a_boot_can_be_asked_for(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(FAILED.read_bytes() + LOG.read_bytes().replace(b"2026-11-30", b"2026-12-01"))
    told = phasetrack("replay", "--no-history", "--boot", 1, "--from", "target_load", log, folder=tmp_path).stdout
    assert "▶ Target weights" in told.splitlines()[0]
    assert "FAILED" in told
    assert "READY" not in told
    latest = phasetrack("replay", "--no-history", log, folder=tmp_path).stdout
    assert "Boot 2 begins at line 6" in latest.splitlines()[0]
    assert "FAILED" not in latest


def test_with_a_speed_plain_lines_take_their_time(tmp_path):
    began = time.monotonic()
    done = phasetrack("replay", "--plain", "--speed", 1000, "--no-history", CAST, folder=tmp_path)
    assert time.monotonic() - began >= 0.08
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (("--speed", "0"), "--speed"), (("--speed", "2000"), "--speed"),
        (("--from", "?"), "--from ?: no place (15:42:03, line 120, target_graph, 40% or +90s)"),
        (("--from", "nowhere"), "no phase of this boot"), (("--idle", "x"), "--idle x: not a length of time"),
        (("--boot", "9"), "--boot 9: this log holds no such boot"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_2_and_said_in_a_line(arguments, fact, tmp_path):
    done = phasetrack("replay", *arguments, LOG, folder=tmp_path)
    assert done.returncode == 2
    assert fact in re.sub(r"[\s│]+", " ", done.stderr)


def test_a_log_newest_first_is_played_with_a_word_of_warning(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(b"\n".join(reversed(LOG.read_bytes().split(b"\n"))))
    done = phasetrack("replay", "--no-history", log, folder=tmp_path)
    assert done.returncode == 0
    assert "newest line first" in done.stderr


def test_a_reader_that_goes_away_is_no_error():
    command = f"{' '.join(PHASETRACK)} replay --no-history {LOG} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, env=os.environ)
    assert done.stdout.count("\n") == 1
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
