r"""Runs of frames of one bar, read at speed: a load of hours is one physical line of millions of them.

A frame is taken here if it is nothing but a bar and ends in a lone carriage return. What it means is decided by
the same code as ever; only the way there is shorter, where the frame before it was the same bar's. Most frames
change nothing but their rate and are not even parsed; the last of these counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core.bars import clock_of, number_of, rate_of
from phasetrack.core.model import Bar, Place

if TYPE_CHECKING:
    from collections.abc import Iterator

# A bar, a carriage return, and something else than a line feed behind it.
_TEXT = rb"[^%\x00-\x1f\[\]\x7f]"
_RUN = re.compile(rb"(?>(?:%b{0,400}%%%b{0,400}\[%b{0,200}\]\r++(?=[^\n]))+)" % (_TEXT, _TEXT, _TEXT))
# Loading safetensors checkpoint shards:  33% Completed | 1/3 [00:01<00:03,  1.74s/it]
_FRAME = re.compile(
    rb"([^%]*?)\s{0,40}\d{1,3}%(?: Completed)? ?\|(?:[^|]*\|)?\s*"
    rb"(\d{1,15}(?:\.\d{1,9})?[kKMGTP]?)/(\d{1,15}(?:\.\d{1,9})?[kKMGTP]?)\s+"
    rb"\[(\d{1,4}(?::\d\d){1,2})<[^,]*(?:, *(.*))?\]\Z"
)


class Frames(NamedTuple):
    """Frames of one line, each with its carriage return."""

    data: bytes
    frames: int
    place: Place  # of the first one


class Frame(NamedTuple):
    """One frame. Where its counts are known, ``head`` and ``total`` tell which bar it may be of."""

    raw: bytes
    place: Place
    head: bytes = b""
    total: bytes = b""
    bar: Bar | None = None


def run_at(buffer: bytes, position: int) -> int | None:
    """Where the run of frames ends that begins at a frame's begin; None where none does."""
    found = _RUN.match(buffer, position)
    return None if found is None else found.end()


def read(frames: Frames) -> Iterator[Frame]:
    """Yield the frames that change more than a rate, and the last ones of those that do not."""
    line, frame, offset = frames.place
    same, kept = b"", None
    for raw in frames.data.split(b"\r"):
        if raw:
            place = Place(line, frame, offset)
            if same and raw.startswith(same):
                kept = raw, place
            else:
                if kept is not None:
                    yield _parsed(*kept)[0]
                    kept = None
                found, same = _parsed(raw, place)
                yield found
            frame += 1
        offset += len(raw) + 1
    if kept is not None:
        yield _parsed(*kept)[0]


def _parsed(raw: bytes, place: Place) -> tuple[Frame, bytes]:
    """Read a frame; answer with it the beginning that all frames share which tell no more."""
    found = _FRAME.match(raw)
    if found is None:
        return Frame(raw, place), b""
    head, done, total, elapsed, rate = found.groups()
    per_s, unit = rate_of(rate.decode("utf-8", "replace")) if rate else (None, "it")
    bar = Bar("", number_of(done.decode()), number_of(total.decode()), clock_of(elapsed.decode()), per_s, unit)
    return Frame(raw, place, head, total, bar), raw[: found.end(4) + 1]
