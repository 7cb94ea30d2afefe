"""Boots learned from what is there already: old logs, casts, and another machine's export."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phasetrack.core.model import BootKey, Closed, PastBoot, PastPhase, Remembered
from phasetrack.core.past import remembered
from phasetrack.core.segments import plain
from phasetrack.core.tracker import Tracker
from phasetrack.core.verdict import damage_of
from phasetrack.edges.file import open_log
from phasetrack.edges.tables import step_json, step_of
from phasetrack.errors import SourceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from phasetrack.core.model import PatternSet, Snapshot

SCHEMA = "phasetrack.history/1"

# What in a folder may be a log or a cast; a file that is named is always tried, and an export must be named.
_SUFFIXES = {".log", ".txt", ".out", ".err", ".cast", ".gz", ".zst", ".xz", ".bz2"}
_EXPORTS = {".ndjson", ".jsonl"}


@dataclass(frozen=True, slots=True)
class Learned:
    """What one file held."""

    path: Path
    boots: tuple[Remembered, ...]
    why: str = ""  # why it was passed over, or read in part


def learn(paths: Iterable[Path], patterns: PatternSet) -> Iterator[Learned]:
    """Read logs, casts and exports, and folders of them; every boot in each.

    Raises:
        UsageError: a path is not there.
    """
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: no such file or folder")
        for file in _files(path):
            yield _learned(file, patterns)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            if Path(name).suffix.lower() in _SUFFIXES and (Path(folder) / name).is_file():
                yield Path(folder) / name


def _learned(path: Path, patterns: PatternSet) -> Learned:
    try:
        if path.suffix.lower() in _EXPORTS:
            return Learned(path, tuple(_exported(path)))
        latest = _read(path, patterns, None)
        damage = damage_of(latest)
        return Learned(path, tuple(_boots(path, patterns, latest)), f"{path}: {damage}" if damage else "")
    except SourceError as fault:
        return Learned(path, (), str(fault))


def _boots(path: Path, patterns: PatternSet, latest: Snapshot) -> Iterator[Remembered]:
    """The boots of one log; each but the latest needs a reading of its own."""
    numbers = [boot.boot for boot in latest.boots]
    for number in numbers:
        known = latest if number == latest.boot else _read(path, patterns, number)
        boot = remembered(known, path.name)
        if boot is not None:
            yield boot


def _read(path: Path, patterns: PatternSet, boot: int | None) -> Snapshot:
    tracker = Tracker(patterns, path.name, boot=boot)
    with open_log(str(path)) as log:
        for item in log.chunks():
            tracker.feed(item)
    tracker.feed(Closed())
    return tracker.snapshot()


# --- exports ----------------------------------------------------------------------------------------


def export_line(boot: Remembered) -> str:
    """One boot as a line of JSON, for another machine's ``history import``."""
    past = boot.past
    phases = [asdict(phase) | {"steps": [step_json(step) for step in phase.steps]} for phase in past.phases]
    said: dict[str, Any] = {
        "schema": SCHEMA,
        "uid": boot.uid,
        "engine": boot.engine,
        "version": boot.version,
        "model": boot.model,
        "log": boot.log,
        "began_s": past.began_s,
        "outcome": past.outcome,
        "startup_s": past.startup_s,
        "key": asdict(past.key),
        "phases": phases,
        "facts": dict(boot.facts),
    }
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"), default=str)


def _exported(path: Path) -> Iterator[Remembered]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise SourceError(f"{path}: cannot be read: {fault}") from None
    for k, line in enumerate(lines, 1):
        try:
            found = _tamed(json.loads(line))
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            raise SourceError(f"{path}: line {k} is no boot of 'phasetrack history export'")
        try:
            yield _imported(found)
        except (KeyError, TypeError, ValueError) as fault:
            raise SourceError(f"{path}: line {k} lacks what a boot needs: {fault}") from None


def _tamed(value: object) -> object:
    """Take what could act on a terminal out of every text: another machine's export is as hostile as its logs."""
    if isinstance(value, str):
        return "".join(char for char in plain(value) if char.isprintable())
    if isinstance(value, list):
        return [_tamed(one) for one in value]
    if isinstance(value, dict):
        return {str(_tamed(name)): _tamed(one) for name, one in value.items()}
    return value


def _imported(found: dict[str, Any]) -> Remembered:
    phases = tuple(PastPhase(**{**one, "steps": tuple(map(step_of, one["steps"]))}) for one in found["phases"])
    past = PastBoot(BootKey(**found["key"]), found["began_s"], found["outcome"], found["startup_s"], phases)
    return Remembered(
        str(found["uid"]), past, found["engine"], found["version"], found["model"], found["log"], found["facts"]
    )
