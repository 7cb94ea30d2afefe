"""The façade: feed inputs, take records, ask for a snapshot.

The same code follows a live file, a wrapped command, a replay and a test; only the supplier of inputs
differs. It opens nothing and reads no clock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core import frames
from phasetrack.core.bulk import BulkRuns
from phasetrack.core.classify import Classifier
from phasetrack.core.ending import obituary
from phasetrack.core.eta import Past, estimate, known_silences, withheld
from phasetrack.core.frames import Frames
from phasetrack.core.machine import Machine, opens, summarize_boot
from phasetrack.core.model import (
    DAMAGED,
    Bulk,
    Chunk,
    Closed,
    Gap,
    Outcome,
    Place,
    Priors,
    ProbeResult,
    Segment,
    Source,
    Tick,
    Warned,
)
from phasetrack.core.model import End as SegmentEnd
from phasetrack.core.oddities import oddities
from phasetrack.core.outside import Outside
from phasetrack.core.readiness import is_poll
from phasetrack.core.segments import Segmenter, clean
from phasetrack.core.summary import summarize
from phasetrack.core.tracks import row_of
from phasetrack.core.until import Until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from phasetrack.core.eta import Told
    from phasetrack.core.model import Bar, Event, EvidenceSample, Input, PatternSet, Record, Snapshot, Zone
    from phasetrack.core.segments import Piece
    from phasetrack.core.stamps import Notes
    from phasetrack.core.state import Boot, Row, State


# A verdict's age needs no finer steps than this.
_JUDGE_S = 1.0
# Output that is younger than this flows.
_FLOWS_S = 2.0


class Counted(NamedTuple):
    """How much was read of a log."""

    offset: int
    lines: int
    frames: int
    unmatched: int


class Tracker:
    """One log's fold. Calling ``snapshot`` changes nothing."""

    def __init__(
        self,
        patterns: PatternSet,
        path: str = "-",
        *,
        line: int | None = 1,
        offset: int = 0,
        until_s: float | None = None,
        boot: int | None = None,
        notes: Notes | None = None,
        early: tuple[int, float] | None = None,
        midway: bool = False,
        hurry: bool = True,
    ) -> None:
        """Begin at a place of a stream.

        Args:
            patterns: all packs, merged.
            path: the log's name, for messages and ``sources``.
            line: the first line's number; None where the lines before were not counted.
            offset: bytes before the first one fed.
            until_s: stop before the first line or frame later than this (log clock): the answer as known then.
                Less than a day is a time of day.
            boot: the number of the boot to show; the latest where None.
            notes: takes the time of every line and frame, for a replay.
            early: where, before ``offset``, the boot began that the first line opens, and when (log clock).
            midway: the first line opens a boot; what it may be glued to is another's.
            hurry: take the short ways for serving lines and for bars; the answers are the same without.
        """
        self._patterns = patterns
        self._path = path
        self._first_offset = offset
        self._skipped = 0  # bytes left out since
        self._segmenter = Segmenter(line=line, offset=offset)
        self._classifier = Classifier(patterns)
        self._machine = Machine(patterns, self._classifier.kind_and_facts, self._classifier.reading)
        self._bulk = BulkRuns(patterns.bulk)
        self._until = None if until_s is None else Until(patterns, until_s)
        self._machine.state.keep = boot
        self._midway, self._hurry = midway, hurry
        if early is not None:
            self._machine.state.preambles[""] = Place(None, 1, early[0]), early[1]
        self._notes = notes
        self._listens: tuple[Callable[[Event], None], Callable[[int], None]] | None = None
        self._recorded: deque[tuple[int, float]] = deque()  # (bytes read by then, Unix time), of a recording
        self._output_s: float | None = None  # our clock: when the log last grew
        self._spoke: bool | None = None  # whether the last bytes held more than polls; None: no whole line
        self._spoken_s: float | None = None  # log clock: the newest time of a line that is no poll
        self._outside = Outside()
        self._buried: set[int] = set()  # boots that evidence has ended, and whose end was told
        self._judged_s = float("-inf")
        self.latest: Snapshot | None = None  # what was judged last, about every second: a screen need not ask again
        self._ended = False
        self._damage: tuple[Warned, ...] = ()  # why the rest of the log could not be read
        self._ended_s: float | None = None  # our clock
        self._stopped = False
        self._priors: Priors | None = None
        self._past = Past()
        self._told: Told | None = None  # the estimate that later ones are steady against

    @property
    def zone(self) -> Zone:
        """How this log's times are printed."""
        return self._machine.state.clock.zone

    @property
    def stopped(self) -> bool:
        """Whether ``until_s`` has been reached: nothing more is taken."""
        return self._stopped

    @property
    def fixed(self) -> tuple[object, ...]:
        """What never changes by feeding, or only to go faster: copies of this tracker may share it."""
        return self._patterns, *self._patterns.rules, *self._classifier.fixed, self._bulk, self._past

    @property
    def seen(self) -> EvidenceSample | None:
        """The newest look outside the log."""
        return self._outside.newest

    @property
    def serves(self) -> bool:
        """Whether a server serves now, and nothing that was said must be read to its end."""
        return self._segmenter.swallow is not None

    @property
    def going(self) -> frozenset[int]:
        """The numbers of the boots that no other boot of their server has followed."""
        return frozenset(boot.number for boot in self._machine.state.live.values())

    def feed(self, item: Input) -> list[Record]:
        """Take one input; answer what it gave rise to. Never raises on any bytes."""
        if isinstance(item, Chunk):
            self._spoke = None
            if item.recorded_s is not None and item.data:
                read = self._segmenter.offset + self._segmenter.pending
                self._recorded.append((read + len(item.data), item.recorded_s))
            self._segmenter.paints = self._hurry and not (self._recorded or self._notes or self._until)
            records = list(self._take(self._segmenter.feed(item.data)))
            if item.arrived_s is not None and item.data and self._spoke is not False:
                self._output_s = item.arrived_s
            return records
        if isinstance(item, Gap):
            self._damage = (Warned(DAMAGED, item.why, None),) if item.why else self._damage
            self._skipped += 0 if item.hole else item.bytes
            return list(self._take(self._segmenter.skip(item.bytes, hole=item.hole)))
        if isinstance(item, Tick):
            self._output_s = item.output_s - self._polled_s() if item.output_s is not None else self._output_s
            return self._judge(item.now_s) if item.now_s - self._judged_s >= _JUDGE_S else []
        if isinstance(item, Priors):
            self._priors = item
            return []
        if isinstance(item, Closed):
            self._ended, self._ended_s = True, item.at_s
            return list(self._take(self._segmenter.close())) + self._judge(item.at_s)
        if isinstance(item, ProbeResult):
            self._outside.hear(item, self.snapshot(item.now_s))
        else:
            self._outside.see(item)
        return self._judge(item.now_s)

    def _polled_s(self) -> float:
        """For how long the log has held nothing but polls: its mtime is theirs."""
        newest = self._machine.state.clock.newest_s
        return 0.0 if newest is None or self._spoken_s is None else max(newest - self._spoken_s, 0.0)

    def _judge(self, now_s: float | None) -> list[Record]:
        """Keep this moment's verdict and estimate; tell where evidence has ended a boot that its log leaves open."""
        known, self._told = self._look(now_s)
        self.latest = known
        self._judged_s = self._judged_s if now_s is None else now_s
        self._outside.remember(known.verdict)
        boot = self._shown()
        number, outcome = (0, Outcome.NONE) if boot is None else (boot.number, boot.outcome)
        if known.boot != number or known.outcome is outcome or number in self._buried:
            return []
        self._buried.add(number)
        return obituary(known)

    def _take(self, segments: Iterator[Piece]) -> Iterator[Record]:
        for segment in segments:
            if isinstance(segment, Frames):
                yield from self._paint(segment)
                continue
            if self._stopped or (self._until is not None and self._until.is_past(segment, self._timed)):
                self._stopped = True
                continue
            if isinstance(segment, Bulk):
                yield from self._step_over(segment)
                continue
            yield from self._say(segment)
            self._settle()

    def _say(self, segment: Segment) -> Iterator[Record]:
        for event in map(self._timed, self._classifier.classify(segment)):
            self._midway = self._midway and "args" not in event.fields and not (event.rule and opens(event.rule))
            if self._midway:
                continue
            yield from self._machine.advance(event)
            self._hear(event.text)
            if self._listens is not None:
                self._listens[0](event)
            if self._notes is not None:
                self._notes.hear(event, self._machine.at_s, held=self._machine.is_failing)
            if self._segmenter.swallow is not None:
                self._bulk.speak((event.prefix.rank,))

    def _hear(self, text: str) -> None:
        """Polls of a health check are no output: a server that hangs answers them for hours."""
        poll = " HTTP/1." in text and is_poll(text, self._outside.ladder.clients)
        self._spoke = bool(self._spoke) or not poll
        if not poll:
            self._spoken_s = self._machine.state.clock.newest_s

    def _timed(self, event: Event) -> Event:
        """Give a text the time at which a recording saw its last byte, as if a transport had stamped it."""
        if not self._recorded:
            return event
        while len(self._recorded) > 1 and self._recorded[0][0] < self._segmenter.reached:
            self._recorded.popleft()
        if event.prefix.outer_s is not None:
            return event
        return event._replace(prefix=event.prefix._replace(outer_s=self._recorded[0][1], outer_offset_s=0))

    def _settle(self) -> None:
        state = self._machine.state
        if not (self._hurry and self._serves()):
            self._segmenter.swallow = None
        elif self._segmenter.swallow is None:
            self._bulk.speak(rank for boot in state.live.values() for rank in boot.ranks)
            self._segmenter.swallow = self._bulk

    def _serves(self) -> bool:
        """Whether serving lines change nothing but the time now; what was said to begin a failure must end first."""
        state = self._machine.state
        boot = state.shown
        if boot is None or not boot.serving or not all(other.serving for other in state.live.values()):
            return False
        return not self.is_unsure

    def _paint(self, run: Frames) -> Iterator[Record]:
        """Take frames of a bar, the short way where the one before was the same bar's."""
        before = (b"", b"")
        for frame in frames.read(run):
            bar_of = (frame.head.partition(b"(")[0], frame.total)
            records = None
            if frame.bar is not None and bar_of == before:
                records = self._machine.repaint(frame.bar, frame.place)
            if records is None:
                records = list(self._say(Segment(clean(frame.raw), frame.place, SegmentEnd.CR)))
            before = bar_of
            yield from records
        self._hear("")
        self._settle()

    def _step_over(self, run: Bulk) -> Iterator[Record]:
        self._spoke = True
        if self._listens is not None:
            self._listens[1](run.lines)
        for line in dict.fromkeys((run.newest, run.last)):
            yield from self._machine.bulk(run, self._classifier.stamp(Segment(line, run.place, SegmentEnd.LF)))
        if self._notes is not None:
            self._notes.step_over(run, self._machine.at_s)

    # --- boots that were read before (``again``) ------------------------------------------------------

    def listen(self, hear: Callable[[Event], None], hear_run: Callable[[int], None]) -> None:
        """Call ``hear`` with every event from now on, and ``hear_run`` with the lines of runs that have none."""
        self._listens = hear, hear_run

    @property
    def is_shipped(self) -> bool:
        """Whether no rule is a user's."""
        return all(rule.trusted for rule in self._patterns.rules)

    @property
    def state(self) -> State:
        """What the lines said so far; the owner changes nothing in it."""
        return self._machine.state

    @property
    def counted(self) -> Counted:
        """How much was read so far."""
        segmenter = self._segmenter
        return Counted(segmenter.offset, segmenter.line or 0, segmenter.frames, self._machine.state.unmatched_lines)

    @property
    def place(self) -> Place:
        """Where the next line begins."""
        return Place(self._segmenter.line, 1, self._segmenter.offset)

    @property
    def transport(self) -> tuple[object, ...]:
        """What was learned of how lines begin, as far as it decides how they are read."""
        learned = self._classifier.learned
        return learned.srun, learned.notebook, learned.label

    @property
    def is_unsure(self) -> bool:
        """Whether the next lines decide what lines before them were."""
        return self._machine.is_failing or self._machine.is_unsure

    @property
    def is_between(self) -> bool:
        """Whether the next byte begins a line of the only server, and nothing before it is of the next boot."""
        state = self._machine.state
        alone = state.live.keys() == {""} and not state.preambles and not self._midway
        return alone and self._segmenter.is_at_begin and not self.is_unsure

    def step_over_boot(self, boot: Boot, size: int, counts: Counted, *, year: int) -> None:
        """Take a boot as read of which only the summary is known: ``size`` bytes, whole lines, ``counts`` in them."""
        state, learned = self._machine.state, self._classifier.learned
        state.past.append(summarize_boot(state.live[""]))
        state.count, state.shown, state.live[""] = boot.number, boot, boot
        state.unmatched_lines += counts.unmatched
        state.clock.newest_s = boot.heard_s
        learned.year, learned.yearless = year, False
        self._segmenter.step_over(size, counts.lines, counts.frames)
        self._settle()

    # --- answers --------------------------------------------------------------------------------------

    def snapshot(self, now_s: float | None = None) -> Snapshot:
        """Tell all that is known.

        Args:
            now_s: our clock; None for a saved log, whose now is its last time.
        """
        return self._look(now_s)[0]

    def glance(self, now_s: float) -> Snapshot:
        """Tell all that is known, as ``snapshot`` does, for less: for a screen that is drawn several times a second.

        While output flows and nothing but progress is new, the verdict, the estimate and what was seen outside the
        log are those of the last look, a second ago at most.

        Args:
            now_s: our clock.
        """
        last, known = self.latest, self.of_log(now_s)
        if last is None or not 0.0 <= now_s - self._judged_s < _JUDGE_S or not _is_alike(known, last):
            return self.snapshot(now_s)
        pairs = zip(known.phases, last.phases, strict=True)
        return replace(
            known,
            phases=tuple(replace(row, expected=was.expected, cache=was.cache) for row, was in pairs),
            verdict=last.verdict, eta=last.eta, next_check_s=last.next_check_s,
            rungs=last.rungs, timings=last.timings, channels=last.channels,
        )  # fmt: skip

    def _look(self, now_s: float | None) -> tuple[Snapshot, Told | None]:
        known = self.of_log(now_s)
        likes = self._past.likes(known, self._priors)
        known, told = estimate(known, likes, self._told)
        shown = self._shown()
        known = self._outside.answer(
            known,
            known_silences(self._patterns.phases_of(known.engine.name if known.engine else ""), likes),
            stuck=None if shown is None else shown.stuck,
            last=self._machine.last_words(shown),
            headless=shown is not None and shown.headless,
            now_s=now_s,
        )
        return withheld(known), told

    def of_log(self, now_s: float | None = None) -> Snapshot:
        """What the log says, and the newest sample beside it: a snapshot without estimate and verdict."""
        silent = None
        if now_s is not None and self._output_s is not None:
            silent = max(now_s - self._output_s, 0.0)
        shown = self._shown()
        deserted = shown is not None and shown.outcome is Outcome.STARTING and self._outside.is_orphan
        known = summarize(
            self._machine.state,
            self._patterns,
            self._source(),
            boot=shown,
            silent_s=silent,
            lived_s=0.0 if deserted else self._lived_s(now_s, silent),
            ended=self._ended or deserted,
            peek=self._peek(shown),
        )
        off = tuple(Warned(f"off.{rule}", why, None) for rule, why in self._classifier.switched_off())
        written = None if now_s is None or silent is None else now_s - silent
        odd = oddities(shown, written_s=written, dated=self.zone.dated)
        return replace(known, evidence=self._outside.newest, warnings=(*known.warnings, *self._damage, *off, *odd))

    def _lived_s(self, now_s: float | None, silent_s: float | None) -> float:
        """For how long after its last output the start still went on, as far as is known."""
        if now_s is None or silent_s is None:
            return 0.0
        ends = [end for end in (self._ended_s, self._outside.gone_at_s) if end is not None]
        if self._ended and not ends:
            return 0.0
        return max(silent_s - max(now_s - min(ends, default=now_s), 0.0), 0.0)

    def _peek(self, boot: Boot | None) -> tuple[Row, Bar] | None:
        """The bar of the open tail and the row that it counts for; nothing is changed by looking."""
        segment = self._segmenter.peek()
        if segment is None or boot is None or boot.is_over or self._stopped:
            return None
        found: tuple[Row, Bar] | None = None
        for event in self._classifier.peek(segment):
            if event.bar is not None and event.rule is not None and event.rule.activity is None:
                row = row_of(boot, event.bar, event.rule)
                found = found if row is None else (row, event.bar)
        return found

    def _shown(self) -> Boot | None:
        state = self._machine.state
        if state.keep is None:
            return state.shown
        if state.kept is not None:
            return state.kept
        return next((boot for boot in state.live.values() if boot.number == state.keep), None)

    def _source(self) -> Source:
        segmenter = self._segmenter
        lines = None if segmenter.line is None else segmenter.line - 1
        return Source(
            self._path, segmenter.offset + segmenter.pending, lines, segmenter.frames,
            self._machine.state.unmatched_lines, self._first_offset, self._skipped,
        )  # fmt: skip


def _is_alike(known: Snapshot, last: Snapshot) -> bool:
    """Whether output flows and nothing that a verdict is about has changed."""
    flows = max(known.silent_s or 0.0, last.silent_s or 0.0) < _FLOWS_S
    return flows and _stand(known) == _stand(last)


def _stand(known: Snapshot) -> tuple[object, ...]:
    rows = tuple((row.phase, row.occurrence, row.status, row.note) for row in known.phases)
    doing = None if known.activity is None else known.activity.id
    failed = None if known.failure is None else known.failure.id
    return known.boot, known.outcome, known.ended, known.phase, rows, doing, failed, len(known.warnings)
