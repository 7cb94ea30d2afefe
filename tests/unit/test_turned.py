"""Exports that stand newest line first: every answer is that of the log in order, in the lines of the file as it is."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from phasetrack.edges.file import open_log
from phasetrack.edges.turned import falls
from phasetrack.run import Session, look_once, read_whole
from phasetrack.tape import Tape
from phasetrack.views.jsonl import snapshot_json
from tests.talk import patterns, recording, recordings

if TYPE_CHECKING:
    from pathlib import Path

ONE = "01-plain-file"
# Its few lines have two times: one step down may as well be a clock that was set.
TOLD = [name for name in recordings() if name != "06c-wrong-model-path"]


def upside_down(log: bytes) -> bytes:
    lines = log.removesuffix(b"\n").split(b"\n")
    return b"\n".join(reversed(lines)) + b"\n"


def whole(path: Path, log: bytes):
    """What a report of these bytes says."""
    path.write_bytes(log)
    tracker, records = read_whole(patterns(), str(path))
    told = list(records)
    return told, snapshot_json(tracker.snapshot())


def mirrored(value, lines: int):
    """The same, each line counted from the other end, and without offsets."""
    if isinstance(value, dict):
        return {
            key: lines + 1 - part if (key == "line" or key.endswith("_line")) and part else mirrored(part, lines)
            for key, part in value.items()
            if not key.endswith("offset")
        }
    return [mirrored(part, lines) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", TOLD)
def test_a_recording_upside_down_has_the_report_of_the_recording(tmp_path, name):
    log = recording(name)
    lines = log.count(b"\n") + (not log.endswith(b"\n"))
    _, known = whole(tmp_path / "a.log", log)
    _, turned = whole(tmp_path / "b.log", upside_down(log))
    assert turned["warnings"].pop()["id"] == "log.newest_first"
    for one in (known, turned):
        one["sources"] = [one["sources"][0][key] for key in ("unmatched_lines", "frames")]
    assert mirrored(turned, 0) == mirrored(mirrored(known, lines), 0)


@pytest.mark.parametrize("name", TOLD)
def test_a_place_in_an_export_is_where_its_text_stands(tmp_path, name):
    log = recording(name)
    there = upside_down(log)
    told, _ = whole(tmp_path / "a.log", log)
    turned, _ = whole(tmp_path / "b.log", there)
    for here, again in zip(told, turned, strict=True):
        text = log[here.place.offset :].partition(b"\n")[0]
        assert there[again.place.offset :].partition(b"\n")[0] == text
        assert there.count(b"\n", 0, again.place.offset) + 1 == again.place.line


@pytest.mark.parametrize("name", recordings())
def test_a_log_in_order_is_left_so(tmp_path, name):
    path = tmp_path / "server.log"
    path.write_bytes(recording(name))
    with open_log(str(path)) as log:
        assert log.fd is not None
    assert not falls(b"")
    assert not falls(recording(name), recording(name))


@pytest.mark.parametrize("block", [7, 1000])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_lines_come_whole_whatever_the_blocks_and_the_last_line_end(tmp_path, monkeypatch, block, end):
    monkeypatch.setattr("phasetrack.edges.turned._BLOCK_BYTES", block)
    lines = [f"[2026-11-30 15:42:{59 - k:02d}] line {k}".encode() for k in range(40)]
    path = tmp_path / "server.log"
    path.write_bytes((end or b"\n").join(lines) + end)
    with open_log(str(path)) as log:
        read = b"".join(chunk.data for chunk in log.chunks())
    assert read.split() == b"\n".join(reversed(lines)).split()


def test_an_export_in_an_archive_is_turned_too(tmp_path):
    _, known = whole(tmp_path / "a.log", upside_down(recording(ONE)))
    _, packed = whole(tmp_path / "b.log", gzip.compress(upside_down(recording(ONE))))
    known["sources"] = packed["sources"] = []
    assert packed == known


def test_an_answer_as_known_at_a_line_of_an_export_knows_the_lines_below(tmp_path):
    path = tmp_path / "server.log"
    path.write_bytes(upside_down(recording(ONE)))
    lines = recording(ONE).count(b"\n")
    known = look_once(patterns(), str(path), at_line=lines + 1 - 30)
    path.write_bytes(recording(ONE))
    assert known.phase == look_once(patterns(), str(path), at_line=30).phase
    path.write_bytes(upside_down(recording(ONE)))
    assert look_once(patterns(), str(path), at_line=lines).boot == 0


def test_a_replay_of_an_export_goes_forward_and_says_how_it_stands(tmp_path):
    path = tmp_path / "server.log"
    path.write_bytes(upside_down(recording(ONE)))
    tape = Tape(patterns(), str(path))
    for _ in tape.read():
        pass
    assert not tape.schedule.backwards
    assert "newest line first" in tape.note
    assert b"".join(item.data for item in tape.items(0, tape.pages.size())) == recording(ONE)
    tape.close()


def test_an_export_that_is_followed_is_told_in_order_and_ends(tmp_path):
    path, said = tmp_path / "server.log", []
    path.write_bytes(upside_down(recording(ONE)))
    session = Session(patterns(), str(path), say=said.append)
    told = []
    while not session.ended:
        told += session.poll(0)
    session.close()
    assert [record.type for record in told] == [record.type for record in whole(tmp_path / "a.log", recording(ONE))[0]]
    assert "newest line first" in said[0]


def test_times_that_fall_by_ranks_out_of_turn_are_no_export():
    log = b"".join(f"[2026-11-30 15:42:{k // 2 + 1 - k % 2:02d} TP{k % 2}] x\n".encode() for k in range(80))
    assert not falls(log)
    assert falls(upside_down(log))
