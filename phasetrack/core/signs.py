"""Hard signs: what one look outside the log proves by itself, without any dwell.

A process that somebody stopped, a rank that is gone while others wait for it, storage that does not answer. The log's
own hard signs (a watchdog, NCCL, a barrier) are rules of the packs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.model import Sign, Verdict, VerdictState
from phasetrack.core.say import duration
from phasetrack.core.state import axes
from phasetrack.core.titles import DETOKENIZER, OTHER, RANK

if TYPE_CHECKING:
    from phasetrack.core.model import Evidence, ProcessSample, Snapshot

# Suspect for so long is stuck.
HELD_S = 600.0
# The engine itself notices a dead rank within 5 s (0.5.10+), and says more than we can.
_LOST_GRACE_S = 4.0
# A sample this much younger than the log's last line has seen who printed it.
_LATER_S = 2.0
# A child that imports takes its title within this time, or is larger than a mere helper by then.
_UNTITLED_S = 60.0
_IMPORTED_BYTES = 64 << 20
_BLOCKED_S = 300.0  # state D without a byte read: storage that does not answer


def hard_sign(known: Snapshot, evidence: Evidence) -> Verdict | None:
    """The verdict that one sign alone gives; None where there is none."""
    return _stopped_process(evidence) or _lost(known, evidence) or _blocked(known, evidence)


def _stopped_process(evidence: Evidence) -> Verdict | None:
    """State T: somebody sent SIGSTOP. A debugger's stop is another state and no sign."""
    if not evidence.stopped:
        return None
    held = max(age for _, age in evidence.stopped)
    names = ", ".join(f"{process.name} (pid {process.pid})" for process, _ in evidence.stopped[:4])
    signs = tuple(Sign(f"{process.name} (pid {process.pid}) is in state T", age) for process, age in evidence.stopped)
    return Verdict(
        VerdictState.STUCK if held >= HELD_S else VerdictState.SUSPECT,
        f"{names} is stopped (SIGSTOP) and waits for SIGCONT.",
        signs,
        missing=evidence.missing,
        next_step="kill -CONT " + " ".join(str(process.pid) for process, _ in evidence.stopped),
    )


def _lost(known: Snapshot, evidence: Evidence) -> Verdict | None:
    """A rank's process is gone while others live: SGLang up to 0.5.9 may never notice."""
    if evidence.root_gone_s is not None:
        return None
    lost = evidence.lost or _never_seen(known, evidence)
    if not lost:
        return None
    ages = [sign.age_s for sign in lost if sign.age_s is not None]
    young = bool(ages) and max(ages) < _LOST_GRACE_S
    living = len([process for process in evidence.processes if process.role == RANK])
    others = f"{living} other ranks wait for it" if living else "the main process lives on without it"
    return Verdict(
        VerdictState.SUSPECT if young else VerdictState.STUCK,
        f"{'; '.join(sign.text for sign in lost[:4])}; {others}.",
        lost,
        missing=evidence.missing,
        next_step="dmesg -T | grep -i 'killed process'",
    )


def _never_seen(known: Snapshot, evidence: Evidence) -> tuple[Sign, ...]:
    """Ranks that have spoken in the log and have no process, told where processes carry ranks as the log does."""
    later_s = (known.silent_s or 0.0) - evidence.age_s  # a sample from before the last line knows less than the log
    if number(known, "nnodes") > 1 or later_s < _LATER_S:
        return ()
    here = {process.rank for process in evidence.processes if process.role == RANK}
    spoke = {rank.rank for row in known.phases for rank in row.ranks if rank.rank}
    if here & spoke:
        shapes = {tuple(axes(rank)) for rank in here}
        return tuple(Sign(f"{rank} has no process") for rank in sorted(spoke - here) if tuple(axes(rank)) in shapes)
    titled = any(process.role == DETOKENIZER for process in evidence.processes)
    begun = any(row.phase in {"dist_init", "target_load"} for row in known.phases)
    if not titled or not begun or here or any(_may_be_rank(process, evidence) for process in evidence.processes):
        return ()
    return (Sign("the scheduler has no process"),)


def _may_be_rank(process: ProcessSample, evidence: Evidence) -> bool:
    """A child that still imports has no title yet; seen with two replicas, whose controller starts them late."""
    if process.role != OTHER or process.pid == evidence.root_pid:
        return False
    young = process.started_s is None or evidence.now_s - process.started_s < _UNTITLED_S
    return young or (process.rss_bytes or 0) > _IMPORTED_BYTES


def _blocked(known: Snapshot, evidence: Evidence) -> Verdict | None:
    waiting = [(process, age) for process, age in evidence.blocked if age >= _BLOCKED_S]
    if not waiting or (known.silent_s or 0.0) < _BLOCKED_S:
        return None
    process, age = waiting[0]
    return Verdict(
        VerdictState.STUCK,
        f"{process.name} (pid {process.pid}) waits for storage or a driver (state D) for {duration(age)}"
        " without a byte read.",
        tuple(Sign(f"pid {process.pid} in state D", age) for process, age in waiting),
        missing=evidence.missing,
        next_step=f"cat /proc/{process.pid}/stack; dmesg -T | tail",
    )


def number(known: Snapshot, fact: str) -> float:
    """A fact as a number; 0 where it is none."""
    value = known.facts.get(fact)
    return value if isinstance(value, int | float) else 0
