"""What a log only quotes: a prompt of several lines that a serving server prints, with another log in it.

Nothing marks the lines of such a text, and prompts are cut, so that where it ends is a guess. Rules:

1. A stamped line that opens a quote and does not close it goes on below. A stamped line in it that is older than
   the one which opened it, or stamped in another form, is *text*; any other is the writer's next, and ends it.
2. An untimed line in it is *doubtful*: what it tells of an end counts, and is taken back if the quote closes, or if
   the server is seen to live. All else that it tells is none.
3. Outside a quote, what a shell says of an end (``Killed``), or a web server, can be of another program in the same
   terminal. Only what a dead server cannot do takes that back: new work or an answer, a while later. A worker's own
   last words stand: the main process may answer for minutes.
4. A stamped line that tells of an end makes it certain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core.model import Outcome, Role

if TYPE_CHECKING:
    from phasetrack.core.model import Event, Failure, Place, Rule
    from phasetrack.core.state import Boot, Clue

# text='…', "text": "…", ['…, not an apostrophe
_OPENS = re.compile(r"(?:[=:(\[{]|, ) ?(['\"])")
# A mark that closes has what separates values behind it; in the line that opened it, also nothing.
_CLOSES = {mark: re.compile(rf"(?<!\\){mark}(?=\s*[,)\]}}])") for mark in "'\""}
_CLOSES_OR_ENDS = {mark: re.compile(rf"(?<!\\){mark}(?=\s*(?:[,)\]}};:.]|\Z))") for mark in "'\""}
# One word, whatever stands behind it: ipc_name='ipc:///tmp/x' in …
_WORD = {mark: re.compile(rf"[^\s'\"]*{mark}(?!\w)") for mark in "'\""}
# Other processes write their lines so much late.
_LATE_S = 2.0
_HALF_DAY_S = 43200.0
# Lines of one quote, and those that may follow until the server is seen to live.
_LINES, _AFTERMATH = 1000, 5000
_TAGS_KEPT = 256
# What was under way may still be printed, and answered, so long after an end.
_AFTERGLOW_S = 10.0


class Said(Enum):
    """What a line is."""

    OWN = auto()  # its writer's
    TEXT = auto()  # quoted
    DOUBTFUL = auto()  # perhaps quoted
    LAST = auto()  # quoted, and the quote ends: all of it was


class _Before(NamedTuple):
    """A boot before it was told of an end."""

    outcome: Outcome
    failures: tuple[Failure, ...]
    clues: tuple[Clue, ...]
    echoes: tuple[str, ...]
    stuck: Failure | None
    stopping: Place | None
    stop_at_s: float | None


@dataclass(slots=True, eq=False)
class _Quote:
    """A quote of one server, or an untimed line that may be none of its."""

    mark: str
    stamp_s: float
    dated: bool
    open: bool
    lines: int = 0
    boot: Boot | None = None  # of which an end was told
    before: _Before | None = None
    until: int = 0  # offset of the last line in doubt


class Quotes:
    """The quotes of all servers of a log."""

    def __init__(self) -> None:
        """Nothing is quoted yet."""
        self._of: dict[str, _Quote] = {}

    @property
    def is_unsure(self) -> bool:
        """Whether the next lines decide what lines before them were."""
        return bool(self._of)

    def read(self, event: Event) -> Said:
        """Tell what a line is."""
        quote = self._of.get(event.prefix.server)
        if quote is None:
            return Said.OWN
        quote.lines += 1
        if quote.open and (said := self._within(quote, event)) is not Said.OWN:
            return said
        if quote.before is None or quote.lines > _AFTERMATH:
            del self._of[event.prefix.server]
        return Said.OWN

    def hear(self, event: Event, boot: Boot) -> None:
        """Take a stamped line of a boot that no rule knows: a server prints prompts once it listens."""
        stamp, old = event.prefix.stamp_s, self._of.get(event.prefix.server)
        if stamp is None or (old is None and (boot.is_over or len(self._of) >= _TAGS_KEPT)):
            return
        if (boot.ready is not None or boot.has("http_up")) and (mark := _open_mark(event.text)):
            quote = self._of[event.prefix.server] = _Quote(mark, stamp, event.prefix.dated, open=True)
            if old is not None:
                quote.boot, quote.before, quote.until = old.boot, old.before, old.until

    def _within(self, quote: _Quote, event: Event) -> Said:
        stamped = event.prefix.stamp_s is not None and not event.continued
        if quote.lines > _LINES or (stamped and not _is_older(event, quote)):
            quote.open = False
            return Said.OWN
        end = _close(event.text, quote.mark)
        if end is not None:
            quote.mark = _open_mark(event.text[end:])
            quote.open = bool(quote.mark)
            return Said.LAST
        return Said.TEXT if stamped else Said.DOUBTFUL

    def doubt(self, event: Event, boot: Boot, at_s: float | None) -> None:
        """Keep a boot as it is before a line that may be none of its tells of an end."""
        quote = self._of.get(event.prefix.server)
        if quote is None:
            if boot.ready is None or boot.is_over or at_s is None or len(self._of) >= _TAGS_KEPT:
                return
            quote = self._of[event.prefix.server] = _Quote("", at_s, dated=True, open=False)
        if quote.before is None:
            quote.boot, quote.before = boot, _before(boot)
        quote.until = event.place.offset

    def certain(self, event: Event) -> None:
        """A stamped line tells of an end, too."""
        quote = self._of.get(event.prefix.server)
        if quote is not None and not quote.open:
            del self._of[event.prefix.server]

    def is_alive(self, event: Event, rule: Rule, at_s: float | None) -> bool:
        """Whether a line shows that what was told of an end was none of its server's."""
        quote = self._of.get(event.prefix.server)
        if quote is None or quote.before is None or quote.open or event.continued or rule.role is Role.END:
            return False
        if rule.phase not in {"serving", "warmup"} or rule.role in {Role.FAILURE, Role.WARNING, Role.FACT}:
            return False
        if quote.mark:
            return True
        begun = rule.id.endswith(".prefill") and quote.boot is not None and quote.boot.outcome is Outcome.FAILED
        return (begun or '" 200' in event.text) and at_s is not None and at_s >= quote.stamp_s + _AFTERGLOW_S

    def take_back(self, event: Event) -> tuple[Boot, bool] | None:
        """Forget what lines in doubt told; answer the boot of which they told, and whether that has changed it."""
        quote = self._of.get(event.prefix.server)
        if quote is None or quote.before is None or quote.boot is None:
            return None
        boot, before, quote.before = quote.boot, quote.before, None
        if not quote.open:
            del self._of[event.prefix.server]
        later = [failure for failure in boot.failures if failure.place.offset > quote.until]
        changed = boot.outcome is not before.outcome or boot.stuck is not before.stuck
        boot.outcome, boot.stuck = before.outcome, before.stuck
        boot.stopping, boot.stop_at_s = before.stopping, before.stop_at_s
        boot.failures = [*before.failures, *later]
        boot.clues, boot.echoes = list(before.clues), list(before.echoes)
        return boot, changed

    def forget(self, tag: str) -> None:
        """Another boot of the same server has begun."""
        self._of.pop(tag, None)


def tells_of_an_end(rule: Rule | None) -> bool:
    """Whether a line can end a boot; one that no rule knows can be a traceback's."""
    return rule is None or rule.role is Role.FAILURE or (rule.phase == "serving" and rule.role is Role.END)


def _is_older(event: Event, quote: _Quote) -> bool:
    """Whether a stamp is of a time before the quote's line, or not of this log."""
    if event.prefix.dated is not quote.dated:
        return True
    behind = quote.stamp_s - (event.prefix.stamp_s or 0.0)
    return behind > _LATE_S and (quote.dated or behind < _HALF_DAY_S)  # else midnight has passed


def _open_mark(text: str) -> str:
    """The mark of the quote that is open at the end of a text; empty where none is."""
    at = 0
    while (found := _OPENS.search(text, at)) is not None:
        end = _WORD[found[1]].match(text, found.end()) or _CLOSES_OR_ENDS[found[1]].search(text, found.end())
        if end is None:
            return found[1]
        at = end.end()
    return ""


def _close(text: str, mark: str) -> int | None:
    """Where a quote ends that is open at the begin of a text; quotes that the text opens itself are stepped over."""
    at = 0
    closes = _CLOSES[mark]
    while (end := closes.search(text, at)) is not None:
        own = next((found for found in _OPENS.finditer(text, at, end.end()) if found[1] == mark), None)
        if own is None or own.end() >= end.end():
            return end.end()
        at = end.end()
    return None


def _before(boot: Boot) -> _Before:
    return _Before(
        boot.outcome, tuple(boot.failures), tuple(boot.clues), tuple(boot.echoes), boot.stuck, boot.stopping,
        boot.stop_at_s,
    )  # fmt: skip
