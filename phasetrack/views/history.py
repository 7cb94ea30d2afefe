"""Earlier boots as text: a list, and one of them in full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from phasetrack.core.model import Zone
from phasetrack.core.say import duration
from phasetrack.views.words import iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from phasetrack.core.model import PastPhase, PhaseInfo, Remembered

_ZONE = Zone()


def list_text(boots: Sequence[Remembered]) -> str:
    """One line a boot, the newest first."""
    if not boots:
        return "no boots yet ('phasetrack history import DIR' learns from old logs)\n"
    lines = [f"{'boot':>6}  {'started':<19} {'outcome':<8} {'took':>12}  what"]
    lines += [
        f"{boot.number or 0:>6}  {iso(boot.past.began_s, _ZONE) or '':<19} {_outcome(boot):<8}"
        f" {_took(boot):>12}  {what_of(boot)}"
        for boot in boots
    ]
    return "\n".join(lines) + "\n"


def show_text(boot: Remembered, phases: Mapping[str, PhaseInfo]) -> str:
    """One boot with its phases, called as its engine's pack calls them."""
    return "\n".join(_shown(boot, phases)) + "\n"


def _shown(boot: Remembered, phases: Mapping[str, PhaseInfo]) -> Iterator[str]:
    yield f"boot {boot.number}: {what_of(boot)}"
    yield f"started {iso(boot.past.began_s, _ZONE)}, {_outcome(boot)}" + (
        f" after {duration(boot.past.startup_s)}" if boot.past.startup_s is not None else ""
    )
    if boot.log:
        yield f"from {boot.log}"
    yield ""
    yield f"  {'phase':<20} {'took':>12} {'then':>8} {'silent':>8}  cache  steps"
    for phase in boot.past.phases:
        info = phases.get(phase.phase)
        yield _phase(phase, phase.phase if info is None else info.title).rstrip()


def _phase(phase: PastPhase, title: str) -> str:
    name = title if phase.occurrence == 1 else f"{title} ({phase.occurrence})"
    took = ("" if phase.complete else "> ") + duration(phase.elapsed_s)
    then = "" if not phase.gap_s else duration(phase.gap_s)
    silent = "" if not phase.silence_s else duration(phase.silence_s)
    steps = ", ".join(f"{step.name} {duration(step.elapsed_s)}" for step in phase.steps if step.elapsed_s)
    return f"  {name:<20} {took:>12} {then:>8} {silent:>8}  {phase.cache or '':<5}  {steps}"


def what_of(boot: Remembered) -> str:
    """Model, cards and draft in a few words."""
    facts = boot.facts
    sizes = {axis: facts.get(f"{axis}_size") for axis in ("tp", "pp", "dp")}
    axes = [f"{axis} {size}" for axis, size in sizes.items() if size not in {None, 1}]
    nodes = [f"{facts['nnodes']} nodes"] if facts.get("nnodes") not in {None, 1} else []
    draft = [f"draft {facts['speculative_algorithm']}"] if facts.get("speculative_algorithm") else []
    return ", ".join([boot.model or "unknown model", *axes, *nodes, *draft])


def boot_json(boot: Remembered) -> dict[str, Any]:
    """One boot for machines; phases only where they were read."""
    past = boot.past
    return {
        "boot": boot.number,
        "uid": boot.uid,
        "started_at": iso(past.began_s, _ZONE),
        "outcome": _outcome(boot),
        "startup_s": past.startup_s,
        "engine": boot.engine,
        "version": boot.version or None,
        "model": boot.model,
        "log": boot.log,
        "phases": [
            {
                "phase": phase.phase,
                "occurrence": phase.occurrence,
                "elapsed_s": phase.elapsed_s,
                "gap_s": phase.gap_s,
                "complete": phase.complete,
                "silence_s": phase.silence_s,
                "cache": phase.cache,
            }
            for phase in past.phases
        ],
        "facts": dict(boot.facts),
    }


def _outcome(boot: Remembered) -> str:
    """A boot that was left while it started is ``cut``."""
    return "cut" if boot.past.outcome == "starting" else boot.past.outcome


def _took(boot: Remembered) -> str:
    return "" if boot.past.startup_s is None else duration(boot.past.startup_s)
