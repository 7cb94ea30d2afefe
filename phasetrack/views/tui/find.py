"""Search in the bytes of a log, forward or backward, block by block: it can tell how far it is, and be stopped.

A query is a regular expression, as in ``less``; one that is none is taken literally. Small letters find
capitals too, unless the query holds a capital. The expression is the user's own, but it may still be a slow
one: it runs with a timeout, in a thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from phasetrack.views.tui.feed import Pages

BLOCK = 1 << 20
# A match that crosses a block's border is found if it is no longer than this.
_OVERLAP = 4096
_TIMEOUT_S = 2.0

# 2026-… ERROR …, Traceback (most recent call last):, ValueError: …, Killed
_ERRORS = (
    r"\b(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)|\b[A-Za-z_.]*(?:Error|Exception)\b:"
    r"|^Killed\b|\bcore dumped\b|\bSegmentation fault\b|\bSIGQUIT received\b|hit an exception"
)


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for, in bytes in both directions, and in text to mark it."""

    text: str
    forward: regex.Pattern[bytes]
    backward: regex.Pattern[bytes]
    shown: regex.Pattern[str]

    def marks(self, text: str) -> Iterator[tuple[int, int]]:
        """Where a shown text matches."""
        try:
            for found in self.shown.finditer(text, timeout=0.05, concurrent=False):
                if found.end() > found.start():
                    yield found.span()
        except TimeoutError:
            return


def query(text: str) -> Query:
    """Make a query of what was typed. Never raises."""
    flags = regex.MULTILINE | (0 if any(c.isupper() for c in text) else regex.IGNORECASE)
    try:
        return _compiled(text, text, flags)
    except regex.error:
        return _compiled(text, regex.escape(text), flags)


def _compiled(text: str, pattern: str, flags: int) -> Query:
    raw = pattern.encode("utf-8", "surrogateescape")
    return Query(
        text,
        regex.compile(raw, flags),
        regex.compile(raw, flags | regex.REVERSE),
        regex.compile(pattern, flags),
    )


ERRORS = _compiled("an error", _ERRORS, regex.MULTILINE)
_ERROR = re.compile(_ERRORS)  # several times faster than the other module, and looked for in every row


def is_error(text: str) -> bool:
    """Whether a shown line is what ``ERRORS`` looks for."""
    return _ERROR.search(text) is not None


def search(
    pages: Pages,
    wanted: Query,
    start: int,
    *,
    forward: bool,
    is_off: Callable[[], bool] = lambda: False,
    progress: Callable[[float], None] = lambda _: None,
    block: int = BLOCK,
) -> int | None:
    """The offset of the first match at or after ``start``, or of the last one that begins before it.

    Args:
        pages: the log.
        wanted: what is looked for.
        start: where to begin.
        forward: the direction.
        is_off: asked between blocks whether to give up.
        progress: told the share of the way that is done.
        block: bytes at a time.

    Raises:
        TimeoutError: the expression is too slow for this log.
    """
    size = pages.size()
    way = (size - start if forward else start) or 1
    for begin, stop in _blocks(start, size, block, forward=forward):
        if is_off():
            return None
        data = pages.read(begin, stop - begin + _OVERLAP)
        pattern = wanted.forward if forward else wanted.backward
        # Of a backward search the match must begin before the block's end, its text may go on behind it.
        for found in pattern.finditer(data, timeout=_TIMEOUT_S, concurrent=True):
            if begin + found.start() >= stop:
                if forward:
                    break
            elif found.end() > found.start():
                return begin + found.start()
        progress(abs((stop if forward else begin) - start) / way)
    return None


def _blocks(start: int, size: int, block: int, *, forward: bool) -> Iterator[tuple[int, int]]:
    if forward:
        for begin in range(start, size, block):
            yield begin, min(begin + block, size)
    else:
        for stop in range(start, 0, -block):
            yield max(stop - block, 0), stop
