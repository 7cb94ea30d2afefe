"""How a start ended that left no message: what its last lines still tell, and what to look at.

A log cannot tell a kill from a log that goes on elsewhere. It can tell how far the start had come, which ranks had
not come as far as the others, whether a process left without tidying up, and that nothing had failed by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.model import Sign, Status
from phasetrack.core.say import duration
from phasetrack.core.state import rank_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import PhaseRow, Snapshot

_NAMED = 4  # ranks named one by one
# Phases that every rank goes through.
_OF_RANKS = ("dist_init", "target_load", "draft_load", "kv_cache", "draft_kv", "target_graph")

_LOOK_AT = "dmesg -T | grep -i 'killed process'"
# What an echo of a process that died looks like among the warnings.
_ECHO = ".echo."


def cut_short(known: Snapshot) -> str:
    """Where a log stops that neither came to ready nor says why."""
    row = _row(known)
    if row is None:
        return "The log stops here; the start was not finished."
    return f"The log stops here, in {row.title}{_how_far(row)}; the start was not finished, and no line says why."


def signs(known: Snapshot) -> Iterator[Sign]:
    """What the last lines tell of an end without a message."""
    row = _row(known)
    if _is_inside_bar(row):
        yield Sign("it stops inside a bar: a process that is killed has no time for more")
    for warning in known.warnings:
        if _ECHO in warning.id:
            line = "" if warning.line is None else f"line {warning.line}: "
            yield Sign(f"{line}{warning.message[:160]}")
    behind = ranks_behind(known)
    if behind and row is not None:
        yield Sign(f"{_names(behind)} had not come as far as the others")
    nodes, node = known.facts.get("nnodes"), known.facts.get("node_rank")
    if row is not None and row.phase == "dist_init" and isinstance(nodes, int) and nodes > 1:
        yield Sign(f"this is node {node} of {nodes}, and no rank has joined: another node may be missing")


def next_step(known: Snapshot) -> str:
    """Where to look, if the last lines are those of a process that was killed."""
    killed = _is_inside_bar(_row(known)) or any(_ECHO in warning.id for warning in known.warnings)
    return _LOOK_AT if killed else ""


def stopped_early(known: Snapshot) -> str:
    """That somebody stopped a start in which nothing had failed, and how far it was."""
    row = _row(known)
    where = "" if row is None else f", in {row.title}{_how_far(row)}"
    after = ""
    if known.now_s is not None and known.started_at_s is not None and known.now_s > known.started_at_s:
        after = f" {duration(known.now_s - known.started_at_s)} after the start"
    said = f"Stopped from outside{after}{where}; nothing had failed until then."
    return f"{said} If a deadline or a liveness probe did it, this start needs longer{_needs(row)}."


def ranks_behind(known: Snapshot) -> list[str]:
    """The ranks that had not come as far as the others when the log stopped."""
    last: dict[str, int] = {}
    for k, row in enumerate(row for row in known.phases if row.phase in _OF_RANKS):
        for span in row.ranks:
            if span.rank:
                last[span.rank] = 2 * k + (span.status is Status.DONE)
    furthest = max(last.values(), default=0)
    behind = sorted((rank for rank, step in last.items() if step < furthest), key=rank_key)
    return behind if 0 < len(behind) <= len(last) // 2 else []


def _row(known: Snapshot) -> PhaseRow | None:
    return next((row for row in known.phases if row.phase == known.phase), None)


def _is_inside_bar(row: PhaseRow | None) -> bool:
    bar = None if row is None else row.progress
    return bar is not None and bar.total is not None and 0 < bar.done < bar.total


def _how_far(row: PhaseRow) -> str:
    bar = row.progress
    if bar is None or not bar.total:
        return ""
    return f" at {bar.done:g} of {bar.total:g} {bar.unit}".rstrip()


def _needs(row: PhaseRow | None) -> str:
    """How long the phase still wanted at its bar's own pace."""
    bar = None if row is None else row.progress
    if row is None or bar is None or not bar.total or not 0 < bar.done < bar.total or not row.elapsed_s:
        return ""
    return f": at its pace {row.title} wanted {duration(row.elapsed_s * (bar.total - bar.done) / bar.done)} more"


def _names(ranks: list[str]) -> str:
    more = len(ranks) - _NAMED
    return ", ".join(ranks[:_NAMED]) + (f" and {more} more" if more > 0 else "")
