"""What a tracker that had watched a log live would have known at any moment of it.

The inputs have one order, whatever way a moment is reached: the log's pieces as they fall due, what was seen
outside of it when it was seen, and a look every so often while a boot starts, as beside a live log. So the state at
a moment does not depend on the way there. States are kept on the way (``Keepsakes``): going back plays on from the
last one before.
"""

from __future__ import annotations

import io
import pickle
import time
from bisect import bisect_right
from dataclasses import dataclass, replace
from math import floor, inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from phasetrack.core.key import key_of
from phasetrack.core.model import Chunk, Closed, Priors, Tick
from phasetrack.core.tracker import Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from phasetrack.core.model import BootKey, Record, Snapshot
    from phasetrack.core.schedule import Piece
    from phasetrack.edges.history import History
    from phasetrack.tape import Tape

# A live log is looked at every one to ten seconds; so is this one, and a long start no more often than so in all.
_LOOK_S = 10.0
_LOOKS = 1000
# States kept: the first after so much work, and never more than so many; then every second one goes.
_KEEP_AFTER_S = 0.1
_KEPT = 96


class Frozen(NamedTuple):
    """A state as bytes."""

    at_s: float
    position: int
    data: bytes


@dataclass(slots=True)
class _Now:
    """Where the fold stands."""

    tracker: Tracker
    at_s: float
    position: int = 0
    seen: int = 0  # samples taken
    look_s: float = inf  # when the next look is due
    asked: BootKey | None = None
    has_asked: bool = False
    ended: bool = False


class Keepsakes:
    """States on the way, so far apart that each saves about as much work."""

    def __init__(self) -> None:
        """Keep none yet."""
        self._kept: list[Frozen] = []
        self._apart_s = _KEEP_AFTER_S

    @property
    def bytes(self) -> int:
        """Held in all."""
        return sum(len(one.data) for one in self._kept)

    def wants(self, position: int, at_s: float, work_s: float) -> bool:
        """Whether a state is worth keeping, so much work behind the last one that was kept or gone back to."""
        if not self._kept:
            return True
        last = self._kept[-1]
        return work_s >= self._apart_s and (at_s, position) > (last.at_s, last.position)

    def keep(self, frozen: Frozen) -> None:
        """Keep one that is later than all others."""
        self._kept.append(frozen)
        if len(self._kept) > _KEPT:
            del self._kept[1::2]
            self._apart_s *= 2

    def before(self, at_s: float) -> Frozen:
        """The last one that knows nothing later."""
        return self._kept[max(bisect_right(self._kept, at_s, key=lambda one: one.at_s) - 1, 0)]


class Rerun:
    """The tracker's state at a moment of a tape. Any moment, in any order."""

    caught_up = True

    def __init__(self, tape: Tape, *, boot: int | None = None, history: History | None = None) -> None:
        """Begin before the first byte.

        Args:
            tape: a log that was read.
            boot: the boot to show; the newest at each moment where None.
            history: of earlier boots; those that were over before are known, as they were then.
        """
        self._tape = tape
        self._history = history
        self._priors: dict[tuple[BootKey | None, float], Priors] = {}
        self._looks = _Looks(tape.starts())
        tracker = Tracker(tape.patterns, tape.path, boot=boot)
        self._now = _Now(tracker, -inf, look_s=self._looks.after(-inf))
        self._piece: Piece | None = None
        self._pieces: Iterator[Piece] = iter(())
        self._ahead()
        self._work_s = 0.0
        self.keepsakes = Keepsakes()
        self._keep()

    @property
    def at_s(self) -> float:
        """The moment."""
        return self._now.at_s

    @property
    def position(self) -> int:
        """Bytes of the log written by then."""
        return self._now.position

    @property
    def ended(self) -> bool:
        """Whether the log's end has been reached."""
        return self._now.ended

    @property
    def next_s(self) -> float:
        """When something is next written or seen; infinite at the end."""
        seen, tape = self._now.seen, self._tape
        if self.ended:
            return inf
        due = tape.end_s if self._piece is None else self._piece.due_s
        return min(due, tape.seen[seen].now_s if seen < len(tape.seen) else inf)

    def snapshot(self) -> Snapshot:
        """All that was known at the moment."""
        return self._now.tracker.snapshot(None if self.ended else self.at_s)

    def seek(self, at_s: float, is_due: Callable[[], bool] = lambda: False) -> bool:
        """Go to a moment, forward or back.

        Args:
            at_s: on the tape's schedule.
            is_due: asked between inputs whether to stop on the way; calling again goes on.

        Returns:
            Whether it is there.
        """
        kept = self.keepsakes.before(at_s)
        if at_s < self.at_s or (kept.at_s, kept.position) > (self.at_s, self.position):
            self._thaw(kept)
        return all(not is_due() for _ in self.play(at_s))

    def play(self, until_s: float) -> Iterator[list[Record]]:
        """Play forward, input by input; yields the records that each gave rise to."""
        while (due := self._due_s()) <= until_s:
            began = time.perf_counter()
            records = self._step(due)
            self._work_s += time.perf_counter() - began
            if self.keepsakes.wants(self.position, self.at_s, self._work_s):
                self._keep()
            yield records
        self._now.at_s = max(self.at_s, until_s)

    # --- the one order of inputs --------------------------------------------------------------------

    def _due_s(self) -> float:
        return min(self.next_s, self._now.look_s)

    def _step(self, due_s: float) -> list[Record]:
        """Take the next input: of one moment the log's bytes first, then what was seen, then the look."""
        now, seen = self._now, self._tape.seen
        now.at_s = due_s
        if self._piece is not None and self._piece.due_s == due_s:
            return self._write(self._piece)
        if now.seen < len(seen) and seen[now.seen].now_s <= due_s:
            now.seen += 1
            return now.tracker.feed(seen[now.seen - 1])
        if now.look_s == due_s:
            now.look_s = self._looks.after(due_s)
            return now.tracker.feed(Tick(due_s)) + self._recall()
        now.ended, now.look_s = True, inf
        return now.tracker.feed(Closed())

    def _write(self, piece: Piece) -> list[Record]:
        records: list[Record] = []
        arrived = None if self._tape.schedule.timeless else piece.due_s
        recorded = piece.due_s if self._tape.dated else None
        for item in self._tape.items(self.position, piece.end):
            timed = replace(item, arrived_s=arrived, recorded_s=recorded) if isinstance(item, Chunk) else item
            records += self._now.tracker.feed(timed)
        self._now.position = piece.end
        self._piece = next(self._pieces, None)
        return records

    def _ahead(self) -> None:
        self._pieces = self._tape.schedule.pieces(self.position, self._tape.pages.read)
        self._piece = next(self._pieces, None)

    def _recall(self) -> list[Record]:
        """Ask the history whenever a live session would: when it is known whose past is wanted."""
        if self._history is None:
            return []
        now, known = self._now, self._now.tracker.of_log()
        key = key_of(known)
        if now.has_asked and key == now.asked:
            return []
        now.asked, now.has_asked = key, True
        began_s = known.started_at_s
        if began_s is None:
            began_s = self._tape.schedule.clock(self.at_s)
        if began_s is None:
            return []
        if (key, began_s) not in self._priors:
            self._priors[key, began_s] = self._history.then(known, began_s) or Priors()
        return now.tracker.feed(self._priors[key, began_s])

    # --- states -------------------------------------------------------------------------------------

    def _keep(self) -> None:
        """Freeze the state; what never changes is shared with the living one."""
        out = io.BytesIO()
        _Freezer(out, self._shared()).dump(self._now)
        self.keepsakes.keep(Frozen(self.at_s, self.position, out.getvalue()))
        self._work_s = 0.0

    def _thaw(self, frozen: Frozen) -> None:
        self._now = _Thawer(io.BytesIO(frozen.data), self._shared()).load()
        self._work_s = 0.0
        self._ahead()

    def _shared(self) -> Sequence[object]:
        return *self._now.tracker.fixed, *self._priors.values()


class _Looks:
    """When a tracker is asked to look: evenly, while a boot starts."""

    def __init__(self, starts: Sequence[tuple[float, float]]) -> None:
        self._starts = sorted(starts)
        self._step_s = max(_LOOK_S, sum(end - begin for begin, end in starts) / _LOOKS)

    def after(self, at_s: float) -> float:
        """The first look after a moment; infinite where none comes."""
        return min((self._in(begin, end, at_s) for begin, end in self._starts if end > at_s), default=inf)

    def _in(self, begin: float, end: float, at_s: float) -> float:
        if at_s < begin:
            return begin
        found = begin + (floor((at_s - begin) / self._step_s + 1e-6) + 1) * self._step_s
        return found if found < end else inf


def _mapping(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(values)


class _Freezer(pickle.Pickler):
    def __init__(self, out: io.BytesIO, shared: Sequence[object]) -> None:
        super().__init__(out, pickle.HIGHEST_PROTOCOL)
        self._numbers = {id(one): number for number, one in enumerate(shared)}

    def persistent_id(self, one: Any) -> int | None:
        return self._numbers.get(id(one))

    def reducer_override(self, one: Any) -> Any:
        """A read-only mapping cannot be pickled as it is."""
        return (_mapping, (dict(one),)) if isinstance(one, MappingProxyType) else NotImplemented


class _Thawer(pickle.Unpickler):
    def __init__(self, data: io.BytesIO, shared: Sequence[object]) -> None:
        super().__init__(data)
        self._shared = shared

    def persistent_load(self, number: Any) -> object:
        return self._shared[number]
