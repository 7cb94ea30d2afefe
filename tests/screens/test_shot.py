"""The README's picture is of the screen as it is."""

from __future__ import annotations

from tests.screens.picture import read, svg
from tests.screens.shot import AT_S, COLUMNS, NAME, ROWS, feed_until
from tests.talk import ROOT

PICTURE = ROOT / "tests" / "screens" / "tail.svg"


def test_the_readmes_picture_shows_what_the_screen_shows():
    """``python -m tests.screens.shot > tests/screens/tail.svg`` draws it anew."""
    assert read(PICTURE.read_text(encoding="utf-8")) == read(svg(feed_until(NAME, AT_S), COLUMNS, ROWS))
