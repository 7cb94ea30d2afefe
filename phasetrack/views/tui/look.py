"""What the screen is drawn with: glyphs in Unicode or ASCII, and the one gate for text.

Everything that reaches a cell goes through ``Look.text``: tabs become blanks, whatever a terminal could act on
or hide (controls, escapes, bidirectional overrides, lone surrogates) becomes a visible replacement. Layout
measures after that, so a hostile log can neither steer the terminal nor shift a column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, set_cell_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from phasetrack.core.model import Status

# Our own typography where only ASCII may be used; other characters become "?".
_PLAIN = {
    "–": "-", "—": "-", "…": "...", "·": "|", "×": "x", "≥": ">=", "≤": "<=", "±": "+-", "→": "->", "≈": "~",
    "‘": "'", "’": "'", "“": '"', "”": '"', "µ": "u", "█": "#", "░": ".", "▒": "=", "─": "-",
}  # fmt: skip
# A figure stays with its unit where a sentence is broken.
_JOINED = re.compile(r"(?<=\d) (?=(?:s|min|h|d|%|[KMGT]?i?B)\b)")
_TIE = "\xa0"
_TO_PLAIN = str.maketrans(_PLAIN)
_TAB = 8


class Span(NamedTuple):
    """Text in one style."""

    text: str
    style: str = ""  # a name in ``theme``
    key: str = ""  # the key that a click on it stands for


class Line(NamedTuple):
    """One row of the screen."""

    spans: tuple[Span, ...] = ()
    item: int | None = None  # what a click on it selects
    inverse: bool = False  # the selected one


BLANK = Line()


@dataclass(frozen=True, slots=True)
class Look:
    """The glyphs; each tells its meaning without colour."""

    ascii: bool
    pending: str
    running: str
    done: str
    skipped: str
    failed: str
    unfinished: str  # running when the log ended: nothing moves there any more
    between: str
    full: str  # of a bar
    full_open: str  # of a bar that is full while its phase is not over
    empty: str
    rule: str
    dot: str  # between parts of a line
    more: str  # text goes on
    cursor: str
    border: str  # between two phases on a scrubber
    here: str  # on a scrubber: the moment that is shown
    up: str
    down: str
    warning: str
    stop: str
    rank_done: str
    rank_running: str
    rank_pending: str
    rank_failed: str

    def text(self, value: str) -> str:
        """Make a text safe for cells. Never raises; doing it twice changes nothing."""
        if value.isprintable() and (not self.ascii or value.isascii()):
            return value
        value = value.expandtabs(_TAB)
        if self.ascii:
            value = value.translate(_TO_PLAIN)
            return "".join(c if " " <= c <= "~" else "?" for c in value)
        return "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in value)

    def span(self, value: str, style: str = "", key: str = "") -> Span:
        """Put a text into a span."""
        return Span(self.text(value), style, key)

    def line(self, value: str, style: str = "") -> Line:
        """Put a text into a line of its own."""
        return Line((self.span(value, style),))

    def status(self, status: Status, *, ended: bool = False) -> str:
        """One cell for where a row stands."""
        if ended and status == "running":
            return self.unfinished
        return {
            "pending": self.pending,
            "running": self.running,
            "done": self.done,
            "skipped": self.skipped,
            "failed": self.failed,
        }[status]

    def cut(self, value: str, width: int) -> str:
        """A text in no more than ``width`` cells; a cut one shows that it goes on."""
        value = self.text(value)
        if cell_len(value) <= width:
            return value
        if width <= cell_len(self.more):
            return set_cell_size(value, max(width, 0))
        return set_cell_size(value, width - cell_len(self.more)).rstrip() + self.more

    def cut_front(self, value: str, width: int) -> str:
        """The end of a text in no more than ``width`` cells: of a path the end tells most."""
        value = self.text(value)
        if cell_len(value) <= width:
            return value
        room = width - cell_len(self.more)
        if room <= 0:
            return set_cell_size(value, max(width, 0))
        while cell_len(value) > room:
            value = value[1:]
        return self.more + value

    def pad(self, value: str, width: int, *, right: bool = False) -> str:
        """A text in exactly ``width`` cells."""
        value = self.cut(value, width)
        blank = " " * (width - cell_len(value))
        return blank + value if right else value + blank

    def wrap(self, value: str, width: int, rows: int) -> list[str]:
        """A text on at most ``rows`` rows, broken at blanks; a cut one shows that it goes on."""
        lines = list(_fold(_JOINED.sub(_TIE, self.text(value)), max(width, 1)))
        lines = [line.replace(_TIE, " ") for line in lines]
        if len(lines) <= rows:
            return lines
        kept = lines[: max(rows, 0)]
        if kept:
            kept[-1] = self.cut(kept[-1] + " " * width + "x", width) if width > 1 else kept[-1]
        return kept

    def flow(self, parts: Sequence[str], joint: str, width: int, rows: int) -> list[str]:
        """Parts on at most ``rows`` rows, broken only between them."""
        lines: list[str] = []
        for part in parts:
            joined = f"{lines[-1]}{joint}{part}" if lines else part
            if lines and cell_len(self.text(joined + joint.rstrip())) <= width:
                lines[-1] = joined
            else:
                lines.append(part)
        if len(lines) > rows > 0:
            lines[rows - 1] = f"{lines[rows - 1]}{joint}{lines[rows]}"
        ends = [joint.rstrip()] * (len(lines) - 1) + [""]
        return [self.cut(line + end, width) for line, end in zip(lines[:rows], ends[:rows], strict=True)]


def _fold(text: str, width: int) -> Iterator[str]:
    row, used = "", 0
    for word in text.split(" "):
        size = cell_len(word)
        if row and used + 1 + size <= width:
            row, used = f"{row} {word}", used + 1 + size
            continue
        if row:
            yield row
        while size > width:
            head = set_cell_size(word, width).rstrip()
            head = head or word[0]
            yield head
            word = word[len(head) :]  # noqa: PLW2901 - what is left of it
            size = cell_len(word)
        row, used = word, size
    if row:
        yield row


UNICODE = Look(
    ascii=False, pending="·", running="▶", done="✓", skipped="-", failed="✗", unfinished="?", between="…",
    full="█", full_open="▒", empty="░", rule="─", dot=" · ", more="…", cursor="▌", up="↑", down="▼", warning="!",
    stop="■", border="┼", here="●", rank_done="■", rank_running="▶", rank_pending="·", rank_failed="✗",
)  # fmt: skip
ASCII = Look(
    ascii=True, pending=".", running=">", done="+", skipped="-", failed="x", unfinished="?", between=":",
    full="#", full_open="=", empty=".", rule="-", dot=" | ", more="...", cursor=">", up="^", down="v", warning="!",
    stop="#", border="|", here="O", rank_done="#", rank_running=">", rank_pending=".", rank_failed="x",
)  # fmt: skip


def width_of(spans: Iterable[Span]) -> int:
    """Cells of spans side by side."""
    return sum(cell_len(span.text) for span in spans)


def plain_text(lines: Iterable[Line]) -> str:
    """Lines without their styles, as they would be read aloud."""
    return "\n".join("".join(span.text for span in line.spans).rstrip() for line in lines)
