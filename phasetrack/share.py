"""What is given away: reports in every form, two boots compared, and the bundle. Nothing leaves the machine.

A bundle is made from the *masked* log alone: the snapshot and the page in it are read from that file, so what was
masked there can stand nowhere else, and the three agree on every line number.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from phasetrack.core.mask import Masker, masked, segments
from phasetrack.core.model import Chunk, Closed, EvidenceSample, Range
from phasetrack.core.tracker import Tracker
from phasetrack.edges.file import open_log
from phasetrack.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import BinaryIO

    from phasetrack.core.compare import Noise
    from phasetrack.core.model import PatternSet, Priors, Snapshot
    from phasetrack.edges.history import Store
    from phasetrack.views.page import Told

# What a bundle calls the log: its real name may tell whose it is.
_LOG_NAME = "server.log"
# Time zones are whole quarters of an hour apart; a recording begins within minutes of its server.
_QUARTER_S = 900.0
# Of a start that never got ready; the longest seen printed 3 MB.
_START_BYTES = 8 << 20
_KINDS = {
    "secret": "secrets", "user": "users", "host": "hosts", "ip": "IP addresses", "mac": "MAC addresses",
    "email": "e-mail addresses", "dir": "folders", "file": "file names",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bundle:
    """What was written."""

    path: Path
    files: tuple[str, ...]
    counts: dict[str, tuple[int | None, int]]  # kind -> how many different ones, how often
    known: Snapshot


@dataclass(frozen=True, slots=True)
class Beside:
    """What a page shows beside the snapshot."""

    told: tuple[Told, ...] = ()
    evidence: tuple[EvidenceSample, ...] = ()
    lag_s: float = 0.0  # our clock less the log's


def look_beside(patterns: PatternSet, log: str, known: Snapshot, priors: Priors | None) -> Beside:
    """Find what a page of a log can show more: the estimates as they were given, and evidence recorded with it."""
    if log == "-" or known.started_at_s is None:
        return Beside()
    samples = tuple(_recorded(log))
    lag = 0.0 if not samples else _QUARTER_S * round((samples[0].now_s - known.started_at_s) / _QUARTER_S)
    return Beside(tuple(_told(patterns, log, known, priors)), samples, lag)


def _recorded(log: str) -> Iterator[EvidenceSample]:
    """Samples that ``run --record`` wrote beside the log or its cast."""
    from phasetrack.edges.recorded import beside, read_evidence

    path = beside(log)
    if path.is_file():
        yield from (item for item in read_evidence(path) if isinstance(item, EvidenceSample))


def _told(patterns: PatternSet, log: str, known: Snapshot, priors: Priors | None) -> Iterator[Told]:
    """Read the start once more, line by line, and ask at the begin of each phase how long it will take."""
    from phasetrack.views.page import Told

    tracker = Tracker(patterns, log, boot=known.boot)
    if priors is not None:
        tracker.feed(priors)
    asked: set[str | None] = set()
    for line in _lines(log, known.ready_offset):
        phases = [r.data["phase"] for r in tracker.feed(Chunk(line)) if r.type == "phase" and r.boot == known.boot]
        if not phases or phases[-1] in asked:
            continue
        then = tracker.snapshot()
        asked.add(then.phase)
        eta, title = then.eta, next((row.title for row in then.phases if row.phase == then.phase), "")
        if eta is None or then.now_s is None or eta.low_s is None or eta.mid_s is None or eta.high_s is None:
            continue
        yield Told(then.now_s, title, Range(eta.low_s, eta.mid_s, eta.high_s), eta.source)


def _lines(log: str, until: int | None) -> Iterator[bytes]:
    """The lines of a log up to an offset; without one, no more than a start ever prints."""
    left = until if until is not None else _START_BYTES
    for data in _bytes(log):
        yield from data[:left].splitlines(keepends=True)
        left -= len(data)
        if left <= 0:
            return


def report_in(form: str, known: Snapshot, *, plain: bool = False, beside: Beside | None = None) -> str:
    """A report as text; each view is imported only where it is asked for.

    Args:
        form: text, json, md, html or trace.
        known: the snapshot.
        plain: of the text form, ASCII glyphs only.
        beside: of the page, what it shows beside the snapshot.
    """
    if form == "json":
        from phasetrack.views.jsonl import dumps, snapshot_json

        return dumps(snapshot_json(known), indent=2) + "\n"
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


def read_boot(patterns: PatternSet, name: str, store: Store | None = None) -> Snapshot:
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
    known = tracker.snapshot()
    if boot is not None and known.boot != boot:
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
    """How far phases stray between boots like these two.

    Raises:
        HistoryError: the history cannot be read.
    """
    from phasetrack.core.compare import noise_of, wider
    from phasetrack.core.key import key_of

    keyed = [(known, key) for known in (a, b) if (key := key_of(known)) is not None]
    found: dict[str, Noise] = {}
    for known, key in keyed:
        found = wider(found, noise_of(store.priors(key).boots, known))
    return found


def write_bundle(patterns: PatternSet, log: str, target: Path, *, boot: int | None = None) -> Bundle:
    """Write a redacted log, its snapshot and its page as one archive for others to read.

    Args:
        patterns: all packs.
        log: the log file, or ``-``.
        target: the archive, ``.tar.gz``; it is there whole or not at all.
        boot: the boot to show.

    Raises:
        SourceError: the log cannot be read.
        UsageError: the archive cannot be written, or the log holds no such boot.
    """
    from phasetrack.views.jsonl import dumps, snapshot_json
    from phasetrack.views.page import report_page

    masker = Masker(users=_own_users(), hosts=_own_hosts())
    with _twice(log) as chunks, tempfile.TemporaryFile() as clean:
        for segment in segments(chunks()):
            masker.learn(segment.text)
        tracker = Tracker(patterns, _LOG_NAME, boot=boot)
        for piece in masked(segments(chunks()), masker):
            clean.write(piece)
            tracker.feed(Chunk(piece))
        tracker.feed(Closed())
        known = tracker.snapshot()
        if boot is not None and known.boot != boot:
            raise UsageError(f"--boot {boot}: this log holds no such boot ('phasetrack report LOG' lists them)")
        texts = {
            "snapshot.json": dumps(snapshot_json(known), indent=2) + "\n",
            "report.html": report_page(known),
            "MASKED.txt": masked_list(masker.counts),
        }
        _write(target, clean, texts)
    return Bundle(target, (_LOG_NAME, *texts), masker.counts, known)


def bundle_words(written: Bundle) -> str:
    """Say what a bundle holds, and that it is still to be sent by hand."""
    lines = [f"{written.path}: {', '.join(written.files)}"]
    told = [f"{hits if n is None else n} {_KINDS[kind]}" for kind, (n, hits) in written.counts.items()]
    lines.append(f"masked: {', '.join(told)}" if told else "nothing was found to mask")
    lines.append(f"nothing was sent; look through it first: tar tzf {written.path}")
    return "\n".join(lines)


def masked_list(counts: dict[str, tuple[int | None, int]]) -> str:
    """Tell what was masked by kind and number, never the originals."""
    lines = ["Masked before this was written. The same original has the same mask in every file here.", ""]
    lines.append(f"  {'what':<18} {'different':>9} {'places':>8}")
    for kind, (different, hits) in counts.items():
        lines.append(f"  {_KINDS[kind]:<18} {'' if different is None else different:>9} {hits:>8}")
    if not counts:
        lines.append("  nothing was found to mask")
    lines += [
        "",
        "Kept: server arguments, times, names of published models, loopback addresses, public hosts, and the",
        "paths of the system and of Python packages. Look through it before you give it away.",
    ]
    return "\n".join(lines) + "\n"


def _own_users() -> list[str]:
    """The user who runs this; the log may be theirs."""
    import getpass

    try:
        return [getpass.getuser()]
    except (KeyError, OSError):
        return []


def _own_hosts() -> list[str]:
    import socket

    name = socket.gethostname()
    return [name, name.partition(".")[0]] if "." in name else [name]


@contextmanager
def _twice(log: str) -> Iterator[Callable[[], Iterator[bytes]]]:
    """The bytes of a log, as often as asked; standard input is kept in a nameless file meanwhile."""
    if log != "-":
        yield lambda: _bytes(log)
        return
    with tempfile.TemporaryFile() as kept:
        for data in _bytes(log):
            kept.write(data)

        def again() -> Iterator[bytes]:
            kept.seek(0)
            while data := kept.read(1 << 20):
                yield data

        yield again


def _bytes(log: str) -> Iterator[bytes]:
    with open_log(log) as opened:
        for item in opened.chunks():
            if isinstance(item, Chunk):
                yield item.data


def _write(target: Path, log: BinaryIO, texts: dict[str, str]) -> None:
    """Write the archive beside its place, and move it there when it is whole. It tells no user, host or time."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with (
            part.open("xb") as raw,
            gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w") as tar,
        ):
            _add(tar, _LOG_NAME, log)
            for name, text in texts.items():
                _add(tar, name, io.BytesIO(text.encode("utf-8", "replace")))
        part.replace(target)
    except OSError as fault:
        part.unlink(missing_ok=True)
        raise UsageError(f"{target}: cannot be written: {fault.strerror or fault}") from None


def _add(tar: tarfile.TarFile, name: str, content: BinaryIO) -> None:
    info = tarfile.TarInfo(f"phasetrack-bundle/{name}")
    info.size = content.seek(0, io.SEEK_END)
    info.mode = 0o644
    content.seek(0)
    tar.addfile(info, content)
