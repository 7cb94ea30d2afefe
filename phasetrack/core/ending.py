"""What a dead main process makes of a boot that its log has left open.

A log cannot tell of a SIGKILL, and SGLang does not always notice a dead rank. Once the main process is seen to be
gone and its last lines have been read, the boot is over: failed, or stopped where a signal says that somebody
wanted it. It is told as inferred, since no line says so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from phasetrack.core.model import Failure, Outcome, Place, Record, Snapshot, Status

if TYPE_CHECKING:
    from phasetrack.core.model import Evidence, Value

# Lines written before the end may still be on their way through a pipe or a slow poll.
_LAST_WORDS_S = 1.0
# Start times of processes are counted from the machine's start, which is known to a second.
_CLOCK_SLACK_S = 2.0

# Exit codes, as Popen or a shell gives them, of a process that was asked to end: SIGHUP, SIGINT, SIGTERM.
_ASKED = {-1, -2, -15, 129, 130, 143}
_CAUSES = {
    -9: "It was killed (SIGKILL): by the host's out-of-memory killer, a container's memory limit, or by hand.",
    -11: "It crashed (SIGSEGV, segmentation fault).",
    -6: "It aborted (SIGABRT).",
    -7: "It crashed (SIGBUS): often a full /dev/shm.",
}
_OOM = "Look at dmesg -T | grep -i 'killed process', and at the container's memory limit and --shm-size."


def settle(
    known: Snapshot, evidence: Evidence | None, *, stuck: Failure | None = None, last: Failure | None = None
) -> Snapshot:
    """Close the boot where its main process is gone, or where its log ends in an exception that nobody caught.

    Otherwise answer what was given. Where no engine's line was printed at all, only a process that is seen to have
    failed makes such an exception its server's.

    Args:
        known: everything but the verdict.
        evidence: what was seen outside the log.
        stuck: the log's own word that it hangs: that is then the cause.
        last: an uncaught exception from outside the engine with which the log ends.
    """
    if evidence is None:
        return _raised_last(known, last)
    if _is_older(known, evidence):
        return _not_yet(known, evidence)
    if evidence.root_gone_s is None:
        return _raised_last(known, last)
    fresh = evidence.watched_s > 0 and evidence.root_gone_s < _LAST_WORDS_S
    if fresh and not known.ended:
        return known
    if known.outcome is Outcome.NONE:
        failed = last is not None and evidence.exit_code not in {0, *_ASKED}
        return replace(known, ended=True, outcome=Outcome.FAILED if failed else known.outcome, failure=last)
    if known.outcome not in {Outcome.STARTING, Outcome.READY}:
        return known
    outcome = _outcome(known, evidence)
    failure = _failure(known, evidence, stuck, last) if outcome is Outcome.FAILED else known.failure
    return _over(known, outcome, failure)


def _raised_last(known: Snapshot, last: Failure | None) -> Snapshot:
    if last is None or not known.ended:
        return known
    if known.outcome is Outcome.NONE:
        return replace(known, failure=last)
    if known.outcome is not Outcome.STARTING:
        return known
    return _over(known, Outcome.FAILED, last)


def _over(known: Snapshot, outcome: Outcome, failure: Failure | None) -> Snapshot:
    rows = tuple(replace(row, status=Status.FAILED) if row.status is Status.RUNNING else row for row in known.phases)
    boots = tuple(
        replace(boot, outcome=outcome, failure_id=None if failure is None else failure.id)
        if boot.boot == known.boot
        else boot
        for boot in known.boots
    )
    return replace(
        known, outcome=outcome, failure=failure, phases=rows, boots=boots, activity=None, progress=None, ended=True
    )


def _is_older(known: Snapshot, evidence: Evidence) -> bool:
    """Whether the process was started after the log's last line: what the log tells is of an older start."""
    root = next((process for process in evidence.processes if process.pid == evidence.root_pid), None)
    if root is None or root.started_s is None or known.silent_s is None or known.ended:
        return False
    return known.outcome is not Outcome.NONE and root.started_s > evidence.now_s - known.silent_s + _CLOCK_SLACK_S


def _not_yet(known: Snapshot, evidence: Evidence) -> Snapshot:
    """Nothing of this start stands in the log yet; older ones stay listed."""
    root = next(process for process in evidence.processes if process.pid == evidence.root_pid)
    age_s = evidence.now_s - (root.started_s or evidence.now_s)
    return Snapshot(
        known.now_s,
        Outcome.NONE,
        known.verdict,
        zone=known.zone,
        sources=known.sources,
        boots=known.boots,
        silent_s=age_s,
    )


def obituary(known: Snapshot) -> list[Record]:
    """The records that a boot's end gives rise to, where only its process told of it; placed at the log's end."""
    place, records = _end_of(known), []
    failure = known.failure
    if known.outcome is Outcome.FAILED and failure is not None:
        data: dict[str, Value] = {
            "id": failure.id, "fatal": True, "rank": failure.rank, "phase": failure.phase,
            "message": failure.message, "begin_line": failure.place.line,
        }  # fmt: skip
        records.append(Record("failure", known.boot, place, known.now_s, data))
    return [*records, Record("outcome", known.boot, place, known.now_s, {"outcome": str(known.outcome)})]


def main_words(evidence: Evidence) -> str:
    """The main process in words; one that was dead before anybody looked has no number."""
    return "main process" if evidence.root_pid is None else f"main process (pid {evidence.root_pid})"


def _end_of(known: Snapshot) -> Place:
    source = known.sources[-1] if known.sources else None
    return Place(None, 1, 0) if source is None else Place(source.lines, 1, source.bytes)


def _outcome(known: Snapshot, evidence: Evidence) -> Outcome:
    code = evidence.exit_code
    if code in _ASKED or (known.outcome is Outcome.READY and code in {None, 0}):
        return Outcome.STOPPED
    return Outcome.FAILED


def _failure(known: Snapshot, evidence: Evidence, stuck: Failure | None, last: Failure | None) -> Failure:
    ready = known.outcome is Outcome.READY
    if last is not None:
        return last
    if stuck is not None:
        return replace(stuck, fatal=True, after_ready=ready)
    code = evidence.exit_code
    signal = code if code is not None and code < 0 else 128 - code if code is not None and code > 128 else None
    ended = "" if code is None else f" (exit code {code})"
    return Failure(
        id="process.gone",
        fatal=True,
        phase=known.phase,
        rank=None,
        place=_end_of(known),
        at_s=known.now_s,
        message=f"The server's {main_words(evidence)} is gone{ended}; its log does not say why.",
        cause=_CAUSES.get(signal or 0, "It ended without a word." if code is None or signal else "It ended by itself."),
        remedy=_OOM if code is None or signal in {-9, -7} else "",
        after_ready=ready,
        inferred=True,
    )
