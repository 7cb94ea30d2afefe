"""A remembered boot to a snapshot, as far as it goes: enough to compare it with another, no log needed.

The history keeps how long phases took and what they waited for, but no lines, ranks or curves; those stay unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.model import (
    BarRow,
    Basis,
    Engine,
    Outcome,
    PhaseRow,
    Snapshot,
    Status,
    Verdict,
    VerdictState,
)
from phasetrack.core.past import LEAD, TAIL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from phasetrack.core.model import PastPhase, PastStep, PatternSet, Remembered


def snapshot_of(boot: Remembered, patterns: PatternSet) -> Snapshot:
    """Tell a boot of the history as a snapshot."""
    past = boot.past
    outcome = Outcome(past.outcome) if past.outcome in set(Outcome) else Outcome.NONE
    began, took = past.began_s, past.startup_s
    ready_at = began + took if began is not None and took is not None else None
    gaps = [phase.gap_s for phase in past.phases if phase.gap_s is not None]
    titles = {info.id: info.title for info in patterns.phases.values()}
    state = VerdictState.READY if took is not None else VerdictState.ENDED
    return Snapshot(
        now_s=ready_at,
        outcome=outcome,
        verdict=Verdict(state, "A boot of the history: its log is not at hand."),
        engine=Engine(boot.engine, patterns.titles.get(boot.engine, boot.engine), boot.version or None, None, None, ""),
        boot=1,
        phases=tuple(_rows(past.phases, began, titles)),
        between_phases_s=sum(gaps) if gaps else None,
        started_at_s=began,
        ready_at_s=ready_at,
        startup_s=took,
        facts=dict(boot.facts),
        ended=True,
    )


def _rows(phases: tuple[PastPhase, ...], began: float | None, titles: Mapping[str, str]) -> Iterator[PhaseRow]:
    """The phases one after the other: each owns the time up to the begin of the next."""
    at = began
    for phase in phases:
        until = None if at is None else at + phase.elapsed_s
        yield PhaseRow(
            phase.phase,
            titles.get(phase.phase, phase.phase),
            phase.occurrence,
            Status.DONE if phase.complete else Status.FAILED,
            began_s=at,
            ended_s=until if phase.complete else None,
            elapsed_s=phase.elapsed_s,
            basis=Basis.LOGGED,
            longest_silence_s=phase.silence_s,
            cache=phase.cache,
            bars=tuple(_bar(step) for step in phase.steps if step.name not in {LEAD, TAIL}),
        )
        at = None if until is None else until + (phase.gap_s or 0.0)


def _bar(step: PastStep) -> BarRow:
    title, _, number = step.name.rpartition(" ")
    return BarRow(title if number.isdecimal() and title else step.name, 0.0, None, "", None, None, step.elapsed_s, None)
