"""When a wait is over, and with which exit code: a snapshot and what was asked for in, an answer out.

Evidence from outside needs no case of its own: a dead process has already turned the snapshot's outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.fixed import Fixed, fixed
from phasetrack.core.model import Outcome, Status, VerdictState
from phasetrack.errors import Exit

if TYPE_CHECKING:
    from phasetrack.core.model import Snapshot, Verdict

READY = "ready"
# What fails so near a deadline fails by it: a limit is looked at every few seconds, and ranks tell one after another.
_FIRED_S = 30.0
_BEGUN = {Status.RUNNING, Status.DONE, Status.FAILED}


@fixed(frozen=True, slots=True)
class Want(Fixed):
    """What is waited for."""

    phase: str = READY  # this phase has begun; a server that is ready has passed them all
    after_boot: int = 0  # only boots with a higher number count
    fail_on: frozenset[VerdictState] = frozenset({VerdictState.STUCK})
    healthy: bool = False  # ready counts only once the server answers over HTTP


def answer(known: Snapshot, want: Want) -> Exit | None:
    """Answer the exit code, or None while there is reason to wait on."""
    if known.boot <= want.after_boot:
        return Exit.OVER if known.ended else None
    if has_begun(known, want.phase):
        return Exit.OK
    if known.outcome is Outcome.FAILED:
        return Exit.FAILED
    if known.verdict.state in want.fail_on:
        return Exit.STUCK
    if known.outcome is Outcome.READY:
        return Exit.OK if is_healthy(known) or not want.healthy else None
    if known.outcome is Outcome.STOPPED or known.ended:
        return Exit.OVER
    return None


def from_verdict(worst: str) -> frozenset[VerdictState]:
    """The verdicts that end a wait: from ``stuck`` or ``suspect`` on, or ``none``."""
    climb = [VerdictState.SUSPECT, VerdictState.STUCK]
    return frozenset() if worst == "none" else frozenset(climb[climb.index(VerdictState(worst)) :])


def is_healthy(known: Snapshot) -> bool:
    """Whether the server answers over HTTP, as far as its version can prove it."""
    return any(rung.id == "health" and rung.ok is True for rung in known.rungs)


def has_begun(known: Snapshot, phase: str) -> bool:
    """Whether a boot has come to a phase; being ready is no phase that a failed server is still in."""
    if phase == READY:
        return False
    return any(row.phase == phase and row.status in _BEGUN for row in known.phases)


def fired(known: Snapshot, before: Verdict | None) -> str:
    """The engine's own limit that ended a start, in words; empty where it was none.

    Args:
        known: what is known at the end.
        before: the last verdict while it was starting, with its deadline.
    """
    at_s = None if known.failure is None else known.failure.at_s
    if known.outcome is not Outcome.FAILED or at_s is None or before is None or before.deadline_at_s is None:
        return ""
    return before.deadline_why if abs(at_s - before.deadline_at_s) <= _FIRED_S else ""


def age_s(known: Snapshot) -> float | None:
    """How long ago the boot came to what it is, our clock; None where that cannot be told.

    The log's clock may be in any time zone, so only differences on it count: from its turning point to its last
    output, and from there by our clock.
    """
    turned = None
    if known.outcome is Outcome.READY:
        turned = known.ready_at_s
    elif known.outcome is Outcome.FAILED and known.failure is not None:
        turned = known.failure.at_s
    if turned is None or known.now_s is None or known.silent_s is None:
        return known.silent_s
    return max(known.now_s - turned, 0.0) + known.silent_s
