"""The latest boot of a huge log, found from its end, and what of it must be read to answer.

A server that has been serving for days leaves gigabytes behind a start of some kilobytes. What is read of a file
beyond ``WHOLE_BYTES``, exactly:

1.  From the end backwards, by search alone, until the last line that opens a boot (``server_args``). Where that boot
    begins is told by what stands shortly before: its preamble, and arguments that were printed twice.
2.  From there on everything, until the server serves.
3.  Then the last ``TAIL_BYTES``, and ``MARGIN_BYTES`` around every traceback before them.

What is left out in between holds no begin of a boot and no traceback; another sign of an end would be missed only if
the server had gone on writing ``TAIL_BYTES`` after it. A log of several servers or nodes, one in which no boot opens
with its arguments, and one with too many tracebacks are read whole.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from phasetrack.core import plan
from phasetrack.core.classify import Classifier, Matcher
from phasetrack.core.machine import PREAMBLE_S, is_early, opens
from phasetrack.core.model import Chunk, End, Place, Segment
from phasetrack.core.segments import clean
from phasetrack.core.tracker import Tracker
from phasetrack.edges.reading import MIB, Reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import Event, PatternSet
    from phasetrack.edges.reading import Reach

_TRACEBACK = b"Traceback (most recent call last)"
_TRACEBACKS = 256
_OPENINGS = 64
# A line of arguments; a search block overlaps the next by as much.
_LINE_BYTES = 64 * 1024


def search(patterns: PatternSet, fd: int, reach: Reach) -> Reading:
    """Find the latest boot of an open log, and what must be read of it."""
    return _Search(patterns, fd, reach).run(os.fstat(fd).st_size)


class _Search:
    """One search in one file."""

    def __init__(self, patterns: PatternSet, fd: int, reach: Reach) -> None:
        self._patterns, self._fd, self._reach = patterns, fd, reach
        self._classifier = Classifier(patterns)
        self._signs: list[bytes] = []
        self._traces: list[int] = []  # where tracebacks stand, the last one first

    def run(self, size: int) -> Reading:
        tail = self._events(self._line_begin(max(size - _LINE_BYTES, 0)), size)
        self._signs = list(_signs(self._patterns, {event.rule.engine for event in tail if event.rule is not None}))
        opening = self._opening_before(size) if self._signs and all(self._signs) else None
        if opening is None or not _is_alone(opening) or len(self._traces) > _TRACEBACKS:
            return Reading()
        parts = tuple(self._parts(size))
        found = self._begin_of(opening)
        return Reading() if found is None else Reading(found[0], found[1], parts)

    def _opening_before(self, end: int) -> Event | None:
        """The last line before ``end`` that opens a boot; tracebacks behind it are noted."""
        while end > 0:
            begin = max(end - MIB, 0)
            block = os.pread(self._fd, end - begin + _LINE_BYTES, begin)
            found = self._opening_in(block, begin, end)
            self._note_traces(block[: end - begin + len(_TRACEBACK) - 1], begin, found)
            if found is not None:
                return found
            end = begin
        return None

    def _opening_in(self, block: bytes, begin: int, end: int) -> Event | None:
        """The last opening whose sign begins in the first ``end - begin`` bytes of a block."""
        places = {sign: _last(block, sign, end - begin + len(sign) - 1) for sign in self._signs}
        while (at := max(places.values())) >= 0:
            event = self._read_line(begin + at)
            if event is not None:
                return event
            places = {sign: _last(block, sign, min(place, at) + len(sign) - 1) for sign, place in places.items()}
        return None

    def _read_line(self, at: int) -> Event | None:
        """What the line says that holds a sign, if it opens a boot."""
        before = os.pread(self._fd, min(at, _LINE_BYTES), max(at - _LINE_BYTES, 0))
        begin = at - len(before) + before.rfind(b"\n") + 1
        raw = os.pread(self._fd, _LINE_BYTES, begin).partition(b"\n")[0]
        events = self._classifier.classify(Segment(clean(raw), Place(None, 1, begin), End.LF))
        return next(filter(_opens, events), None)

    def _note_traces(self, block: bytes, begin: int, found: Event | None) -> None:
        floor = -1 if found is None else found.place.offset - begin
        at = block.rfind(_TRACEBACK)
        while floor < at:
            self._traces.append(begin + at)
            at = block.rfind(_TRACEBACK, 0, at)

    def _begin_of(self, opening: Event) -> tuple[int, tuple[int, float] | None] | None:
        """Where the line is that opens the boot, and where and when it began before; None where that cannot be told."""
        end = self._line_end(opening.place.offset)
        for _ in range(_OPENINGS):
            at = opening.place.offset
            near = max(at - self._reach.near_bytes, 0)
            before = self._opening_in(os.pread(self._fd, at - near, near), near, at)
            if before is None:
                return self._with_preamble(opening) if self._opening_before(near) is not None else (0, None)
            scratch = Tracker(self._patterns, line=None, offset=before.place.offset, midway=True)
            scratch.feed(Chunk(os.pread(self._fd, end - before.place.offset, before.place.offset)))
            known = scratch.of_log()
            if len(known.boots) > 1:
                boot = known.boots[-1]
                early = None if boot.started_at_s is None else (boot.offset, boot.started_at_s)
                return opening.place.offset, early
            if known.ready_at_s is not None:
                return None  # another node's start, behind this one's
            opening = before
        return None

    def _with_preamble(self, opening: Event) -> tuple[int, tuple[int, float] | None] | None:
        """The same, megabytes behind the boot before: it began with its first stamped line, as the machine has it.

        None where its stamp is earlier than theirs, for then it may be another node's.
        """
        at, here = opening.place.offset, opening.prefix.stamp_s
        begin = self._line_begin(max(at - _LINE_BYTES, 0))
        early: tuple[int, float] | None = None
        newest = 0.0
        for event in self._events(begin, self._line_end(at)):
            stamp = event.prefix.stamp_s
            if event.place.offset == at and _opens(event):
                break
            if not event.prefix.engine or stamp is None:
                continue
            newest = max(newest, stamp)
            if event.prefix.rank or not is_early(event.rule):
                early = None
            elif early is None or stamp - early[1] > PREAMBLE_S:
                early = event.place.offset, stamp
        if here is None or here < newest:
            return None
        return at, early

    def _events(self, begin: int, end: int) -> Iterator[Event]:
        offset = begin
        for raw in os.pread(self._fd, end - begin, begin).split(b"\n"):
            if text := clean(raw):
                yield from self._classifier.classify(Segment(text, Place(None, 1, offset), End.LF))
            offset += len(raw) + 1

    def _line_end(self, at: int) -> int:
        raw = os.pread(self._fd, _LINE_BYTES, at)
        return at + (raw.find(b"\n") + 1 or len(raw))

    def _parts(self, size: int) -> Iterator[tuple[int, int | None]]:
        """The parts to be read, each from the begin of a line, in order and apart."""
        tail = self._line_begin(max(size - self._reach.tail_bytes, 0))
        parts: list[tuple[int, int]] = []
        for trace in reversed(self._traces):
            begin, end = self._line_begin(trace - self._reach.margin_bytes), trace + self._reach.margin_bytes
            if parts and begin <= parts[-1][1]:
                begin = parts.pop()[0]
            parts.append((begin, end))
        while parts and parts[-1][1] >= tail:
            tail = min(parts.pop()[0], tail)
        yield from parts
        yield tail, None

    def _line_begin(self, at: int) -> int:
        """The first begin of a line at or before a place, as far as a line may be long."""
        if at <= 0:
            return 0
        before = os.pread(self._fd, min(at, _LINE_BYTES), max(at - _LINE_BYTES, 0))
        return at - len(before) + before.rfind(b"\n") + 1


def _signs(patterns: PatternSet, engines: set[str]) -> Iterator[bytes]:
    """Texts, one of which stands in every line that opens a boot of these engines, or of any where none is named."""
    for order, rule in enumerate(patterns.rules):
        if engines and rule.engine not in engines:
            continue
        if rule.match is not None and (opens(rule) or "(?P<args_text>" in rule.match):
            yield Matcher(rule, order).needle.encode()


def _opens(event: Event) -> bool:
    return "args" in event.fields or (event.rule is not None and opens(event.rule))


def _is_alone(opening: Event) -> bool:
    """Whether no other server and no other node writes this log."""
    args = plan.parse_args(str(opening.fields.get("args", "")))
    return not opening.prefix.server and plan.number(args, "nnodes", 1) <= 1


def _last(block: bytes, sign: bytes, end: int) -> int:
    """What ``rfind`` answers. A single character is found many times faster, and serving lines seldom hold a ``=``."""
    for _ in range(64):
        at = block.rfind(sign[-1:], 0, end)
        if at < 0 or block.endswith(sign, 0, at + 1):
            return -1 if at < 0 else at + 1 - len(sign)
        end = at
    return block.rfind(sign, 0, end)
