"""What commands look at beside a log: which samplers, and how a single look is made of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrack.core.model import EvidenceSample, Outcome, VerdictState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from phasetrack.core.tracker import Tracker
    from phasetrack.edges.looks import Looks
    from phasetrack.run import Sampler

# One look tells what is; movement takes two. Only a silence asks for them.
_MOVEMENT_S = 1.0
_UNSURE = {VerdictState.QUIET, VerdictState.OVERDUE, VerdictState.WAITING}
# The longest that a single look waits for an HTTP answer; SGLang's health check takes a second.
_ANSWER_S = 5.0
_PAUSE_S = 0.02
# A single look asks the GPUs about a silence of this length: the shortest that is not usual everywhere.
_WORTH_GPUS_S = 15.0


@dataclass(frozen=True, slots=True)
class Look:
    """What a user asked to be looked at."""

    pid: int | None = None
    http: bool = False  # ask over HTTP
    generate: bool = False  # one sampled token too
    url: str | None = None
    log_only: bool = False


def samplers(path: str, look: Look, *, once: bool = False) -> list[Sampler]:
    """The samplers for a log, the cheapest first.

    Args:
        path: of the log.
        look: what the user asked for.
        once: for a single answer: a driver that may take seconds to open is asked only about a long silence.

    Raises:
        UsageError: the URL is none.
    """
    found: list[Sampler] = []
    if not look.log_only:
        from phasetrack.edges.sampler import EvidenceSampler

        found.append(EvidenceSampler(path, pid=look.pid, gpus_after_s=_WORTH_GPUS_S if once else 0.0))
    if look.http:
        from phasetrack.edges.probe import ProbeSampler

        found.append(ProbeSampler(url=look.url, generate=look.generate))
    return found


def look_around(tracker: Tracker, now_s: float, samplers: Sequence[Sampler], looks: Looks | None = None) -> float:
    """Look once outside the log; answer when that was. A silent start is looked at twice, a second apart.

    Args:
        tracker: takes what is seen.
        now_s: our clock.
        samplers: what looks.
        looks: what earlier looks saw, and takes this one; None to know nothing of others.
    """
    for sampler in samplers:
        now_s = _ask(tracker, sampler, now_s, looks)
    known = tracker.snapshot(now_s)
    if samplers and known.verdict.state in _UNSURE and known.channels and known.outcome is not Outcome.READY:
        time.sleep(_MOVEMENT_S)
        now_s = time.time()
        for sampler in samplers:
            now_s = _ask(tracker, sampler, now_s)
    newest = tracker.seen
    if looks is not None and newest is not None:
        looks.keep(newest)
    return now_s


def _ask(tracker: Tracker, sampler: Sampler, now_s: float, looks: Looks | None = None) -> float:
    """One answer of a sampler; one that is still on its way is waited for."""
    until = time.monotonic() + _ANSWER_S
    while time.monotonic() < until:
        found = sampler.sample(tracker.snapshot(now_s), now_s)
        if found is not None:
            for earlier in looks.before(found) if looks is not None and isinstance(found, EvidenceSample) else ():
                tracker.feed(earlier)
            tracker.feed(found)
        if found is not None and not getattr(found, "pending", False):
            break
        if found is None and getattr(sampler, "is_idle", False):
            break  # of a failed server nothing is asked
        time.sleep(_PAUSE_S)
        now_s = time.time()
    return now_s
