"""One answer in one line: what ``status`` and ``wait`` print. Apart from the report, whose modules are many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.answer import age_s
from phasetrack.core.model import Outcome, Status, VerdictState
from phasetrack.core.oddities import DATED
from phasetrack.views.words import clock, duration, eta_words, iso, phase_title, progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import Snapshot


def status_line(known: Snapshot, *, plain: bool = False) -> str:
    """One answer now, in one line."""
    dot = " | " if plain else " · "
    return dot.join(_status_parts(known))


def _status_parts(known: Snapshot) -> Iterator[str]:
    if known.outcome is Outcome.NONE:
        yield known.verdict.because
        yield from _expected(known)
        return
    row = next((row for row in known.phases if row.phase == known.phase), None)
    if known.outcome is Outcome.STARTING and row is not None:
        where = f"after {row.title}" if row.status is Status.DONE else f"{row.title} {progress(row.progress)}".rstrip()
        yield f"{str(known.verdict.state).upper()}: {where}"
        if known.activity is not None:
            yield known.activity.title + (f" {progress(known.activity.bar)}" if known.activity.bar else "")
        if row.elapsed_s is not None and row.status is Status.RUNNING:
            yield f"in it for {duration(row.elapsed_s)}"
        if row.ranks_seen > 1 and row.status is Status.RUNNING:
            yield f"{row.ranks_done} of {row.ranks_seen} ranks done"
        yield known.verdict.because
        if known.unopened is not None:
            yield f"this log {known.unopened}"
        if known.ended and known.silent_s is not None:
            yield f"last output {duration(known.silent_s)} ago"
        yield from _act(known)
        yield from _expected(known)
        return
    yield f"{str(known.outcome).upper()}: {known.verdict.because}"
    yield from _ages(known)
    if known.startup_s is not None:
        yield f"took {duration(known.startup_s)} to ready at {iso(known.ready_at_s, known.zone)}"
    if known.unopened is not None:
        yield f"this log {known.unopened}"
    if known.failure is not None:
        place = known.failure.place
        where = f"byte {place.offset}" if place.line is None else f"line {place.line}"
        yield ", ".join(part for part in (phase_title(known, known.failure.phase), known.failure.rank, where) if part)


def _act(known: Snapshot) -> Iterator[str]:
    """When the engine itself gives up, and what one could do."""
    verdict = known.verdict
    if verdict.deadline_at_s is not None and verdict.state is not VerdictState.PROGRESSING:
        yield f"gives up at {clock(verdict.deadline_at_s)} if nothing changes ({verdict.deadline_why})"
    if verdict.next_step:
        yield f"try: {verdict.next_step}"


def _expected(known: Snapshot) -> Iterator[str]:
    """How long still, and when to ask again."""
    if words := eta_words(known.eta):
        yield words
    if known.next_check_s is not None and not known.ended:
        yield f"look again in {duration(round(known.next_check_s))}"


def _ages(known: Snapshot) -> Iterator[str]:
    """How old the answer is: a log may still hold yesterday's ready."""
    age = age_s(known)
    odd = next((warning.message for warning in known.warnings if warning.id == DATED), None)
    if odd is not None:
        yield odd
        return
    if age is None or known.silent_s is None:
        return
    yield f"{duration(age)} ago"
    if known.outcome is Outcome.READY and age - known.silent_s >= 1:
        yield f"last output {duration(known.silent_s)} ago"


def waited_line(
    known: Snapshot,
    *,
    was_so: bool,
    timed_out: str | None,
    none_new: bool = False,
    reached: str | None = None,
    fired: str = "",
    plain: bool = False,
) -> str:
    """The answer of ``wait`` in one line.

    Args:
        known: the snapshot at its end.
        was_so: whether the answer stood in the log before the wait began.
        timed_out: the time limit that has passed, as it was given.
        none_new: no start has begun since; only that was waited for.
        reached: the phase that was waited for, and has come, in words.
        fired: the engine's own limit that ended the start.
        plain: ASCII only.
    """
    line = status_line(known, plain=plain)
    if timed_out is not None:
        return f"TIMEOUT after {timed_out}: {'no new start has begun; the last one: ' if none_new else ''}{line}"
    if reached is not None:
        line = f"REACHED {reached}: {line}"
    line += f" (the engine's own limit has passed: {fired})" if fired else ""
    return line + (" (it was so before this wait began; --new waits for the next boot)" if was_so else "")
