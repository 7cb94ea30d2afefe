"""A place of a replay as a user names it: a time, a line, a phase, a share of the whole, so long after the begin."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

_UNITS_S = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(min|[smhd]?)")


@dataclass(frozen=True, slots=True)
class AtTime:
    """A time of the log's clock; less than a day is a time of day."""

    clock_s: float


@dataclass(frozen=True, slots=True)
class AtLine:
    """A line, counted from 1."""

    line: int


@dataclass(frozen=True, slots=True)
class AtPhase:
    """Where a phase began: its id, or how its title begins."""

    name: str


@dataclass(frozen=True, slots=True)
class AtShare:
    """A share of the whole, 0 to 1."""

    share: float


@dataclass(frozen=True, slots=True)
class After:
    """So long after the begin."""

    elapsed_s: float


Where: TypeAlias = "AtTime | AtLine | AtPhase | AtShare | After"

FORMS = "15:42:03, line 120, target_graph, 40% or +90s"


def where(text: str) -> Where:
    """Read a place.

    Raises:
        ValueError: it is none.
    """
    text = text.strip()
    if found := re.fullmatch(r"(?:line|l)?\s*(\d+)", text, re.IGNORECASE):
        return AtLine(int(found[1]))
    if found := re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text):
        return AtShare(min(float(found[1]) / 100, 1.0))
    if text.startswith("+"):
        return After(length_s(text[1:]))
    if ":" in text:
        return AtTime(moment_s(text))
    if re.search(r"[A-Za-z]", text):
        return AtPhase(text)
    raise ValueError(text)


def moment_s(text: str) -> float:
    """Read a time as a log prints it: ``2026-11-30T15:42:03``, or ``15:42:03``, which is less than a day.

    Raises:
        ValueError: it is none.
    """
    for day in ("", "1970-01-01T"):
        with suppress(ValueError):
            return datetime.fromisoformat(day + text).replace(tzinfo=UTC).timestamp()
    raise ValueError(text)


def length_s(text: str) -> float:
    """Read a length of time: ``45m``, ``90s``, ``1h30m``, ``600``.

    Raises:
        ValueError: it is none.
    """
    parts = _LENGTH.findall(text)
    if not parts or _LENGTH.sub("", text).strip():
        raise ValueError(text)
    return sum(float(number) * _UNITS_S[unit or "s"] for number, unit in parts)
