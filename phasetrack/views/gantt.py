"""Snapshot to the geometry of a Gantt chart: what stands where, in percent of one time line.

Percent, not pixels: the same numbers draw a phone, a wide screen and a print, with or without scripts. Sizes
are bounded here, so that a page stays small for any log: what does not fit is added up and said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from phasetrack.core.model import Outcome, Status
from phasetrack.core.say import duration
from phasetrack.views.chart import ALL, Chart, Lane, Limits, Piece, Tick
from phasetrack.views.curves import curve_path
from phasetrack.views.rows import cells, total_s
from phasetrack.views.words import clock, count, glyph

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from phasetrack.core.model import PhaseRow, RankSpan, Snapshot

# Below these a silence is not worth a mark: a healthy bar pauses as long.
_SILENCE_S = 2.0
_SILENCE_SHARE = 0.01
# Narrower than this, strips of ranks are one line over the other and say nothing.
_VISIBLE = 0.4
# Room right of the last moment, so that a mark there is seen.
_MARGIN = 1.012
# A phase that is expected to take less is not worth a mark.
WORTH_S = 2.0
# About this many labels fit beside each other on a phone.
_TICKS = 6
FAMILIES = {
    "bootstrap": "boot", "download": "load", "dist_init": "boot", "target_load": "load", "draft_load": "load",
    "kv_cache": "memory", "draft_kv": "memory", "target_graph": "graph", "draft_graph": "graph", "http_up": "serve",
    "warmup": "serve", "ready": "serve", "serving": "serve",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Scale:
    begin_s: float
    length_s: float

    def at(self, moment_s: float) -> float:
        return round(min(max((moment_s - self.begin_s) / self.length_s, 0.0), 1.0) * 100, 3)

    def piece(self, begin_s: float, end_s: float, tip: str, kind: str = "") -> Piece:
        left = self.at(begin_s)
        return Piece(left, round(max(self.at(end_s) - left, 0.0), 3), tip, kind)

    def holds(self, moment_s: float) -> bool:
        return self.begin_s <= moment_s <= self.begin_s + self.length_s


def chart(known: Snapshot, *, prefix: str = "phase", length_s: float | None = None, limits: Limits = ALL) -> Chart:
    """Lay a boot out.

    Args:
        known: the snapshot.
        prefix: of the lanes' keys, where a page holds more than one chart.
        length_s: length of the time line, where several charts share one scale; None: as long as the start.
        limits: how much to draw.
    """
    begin, end = extent(known)
    total = total_s(known)
    rows, left_out = _drawn(known.phases, limits.lanes)
    lanes = [_lane(row, f"{prefix}-{k}", total) for k, row in enumerate(rows, 1)]
    if begin is None or end is None:
        return Chart(None, 0.0, None, (), tuple(lanes), (), (), left_out)
    scale = _Scale(begin, (length_s or max(end - begin, 1.0)) * _MARGIN)
    drawn = tuple(_draw(lanes, scale, known, limits))
    gaps, marks = tuple(_gaps(known, scale, end)), tuple(_marks(known, scale))
    return Chart(begin, scale.length_s, begin % 86400, _ticks(scale), drawn, gaps, marks, left_out)


def _draw(lanes: list[Lane], scale: _Scale, known: Snapshot, limits: Limits) -> Iterator[Lane]:
    """Give each lane its pieces, from one budget for all."""
    per_row = max(limits.strips // max(sum(len(lane.row.ranks) > 1 for lane in lanes), 1), 4)
    curves, activities = limits.curves, limits.activities
    for lane in lanes:
        drawn = _drawn_lane(lane, scale, known, (per_row, curves, activities))
        curves, activities = curves - len(drawn.curves), activities - len(drawn.activities)
        yield drawn


def extent(known: Snapshot) -> tuple[float | None, float | None]:
    """Answer from when to when the start is drawn; serving, which may last for days, is not."""
    starts = [row.began_s for row in known.phases if row.began_s is not None]
    begin = known.started_at_s if known.started_at_s is not None else min(starts, default=None)
    if begin is None:
        return None, None
    begin = min([begin, *starts])
    if known.ready_at_s is not None:
        return begin, known.ready_at_s
    ends = [row.ended_s for row in known.phases if row.ended_s is not None and row.phase != "serving"]
    failed = known.failure.at_s if known.failure is not None else None
    return begin, max([begin, *starts, *ends, *(t for t in (known.now_s, failed) if t is not None)])


def _drawn(rows: Sequence[PhaseRow], most: int) -> tuple[list[PhaseRow], tuple[int, float] | None]:
    """The rows to draw: all, or the longest of too many, in their order."""
    if len(rows) <= most:
        return list(rows), None
    longest = sorted(range(len(rows)), key=lambda k: (-(rows[k].elapsed_s or 0.0), k))
    kept, rest = set(longest[:most]), longest[most:]
    return [row for k, row in enumerate(rows) if k in kept], (len(rest), sum(rows[k].elapsed_s or 0.0 for k in rest))


def _lane(row: PhaseRow, key: str, total: float | None) -> Lane:
    family = "failed" if row.status is Status.FAILED else FAMILIES.get(row.phase, "other")
    return Lane(key, row, cells(row, total), family, glyph(row.status), lines_of(row.begin_line, row.end_line))


def lines_of(begin: int | None, end: int | None) -> str:
    """``line 12``, ``lines 12–40``; empty where the lines were not counted."""
    if begin is None:
        return ""
    return f"line {begin}" if end is None or end == begin else f"lines {begin}–{end}"


def _drawn_lane(lane: Lane, scale: _Scale, known: Snapshot, most: tuple[int, int, int]) -> Lane:
    """Place a lane's pieces: no more than so many strips, curves and activities."""
    row = lane.row
    if row.began_s is None or not scale.holds(row.began_s) or row.phase in {"ready", "serving"}:
        return lane
    end = row.ended_s if row.ended_s is not None else scale.begin_s + scale.length_s
    if row.elapsed_s is not None and row.ended_s is None:
        end = row.began_s + row.elapsed_s
    strips, strip_px = _strips(row, scale, end, most[0])
    strips = strips if any(strip.width >= _VISIBLE for strip in strips) else []
    expected = _expected(row, scale)
    activities = tuple(islice(_activities(known, row, scale, end), most[2]))
    room = 26.0 + (5.0 if activities else 0.0) + (7.0 if expected is not None else 0.0)
    return replace(
        lane,
        span=scale.piece(row.began_s, end, _tip(lane), kind=lane.family),
        curves=tuple(islice(_curves(row, scale), most[1])),
        silence=_silence(row, scale),
        expected=expected,
        activities=activities,
        strips=tuple(replace(strip, top=room - 3 + k * (strip_px + 1)) for k, strip in enumerate(strips)),
        strip_px=strip_px,
        height_px=room + (len(strips) * (strip_px + 1) if strips else 0.0),
    )


def _tip(lane: Lane) -> str:
    cell, row = lane.cells, lane.row
    parts = [f"{cell.title[:120]}: {'about ' if cell.inferred else ''}{cell.elapsed}"]
    parts.append(f"{clock(row.began_s)} to {clock(row.ended_s)}" if row.ended_s is not None else str(row.status))
    parts += [text for text in (cell.progress, lane.lines, cell.note) if text]
    return " · ".join(parts)


def _curves(row: PhaseRow, scale: _Scale) -> Iterator[Piece]:
    for bar in row.bars:
        if bar.began_s is None or bar.elapsed_s is None or len(bar.curve) < 3 or not bar.total:
            continue
        tip = f"{bar.title[:120]}: {count(bar.done)}/{count(bar.total)} in {duration(bar.elapsed_s)}"
        piece = scale.piece(bar.began_s, bar.began_s + bar.elapsed_s, tip)
        if piece.width > 0:
            yield Piece(piece.left, piece.width, tip, path=curve_path(bar))


def _silence(row: PhaseRow, scale: _Scale) -> Piece | None:
    longest, since = row.longest_silence_s, row.silence_from_s
    if longest is None or since is None or longest < max(_SILENCE_S, _SILENCE_SHARE * scale.length_s):
        return None
    piece = scale.piece(since, since + longest, f"Silent for {duration(longest)} from {clock(since)}")
    return Piece(piece.left, piece.width, piece.tip, label=duration(longest) if piece.width >= 8 else "")


def _expected(row: PhaseRow, scale: _Scale) -> Piece | None:
    expected = row.expected
    if expected is None or row.began_s is None or expected.high_s < WORTH_S:
        return None
    tip = f"Expected {duration(expected.low_s)} to {duration(expected.high_s)}, most likely {duration(expected.mid_s)}"
    return scale.piece(row.began_s + expected.low_s, row.began_s + expected.high_s, tip)


def _activities(known: Snapshot, row: PhaseRow, scale: _Scale, end: float) -> Iterator[Piece]:
    for doing in known.activities:
        if doing.phase != row.phase or doing.began_s is None or not (row.began_s or 0) <= doing.began_s <= end:
            continue
        until = doing.ended_s if doing.ended_s is not None else end
        yield scale.piece(doing.began_s, until, f"{doing.title[:120]}: {duration(until - doing.began_s)}")


def _strips(row: PhaseRow, scale: _Scale, end: float, most: int) -> tuple[list[Piece], float]:
    """One strip a rank, or one a group of neighbours where there are too many; and how thick they are."""
    spans = [span for span in row.ranks if span.began_s is not None]
    if len(spans) < 2:
        return [], 0.0
    size = -(-len(spans) // most)
    groups = [spans[k : k + size] for k in range(0, len(spans), size)]
    thick = 4.0 if len(groups) <= 8 else 2.0 if len(groups) <= 32 else 1.0
    return [_strip(row, group, scale, end) for group in groups], thick


def _strip(row: PhaseRow, spans: list[RankSpan], scale: _Scale, end: float) -> Piece:
    began = min(span.began_s for span in spans if span.began_s is not None)
    ended = max(span.ended_s if span.ended_s is not None else end for span in spans)
    names = rank_name(spans[0].rank) + (f" to {rank_name(spans[-1].rank)}" if len(spans) > 1 else "")
    last = any(span.rank == row.slowest_rank for span in spans) and (row.skew_s or 0) > 0
    tip = f"{names}: {duration(ended - began)}, {clock(began)} to {clock(ended)}"
    if last:
        tip += f", last, {duration(row.skew_s)} after the first"
    if any(span.ended_s is None for span in spans):
        tip += ", not finished"
    return scale.piece(began, ended, tip, kind="last" if last else "")


def rank_name(rank: str) -> str:
    """A rank's tag; the lone rank of a log that prints none."""
    return rank or "untagged"


def _gaps(known: Snapshot, scale: _Scale, end: float) -> Iterator[Piece]:
    """The stretches of the start that no phase claims; the snapshot says how long they are together."""
    if known.started_at_s is None or known.between_phases_s is None:
        return
    reach = known.started_at_s
    begun = (row for row in known.phases if row.began_s is not None)
    for begin, stop in sorted((row.began_s or 0.0, row.ended_s if row.ended_s is not None else end) for row in begun):
        if min(begin, end) > reach:
            yield scale.piece(reach, min(begin, end), f"Between phases: {duration(min(begin, end) - reach)}")
        reach = max(reach, stop)


def _marks(known: Snapshot, scale: _Scale) -> Iterator[Piece]:
    if known.ready_at_s is not None:
        yield Piece(scale.at(known.ready_at_s), 0.0, f"Ready at {clock(known.ready_at_s)}", "ready", "ready")
    failure = known.failure
    if failure is not None and failure.at_s is not None and scale.holds(failure.at_s):
        yield Piece(scale.at(failure.at_s), 0.0, f"First cause at {clock(failure.at_s)}", "failed", "first cause")
    if known.outcome is Outcome.STARTING and known.now_s is not None:
        yield Piece(scale.at(known.now_s), 0.0, f"Now: {clock(known.now_s)}", "now", "now")


def _ticks(scale: _Scale) -> tuple[Tick, ...]:
    step = tick_step(scale.length_s / _TICKS)
    n = int(scale.length_s / _MARGIN // step)
    return tuple(Tick(round(100 * k * step / scale.length_s, 3), offset(k * step)) for k in range(n + 1))


def tick_step(least_s: float) -> float:
    """The round step that is no less than this."""
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
    found = next((step for step in steps if step >= least_s), None)
    return float(found) if found is not None else -(-least_s // 86400) * 86400.0


def offset(seconds: float) -> str:
    """A label of the time line: ``0``, ``40 s``, ``2:30``, ``1:05:00``."""
    if seconds < 120:
        return f"{seconds:g} s" if seconds else "0"
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"
