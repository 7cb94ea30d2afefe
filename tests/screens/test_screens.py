"""The real screen shows hand-made snapshots as it did: text and styles, at four sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phasetrack.views.tui.acts import Size
from phasetrack.views.tui.feed import News
from phasetrack.views.tui.home import home
from phasetrack.views.tui.look import ASCII, UNICODE, plain_text, width_of
from tests.screens.cases import CASES, FAILED_START, LOADING, TAIL
from tests.screens.make import FOLDER, golden, names


@pytest.mark.parametrize("name", names())
def test_a_picture_is_what_it_was(name):
    assert golden(name) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("look", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("name", CASES)
def test_every_size_gives_exactly_its_lines_and_none_is_too_wide(name, look):
    news = News(CASES[name], TAIL, 274)
    for width in (1, 20, 40, 41, 56, 60, 79, 80, 99, 100, 120, 140, 200, 250):
        for height in (1, 2, 5, 8, 10, 14, 20, 24, 40, 60):
            lines = home(news, Size(width, height), look, path="/var/log/sglang/server.log")
            assert len(lines) == height
            assert width < 40 or max(width_of(line.spans) for line in lines) <= width


@pytest.mark.parametrize("name", CASES)
def test_ascii_is_ascii(name):
    lines = home(News(CASES[name], TAIL, 274), Size(120, 40), ASCII, path="schöne/server.log")
    assert plain_text(lines).isascii()


@pytest.mark.parametrize("name", CASES)
def test_no_two_outcomes_differ_by_colour_alone(name):
    """The badge tells by glyph and word."""
    shown = plain_text(home(News(CASES[name], TAIL, 274), Size(80, 24), UNICODE, path="server.log")).splitlines()[2]
    others = {
        plain_text(home(News(case, TAIL, 274), Size(80, 24), UNICODE, path="server.log")).splitlines()[2]
        for other, case in CASES.items()
        if case.verdict.state is not CASES[name].verdict.state
    }
    assert shown.split("  ")[0] not in {other.split("  ")[0] for other in others} or "STARTING" in shown


HOSTILE = "\x1b]0;owned\x07 [bold]x[/bold] <b> \u202e \x9b1m \t| \udcff \U000e0001 \n\r \x00"


@pytest.mark.parametrize("look", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("case", [LOADING, FAILED_START], ids=["loading", "failed"])
def test_no_text_of_a_log_reaches_a_cell_that_a_terminal_could_act_on(case, look):
    failure = case.failure and replace(case.failure, message=HOSTILE, cause=HOSTILE, lines=(HOSTILE,) * 3, rank=HOSTILE)
    known = replace(
        case,
        failure=failure,
        verdict=replace(case.verdict, because=HOSTILE, next_step=HOSTILE),
        facts={**case.facts, "model_path": HOSTILE},
        phases=tuple(replace(row, title=HOSTILE, note=HOSTILE) for row in case.phases),
        drift=HOSTILE,
    )
    for width in (40, 80, 200):
        lines = home(News(known, (HOSTILE,) * 8, 1), Size(width, 40), look, path=HOSTILE)
        assert max(width_of(line.spans) for line in lines) <= width
        assert all(span.text.isprintable() for line in lines for span in line.spans)
