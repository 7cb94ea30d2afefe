"""The history's tables: how boots stand in SQLite, and every statement that reads or writes them.

Nothing is opened, locked or committed here (``history``): each function works within its caller's transaction. A
change of a table is a new ``VERSION``, and a step from the one before.
"""

# ruff: noqa: S608 - only names of our own columns are put into statements

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from phasetrack.core.key import model_of
from phasetrack.core.model import BootKey, Outcome, PastBoot, PastPhase, PastStep, Remembered

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

VERSION = 1
APPLICATION_ID = 0x70687472  # "phtr"

# Boots read at each level of likeness: enough to tell two kinds apart, few enough to read within milliseconds.
_LEVELS = (("exact", 24), ("release", 16), ("family", 16), ("kin", 12), ("size", 16), ("gpu", 8))

# Below this a time has no date (undated stamps count days from the first); such boots are ordered by when they came.
_DATED_S = 1e9

_SCHEMA = """
CREATE TABLE boots (
    number INTEGER PRIMARY KEY,
    uid TEXT NOT NULL UNIQUE,
    at_s REAL NOT NULL,
    stored_s REAL NOT NULL,
    seen_s REAL NOT NULL,
    is_over INTEGER NOT NULL,
    began_s REAL,
    outcome TEXT NOT NULL,
    startup_s REAL,
    engine TEXT NOT NULL,
    version TEXT NOT NULL,
    model TEXT NOT NULL,
    log TEXT NOT NULL,
    exact TEXT NOT NULL,
    release TEXT NOT NULL,
    family TEXT NOT NULL,
    kin TEXT NOT NULL,
    size TEXT NOT NULL,
    gpu TEXT NOT NULL,
    gpu_bytes INTEGER,
    facts TEXT NOT NULL
);
CREATE TABLE spans (
    boot INTEGER NOT NULL REFERENCES boots ON DELETE CASCADE,
    k INTEGER NOT NULL,
    phase TEXT NOT NULL,
    occurrence INTEGER NOT NULL,
    elapsed_s REAL NOT NULL,
    gap_s REAL,
    complete INTEGER NOT NULL,
    silence_s REAL,
    cache TEXT,
    steps TEXT NOT NULL,
    PRIMARY KEY (boot, k)
) WITHOUT ROWID;
CREATE INDEX boots_by_time ON boots (at_s);
CREATE INDEX boots_exact ON boots (exact, at_s);
CREATE INDEX boots_release ON boots (release, at_s);
CREATE INDEX boots_family ON boots (family, at_s);
CREATE INDEX boots_kin ON boots (kin, at_s);
CREATE INDEX boots_size ON boots (size, at_s);
CREATE INDEX boots_gpu ON boots (gpu, at_s);
"""

_BOOT_COLUMNS = (
    "number", "uid", "stored_s", "began_s", "outcome", "startup_s", "engine", "version", "model", "log", "exact",
    "release", "family", "size", "gpu", "gpu_bytes", "facts",
)  # fmt: skip
_BOOT = ", ".join(_BOOT_COLUMNS)
_SPAN = "boot, phase, occurrence, elapsed_s, gap_s, complete, silence_s, cache, steps"


def create(base: sqlite3.Connection) -> None:
    """Make the tables, unless another process has made them meanwhile."""
    if int(base.execute("PRAGMA user_version").fetchone()[0]):
        return
    for statement in _SCHEMA.split(";"):
        base.execute(statement)
    base.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    base.execute(f"PRAGMA user_version = {VERSION}")


def write(base: sqlite3.Connection, boot: Remembered, now_s: float) -> bool:
    """Write one boot, unless an account that saw more of it stands there; answer whether it was written."""
    past, key = boot.past, boot.past.key
    seen_s = sum(phase.elapsed_s + (phase.gap_s or 0.0) for phase in past.phases)
    is_over = past.outcome in {Outcome.READY, Outcome.FAILED, Outcome.STOPPED}
    old = base.execute("SELECT number, is_over, seen_s FROM boots WHERE uid = ?", (boot.uid,)).fetchone()
    if old is not None and (bool(old[1]), old[2]) >= (is_over, seen_s):
        return False
    if old is not None:
        base.execute("DELETE FROM boots WHERE number = ?", (old[0],))
    dated = past.began_s is not None and past.began_s >= _DATED_S
    made = base.execute(
        f"INSERT INTO boots (at_s, seen_s, is_over, kin, {_BOOT}) VALUES ({', '.join('?' * (4 + len(_BOOT_COLUMNS)))})",
        (
            past.began_s if dated else now_s, seen_s, is_over, model_of(key), None if old is None else old[0], boot.uid,
            now_s, past.began_s, past.outcome, past.startup_s, boot.engine, boot.version, boot.model, boot.log,
            key.exact, key.release, key.family, key.size, key.gpu, key.gpu_bytes, _json(dict(boot.facts)),
        ),
    )  # fmt: skip
    base.executemany(
        f"INSERT INTO spans (k, {_SPAN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                k, made.lastrowid, phase.phase, phase.occurrence, phase.elapsed_s, phase.gap_s, phase.complete,
                phase.silence_s, phase.cache, _json([step_json(step) for step in phase.steps]),
            )
            for k, phase in enumerate(past.phases)
        ],
    )  # fmt: skip
    return True


def alike(base: sqlite3.Connection, key: BootKey, before_s: float) -> list[int]:
    """The numbers of past boots, by likeness; those on another GPU leave room for those on this one."""
    found: dict[int, None] = {}
    for column, limit in _LEVELS:
        value = model_of(key) if column == "kin" else getattr(key, column)
        if not value:
            continue
        same_gpu = "" if column == "gpu" else "AND (gpu = '' OR ? = '' OR gpu = ?)"
        rows = base.execute(
            f"SELECT number FROM boots WHERE {column} = ? {same_gpu} AND at_s + seen_s <= ? ORDER BY at_s DESC LIMIT ?",
            (value, before_s, limit) if column == "gpu" else (value, key.gpu, key.gpu, before_s, limit),
        )
        found |= dict.fromkeys(row[0] for row in rows)
    return list(found)


def newest(base: sqlite3.Connection, before_s: float) -> list[int]:
    """The numbers of the last boots, whatever they were."""
    wanted = "SELECT number FROM boots WHERE at_s + seen_s <= ? ORDER BY at_s DESC LIMIT 12"
    return [row[0] for row in base.execute(wanted, (before_s,))]


def read(base: sqlite3.Connection, numbers: Sequence[int]) -> list[Remembered]:
    """Whole boots in the order of their numbers as given."""
    marks = ", ".join("?" * len(numbers))
    spans: dict[int, list[PastPhase]] = {}
    for boot, *row in base.execute(f"SELECT {_SPAN} FROM spans WHERE boot IN ({marks}) ORDER BY boot, k", numbers):
        spans.setdefault(boot, []).append(_phase(row))
    rows = {row[0]: row for row in base.execute(f"SELECT {_BOOT} FROM boots WHERE number IN ({marks})", numbers)}
    return [_boot(rows[number], tuple(spans.get(number, ()))) for number in numbers if number in rows]


def heads(base: sqlite3.Connection, limit: int | None) -> list[Remembered]:
    """The newest boots without their phases, the newest first."""
    rows = base.execute(f"SELECT {_BOOT} FROM boots ORDER BY at_s DESC, number DESC LIMIT ?", (limit or -1,))
    return [_boot(row, ()) for row in rows]


def _boot(row: Sequence[Any], phases: tuple[PastPhase, ...]) -> Remembered:
    one = dict(zip(_BOOT_COLUMNS, row, strict=True))
    key = BootKey(one["exact"], one["release"], one["family"], one["size"], one["gpu"], one["gpu_bytes"])
    return Remembered(
        uid=one["uid"],
        past=PastBoot(key, one["began_s"], one["outcome"], one["startup_s"], phases),
        engine=one["engine"],
        version=one["version"],
        model=one["model"],
        log=one["log"],
        facts=json.loads(one["facts"]),
        number=one["number"],
        stored_s=one["stored_s"],
    )


def _phase(row: Sequence[Any]) -> PastPhase:
    phase, occurrence, elapsed_s, gap_s, complete, silence_s, cache, steps = row
    found = tuple(step_of(step) for step in json.loads(steps))
    return PastPhase(phase, occurrence, elapsed_s, gap_s, bool(complete), silence_s, cache, found)


def step_json(step: PastStep) -> list[Any]:
    """A step as it is stored: short, for a boot has dozens."""
    return [step.name, round(step.elapsed_s, 3), list(step.knots), int(step.complete)]


def step_of(stored: Sequence[Any]) -> PastStep:
    """A step from what was stored."""
    name, elapsed_s, knots, complete = stored
    return PastStep(str(name), float(elapsed_s), tuple(map(float, knots)), complete=bool(complete))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=str)
