"""A snapshot to what is learned of its boot: how long each phase took, in pieces that add up to the whole.

A boot is cut at the begins of its phases: each phase owns the time from its begin to the next one's, told apart
into the phase itself and the gap behind it. So the pieces sum up to the start-up time, whatever overlaps, and
what no phase claims is not lost. Within a phase the bars cut again: the *lead* before the first bar, each bar up
to the next, and the *tail* after the last one is full (repacking, the slowest rank), which no bar shows.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from phasetrack.core.key import key_of, model_name
from phasetrack.core.model import Outcome, PastBoot, PastPhase, PastStep, Remembered, Status
from phasetrack.core.redact import redact
from phasetrack.core.state import GRAPHS, LOADS

if TYPE_CHECKING:
    from phasetrack.core.model import BarRow, PhaseRow, Snapshot

# A curve is kept as the share of its bar's time at each of these steps of done/total.
KNOTS = 20

LEAD, TAIL = "lead", "tail"

# Phases that are no work: points in time, or what comes after the start.
_NO_WORK = {"ready", "serving"}

_GIB = 2**30
# Seconds per GiB and rank that hardly a disk reaches: 0.1 from memory on a machine that reads its disk at 0.66.
_WARM_S_PER_GIB = 0.25
# A load so many times slower than the fastest of the same boot on the same machine did not find its pages there.
_COLD_TIMES = 2.5
# Read from storage at least this share of the weights: cold, whatever the time; at most that: warm.
_COLD_READ, _WARM_READ = 0.5, 0.1
# A capture whose first size took so long, and so many times a later one, most likely compiled kernels first: 43 s
# against 0.1 s in a recorded cold start; 1 s against 0.1 s warm.
COLD_FIRST_S, _COLD_FIRST_TIMES = 8.0, 8.0
# Activities that run only where nothing was compiled before.
_COMPILES = {"deep_gemm", "flashinfer_jit", "nvcc", "jit"}
_COMPILES_S = 5.0


def past_of(known: Snapshot) -> PastBoot | None:
    """What is learned of the shown boot; None where nothing is: no arguments, or no time.

    A boot that did not get ready teaches its finished phases, and of the last one only that it lasted at least
    so long.
    """
    key = key_of(known)
    rows = timed_rows(known)
    if key is None or not rows:
        return None
    ready = known.ready_at_s is not None
    outcome = Outcome.READY if ready else known.outcome
    return PastBoot(key, known.started_at_s, str(outcome), known.startup_s, tuple(_phases(known, rows)))


def remembered(known: Snapshot, log: str = "") -> Remembered | None:
    """A boot as the history keeps it; None where nothing can be learned of it. Facts are redacted once more."""
    past, uid = past_of(known), uid_of(known)
    if past is None or uid is None or (known.ready_at_s is not None and known.startup_s is None):
        return None
    args = known.facts.get("server_args")
    engine = known.engine
    return Remembered(
        uid=uid,
        past=past,
        engine="" if engine is None else engine.name,
        version="" if engine is None else engine.version or "",
        model=model_name(args)[0] if isinstance(args, dict) else "",
        log=redact(log),
        facts={
            name: redact(value) if isinstance(value, str) else value
            for name, value in known.facts.items()
            if name != "server_args"
        },
    )


def uid_of(known: Snapshot) -> str | None:
    """What the same boot has whenever it is read: its start and arguments; None while they are not known.

    Two servers may start in the same second, but not on one port.
    """
    from hashlib import sha256  # 4 ms

    args = known.facts.get("server_args")
    if known.started_at_s is None or not args:
        return None
    return sha256(f"{int(known.started_at_s)}|{args!r}".encode("utf-8", "replace")).hexdigest()[:32]


def timed_rows(known: Snapshot) -> list[PhaseRow]:
    """The rows that own time, in the order in which they began. A download inside a load is part of it."""
    rows = [row for row in known.phases if row.phase not in _NO_WORK and row.began_s is not None]
    rows.sort(key=lambda row: row.began_s or 0.0)
    loads = [row for row in rows if row.phase in LOADS]
    return [row for row in rows if row.phase != "download" or not any(_holds(load, row) for load in loads)]


def _holds(load: PhaseRow, row: PhaseRow) -> bool:
    began, start = row.began_s or 0.0, load.began_s or 0.0
    return began >= start and (load.ended_s is None or began < max(load.ended_s, start + 1))


def _phases(known: Snapshot, rows: list[PhaseRow]) -> list[PastPhase]:
    ends = [row.began_s for row in rows[1:]] + [known.ready_at_s]
    return [_phase(known, row, end) for row, end in zip(rows, ends, strict=True)]


def _phase(known: Snapshot, row: PhaseRow, next_s: float | None) -> PastPhase:
    began = row.began_s or 0.0
    ended = row.ended_s if row.status is Status.DONE else None
    until = min((at for at in (ended, next_s) if at is not None), default=known.now_s or began)
    complete = ended is not None or next_s is not None
    gap = None if next_s is None or not complete else max(next_s - max(until, began), 0.0)
    return PastPhase(
        row.phase,
        row.occurrence,
        max(until - began, 0.0),
        gap,
        complete=complete,
        silence_s=row.longest_silence_s,
        cache=cache_of(known, row),
        steps=tuple(steps_of(row, until, complete=complete)),
    )


# --- steps ------------------------------------------------------------------------------------------


def leading_bars(row: PhaseRow) -> list[BarRow]:
    """The bars of the rank that is furthest behind, in order; replicas draw the same bars each."""
    by_rank: dict[str, list[BarRow]] = {}
    for bar in row.bars:
        if bar.began_s is not None:
            by_rank.setdefault(bar.rank, []).append(bar)
    if not by_rank:
        return []
    bars = max(by_rank.values(), key=lambda bars: (len(bars), bars[-1].last_s or 0.0))
    return sorted(bars, key=lambda bar: bar.began_s or 0.0)


def step_names(bars: list[BarRow]) -> list[str]:
    """Name bars by title and count; the first frame of a capture has no title yet."""
    names: list[str] = []
    for bar in bars:
        same = sum(name.rpartition(" ")[0] == bar.title for name in names)
        names.append(f"{bar.title} {same + 1}")
    return names


def steps_of(row: PhaseRow, until_s: float, *, complete: bool) -> list[PastStep]:
    """Cut a phase at its bars; nothing where it has none."""
    bars = leading_bars(row)
    if not bars or row.began_s is None:
        return []
    steps = [PastStep(LEAD, max((bars[0].began_s or 0.0) - row.began_s, 0.0))]
    names = step_names(bars)
    for (bar, after), name in zip(pairwise(bars), names, strict=False):
        took = max((after.began_s or 0.0) - (bar.began_s or 0.0), 0.0)
        steps.append(PastStep(name, took, knots_of(bar, took)))
    last = bars[-1]
    full = last.total is not None and last.done >= last.total
    end = until_s if not full or last.last_s is None else min(last.last_s, until_s)
    took = max(end - (last.began_s or 0.0), 0.0)
    steps.append(PastStep(names[-1], took, knots_of(last, took) if full else (), complete=full or complete))
    if full:
        steps.append(PastStep(TAIL, max(until_s - end, 0.0), complete=complete))
    return steps


def knots_of(bar: BarRow, took_s: float) -> tuple[float, ...]:
    """The share of a bar's time at 5, 10, … 100 % done; empty where its curve tells nothing."""
    if not bar.total or took_s <= 0 or len(bar.curve) < 2:
        return ()
    points = [(0.0, 0.0), *((done / bar.total, elapsed) for elapsed, done in bar.curve)]
    return tuple(round(min(when_reached(points, k / KNOTS) / took_s, 1.0), 4) for k in range(1, KNOTS + 1))


def when_reached(points: list[tuple[float, float]], fraction: float) -> float:
    """The time at which a curve of (done, elapsed) reached a fraction."""
    for (before, early), (after, late) in pairwise(points):
        if after >= fraction:
            share = (fraction - before) / (after - before) if after > before else 1.0
            return early + share * (late - early)
    return points[-1][1]


# --- cold or warm -----------------------------------------------------------------------------------


def cache_of(known: Snapshot, row: PhaseRow, fastest_s: float | None = None) -> str | None:
    """Whether a phase found its caches filled; None where nothing tells.

    ``cold`` and ``warm`` where the log names a compiler or the system counted what was read from storage; ``~cold``
    and ``~warm`` where only the phase's pace speaks for it, which sorts boots into kinds and proves nothing.

    Args:
        known: everything, for facts, activities and evidence.
        row: the phase.
        fastest_s: the least time that the same boot took in this phase, where one is known.
    """
    found = row.cache
    if found is None and row.phase in LOADS:
        found = _page_cache(known, row, fastest_s)
    elif found is None and (row.phase in GRAPHS or row.phase == "warmup"):
        found = _compiled(known, row)
    late = row.expected is not None and (row.elapsed_s or 0.0) > row.expected.high_s + 1
    return None if found == "~warm" and late else found


def kind_of(cache: str | None) -> str | None:
    """``cold`` or ``warm``, shown or guessed."""
    return None if cache is None else cache.lstrip("~")


def _page_cache(known: Snapshot, row: PhaseRow, fastest_s: float | None) -> str | None:
    weights = known.facts.get("weights_bytes" if row.phase == "target_load" else "draft_weights_bytes")
    if not isinstance(weights, int) or weights < _GIB or row.status is not Status.DONE:
        return None
    read, whole = _read_bytes(known), weights * max(row.ranks_seen, 1)
    if read is not None and read >= _COLD_READ * whole:
        return "cold"
    took = sum(step.elapsed_s for step in steps_of(row, row.ended_s or 0.0, complete=True) if step.name != TAIL)
    took = (took or row.elapsed_s or 0.0) + (row.skew_s or 0.0)  # a slower rank may have read until its end
    if took * _GIB / weights <= _WARM_S_PER_GIB:
        return "warm" if read is not None and read <= _WARM_READ * whole else "~warm"
    slow = fastest_s is not None and (row.elapsed_s or 0.0) >= _COLD_TIMES * max(fastest_s, 1.0)
    return "~cold" if slow else None


def _read_bytes(known: Snapshot) -> int | None:
    """What all processes read from storage; None where nobody counted."""
    processes = known.evidence.processes if known.evidence is not None else ()
    counted = [process.read_bytes for process in processes if process.read_bytes is not None]
    return sum(counted) if counted else None


def _compiled(known: Snapshot, row: PhaseRow) -> str | None:
    if any(_compiled_in(known, row.phase)):
        return "cold"
    bars = [bar for bar in leading_bars(row) if bar.total and bar.total >= 4 and bar.done > 0]
    if any(_waited_first(bar) for bar in bars):
        return "~cold"
    full = bars and all(bar.done >= (bar.total or 0.0) and not _stood(bar) for bar in bars)
    return "~warm" if full and row.status is Status.DONE else None


def _compiled_in(known: Snapshot, phase: str) -> list[bool]:
    return [
        (doing.ended_s or doing.began_s or 0.0) - (doing.began_s or 0.0) >= _COMPILES_S
        for doing in known.activities
        if doing.phase == phase and doing.id in _COMPILES
    ]


def _waited_first(bar: BarRow) -> bool:
    """Whether the first size took far longer than the later ones."""
    points = [(elapsed, done) for elapsed, done in bar.curve if done > 0]
    first = points[0][0] if points else (bar.elapsed_s or 0.0)
    if first < COLD_FIRST_S:
        return False
    if len(points) < 2 or bar.elapsed_s is None:
        return True
    later = (bar.elapsed_s - first) / max(bar.done - points[0][1], 1.0)
    return first >= _COLD_FIRST_TIMES * later


def _stood(bar: BarRow) -> bool:
    """Whether one size took far longer than all others together: a process was stopped, which no cache explains."""
    waits = [late - early for (early, _), (late, _) in pairwise(bar.curve)]
    longest = max(waits, default=0.0)
    return longest >= COLD_FIRST_S and 2 * longest > (bar.elapsed_s or 0.0)
