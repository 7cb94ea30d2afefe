"""The follower's decision: two stats in, an act out; and what it says of a file."""

from __future__ import annotations

import os

import pytest

from phasetrack.core.model import Chunk, Gap
from phasetrack.edges.follower import Act, Facts, Follower, decide

HERE = Facts(device=1, inode=10, size=100, mtime_ns=5)


@pytest.mark.parametrize(
    ("held", "there", "read", "act"),
    [
        (None, None, 0, Act.WAIT),
        (None, HERE, 0, Act.OPEN),
        (HERE, HERE, 100, Act.WAIT),
        (HERE, HERE, 40, Act.READ),
        (HERE, HERE, 101, Act.REWIND),
        (HERE, None, 100, Act.LOST),
        (HERE, None, 40, Act.READ),  # what its writer holds is read to its end
        (HERE, HERE._replace(inode=11), 40, Act.READ),  # the old file first
        (HERE, HERE._replace(inode=11), 100, Act.SWITCH),
        (HERE, HERE._replace(device=2), 100, Act.SWITCH),
        (HERE, HERE._replace(inode=11, size=0), 100, Act.WAIT),  # logrotate's: the server holds the old one
        (HERE._replace(size=0), HERE._replace(size=0), 0, Act.WAIT),
    ],
)
def test_two_stats_decide(held, there, read, act):
    assert decide(held, there, read) is act


@pytest.fixture
def said():
    return []


def text(follower: Follower) -> bytes:
    """All that is new."""
    found = b""
    while chunks := [item.data for item in follower.read() if isinstance(item, Chunk)]:
        found += b"".join(chunks)
    return found


def test_a_backlog_has_no_arrival_and_what_comes_later_has(tmp_path, said):
    log = tmp_path / "a.log"
    log.write_bytes(b"old\n")
    follower = Follower(str(log), said.append)
    (old,) = follower.read()
    assert (old.data, old.arrived_s) == (b"old\n", None)
    assert list(follower.read()) == []
    with log.open("ab") as out:
        out.write(b"new\n")
    (new,) = follower.read()
    assert new.data == b"new\n"
    assert new.arrived_s is not None


def test_a_file_cut_and_grown_to_the_same_size_is_read_again(tmp_path, said):
    log = tmp_path / "a.log"
    log.write_bytes(b"first boot\n")
    follower = Follower(str(log), said.append)
    assert text(follower) == b"first boot\n"
    log.write_bytes(b"other boot\n")
    os.utime(log, ns=(1, 1))
    assert text(follower) == b"other boot\n"


def test_a_file_cut_and_grown_beyond_its_size_is_read_again(tmp_path, said):
    log = tmp_path / "a.log"
    log.write_bytes(b"first boot\n")
    follower = Follower(str(log), said.append)
    assert text(follower) == b"first boot\n"
    log.write_bytes(b"another boot, and more of it\n")
    assert text(follower) == b"another boot, and more of it\n"
    assert "truncated" in said[-1]


def test_a_copy_of_the_same_log_is_read_on_and_not_again(tmp_path, said):
    log, copy = tmp_path / "a.log", tmp_path / "copy"
    log.write_bytes(b"one\ntwo\n")
    follower = Follower(str(log), said.append)
    assert text(follower) == b"one\ntwo\n"
    copy.write_bytes(b"one\ntwo\nthree\n")
    copy.replace(log)
    assert text(follower) == b"three\n"
    assert "copy" in said[-1]


def test_a_hole_is_stepped_over_and_counted(tmp_path, said):
    log = tmp_path / "a.log"
    with log.open("wb") as out:
        out.write(b"before\n")
        follower = Follower(str(log), said.append)
        out.flush()
        assert text(follower) == b"before\n"
        os.truncate(log, 0)
        out.seek(1 << 20)
        out.write(b"after\n")
        out.flush()
    items = list(follower.read())
    gap = sum(item.bytes for item in items if isinstance(item, Gap) and item.hole)
    data = b"".join(item.data for item in items if isinstance(item, Chunk))
    assert gap + len(data) == (1 << 20) + len(b"after\n")
    assert data.strip(b"\0") == b"after\n"


def test_the_old_file_is_read_while_the_new_one_is_empty(tmp_path, said):
    log = tmp_path / "a.log"
    with log.open("ab", buffering=0) as out:
        out.write(b"one\n")
        follower = Follower(str(log), said.append)
        assert text(follower) == b"one\n"
        log.rename(tmp_path / "a.log.1")
        log.touch()
        out.write(b"two\n")
        assert text(follower) == b"two\n"
        out.write(b"three\n")
        log.write_bytes(b"four\n")
        assert text(follower) == b"three\nfour\n"


def test_what_its_writer_still_holds_of_a_deleted_file_is_read(tmp_path, said):
    log = tmp_path / "a.log"
    with log.open("ab", buffering=0) as out:
        out.write(b"one\n")
        follower = Follower(str(log), said.append)
        assert text(follower) == b"one\n"
        log.unlink()
        out.write(b"two\n")
        assert text(follower) == b"two\n"
        assert text(follower) == b""
    assert "deleted" in said[-1]
    log.write_bytes(b"three\n")
    assert text(follower) == b"three\n"


def test_a_thing_is_said_once(tmp_path, said):
    follower = Follower(str(tmp_path / "a.log"), said.append)
    for _ in range(3):
        assert text(follower) == b""
    assert [line.partition(": ")[2] for line in said] == ["no such file yet; waiting for it"]
