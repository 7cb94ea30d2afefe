"""A log that has been read whole, to be played again: its bytes, its times, its boots and how each of them ended.

Reading is done in small steps, so that a screen can be left, and tell how far it is, while a large log is read.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from phasetrack.core.model import Chunk, Closed, Gap, Outcome
from phasetrack.core.schedule import lay
from phasetrack.core.stamps import Notes
from phasetrack.core.tracker import Tracker
from phasetrack.edges.file import is_archive, open_log
from phasetrack.edges.pages import LogPages
from phasetrack.edges.turned import END_BYTES, stands_newest_first
from phasetrack.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from phasetrack.core.model import EvidenceSample, PatternSet, ProbeResult, Record, Snapshot
    from phasetrack.core.schedule import Schedule

# Bytes read at a time: also how finely the time of stepped-over serving lines is known.
_STEP_BYTES = 128 * 1024

_TURNED = "this log stands newest line first: it is shown, and its lines are counted, from the last line up"


@dataclass(frozen=True, slots=True)
class Stretch:
    """One boot's part of a schedule."""

    boot: int  # 0: no boot in this log
    begin_s: float
    settled_s: float  # ready, failed or stopped; else its end
    end_s: float
    begin_offset: int
    end_offset: int


class Tape:
    """One log. ``read`` it to its end; then the rest tells."""

    def __init__(self, patterns: PatternSet, path: str) -> None:
        """Prepare; nothing is opened yet."""
        self.path = path
        self.patterns = patterns
        self.pages = LogPages(path if _stays(path) else None)
        self.schedule: Schedule = lay(Notes(), 0)
        self.end_s = 0.0
        self.seen: tuple[EvidenceSample | ProbeResult, ...] = ()  # outside the log, in order
        self.dated = False  # a recording that knows when it was made: its times are Unix times
        self.is_recording = False
        self.going: frozenset[int] = frozenset()
        self.note = ""  # a word on the times as a whole, where they are not what a reader would expect
        self._tracker = Tracker(patterns, path, notes=(heard := Notes()))
        self._heard, self._arrived = heard, Notes()
        self._began_s: float | None = None
        self._turned = False  # stands newest line first; read, and counted, from its last line up
        self._gaps: list[tuple[int, int]] = []  # where holes begin, and their bytes
        self._boots: list[tuple[int, int]] = []  # number, offset of its first line
        self._settled: dict[int, int] = {}  # boot -> offset of the line that settled it
        self._truths: dict[int, Snapshot] = {}

    # --- reading ------------------------------------------------------------------------------------

    def read(self) -> Generator[int]:
        """Read all of it, step by step; yields the bytes so far.

        Raises:
            SourceError: the log cannot be read.
        """
        with open_log(self.path) as log:
            for item in log.chunks():
                for part in _parts(item):
                    self._take(part)
                    yield self.pages.size()
        self._note_outcomes(self._tracker.feed(Closed()))
        self._finish()

    def _take(self, item: Chunk | Gap) -> None:
        if isinstance(item, Gap) and item.why:
            self._note_outcomes(self._tracker.feed(item))
            return
        offset = self.pages.size()
        size = item.bytes if isinstance(item, Gap) else len(item.data)
        if isinstance(item, Gap):
            self._gaps.append((offset, item.bytes))
        elif item.played_s is not None:
            at_s = item.recorded_s if item.recorded_s is not None else item.played_s
            self.is_recording, self.dated = True, item.recorded_s is not None
            self._began_s = at_s - item.played_s if self._began_s is None else self._began_s
            self._arrived.arrive(offset, at_s)
        self._turned |= isinstance(item, Chunk) and item.turned is not None
        self._note_outcomes(self._tracker.feed(item))
        self.pages.take(item.data if isinstance(item, Chunk) else item.bytes, offset + size)

    def _note_outcomes(self, records: list[Record]) -> None:
        for record in records:
            if record.type == "boot":
                self._boots.append((record.boot, record.place.offset))
            elif record.type == "outcome" and record.data["outcome"] != Outcome.STARTING:
                self._settled.setdefault(record.boot, record.place.offset)
            elif record.type == "outcome":
                self._settled.pop(record.boot, None)  # the start goes on

    def _finish(self) -> None:
        self.schedule = lay(self._heard, self.pages.size(), arrived=self._arrived, began_s=self._began_s)
        known = self._truths[0] = self._tracker.snapshot()
        self._truths[known.boot] = known
        self.going = self._tracker.going
        self.seen = tuple(self._recorded()) if self.dated else ()
        last = max((item.now_s for item in self.seen), default=-inf)
        self.end_s = max(self.schedule.end_s, last)
        self.note = _TURNED if self._turned else _note(self.schedule)

    def _recorded(self) -> Iterator[EvidenceSample | ProbeResult]:
        """What was seen beside a recording while it was made, in the order of its times."""
        from phasetrack.edges.recorded import beside, read_evidence

        path = beside(self.path)
        if path.is_file():
            yield from sorted((item for item in read_evidence(path) if _is_time(item.now_s)), key=lambda one: one.now_s)

    def sketch(self) -> Snapshot:
        """What is known so far, while it is read."""
        return self._tracker.of_log()

    # --- what it holds ------------------------------------------------------------------------------

    @property
    def latest(self) -> int:
        """The number of the boot that a reader asks about; 0 where there is none."""
        return self._truths[0].boot

    def checked(self, boot: int | None) -> int:
        """The boot that was asked for; the latest where none was.

        Raises:
            UsageError: this log does not hold it.
        """
        if boot is not None and boot not in {number for number, _ in self._boots}:
            raise UsageError(f"--boot {boot}: this log holds no such boot ('phasetrack report LOG' lists them)")
        return self.latest if boot is None else boot

    def truth(self, boot: int) -> Snapshot:
        """How a boot ended, as a report of the whole log tells it. Reads the log once more for an earlier one."""
        if boot not in self._truths:
            tracker = Tracker(self.patterns, self.path, boot=boot)
            position = 0
            while position < self.pages.size():
                end = min(position + (1 << 20), self.pages.size())
                for item in self.items(position, end):
                    tracker.feed(item)
                position = end
            tracker.feed(Closed())
            self._truths[boot] = tracker.snapshot()
        return self._truths[boot]

    def items(self, begin: int, end: int) -> Iterator[Chunk | Gap]:
        """The bytes from one offset to another, holes as holes."""
        while begin < end:
            k = bisect_right(self._gaps, (begin, self.pages.size())) - 1
            hole_end = sum(self._gaps[k]) if k >= 0 else 0
            if begin < hole_end:
                size = min(hole_end, end) - begin
                yield Gap(size, hole=True)
            else:
                following = self._gaps[k + 1][0] if k + 1 < len(self._gaps) else end
                size = min(following, end) - begin
                yield Chunk(self.pages.read(begin, size))
            begin += size

    def reaches(self, offset: int) -> float:
        """The moment from which on a byte is there."""
        return self.schedule.reaches(offset, self.pages.read)

    def stretch(self, boot: int) -> Stretch:
        """One boot's part; of a log without boots, all of it."""
        numbers = [number for number, _ in self._boots]
        if boot not in numbers:
            return Stretch(0, self.schedule.begin_s, self.end_s, self.end_s, 0, self.schedule.size)
        k = numbers.index(boot)
        servers = {one.boot: one.server for one in self._truths[0].boots}
        after = [at for number, at in self._boots[k + 1 :] if servers.get(number) == servers.get(boot)]
        offset, end_offset = self._boots[k][1], after[0] if after else self.schedule.size
        begin = self.schedule.when(offset).at_s if k else self.schedule.begin_s
        end = self.schedule.when(end_offset).at_s if after else self.end_s
        settled = self.schedule.when(self._settled[boot]).at_s if boot in self._settled else end
        return Stretch(boot, begin, min(max(settled, begin), end), end, offset if k else 0, end_offset)

    def boot_at(self, offset: int) -> int:
        """The boot that a byte belongs to: the last that had begun by then; the first before any."""
        begun = [number for number, at in self._boots if at <= offset]
        return max(begun, default=self._boots[0][0] if self._boots else 0)

    def starts(self) -> list[tuple[float, float]]:
        """When each boot was starting, in order: from, to."""
        found = [self.stretch(number) for number, _ in self._boots]
        return [(one.begin_s, one.settled_s) for one in found]

    def close(self) -> None:
        """Let go of its bytes."""
        self.pages.close()


def _stays(path: str) -> bool:
    """Whether a log's bytes can be read again where they stand, in their order."""
    try:
        if not Path(path).is_file():
            return False
        with Path(path).open("rb", buffering=0) as stream:
            head = stream.read(END_BYTES)
            return not is_archive(head) and not stands_newest_first(stream.fileno(), head)
    except OSError:
        return False


def _parts(item: Chunk | Gap) -> Iterator[Chunk | Gap]:
    if isinstance(item, Gap) or len(item.data) <= _STEP_BYTES:
        yield item
        return
    for begin in range(0, len(item.data), _STEP_BYTES):
        yield replace(item, data=item.data[begin : begin + _STEP_BYTES])


def _is_time(at_s: object) -> bool:
    return isinstance(at_s, int | float) and isfinite(at_s)


def _note(schedule: Schedule) -> str:
    """What a reader must know of the times as a whole; empty where they are stamps in order, or exact."""
    if schedule.backwards:
        return "this log stands newest first: its lines are spread evenly, in the order of the file"
    if schedule.timeless:
        return "no line of this log tells a time: its lines are spread evenly, and silences are not known"
    if schedule.jumps:
        back = max(jump.back_s for jump in schedule.jumps)
        times = "once" if len(schedule.jumps) == 1 else f"{len(schedule.jumps)} times"
        from phasetrack.core.say import duration

        return f"the log's clock goes back {times} (by up to {duration(back)}); the replay goes on where it was"
    return ""
