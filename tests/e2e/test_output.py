"""Where answers go: outputs that are full, closed or unread, and files that nobody may lose."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import subprocess
import sys

import pytest

from tests.e2e.command import PHASETRACK, home, inside
from tests.talk import FIXTURES

PLAIN, FAILED = FIXTURES / "01-plain-file" / "server.log", FIXTURES / "06b2-truncated-shard" / "server.log"


def shell(line: str, folder) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell in a folder; ``PT`` in it is phasetrack."""
    line = line.replace("PT", " ".join(map(shlex.quote, PHASETRACK)))
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], env=home(folder), cwd=folder, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    return done


# --- files -------------------------------------------------------------------------------------------

OVER = [
    "report in.log -o in.log", "report in.log -o sym.log", "report in.log -o hard.log", "report - -o in.log < in.log",
    "report in.log --bundle in.log", "report in.log --bundle sym.log", "report -f ndjson in.log -o in.log",
    "compare in.log other.log -o in.log", "compare other.log in.log -o hard.log",
    "compare other.log in.log#1 -o in.log",
]  # fmt: skip


@pytest.mark.parametrize("words", OVER)
def test_no_result_is_written_over_what_is_read(words, tmp_path):
    for name in ("in.log", "other.log"):
        (tmp_path / name).write_bytes(PLAIN.read_bytes())
    (tmp_path / "sym.log").symlink_to("in.log")
    (tmp_path / "hard.log").hardlink_to(tmp_path / "in.log")
    done = shell(f"PT {words}", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is read by this command" in done.stderr
    assert (tmp_path / "in.log").read_bytes() == PLAIN.read_bytes()


def test_the_history_is_no_place_for_an_export(tmp_path):
    inside("history", "import", PLAIN, folder=tmp_path)
    (base,) = tmp_path.rglob("history.db")
    before = base.read_bytes()
    for words in (("history", "export"), ("report", PLAIN)):
        assert inside(*words, "-o", base, folder=tmp_path).returncode == 2
    assert base.read_bytes() == before


@pytest.mark.parametrize("words", ["report p.log -o", "report p.log --bundle"])
def test_a_link_stays_a_link_and_a_device_a_device(words, tmp_path):
    (tmp_path / "p.log").write_bytes(PLAIN.read_bytes())
    (tmp_path / "old").write_text("yesterday's")
    (tmp_path / "old").chmod(0o640)
    (tmp_path / "link").symlink_to("old")
    assert shell(f"PT {words} link", tmp_path).returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "old").read_bytes() != b"yesterday's"
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o640
    full = shell(f"PT {words} /dev/full", tmp_path)
    assert full.returncode == 2
    assert full.stderr == "phasetrack: /dev/full: cannot be written: No space left on device\n"
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)  # noqa: PTH116


def test_a_disk_that_is_full_leaves_the_old_report(tmp_path):
    (tmp_path / "old.html").write_text("yesterday's")
    done = shell(f"ulimit -f 1; PT report {PLAIN} --no-history -f html -o old.html", tmp_path)
    assert done.returncode == 2
    assert "old.html: cannot be written: File too large" in done.stderr
    assert (tmp_path / "old.html").read_text() == "yesterday's"
    assert [path for path in tmp_path.iterdir() if path.is_file()] == [tmp_path / "old.html"]


def test_a_dash_is_standard_output_and_nothing_is_no_name(tmp_path):
    to_dash = shell(f"PT report {PLAIN} --no-history -o -", tmp_path)
    assert to_dash.stdout == shell(f"PT report {PLAIN} --no-history", tmp_path).stdout
    assert not (tmp_path / "-").exists()
    unnamed = inside("report", PLAIN, "-o", "", folder=tmp_path)
    assert (unnamed.returncode, unnamed.stderr) == (2, "phasetrack: the name of the file to write is empty\n")
    assert inside("report", PLAIN, "--bundle", "-", folder=tmp_path).returncode == 2


def test_a_recording_and_its_log_are_two_files(tmp_path):
    for words in ("--record x --log x", "--record x.cast --log x.evidence.jsonl", "--record ./x --log y/../x"):
        (tmp_path / "y").mkdir(exist_ok=True)
        done = shell(f"PT run {words} -- true", tmp_path)
        assert done.returncode == 2
        assert "two different things" in done.stderr


def test_a_recording_on_a_full_disk_ends_and_the_start_is_still_followed(tmp_path):
    done = shell("PT run --log x.log --record /dev/full -- true", tmp_path)
    assert (done.returncode, "cannot be written: No space left" in done.stderr) == (2, True)
    server = f"sh -c 'ulimit -f unlimited; cat {FAILED}; exit 1'"
    done = shell(f"ulimit -S -f 4; PT run --no-history --record x.cast --log x.log -- {server}", tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("the recording ends here") == 1
    assert "FAILED" in done.stdout


# --- standard output ---------------------------------------------------------------------------------

OUTCOMES = [
    (f"status {FAILED}", 1), (f"wait --json {FAILED}", 1), (f"tail {FAILED}", 1), (f"tail -o json {FAILED}", 1),
    ("run --log x.log -- sh -c 'exit 7'", 7),
    ("run --passthrough --log x.log -- sh -c 'echo hello; exit 7'", 7),
]  # fmt: skip


@pytest.mark.parametrize("place", ["> /dev/full", ">&-", "| true"])
@pytest.mark.parametrize(("words", "code"), OUTCOMES)
def test_an_outcome_is_the_same_where_nobody_can_read_it(words, code, place, tmp_path):
    done = shell(f"PT {words} {place}", tmp_path)
    assert done.returncode == code
    assert done.stderr.count("standard output cannot be written") == (place != "| true")


@pytest.mark.parametrize("place", ["> /dev/full", ">&-"])
@pytest.mark.parametrize(
    "words", [f"report {PLAIN}", "--help", "report --help", "demo", "patterns list", "history list"]
)
def test_an_answer_that_cannot_be_written_is_2_and_a_line(words, place, tmp_path):
    done = shell(f"PT {words} {place}", tmp_path)
    why = "it is closed" if place == ">&-" else "No space left on device"
    assert (done.returncode, done.stderr) == (2, f"phasetrack: standard output cannot be written: {why}\n")


def test_wrong_usage_is_2_also_where_nobody_reads_why(tmp_path):
    assert shell("PT replay --speed 0 2>&1 | true", tmp_path).returncode == 2
    assert shell("PT replay --speed 0 2>&-", tmp_path).returncode == 2


def test_a_closed_input_cannot_be_observed(tmp_path):
    for words in ("tail -", "wait -", "status -", "report -"):
        done = shell(f"PT {words} --no-history <&-", tmp_path)
        assert done.returncode == 6
        assert done.stderr.endswith("phasetrack: -: standard input is closed\n")
    assert shell("PT demo <&-", tmp_path).returncode == 0


# --- signals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_we_are_imported_ends_us_without_a_word(number, tmp_path):
    """Imports stand still at one that waits for it."""
    read, write = os.pipe()
    (tmp_path / "typer.py").write_text(f"import os, signal\nos.write({write}, b'x')\nsignal.pause()\n")
    process = subprocess.Popen(
        [*PHASETRACK, "tail", PLAIN], env=home(tmp_path) | {"PYTHONPATH": str(tmp_path)}, stderr=subprocess.PIPE,
        pass_fds=(write,), text=True,
    )  # fmt: skip
    try:
        assert os.read(read, 1) == b"x"
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
        os.close(read)
        os.close(write)
    assert (process.returncode, err) == (128 + number, "")


SWALLOWS = """
import os, signal, sys
from phasetrack import signals
class Held:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000): pass
signals.raise_interrupts()
try:
    Held()
    while True: pass
except KeyboardInterrupt:
    print("let go", flush=True)
signals.end(0)
"""


def test_a_signal_that_a_destructor_swallows_comes_again():
    done = subprocess.run([sys.executable, "-c", SWALLOWS], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (143, "let go\n", "")
