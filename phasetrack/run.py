"""The loop: sources in, a tracker fed, answers and exit codes out. With ``edges``, the only place with a clock."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Protocol

from phasetrack.core.again import Again
from phasetrack.core.answer import answer, fired
from phasetrack.core.mirror import Reader
from phasetrack.core.model import Chunk, Closed, Outcome, Tick, VerdictState
from phasetrack.core.tracker import Tracker
from phasetrack.core.until import on_day_of
from phasetrack.core.verdict import damage_of
from phasetrack.edges.file import open_log
from phasetrack.edges.follower import Follower
from phasetrack.edges.reading import Reach, Reading, chunks_of
from phasetrack.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from phasetrack.core.answer import Want
    from phasetrack.core.model import Gap, Input, PatternSet, Record, Snapshot, Zone
    from phasetrack.edges.file import OpenLog
    from phasetrack.edges.history import History
    from phasetrack.edges.live import Live


# With nothing else due, a snapshot is taken this often: a verdict can change with the clock alone.
_REST_S = 10.0
# How soon a tail notices that its reader has gone (``… | grep -m1 ready``).
_GLANCE_S = 1.0
# Who has just looked, and found nothing new, sleeps before looking again.
_JUST_S = 0.02


@dataclass(frozen=True, slots=True)
class Waited:
    """How a wait ended."""

    code: Exit
    known: Snapshot
    was_so: bool = False  # the answer stood in the log before the wait began
    none_new: bool = False  # the boot that counts has not begun
    fired: str = ""  # the engine's own limit that ended the start, in words


class Sampler(Protocol):
    """Looks outside the log, at its own pace."""

    @property
    def interval_s(self) -> float:
        """How long from one look to the next."""

    def sample(self, known: Snapshot, now_s: float) -> Input | None:
        """Answer what was seen; None for nothing. Called from the session's own thread, one at a time."""


def _silently(what: str) -> None:
    del what


def reading_of(patterns: PatternSet, fd: int, reach: Reach) -> Reading:
    """Decide what to read of an open log to tell its latest boot."""
    if os.fstat(fd).st_size <= reach.whole_bytes:
        return Reading()
    from phasetrack.edges.latest import search

    return search(patterns, fd, reach)


def _reading_of(patterns: PatternSet, source: Live) -> Reading | None:
    """What to read of a file that is there; None for another source."""
    fd = source.fd if isinstance(source, Follower) else None
    return None if fd is None else reading_of(patterns, fd, Reach())


class Session:
    """One log being followed: source → tracker → records and snapshots.

    For one thread at a time; the snapshots may go anywhere.
    """

    def __init__(
        self,
        patterns: PatternSet,
        path: str,
        *,
        samplers: Sequence[Sampler] = (),
        say: Callable[[str], None] = _silently,
        tap: Callable[[Chunk | Gap], None] | None = None,
        position: int = 0,
        history: History | None = None,
        pace_s: float = 1.0,
    ) -> None:
        """Open a log to be followed; one that does not exist yet is waited for.

        Args:
            patterns: all packs, merged.
            path: of the log, ``-`` for standard input.
            samplers: what looks outside the log; each is asked when its interval has passed.
            say: takes one line about the source itself: missing, rotated, truncated.
            tap: sees every piece of the stream before it is fed: a screen's pager keeps track of the bytes.
            position: where to begin in a file that is there: what stands before is no part of this.
            history: of earlier boots; None neither reads nor keeps any.
            pace_s: how often the clock is ticked where nothing new comes: verdicts are no finer than that.

        Raises:
            SourceError: the log is there but cannot be read.
        """
        from phasetrack.edges.live import open_live

        self.path = path
        self.ended = False
        self._source: Live = open_live(path, say, position=position)
        self._reading = None if position else _reading_of(patterns, self._source)
        start = position if self._reading is None else self._reading.start
        early = None if self._reading is None else self._reading.early
        midway = self._reading is not None and start > 0
        if isinstance(self._source, Follower):
            self._source.start_at(start)
        self.begins = start  # bytes of the file that stand before what is read
        self._make = partial(
            Tracker, patterns, path, line=None if start else 1, offset=start, early=early, midway=midway
        )
        self._tracker = self._make()
        self._tap = tap
        self._history = history
        lookers = samplers if history is None else (*samplers, history)
        self._samplers = {k: (sampler, 0.0) for k, sampler in enumerate(lookers)}
        self._backlog: list[Record] | None = []  # None once it was read
        self._pace_s, self._ticked_s = pace_s, 0.0
        self._lively = False  # whether output was seen to arrive
        self._loop: Loop | None = None

    @property
    def zone(self) -> Zone:
        """How this log's times are printed."""
        return self._tracker.zone

    @property
    def source(self) -> Live:
        """Where the bytes come from."""
        return self._source

    @property
    def caught_up(self) -> bool:
        """Whether all that stood in the log before has been read."""
        return self._backlog is None

    def another(self, boot: int) -> Tracker:
        """A tracker that has read nothing yet, to be fed what this one was: it shows an earlier boot."""
        return self._make(boot=boot)

    def poll(self, wait_s: float) -> list[Record]:
        """Take what is new, waiting up to ``wait_s`` for it; run the samplers that are due; tick the clock.

        Returns:
            The records it gave rise to. A backlog's come at once when it was read, those of the latest boot
            only (of every server, where several write one log).

        Raises:
            SourceError: the log can be read no more.
        """
        if self._loop is None:
            self._loop = Loop([self])
        return self._loop.poll(wait_s)[0][1]

    def step(self) -> tuple[bool, list[Record]]:
        """Look once, without waiting; answer whether anything was new, and the records."""
        if self.ended:
            return False, []
        moved, records = self._take()
        if self._source.ended is not None:
            return True, self._end(records, self._source.ended)
        late = time.time() - self._ticked_s >= self._pace_s
        seen = self._look_around() if moved or late or self.due_s() <= 0 else None
        records = self._held_back(records + (seen or []))
        return moved or seen is not None or bool(records), records

    def _take(self) -> tuple[bool, list[Record]]:
        """Feed what is new in the source."""
        moved, records = False, []
        for item in self._source.read():
            moved = True
            self._lively |= isinstance(item, Chunk) and item.arrived_s is not None
            records += self._feed(item)
            gap = self._leap()
            if gap is not None:
                records += self._feed(gap)
        return moved, records

    def _feed(self, item: Chunk | Gap) -> list[Record]:
        if self._tap is not None:
            self._tap(item)
        return self._tracker.feed(item)

    def _leap(self) -> Gap | None:
        """Leave out what a server that serves has written meanwhile, in a backlog of gigabytes."""
        if self._reading is None or not isinstance(self._source, Follower) or not self._tracker.serves:
            return None
        return self._source.skip_to(self._reading.onward(self._source.position))

    def _look_around(self) -> list[Record] | None:
        """Ask the samplers that are due, and tick; None where nothing came of it."""
        now = time.time()
        self._ticked_s = now
        tick = Tick(now, None if self._lively else self._source.changed_s)
        records = self._tracker.feed(tick) if self._tracker.latest is None else []
        seen = False
        for k, (sampler, due) in self._samplers.items() if self._source.caught_up else ():
            if time.monotonic() < due:
                continue
            latest = self._tracker.latest  # a second old at most: enough to know where to look
            found = sampler.sample(self._tracker.snapshot(now) if latest is None else latest, now)
            self._samplers[k] = sampler, time.monotonic() + sampler.interval_s
            if found is not None:
                seen, records = True, records + self._tracker.feed(found)
        records += self._tracker.feed(tick)  # what was seen is judged already, and once a second is enough
        return records if seen or records else None

    def _held_back(self, records: list[Record]) -> list[Record]:
        """Keep the backlog's records until it is known which boot is the latest."""
        if self._backlog is None:
            return records
        going = self._tracker.going
        held = [record for record in (*self._backlog, *records) if record.boot in going]
        self._backlog = None if self._source.caught_up or self.ended else held
        return held if self._backlog is None else []

    def finish(self, why: str, last: Input | None = None) -> list[Record]:
        """End the input, as when the writer is gone: what is there is read, and nothing more will come.

        Args:
            why: in words.
            last: what was seen outside the log when it ended.
        """
        return self._end([], why, last)

    def _end(self, records: list[Record], why: str, last: Input | None = None) -> list[Record]:
        moved = True
        while moved:
            moved, more = self._take()
            records = records + more
        records = records + (self._tracker.feed(last) if last is not None else [])
        self.ended = True
        return self._held_back(records + self._tracker.feed(Closed(why, time.time())))

    def snapshot(self) -> Snapshot:
        """Tell all that is known, as of now."""
        return self._tracker.snapshot(None if self.ended else time.time())

    def glance(self) -> Snapshot:
        """Tell the same for less, while output flows: verdict and estimate may be a second old."""
        return self.snapshot() if self.ended else self._tracker.glance(time.time())

    @property
    def latest(self) -> Snapshot | None:
        """What was known about a second ago at most, at no cost; None before the first look."""
        return self._tracker.latest

    def due_s(self) -> float:
        """How long until a sampler wants to look."""
        now = time.monotonic()
        return min((max(due - now, 0.0) for _, due in self._samplers.values()), default=float("inf"))

    def close(self) -> None:
        """Let the source go; what was seen of its boot is kept."""
        if self._history is not None:
            self._history.close(self.snapshot())
        self._source.close()
        if self._loop is not None:
            self._loop.close()


class Loop:
    """Polls some sessions in turn, and sleeps between, no longer than any of them may."""

    def __init__(self, sessions: Sequence[Session], *, woken: bool = True) -> None:
        """Take the sessions; their owner closes them.

        Args:
            sessions: all that one thread follows.
            woken: by a change of a file. To wait for one looks 33 times a second: too dear for who needs no haste.
        """
        from phasetrack.edges.stdin import Pipe
        from phasetrack.edges.wakeup import Wakeup

        self._sessions = sessions
        self._pipes = [session.source for session in sessions if isinstance(session.source, Pipe)]
        files = [session.path for session in sessions if not isinstance(session.source, Pipe)]
        self._wakeup = Wakeup(files) if woken else None
        self._calm_s = -inf  # when nothing was new

    def poll(self, wait_s: float) -> list[tuple[Session, list[Record]]]:
        """Do for all sessions what ``Session.poll`` does for one."""
        now = time.monotonic()
        until = now + wait_s
        if wait_s > _JUST_S > now - self._calm_s:
            self._sleep(until - now)
        while True:
            steps = [(session, *session.step()) for session in self._sessions]
            now, moved = time.monotonic(), any(moved for _, moved, _ in steps)
            self._calm_s = -inf if moved else now
            if now >= until or moved or all(session.ended for session in self._sessions):
                return [(session, records) for session, _, records in steps]
            self._sleep(until - now)

    def _sleep(self, wait_s: float) -> None:
        """Sleep, no longer than until a sampler is due."""
        from phasetrack.edges.stdin import wait_any
        from phasetrack.edges.wakeup import BLIND_LOOK_S, LOOK_S

        wait_s = min([wait_s, *(session.due_s() for session in self._sessions)])
        going = [pipe for pipe in self._pipes if pipe.ended is None]
        if going:
            only = len(self._pipes) == len(self._sessions)
            wait_any(going, wait_s if only else min(wait_s, BLIND_LOOK_S))
        elif self._wakeup is not None:
            self._wakeup.sleep(wait_s)
        else:
            time.sleep(min(wait_s, LOOK_S))

    def close(self) -> None:
        """Stop watching."""
        if self._wakeup is not None:
            self._wakeup.close()


class Teller:
    """Tells what goes on in one session, in plain lines."""

    def __init__(self, session: Session, patterns: PatternSet, out: Callable[[str], None], *, plain: bool) -> None:
        """Print lines with ``out``; ``plain`` for no characters beyond ASCII."""
        from phasetrack.views.events import Heartbeat, PlainLines

        self.session = session
        self._out = out
        self._lines = PlainLines({info.id: info.title for info in patterns.phases.values()}, plain)
        self._beat = Heartbeat(plain)
        self._due = 0.0

    def tell(self, records: list[Record]) -> Snapshot | None:
        """Print what is new; answer the snapshot that it was told from, None where nothing was due."""
        if not records and time.monotonic() < self._due:
            return None
        known = self.session.snapshot()
        for line in self._lines.lines(records, known):
            self._out(line)
        beat = self._beat.line(known) if self.session.caught_up and not self.session.ended else None
        if beat is not None:
            self._out(beat)
        self._due = time.monotonic() + min(self._beat.next_s(known), _REST_S)
        return known

    def say(self, line: str) -> None:
        """Print a line that no record gives rise to."""
        self._out(line)

    def due_s(self) -> float:
        """How long until something may be due that no record tells."""
        return max(self._due - time.monotonic(), 0.0)


def _is_behind(sessions: Sequence[Session]) -> bool:
    return not all(session.caught_up or session.ended for session in sessions)


def tail_plain(tellers: Sequence[Teller], is_read: Callable[[], bool]) -> None:
    """Follow until every input has ended, or nobody reads what is told; what stands there is read in any case."""
    sessions = [teller.session for teller in tellers]
    loop = Loop(sessions)
    while not all(session.ended for session in sessions) and (is_read() or _is_behind(sessions)):
        polled = loop.poll(min(_GLANCE_S, *(teller.due_s() for teller in tellers)))
        for teller, (_, records) in zip(tellers, polled, strict=True):
            teller.tell(records)


def tail_records(
    sessions: Sequence[Session], out: Callable[[Session, Record], None], is_read: Callable[[], bool]
) -> None:
    """Hand on every record until every input has ended, or nobody reads them; what stands there is read in any case."""
    loop = Loop(sessions)
    while not all(session.ended for session in sessions) and (is_read() or _is_behind(sessions)):
        for session, records in loop.poll(_GLANCE_S):
            for record in records:
                out(session, record)


def wait_for(teller: Teller, want: Want, *, new: bool, timeout_s: float | None) -> Waited:
    """Block until there is an answer.

    Args:
        teller: of the session to wait in; it tells the progress.
        want: what is waited for.
        new: only a boot that begins from now on counts.
        timeout_s: give up after this long; None for never.
    """
    from phasetrack.views.events import waiting_line

    session = teller.session
    until = None if timeout_s is None else time.monotonic() + timeout_s
    records: list[Record] = []
    while not session.caught_up and not session.ended:
        records += session.poll(0.0)  # what is there comes without waiting
    known = session.snapshot()
    if new:
        want, records = replace(want, after_boot=known.boot), []
        teller.say(waiting_line(known))
    stood = known.boot
    code = answer(known, want)
    if code is not None:
        return Waited(code, known, was_so=stood > 0)
    before = known.verdict
    while code is None:
        before = known.verdict if known.outcome is Outcome.STARTING else before
        known = teller.tell(records) or known
        code = answer(known, want)
        left = float("inf") if until is None else until - time.monotonic()
        if code is None and left <= 0:
            known = session.snapshot()
            return Waited(Exit.DEADLINE, known, none_new=new and known.boot <= want.after_boot)
        records = session.poll(min(teller.due_s(), left)) if code is None else []
    return Waited(code, known, fired=fired(known, before))


def read_whole(
    patterns: PatternSet,
    path: str,
    *,
    at_line: int | None = None,
    at_s: float | None = None,
    boot: int | None = None,
    every: bool = True,
) -> tuple[Tracker, Iterator[Record]]:
    """Read a log to its end, as ``report`` does; the records come while it is read.

    Args:
        patterns: all packs, merged.
        path: of the log, ``-`` for standard input.
        at_line: no further than this line.
        at_s: no further than this time, log clock.
        boot: the number of the boot to show.
        every: every record is wanted; else those of boots that are like earlier ones may be missing.

    Raises:
        SourceError: the log cannot be read.
    """
    tracker = Reader(patterns, path, until_s=at_s, boot=boot)
    short = not every and at_s is None and boot is None
    return tracker, _records(tracker, path, at_line, short=short)


def _records(tracker: Tracker, path: str, at_line: int | None, *, short: bool) -> Iterator[Record]:
    with open_log(path) as log:
        chunks = log.chunks(lines=at_line)
        for chunk in Again(tracker).unread(chunks) if short else chunks:
            yield from tracker.feed(chunk)
            if tracker.stopped:
                break
    yield from tracker.feed(Closed())


def look_once(
    patterns: PatternSet,
    path: str,
    *,
    at_line: int | None = None,
    at_s: float | None = None,
    boot: int | None = None,
    history: History | None = None,
    look: Callable[[Tracker, float], float] | None = None,
    reach: Reach | None = None,
) -> Snapshot:
    """Answer as of now: silence is our clock less the log's last change.

    Args:
        patterns: all packs, merged.
        path: of the log, ``-`` for standard input.
        at_line: the answer as known after this line.
        at_s: the answer as known then, log clock.
        boot: the number of the boot to show.
        history: of earlier boots.
        look: looks outside a log that has not ended, feeds what it saw, and answers when that was.
        reach: how much of a huge log is read; None for the usual.

    Raises:
        SourceError: the log cannot be read.
    """
    past = at_line is not None or at_s is not None
    with open_log(path) as log:
        latest = log.fd is not None and boot is None and not past
        reading = reading_of(patterns, log.fd, reach or Reach()) if latest and log.fd is not None else Reading()
        tracker = Reader(
            patterns, path, line=None if reading.start else 1, offset=reading.start, until_s=at_s, boot=boot,
            early=reading.early, midway=reading.start > 0,
        )  # fmt: skip
        for chunk in _needed(log, reading, tracker, at_line, short=boot is None and at_s is None):
            tracker.feed(chunk)
            if tracker.stopped:
                break
        if past:
            return _as_of(tracker, at_s, history)
        if log.ends:
            tracker.feed(Closed())
            return recalled(tracker, history)
        recall(tracker, history)
        now = time.time()
        tracker.feed(Tick(now, log.changed_s))
        now = now if look is None else look(tracker, now)
        return tracker.snapshot(now)


def _as_of(tracker: Tracker, at_s: float | None, history: History | None) -> Snapshot:
    """Answer as then, when nobody knew whether more would come; after a line, as soon as it was there."""
    recall(tracker, history)
    last_s = tracker.of_log().now_s
    if last_s is None:
        return tracker.snapshot()
    now_s = last_s if at_s is None else max(last_s, on_day_of(at_s, last_s))
    tracker.feed(Tick(now_s, last_s))
    return tracker.snapshot(now_s)


def _needed(
    log: OpenLog, reading: Reading, tracker: Tracker, at_line: int | None, *, short: bool
) -> Iterator[Chunk | Gap]:
    """What must be read of a log to tell its latest boot, or the one that is asked for."""
    if not reading.is_whole and log.fd is not None:
        return chunks_of(log.fd, reading, lambda: tracker.serves)
    chunks = log.chunks(lines=at_line)
    return Again(tracker).unread(chunks) if short else chunks


def recall(tracker: Tracker, history: History | None) -> None:
    """Give a log that was read what earlier boots took, before it is asked how long still."""
    priors = None if history is None else history.recall(tracker.of_log())
    if priors is not None:
        tracker.feed(priors)


def recalled(tracker: Tracker, history: History | None) -> Snapshot:
    """Tell all that is known of a log that was read, beside what earlier boots took."""
    recall(tracker, history)
    return tracker.snapshot()


def probe_code(known: Snapshot) -> Exit:
    """The outcome for a startup probe: anything that may still become ready, or is, passes."""
    over = known.outcome in {Outcome.FAILED, Outcome.STOPPED} or known.ended
    return Exit.FAILED if over or known.verdict.state is VerdictState.STUCK else Exit.OK


def exit_code(known: Snapshot) -> Exit:
    """The outcome as an exit code (README, "Exit codes")."""
    if known.outcome is Outcome.FAILED:
        return Exit.FAILED
    if known.verdict.state in {VerdictState.SUSPECT, VerdictState.STUCK}:
        return Exit.STUCK
    if known.outcome is Outcome.READY:
        return Exit.OK
    if known.outcome is Outcome.NONE and damage_of(known):
        return Exit.BLIND
    if known.outcome is Outcome.STOPPED or known.ended:
        return Exit.OVER
    return Exit.STARTING
