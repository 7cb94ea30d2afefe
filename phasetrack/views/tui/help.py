"""Every key, on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.views.tui.acts import Back
from phasetrack.views.tui.look import BLANK, Line, Span
from phasetrack.views.tui.reader import Reader

if TYPE_CHECKING:
    from phasetrack.views.tui.acts import Act, Size
    from phasetrack.views.tui.feed import News

_KEYS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Everywhere",
        (
            ("q", "leave with exit code 0; the last state is printed"),
            ("ctrl-c", "leave with 130"),
            ("ctrl-z", "stop; fg comes back"),
            ("m r l w", "main screen, ranks, log, why"),
            ("b p", "boots of this file, also B; post-mortem, a way into the log"),
            ("esc", "back"),
            ("j k g G", "down, up, top, bottom; arrows, home and end too"),
            ("ctrl-d ctrl-u", "half a page; space and b: a page"),
            ("y", "copy the status, or the log's line"),
            ("mouse", "click selects, twice opens; what is dragged over is copied; with shift the terminal selects"),
        ),
    ),
    (
        "Main screen",
        (
            ("enter", "the first line of the chosen phase; enter again comes back"),
            ("+ -", "more or fewer lines of the log"),
        ),
    ),
    (
        "Replay",
        (
            ("space", "play, or stand still; at the end: from the beginning"),
            ("left right", "10 s back, 10 s on"),
            ("[ ] 0-9", "previous and next phase; tenths of the way"),
            ("< >", "slower, faster: 1 to 1000 times"),
            (":", "go to a time, a line, a phase, 40% or +90s"),
        ),
    ),
    (
        "Log",
        (
            ("/", "search: a regular expression; capitals matter if one is typed"),
            ("n N", "next and previous match"),
            ("e E", "next and previous error"),
            ("{ }", "where the previous or next phase began"),
            ("f", "follow the end, or stop; G follows too"),
            ("c", "each redraw of a bar in its own row, or as a terminal shows it"),
            ("W", "wrap long lines; left and right move along them"),
        ),
    ),
)
_SIGNS = (
    "{done} done   {running} running   {pending} planned   {failed} failed   {skipped} skipped",
    "{unfinished} not finished when the log ended",
    "~ inferred, not printed by the engine   {full_open} a full bar whose phase is not over yet",
    "{between} between phases: time that no phase claims   {warning} a warning, or a doubt",
    "{up} {down} so many more rows or lines than fit   {more} at an end: cut to fit",
    "Replay: {here} the moment that is shown   {border} a phase begins   {done} {failed} {stop} ready, failed, stopped",
)
_NAMES = (
    "done", "running", "pending", "failed", "skipped", "unfinished", "full_open", "between", "warning", "up", "down",
    "more", "here", "border", "stop",
)  # fmt: skip


class Help(Reader):
    """The view; any of its own keys closes it, ``q`` too."""

    def text(self, news: News, width: int) -> list[Line]:
        """All keys, then what the glyphs mean."""
        del news
        look = self.look
        lines: list[Line] = []
        for title, pairs in _KEYS:
            lines.append(look.line(title, "bold"))
            for key, words in pairs:
                first, *rest = look.wrap(words, max(width - 18, 10), 4)
                lines.append(Line((Span("  "), look.span(look.pad(key, 16), "key"), look.span(first))))
                lines += [Line((Span(" " * 18), look.span(text))) for text in rest]
            lines.append(BLANK)
        lines.append(look.line("Signs", "bold"))
        names = {name: getattr(look, name) for name in _NAMES}
        for signs in _SIGNS:
            lines += [look.line("  " + text) for text in look.wrap(signs.format(**names), width - 2, 4)]
        return lines

    def press(self, key: str, news: News, size: Size) -> Act | None:
        """Scroll or close; ``q`` in a help page closes the page, as readers expect."""
        if key in {"q", "?", "f1"}:
            return Back()
        return super().press(key, news, size)
