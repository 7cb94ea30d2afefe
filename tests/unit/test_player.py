"""A replay's keys: pressed on the desk, granted by the player on a clock that a test moves by hand."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from phasetrack.core.hindsight import hindsight
from phasetrack.core.model import Outcome
from phasetrack.core.where import After, AtLine, AtPhase, AtShare, AtTime, where
from phasetrack.errors import UsageError
from phasetrack.player import SPEEDS, Begin, Player
from phasetrack.tape import Tape
from phasetrack.views.tui.acts import Quit, Size, Steer
from phasetrack.views.tui.desk import Desk
from phasetrack.views.tui.feed import News
from phasetrack.views.tui.look import ASCII, UNICODE, plain_text
from phasetrack.views.tui.paging import Lines, tail
from tests.talk import FIXTURES, hear, patterns, recording

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from phasetrack.views.tui.replay import Replay

CAST = FIXTURES / "07b-tp2-eagle3-pipe" / "server.cast"
FAILED = FIXTURES / "06a1-mem-fraction-too-small" / "server.log"


class Show:
    """A player on a desk, as the app joins them, without threads: the clock moves when the test says so."""

    def __init__(self, path: Path, begin: Begin | None = None, *, size: tuple[int, int] = (100, 30)) -> None:
        self.now = 1000.0
        self.player = Player(Tape(patterns(), str(path)), begin or Begin(), hz=4.0, ours=lambda: self.now)
        self.size = Size(*size)
        self.desk = Desk(UNICODE, str(path))
        self.desk.open_log(self.player.pages, lambda: None)
        while self.desk.news.replay is None:
            self.look()

    def look(self) -> None:
        """Take the next picture, if there is one."""
        player = self.player
        if (known := player.next()) is not None:
            text = tail(Lines(player.pages), 8, player.pinned)
            size, notice = player.pages.size(), player.notice
            self.desk.news = News(known, text, size, player.unread_bytes, notice, player.replay, player.pinned)

    def press(self, *keys: str) -> Show:
        """Press keys one after the other; each is granted before the next."""
        for key in keys:
            act = self.desk.press(key, self.size)
            if isinstance(act, Steer):
                self.player.wish(act.wish)
                self.look()
                while self.replay.going is not None:
                    self.look()
        return self

    def type(self, text: str) -> Show:
        return self.press(":", *text, "enter")

    def wait(self, seconds: float) -> Show:
        """Our clock moves on."""
        for _ in range(round(seconds * 4)):
            self.now += 0.25
            self.look()
        return self

    @property
    def replay(self) -> Replay:
        assert self.desk.news.replay is not None
        return self.desk.news.replay

    @property
    def at(self) -> float:
        """Seconds since the begin."""
        return round(self.replay.spent_s, 2)

    @property
    def text(self) -> str:
        return plain_text(self.desk.picture(self.size))


@pytest.fixture
def show() -> Iterator[Show]:
    shown = Show(CAST)
    yield shown
    shown.player.close()


# --- play, pause, speed ------------------------------------------------------------------------------


def test_it_plays_at_once_at_the_speed_of_the_log(show):
    assert (show.at, show.replay.playing, show.replay.speed) == (0.0, True, 1.0)
    assert show.wait(20).at == 20.0


def test_the_space_bar_stops_it_and_lets_it_go_on_from_there(show):
    show.wait(20).press(" ")
    assert show.wait(1).at == 20.0
    assert "paused" in show.text
    show.press(" ")
    assert show.wait(5).at == 25.0


def test_faster_and_slower_go_through_the_speeds_and_stop_at_both_ends(show):
    seen = []
    for _ in range(len(SPEEDS) + 1):
        seen.append(show.replay.speed)
        show.press(">")
    assert seen == [*SPEEDS, SPEEDS[-1]]
    for _ in range(len(SPEEDS) + 1):
        show.press("<")
    assert show.replay.speed == 1.0
    show.press(">", ">")
    assert show.wait(4).at == 20.0


def test_at_the_end_it_stands_still_and_plays_again_from_the_beginning(show):
    show.press("9", ">", ">", ">", ">")
    show.wait(2)
    assert not show.replay.playing
    assert show.at == round(show.replay.total_s, 2)
    assert show.desk.news.known.ended
    show.press(" ")
    assert (show.at, show.replay.playing) == (0.0, True)


def test_idle_stretches_are_shortened_on_request():
    show = Show(CAST, Begin(idle_s=2.0))
    assert "silences over 2.0 s shortened" in show.text
    assert show.wait(2).at == pytest.approx(12.3, abs=0.5)  # nothing was printed for twelve seconds
    show.player.close()


# --- seeking -----------------------------------------------------------------------------------------


def test_arrows_go_ten_seconds(show):
    show.press(" ", "right", "right", "right")
    assert show.at == 30.0
    assert show.press("left").at == 20.0
    assert show.press("left", "left", "left").at == 0.0


def test_brackets_go_from_phase_to_phase_and_to_the_outcome(show):
    show.press(" ")
    phases = []
    for _ in range(14):
        show.press("]")
        phases.append(show.desk.news.known.phase)
    assert phases[:8] == [
        "bootstrap", "dist_init", "target_load", "kv_cache", "target_graph", "draft_load", "draft_kv", "draft_graph",
    ]  # fmt: skip
    assert show.replay.said == "the end"
    show.press("[", "[", "[")
    assert show.desk.news.known.phase == "http_up"


def test_digits_are_tenths_of_the_way(show):
    show.press(" ", "5")
    assert show.replay.share == pytest.approx(0.5)
    assert show.press("0").at == 0.0


def test_a_click_on_the_scrubber_goes_there(show):
    show.press(" ")
    (line,) = [line for line in show.desk.picture(show.size) if "Target CUDA graphs" in plain_text([line])][-1:]
    (span,) = [span for span in line.spans if span.text.startswith("Target CUDA")]
    act = show.desk.click(line, span.key, show.size)
    assert isinstance(act, Steer)
    show.player.wish(act.wish)
    show.look()
    assert show.desk.news.known.phase == "target_graph"


@pytest.mark.parametrize(
    ("text", "at"),
    [("+40s", 40.0), ("+1m", 60.0), ("50%", None), ("target_load", 35.64), ("Target w", 35.64), ("0%", 0.0)],
)
def test_a_place_can_be_typed(show, text, at):
    show.press(" ").type(text)
    assert show.replay.said == ""
    assert show.at == at or at is None


def test_a_time_of_the_logs_clock_can_be_typed(show):
    show.press(" ").type("15:55:11")
    assert show.replay.clock_s % 60 == pytest.approx(11, abs=1)
    assert show.desk.news.known.phase == "target_graph"


def test_a_line_can_be_typed(show):
    show.press(" ").type("line 30")
    assert show.desk.news.known.sources[0].lines >= 29
    show.press("left").type("1")
    assert show.at == pytest.approx(12.3, abs=0.1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nowhere", "no phase of this boot"), ("99999", "no line 99,999"), ("2031-01-01T00:00:00", "never shows"),
        ("?", "no place"), ("+x", "no place"),
    ],
)  # fmt: skip
def test_a_place_that_is_not_there_is_told_and_nothing_moves(show, text, said):
    show.press(" ", "3")
    before = show.at
    show.type(text)
    assert show.at == before
    assert said in show.text


def test_going_back_shows_the_log_as_it_was_then(show):
    show.press(" ", "9", "l", "G")
    assert "following" in show.text
    show.press("2")
    assert show.desk.news.log_bytes == show.player.pages.size() < 13_000
    assert "Multi-thread loading" not in show.text
    assert "following" in show.text


def test_in_the_log_the_space_bar_and_arrows_scroll(show):
    show.press(" ", "9", "l")
    at = show.at
    show.press("left", "b", " ")
    assert show.at == at
    assert not show.replay.playing


# --- what is told beside it ---------------------------------------------------------------------------


def test_beside_what_was_said_stands_what_came_true(show):
    show.press(" ").type("+45s")
    assert "Came true: ready in 28 s (told " in show.text
    assert re.search(r"Target CUDA graphs 1\d s more, of 19 s", show.text)
    show.press("9", "]")
    assert "Came true" not in show.text


def test_of_a_start_that_failed_it_tells_with_what_message():
    show = Show(FAILED).press(" ").type("60%")
    assert "failed in" in show.text
    assert "First cause" not in show.text
    assert show.desk.news.known.outcome is Outcome.STARTING
    show.player.close()


def test_an_estimate_that_held_is_told_apart_from_one_that_missed():
    truth = hear(recording("01-plain-file")).snapshot
    then = hear(recording("01-plain-file")[:30_000], open_end=True).snapshot
    assert then.eta is not None
    assert truth.ready_at_s is not None
    found = hindsight(then, truth, truth.ready_at_s - then.eta.mid_s)
    assert found is not None
    assert found.held is True
    missed = hindsight(then, truth, truth.ready_at_s - 10 * then.eta.high_s)
    assert missed is not None
    assert missed.held is False
    assert hindsight(truth, truth, None) is None


# --- pictures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(20, 1), (30, 5), (40, 10), (60, 14), (80, 24), (250, 60)])
@pytest.mark.parametrize("look", [UNICODE, ASCII])
def test_every_view_has_a_scrubber_and_fits_at_any_size(show, size, look):
    show.desk.look = look
    show.press(" ", "6")
    for key in ("m", "r", "w", "B", "p", "l", "?"):
        show.desk.press(key, Size(*size))
        lines = show.desk.picture(Size(*size))
        assert len(lines) == size[1]
        assert all(len(text) <= size[0] for text in plain_text(lines).split("\n"))


def test_the_scrubber_marks_ready_and_failure():
    show = Show(CAST)
    assert [mark.kind for mark in show.replay.marks] == ["ready", "stopped"]
    assert "✓" in show.text.splitlines()[-2]
    show.player.close()
    failed = Show(FAILED)
    assert "✗" in failed.text.splitlines()[-2]
    failed.player.close()


def test_the_demo_says_what_it_is_and_how_to_leave():
    show = Show(CAST, Begin(demo=True), size=(80, 24))
    assert (
        show.text.splitlines()[0] == "Demo: a recording of a real start, with exact times. q leaves, ? tells the keys."
    )
    assert isinstance(show.desk.press("q", show.size), Quit)
    show.player.close()


def test_between_two_phases_none_is_said_to_run(show):
    show.press(" ", "8")
    assert "Draft KV cache is done; no other phase has begun yet." in show.text
    assert "is running" not in show.text


def test_a_phase_that_names_no_ranks_is_not_said_to_have_none_of_them_done(show):
    show.press(" ", "9", "r")
    assert "No line of this phase names a rank." in show.text


@pytest.mark.parametrize(("height", "goes_on"), [(14, True), (24, True), (70, False)])
def test_a_postmortem_tells_whether_it_goes_on_and_of_which_moment_it_is(height, goes_on):
    show = Show(FAILED, size=(80, height)).press(" ", "5", "p")
    assert "Of the whole log, to its end." in show.text
    assert ("more lines" in show.text) == goes_on
    assert "skipped" not in show.text
    show.player.close()


def test_a_narrow_screen_cuts_no_figure():
    show = Show(CAST, size=(40, 10)).press(" ").type("+48s")
    assert "■ 15:55:17 48 s " in show.text.splitlines()[-2]
    show.press("p")
    assert re.search(r"^✓ Start processes +18 s$", show.text, re.MULTILINE)
    show.player.close()


# --- post-mortem and boots ----------------------------------------------------------------------------


def test_the_postmortem_leads_from_a_finding_into_the_log_and_back():
    show = Show(FAILED).press(" ", "0", "p")
    assert "First cause" in show.text
    assert "RuntimeError: Not enough memory" in show.text
    chosen = ""
    while "Not enough memory" not in chosen:
        show.press("j")
        chosen = plain_text([line for line in show.desk.picture(show.size) if line.inverse])
    show.press("enter")
    assert show.desk.news.known.outcome is Outcome.FAILED
    assert "▌ [2026-11-30 15:44:20]" in show.text
    show.press("enter")
    assert "First cause" in show.text
    assert plain_text([line for line in show.desk.picture(show.size) if line.inverse]) == chosen
    show.player.close()


def test_the_postmortem_of_a_replay_is_the_whole_logs(show):
    show.press(" ", "0", "p")
    assert "Longest silences" in show.text
    assert "was ready at 2026-11-30T15:55:39" in show.text


@cache
def many(folder: Path) -> Path:
    path = folder / "server.log"
    names = ["06a1-mem-fraction-too-small", "06b2-truncated-shard", "08-multithread-load-pipe"]
    boots = [(name, f"2026-12-{day + 1:02d}".encode()) for day, name in enumerate(names * 2)]
    path.write_bytes(b"".join(recording(name).replace(b"2026-11-30", date) for name, date in boots))
    return path


def test_an_earlier_boot_can_be_opened_and_left_again(tmp_path):
    show = Show(many(tmp_path))
    assert show.desk.news.known.boot == 6
    show.press(" ", "b")
    assert "6 boots in this log" in show.text
    show.press("j", "j", "enter")
    assert (show.desk.news.known.boot, show.replay.truth.boot) == (4, 4)
    assert show.at == 0.0
    show.press("9", "]", "]", "]", "]")
    assert show.desk.news.known.boot == 4
    show.press("m", "escape")
    assert show.replay.truth.boot == 6
    show.player.close()


def test_a_line_of_an_earlier_boot_opens_that_boot(tmp_path):
    show = Show(many(tmp_path)).press(" ").type("10")
    assert show.replay.truth.boot == 1
    show.type("2026-12-04T15:44:13")
    assert show.replay.truth.boot == 4
    show.player.close()


def test_a_boot_can_be_asked_for_at_once(tmp_path):
    show = Show(many(tmp_path), Begin(boot=3))
    assert show.desk.news.known.boot == 3
    show.player.close()
    with pytest.raises(UsageError, match="--boot 7: this log holds no such boot"):
        Show(many(tmp_path), Begin(boot=7))


# --- places in words ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("120", AtLine(120)), ("line 120", AtLine(120)), ("L7", AtLine(7)), ("40%", AtShare(0.4)),
        ("12.5 %", AtShare(0.125)), ("+90s", After(90.0)), ("+1h30m", After(5400.0)),
        ("target_graph", AtPhase("target_graph")), ("15:42:03", AtTime(56523.0)),
        ("1970-01-02T00:00:01", AtTime(86401.0)),
    ],
)  # fmt: skip
def test_a_place_is_read_as_people_write_it(text, place):
    assert where(text) == place


@pytest.mark.parametrize("text", ["", "+", "%", "+5x", "25:61:00", "!"])
def test_what_is_no_place_is_refused(text):
    with pytest.raises(ValueError, match=r".*"):
        where(text)
