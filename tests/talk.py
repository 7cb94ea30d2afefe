"""Logs in, what is said out: the one way in which tests talk to the core.

A log is written as a conversation, one line each, so that a test reads like the log it stands for::

    42:04      | server_args=ServerArgs(model_path='/srv/models/m', tp_size=1)
    42:22 TP0  | Load weight begin. avail mem=139.13 GB
               | Multi-thread loading shards:  50% Completed | 1/2 [00:01<00:01,  1.00it/s]

Before the first ``|`` stand minute, second and rank of the engine's stamp, or nothing for an untimed line.
A line that begins with ``<`` is glued to the one before by a carriage return: the next frame of a bar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from phasetrack.core.model import Chunk, Closed, Tick
from phasetrack.core.patterns import load_pack, merge
from phasetrack.core.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from phasetrack.core.model import PatternSet, PhaseRow, Record, Snapshot

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"

_LINE = re.compile(r"\s*(?:(?P<clock>\d\d:\d\d(?:\.\d+)?) *(?P<rank>[A-Z][A-Z_ \d]*?)?)? *(?P<glue><?)\| ?(?P<text>.*)")

ARGS = "server_args=ServerArgs(model_path='/srv/models/m', tokenizer_path='/srv/models/m', port=30000, {})"


@cache
def patterns() -> PatternSet:
    """The shipped packs."""
    return merge(
        load_pack(path.read_text(encoding="utf-8"), path.name) for path in sorted(ROOT.glob("patterns/*.toml"))
    )


def recordings() -> list[str]:
    """The names of our own recordings."""
    return sorted(path.parent.name for path in FIXTURES.glob("*/server.log"))


def recording(name: str) -> bytes:
    """The bytes of one of our own logs."""
    return (FIXTURES / name / "server.log").read_bytes()


def log(text: str, *, stamp: str = "[2026-11-30 15:{clock}{rank}] {text}") -> str:
    """Spell a conversation as an engine would print it."""
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        if not line.strip():
            continue
        found = _LINE.fullmatch(line)
        assert found is not None, line
        said = found["text"]
        if found["clock"]:
            rank = (found["rank"] or "").strip()
            said = stamp.format(clock=found["clock"], rank=f" {rank}" if rank else "", text=said)
        if found["glue"]:
            lines[-1] += "\r" + said
        else:
            lines.append(said)
    return "".join(line + "\n" for line in lines)


def args(**values: object) -> str:
    """A ``server_args`` message with these arguments."""
    return ARGS.format(", ".join(f"{key}={value!r}" for key, value in values.items()))


@dataclass(frozen=True)
class Heard:
    """What the core made of a log."""

    tracker: Tracker
    records: tuple[Record, ...]
    snapshot: Snapshot

    @property
    def story(self) -> list[str]:
        """The records in words, without the facts."""
        return [said for record in self.records if (said := _said(record))]

    def told(self, *kinds: str) -> list[str]:
        """The records of some types in words."""
        return [_said(record) for record in self.records if record.type in kinds]

    @property
    def spans(self) -> list[str]:
        """The begins and ends, in the order of the log."""
        return self.told("span")

    @property
    def rows(self) -> list[str]:
        """The rows of the table that have begun."""
        return [row_words(row) for row in self.snapshot.phases if row.begin_line is not None]

    def row(self, phase: str, occurrence: int = 1) -> PhaseRow:
        """One row of the table."""
        return next(row for row in self.snapshot.phases if (row.phase, row.occurrence) == (phase, occurrence))

    @property
    def order(self) -> list[str]:
        """The phases that have begun, as the table lists them."""
        return [row.phase for row in self.snapshot.phases if row.begin_line is not None]


def hear(
    data: bytes | str,
    *,
    chunks: Iterable[int] = (),
    peeks: bool = False,
    open_end: bool = False,
    now_s: float | None = None,
    output_s: float | None = None,
    **tracker: object,
) -> Heard:
    """Feed a log and listen.

    Args:
        data: the log.
        chunks: where to cut it; whole where empty.
        peeks: ask for a snapshot between the chunks, which must change nothing.
        open_end: the input has not ended.
        now_s: our clock at the end.
        output_s: when the log last grew, our clock.
        tracker: what else the tracker takes.
    """
    raw = data.encode() if isinstance(data, str) else data
    heard = Tracker(patterns(), "server.log", **tracker)  # type: ignore[arg-type]
    records: list[Record] = []
    for piece in pieces(raw, chunks):
        records += heard.feed(Chunk(piece))
        if peeks:
            heard.snapshot()
    if not open_end:
        records += heard.feed(Closed())
    if output_s is not None and now_s is not None:
        heard.feed(Tick(now_s, output_s))
    return Heard(heard, tuple(records), heard.snapshot(now_s))


def talk(text: str, **options: object) -> Heard:
    """Feed a conversation and listen."""
    return hear(log(text), **options)  # type: ignore[arg-type]


def pieces(data: bytes, cuts: Iterable[int]) -> Iterator[bytes]:
    """Cut bytes at some places."""
    start = 0
    for cut in sorted(cuts):
        yield data[start:cut]
        start = max(start, cut)
    yield data[start:]


def row_words(row: PhaseRow) -> str:
    """One row in words: ``target_load 42:22-42:28 done 64/64``."""
    name = row.phase if row.occurrence == 1 else f"{row.phase}#{row.occurrence}"
    bar = "" if row.progress is None else f" {row.progress.done:g}/{row.progress.total or 0:g}"
    guess = " ~" if row.basis != "logged" else ""
    return f"{name} {_clock(row.began_s)}-{_clock(row.ended_s)} {row.status}{bar}{guess}"


def _clock(at_s: float | None) -> str:
    if at_s is None:
        return "?"
    return f"{int(at_s // 60 % 60):02d}:{int(at_s % 60):02d}"


def _said(record: Record) -> str:
    data = record.data
    rank = f" {data['rank']}" if data.get("rank") else ""
    match record.type:
        case "boot":
            return f"boot {record.boot}"
        case "phase":
            return f"now {data['phase']}"
        case "span":
            guess = " ~" if data["basis"] != "logged" else ""
            return f"{data['phase']}{rank} {data['edge']}{guess}"
        case "progress":
            total = data["total"]
            return f"{data['phase']}{rank} {data['done']:g}/{'?' if total is None else format(total, 'g')}"
        case "failure":
            return f"failure {data['id']} in {data['phase']}{rank}" + ("" if data["fatal"] else " (not fatal)")
        case "activity":
            return f"{data['id']} {data['edge']}"
        case "warning":
            return f"warning {data['id']}"
        case "outcome":
            return f"outcome {data['outcome']}"
        case "ready":
            return "ready"
        case _:
            return ""
