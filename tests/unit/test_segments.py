r"""One test for each rule at the top of ``core/segments.py``, and what hostile bytes do to them."""

from __future__ import annotations

import re

import pytest

from phasetrack.core.model import Bulk, End, Segment
from phasetrack.core.segments import LIMIT, Segmenter, clean
from tests.talk import pieces


def cut(data: bytes, *, cuts: tuple[int, ...] = (), peeks: bool = False) -> list[Segment]:
    """All segments of a stream that ends."""
    segmenter = Segmenter()
    found = []
    for piece in pieces(data, cuts):
        found += [segment for segment in segmenter.feed(piece) if isinstance(segment, Segment)]
        if peeks:
            segmenter.peek()
    return [*found, *segmenter.close()]


def texts(data: bytes) -> list[tuple[str, End]]:
    return [(segment.text, segment.end) for segment in cut(data)]


def places(data: bytes) -> list[tuple[str, int | None, int, int]]:
    return [(segment.text, *segment.place) for segment in cut(data)]


def every_way(data: bytes) -> None:
    """Whole, byte by byte, in two pieces at every place, and with looks in between: always the same."""
    whole = cut(data)
    assert cut(data, cuts=tuple(range(len(data)))) == whole
    assert cut(data, cuts=tuple(range(len(data))), peeks=True) == whole
    for place in range(len(data)):
        assert cut(data, cuts=(place,), peeks=True) == whole, place


# --- 1: what ends a line, what a frame ---------------------------------------------------------------


def test_lf_crlf_and_crcrlf_each_end_one_line():
    assert places(b"a\nb\r\nc\r\r\nd\n") == [("a", 1, 1, 0), ("b", 2, 1, 2), ("c", 3, 1, 5), ("d", 4, 1, 9)]
    assert {end for _, end in texts(b"a\nb\r\nc\r\r\n")} == {End.LF}


def test_lone_cr_ends_a_frame_and_the_line_goes_on():
    assert places(b"\r 0%\r50%\r99%\nnext\n") == [
        (" 0%", 1, 1, 1),
        ("50%", 1, 2, 5),
        ("99%", 1, 3, 9),
        ("next", 2, 1, 13),
    ]
    assert [end for _, end in texts(b"\r 0%\r50%\r99%\n")] == [End.CR, End.CR, End.LF]


def test_trailing_cr_waits_for_the_next_byte():
    segmenter = Segmenter()
    assert list(segmenter.feed(b"one\r")) == []
    assert [s.end for s in segmenter.feed(b"\n") if isinstance(s, Segment)] == [End.LF]
    assert list(segmenter.feed(b"two\r")) == []
    assert [s.end for s in segmenter.feed(b"x") if isinstance(s, Segment)] == [End.CR]


def test_many_trailing_crs_wait_too():
    segmenter = Segmenter()
    assert list(segmenter.feed(b"one\r\r\r\r")) == []
    assert [(s.text, s.end) for s in segmenter.feed(b"\n") if isinstance(s, Segment)] == [("one", End.LF)]
    assert segmenter.line == 2


# --- 2: frames at once, a peek at the tail -----------------------------------------------------------


def test_each_frame_comes_as_soon_as_its_terminator_is_there():
    segmenter = Segmenter()
    assert [s.text for s in segmenter.feed(b"\r 1/9\r 2/9") if isinstance(s, Segment)] == [" 1/9"]
    assert [s.text for s in segmenter.feed(b"\r 3/9") if isinstance(s, Segment)] == [" 2/9"]


def test_peek_shows_the_open_tail_and_consumes_nothing():
    segmenter = Segmenter()
    assert segmenter.peek() is None
    list(segmenter.feed(b"line\n\r 1/9\r 2/9"))
    open_tail = segmenter.peek()
    assert open_tail is not None
    assert (open_tail.text, open_tail.end, tuple(open_tail.place)) == (" 2/9", End.OPEN, (2, 2, 11))
    assert segmenter.peek() == open_tail
    assert [s.text for s in segmenter.feed(b"\n") if isinstance(s, Segment)] == [" 2/9"]
    assert segmenter.peek() is None


def test_peek_hides_an_escape_sequence_that_is_not_whole():
    segmenter = Segmenter()
    list(segmenter.feed(b"text\x1b["))
    tail = segmenter.peek()
    assert tail is not None
    assert tail.text == "text"


def test_close_yields_the_tail_as_it_is():
    assert texts(b"whole\nhalf")[-1] == ("half", End.CUT)
    assert texts(b"whole\n\r")[-1] == ("whole", End.LF)


# --- 3: decoding and escapes -------------------------------------------------------------------------


def test_utf8_is_decoded_per_segment_and_not_per_chunk():
    every_way("größe ▏█▋ 100%\n".encode())
    assert texts("größe █▋\n".encode()) == [("größe █▋", End.LF)]


def test_bad_bytes_become_replacement_characters():
    assert texts(b"a\xff\xfe\x80b\n") == [("a\ufffd\ufffd\ufffdb", End.LF)]


@pytest.mark.parametrize(
    "escape",
    [
        b"\x1b[0m",
        b"\x1b[1;31m",
        b"\x1b[38;2;1;2;3m",
        b"\x1b[2K",
        b"\x1b[?25l",
        b"\x1b]0;title\x07",
        b"\x1b]8;;http://evil/\x1b\\",
        b"\x1bP1$r0m\x1b\\",
        b"\x1b(B",
        b"\x1b=",
        b"\x1bM",
        b"\x1b[B",
        b"\x1b[>0q",
    ],
)
def test_escape_sequences_are_gone(escape):
    assert texts(b"ab" + escape + b"cd\n") == [("abcd", End.LF)]
    every_way(b"ab" + escape + b"cd\n")


def test_colour_around_a_whole_line_leaves_the_line():
    line = b"\x1b[32m[2026-11-30 15:42:22]\x1b[0m \x1b[1mLoad weight begin.\x1b[0m\r\n"
    assert texts(line) == [("[2026-11-30 15:42:22] Load weight begin.", End.LF)]


def test_cursor_up_of_nested_bars_ends_a_frame():
    data = b"\n\rinner 1/2\x1b[A\router 0/9\n\rinner 2/2\x1b[1A\n"
    assert [text for text, _ in texts(data)] == ["inner 1/2", "outer 0/9", "inner 2/2"]
    assert texts(data)[0][1] is End.CR
    every_way(data)


def test_backspace_takes_a_character_back():
    assert texts(b"abc\b\bX\n") == [("aX", End.LF)]
    assert texts(b"\b\bok\n") == [("ok", End.LF)]


def test_c1_and_control_characters_never_come_through():
    assert clean("a\x00b\x07c\x9bd\x85e\x7ff\x0cg\rh".encode()) == "abcdefgh"


def test_what_turns_the_direction_of_writing_or_marks_a_byte_order_is_gone():
    assert clean("\ufeff[2026] \u202egnp.exe\u2066 \u2028x".encode()) == "[2026] gnp.exe x"


def test_an_osc_without_an_end_hides_no_more_than_its_own_segment():
    assert texts(b"a\x1b]0;never ends\nnext line\n") == [("a", End.LF), ("next line", End.LF)]


# --- 4: NUL ------------------------------------------------------------------------------------------


def test_a_run_of_nul_is_stepped_over():
    data = b"before\n" + b"\0" * 5000 + b"[2026-11-30 15:42:22] after\n"
    assert [text for text, _ in texts(data)] == ["before", "[2026-11-30 15:42:22] after"]
    assert cut(data)[-1].place.line == 2


def test_a_nul_hole_in_the_middle_of_a_line_parts_it():
    assert [text for text, _ in texts(b"half a li\0\0\0\0ne\n")] == ["half a li", "ne"]
    every_way(b"half a li\0\0\0\0ne\n\0\0\r\0\n")


# --- 5: over-long ------------------------------------------------------------------------------------


def test_a_text_longer_than_the_limit_is_cut_and_goes_on_as_the_next_frame():
    data = b"x" * (LIMIT + 10) + b"\nnext\n"
    found = cut(data)
    assert [len(segment.text) for segment in found] == [LIMIT, 10, 4]
    assert [segment.end for segment in found] == [End.CUT, End.LF, End.LF]
    assert [tuple(segment.place) for segment in found] == [(1, 1, 0), (1, 2, LIMIT), (2, 1, LIMIT + 11)]


def test_a_cut_inside_a_character_or_an_escape_does_no_harm():
    for head in (b"x" * (LIMIT - 1), b"x" * (LIMIT - 2), b"x" * (LIMIT - 3)):
        data = head + "▏█".encode() + b"\x1b[31m" + b"y" * 10 + b"\r\n"
        assert cut(data, cuts=(LIMIT - 1, LIMIT, LIMIT + 1, LIMIT + 2, LIMIT + 4), peeks=True) == cut(data)


def test_no_terminator_for_megabytes_keeps_the_buffer_small():
    segmenter = Segmenter()
    for _ in range(64):
        list(segmenter.feed(b"y" * LIMIT))
    assert segmenter.pending <= LIMIT


# --- 6: chunking and peeks ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"a\r\r\nb\r\n\r\n\n\rc\r\rd\n",
        b"\r  0%|   | 0/3\r 33%|#  | 1/3\r100%|###| 3/3\n",
        b"\x1b[A\x1b[A\x1b\x1b[\x1b[31mred\x1b[0m\n\x1b",
        b"\x1b]0;t\x1b\\x\x1b",
        b"\r\x00\n\x00\r\n\r\r\r",
        b"\x1b[12345678901234567890A end\n",
        b"\x1b[3\n1A\n",
        "\u2588".encode() * 3 + b"\r" + "\u258f".encode()[:2] + b"\n",
    ],
)
def test_any_cut_and_any_peek_give_the_same_segments(data):
    every_way(data)


def test_an_empty_frame_counts_for_nothing():
    assert places(b"\r\r\ra\n") == [("a", 1, 1, 3)]
    assert places(b"\x1b[0m\r\x1b[K\rb\n")[0][:3] == ("b", 1, 1)


# --- 7: swallowing -----------------------------------------------------------------------------------


class BulkLines:
    """Takes lines that read "bulk 7"."""

    def step(self, buffer, position):
        run = re.compile(rb"(?>(?:bulk \d+\n)+)").match(buffer, position)
        return None if run is None else (run.end(), run[0].count(b"\n"))


def test_swallowed_runs_are_whole_lines_and_are_counted():
    segmenter = Segmenter()
    segmenter.swallow = BulkLines()
    found = list(segmenter.feed(b"first\nbulk 1\nbulk 2\nbulk half"))
    assert [type(item) for item in found] == [Segment, Bulk]
    run = found[1]
    assert isinstance(run, Bulk)
    assert (run.lines, run.last, run.place.line, run.place.offset, run.bytes) == (2, "bulk 2", 2, 6, 14)
    rest = list(segmenter.feed(b"Traceback\n"))
    assert [(s.text, s.place.line) for s in rest if isinstance(s, Segment)] == [("bulk halfTraceback", 4)]


def test_a_run_is_never_taken_up_in_the_middle_of_a_line():
    segmenter = Segmenter()
    segmenter.swallow = BulkLines()
    found = list(segmenter.feed(b"\r 1/2\rbulk 1\nbulk 2\n"))
    assert [type(item) for item in found] == [Segment, Segment, Bulk]


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 100])
def test_lines_and_texts_are_the_same_however_a_swallowed_run_was_chunked(step):
    data = b"first\nbulk 1\nbulk 2\nlast\nbulk 3\n\r 1/2\rbulk 4\nend"
    whole = _lines_seen(data, len(data))
    assert _lines_seen(data, step) == whole


def _lines_seen(data: bytes, step: int) -> list[tuple[str, int | None]]:
    segmenter = Segmenter()
    segmenter.swallow = BulkLines()
    found: list[tuple[str, int | None]] = []
    for start in range(0, len(data), step):
        items = segmenter.feed(data[start : start + step])
        found += [(item.text, item.place.line) for item in items if isinstance(item, Segment)]
    found += [(item.text, item.place.line) for item in segmenter.close()]
    found.append(("frames", segmenter.frames))
    return [item for item in found if not item[0].startswith("bulk")]


# --- counting ----------------------------------------------------------------------------------------


def test_positions_go_on_from_where_reading_began():
    segmenter = Segmenter(line=None, offset=1000)
    found = [s for s in segmenter.feed(b"a\nb\n") if isinstance(s, Segment)]
    assert [tuple(s.place) for s in found] == [(None, 1, 1000), (None, 1, 1002)]
    assert segmenter.offset == 1004
