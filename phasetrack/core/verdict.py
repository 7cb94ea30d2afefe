"""State, evidence and expectations to a ``Verdict``: the answer to "is it stuck?".

From the log alone the ladder is waiting · progressing · quiet · overdue, and never goes further, unless the
log's own text says that it hangs (a watchdog). How long a phase may be silent stands in the pack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.model import Outcome, Sign, Verdict, VerdictState
from phasetrack.core.say import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from phasetrack.core.model import Failure, PhaseInfo, Snapshot

# Below this no one calls a log silent.
_BREATH_S = 5.0
_DAY_S = 86400.0


def judge(known: Snapshot, phases: Mapping[str, PhaseInfo], *, stuck: Failure | None, headless: bool) -> Verdict:
    """Answer "is it stuck?" from what the log says.

    Args:
        known: everything but the verdict.
        phases: what each phase is known for.
        stuck: a line of the log that itself says that the server hangs.
        headless: a worker node, which never serves HTTP.
    """
    if known.outcome is Outcome.NONE:
        return _nothing(known)
    if known.outcome is Outcome.FAILED:
        return _failed(known)
    if known.outcome is Outcome.STOPPED:
        return Verdict(VerdictState.STOPPED, "The server was stopped.")
    if stuck is not None:
        return Verdict(VerdictState.STUCK, f"The log itself says so: {stuck.message}", (Sign(stuck.message),))
    if known.outcome is Outcome.READY:
        return _ready(known, headless=headless)
    if known.ended:
        return Verdict(VerdictState.ENDED, f"The log stops here, in {_title(known)}; the start was not finished.")
    return _starting(known, phases)


def _nothing(known: Snapshot) -> Verdict:
    if known.ended:
        return Verdict(VerdictState.ENDED, "No engine start-up in this log.")
    return Verdict(VerdictState.WAITING, "No engine line yet; the first 10 to 20 s of a start print nothing.")


def _failed(known: Snapshot) -> Verdict:
    failure = known.failure
    if failure is None:
        return Verdict(VerdictState.FAILED, "The start failed.")
    return Verdict(VerdictState.FAILED, failure.cause or failure.message, (Sign(failure.message),))


def _ready(known: Snapshot, *, headless: bool) -> Verdict:
    if headless:
        return Verdict(VerdictState.READY, "This node is up; node 0 decides when the server is ready. Follow its log.")
    if known.warnings and any(warning.asked is not None for warning in known.warnings):
        return Verdict(VerdictState.DEGRADED, "Ready, but with less than was asked for; see the warnings.")
    return Verdict(VerdictState.READY, "The server is ready.")


def _starting(known: Snapshot, phases: Mapping[str, PhaseInfo]) -> Verdict:
    title, silent = _title(known), known.silent_s
    info = phases.get(known.phase or "")
    silence = None if info is None else info.silence
    if silent is None or silent <= _BREATH_S:
        return Verdict(VerdictState.PROGRESSING, f"{title} is running.", (Sign("output just now", silent),))
    said = f"{title}: silent for {duration(silent)}"
    sign = (Sign("no output", silent),)
    if silence is None:
        return Verdict(VerdictState.PROGRESSING, f"{said}; how long it may be silent is not known.", sign)
    known_for = f"healthy starts were silent here for up to {duration(silence.long_s)}"
    if silent > silence.long_s:
        missing = ("nothing outside the log was looked at",)
        return Verdict(VerdictState.OVERDUE, f"{said}, longer than known ({known_for}).", (), sign, missing)
    why = f" ({info.quiet_why})" if info is not None and info.quiet_why else ""
    if silent > silence.typical_s:
        return Verdict(VerdictState.QUIET, f"{said}; normal here{why}: {known_for}.", sign)
    return Verdict(VerdictState.PROGRESSING, f"{said}; normal here{why}.", sign)


def _title(known: Snapshot) -> str:
    row = next((row for row in known.phases if row.phase == known.phase), None)
    return row.title if row is not None else "the start"
