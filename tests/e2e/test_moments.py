"""The README's moments of a start: its table is read, its keys are pressed, what it promises must stand there."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from tests.e2e.command import PHASETRACK
from tests.e2e.test_screen import start as start  # noqa: PLC0414 - a fixture
from tests.talk import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
HEADING = "### Five moments of a start"
_NAMED = {"space": " ", "enter": "\r", "esc": "\x1b"}
_QUOTED = re.compile(r"`([^`]+)`")


class Moment(NamedTuple):
    """A row of the table."""

    keys: str
    second: str
    phrases: list[str]

    def is_on(self, text: str) -> bool:
        stands = re.search(rf"paused, 5×  ~?[\d:]+  {re.escape(self.second)} of \d+ s", text)
        return stands is not None and all(phrase in text for phrase in self.phrases)


def moments_of(text: str) -> list[Moment]:
    """The table below the heading: ``| keys | second | phrases | … |``, keys and phrases in backticks."""
    section = text.partition(HEADING)[2].partition("\n#")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| `")]
    return [
        Moment("".join(_NAMED.get(key, key) for key in _QUOTED.findall(keys)), second.strip(), _QUOTED.findall(phrases))
        for keys, second, phrases, *_ in rows
    ]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_each_moment_of_the_readme_is_on_the_screen(start, size):
    moments = moments_of(README)
    assert len(moments) == 5
    screen = start([*PHASETRACK, "demo"], columns=size[0], rows=size[1])
    screen.until("▶ 5×")
    for moment in moments:
        screen.send(moment.keys)
        screen.until(lambda it, moment=moment: moment.is_on(it.text))
    screen.send("q")
    assert screen.exit_code() == 0
