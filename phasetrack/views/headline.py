"""The outcome in a headline and the first cause in a block, for the page, Markdown and comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.model import Outcome, VerdictState
from phasetrack.core.plan import is_worker_node
from phasetrack.core.say import duration
from phasetrack.views.chart import ALL
from phasetrack.views.template import cut
from phasetrack.views.words import clock, phase_title, ready_when

if TYPE_CHECKING:
    from phasetrack.core.model import Failure, Snapshot
    from phasetrack.views.chart import Limits


def headline(known: Snapshot) -> tuple[str, str]:
    """The outcome in a word, and the rest of the sentence."""
    when = f"after {duration(known.startup_s)}" if known.startup_s is not None else ready_when(known)
    was_ready = f"{'this node was up' if is_worker_node(known.facts) else 'was ready'} {when}"
    title = next((row.title for row in known.phases if row.phase == known.phase), "")
    if known.outcome is Outcome.READY:
        return ("Degraded" if known.verdict.state is VerdictState.DEGRADED else "Ready", when)
    if known.outcome is Outcome.STOPPED:
        return "Stopped", f"· {was_ready}" if known.ready_offset is not None else "before it was ready"
    if known.outcome is Outcome.FAILED:
        return (
            "Failed",
            f"while serving · {was_ready}" if known.ready_offset is not None else f"in {title or 'the start'}",
        )
    if known.outcome is Outcome.STARTING:
        return ("Unfinished" if known.ended else str(known.verdict.state).capitalize(), f"in {title or 'the start'}")
    return "No start", "in this log"


def engine_words(known: Snapshot) -> str:
    """``SGLang 0.5.12``, or the range of versions that its wording tells."""
    engine = known.engine
    if engine is None:
        return ""
    if engine.version is not None:
        return f"{engine.title} {engine.version}"
    if engine.version_low is None and engine.version_high is None:
        return engine.title
    return f"{engine.title} {engine.version_low or '…'} to {engine.version_high or '…'} by its wording"


def failure_block(failure: Failure, known: Snapshot, limits: Limits = ALL) -> dict[str, object]:
    """The first cause in words; the Markdown report uses it too."""
    title = phase_title(known, failure.phase)
    at = "" if failure.at_s is None else clock(failure.at_s)
    line = "" if failure.place.line is None else f"line {failure.place.line}"
    inferred = "inferred: no line says so" if failure.inferred else ""
    lines = [cut(line, limits.text) for line in failure.lines[: limits.lines]]
    ranks = ", ".join(failure.ranks[:16]) + (f" and {len(failure.ranks) - 16} more" if len(failure.ranks) > 16 else "")
    return {
        "where": " · ".join(text for text in (title, failure.rank or "", line, at, inferred) if text),
        "message": cut(failure.message, 5 * limits.text),
        "cause": cut(failure.cause, 2000),
        "remedy": cut(failure.remedy, 2000),
        "ranks": f"{ranks} say the same" if len(failure.ranks) > 1 else "",
        "lines": [] if lines == [failure.message] else lines,
        "echoes": [cut(echo) for echo in failure.echoes[:8]],
    }
