"""Figures in words, the same everywhere: verdicts, screens, reports."""

from __future__ import annotations

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


def duration(seconds: float | None) -> str:
    """``0.4 s``, ``12 s``, ``3 min 20 s``, ``1 h 09 min``, ``2 d 3 h``; ``unknown`` for None.

    Rounded, never up to a unit that is not full: 59.7 s is ``60 s``.
    """
    if seconds is None:
        return "unknown"
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds < 9.95:
        return f"{seconds:.1f} s" if seconds else "0 s"
    whole = round(seconds)
    if whole < 2 * _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S:02d} s"
    if whole < _DAY_S:
        return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S:02d} min"
    return f"{whole // _DAY_S} d {whole % _DAY_S // _HOUR_S} h"


def size(value: float | None) -> str:
    """Bytes with two significant decimals at most: ``8.5 GiB``."""
    if value is None:
        return "unknown"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
