"""The postmortem: phases, silences, the first cause, stragglers and facts of a start, each a way into its log.

Of a replay it is the whole log's, whatever moment is shown: a jump into the log takes the replay along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrack.core.model import Outcome, Status
from phasetrack.views.facts import shown_facts
from phasetrack.views.plain import outcome_line
from phasetrack.views.rows import cells, total_s
from phasetrack.views.tui.acts import Draw, OpenLog, Say, moved
from phasetrack.views.tui.home import keys
from phasetrack.views.tui.look import BLANK, Line, Span
from phasetrack.views.tui.rows import unreached, window
from phasetrack.views.words import clock, duration, phase_title, span_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import Failure, PhaseRow, Snapshot
    from phasetrack.views.tui.acts import Act, Size
    from phasetrack.views.tui.feed import News
    from phasetrack.views.tui.look import Look

KEYS = (("j k", "choose"), ("enter", "its place in the log"), ("esc", "back"), ("?", "help"), ("q", "quit"))
# Silences and stragglers that are told: the longest ones, and none that anybody would call short.
_TOLD = 5
_SILENT_S, _SKEW_S = 2.0, 1.0
_WIDE = 100
_NARROW = 50  # from here on how long a phase took is worth more than when it began


@dataclass(frozen=True, slots=True)
class Entry:
    """One line; with a place in the log it can be chosen."""

    text: str
    style: str = ""
    offset: int | None = None


def entries(known: Snapshot, width: int, look: Look, *, whole: bool, replayed: bool = False) -> Iterator[Entry]:
    """The whole text, section by section.

    Args:
        known: a start.
        width: of the screen.
        look: glyphs.
        whole: whether more may follow: False while a log is followed.
        replayed: whether an earlier moment may be shown beside it.
    """
    yield from (Entry(text, "bold") for text in look.wrap(outcome_line(known), width, 3))
    if replayed:
        yield Entry("Of the whole log, to its end.", "dim")
    if not whole and known.outcome in {Outcome.NONE, Outcome.STARTING}:
        yield Entry("So far: the start goes on.", "dim")
    for title, section in (
        ("Phases", list(_phases(known, width, look))),
        ("First cause", list(_cause(known, known.failure, width, look)) if known.failure is not None else []),
        ("Longest silences", list(_silences(known))),
        ("Stragglers", list(_stragglers(known))),
        ("Facts", list(_facts(known))),
    ):
        if section:
            yield Entry("")
            yield Entry(title, "bold")
            yield from section


# --- sections ----------------------------------------------------------------------------------------


def _phases(known: Snapshot, width: int, look: Look) -> Iterator[Entry]:
    total = total_s(known)
    for row in known.phases:
        cell = cells(row, total)
        elapsed = f"~{cell.elapsed}" if cell.inferred and cell.elapsed else cell.elapsed
        begin = unreached(known, row) or cell.begin
        status = look.status(row.status, ended=known.ended)
        text = f"{status} {cell.title:<20} {begin:<8} {elapsed:>12} {cell.share:>5}"
        if width < _NARROW:
            text = f"{status} {look.pad(cell.title, width - 15)} {elapsed or begin:>12}"
        text += f"  {cell.progress:<15}" if width >= 70 else ""
        text += f" {cell.ranks:>5}" if width >= 78 else ""
        if width >= _WIDE and row.expected is not None:
            text += f"  usually {span_of(row.expected)}"
        tone = "bad" if row.status is Status.FAILED else "dim" if row.begin_offset is None else ""
        yield Entry(text.rstrip(), tone, row.begin_offset)
    if known.between_phases_s:
        gap = 20 + 9 if width >= _NARROW else width - 15
        yield Entry(f"{look.between} {'between phases':<{gap}} {duration(known.between_phases_s):>12}", "dim")


def _cause(known: Snapshot, failure: Failure, width: int, look: Look) -> Iterator[Entry]:
    offset = None if failure.inferred else failure.place.offset
    phase = phase_title(known, failure.phase)
    where = [part for part in (phase, failure.rank, f"line {failure.place.line or '?'}") if part]
    first, *rest = look.wrap(failure.message, width, 3) or [""]
    yield Entry(first, "bad", offset)
    yield from (Entry(text, "bad") for text in rest)
    yield Entry(f"  where: {', '.join(where)}" + (f", at {clock(failure.at_s)}" if failure.at_s is not None else ""))
    for label, said in (("why", failure.cause), ("do", failure.remedy)):
        yield from (Entry(f"  {label + ':' if not k else '':<6} {text}")
                    for k, text in enumerate(look.wrap(said, max(width - 9, 10), 3)) if said)  # fmt: skip


def _silences(known: Snapshot) -> Iterator[Entry]:
    rows = [row for row in known.phases if (row.longest_silence_s or 0.0) >= _SILENT_S]
    for row in sorted(rows, key=lambda row: -(row.longest_silence_s or 0.0))[:_TOLD]:
        long_s, from_s = row.longest_silence_s or 0.0, row.silence_from_s
        when = "" if from_s is None else f", {clock(from_s)} to {clock(from_s + long_s)}"
        offset = row.silence_end_offset if row.silence_end_offset is not None else row.begin_offset
        yield Entry(f"{duration(long_s):>12}  in {row.title}{when}", offset=offset)


def _stragglers(known: Snapshot) -> Iterator[Entry]:
    rows = [row for row in known.phases if row.ranks_seen > 1 and row.slowest_rank]
    late = [row for row in rows if (row.skew_s or 0.0) >= _SKEW_S or (row.ranks_done and row.skew_s is None)]
    for row in sorted(late, key=lambda row: -(row.skew_s or float("inf")))[:_TOLD]:
        yield Entry(_straggler(row), offset=row.begin_offset if row.end_offset is None else row.end_offset)


def _straggler(row: PhaseRow) -> str:
    if row.skew_s is None:
        return f"{'':>12}  {row.slowest_rank} never ended {row.title}, {row.ranks_done} of {row.ranks_seen} ranks did"
    return f"{duration(row.skew_s):>12}  {row.slowest_rank} was the last of {row.ranks_seen} ranks to end {row.title}"


def _facts(known: Snapshot) -> Iterator[Entry]:
    begin = next((boot.offset for boot in known.boots if boot.boot == known.boot), None)
    for number, (title, text) in enumerate(shown_facts(known.facts)):
        yield Entry(f"{title:<16} {text}", offset=None if number else begin)


# --- the view ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Postmortem:
    """The view."""

    look: Look
    selected: int = 0

    def lines(self, news: News, size: Size, said: str) -> list[Line]:
        """Draw."""
        found = self._entries(news, size.width)
        number, lines = -1, []
        for entry in found:
            number += entry.offset is not None
            item = max(number, 0)
            chosen = entry.offset is not None and item == self.selected
            text = Span(self.look.cut(entry.text, size.width), entry.style)
            lines.append(Line((text,), item, chosen))
        room = max(size.height - 1, 1)
        first = next((k for k, line in enumerate(lines) if line.inverse), 0)
        shown = lines[:room]
        if first >= room - 1:
            shown = window(lines, room, self.selected, self.look)
        elif (below := len(lines) - room) > 0:
            shown[-1] = self.look.line(f"{self.look.down} {below + 1} more lines", "dim")
        return [*shown, *[BLANK] * (room - len(shown)), keys(KEYS, size.width, self.look, said=said)]

    def _entries(self, news: News, width: int) -> list[Entry]:
        if news.is_reading:
            return [Entry("The log is still being read; nothing is told before all of it has been.")]
        replay = news.replay
        known = news.known if replay is None else replay.truth
        replayed = replay is not None
        return list(entries(known, width, self.look, whole=replayed or known.ended, replayed=replayed))

    def _offsets(self, news: News) -> list[int]:
        return [entry.offset for entry in self._entries(news, 80) if entry.offset is not None]

    def press(self, key: str, news: News, size: Size) -> Act | None:
        """Take a key."""
        offsets = self._offsets(news)
        at = moved(key, size.height - 2, self.selected, len(offsets)) if key != "b" else None
        if at is not None:
            self.selected = at
            return Draw()
        if key != "enter":
            return None
        return OpenLog(offsets[self.selected]) if self.selected < len(offsets) else Say("nothing to go to yet")

    def choose(self, item: int, news: News) -> Act | None:
        """A click selects, a second one goes to its place."""
        offsets = self._offsets(news)
        if item == self.selected and item < len(offsets):
            return OpenLog(offsets[item])
        self.selected = item
        return Draw()

    def answer(self, text: str, news: News, size: Size) -> Act | None:
        """Nothing is asked here."""
        del text, news, size
        return None
