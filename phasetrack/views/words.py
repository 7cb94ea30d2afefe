"""Points in time, sizes and counts in words, and the glyphs of a status. Durations are ``core.say``'s."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from phasetrack.core.model import Range, Status
from phasetrack.core.say import duration, size

if TYPE_CHECKING:
    from phasetrack.core.model import Eta, Progress, Snapshot, Zone

__all__ = [
    "ascii_glyph",
    "clock",
    "count",
    "duration",
    "eta_words",
    "iso",
    "phase_title",
    "progress",
    "ready_when",
    "size",
    "span_of",
]

_GLYPHS = {
    Status.PENDING: ("·", "."),
    Status.RUNNING: ("▶", ">"),
    Status.DONE: ("✓", "+"),
    Status.SKIPPED: ("-", "-"),
    Status.FAILED: ("✗", "x"),
}


def iso(at_s: float | None, zone: Zone) -> str | None:
    """A point in time as the log's own wall clock prints it; without a date where the log prints none."""
    if at_s is None:
        return None
    moment = datetime.fromtimestamp(round(at_s, 3), UTC)
    spec = "seconds" if moment.microsecond == 0 else "milliseconds"
    if not zone.dated:
        return moment.time().isoformat(spec)
    text = moment.replace(tzinfo=None).isoformat(timespec=spec)
    return text if zone.offset_s is None else text + _offset(zone.offset_s)


def _offset(seconds: int) -> str:
    sign = "-" if seconds < 0 else "+"
    return f"{sign}{abs(seconds) // 3600:02d}:{abs(seconds) % 3600 // 60:02d}"


def phase_title(known: Snapshot, phase: str | None) -> str:
    """A phase as people call it, whatever row shows it."""
    if phase in {"ready", "serving"}:
        return "Serving"
    named = next((row.title for row in known.phases if row.phase == phase), None)
    return named if named is not None else (phase or "").replace("_", " ").capitalize()


def ready_when(known: Snapshot) -> str:
    """``at 2026-11-30T15:42:45 after 41 s``: when a server was ready, as far as its log tells."""
    if known.ready_at_s is None:
        return "before this log begins" if known.unopened is not None else "at a time that no line tells"
    took = "" if known.startup_s is None else f" after {duration(known.startup_s)}"
    return f"at {iso(known.ready_at_s, known.zone)}{took}"


def clock(at_s: float | None) -> str:
    """``15:42:03``; ``--:--:--`` where unknown."""
    return "--:--:--" if at_s is None else datetime.fromtimestamp(at_s, UTC).strftime("%H:%M:%S")


def count(value: float) -> str:
    """A whole number plainly, a scaled one shortly: ``64``, ``598M``."""
    for unit, scale in (("G", 1e9), ("M", 1e6)):
        if value >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:g}" if value == int(value) and value < 1e6 else f"{value:.1f}"


def progress(value: Progress | None) -> str:
    """``36/64 shards``; empty where there is no bar."""
    if value is None:
        return ""
    total = "?" if value.total is None else count(value.total)
    unit = "" if value.unit in {"", "it"} else f" {value.unit}"
    return f"{count(value.done)}/{total}{unit}"


def cache_words(cache: str | None) -> str:
    """``cold cache``, ``perhaps cold cache`` where only its pace tells; a guess that nothing was amiss is no news."""
    return {"cold": "cold cache", "warm": "warm cache", "~cold": "perhaps cold cache"}.get(cache or "", "")


def span_of(value: Range | None) -> str:
    """``6–11 min``: a range in one unit; empty where unknown."""
    if value is None:
        return ""
    low, high = _two(value.low_s), _two(value.high_s)
    if high < 120:
        return f"{low:g}–{high:g} s" if low != high else f"{high:g} s"
    scale, unit = (60, "min") if high < 7200 else (3600, "h")
    low, high = _two(value.low_s / scale), _two(value.high_s / scale)
    return f"{low:g}–{high:g} {unit}" if low != high else f"{high:g} {unit}"


def eta_words(eta: Eta | None) -> str:
    """``ready in 6–11 min, about 15:52 (9 like boots)``; the reason where there is no number; empty for nothing."""
    if eta is None:
        return ""
    if eta.low_s is None or eta.mid_s is None or eta.high_s is None:
        return f"no estimate: {eta.why}" if eta.why else ""
    text = f"ready in {span_of(Range(eta.low_s, eta.mid_s, eta.high_s))}"
    text += f", about {clock(eta.finish_s)}" if eta.finish_s is not None else ""
    text += f" ({eta.source})" if eta.source else ""
    return f"{text}; {eta.why}" if eta.why else text


def _two(value: float) -> float:
    """Two significant figures; nothing finer than a second is promised."""
    return float(f"{value:.2g}") if value >= 1 else round(value, 1)


def glyph(status: Status, *, plain: bool = False) -> str:
    """One cell that tells the status without colour."""
    return _GLYPHS[status][1 if plain else 0]


def ascii_glyph(status: Status) -> str:
    """The same in ASCII."""
    return glyph(status, plain=True)
