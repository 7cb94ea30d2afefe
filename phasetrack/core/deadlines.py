"""When the engine itself gives up, on the log's clock.

The packs name one figure a phase; where SGLang's depends on its version or arguments (``knowledge`` of 36
releases), it is refined here. A figure that an environment variable may have moved is still shown: it is what
will happen if nobody moved it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core.model import Status
from phasetrack.core.readiness import is_at_least, versions
from phasetrack.core.state import LOADS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from phasetrack.core.model import PhaseInfo, PhaseRow, Snapshot, Value

# How long ranks that have loaded wait for the others (model_runner.py: 300 s from 0.4.4, 480 s from 0.5.6).
_BARRIER_SINCE, _BARRIER_480_SINCE = "0.4.4", "0.5.6"
_BARRIER_300_S, _BARRIER_480_S = 300.0, 480.0
# http_server.py:_execute_server_warmup; prefill and decode servers wait longer.
_WARMUP_S, _WARMUP_PD_S = 600.0, 1800.0
_WATCHDOG_S = 300.0


class Deadline(NamedTuple):
    """The engine gives up at a moment unless something changes."""

    at_s: float  # log clock
    why: str


def deadline(known: Snapshot, phases: Mapping[str, PhaseInfo]) -> Deadline | None:
    """The next built-in deadline of the current phase; None where there is none or its begin is unknown."""
    row = next((row for row in known.phases if row.phase == known.phase and row.status is Status.RUNNING), None)
    if row is None or known.now_s is None:
        return None
    found = _of_phase(known, row, phases.get(row.phase))
    return found if found is not None and found.at_s > known.now_s else None


def _of_phase(known: Snapshot, row: PhaseRow, info: PhaseInfo | None) -> Deadline | None:
    if row.phase in LOADS:
        return _barrier(known, row, info)
    if row.began_s is None:
        return None
    if row.phase == "warmup" and _is_sglang(known):
        return _warmup(known, row.began_s)
    asked = _args(known).get("dist_timeout")
    if row.phase == "dist_init" and isinstance(asked, int | float) and not isinstance(asked, bool):
        return Deadline(row.began_s + asked, f"--dist-timeout {asked:g}")
    if info is None or info.deadline_s is None:
        return None
    return Deadline(row.began_s + info.deadline_s, info.deadline_why)


def _barrier(known: Snapshot, row: PhaseRow, info: PhaseInfo | None) -> Deadline | None:
    """Ranks that are done wait for the rest; with one rank, or none done, nothing bounds a load."""
    done = [rank.ended_s for rank in row.ranks if rank.ended_s is not None]
    if not done or row.ranks_done >= row.ranks_seen or info is None or info.deadline_s is None:
        return None
    wait_s, why = info.deadline_s, info.deadline_why
    low, high = versions(known)
    if high is not None and not is_at_least(high, _BARRIER_SINCE):
        return None
    if is_at_least(low, _BARRIER_480_SINCE):
        wait_s, why = _BARRIER_480_S, "ranks that have loaded wait 480 s for the others"
    elif high is not None and not is_at_least(high, _BARRIER_480_SINCE):
        wait_s, why = _BARRIER_300_S, "ranks that have loaded wait 300 s for the others"
    return Deadline(min(done) + wait_s, why)


def _warmup(known: Snapshot, began_s: float) -> Deadline:
    """The request's own limit, or the watchdog's, whichever comes first; every line printed feeds the watchdog."""
    args = _args(known)
    apart = args.get("disaggregation_mode") not in {None, "null"}
    limit = Deadline(began_s + (_WARMUP_PD_S if apart else _WARMUP_S), "the warm-up request's own limit")
    asked = args.get("watchdog_timeout", _WATCHDOG_S)
    if known.now_s is None or not isinstance(asked, int | float) or isinstance(asked, bool):
        return limit
    heard = known.now_s - (known.silent_s or 0.0)
    watchdog = Deadline(heard + asked, f"--watchdog-timeout {asked:g}, if a forward pass hangs")
    return min(limit, watchdog)


def _is_sglang(known: Snapshot) -> bool:
    return known.engine is not None and known.engine.name == "sglang"


def _args(known: Snapshot) -> Mapping[str, Value]:
    args = known.facts.get("server_args")
    return {} if args is None or isinstance(args, str | int | float | tuple) else args
