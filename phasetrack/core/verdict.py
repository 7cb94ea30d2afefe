"""State, evidence and expectations to a ``Verdict``: the answer to "is it stuck?".

The ladder while starting, from calm to lost (``DESIGN.md`` §6)::

    waiting      no engine line yet
    progressing  output within what is usual here
    quiet        silent, within what healthy starts are known for
    working      silent beyond that, and something outside the log moves
    overdue      silent beyond that, and nothing is seen to move, or nothing can be seen
    suspect      beyond the usual, and every strong channel was flat for a dwell; or a process is stopped
    stuck        suspect was held, or a hard sign: a rank's process is gone, the log's own watchdog

* From the log alone nothing goes past overdue, unless its own text is a hard sign.
* Movement leaves a rung at once; climbing takes the dwell. The dwell is in the ages that evidence carries, so the
  same evidence always gives the same verdict and nothing flaps; only ``since_s`` needs the verdict before.
* Never kill, and never run a command: ``next_step`` prints one.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core import lastwords
from phasetrack.core.advice import headline
from phasetrack.core.deadlines import deadline
from phasetrack.core.ending import main_words
from phasetrack.core.model import DAMAGED, Outcome, Sign, Status, Verdict, VerdictState
from phasetrack.core.say import duration
from phasetrack.core.signs import HELD_S, hard_sign, number
from phasetrack.core.titles import MAIN, RANK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from phasetrack.core.model import Channel, Evidence, Failure, PhaseInfo, PhaseRow, ProcessSample, Snapshot

# Below this no one calls a log silent.
_BREATH_S = 5.0
# A healthy server was seen silent and idle for 32 s while it waited for another's build lock (recordings).
_DWELL_S = 120.0
_DWELL_WINDOWS = 3
_WINDOW_S = (10.0, 60.0)  # bounds; a window is as long as the phase is usually silent
# A busy CPU is a weak sign: a spin lock burns it too, and so do long waits for a GPU that computes.
_BUSY_DWELL = 2.5
_STALE_S = 15.0  # evidence older than this is none
# Channels that see different things; compilers, caches and downloads are usually still.
_INDEPENDENT = {"memory", "storage", "gpu_memory"}

_UNSEEN = "nothing outside the log was looked at"


class _Usual(NamedTuple):
    """What a phase is known for: how long it is silent while healthy."""

    title: str
    typical_s: float
    long_s: float
    why: str

    @property
    def window_s(self) -> float:
        return min(max(self.typical_s, _WINDOW_S[0]), _WINDOW_S[1])


def judge(
    known: Snapshot,
    phases: Mapping[str, PhaseInfo],
    *,
    stuck: Failure | None = None,
    headless: bool = False,
    evidence: Evidence | None = None,
    before: Verdict | None = None,
    now_s: float | None = None,
) -> Verdict:
    """Answer "is it stuck?".

    Args:
        known: everything but the verdict; its outcome settled (``ending.settle``).
        phases: what each phase is known for.
        stuck: a line of the log that itself says that the server hangs.
        headless: a worker node, which never serves HTTP.
        evidence: what was seen outside the log; None where nothing was looked at.
        before: the verdict before, for ``since_s``.
        now_s: our clock; None for a saved log.
    """
    if before is not None and evidence is not None and evidence.root_gone_s is not None and _is_open(known):
        return before  # its last lines are still being read; a moment later the outcome is settled
    stale = evidence is not None and evidence.age_s > _STALE_S
    verdict = _decide(known, phases, stuck, None if stale else evidence, headless=headless)
    if stale and evidence is not None:
        verdict = replace(verdict, missing=(*verdict.missing, f"evidence is {duration(evidence.age_s)} old"))
    since = before.since_s if before is not None and before.state is verdict.state else now_s
    return _with_deadline(replace(verdict, since_s=since), known, phases, now_s)


def _decide(
    known: Snapshot,
    phases: Mapping[str, PhaseInfo],
    stuck: Failure | None,
    evidence: Evidence | None,
    *,
    headless: bool,
) -> Verdict:
    if known.outcome is Outcome.FAILED:
        return _failed(known, evidence)
    if known.outcome is Outcome.STOPPED:
        return _stopped(known, evidence)
    if known.outcome is Outcome.NONE:
        return _nothing(known, phases, evidence)
    if stuck is not None:
        return _told_stuck(known, stuck, evidence)
    hard = None if evidence is None or known.ended else hard_sign(known, evidence)
    if known.outcome is Outcome.READY:
        return _ready(known, hard, headless=headless)
    if hard is not None:
        return hard
    if known.ended:
        nobody = evidence is not None and evidence.orphan_log
        signs = (Sign("no process of this machine has the log open"),) if nobody else ()
        return Verdict(
            VerdictState.ENDED,
            lastwords.cut_short(known),
            (*signs, *lastwords.signs(known)),
            next_step=lastwords.next_step(known),
        )
    return _starting(known, phases, evidence)


def _is_open(known: Snapshot) -> bool:
    return known.outcome in {Outcome.NONE, Outcome.STARTING} and not known.ended


def _with_deadline(verdict: Verdict, known: Snapshot, phases: Mapping[str, PhaseInfo], now_s: float | None) -> Verdict:
    if known.outcome is not Outcome.STARTING or known.ended or known.now_s is None:
        return verdict
    found = deadline(known, phases)
    if found is None:
        return verdict
    ours = None if now_s is None else now_s + found.at_s - known.now_s
    return replace(verdict, deadline_s=ours, deadline_at_s=found.at_s, deadline_why=found.why)


# --- states that the log decides --------------------------------------------------------------------


def damage_of(known: Snapshot) -> str:
    """Why the rest of a log could not be read; empty where all of it was."""
    return next((warning.message for warning in known.warnings if warning.id == DAMAGED), "")


def _nothing(known: Snapshot, phases: Mapping[str, PhaseInfo], evidence: Evidence | None) -> Verdict:
    if known.ended:
        code = "" if evidence is None or evidence.exit_code is None else f" (exit code {evidence.exit_code})"
        gone = evidence is not None and evidence.root_gone_s is not None
        said = f"The process ended{code} without an engine's line." if gone else "No engine start-up in this log."
        if (damage := damage_of(known)) and not gone:
            said = f"No engine start-up in what could be read of this log: {damage}."
        if known.failure is not None:
            said = f"{said[:-1]}; the log ends with {known.failure.message}"
        return Verdict(VerdictState.ENDED, said)
    if evidence is None or not evidence.processes:
        missing = (_UNSEEN,) if evidence is None else evidence.missing
        said = "No engine line yet; the first 10 to 20 s of a start print nothing."
        if evidence is not None and evidence.orphan_log:
            said = "No engine line in this log, and no process of this machine has it open."
        return Verdict(VerdictState.WAITING, said, missing=missing)
    usual = _usual(known, "bootstrap", phases)
    hard = hard_sign(known, evidence) or (None if usual is None else _flat(known, usual, evidence))
    if hard is not None:
        return hard
    alive = _main(evidence)
    age = None if alive.started_s is None else evidence.now_s - alive.started_s
    said = f"No engine line yet; process {alive.pid} is alive" + ("" if age is None else f" for {duration(age)}") + "."
    said += " What the log holds is of an older start." if known.boots else ""
    return Verdict(VerdictState.WAITING, said, _moving(evidence, _WINDOW_S[1]), (), evidence.missing)


def _failed(known: Snapshot, evidence: Evidence | None) -> Verdict:
    failure = known.failure
    signs: tuple[Sign, ...] = ()
    left = () if evidence is None or evidence.root_gone_s is None else evidence.processes
    ranks = [process for process in left if process.role == RANK]
    next_step = "" if failure is None else failure.remedy
    if ranks:
        pids = " ".join(str(process.pid) for process in ranks)
        signs = (Sign(f"{len(ranks)} of its processes live on as orphans and may hold GPU memory: {pids}"),)
        next_step = f"kill {pids}"
    if failure is None:
        return Verdict(VerdictState.FAILED, "The start failed.", signs, next_step=next_step)
    return Verdict(VerdictState.FAILED, headline(failure), (Sign(failure.message), *signs), next_step=next_step)


def _stopped(known: Snapshot, evidence: Evidence | None) -> Verdict:
    ready = known.ready_offset is not None
    said = "The server was ready and has stopped." if ready else lastwords.stopped_early(known)
    if evidence is None or evidence.root_gone_s is None:
        return Verdict(VerdictState.STOPPED, said)
    code = "" if evidence.exit_code is None else f" (exit code {evidence.exit_code})"
    sign = Sign(f"the {main_words(evidence)} is gone{code}", evidence.root_gone_s)
    return Verdict(VerdictState.STOPPED, said, (sign,))


def _told_stuck(known: Snapshot, stuck: Failure, evidence: Evidence | None) -> Verdict:
    missing = (_UNSEEN,) if evidence is None else evidence.missing
    next_step = stuck.remedy if evidence is None else _look_at(known, evidence)
    return Verdict(
        VerdictState.STUCK, f"The log itself says so: {stuck.message}", (Sign(stuck.message),), (), missing,
        next_step=next_step,
    )  # fmt: skip


def _ready(known: Snapshot, hard: Verdict | None, *, headless: bool) -> Verdict:
    if hard is not None:
        return replace(hard, state=VerdictState.DEGRADED, because=f"Ready by its log, but {_lower(hard.because)}")
    if headless:
        return Verdict(VerdictState.READY, "This node is up; node 0 decides when the server is ready. Follow its log.")
    if known.failure is not None and not known.failure.after_ready:
        said = known.failure.cause or known.failure.message
        return Verdict(
            VerdictState.DEGRADED, f"Ready by its log, but {_lower(said)}", (Sign(known.failure.message),),
            next_step=known.failure.remedy,
        )  # fmt: skip
    refused = next((rung for rung in known.rungs if rung.id == "health" and rung.ok is False), None)
    if refused is not None:
        return Verdict(VerdictState.DEGRADED, f"Ready by its log, but {refused.detail}.", (Sign(refused.detail),))
    less = [warning.message for warning in known.warnings if warning.asked is not None]
    if less:
        more = f" (and {len(less) - 1} more)" if len(less) > 1 else ""
        said = f"Ready, but not as asked: {_lower(less[0].rstrip('.'))}{more}."
        return Verdict(VerdictState.DEGRADED, said, tuple(map(Sign, less)))
    cold = next((rung for rung in known.rungs if rung.id == "warm" and rung.ok is False), None)
    if cold is not None:
        return Verdict(VerdictState.READY, f"The server is ready, but not warm: {cold.detail}.")
    return Verdict(VerdictState.READY, "The server is ready.")


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() else sentence


# --- the ladder -------------------------------------------------------------------------------------


def _starting(known: Snapshot, phases: Mapping[str, PhaseInfo], evidence: Evidence | None) -> Verdict:
    title, silent = _title(known), known.silent_s
    if silent is None or silent <= _BREATH_S:
        row = _row(known)
        between = row is not None and row.status is Status.DONE
        said = f"{title} is done; no other phase has begun yet." if between else f"{title} is running."
        return Verdict(VerdictState.PROGRESSING, said, (Sign("output just now", silent),))
    missing = (_UNSEEN,) if evidence is None else evidence.missing
    said, sign = f"{title}: silent for {duration(silent)}", Sign("no output", silent)
    usual = _usual(known, known.phase or "", phases)
    if usual is None:
        said = f"{said}; how long it may be silent is not known."
        return Verdict(VerdictState.PROGRESSING, said, (), (sign,), missing)
    moving = () if evidence is None else _moving(evidence, usual.window_s)
    why = f" ({usual.why})" if usual.why else ""
    if silent <= usual.typical_s:
        return Verdict(VerdictState.PROGRESSING, f"{said}; normal here{why}.", (*moving,), (sign,), missing)
    flat = None if evidence is None else _flat(known, usual, evidence)
    if flat is not None:
        return flat
    known_for = f"healthy starts were silent here for up to {duration(usual.long_s)}"
    if silent <= usual.long_s:
        return Verdict(VerdictState.QUIET, f"{said}; normal here{why}: {known_for}.", moving, (sign,), missing)
    if evidence is not None and _works(evidence, usual.window_s):
        moves = "; ".join(s.text for s in moving)
        return Verdict(VerdictState.WORKING, f"{said}, but it works: {moves}.", moving, (sign,), missing)
    return Verdict(
        VerdictState.OVERDUE, f"{said}, longer than known ({known_for}).", (sign,), moving, missing,
        next_step="" if evidence is None else _look_at(known, evidence),
    )  # fmt: skip


def _usual(known: Snapshot, phase: str, phases: Mapping[str, PhaseInfo]) -> _Usual | None:
    """What the pack knows of a phase, widened by how long this machine's own starts took in it."""
    info = phases.get(phase)
    if info is None or info.silence is None:
        return None
    typical, long = info.silence.typical_s, info.silence.long_s
    row = _row(known)
    own = None if row is None or row.phase != phase else row.expected
    if row is not None and own is not None and own.runs and row.elapsed_s is not None:
        before = max(row.elapsed_s - (known.silent_s or 0.0), 0.0)
        typical = max(typical, own.high_s - before)
        long = max(long, 1.5 * own.high_s - before)
    return _Usual(info.title, typical, long, info.quiet_why)


def _moving(evidence: Evidence, window_s: float) -> tuple[Sign, ...]:
    return tuple(
        Sign(f"{channel.title} moves, {channel.now}", channel.moved_ago_s + evidence.age_s)
        for channel in evidence.channels
        if channel.moved_ago_s is not None and channel.moved_ago_s <= window_s
    )


def _works(evidence: Evidence, window_s: float) -> bool:
    """One strong channel, or two weak ones, moved within the window."""
    moved = [c for c in evidence.channels if c.moved_ago_s is not None and c.moved_ago_s <= window_s]
    return any(channel.strong for channel in moved) or len(moved) > 1


def _flat(known: Snapshot, usual: _Usual, evidence: Evidence) -> Verdict | None:
    """Suspect, and stuck once held: silent beyond the usual, every strong channel flat for the dwell."""
    silent = known.silent_s
    strong = [channel for channel in evidence.channels if channel.strong]
    if silent is None or len({channel.id for channel in strong} & _INDEPENDENT) < 2:
        return None
    if _works(evidence, usual.window_s):
        return None
    weak = [channel for channel in evidence.channels if not channel.strong and channel.flat_s <= usual.window_s]
    busy = [channel for channel in weak if channel.moved_ago_s is not None]
    dwell = max(_DWELL_S, _DWELL_WINDOWS * usual.window_s) * (_BUSY_DWELL if busy else 1)
    many = number(known, "nnodes") > 1  # the other nodes, for which this one may be waiting, cannot be seen
    held = min(min(c.flat_s for c in strong) - dwell, silent - (usual.long_s if many else usual.typical_s))
    if held < 0:
        return None
    missing = (*evidence.missing, "the other nodes cannot be seen from here") if many else evidence.missing
    since = duration(min(channel.flat_s for channel in strong))
    is_stuck = held >= HELD_S and not many
    soon = "" if is_stuck or many else f"; stuck in {duration(ceil((HELD_S - held) / 60) * 60)} if that lasts"
    signs = (Sign("no output", silent), *(_flat_sign(channel, evidence) for channel in strong))
    return Verdict(
        VerdictState.STUCK if is_stuck else VerdictState.SUSPECT,
        f"{usual.title}: silent for {duration(silent)}, and nothing moved outside the log for {since}{soon}.",
        signs,
        tuple(Sign(f"{c.title} is busy, {c.now}, which a hang can be too", c.moved_ago_s) for c in busy),
        missing,
        next_step=_look_at(known, evidence),
    )


def _flat_sign(channel: Channel, evidence: Evidence) -> Sign:
    return Sign(f"{channel.title} flat, {channel.now}", channel.flat_s + evidence.age_s)


def _look_at(known: Snapshot, evidence: Evidence) -> str:
    """The command that shows where a process stands: the slowest rank's, if it can be told."""
    row = _row(known)
    slow = None if row is None else row.slowest_rank
    ranks = [process for process in evidence.processes if process.role == RANK]
    chosen = [process for process in ranks if process.rank == slow] or ranks
    pid = chosen[0].pid if chosen else evidence.root_pid
    return "" if pid is None else f"py-spy dump --pid {pid}"


def _main(evidence: Evidence) -> ProcessSample:
    mains = [p for p in evidence.processes if p.role == MAIN or p.pid == evidence.root_pid]
    return (mains or list(evidence.processes))[0]


def _row(known: Snapshot) -> PhaseRow | None:
    return next((row for row in known.phases if row.phase == known.phase), None)


def _title(known: Snapshot) -> str:
    row = _row(known)
    return row.title if row is not None else "the start"
