"""Why: the verdict explained in sentences, for and against it, and what could not be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.model import Basis, Outcome, Status
from phasetrack.views.tui.endings import failure_lines
from phasetrack.views.tui.header import badge, current, sentence
from phasetrack.views.tui.look import BLANK, Line, Span
from phasetrack.views.tui.reader import Reader
from phasetrack.views.words import clock, duration, eta_words, progress, span_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import Sign, Snapshot
    from phasetrack.views.tui.feed import News
    from phasetrack.views.tui.look import Look

_FAILURE_ROWS = 60


def why(news: News, width: int, look: Look) -> list[Line]:
    """The whole explanation."""
    known = news.known
    sign = badge(known, look, reading=news.is_reading)
    lines = [Line((look.span(f" {sign.glyph} {sign.word} ", sign.style),)), BLANK]
    if news.is_reading:
        return [*lines, look.line("The log is still being read; nothing is told before all of it has been.")]
    if known.outcome is Outcome.FAILED:
        lines += [*failure_lines(known, width, _FAILURE_ROWS, look), BLANK]
    else:
        lines += [*(look.line(text, "bold") for text in look.wrap(known.verdict.because, width, 6)), BLANK]
    for title, sentences in _sections(known):
        said = [text for text in sentences if text]
        if said:
            lines += [look.line(title, "bold"), *_bullets(said, width, look), BLANK]
    return lines


def _bullets(sentences: list[str], width: int, look: Look) -> Iterator[Line]:
    for said in sentences:
        first, *rest = look.wrap(said, width - 4, 8) or [""]
        yield Line((Span("  - "), look.span(first)))
        yield from (Line((Span("    "), look.span(text))) for text in rest)


def _sections(known: Snapshot) -> Iterator[tuple[str, list[str]]]:
    verdict = known.verdict
    yield "For this", [_sign(sign) for sign in verdict.signs_for]
    yield "Against it", [_sign(sign) for sign in verdict.signs_against]
    yield "Not seen", list(verdict.missing)
    yield "What to do", [verdict.next_step, _deadline(known)]
    yield "Outside the log", list(_outside(known))
    yield "Where it stands", _standing(known)
    yield "How long still", _expectation(known)
    yield "Warnings", [*([f"This log {known.drift}."] if known.drift else []), *_warnings(known)]
    yield "How sure the figures are", _sureness(known)


def _sign(sign: Sign) -> str:
    return f"{sign.text} ({duration(sign.age_s)})" if sign.age_s else sign.text


def _deadline(known: Snapshot) -> str:
    """The engine's own limit, on the log's clock."""
    verdict = known.verdict
    if verdict.deadline_at_s is None:
        return ""
    at = clock(verdict.deadline_at_s)
    return f"The engine gives up at {at} if nothing changes: {verdict.deadline_why or 'its own limit'}."


def _outside(known: Snapshot) -> Iterator[str]:
    """The processes, and each kind of evidence with its age."""
    sample = known.evidence
    if sample is None:
        return
    if sample.root_pid is not None:
        ranks = sum(process.role == "rank" for process in sample.processes)
        state = "alive" if sample.root_alive else "gone"
        count = len(sample.processes)
        many = f"{count} processes" if count != 1 else "1 process"
        yield f"Main process {sample.root_pid} is {state}, {many} in all, {ranks} of ranks."
    for channel in known.channels:
        moved = "" if channel.moved_ago_s is None else f"moved {duration(channel.moved_ago_s)} ago"
        yield f"{channel.title}: {channel.now}; {moved or f'flat for {duration(channel.flat_s)}'}."
    for rung in known.rungs:
        if rung.detail:
            yield f"{rung.title}: {rung.detail}."


def _standing(known: Snapshot) -> list[str]:
    row = current(known)
    if row is None or known.outcome is not Outcome.STARTING:
        return []
    said = [f"{row.title} {progress(row.progress)}".rstrip() + f", for {duration(row.elapsed_s)}."]
    if row.note:
        said.append("The bar is full, but the phase is not over: it ends when every rank has said so.")
    if row.ranks_seen > 1:
        slow = f"; {row.slowest_rank} is the slowest" if row.slowest_rank and row.ranks_done else ""
        said.append(f"{row.ranks_done} of {row.ranks_seen} ranks are done with it{slow}.")
    if known.activity is not None:
        said.append(f"Inside it: {known.activity.title} {progress(known.activity.bar)}".rstrip() + ".")
    if row.expected is not None:
        said.append(f"It usually takes {span_of(row.expected)}.")
    if known.silent_s is not None:
        said.append(f"The log last grew {duration(known.silent_s)} ago.")
    return said


def _expectation(known: Snapshot) -> list[str]:
    if known.outcome is not Outcome.STARTING:
        return []
    words = eta_words(known.eta)
    return [sentence(words) + "." if words else "Not known: there is no history of like starts yet."]


def _warnings(known: Snapshot) -> list[str]:
    return [
        (f"line {warning.line:,}: " if warning.line is not None else "")
        + warning.message
        + (f" ({warning.count} times)" if warning.count > 1 else "")
        for warning in known.warnings
    ]


def _sureness(known: Snapshot) -> list[str]:
    inferred = [row.title for row in known.phases if row.basis is Basis.INFERRED and row.status is not Status.PENDING]
    said = []
    if inferred:
        said.append(f"A begin or an end was not printed but inferred, marked ~: {', '.join(inferred)}.")
    engine = known.engine
    if engine is not None and engine.version is None:
        said.append("The engine's version is not printed in this log; ~ tells the versions that word it this way.")
    unmatched = sum(source.unmatched_lines for source in known.sources)
    if unmatched:
        said.append(f"{unmatched:,} lines are of no kind that is known; they change nothing.")
    if known.started_at_s is not None:
        said.append(f"Times are the log's own clock; its first stamp is {clock(known.started_at_s)}.")
    return said


class Why(Reader):
    """The view."""

    def text(self, news: News, width: int) -> list[Line]:
        """The explanation."""
        return why(news, width, self.look)
