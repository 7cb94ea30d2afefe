"""What came true: what was known at a moment, held against how the whole log tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrack.core.model import Outcome

if TYPE_CHECKING:
    from phasetrack.core.model import Eta, PhaseRow, Snapshot

# Stamps have whole seconds, and so have the estimates.
_STAMP_S = 1.0


@dataclass(frozen=True, slots=True)
class Hindsight:
    """What followed a moment. Durations count from it; None: not known, or it never came."""

    phase: str = ""  # the title of the phase that ran
    phase_took_s: float | None = None  # in all
    phase_left_s: float | None = None
    outcome: Outcome = Outcome.NONE  # what the start came to
    outcome_left_s: float | None = None
    message: str = ""  # of a failure to come
    told: Eta | None = None  # the estimate of that moment, where it gave figures
    held: bool | None = None  # whether what came lay within it


def hindsight(then: Snapshot, truth: Snapshot, now_s: float | None) -> Hindsight | None:
    """Look back at a moment of a start; None where it had come to its end by then.

    Args:
        then: what was known.
        truth: the whole log.
        now_s: the moment on the log's clock.
    """
    if then.outcome not in {Outcome.NONE, Outcome.STARTING} or then.ended:
        return None
    row = _running(then, truth)
    outcome, at_s = _came_to(truth)
    now = now_s if now_s is not None else then.now_s
    left = None if now is None or at_s is None else max(at_s - now, 0.0)
    told = then.eta if then.eta is not None and then.eta.low_s is not None else None
    return Hindsight(
        phase="" if row is None else row.title,
        phase_took_s=None if row is None else row.elapsed_s,
        phase_left_s=None if row is None or now is None or row.ended_s is None else max(row.ended_s - now, 0.0),
        outcome=outcome,
        outcome_left_s=left,
        message=truth.failure.message if outcome is Outcome.FAILED and truth.failure is not None else "",
        told=told,
        held=_held(told, left) if outcome is Outcome.READY else None,
    )


def _running(then: Snapshot, truth: Snapshot) -> PhaseRow | None:
    """The row that ran then, as it was in the end."""
    current = next((row for row in reversed(then.phases) if row.phase == then.phase), None)
    if current is None:
        return None
    same = (row for row in truth.phases if (row.phase, row.occurrence) == (current.phase, current.occurrence))
    return next(same, None)


def _came_to(truth: Snapshot) -> tuple[Outcome, float | None]:
    """What the start came to, and when; a server that was stopped later had been ready first."""
    if truth.ready_at_s is not None:
        return Outcome.READY, truth.ready_at_s
    if truth.outcome is Outcome.FAILED and truth.failure is not None:
        return Outcome.FAILED, truth.failure.at_s
    return truth.outcome, truth.now_s


def _held(told: Eta | None, left_s: float | None) -> bool | None:
    if told is None or told.low_s is None or told.high_s is None or left_s is None:
        return None
    return told.low_s - _STAMP_S <= left_s <= told.high_s + _STAMP_S
