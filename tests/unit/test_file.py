"""How a log's bytes are read: all of them, in chunks that end with a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from phasetrack.edges.file import CHUNK_BYTES, open_log
from phasetrack.edges.latest import Reading
from phasetrack.edges.reading import chunks_of

if TYPE_CHECKING:
    from pathlib import Path

LINE = b"[2026-11-30 15:42:04 TP0] Decode batch, #running-req: 1, #queue-req: 0\n"


def chunks(path: Path, log: bytes) -> list[bytes]:
    path.write_bytes(log)
    with open_log(str(path)) as opened:
        read = [chunk.data for chunk in opened.chunks()]
        assert opened.fd is not None
        assert read == [chunk.data for chunk in chunks_of(opened.fd, Reading(), lambda: True)]
    return read


def test_a_chunk_ends_with_a_line(tmp_path):
    *chunked, last = chunks(tmp_path / "a.log", LINE * 20_000 + b"half a li")
    assert len(chunked) >= 2
    assert all(chunk.endswith(b"\n") for chunk in chunked)
    assert all(CHUNK_BYTES - len(chunk) < len(LINE) for chunk in chunked)
    assert last.endswith(b"\nhalf a li")


@pytest.mark.parametrize("beyond", [-5000, -4096, -4095, -80, -1, 0, 1, 80, 4096])
@pytest.mark.parametrize("text", [LINE, b"a line without an end"])
def test_every_byte_is_read_once_however_long_the_log_is(tmp_path, beyond, text):
    log = (text * CHUNK_BYTES)[: CHUNK_BYTES + beyond]
    assert b"".join(chunks(tmp_path / "a.log", log)) == log


def test_a_line_that_is_longer_than_a_chunk_is_read_in_whole_chunks(tmp_path):
    first, *_ = chunks(tmp_path / "a.log", b"x" * (2 * CHUNK_BYTES) + b"\n" + LINE)
    assert len(first) == CHUNK_BYTES
