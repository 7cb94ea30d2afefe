"""What stays in the scrollback when the screen is left: the same answer in plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.model import Outcome
from phasetrack.views.tui import header
from phasetrack.views.tui.endings import failure_lines, ready_lines
from phasetrack.views.tui.look import plain_text
from phasetrack.views.tui.rows import table
from phasetrack.views.words import clock

if TYPE_CHECKING:
    from phasetrack.views.tui.feed import News
    from phasetrack.views.tui.look import Look

_FAILURE_ROWS = 24


def parting_text(news: News, path: str, width: int, look: Look) -> str:
    """The last state, as wide as the terminal."""
    known = news.known
    lines = header.identity(news, path, width, look, rows=2)
    if news.replay is not None:
        lines.append(look.line(look.cut(f"Replay, as it was known at {clock(news.replay.clock_s)}", width)))
    above = plain_text(lines)
    badge = "\n".join(line.strip() for line in plain_text(header.outcome(news, width, 2, look)).splitlines())
    lines = []
    if known.outcome is Outcome.FAILED:
        lines += failure_lines(known, width, _FAILURE_ROWS, look)
    elif known.outcome is Outcome.READY:
        lines += ready_lines(known, width, look)
    else:
        lines += header.verdict(known, width, 3, look)
        lines += header.expectation(known, width, look)
    lines += header.notes(news, width, look, warnings=False)
    if known.phases:
        lines += table(known, width, look)
    return "\n".join(part for part in (above, badge, plain_text(lines)) if part) + "\n"
