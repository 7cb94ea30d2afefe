"""Where a replay stands, and what may be wished of it: what its screen is drawn from, and what its keys become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from phasetrack.core.hindsight import Hindsight
    from phasetrack.core.model import Snapshot


@dataclass(frozen=True, slots=True)
class Stage:
    """A phase on the scrubber: from its begin to the next one's."""

    title: str
    phase: str
    begin: float  # share of the width
    end: float


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment on the scrubber."""

    kind: str  # ready, failed, stopped
    share: float


@dataclass(frozen=True, slots=True)
class Replay:
    """Where a replay stands, and what it plays."""

    playing: bool
    speed: float
    share: float  # of the scrubber's width
    clock_s: float | None  # the log's own clock; None where it has none that can be used
    how: str  # how the newest line's time is known: exact, stamped, inferred, spread
    spent_s: float  # since the boot's begin
    total_s: float
    stages: tuple[Stage, ...]
    marks: tuple[Mark, ...]
    truth: Snapshot  # how the boot ended
    came: Hindsight | None = None  # what came true
    idle_s: float | None = None  # longer silences pass in this time
    boots: int = 1
    note: str = ""  # on the log's times as a whole
    said: str = ""  # the answer to the last wish
    going: float | None = None  # how far a seek is that takes its time
    demo: bool = False


@dataclass(frozen=True, slots=True)
class PlayPause:
    """Play on, or stand still; at the end, play from the beginning."""


@dataclass(frozen=True, slots=True)
class Faster:
    """So many steps faster; slower where negative."""

    steps: int


@dataclass(frozen=True, slots=True)
class Skip:
    """So many seconds on; back where negative."""

    seconds: float


@dataclass(frozen=True, slots=True)
class SkipPhase:
    """To the begin of the next phase, or of the one before (-1)."""

    steps: int


@dataclass(frozen=True, slots=True)
class ToShare:
    """To a share of the scrubber's width."""

    share: float


@dataclass(frozen=True, slots=True)
class ToByte:
    """To when a byte of the log was written."""

    offset: int


@dataclass(frozen=True, slots=True)
class GoTo:
    """To a place in the user's words."""

    text: str


@dataclass(frozen=True, slots=True)
class OpenBoot:
    """Show an earlier boot; None: the latest again. A live log has this wish only."""

    boot: int | None


Wish: TypeAlias = "PlayPause | Faster | Skip | SkipPhase | ToShare | ToByte | GoTo | OpenBoot"
