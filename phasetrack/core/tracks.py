"""Which phase and which rank a bar belongs to, and when its frames were painted. Changes nothing but a track.

Bars carry no rank and no stamp. A weight bar is drawn by the first rank of the world, a capture bar by the
first rank of each tensor-parallel group (``knowledge/sglang.md`` §2); replicas draw theirs in turn on one line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.state import GRAPHS, LOADS, BarTrack

if TYPE_CHECKING:
    from phasetrack.core.model import Bar, Place, Rule
    from phasetrack.core.state import Boot, Row, Span


def rows_of(boot: Boot, phase: str) -> list[Row]:
    """The rows that a bar of a rule's phase can count for: target and draft look the same."""
    family = next((family for family in (LOADS, GRAPHS) if phase in family), (phase,))
    return [row for row in boot.rows if row.phase in family]


def row_of(boot: Boot, bar: Bar, rule: Rule) -> Row | None:
    """The row that a bar counts for: the one whose bar it continues, else the one that waits for a bar."""
    rows = rows_of(boot, rule.phase or "")
    going = [row for row in rows if _continues(row, bar)]
    if going:
        return going[-1]
    open_rows = [row for row in rows if row.is_open]
    waiting = [row for row in open_rows if _awaits_bar(row)] or open_rows
    return max(waiting, key=_last_bearer, default=None)


def _continues(row: Row, bar: Bar) -> bool:
    track = track_of(row, bar)
    return track is not None and not (track.is_full and not bar.done)


def _awaits_bar(row: Row) -> bool:
    busy = {track.rank for track in row.bars if not track.is_full}
    return any(span.rank not in busy for span in row.bearers())


def _last_bearer(row: Row) -> int:
    """Where the rank that draws its bar began last."""
    return max(map(_begin_offset, row.bearers()), default=row.begin.offset)


def _begin_offset(span: Span) -> int:
    return span.begin.offset


def track_of(row: Row, bar: Bar) -> BarTrack | None:
    """The bar of a row that a frame belongs to; None where it is a new one.

    A frame continues the furthest of each rank's newest bars that has its words and that it does not set back.
    A frame past 0 that fits none is a late one of the nearest.
    """
    newest = [track for track in {t.rank: t for t in row.bars}.values() if _is_same(track, bar)]
    fitting = [track for track in newest if track.goes_on(bar) and not (track.is_full and bar.done == 0)]
    if row.moved is not None and row.moved.is_full and row.moved in fitting:
        return row.moved  # the last frame is painted twice
    moving = [track for track in fitting if not track.is_full] or fitting
    nameless = [track for track in moving if bar.desc and not track.title]
    if nameless:
        return nameless[-1]  # tqdm paints a new bar once without its words, then with them
    if moving:
        return max(moving, key=lambda track: track.done)
    late = [track for track in newest if not track.is_full and bar.done > 0]
    return min(late, key=lambda track: abs(track.done - bar.done), default=None)


def _is_same(track: BarTrack, bar: Bar) -> bool:
    """Whether a frame can be of a bar at all: its words come with the second frame and stay."""
    return track.total == bar.total and (not track.title or title_of(bar) == track.title)


def is_alone(boot: Boot, row: Row, track: BarTrack) -> bool:
    """Whether no other bar could claim the next frame of this one: none has its total."""
    return all(other is track or other.total != track.total for rows in rows_of(boot, row.phase) for other in rows.bars)


def title_of(bar: Bar) -> str:
    """A bar's words, without what changes in brackets while it moves."""
    return bar.desc.partition("(")[0].strip()


def new_track(row: Row, bar: Bar, place: Place, unit: str) -> BarTrack:
    """Begin a bar in a row, for the first rank that draws one and has none."""
    bearers = row.bearers()
    busy = {track.rank for track in row.bars if not track.is_full}
    free = [span for span in bearers if span.rank not in busy] or (bearers if len(bearers) == 1 else [])
    rank = min(free, key=_begin_offset).rank if free else ""
    track = BarTrack(title_of(bar), rank, unit, bar.done, bar.total, place)
    row.bars.append(track)
    return track


def time_of(boot: Boot, row: Row, track: BarTrack, bar: Bar, at_s: float | None) -> float | None:
    """When a frame was painted: by the transport's stamp, else by its own elapsed field.

    The bar began no earlier than its rank's span, nor than the stamped record before any of its frames.
    """
    if at_s is None and bar.elapsed_s is not None:
        floor = max((s for s in (boot.stamp_s, _span_began(row, track)) if s is not None), default=None)
        if floor is not None:
            base = floor - bar.elapsed_s
            track.base_s = base if track.base_s is None else max(track.base_s, base)
        at_s = None if track.base_s is None else track.base_s + bar.elapsed_s
    if track.began_s is None:
        track.began_s = at_s
    return at_s


def _span_began(row: Row, track: BarTrack) -> float | None:
    span = row.spans.get(track.rank)
    return row.began_s if span is None else span.began_s
