"""The README's picture: the real screen on a real recording, as SVG.

    python -m tests.screens.shot > tests/screens/tail.svg
    python -m tests.screens.shot 07a-tp2-file 45 --keys r

The recording's bytes are fed as they arrived, up to a second of it; what a user saw then is what is drawn.
"""

from __future__ import annotations

import argparse
import json
import sys

from phasetrack.core.model import Chunk, Tick
from phasetrack.core.tracker import Tracker
from tests.screens.picture import Fed, svg
from tests.talk import FIXTURES, patterns

NAME, AT_S = "07b-tp2-eagle3-pipe", 55.0
COLUMNS, ROWS = 110, 30


def feed_until(name: str, at_s: float) -> Fed:
    """What was known of a recording then."""
    lines = (FIXTURES / name / "server.cast").read_text("utf-8").splitlines()
    began = float(json.loads(lines[0])["timestamp"])
    tracker, data = Tracker(patterns(), "server.log"), b""
    for when, kind, text in map(json.loads, lines[1:]):
        if when > at_s:
            break
        if kind == "o":
            data += text.encode()
            tracker.feed(Chunk(text.encode(), began + when))
    tracker.feed(Tick(began + at_s))
    return Fed(tracker.snapshot(began + at_s), data)


def main() -> None:
    """Print the SVG."""
    parser = argparse.ArgumentParser(description="Draw the screen on a recording, as SVG, to standard output.")
    parser.add_argument("name", nargs="?", default=NAME, help="the recording")
    parser.add_argument("at_s", nargs="?", type=float, default=AT_S, help="seconds since its first byte")
    parser.add_argument("--keys", nargs="*", default=[], help="keys to press first")
    parser.add_argument("--size", nargs=2, type=int, default=[COLUMNS, ROWS], metavar=("COLUMNS", "ROWS"))
    asked = parser.parse_args()
    sys.stdout.write(svg(feed_until(asked.name, asked.at_s), *asked.size, asked.keys) + "\n")


if __name__ == "__main__":
    main()
