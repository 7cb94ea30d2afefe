"""The loop: sources in, a tracker fed, answers and exit codes out. With ``edges``, the only place with a clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from phasetrack.core.model import Closed, Outcome, Tick, VerdictState
from phasetrack.core.tracker import Tracker
from phasetrack.edges.file import open_log
from phasetrack.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import PatternSet, Record, Snapshot


def read_whole(
    patterns: PatternSet, path: str, *, at_line: int | None = None, at_s: float | None = None, boot: int | None = None
) -> tuple[Tracker, Iterator[Record]]:
    """Read a log to its end, as ``report`` does; the records come while it is read.

    Raises:
        SourceError: the log cannot be read.
    """
    tracker = Tracker(patterns, path, until_s=at_s, boot=boot)
    return tracker, _records(tracker, path, at_line)


def _records(tracker: Tracker, path: str, at_line: int | None) -> Iterator[Record]:
    with open_log(path) as log:
        for chunk in log.chunks(lines=at_line):
            yield from tracker.feed(chunk)
            if tracker.stopped:
                break
    yield from tracker.feed(Closed())


def look_once(
    patterns: PatternSet, path: str, *, at_line: int | None = None, at_s: float | None = None, boot: int | None = None
) -> Snapshot:
    """Answer as of now: silence is our clock less the log's last change.

    Raises:
        SourceError: the log cannot be read.
    """
    past = at_line is not None or at_s is not None
    tracker = Tracker(patterns, path, until_s=at_s, boot=boot)
    with open_log(path) as log:
        for chunk in log.chunks(lines=at_line):
            tracker.feed(chunk)
            if tracker.stopped:
                break
        if log.ends or past:
            tracker.feed(Closed())
            return tracker.snapshot()
        now = time.time()
        tracker.feed(Tick(now, log.changed_s))
        return tracker.snapshot(now)


def exit_code(known: Snapshot) -> Exit:
    """The outcome as an exit code (README, "Exit codes")."""
    if known.outcome is Outcome.FAILED:
        return Exit.FAILED
    if known.verdict.state in {VerdictState.SUSPECT, VerdictState.STUCK}:
        return Exit.STUCK
    if known.outcome is Outcome.READY:
        return Exit.OK
    if known.outcome is Outcome.STOPPED or known.ended:
        return Exit.OVER
    return Exit.STARTING
