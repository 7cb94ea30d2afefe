r"""Boots that have been read before: a crash loop is the same start some thousand times.

A boot is stepped over if nobody asks for its records and it says what an earlier one said, but for its numbers: then
its summary follows from that one's, with its own stamps. The rules, all of which must hold:

1.  *A boot's text* goes from one line of arguments, behind an engine's dated stamp and no tag, to the next such line.
    It is no longer than a line may be, and holds no escape: a number in one could move the cursor.
2.  *The same but for numbers*: every run of digits becomes one digit, and the text is equal. Rules hold no digit. What
    they could tell by a number's length is left out: more than 12 digits, percents beyond 999, dates within a line.
    Users' rules may hold digits: with them every boot is read.
3.  *Stamps* stand where they stood, with the ranks that stood there, and are of one day. What was read before is no
    later than the first of them, and nothing in the boot, a frame of a bar included, is later than the next start.
4.  *The earlier boot* was read in full and alone: one server without a tag or a transport's prefix; it became ready or
    was stopped; nothing in it failed or explains a failure, none of its lines may already be the next start's.
5.  *The boot before* is ready or over, so that arguments begin another one.

The latest boot is always read in full: there are no arguments behind it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, nan
from typing import TYPE_CHECKING

from phasetrack.core.bars import clock_of
from phasetrack.core.classify import Matcher
from phasetrack.core.machine import opens, summarize_boot
from phasetrack.core.model import Chunk, Outcome, Role
from phasetrack.core.prefix import Learned, parse
from phasetrack.core.segments import LIMIT
from phasetrack.core.state import Boot
from phasetrack.core.tracker import Counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import Event, Gap, Place
    from phasetrack.core.tracker import Tracker

_TIME = rb"20\d\d-\d\d-\d\d (?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_OPENING = re.compile(rb"\[%b\] " % _TIME)
_STAMP = re.compile(rb"\n\[(%b)([^\]\n]*)\] " % _TIME)
_DAY, _CLOCK = slice(10), slice(1, 20)
_ELAPSED = re.compile(rb"\[(\d[\d:]*)<")
_SHORT = re.compile(rb"\d\d:\d\d")
_ENDS = {Outcome.READY, Outcome.STOPPED}
_ZERO = bytes.maketrans(b"0123456789", b"0" * 10)
_ODD = (b"0" * 13, b"0000%", b"\x1b")
# Where a line's stamp ends: its digits are counted.
_STAMP_BYTES = 20
# Of the texts that are remembered, and of their lines.
_KEPT_BYTES = 4 << 20


class Shapes(dict[bytes, "bytes | None"]):
    """Lines whose digits are zeros, each with a digit for every number; None where numbers may say more."""

    def __init__(self) -> None:
        """Know no line."""
        super().__init__()
        self._bytes = 0

    def of(self, text: bytes) -> tuple[bytes | None, ...]:
        """The shapes of a text's lines."""
        return tuple(map(self.__getitem__, text.translate(_ZERO).split(b"\n")))

    def __missing__(self, line: bytes) -> bytes | None:
        """Make the shape of a line."""
        shape: bytes | None = None
        if not any(odd in line for odd in _ODD):
            rest = line[_STAMP_BYTES:].replace(b"0000", b"0").replace(b"00", b"0").replace(b"00", b"0")
            shape = None if b"[0-0-0" in rest else line[:_STAMP_BYTES] + rest
        self._bytes += len(line)
        if self._bytes > _KEPT_BYTES:
            self.clear()
            self._bytes = len(line)
        self[line] = shape
        return shape


@dataclass(slots=True)
class Heard:
    """What is heard while a boot is read in full."""

    stamped: int = 0  # lines
    openings: int = 0
    odd: bool = False  # something that another boot could mean otherwise


@dataclass(frozen=True, slots=True)
class Known:
    """What followed from a boot's text."""

    ranks: list[bytes]  # of its stamped lines, the first one left out
    ready: int | None  # which of them said so
    painted: int  # how many stood before the last frame of a bar
    counts: Counted
    engine: str
    outcome: Outcome

    def boot(self, number: int, place: Place, times: list[bytes]) -> Boot:
        """A boot like it, as far as its summary tells and the next one asks."""
        boot = Boot(number, "", place, self.engine, started_at_s=_seconds(times[0]), outcome=self.outcome, opened=True)
        boot.heard_s = _seconds(max(times))
        if self.ready is not None:
            boot.ready, boot.ready_at_s = place, _seconds(times[self.ready])
        return boot


@dataclass(slots=True)
class Again:
    """Reads a log whose records nobody asks for."""

    tracker: Tracker
    _sign: bytes = b""  # stands in every line of arguments
    _shapes: Shapes = field(default_factory=Shapes)
    _known: dict[tuple[object, ...], Known] = field(default_factory=dict)
    _kept: int = 0
    _heard: Heard = field(default_factory=Heard)

    def unread(self, items: Iterator[Chunk | Gap]) -> Iterator[Chunk | Gap]:
        """Yield what the tracker must be fed, before the next is asked for."""
        if not self.tracker.is_shipped:
            yield from items
            return
        self.tracker.listen(self._hear, self._hear_run)
        held = b""  # a boot whose end has not come
        for item in items:
            if not isinstance(item, Chunk) or item.recorded_s is not None or item.turned is not None:
                yield Chunk(held)
                yield item
                yield from items
                return
            data = held + item.data if held else item.data
            if not self._sign:
                yield Chunk(data[:LIMIT])
                data = data[LIMIT:]
            begin = self._next(data, 0)
            if begin != 0:
                yield Chunk(data[:begin])
            while begin is not None and (end := self._next(data, begin + 1)) is not None:
                yield from self._boot(data[begin:end], data[end : end + 32])
                begin = end
            held = b"" if begin is None else data[begin:]
            if len(held) > LIMIT:
                yield Chunk(held)
                held = b""
        yield Chunk(held)

    def _next(self, data: bytes, begin: int) -> int | None:
        """Where the next line of arguments is. Serving lines seldom hold a ``=``, and a single byte is found fast."""
        if not self._sign or data.find(b"=", begin) < 0:
            return None
        at = begin
        while (at := data.find(self._sign, at)) >= 0:
            line = data.rfind(b"\n", 0, at) + 1
            found = _OPENING.match(data, line) if line >= begin else None
            if found is not None and found.end() == at + 2:
                return line
            at += 1
        return None

    def _boot(self, text: bytes, behind: bytes) -> Iterator[Chunk]:
        """One boot: nothing where it is stepped over, else what must be read of it."""
        tracker = self.tracker
        key = (tracker.transport, self._shapes.of(text)) if len(text) <= LIMIT else ((), (None,))
        times, ranks = [text[_CLOCK]], []
        for time, rank in _STAMP.findall(text):
            times.append(time)
            ranks.append(rank)
        sure = None not in key[1] and min(times)[_DAY] == max(times)[_DAY] and self._follows(times[0])
        known = self._known.get(key) if sure else None
        like = known is not None and known.ranks == ranks
        if known is not None and like and _latest_s(text, times, known.painted) <= _seconds(behind[_CLOCK]):
            boot = known.boot(tracker.state.count + 1, tracker.place, times)
            tracker.step_over_boot(boot, len(text), known.counts, year=int(times[0][:4]))
            return
        self._heard, before = Heard(), tracker.counted
        yield Chunk(text)
        if sure and known is None and self._kept < _KEPT_BYTES:
            known = self._judge(text, times, ranks, before)
            if known is not None:
                self._known[key] = known
                self._kept += len(text)

    def _follows(self, time: bytes) -> bool:
        """Whether arguments of this time begin another boot, and nothing that was said before is of it."""
        tracker = self.tracker
        boot = tracker.state.live.get("")
        newest = tracker.state.clock.newest_s
        if boot is None or newest is None or not tracker.is_between or tracker.state.clock.undated:
            return False
        over = boot.is_over or boot.ready is not None
        return over and _seconds(time) >= max(newest, newest if boot.heard_s is None else boot.heard_s)

    def _judge(self, text: bytes, times: list[bytes], ranks: list[bytes], before: Counted) -> Known | None:
        """What is remembered of a boot that was read in full; None where another one could mean otherwise."""
        tracker, heard = self.tracker, self._heard
        boot, after = tracker.state.shown, tracker.counted
        if boot is None or boot.begin.offset != before.offset or not tracker.is_between or heard.odd:
            return None
        if heard.openings != 1 or heard.stamped != len(times) or boot.outcome not in _ENDS:
            return None
        places = [before.offset, *(before.offset + found.start() + 1 for found in _STAMP.finditer(text))]
        ready = -1 if boot.ready is None else boot.ready.offset
        last = before.offset + max((found.start() for found in _ELAPSED.finditer(text)), default=-1)
        said = places.index(ready) if ready in places else None
        counts = Counted(0, *(now - then for now, then in zip(after[1:], before[1:], strict=True)))
        known = Known(ranks, said, sum(place < last for place in places), counts, boot.engine, boot.outcome)
        told = known.boot(boot.number, boot.begin, times)
        return known if summarize_boot(told) == summarize_boot(boot) and (told.ready is None) == (ready < 0) else None

    def _hear(self, event: Event) -> None:
        heard, prefix, rule = self._heard, event.prefix, event.rule
        opening = "args" in event.fields
        if opening and prefix.engine and not self._sign and rule is not None:
            self._sign = b"] " + Matcher(rule, 0).needle.encode()
        heard.stamped += prefix.stamp_s is not None
        heard.openings += opening or (rule is not None and opens(rule))
        heard.odd = heard.odd or self.tracker.is_unsure or _is_odd(event) or self._is_late(event)

    def _is_late(self, event: Event) -> bool:
        """Whether a rank begins behind the end of its start: a step of the time decides which boot that is."""
        boot, rule = self.tracker.state.shown, event.rule
        if boot is None or rule is None or not (boot.is_over or boot.ready is not None):
            return False
        return rule.role is Role.BEGIN and rule.phase in {"dist_init", "target_load"}

    def _hear_run(self, lines: int) -> None:
        self._heard.stamped += lines


def _is_odd(event: Event) -> bool:
    """Whether a line is of another writer, has another clock, or tells of a failure."""
    prefix, rule = event.prefix, event.rule
    away = prefix.server or prefix.foreign or prefix.library or prefix.process or prefix.outer_s is not None
    if away or (prefix.stamp_s is not None and not (prefix.engine and prefix.dated)):
        return True
    if rule is None:
        return False
    return not rule.trusted or rule.role is Role.FAILURE or (rule.role is Role.WARNING and prefix.stamp_s is None)


def _latest_s(text: bytes, times: list[bytes], painted: int) -> float:
    """The newest stamp of a boot, or what no frame of its bars is later than: those stand behind ``painted`` stamps."""
    last, elapsed = _seconds(max(times)), _ELAPSED.findall(text)
    if not elapsed:
        return last
    if set(map(len, elapsed)) != {len("00:00")} or not _SHORT.fullmatch(max(elapsed)):
        return inf
    return max(last, _seconds(max(times[:painted])) + clock_of(max(elapsed).decode()))


def _seconds(time: bytes) -> float:
    return _day_s(time[:10]) + int(time[11:13]) * 3600 + int(time[14:16]) * 60 + int(time[17:19])


@lru_cache(maxsize=16)
def _day_s(day: bytes) -> float:
    """When a day began, as the prefix has it; a day that is none is never reached."""
    found = parse(f"[{day.decode()} 00:00:00] ", Learned())[0].stamp_s
    return nan if found is None else found
