"""What is odd about a log as a whole, and changes how its answer is to be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phasetrack.core.model import Outcome, Warned
from phasetrack.core.say import duration
from phasetrack.core.state import clock_went_back

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.state import Boot

# Two clocks that tell the same moment differ by no more than the time zones do.
_ZONES_S = 26 * 3600.0

DATED = "log.dated"


def oddities(boot: Boot | None, *, written_s: float | None, dated: bool) -> Iterator[Warned]:
    """Tell them.

    Args:
        boot: the boot that is shown.
        written_s: when the log last grew, our clock; None where that is not known.
        dated: whether its times have dates.
    """
    if boot is None:
        return
    if dated and written_s is not None and boot.stamp_s is not None and abs(written_s - boot.stamp_s) > _ZONES_S:
        apart = duration(abs(written_s - boot.stamp_s))
        way = "older" if boot.stamp_s < written_s else "later"
        yield Warned(
            DATED, f"The log's own times are {apart} {way} than the file: a copy, or its clock is wrong.", None
        )
    if clock_went_back(boot):
        yield Warned("log.clock_back", "The clock went back during this start: what it took is not known.", None)
    if boot.rows and not boot.landmarks and boot.outcome is Outcome.STARTING:
        silent = "This log holds bars and none of the engine's messages, so it will never say ready"
        yield Warned("log.bars_only", f"{silent} (its log level hides them; ask over HTTP: --probe health).", None)
