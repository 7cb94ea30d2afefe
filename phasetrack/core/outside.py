"""What is seen outside the log, beside a boot: evidence, probes, and the verdict that needs both.

Owned by the tracker, so that it stays a fold over a log; this one folds over samples. Split from it because what a
log says never depends on what was sampled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from phasetrack.core.ending import settle
from phasetrack.core.evidence import EvidenceFold
from phasetrack.core.model import TimingCheck
from phasetrack.core.readiness import Ladder
from phasetrack.core.verdict import judge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from phasetrack.core.model import EvidenceSample, Failure, PhaseInfo, ProbeResult, Snapshot, Verdict


class Outside:
    """Folds evidence and answers; ``answer`` changes nothing."""

    def __init__(self) -> None:
        """Know nothing."""
        self._evidence = EvidenceFold()
        self.ladder = Ladder()
        self._before: Verdict | None = None

    def see(self, sample: EvidenceSample) -> None:
        """Take one sample."""
        self._evidence.feed(sample)

    def hear(self, result: ProbeResult, known: Snapshot) -> None:
        """Take one answer over HTTP, with what the log said at that time."""
        self.ladder.feed(result, known)

    def remember(self, verdict: Verdict) -> None:
        """Keep a verdict: the next one like it began when this did."""
        self._before = verdict

    @property
    def newest(self) -> EvidenceSample | None:
        """The newest sample; None where nothing was looked at."""
        return self._evidence.newest

    @property
    def is_orphan(self) -> bool:
        """Whether nobody has the log open any more: it may be a copy from another machine."""
        return self.newest is not None and self.newest.orphan_log

    @property
    def gone_at_s(self) -> float | None:
        """When the main process was seen to be gone (our clock)."""
        return self._evidence.gone_at_s

    def answer(
        self,
        known: Snapshot,
        phases: Mapping[str, PhaseInfo],
        *,
        stuck: Failure | None,
        last: Failure | None,
        headless: bool,
        now_s: float | None,
    ) -> Snapshot:
        """Add to what the log says: evidence, rungs, the outcome where the process is gone, and the verdict.

        Args:
            known: what the log says, with its estimate.
            phases: what each phase is known for, history included.
            stuck: a line of the log that itself says that the server hangs.
            last: an uncaught exception from outside the engine with which the log ends.
            headless: a worker node.
            now_s: our clock; None for a saved log.
        """
        evidence = self._evidence.view(now_s)
        known = settle(known, evidence, stuck=stuck, last=last)
        if evidence is not None or self.ladder.startup_s is not None:
            known = replace(
                known,
                evidence=self._evidence.newest,
                channels=() if evidence is None else evidence.channels,
                timings=(*known.timings, *self._timings(known)),
            )
        known = replace(known, rungs=self.ladder.rungs(known, evidence))
        verdict = judge(
            known,
            phases,
            stuck=stuck,
            headless=headless,
            evidence=evidence,
            before=self._before,
            now_s=now_s,
        )
        return replace(known, verdict=verdict)

    def _timings(self, known: Snapshot) -> tuple[TimingCheck, ...]:
        engine_s = self.ladder.startup_s
        return () if engine_s is None else (TimingCheck("startup", engine_s, known.startup_s),)
