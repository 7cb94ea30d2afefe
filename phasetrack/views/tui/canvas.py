"""The one widget: lines in, cells out, and nothing repainted that has not changed.

A widget per row would make Textual lay out, style and repaint regions; here each line is compared with what
stands on the screen, and of a changed one only the columns that differ are marked dirty. Textual selects and
copies text by itself only where it owns it, so selecting by mouse is done here: what was dragged over is
copied when the button is released. With Shift held a terminal selects by its own means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from phasetrack.views.tui.look import BLANK, Line
from phasetrack.views.tui.theme import style

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual import events


class Cell(NamedTuple):
    """A place on the screen, ordered as one reads."""

    y: int
    x: int


class Canvas(Widget):
    """Shows lines, and tells of clicks and of what was dragged over."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "Canvas { width: 1fr; height: 1fr; background: ansi_default; color: ansi_default; }"

    def __init__(self, *, colour: bool, clicked: Callable[[Line, str], None], dragged: Callable[[str], None]) -> None:
        """Begin empty.

        Args:
            colour: whether colours may be used.
            clicked: told of a line and of the key that a click on its span stands for.
            dragged: told of a text that was selected.
        """
        super().__init__()
        self._colour = colour
        self._clicked = clicked
        self._dragged = dragged
        self._lines: list[Line] = []
        self._from: Cell | None = None
        self._to: Cell | None = None
        self._held = False

    @property
    def is_held(self) -> bool:
        """Whether the mouse is selecting: the text under it shall stand still."""
        return self._held

    def show(self, lines: Sequence[Line]) -> None:
        """Show lines from the top; only what differs from what is shown is drawn."""
        old, self._lines = self._lines, list(lines)
        dirty = [
            Region(left, y, right - left, 1)
            for y in range(max(len(old), len(lines)))
            if (was := _at(old, y)) is not (now := _at(lines, y)) and was != now
            for left, right in [_changed(was, now, self.size.width)]
        ]
        if self._from is not None:
            self._unmark()
        if dirty:
            self.refresh(*dirty)

    def render_line(self, y: int) -> Strip:
        """Draw one line; Textual asks for those that are dirty."""
        line = _at(self._lines, y)
        segments = [
            Segment(span.text, style(span.style, colour=self._colour, inverse=line.inverse))
            for span in line.spans
            if span.text
        ]
        plain = style("", colour=self._colour, inverse=line.inverse)
        strip = Strip(segments).adjust_cell_length(self.size.width, plain)
        marked = self._marked(y)
        return strip if marked is None else self._mark(strip, *marked)

    def _mark(self, strip: Strip, left: int, right: int) -> Strip:
        before, inside, after = strip.divide([left, right, strip.cell_length])
        shown = style("match", colour=self._colour)
        return Strip.join([before, Strip([Segment(part.text, shown) for part in inside]), after])

    def _marked(self, y: int) -> tuple[int, int] | None:
        if self._from is None or self._to is None or self._from == self._to:
            return None
        first, last = sorted((self._from, self._to))
        if not first.y <= y <= last.y:
            return None
        left = first.x if y == first.y else 0
        right = min(last.x + 1, self.size.width) if y == last.y else self.size.width
        return (left, right) if left < right else None

    def _unmark(self) -> None:
        self._from = self._to = None
        self.refresh()

    # --- the mouse ----------------------------------------------------------------------------------

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to select, or to click."""
        if event.button != 1:
            return
        if self._from is not None:
            self._unmark()
        self._from = self._to = Cell(event.y, event.x)
        self._held = True
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Go on selecting."""
        if self._held:
            width, height = self.size
            self._to = Cell(min(max(event.y, 0), height - 1), min(max(event.x, 0), width - 1))
            self.refresh()

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End a selection, or click."""
        if not self._held:
            return
        self._held = False
        self.release_mouse()
        if self._from == self._to:
            self._from = self._to = None
            line = _at(self._lines, event.y)
            self._clicked(line, _key_at(line, event.x))
        else:
            self._dragged(self.selected_text())

    def selected_text(self) -> str:
        """What is selected, without the blanks that fill the lines."""
        rows = []
        for y in range(len(self._lines)):
            if (marked := self._marked(y)) is not None:
                text = Strip([Segment(span.text) for span in _at(self._lines, y).spans])
                rows.append(text.adjust_cell_length(self.size.width).crop(*marked).text.rstrip())
        return "\n".join(rows)


def _at(lines: Sequence[Line], y: int) -> Line:
    return lines[y] if y < len(lines) else BLANK


def _key_at(line: Line, x: int) -> str:
    for span in line.spans:
        x -= cell_len(span.text)
        if x < 0:
            return span.key
    return ""


def _changed(was: Line, now: Line, width: int) -> tuple[int, int]:
    """The columns that differ. A wide character makes columns of characters uncertain: then all of them."""
    old, new = _cells(was, width), _cells(now, width)
    if was.inverse != now.inverse or old is None or new is None:
        return 0, width
    left = next((x for x in range(width) if old[x] != new[x]), width)
    right = next((x + 1 for x in range(width - 1, -1, -1) if old[x] != new[x]), left)
    return (left, right) if left < right else (0, width)


def _cells(line: Line, width: int) -> list[tuple[str, str]] | None:
    cells: list[tuple[str, str]] = []
    for span in line.spans:
        if cell_len(span.text) != len(span.text):
            return None
        cells += [(letter, span.style) for letter in span.text]
    return [*cells, *[(" ", "")] * (width - len(cells))][:width]
