"""Two snapshots to a ``Comparison``: which phase explains the difference, and what differs beside it.

A change counts only beyond a *band*: how far the same phase strays between like boots. History knows it; where
it does not, a quarter of the phase and never less than twice what the log's stamps can tell is assumed, and
said. Phases that only one of the boots has are no noise, however short.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrack.core.changes import change_of, changes_of, is_of_draft, resolution_of, told_once
from phasetrack.core.differing import differing_facts, version_of
from phasetrack.core.model import Outcome
from phasetrack.core.say import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from phasetrack.core.changes import Change
    from phasetrack.core.differing import FactChange
    from phasetrack.core.model import Snapshot
    from phasetrack.core.noise import Noise


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two boots."""

    label: str
    outcome: Outcome
    startup_s: float | None
    version: str | None
    model: str | None
    boot: int
    failed_in: str | None = None  # title of the phase
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between two boots, the explanation first."""

    a: Side
    b: Side
    delta_s: float | None  # of the whole start
    because: str
    first: str | None  # the phase that explains the most; None where nothing does
    causes: tuple[Change, ...]  # the changes that explain the difference, the largest first
    phases: tuple[Change, ...]
    between: Change
    facts: tuple[FactChange, ...]
    assumed: bool  # the bands are assumed, not learned


def compare(
    a: Snapshot, b: Snapshot, *, names: tuple[str, str] = ("A", "B"), noise: Mapping[str, Noise] | None = None
) -> Comparison:
    """Compare two boots phase by phase.

    Args:
        a: the boot to compare with.
        b: the boot that is asked about: a positive difference means that it is slower.
        names: what to call them.
        noise: phase to its spread over like boots (``noise_of``); None where history knows nothing.
    """
    facts = tuple(differing_facts(a, b))
    resolution = max(resolution_of(a), resolution_of(b))
    known = noise or {}
    phases = tuple(told_once(list(changes_of(a, b, facts, known, resolution))))
    between = change_of(
        "between", "between phases", 1, (a.between_phases_s, b.between_phases_s), known.get("between"), resolution
    )
    delta = None if a.startup_s is None or b.startup_s is None else b.startup_s - a.startup_s
    causes = tuple(_causes([*phases, between], delta))
    sides = _side(a, names[0]), _side(b, names[1])
    return Comparison(
        a=sides[0], b=sides[1], delta_s=delta, because=_because(sides, delta, causes), causes=causes,
        first=causes[0].phase if causes else None, phases=phases, between=between, facts=facts,
        assumed=not any(change.runs for change in phases),
    )  # fmt: skip


# --- reasons ----------------------------------------------------------------------------------------


def _causes(changes: list[Change], delta: float | None) -> Iterator[Change]:
    """What moved the start in the direction in which it moved, the largest first; nothing unless both got ready.

    The phases of a draft that only one boot has are one cause: they come together, the largest of them first.
    """
    if delta is None:
        return
    moved = [c for c in changes if c.delta_s and c.kind not in {"same", "noise", "unknown", "unfinished"}]
    total = delta or sum(c.delta_s or 0.0 for c in moved)
    groups: dict[str, list[Change]] = defaultdict(list)
    for change in moved:
        if (change.delta_s or 0.0) * total > 0:
            groups["draft" if is_of_draft(change) else f"{change.phase}-{change.occurrence}"].append(change)
    for group in sorted(groups.values(), key=lambda group: -abs(sum(c.delta_s or 0.0 for c in group))):
        yield from sorted(group, key=lambda c: -abs(c.delta_s or 0.0))


# --- words ------------------------------------------------------------------------------------------


def _side(known: Snapshot, label: str) -> Side:
    failure = known.failure
    model = known.facts.get("model_path")
    phase = failure.phase if failure is not None else None
    title = next((row.title for row in known.phases if row.phase == phase), phase)
    return Side(
        label, known.outcome, known.startup_s, version_of(known), None if model is None else str(model), known.boot,
        failed_in=title if known.outcome is Outcome.FAILED else None,
        cause="" if failure is None else failure.cause or failure.message,
    )  # fmt: skip


def _because(sides: tuple[Side, Side], delta: float | None, causes: Sequence[Change]) -> str:
    if delta is None:
        return " ".join(_how(side, name) for side, name in zip(sides, "AB", strict=True))
    a, b = sides
    if delta == 0:
        return f"Both were ready after {duration(a.startup_s)}. {_first(causes, 0.0)}"
    word = "later" if delta > 0 else "sooner"
    times = f"({duration(a.startup_s)} to {duration(b.startup_s)})"
    return f"B was ready {duration(abs(delta))} {word} than A {times}. {_first(causes, abs(delta))}"


def _how(side: Side, name: str) -> str:
    if side.failed_in is not None:
        return f"{name} failed in {side.failed_in}: {side.cause.rstrip('.')}."
    if side.startup_s is not None:
        return f"{name} was ready after {duration(side.startup_s)}."
    return f"{name} did not get ready."


def _first(causes: Sequence[Change], total_s: float) -> str:
    """The largest cause in a sentence, with its reasons."""
    if not causes:
        return "No phase changed by more than the usual noise."
    first = causes[0]
    together = [c for c in causes if is_of_draft(c)] if is_of_draft(first) else [first]
    moved = abs(sum(c.delta_s or 0.0 for c in together))
    names = " and ".join(filter(None, [", ".join(c.title for c in together[:-1]), together[-1].title]))
    where = {"only_a": " (only in A)", "only_b": " (only in B)"}.get(first.kind, "")
    verb = "explain" if len(together) > 1 else "explains"
    what = f"{verb} {duration(moved)} of it" if moved <= total_s else f"alone made {duration(moved)}"
    why = f": {'; '.join(first.reasons[:2])}" if first.reasons else ""
    return f"{names[:1].upper()}{names[1:]}{where} {what}{why}."
