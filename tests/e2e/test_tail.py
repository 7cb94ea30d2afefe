"""tail and its session: real files and processes; what was told live is what the finished files tell."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest
import zstandard

from phasetrack.run import Session
from tests.e2e.command import home
from tests.e2e.servers import PATIENCE_S, PHASETRACK, ROOT
from tests.talk import hear, patterns, recording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ONE = recording("03a-eagle3-file-coldjit")
OTHER = recording("16b-plain-file")
# The middle of a bar: nothing ends the frame, and more was to come.
MID_BAR = ONE.index(b"Completed | 36/64")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


class Live:
    """A session that follows a log until all that was written has been read."""

    def __init__(self, log: Path) -> None:
        self.said: list[str] = []
        self.records = []
        self.session = Session(patterns(), str(log), say=self.said.append)

    def read(self, count: int) -> None:
        """Follow until so many bytes of the stream were read, and all there is."""
        end = time.monotonic() + PATIENCE_S
        while self.read_bytes < count or not self.session.caught_up:
            assert time.monotonic() < end, (self.read_bytes, count, self.said)
            self.records += self.session.poll(0.05)

    @property
    def read_bytes(self) -> int:
        return self.session.snapshot().sources[0].bytes

    def finish(self):
        self.records += self.session.finish("the test ended")
        self.session.close()
        return told(self.records)


def told(records):
    return [(r.type, r.boot, r.place, r.at_s, dict(r.data)) for r in records]


def finished(*parts: bytes):
    return told(hear(b"".join(parts)).records)


# --- the same live as of the finished files -----------------------------------------------------------


def test_growth_is_told_as_the_finished_file_is(log):
    live = Live(log)
    with log.open("ab", buffering=0) as out:
        for start in range(0, len(ONE), 997):
            out.write(ONE[start : start + 997])
            live.records += live.session.poll(0)
    live.read(len(ONE))
    assert live.finish() == finished(ONE)


def test_a_log_that_does_not_exist_yet_is_waited_for(log):
    live = Live(log)
    assert live.session.poll(0) == []
    assert "waiting for it" in live.said[0]
    log.write_bytes(ONE)
    live.read(len(ONE))
    assert live.finish() == finished(ONE)


@pytest.mark.parametrize("cut", [MID_BAR, len(ONE) // 2, ONE.index(b"\n", 20000) + 1])
def test_a_late_reader_learns_all_of_the_boot(log, cut):
    log.write_bytes(ONE[:cut])
    live = Live(log)
    live.read(cut)
    with log.open("ab") as out:
        out.write(ONE[cut:])
    live.read(len(ONE))
    assert live.finish() == finished(ONE)


def test_a_late_reader_is_told_the_latest_boot_only(log):
    log.write_bytes(ONE + OTHER)
    live = Live(log)
    live.read(len(ONE + OTHER))
    assert live.finish() == [record for record in finished(ONE, OTHER) if record[1] == 2]


@pytest.mark.parametrize("cut", [MID_BAR, ONE.index(b"\n", 20000) + 1])
def test_rename_and_create_loses_nothing_and_doubles_nothing(log, cut):
    live = Live(log)
    log.write_bytes(ONE[:cut])
    live.read(cut)
    log.rename(log.with_suffix(".1"))
    log.write_bytes(ONE[cut:])
    live.read(len(ONE))
    assert live.finish() == finished(ONE)
    assert "new file" in live.said[-1]


@pytest.mark.parametrize("cut", [MID_BAR, ONE.index(b"\n", 20000) + 1])
def test_copytruncate_loses_nothing_and_doubles_nothing(log, cut):
    live = Live(log)
    with log.open("ab", buffering=0) as out:
        out.write(ONE[:cut])
        live.read(cut)
        log.with_suffix(".1").write_bytes(log.read_bytes())
        os.truncate(log, 0)
        out.write(ONE[cut:])
        live.read(len(ONE))
    assert live.finish() == finished(ONE)
    assert "truncated" in live.said[-1]


def test_a_writer_at_its_old_place_in_a_truncated_file_is_followed_over_the_hole(log):
    cut = ONE.rindex(b"\r", 0, MID_BAR)
    live = Live(log)
    with log.open("wb", buffering=0) as out:
        out.write(ONE[:cut])
        live.read(cut)
        os.truncate(log, 0)
        out.seek(1 << 20)
        out.write(ONE[cut:])
        live.read(cut + (1 << 20) + len(ONE) - cut)
    words = [(kind, boot, at, data) for kind, boot, _, at, data in live.finish()]
    assert words == [(kind, boot, at, data) for kind, boot, _, at, data in finished(ONE)]


def test_a_deleted_log_is_followed_while_its_writer_holds_it_and_then_the_new_one(log):
    live = Live(log)
    with log.open("ab", buffering=0) as out:
        out.write(ONE[:MID_BAR])
        live.read(MID_BAR)
        log.unlink()
        out.write(ONE[MID_BAR:])
        live.read(len(ONE))
    log.write_bytes(OTHER)
    live.read(len(ONE + OTHER))
    assert live.finish() == finished(ONE, OTHER)


@pytest.mark.parametrize("how", ["appended", "truncated", "a new file"])
def test_a_restart_is_another_boot(log, how):
    live = Live(log)
    log.write_bytes(ONE[:MID_BAR])
    live.read(MID_BAR)
    if how == "a new file":
        log.unlink()
    with log.open("ab" if how == "appended" else "wb") as out:
        out.write(OTHER)
    live.read(MID_BAR + len(OTHER))
    assert live.finish() == finished(ONE[:MID_BAR], OTHER)
    assert live.session.snapshot().boot == 2


def test_a_writer_that_is_killed_in_the_middle_of_a_bar_leaves_what_it_wrote(log):
    writer = (
        "import os, sys, time\n"
        "data = open(sys.argv[1], 'rb').read()[: int(sys.argv[2])]\n"
        "for k in range(0, len(data), 1024): os.write(1, data[k : k + 1024])\n"
        "time.sleep(3600)\n"
    )
    source = ROOT / "fixtures" / "03a-eagle3-file-coldjit" / "server.log"
    live = Live(log)
    with log.open("ab") as out:
        process = subprocess.Popen([sys.executable, "-c", writer, str(source), str(MID_BAR)], stdout=out)
    live.read(MID_BAR)
    process.kill()
    process.wait()
    known = live.session.snapshot()
    assert (known.phase, known.progress) == ("target_load", hear(ONE[:MID_BAR], open_end=True).snapshot.progress)
    assert live.finish() == finished(ONE[:MID_BAR])


def test_many_changes_of_the_file_under_a_busy_writer_lose_nothing(log):
    """Growth, renames and truncations one after the other, each after the reader has caught up."""
    cuts = [*range(0, len(ONE), 4999), len(ONE)]
    live = Live(log)
    out = log.open("ab", buffering=0)
    for k, (start, end) in enumerate(pairwise(cuts)):
        out.write(ONE[start:end])
        live.read(end)
        if k % 3 == 1:
            log.rename(log.with_suffix(f".{k}"))
            out.close()
            out = log.open("ab", buffering=0)
        elif k % 3 == 2:
            os.truncate(log, 0)
    out.close()
    assert live.finish() == finished(ONE)


def test_a_link_that_is_switched_to_another_file_is_followed(log):
    """As /var/log/containers/x.log is, whose container was restarted."""
    first, second = log.with_name("0.log"), log.with_name("1.log")
    first.write_bytes(ONE)
    second.write_bytes(OTHER)
    log.symlink_to(first)
    live = Live(log)
    live.read(len(ONE))
    fresh = log.with_name("fresh")
    fresh.symlink_to(second)
    fresh.rename(log)
    live.read(len(ONE + OTHER))
    assert live.finish() == finished(ONE, OTHER)


def test_a_log_that_may_no_longer_be_looked_at_is_read_on(log):
    live = Live(log)
    with log.open("ab", buffering=0) as out:
        out.write(ONE[:MID_BAR])
        live.read(MID_BAR)
        mode = log.parent.stat().st_mode
        log.chmod(0)
        log.parent.chmod(0)
        user = os.geteuid()
        try:
            if user == 0:
                os.seteuid(65534)  # nothing is closed to root
            out.write(ONE[MID_BAR:])
            live.read(len(ONE))
        finally:
            os.seteuid(user)
            log.parent.chmod(mode)
    assert "permission denied" in live.said[-1]
    assert live.finish() == finished(ONE)


def test_logrotate_that_compresses_what_its_server_still_writes_loses_nothing(log):
    live = Live(log)
    with log.open("ab", buffering=0) as out:
        out.write(ONE[:MID_BAR])
        live.read(MID_BAR)
        old = log.with_suffix(".1")
        log.rename(old)
        log.touch()
        log.with_suffix(".1.gz").write_bytes(gzip.compress(old.read_bytes()))
        old.unlink()
        out.write(ONE[MID_BAR:])
        live.read(len(ONE))
    log.write_bytes(OTHER)
    live.read(len(ONE + OTHER))
    assert live.finish() == finished(ONE, OTHER)


def test_an_older_file_put_in_the_logs_place_is_another_file(log):
    log.write_bytes(OTHER)
    live = Live(log)
    live.read(len(OTHER))
    old = log.with_name("old")
    old.write_bytes(ONE)
    os.utime(old, (1_700_000_000, 1_700_000_000))
    old.rename(log)
    live.read(len(OTHER + ONE))
    assert "new file" in live.said[-1]
    assert live.session.snapshot().boot == 2
    live.finish()


# --- several logs in one loop, and other sources --------------------------------------------------------


def test_several_logs_are_told_in_one_stream_with_their_paths(tmp_path):
    logs = {str(tmp_path / f"{name}.log"): data for name, data in (("a", ONE), ("b", OTHER))}
    with following("--output", "json", *logs, folder=tmp_path) as tail:
        for log, data in logs.items():
            Path(log).write_bytes(data)
        stopped: set[str] = set()
        for line in tail:
            stopped |= {line["path"]} if line.get("outcome") == "stopped" else set()
            if stopped == set(logs):
                break
        assert stopped == set(logs)


@pytest.mark.parametrize("form", ["gz", "xz", "zst"])
def test_an_archive_is_told_as_its_log_is_and_ends(log, form):
    pack: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress, "xz": lzma.compress, "zst": zstandard.ZstdCompressor().compress
    }  # fmt: skip
    log.write_bytes(pack[form](ONE))  # told by its bytes: rotation renames
    live = Live(log)
    end = time.monotonic() + PATIENCE_S
    while not live.session.ended:
        assert time.monotonic() < end
        live.records += live.session.poll(0.1)
    assert told(live.records) == finished(ONE)


@pytest.mark.parametrize("cut", [100, 1000, 10000])
def test_an_archive_that_is_cut_short_tells_what_is_there(log, cut):
    log.write_bytes(gzip.compress(ONE)[:cut])
    live = Live(log)
    while not live.session.ended:
        live.records += live.session.poll(0.1)
    whole = finished(ONE)
    assert told(live.records) == whole[: len(live.records)]


def test_a_pipe_is_told_as_its_bytes_are_and_ends(tmp_path):
    done = subprocess.run(
        [*PHASETRACK, "tail", "-", "--output", "json"], input=ONE, capture_output=True, check=False, timeout=PATIENCE_S,
        env=home(tmp_path),
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["type"] for line in lines] == [record[0] for record in finished(ONE)] + ["snapshot"]
    assert done.returncode == 5  # the server was stopped


def test_a_named_pipe_is_followed_to_its_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with following(pipe, "--output", "json", folder=tmp_path) as tail:
        pipe.write_bytes(ONE)
        assert list(tail)[-1]["type"] == "snapshot"
        assert tail.process.wait(PATIENCE_S) == 5


# --- the command ----------------------------------------------------------------------------------------


class following:  # noqa: N801 - reads as a word
    """A tail as a process; iterating gives its JSON lines as they come."""

    def __init__(self, *arguments: object, folder: Path) -> None:
        self.arguments, self.env = arguments, home(folder)

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [*PHASETRACK, "tail", *map(str, self.arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, cwd=ROOT, text=True, env=self.env,
        )  # fmt: skip
        self.patience = threading.Timer(PATIENCE_S, self.process.kill)
        self.patience.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.patience.cancel()
        self.process.kill()
        self.process.communicate()

    def __iter__(self) -> Iterator[dict]:
        for line in self.process.stdout:
            yield json.loads(line)


def test_a_record_is_printed_while_its_writer_goes_on(log):
    log.write_bytes(ONE[:MID_BAR])
    with following(log, "--output", "json", folder=log.parent) as tail:
        assert next(line for line in tail if line.get("phase") == "target_load")["boot"] == 1
        assert tail.process.poll() is None


def test_without_a_terminal_plain_lines_are_printed(log):
    log.write_bytes(ONE[:MID_BAR])
    with following(log, folder=log.parent) as tail:
        lines = [tail.process.stdout.readline() for _ in range(3)]
        assert lines[0].startswith("15:39:01  Boot 1 begins at line 4")


def test_a_silent_start_is_told_with_whether_that_is_normal(log):
    log.write_bytes(ONE[:MID_BAR])
    long_ago = time.time() - 45
    os.utime(log, (long_ago, long_ago))
    with following(log, folder=log.parent) as tail:
        told_line = next(line for line in tail.process.stdout if "…" in line)
        assert "Target weights" in told_line
        assert "silent for 4" in told_line


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_tail_with_its_code_and_no_word(log, number, code):
    log.write_bytes(ONE[:MID_BAR])
    with following(log, folder=log.parent) as tail:
        tail.process.stdout.readline()
        tail.process.send_signal(number)
        _, err = tail.process.communicate(timeout=PATIENCE_S)
        assert (tail.process.returncode, err) == (code, "")


def test_a_reader_that_has_seen_enough_ends_tail(log, tmp_path):
    log.write_bytes(ONE)
    line = f'{" ".join(PHASETRACK)} tail {log} --output json | grep -m1 \'"type":"ready"\'; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, timeout=PATIENCE_S, check=False, env=home(tmp_path), cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == b"5", "the outcome of what stands there"


def test_a_log_that_may_not_be_read_is_6(tmp_path):
    done = subprocess.run([*PHASETRACK, "tail", str(tmp_path)], capture_output=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 6
    assert b"is a directory" in done.stderr


def test_a_missing_log_is_said_on_stderr_and_waited_for(log):
    with following(log, "--output", "json", folder=log.parent) as tail:
        assert "waiting for it" in tail.process.stderr.readline()
        log.write_bytes(ONE)
        assert next(iter(tail))["type"] == "boot"
