"""Logs and casts on a virtual clock: what was told at each moment of a start, and what was true.

A log's frames fall due at the times that the tracker itself reads from them (stamps, and inside a bar its elapsed
field); a cast's at their arrival. Nothing reads a clock, so the same folder gives the same numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from phasetrack.core.eta import Past
from phasetrack.core.forecast import forecast
from phasetrack.core.model import Chunk, Closed, Outcome, Range, Status, Tick
from phasetrack.core.past import past_of
from phasetrack.core.tracker import Tracker
from phasetrack.edges.file import open_log
from phasetrack.edges.library import load
from phasetrack.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from phasetrack.core.model import Eta, PastBoot, PatternSet, Priors, Snapshot

# As many looks at a start, evenly over its time; between them the clock ticks, as it does beside a live log.
LOOKS, TICKS_A_LOOK = 48, 5

_FRAME = re.compile(rb"[^\r\n]*(?:\r\n|[\r\n]|\Z)")
_SUFFIXES = {".log", ".txt", ".cast", ".out", ".gz"}
_NEVER_A_LOG = {"README.md"}


@dataclass(frozen=True, slots=True)
class Start:
    """One boot that can be replayed: what falls due when, and what became of it."""

    name: str
    due: tuple[tuple[float, bytes], ...]  # (virtual time, bytes) up to its end
    began_s: float
    ready_s: float | None
    past: PastBoot | None
    ends: tuple[tuple[str, int, float], ...]  # (phase, occurrence, when it ended)
    recorded: bool  # the times are arrivals

    @property
    def total_s(self) -> float | None:
        """From the first stamped line to ready."""
        return None if self.ready_s is None else self.ready_s - self.began_s


@dataclass(frozen=True, slots=True)
class Look:
    """What was told at one moment, and what was true."""

    at_s: float  # since the start
    left_s: float  # to ready, in truth
    told: Range  # to ready
    basis: str
    number: bool  # a number was shown; otherwise ``told`` is what it would have been
    finish_s: float  # told, since the start
    why: str
    phase: str | None
    phase_left_s: float | None  # in truth
    phase_told: Range | None
    bar_s: float | None  # what the bar's own estimate says


@cache
def patterns() -> PatternSet:
    """The shipped packs."""
    return load()


def find(folders: Sequence[Path]) -> list[Path]:
    """Every log and cast below the folders; of a log that was recorded as a cast too, the cast."""
    found = {path for folder in folders for path in ([folder] if folder.is_file() else sorted(folder.rglob("*")))}
    logs = sorted(path for path in found if path.suffix in _SUFFIXES and path.name not in _NEVER_A_LOG)
    return [path for path in logs if path.suffix == ".cast" or path.with_suffix(".cast") not in found]


def read(path: Path) -> Start | None:
    """One log's latest boot; None where no start is in it."""
    tracker = Tracker(patterns(), path.name)
    due: list[tuple[float, bytes]] = []
    now = None
    try:
        for at_s, data in _pieces(path):
            tracker.feed(Chunk(data, recorded_s=at_s))
            known = tracker.of_log()
            if at_s is None and known.now_s is not None:
                now = known.now_s if now is None else max(now, known.now_s)
            due.append((at_s if at_s is not None else now if now is not None else 0.0, data))
            if known.ready_at_s is not None:
                break
    except SourceError:
        return None
    tracker.feed(Closed())
    return _start(path, tracker.snapshot(), due)


def _pieces(path: Path) -> Iterator[tuple[float | None, bytes]]:
    with open_log(str(path)) as log:
        for item in log.chunks():
            if not isinstance(item, Chunk):
                continue
            if item.recorded_s is not None:
                yield item.recorded_s, item.data
                continue
            for found in _FRAME.finditer(item.data):
                if found[0]:
                    yield None, found[0]


def _start(path: Path, known: Snapshot, due: list[tuple[float, bytes]]) -> Start | None:
    if known.outcome is Outcome.NONE or known.started_at_s is None or not due:
        return None
    recorded = path.suffix == ".cast"
    name = path.parent.name if path.stem == "server" else path.stem
    shift = _shift(known, due) if recorded else 0.0
    ends = tuple(
        (row.phase, row.occurrence, row.ended_s + shift)
        for row in known.phases
        if row.ended_s is not None and row.status is Status.DONE
    )
    ready = known.ready_at_s
    return Start(
        name,
        tuple(due),
        known.started_at_s + shift,
        None if ready is None else due[-1][0] if recorded else ready,
        past_of(known),
        ends,
        recorded,
    )


def _shift(known: Snapshot, due: list[tuple[float, bytes]]) -> float:
    """From the log's clock to the recorder's: the first stamped line, both ways."""
    newest = known.ready_at_s if known.ready_at_s is not None else known.now_s or 0.0
    return due[-1][0] - newest


def looks(start: Start, priors: Priors | None, many: int = LOOKS) -> list[Look]:
    """Replay a start that got ready, and look at it so many times."""
    total = start.total_s
    if total is None or total <= 0:
        return []
    tracker = Tracker(patterns(), start.name)
    if priors is not None:
        tracker.feed(priors)
    found, at, past = [], 0, Past()
    for k in range(many * TICKS_A_LOOK):
        now = start.began_s + total * k / (many * TICKS_A_LOOK)
        while at < len(start.due) and start.due[at][0] <= now:
            when, data = start.due[at]
            tracker.feed(Chunk(data, arrived_s=when, recorded_s=when if start.recorded else None))
            at += 1
        tracker.feed(Tick(now))
        if k % TICKS_A_LOOK == 0:
            look = _look(start, tracker.snapshot(now), now, past, priors)
            found += [] if look is None else [look]
    return found


def _look(start: Start, known: Snapshot, now_s: float, past: Past, priors: Priors | None) -> Look | None:
    eta = known.eta
    if eta is None or start.ready_s is None:
        return None
    told, number = _told(eta), eta.mid_s is not None
    if told is None:
        raw = forecast(known, past.likes(known, priors))
        if raw is None:
            return None
        told = raw.left
    row = next((row for row in reversed(known.phases) if row.phase == known.phase), None)
    end = next((at for phase, k, at in start.ends if row and (phase, k) == (row.phase, row.occurrence)), None)
    finish = eta.finish_s - (known.now_s or 0.0) if eta.finish_s is not None else told.mid_s
    return Look(
        at_s=now_s - start.began_s,
        left_s=start.ready_s - now_s,
        told=told,
        basis=eta.basis,
        number=number,
        finish_s=now_s - start.began_s + finish,
        why=eta.why,
        phase=known.phase,
        phase_left_s=None if end is None or end <= now_s else end - now_s,
        phase_told=eta.phase_left,
        bar_s=_bar_eta(known),
    )


def _told(eta: Eta) -> Range | None:
    if eta.low_s is None or eta.mid_s is None or eta.high_s is None:
        return None
    return Range(eta.low_s, eta.mid_s, eta.high_s)


def _bar_eta(known: Snapshot) -> float | None:
    """What tqdm prints behind ``<``: items left over its own rate."""
    bar = known.progress
    if bar is None or not bar.total or not bar.rate_per_s or bar.done >= bar.total:
        return None
    return (bar.total - bar.done) / bar.rate_per_s
