"""A start to give away: the masked log, its snapshot and its page in one archive. Nothing leaves the machine.

A bundle is made from the *masked* log alone: the snapshot and the page in it are read from that file, so what was
masked there can stand nowhere else, and the three agree on every line number.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrack.core.mask import Masker, masked, segments
from phasetrack.core.model import Chunk, Closed
from phasetrack.core.tracker import Tracker
from phasetrack.edges.file import bytes_of
from phasetrack.edges.outlet import result_file
from phasetrack.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from phasetrack.core.model import Gap, PatternSet, Snapshot

# What a bundle calls the log: its real name may tell whose it is.
_LOG_NAME = "server.log"
_KINDS = {
    "secret": "secrets", "user": "users", "host": "hosts", "ip": "IP addresses", "mac": "MAC addresses",
    "email": "e-mail addresses", "dir": "folders", "file": "file names",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bundle:
    """What was written."""

    path: str
    files: tuple[str, ...]
    counts: dict[str, tuple[int | None, int]]  # kind -> how many different ones, how often
    known: Snapshot


def write_bundle(patterns: PatternSet, log: str, target: str, *, boot: int | None = None) -> Bundle:
    """Write a redacted log, its snapshot and its page as one archive for others to read.

    Args:
        patterns: all packs.
        log: the log file, or ``-``.
        target: the archive, ``.tar.gz``; never standard output: it is to be looked through first.
        boot: the boot to show.

    Raises:
        SourceError: the log cannot be read.
        UsageError: the archive cannot be written, is the log itself, or the log holds no such boot.
    """
    from phasetrack.views.jsonl import dumps, snapshot_json
    from phasetrack.views.page import report_page

    masker = Masker(users=_own_users(), hosts=_own_hosts())
    damaged: list[Gap] = []
    with _twice(log, damaged) as chunks, tempfile.TemporaryFile() as clean:
        for segment in segments(chunks()):
            masker.learn(segment.text)
        tracker = Tracker(patterns, _LOG_NAME, boot=boot)
        for piece in masked(segments(chunks()), masker):
            clean.write(piece)
            tracker.feed(Chunk(piece))
        for gap in damaged:
            tracker.feed(gap)
        tracker.feed(Closed())
        known = tracker.snapshot()
        if boot is not None and known.boot != boot:
            raise UsageError(f"--boot {boot}: this log holds no such boot ('phasetrack report LOG' lists them)")
        texts = {
            "snapshot.json": dumps(snapshot_json(known), indent=2) + "\n",
            "report.html": report_page(known),
            "MASKED.txt": masked_list(masker.counts),
        }
        with result_file(target, [log]) as raw:
            _write(raw, clean, texts)
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
def _twice(log: str, damaged: list[Gap]) -> Iterator[Callable[[], Iterator[bytes]]]:
    """The bytes of a log, as often as asked; standard input is kept in a nameless file meanwhile."""
    if log != "-":
        yield lambda: bytes_of(log, damaged)
        return
    with tempfile.TemporaryFile() as kept:
        for data in bytes_of(log, damaged):
            kept.write(data)

        def again() -> Iterator[bytes]:
            kept.seek(0)
            while data := kept.read(1 << 20):
                yield data

        yield again


def _write(raw: BinaryIO, log: BinaryIO, texts: dict[str, str]) -> None:
    """Write the archive. It tells no user, host or time."""
    with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        _add(tar, _LOG_NAME, log)
        for name, text in texts.items():
            _add(tar, name, io.BytesIO(text.encode("utf-8", "replace")))


def _add(tar: tarfile.TarFile, name: str, content: BinaryIO) -> None:
    info = tarfile.TarInfo(f"phasetrack-bundle/{name}")
    info.size = content.seek(0, io.SEEK_END)
    info.mode = 0o644
    content.seek(0)
    tar.addfile(info, content)
