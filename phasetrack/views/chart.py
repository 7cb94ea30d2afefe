"""What a chart is made of, and how much of it there may be."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phasetrack.core.model import PhaseRow
    from phasetrack.views.rows import Cells


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of everything a page draws. What does not fit is added up and said."""

    lanes: int = 60  # a healthy boot has about 12; a log that restarts a phase for ever has more than anybody reads
    strips: int = 600  # of ranks, in all lanes: 8 rows of 64 ranks are drawn one by one, 512 ranks in groups
    curves: int = 120  # inside the lanes
    activities: int = 120
    cards: int = 36  # curves drawn large
    boots: int = 60  # the latest
    warnings: int = 40
    arguments: int = 400  # SGLang has about 380
    text: int = 400  # characters of one value
    lines: int = 60  # of a failing record
    rank_cells: int = 1600

    def scaled(self, share: float) -> Limits:
        """The same, for a log that holds far more than the usual."""
        return Limits(*(max(int(getattr(self, field.name) * share), 4) for field in fields(self)))


ALL = Limits()


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of time in a lane."""

    left: float  # percent
    width: float  # percent
    tip: str  # what it says when pointed at
    kind: str = ""
    label: str = ""  # drawn beside it where there is room
    top: float = 0.0  # pixels from the lane's top, for strips
    path: str = ""  # SVG path in a box of 100 x 100, for curves


@dataclass(frozen=True, slots=True)
class Lane:
    """One phase."""

    key: str  # unique within a page
    row: PhaseRow
    cells: Cells
    family: str  # which colour
    glyph: str
    lines: str  # "lines 12–40"
    span: Piece | None = None
    curves: tuple[Piece, ...] = ()
    silence: Piece | None = None
    expected: Piece | None = None
    activities: tuple[Piece, ...] = ()
    strips: tuple[Piece, ...] = ()
    strip_px: float = 0.0
    height_px: float = 26.0


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled point of the time line."""

    left: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A whole boot over one time line."""

    begin_s: float | None  # log clock; None where the log prints no times
    length_s: float
    clock_s: float | None  # seconds of the day at its beginning, for labels
    ticks: tuple[Tick, ...]
    lanes: tuple[Lane, ...]
    gaps: tuple[Piece, ...]  # what no phase claims
    marks: tuple[Piece, ...]  # ready, failure, now
    left_out: tuple[int, float] | None  # rows that are not drawn, and their seconds together
