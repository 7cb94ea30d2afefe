"""The bytes of a log by offset: of a file that is followed, rotated, cut; of a pipe that is kept."""

from __future__ import annotations

from functools import partial

import pytest

from phasetrack.edges import pages as module
from phasetrack.edges.pages import LogPages
from phasetrack.run import Session
from phasetrack.watch import Watch
from tests.talk import patterns, recording


def test_a_growing_file_is_read_where_it_stands(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"one two")
    pages = LogPages(str(log))
    pages.take(b"one", 3)
    assert (pages.size(), pages.read(0, 99)) == (3, b"one")
    pages.take(b" two", 7)
    assert pages.read(2, 3) == b"e t"
    assert pages.read(7, 1) == b""


def test_a_rotated_files_old_part_can_still_be_read(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"old")
    pages = LogPages(str(log))
    pages.take(b"old", 3)
    log.rename(tmp_path / "log.1")
    log.write_bytes(b"new")
    pages.take(b"new", 3)
    assert pages.read(0, 99) == b"oldnew"
    assert pages.begin() == 0


def test_what_was_cut_off_is_gone_and_never_something_else(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"first")
    pages = LogPages(str(log))
    pages.take(b"first", 5)
    log.write_bytes(b"second")
    pages.take(b"second", 6)
    assert pages.begin() == 5
    assert pages.read(5, 99) == b"second"
    assert pages.read(0, 5) == bytes(5)


def test_a_hole_that_was_stepped_over_is_zeros(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"a" + bytes(10) + b"b")
    pages = LogPages(str(log))
    pages.take(b"a", 1)
    pages.take(10, 11)
    pages.take(b"b", 12)
    assert pages.read(0, 99) == b"a" + bytes(10) + b"b"


def test_a_file_that_went_away_reads_as_zeros(tmp_path):
    pages = LogPages(str(tmp_path / "log"))
    pages.take(b"gone", 4)
    assert pages.read(0, 4) == bytes(4)


def test_a_pipe_is_kept_and_its_oldest_part_given_up(monkeypatch):
    monkeypatch.setattr(module, "PIECE_BYTES", 10)
    monkeypatch.setattr(module, "PIECES", 2)
    pages = LogPages(None)
    for part in (b"0123456789", b"abcdefghij", b"ABCDE"):
        pages.take(part)
    assert pages.size() == 25
    assert pages.begin() == 10
    assert pages.read(10, 99) == b"abcdefghijABCDE"
    assert pages.read(8, 4) == b"\0\0ab"


def test_after_the_end_there_are_only_zeros(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"text")
    pages = LogPages(str(log))
    pages.take(b"text", 4)
    pages.close()
    assert pages.read(0, 4) == bytes(4)


@pytest.mark.parametrize("position", [0, 5000])
def test_offsets_of_phases_are_offsets_of_pages_wherever_the_reading_began(tmp_path, position):
    log = tmp_path / "log"
    log.write_bytes(b"x" * 4999 + b"\n" + recording("03b-eagle3-pipe"))
    watch = Watch(partial(Session, patterns(), str(log), position=position), str(log))
    known = None
    while known is None or not known.phases:
        known = watch.next()
    row = next(row for row in known.phases if row.phase == "target_load")
    assert b"Load weight begin" in watch.pages.read(row.begin_offset, 60)
    assert watch.pages.read(0, 10) == b"x" * 10
    watch.close()
