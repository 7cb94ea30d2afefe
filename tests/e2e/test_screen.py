"""The screen from outside: a real process on a real pty, real files, pipes and signals."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from tests.e2e.terminal import PATIENCE_S, Terminal
from tests.talk import FIXTURES, recording

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PHASETRACK = [sys.executable, "-m", "phasetrack"]
COLOURS = re.compile(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|4[0-7]|9[0-7]|10[0-7]|[34]8;[25];[0-9;]+)(?:;[0-9;]*)?m")


class Start:
    """Starts screens, and ends what is left of them."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._open: list[Terminal] = []

    def __call__(self, command: list[str], *, columns: int = 100, rows: int = 30, **environment: str) -> Terminal:
        homes = {f"XDG_{kind}_HOME": str(self._home / kind.lower()) for kind in ("STATE", "CONFIG", "CACHE", "DATA")}
        terminal = Terminal(command, columns=columns, rows=rows, **(homes | environment))
        self._open.append(terminal)
        return terminal

    def tail(self, *arguments: str, **options: int | str) -> Terminal:
        return self([*PHASETRACK, "tail", *arguments], **options)  # type: ignore[arg-type]

    def close(self) -> None:
        for terminal in self._open:
            terminal.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started = Start(tmp_path / "home")
    yield started
    started.close()


def _half() -> bytes:
    """A log that stands in the middle of capturing graphs."""
    whole = recording("03b-eagle3-pipe")
    return whole[: whole.index(b"Capturing num tokens")]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_bytes(_half())
    return path


def play(name: str, path: Path, *, speed: float) -> threading.Thread:
    """Write a recording as it was written, only faster."""
    events = [json.loads(line) for line in (FIXTURES / name / "server.cast").read_text("utf-8").splitlines()[1:]]

    def write() -> None:
        pause, at = threading.Event(), 0.0
        with path.open("ab", buffering=0) as file:
            for when, kind, text in events:
                pause.wait((when - at) / speed)
                at = when
                if kind == "o":
                    file.write(text.encode())

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def test_a_start_is_followed_from_an_empty_file_to_ready(start: Start, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    screen = start.tail(str(log), columns=120, rows=40)
    screen.until("no such file yet")
    play("16b-plain-file", log, speed=12)
    screen.until("STARTING")
    screen.until("Target weights")
    screen.until(lambda it: re.search(r"[▶✓] Target CUDA graphs .*\d+/\d+ graphs", it.text) is not None)
    screen.until(lambda it: "✓ READY" in it.text or "■ STOPPED" in it.text)
    screen.send("q")
    assert screen.exit_code() == 0
    assert screen.is_restored
    assert "✓ Target weights" in screen.text


EVIL = (
    b"\x1b]0;owned\x07\x1b]8;;http://evil\x07link\x1b]8;;\x07 \x1b[31mred\x1b[0m [bold]markup[/bold] \x1b[2J"
    b"\xc2\x9b1m \xe2\x80\xae end"
)


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """One visit to every picture of a log that holds a hostile line, left by ``q``; what it wrote is looked at."""
    folder = tmp_path_factory.mktemp("visit")
    path = folder / "server.log"
    path.write_bytes(_half() + b"\n[2026-11-30 15:44:53] " + EVIL + b"\n")
    started = Start(folder / "home")
    screen = started.tail(str(path))
    screen.until("[bold]markup[/bold]")
    screen.send("gjjj\ry")
    screen.until("copied")
    for key, text in (("G", "following"), ("w", "Where it stands"), ("B", "1 boot"), ("r", "names no ranks")):
        screen.send(key)
        screen.until(text)
    screen.send("m")
    screen.until("l log")
    screen.send("q")
    screen.exit_code()
    yield screen
    started.close()


def test_q_leaves_with_0_and_the_last_state_stays(visit: Terminal) -> None:
    assert visit.process.returncode == 0
    assert visit.is_restored
    assert "STARTING  Target CUDA graphs" in visit.text
    assert "✓ Target weights" in visit.text
    assert "q quit" not in visit.text


def test_only_the_sixteen_colours_of_the_terminal_are_used(visit: Terminal) -> None:
    assert COLOURS.search(visit.written) is not None
    assert re.search(rb"\x1b\[[0-9;]*[34]8;[25];", visit.written) is None


def test_a_hostile_log_draws_nothing_but_text(visit: Terminal) -> None:
    for payload in (b"owned", b"\x1b]8;", b"\xc2\x9b", b"\xe2\x80\xae", b"\x1b[31mred"):
        assert payload not in visit.written


def test_copying_goes_to_the_users_own_terminal(visit: Terminal) -> None:
    found = re.search(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", visit.written)
    assert found is not None
    assert base64.b64decode(found[1]).startswith(b"[2026-11-30 15:44:44]")


def test_the_title_tells_the_phase_and_is_given_back(visit: Terminal) -> None:
    assert b"\x1b]2;\xe2\x96\xb6 Target CUDA graphs" in visit.written
    assert visit.written.index(b"\x1b[22;0t") < visit.written.index(b"\x1b[23;0t")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_restores_the_terminal_and_names_itself(
    start: Start, log: Path, number: signal.Signals, code: int
) -> None:
    screen = start.tail(str(log))
    screen.until("STARTING")
    screen.process.send_signal(number)
    assert screen.exit_code() == code
    assert screen.is_restored


def test_ctrl_c_leaves_with_130(start: Start, log: Path) -> None:
    screen = start.tail(str(log))
    screen.until("STARTING")
    screen.send("\x03")
    assert screen.exit_code() == 130
    assert screen.is_restored


def test_a_dropped_line_ends_it_with_129(start: Start, log: Path) -> None:
    screen = start.tail(str(log))
    screen.until("STARTING")
    screen.hang_up()
    assert screen.process.wait(timeout=PATIENCE_S) == 129


def test_ctrl_z_gives_the_terminal_back_and_fg_draws_again(start: Start, log: Path) -> None:
    shell = start(["bash", "--norc", "-i"], PS1="$ ")
    shell.until("$")
    shell.send(f"{' '.join(PHASETRACK)} tail {log}\n")
    shell.until("STARTING")
    shell.send("\x1a")
    shell.until("Stopped")
    shell.send("stty -a | tr ';' '\\n'\n")
    shell.until(lambda it: " echo " in it.text and "icanon" in it.text)
    assert "-echo " not in shell.text
    assert "-icanon" not in shell.text
    shell.send("fg\n")
    shell.until(lambda it: "server.log" in it.text and "STARTING" in it.text and "q quit" in it.text)
    shell.send("q")
    shell.until(lambda it: "q quit" not in it.text and "STARTING" in it.text)
    shell.send("echo left with $?\n")
    shell.until("left with 0")
    shell.send("exit\n")
    shell.exit_code()


def test_a_stop_that_cannot_be_caught_does_not_lose_the_terminals_settings(start: Start, log: Path) -> None:
    screen = start.tail(str(log))
    screen.until("STARTING")
    screen.process.send_signal(signal.SIGSTOP)
    os.waitpid(screen.process.pid, os.WUNTRACED)
    screen.process.send_signal(signal.SIGCONT)
    screen.until(lambda it: it.written.count(b"\x1b[?1049h") == 2 and "q quit" in it.text)
    screen.send("q")
    assert screen.exit_code() == 0
    assert screen.is_restored


@pytest.mark.parametrize("sizes", [[(40, 10), (250, 60), (80, 24)], [*[(10, 3), (1, 1)] * 8, (120, 40)]])
def test_any_resize_is_survived(start: Start, log: Path, sizes: list[tuple[int, int]]) -> None:
    screen = start.tail(str(log), columns=80, rows=24)
    screen.until("STARTING")
    for columns, rows in sizes:
        screen.resize(columns, rows)
        if columns >= 40:
            screen.until("STARTING")
            screen.until(lambda it, rows=rows: it.screen.display[rows - 1].startswith("enter"))
    screen.send("q")
    assert screen.exit_code() == 0


def test_keys_lead_from_a_phase_to_its_line_and_back(start: Start, log: Path) -> None:
    screen = start.tail(str(log))
    screen.until("STARTING")
    screen.send("gjj\r")
    screen.until("in Target weights")
    assert re.search(r"▌ .*Load weight begin", screen.text)
    screen.send("\r")
    screen.until("q quit")
    screen.until("✓ Distributed init")
    screen.send("lG")
    screen.until("following")
    screen.send("/kv cache\r")
    screen.until(lambda it: "following" not in it.text and "▌ [2026-11-30 15:44:44] Using KV cache" in it.text)
    screen.send("w")
    screen.until("Where it stands")
    screen.send("r")
    screen.until("names no ranks")
    screen.send("?")
    screen.until("Everywhere")
    screen.send("q")
    screen.until("names no ranks")
    screen.send("q")
    assert screen.exit_code() == 0


def test_a_piped_log_leaves_the_keys_to_the_terminal(start: Start, log: Path) -> None:
    command = f"tail -c +1 -f {log} | {' '.join(PHASETRACK)} tail -; kill %1; exit"
    shell = start(["bash", "--norc", "-c", command])
    shell.until("standard input")
    shell.until("STARTING")
    shell.send("l")
    shell.until("following")
    shell.send("g")
    shell.until("line 1 ")
    with log.open("ab") as file:
        file.write(b"\nsomething that came later\n")
    shell.until("▼ 2 new")
    shell.send("q")
    shell.until(lambda it: it.is_restored)


def test_a_killed_writer_ends_the_log_and_the_screen_says_so(start: Start, log: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = subprocess.Popen(["bash", "-c", f"exec 3>{fifo}; cat {log} >&3; exec sleep 600 >&3"])
    try:
        shell = start(["bash", "-c", f"{' '.join(PHASETRACK)} tail - < {fifo}"])
        shell.until("STARTING")
        writer.kill()
        shell.until("LOG ENDED")
        assert "not finished when the log ended" in shell.text
        shell.send("q")
        assert shell.exit_code() == 0
    finally:
        writer.kill()
        writer.wait()


def test_a_rotated_log_goes_on_and_its_old_part_can_be_read(start: Start, log: Path) -> None:
    screen = start.tail(str(log))
    screen.until("STARTING")
    log.rename(log.with_suffix(".1"))
    log.write_bytes(b"[2026-11-30 15:44:53] a line of the new file\n")
    screen.until("replaced by a new file")
    screen.send("l")
    screen.until("a line of the new file")
    screen.send("g")
    screen.until("line 1 ")
    screen.send("q")
    assert screen.exit_code() == 0


def test_a_crash_of_ours_restores_the_terminal_and_says_where_its_report_is(start: Start, log: Path) -> None:
    broken = (
        "import phasetrack.views.tui.ranks as r; r.picture = lambda *a: 1 / 0;"
        "import sys; sys.argv[0] = 'phasetrack'; from phasetrack.cli import main; main()"
    )
    screen = start([sys.executable, "-c", broken, "tail", str(log)])
    screen.until("STARTING")
    screen.send("r")
    assert screen.exit_code() == 70
    assert screen.is_restored
    assert "ZeroDivisionError" in screen.text
    found = re.search(r"report was written to (\S+)", screen.text.replace("\n", ""))
    assert found is not None
    assert (
        "division by zero" in (log.parent / "home" / "state" / "phasetrack").glob("crash-*.txt").__next__().read_text()
    )


def test_a_log_that_cannot_be_read_is_told_as_by_every_command(start: Start, tmp_path: Path) -> None:
    screen = start.tail(str(tmp_path))
    assert screen.exit_code() == 6
    assert "is a directory" in screen.text
    assert screen.is_restored


@pytest.fixture(scope="module", params=["asked", "locale"])
def poor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A visit by a terminal without colours, and without characters beyond ASCII: because asked, or by its locale."""
    folder = tmp_path_factory.mktemp("poor")
    path = folder / "server.log"
    path.write_bytes(_half())
    started = Start(folder / "home")
    if request.param == "asked":
        screen = started.tail("--ascii", str(path), NO_COLOR="1")
    else:
        screen = started.tail(str(path), NO_COLOR="1", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    for key, text in (("", "STARTING"), ("?", "Everywhere"), ("q", "STARTING"), ("w", "Where it stands")):
        screen.send(key)
        screen.until(text)
    screen.send("q")
    screen.exit_code()
    yield screen
    started.close()


def test_no_color_means_no_colour(poor: Terminal) -> None:
    assert COLOURS.search(poor.written) is None


def test_ascii_alone_reaches_a_terminal_that_has_no_more(poor: Terminal) -> None:
    assert poor.process.returncode == 0
    assert poor.written.isascii()


def test_the_mouse_chooses_drags_and_copies(start: Start, log: Path) -> None:
    screen = start.tail(str(log))
    screen.until("STARTING")
    row = next(y for y, line in enumerate(screen.screen.display) if "Target weights" in line and "STARTING" not in line)
    screen.send(f"\x1b[<0;3;{row + 1}M\x1b[<32;16;{row + 1}M\x1b[<0;16;{row + 1}m")
    screen.until("copied 14 characters")
    found = re.findall(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", screen.written)
    assert base64.b64decode(found[-1]) == b"Target weights"
    for _ in range(2):
        screen.send(f"\x1b[<0;5;{row + 1}M\x1b[<0;5;{row + 1}m")
    screen.until("in Target weights")
    screen.send("q")
    screen.exit_code()


def test_the_bell_rings_once_when_the_start_ends(start: Start, log: Path) -> None:
    whole = recording("03b-eagle3-pipe")
    screen = start.tail(str(log), "--bell")
    screen.until("STARTING")
    with log.open("ab") as file:
        file.write(whole[log.stat().st_size : whole.index(b"SIGTERM")].rpartition(b"\n")[0] + b"\n")
    screen.until("✓ READY")
    screen.send("w")
    screen.until("How sure")
    screen.send("q")
    screen.exit_code()
    assert re.sub(rb"\x1b\][^\x07]*\x07", b"", screen.written).count(b"\x07") == 1


@pytest.mark.parametrize(
    ("arguments", "environment", "fact"),
    [
        (("a.log", "b.log"), {}, "a screen shows one log"),
        (("a.log",), {"TERM": "dumb"}, "TERM is dumb"),
        (("-",), {}, "standard input is the terminal itself"),
    ],
)
def test_where_no_screen_can_be_shown_that_is_said(
    start: Start, arguments: tuple[str, ...], environment: dict[str, str], fact: str
) -> None:
    screen = start.tail("--output", "tui", *arguments, **environment)
    assert screen.exit_code() == 2
    assert fact in screen.text
