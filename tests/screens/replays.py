"""Pictures of replays at fixed moments, reached by keys. A human runs it, then reads the change.

    python -m tests.screens.replays [NAME …]

The clock that a replay follows stands still, so only keys move it: each picture is of exactly one moment.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.player import Begin, Player
from phasetrack.tape import Tape
from phasetrack.views.tui import prepare
from phasetrack.views.tui.feed import Options
from tests.screens.picture import read
from tests.talk import FIXTURES, patterns

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from phasetrack.views.tui.app import Screen

FOLDER = Path(__file__).parent
SIZES = ((80, 24), (120, 40))
PATIENCE_S = 60.0


class Scene(NamedTuple):
    """A moment of a recording, and the way there."""

    log: str
    keys: tuple[str, ...]
    at_s: float  # since the begin, where the keys lead
    demo: bool = False


def typed(place: str) -> tuple[str, ...]:
    """The keys that go to a place."""
    return ("space", "colon", *(_NAMES.get(letter, letter) for letter in place), "enter")


_NAMES = {"+": "plus", ":": "colon", "%": "percent_sign", "_": "underscore", " ": "space"}

SCENES = {
    "replay-load": Scene("07b-tp2-eagle3-pipe/server.cast", typed("+40s"), 40.0),
    "replay-quiet": Scene("03a-eagle3-file-coldjit/server.log", typed("15:40:00"), 59.0),
    "replay-failed": Scene("06a1-mem-fraction-too-small/server.log", (*typed("target_load"), *["]"] * 2), 26.0),
    "replay-postmortem": Scene("06a1-mem-fraction-too-small/server.log", (*typed("50%"), "p", "j", "j"), 13.0),
    "replay-demo": Scene("07b-tp2-eagle3-pipe/server.cast", ("space", "9"), 72.75, demo=True),
}


def golden(name: str) -> str:
    """What a golden holds."""
    parts = []
    for size in SIZES:
        text, looks = read(asyncio.run(asyncio.wait_for(_svg(SCENES[name], size), PATIENCE_S)))
        styles = f"--- styles: row, column, look, text\n{looks}\n" if size == SIZES[0] else ""
        parts.append(f"--- {size[0]} x {size[1]}\n{text}\n{styles}")
    return "\n".join(parts)


async def _svg(scene: Scene, size: tuple[int, int]) -> str:
    prepare()
    from phasetrack.views.tui.app import Screen  # noqa: PLC0415 - after the switches

    tape = Tape(patterns(), str(FIXTURES / scene.log))
    app = Screen(lambda: Player(tape, Begin(demo=scene.demo), ours=lambda: 0.0), Options(Path(scene.log).name))
    async with app.run_test(size=size) as pilot:
        await _until(app, pilot, 0.0)
        for key in scene.keys:
            await pilot.press(key)
        await _until(app, pilot, scene.at_s)
        await pilot.pause()
        picture = app.export_screenshot(title=scene.log)
    app.spool.close()
    return picture


async def _until(app: Screen, pilot: Pilot[int], at_s: float) -> None:
    """Wait for the news of a moment; what went wrong in the feed's thread is raised here, not waited for."""
    while not _stands(app, at_s):
        if app.spool.fault is not None:
            raise app.spool.fault
        await pilot.pause()


def _stands(app: Screen, at_s: float) -> bool:
    replay = app.desk.news.replay
    return replay is not None and replay.going is None and abs(replay.spent_s - at_s) < 0.5


def main() -> None:
    """Write the goldens that are named, or all."""
    for name in sys.argv[1:] or SCENES:
        (FOLDER / f"{name}.txt").write_text(golden(name), encoding="utf-8")


if __name__ == "__main__":
    main()
