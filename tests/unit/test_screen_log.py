"""The log view: lines by offset, search, and its keys; without a terminal."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasetrack.core.model import Segment
from phasetrack.core.segments import Segmenter
from phasetrack.views.tui import find
from phasetrack.views.tui.acts import Back, Copy, Size
from phasetrack.views.tui.desk import Desk
from phasetrack.views.tui.feed import News
from phasetrack.views.tui.look import UNICODE, plain_text
from phasetrack.views.tui.paging import Lines, Numbers, collapse, tail
from tests.screens.cases import LOADING, T0, row
from tests.screens.picture import Bytes

pieces = st.sampled_from(
    [b"\n", b"\r", b"\r\n", b"\r\r\n", b"a", b"bc", b"\xc3\xa9", b"\xff", b" ", b"\x1b[31mx\x1b[0m"]
)
logs = st.lists(pieces, max_size=60).map(b"".join)


def walk(lines: Lines, first: int = 0) -> list[int]:
    found, at = [], first
    while at is not None:
        found.append(at)
        at = lines.after(at)
    return found


blocks = st.sampled_from([4, 8, 64, 65536])


@settings(deadline=None)
@given(logs, st.booleans(), blocks)
def test_back_is_the_way_forward_reversed(data, raw, block):
    lines = Lines(Bytes(data), raw=raw, block=block)
    there = walk(lines)
    fresh, back, at = Lines(Bytes(data), raw=raw, block=block), [], there[-1]
    while at is not None:
        back.append(at)
        at = fresh.before(at)
    assert back[::-1] == there
    assert there == [0] or Lines(Bytes(data), raw=raw).last() == there[-1]


@settings(deadline=None)
@given(st.lists(logs, max_size=6), st.booleans())
def test_a_growing_log_always_has_the_last_line_that_a_fresh_look_finds(parts, raw):
    growing = Bytes(b"")
    lines = Lines(growing, raw=raw)
    for part in parts:
        growing.data += part
        fresh = Lines(Bytes(growing.data), raw=raw)
        assert lines.last() == fresh.last()
        assert lines.after(lines.last()) == fresh.after(fresh.last())
        assert lines.text(lines.last()) == fresh.text(fresh.last())


@settings(deadline=None)
@given(logs, st.booleans(), blocks)
def test_every_byte_belongs_to_the_line_that_begins_before_it(data, raw, block):
    there = walk(Lines(Bytes(data), raw=raw))
    for offset in range(len(data)):
        assert Lines(Bytes(data), raw=raw, block=block).start(offset) == max(at for at in there if at <= offset)


@settings(deadline=None)
@given(logs, blocks)
def test_raw_rows_are_the_cores_frames(data, block):
    lines = Lines(Bytes(data), raw=True, block=block)
    shown = [text for at in walk(lines) if (text := lines.text(at))]
    cut = [*Segmenter().feed(data + b"\n")]
    assert shown == [segment.text for segment in cut if isinstance(segment, Segment)]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"plain\n", "plain"),
        (b"\rLoading 1/2\rLoading 2/2\n", "Loading 2/2"),
        (b"long old text\rnew\n", "new" + "long old text"[3:]),
        (b"abcdef\rXY\n", "XYcdef"),
        (b"", ""),
        (b"a bar 10/10 [00:10<00:00]\ra bar done                \n", "a bar done"),
        (b"text\r\n", "text"),
        (b"bar\x1b[A\x1b[2Kother\n", "other"),
        (b"half\x00\x00\x00whole\n", "halfwhole"),
    ],
)
def test_a_line_shows_what_a_terminal_would_show_in_the_end(line, shown):
    assert collapse(line) == shown


def test_secrets_are_masked_wherever_a_line_is_shown():
    assert tail(Lines(Bytes(b"x --api-key sk-abcdefghijklmnopqrstuv y\n")), 3) == ("x --api-key [redacted] y",)


@pytest.mark.parametrize("raw", [False, True])
def test_secrets_of_several_lines_are_masked_from_whichever_line_a_page_begins(raw):
    key = b"-----BEGIN PRIVATE KEY-----\n" + b"MIIEsecretsecretsecretsecret\n" * 50 + b"-----END PRIVATE KEY-----\n"
    data = b"ready\n" + key + b'"api_key":\n  "MIIEsecret",\nend\n'
    shown = [Lines(Bytes(data), raw=raw).text(start) for start in walk(Lines(Bytes(data), raw=raw))]
    assert "secret" not in "".join(shown)
    assert (shown[0], shown[-1]) == ("ready", "end")


def test_a_line_without_an_end_of_twenty_megabytes_is_shown_at_once():
    data = b"first\n" + b"\r" + b"Loading shards: 12/64 [00:10]\r" * 700_000 + b"Loading shards: 64/64\nlast\n"
    lines = Lines(Bytes(data))
    assert len(data) > 20 << 20
    assert [lines.text(at) for at in walk(lines)] == ["first", "Loading shards: 64/64 [00:10]", "last"]


def test_lines_are_numbered_from_any_place():
    data = b"".join(b"line %d\n" % n for n in range(1, 200_001))
    numbers = Numbers(Bytes(data))
    assert numbers.of(data.index(b"line 150000\n")) == 150_000
    assert numbers.of(0) == 1


@settings(deadline=None)
@given(st.lists(st.sampled_from([b"needle", b"hay\n", b"x" * 100]), max_size=40), st.integers(0, 500))
def test_search_finds_what_a_plain_search_finds(parts, start):
    data = b"".join(parts)
    start = min(start, len(data))
    after = find.search(Bytes(data), find.query("needle"), start, forward=True, block=64)
    before = find.search(Bytes(data), find.query("needle"), start, forward=False, block=64)
    here = data.find(b"needle", start)
    assert after == (None if here < 0 else here)
    assert before == max((at for at in range(start) if data.startswith(b"needle", at)), default=None)


@pytest.mark.parametrize(("typed", "finds"), [("error", b"ERROR"), ("a(b", b"a(b"), ("[0-9]+ GB", b"139 GB")])
def test_a_query_is_an_expression_or_taken_literally(typed, finds):
    assert find.search(Bytes(b"xx " + finds), find.query(typed), 0, forward=True) == 3


def test_a_capital_makes_a_query_particular():
    assert find.search(Bytes(b"error ERROR"), find.query("ERROR"), 0, forward=True) == 6


def test_an_expression_that_takes_for_ever_is_given_up():
    with pytest.raises(TimeoutError):
        find.search(Bytes(b"a" * 5000 + b"b"), find.query("(a+)+$c"), 0, forward=True)


# --- keys -------------------------------------------------------------------------------------------

SIZE = Size(80, 12)


class Reader:
    """A desk with a log, and what one does with it."""

    def __init__(self, data: bytes, known=LOADING) -> None:
        self.bytes = Bytes(data)
        self.desk = Desk(UNICODE, "server.log")
        self.desk.news = News(known, (), len(data))
        self.desk.open_log(self.bytes, lambda: None)

    def press(self, *keys: str):
        act = None
        for key in keys:
            self.shown()
            act = self.desk.press(key, SIZE)
            self.settle()
        return act

    def settle(self) -> None:
        end = time.monotonic() + 20
        while self.desk.pager.is_searching:
            assert time.monotonic() < end
            time.sleep(0)
        self.shown()

    def shown(self) -> str:
        return plain_text(self.desk.picture(SIZE))

    def cursor(self) -> str:
        return next((line[2:] for line in self.shown().splitlines() if line.startswith("▌")), "")


LINES = b"".join(b"line %d\n" % n for n in range(1, 101))


def test_it_opens_at_the_end_and_follows():
    reader = Reader(LINES)
    reader.press("l")
    assert reader.cursor() == "line 100"
    assert "following" in reader.shown()
    reader.bytes.data += b"line 101\n"
    assert reader.cursor() == "line 101"


def test_moving_up_stops_following_and_counts_what_comes():
    reader = Reader(LINES)
    reader.press("l", "k")
    reader.bytes.data += b"one more\n" * 132
    assert reader.cursor() == "line 99"
    assert "▼ 132 new" in reader.shown()
    reader.press("G")
    assert "new" not in reader.shown()


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("g", "line 1"), ("gj", "line 2"), ("gjjk", "line 2"), ("G", "line 100"), ("g ", "line 10"), ("g b", "line 1"),
    ],
)  # fmt: skip
def test_keys_move_the_cursor(keys, line):
    reader = Reader(LINES)
    reader.press("l", *keys)
    assert reader.cursor() == line


def test_half_pages_go_there_and_back():
    reader = Reader(LINES)
    reader.press("l", "g", "ctrl+d", "ctrl+d", "ctrl+d", "ctrl+u")
    assert reader.cursor() == "line 11"


def test_the_end_is_reached_by_moving_and_then_followed():
    reader = Reader(LINES)
    reader.press("l", *["g", *["pagedown"] * 20])
    assert reader.cursor() == "line 100"
    assert "following" in reader.shown()


def test_search_goes_down_and_back_up():
    reader = Reader(LINES)
    reader.press("l", "g", "/", *"line 5", "enter")
    assert reader.cursor() == "line 5"
    reader.press("n")
    assert reader.cursor() == "line 50"
    reader.press("N", "N")
    assert "not found above" in reader.shown()
    assert reader.cursor() == "line 5"


def test_keys_while_asking_are_text():
    reader = Reader(LINES)
    reader.press("l", "g", "/", *"qx", "backspace", "ctrl+u", *"line 7", "escape")
    assert reader.cursor() == "line 1"
    reader.desk.press("/", SIZE)
    reader.desk.paste("line 42\nand more")
    reader.press("enter")
    assert reader.cursor() == "line 42"


def test_errors_are_found_without_typing():
    data = b"fine\n" * 20 + b"[2026] Traceback (most recent call last):\n" + b"fine\n" * 5 + b"ValueError: no\n"
    reader = Reader(data)
    reader.press("l", "g", "e")
    assert reader.cursor().startswith("[2026] Traceback")
    reader.press("e")
    assert reader.cursor() == "ValueError: no"
    reader.press("E")
    assert reader.cursor().startswith("[2026] Traceback")


def test_braces_jump_between_phases():
    known = LOADING
    rows = (row("bootstrap", known.phases[0].status, 0, 1.0), row("dist_init", known.phases[0].status, 3, 1.0))
    known = type(known)(known.now_s, known.outcome, known.verdict, phases=rows, started_at_s=T0)
    reader = Reader(b"x" * 99 + b"\n" + b"y" * 198 + b"\n\nthe phase begins here\n", known)
    reader.press("l", "g", "}")
    assert reader.cursor() == "the phase begins here"
    assert "here begins: Distributed init" in reader.shown()
    reader.press("{")
    assert reader.cursor().startswith("xxx")


def test_enter_on_a_phase_opens_its_first_line_and_enter_comes_back():
    reader = Reader(b"a" * 2299 + b"\n" + b"the first line of distributed init\n")
    reader.press("g", "j", "enter")
    assert reader.cursor().startswith("the first line")
    reader.press("enter")
    assert "Distributed init" in reader.shown()
    assert "q quit" in reader.shown()


def test_raw_shows_each_redraw_and_collapsed_the_last():
    reader = Reader(b"begin\n\rLoading 1/2\rLoading 2/2\nend\n")
    reader.press("l")
    assert "Loading 1/2" not in reader.shown()
    reader.press("c")
    assert "Loading 1/2" in reader.shown()


def test_long_lines_are_wrapped_or_moved_along():
    reader = Reader(b"a" * 78 + b"b" * 78 + b"c" * 10 + b"\n")
    reader.press("l")
    assert "b" not in reader.cursor()
    reader.press("right", "right")
    assert reader.cursor().startswith("b")
    reader.press("W")
    assert "c" * 10 in reader.shown()


def test_y_copies_the_whole_line_and_escape_goes_back():
    reader = Reader(b"short\n" + b"x" * 500 + b"\n")
    assert reader.press("l", "y") == Copy("x" * 500)
    assert reader.desk.pager.press("escape", reader.desk.news, SIZE) == Back()
