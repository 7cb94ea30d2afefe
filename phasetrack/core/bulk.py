r"""Runs of whole serving lines, stepped over in C: a server that works for days prints little else.

A run is lines that begin with an engine's stamp and hold, to their very end, one of the messages that the pack
declares (``[[bulk]]``). What is not taken goes the usual way, so a record that is glued to a half-written line is
found: its line does not end as a serving line does, or has a second ``[``.

How it is fast (``tests/bench``, 1 GiB): ``re`` steps over ``.`` twice to ten times as fast as over a class such as
``[^\r\n\[]``. So ``[`` is looked at as if it were a line end, which ``.`` never crosses, and the run stops short of
a carriage return or a NUL. ``LINES`` lines are taken at a time, which saves counting them, and no more are tried where
fewer bytes are left than the last ones had. They are of one hour, for what is equal is compared faster than it is read.
Of a stamp's digits only the places are looked at. An alternative is cheap where its first letter decides: each message
is tried with its line end behind it, and only then with what else may stand there. Ranks that say more are tried first,
and where one of them says all, the usual lines stand before all others, with no choice within.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LINES = 64

# Compiling takes 5 ms, in which 300 lines are read.
_WORTH_BYTES = 32 * 1024

# A rank that a boot has not shown before ends the run, and is known from then on.
_RANKS_KEPT = 64
# Ranks whose usual lines are told at first sight; each adds to what must be compiled.
_PLAIN = 8
_LF = ord("\n")
_STOPS = (b"\r", b"\0")
_NEVER = re.compile(rb"(?!)")


class BulkRuns:
    """Finds runs in one buffer after the other. Answers depend on the buffer alone, never on earlier ones."""

    __slots__ = ("_buffer", "_limit", "_many", "_messages", "_ranks", "_seen", "_some", "_stops")

    def __init__(self, messages: Iterable[str]) -> None:
        """Take the pack's expressions of whole messages."""
        self._messages = tuple(messages)
        self._ranks: tuple[str, ...] = ()
        self._many = self._some = _NEVER
        self._buffer = self._seen = b""
        self._limit = 0
        self._stops: tuple[bytes, ...] = ()  # those that the buffer holds

    def speak(self, ranks: Iterable[str]) -> None:
        """Know the ranks that print: their tags as they stand behind the stamp."""
        new = {rank for rank in ranks if rank and rank not in self._ranks}
        if new and len(self._ranks) + len(new) <= _RANKS_KEPT:
            self._ranks = tuple(sorted({*self._ranks, *new}))
            self._many = self._some = _NEVER

    def step(self, buffer: bytes, position: int) -> tuple[int, int] | None:
        """Answer where the run that begins at a line's begin ends, and how many lines it has; None for no run."""
        if self._many is _NEVER and not self._is_worth_it(buffer, position):
            return None
        if buffer is not self._buffer:
            self._look(buffer)
        if self._limit < position:
            self._limit = self._next_stop(position)
        seen, limit, many = self._seen, self._limit, self._many.match
        end, lines, size = position, 0, 0
        while limit - end >= size and (found := many(seen, end, limit)) is not None:
            size = found.end() - end
            end += size
            lines += LINES
        found = self._some.match(seen, end, limit)
        if found is not None:
            lines += buffer.count(b"\n", end, found.end())
            end = found.end()
        elif lines and buffer[end - 1] != _LF:
            lines -= 1
        if end > position and buffer[end - 1] != _LF:  # a record is glued to the last line: its [ looked like an end
            end = buffer.rfind(b"\n", position, end) + 1 or position
        return (end, lines) if lines else None

    def _is_worth_it(self, buffer: bytes, position: int) -> bool:
        """Compile, unless that would take longer than reading so few lines one by one."""
        if not self._messages or len(buffer) - position < _WORTH_BYTES:
            return False
        near = buffer[position : position + _WORTH_BYTES]
        said = {rank: near.count(f" {rank}] ".encode()) for rank in self._ranks}
        ranks = tuple(sorted(said, key=lambda rank: -said[rank]))
        saying = sum(map(bool, said.values()))
        self._many, self._some = _compiled(self._messages, ranks, saying if saying < 2 else None)
        return True

    def _look(self, buffer: bytes) -> None:
        self._buffer = buffer
        self._stops = tuple(stop for stop in _STOPS if stop in buffer)
        seen = buffer.replace(b"\r\n", b" \n") if self._stops else buffer
        self._seen = seen.replace(b"[", b"\n")
        self._limit = self._next_stop(0)

    def _next_stop(self, position: int) -> int:
        """Where the next carriage return or NUL stands: no run goes beyond."""
        places = [self._seen.find(stop, position) for stop in self._stops]
        return min((place for place in places if place >= 0), default=len(self._seen))


@lru_cache(maxsize=64)
def _compiled(
    messages: tuple[str, ...], ranks: tuple[str, ...], only: int | None
) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Compile the expressions of many lines and of some; ``only`` is 1 where the first rank says all, 0 where none."""
    every = [f"(?:{_seen_so(message)})" for message in messages]
    worded = [text for text, message in zip(every, messages, strict=True) if message[:1].isalpha()]
    other = [text for text in every if text not in worded]
    named = [*worded, *(f"INFO:     {text}" for text in other)]
    hour, tags = r"\n20..-..-.. ..:", ["]", *(f" {re.escape(rank)}]" for rank in ranks)]
    plain = "|".join(rf"{text}\n" for text in named)  # no branch left but those that their first letters decide
    line = rf"(?:{'|'.join(tags)}) (?:{'|'.join([*named, *other])})(?:\n|,? *\n)"
    usual: list[str] = []
    if only is not None and len(worded) > 1 and other:
        usual = [f"{tags[only]} {worded[0]}", f"] {named[len(worded)]}", f"{tags[only]} {worded[1]}"]
    many = "|".join([*(rf"{text}\n" for text in usual), *(f"{tag} (?:{plain})" for tag in tags[:_PLAIN]), line])
    of_an_hour = rf"(?=({hour}))(?:\1..:..(?:{many})){{{LINES}}}+"
    return re.compile(of_an_hour.encode()), re.compile(f"(?>(?:{hour}..:..{line})+)".encode())


def _seen_so(message: str) -> str:
    r"""Turn a message's expression into one of the text in which ``[`` is a line end."""
    return message.replace(r"[^\r\n\[]*", ".*").replace(r"\[", r"\n")
