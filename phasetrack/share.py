"""Reports and comparisons in every form: what to read for them, and which view draws them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from phasetrack.core.model import Chunk, EvidenceSample, Priors, Range
from phasetrack.core.tracker import Tracker
from phasetrack.edges.file import bytes_of
from phasetrack.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from phasetrack.core.model import BootKey, PatternSet, Snapshot
    from phasetrack.core.noise import Noise
    from phasetrack.edges.history import History, Store
    from phasetrack.views.foretold import Told

# Time zones are whole quarters of an hour apart; a recording begins within minutes of its server.
_QUARTER_S = 900.0
# Of a start that never got ready; the longest seen printed 3 MB.
_START_BYTES = 8 << 20
# A line, or a frame of one; what is shorter than any bar stays with what follows: a log may hold millions of them.
_LINE = re.compile(rb"(?:[^\r\n]{0,7}\r)*[^\r\n]*(?:\r*\n|\r+|\Z)")


@dataclass(frozen=True, slots=True)
class Beside:
    """What a page shows beside the snapshot."""

    told: tuple[Told, ...] = ()
    evidence: tuple[EvidenceSample, ...] = ()
    lag_s: float = 0.0  # our clock less the log's


def look_beside(patterns: PatternSet, log: str, known: Snapshot, history: History | None) -> Beside:
    """Find what a page of a log can show more: the estimates as they were given, and evidence recorded with it.

    Args:
        patterns: every pack.
        log: its name.
        known: the whole of it.
        history: earlier boots; of them only those count that were over when this one began.
    """
    if log == "-" or known.started_at_s is None:
        return Beside()
    samples = tuple(_recorded(log))
    lag = 0.0 if not samples else _QUARTER_S * round((samples[0].now_s - known.started_at_s) / _QUARTER_S)
    return Beside(tuple(_told(patterns, log, known, history)), samples, lag)


def _recorded(log: str) -> Iterator[EvidenceSample]:
    """Samples that ``run --record`` wrote beside the log or its cast."""
    from phasetrack.edges.recorded import beside, read_evidence

    path = beside(log)
    if path.is_file():
        yield from (item for item in read_evidence(path) if isinstance(item, EvidenceSample))


def _told(patterns: PatternSet, log: str, known: Snapshot, history: History | None) -> Iterator[Told]:
    """Read the start once more, line by line, and ask at the begin of each phase how long it will take."""
    from phasetrack.core.key import key_of
    from phasetrack.views.foretold import Told

    tracker = Tracker(patterns, log, boot=known.boot)
    asked: set[str | None] = set()
    keys: list[BootKey | None] = []
    for line in _lines(log, known.ready_offset):
        phases = [r.data["phase"] for r in tracker.feed(Chunk(line)) if r.type == "phase" and r.boot == known.boot]
        if not phases or phases[-1] in asked:
            continue
        key = key_of(tracker.of_log())
        if history is not None and known.started_at_s is not None and key not in keys[-1:]:
            keys.append(key)
            tracker.feed(history.then(tracker.of_log(), known.started_at_s) or Priors())
        then = tracker.snapshot()
        asked.add(then.phase)
        eta, title = then.eta, next((row.title for row in then.phases if row.phase == then.phase), "")
        if eta is None or then.now_s is None or eta.low_s is None or eta.mid_s is None or eta.high_s is None:
            continue
        yield Told(then.now_s, title, Range(eta.low_s, eta.mid_s, eta.high_s), eta.source)


def _lines(log: str, until: int | None) -> Iterator[bytes]:
    """The lines of a log up to an offset; without one, no more than a start ever prints."""
    left = until if until is not None else _START_BYTES
    for data in bytes_of(log):
        yield from filter(None, _LINE.findall(data[:left]))
        left -= len(data)
        if left <= 0:
            return


def report_parts(form: str, known: Snapshot, *, plain: bool = False, beside: Beside | None = None) -> Iterable[str]:
    """What ``report_in`` answers, piece by piece where it may be large."""
    if form == "json":
        from phasetrack.views.jsonl import snapshot_text

        return snapshot_text(known)
    return (report_in(form, known, plain=plain, beside=beside),)


def report_in(form: str, known: Snapshot, *, plain: bool = False, beside: Beside | None = None) -> str:
    """A report as text; each view is imported only where it is asked for.

    Args:
        form: text, json, md, html or trace.
        known: the snapshot.
        plain: of the text form, ASCII glyphs only.
        beside: of the page, what it shows beside the snapshot.
    """
    if form == "json":
        return "".join(report_parts(form, known))
    if form == "md":
        from phasetrack.views.markdown import report_markdown

        return report_markdown(known)
    if form == "html":
        from phasetrack.views.page import report_page

        more = beside or Beside()
        return report_page(known, told=more.told, evidence=more.evidence, lag_s=more.lag_s)
    if form == "trace":
        from phasetrack.views.trace import report_trace

        return report_trace(known)
    from phasetrack.views.plain import report_text

    return report_text(known, plain=plain)


def read_boot(patterns: PatternSet, name: str, history: History | None = None, store: Store | None = None) -> Snapshot:
    """Read one boot: the latest of a log, of ``LOG#2`` the second, of ``12`` the history's.

    Raises:
        SourceError: the log cannot be read.
        HistoryError: the history cannot be read.
        UsageError: there is no such boot.
    """
    from phasetrack.run import read_whole

    if name.isdecimal() and not Path(name).exists():
        return _recalled(patterns, int(name), store)
    path, _, number = name.rpartition("#")
    boot = int(number) if path and number.isdecimal() and not Path(name).exists() else None
    tracker, records = read_whole(patterns, name if boot is None else path, boot=boot)
    for _ in records:
        pass
    known = tracker.of_log()
    if history is not None and known.started_at_s is not None:
        tracker.feed(history.then(known, known.started_at_s) or Priors())
    known = tracker.snapshot()
    if boot == 0 or (boot is not None and known.boot != boot):
        raise UsageError(f"{name}: this log holds no such boot ('phasetrack report {path}' lists them)")
    return known


def _recalled(patterns: PatternSet, number: int, store: Store | None) -> Snapshot:
    from phasetrack.core.recollect import snapshot_of
    from phasetrack.edges.history import Store

    boot = (store or Store()).boot(number)
    if boot is None:
        raise UsageError(f"{number}: no such file, and no such boot in the history ('phasetrack history list')")
    return snapshot_of(boot, patterns)


def compare_in(
    form: str, a: Snapshot, b: Snapshot, *, names: tuple[str, str], noise: Mapping[str, Noise] | None = None
) -> str:
    """Two boots compared, as text.

    Args:
        form: text, json, md or html.
        a: the boot to compare with.
        b: the boot that is asked about.
        names: what to call them.
        noise: how far phases stray between like boots.
    """
    from phasetrack.core.compare import compare
    from phasetrack.views import compare as views

    found = compare(a, b, names=names, noise=noise)
    if form == "json":
        return views.compare_dumps(found)
    if form == "md":
        return views.compare_markdown(found)
    if form == "html":
        return views.compare_page(found, a, b)
    return views.compare_text(found)


def noise_between(a: Snapshot, b: Snapshot, store: Store) -> dict[str, Noise]:
    """How far phases stray between boots like these two that were over when the later of them began.

    Raises:
        HistoryError: the history cannot be read.
    """
    from phasetrack.core.key import key_of
    from phasetrack.core.noise import noise_of, wider
    from phasetrack.core.past import uid_of

    keyed = [(known, key) for known in (a, b) if (key := key_of(known)) is not None]
    themselves = {uid_of(known) for known in (a, b)}
    before_s = max((known.started_at_s for known in (a, b) if known.started_at_s is not None), default=inf)
    found: dict[str, Noise] = {}
    for known, key in keyed:
        found = wider(found, noise_of(store.priors(key, but=themselves, before_s=before_s).boots, known))
    return found
