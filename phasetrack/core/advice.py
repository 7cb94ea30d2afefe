"""What a failure means and what to do, in one plain sentence each, with this log's own numbers.

A pack's ``cause`` and ``remedy`` name facts in braces: ``--mem-fraction-static (now {mem_fraction_static})``. Rules:

1. A rule's own groups are always known; ``{wanted}``. Their unit makes them words: ``_bytes``, ``_s``.
2. A fact of the log may be unknown. So it stands in parentheses, which go with it.
3. A *case* of the rule is taken instead where its condition holds and everything that it names is known.
4. Some facts are derived: what share of a GPU ``--mem-fraction-static`` is in bytes, and what it must be at least.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import ceil
from string import Formatter
from typing import TYPE_CHECKING

from phasetrack.core.say import duration, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from phasetrack.core.model import Case, Failure, Rule, Value

# A parenthesis, and the space before it, which goes with it.
_PARENTHESIS = re.compile(r" ?\(([^()]*)\)")
# The stop of a sentence whose end is a value that is a sentence itself.
_SECOND_STOP = re.compile(r"(?:(?<=[!?])|(?<=[^.\s]\.))\.(?=\s|\Z)")
_LONG = 240  # a value longer than this is cut: an exception's text can hold a whole file

_SHORT = 160  # of a message within a sentence

# Facts that this module derives, and those that a failing record itself gives.
DERIVED = frozenset({"share_bytes", "room_bytes", "over_bytes", "fraction_needed"})
OF_RECORD = frozenset({"exception", "frame", "path", "source", "phase", "rank", "clue"})

_SIGNALS = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS",
    8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM",
}  # fmt: skip


def advise(rule: Rule, values: Mapping[str, Value], phase: str | None) -> tuple[str, str]:
    """The cause and the remedy of a kind of failure.

    Args:
        rule: the kind.
        values: all that is known by name: facts, arguments, derived facts, the rule's own groups.
        phase: the phase in which it failed.
    """
    known = {name: text for name in _names_of(rule) if (text := words(name, values.get(name)))}
    case = next((case for case in rule.cases if _applies(case, known, phase)), None)
    cause = (case.cause if case is not None else "") or rule.cause
    remedy = (case.remedy if case is not None else "") or rule.remedies.get(phase or "", rule.remedy)
    return fill(cause, known), fill(remedy, known)


def _names_of(rule: Rule) -> set[str]:
    """All that a rule's advice may name."""
    cases = [text for case in rule.cases for text in (case.cause, case.remedy, f"{{{case.of}}}" if case.of else "")]
    return {name for text in (rule.cause, rule.remedy, *rule.remedies.values(), *cases) for name in names_in(text)}


def headline(failure: Failure) -> str:
    """The cause and the message in one sentence; the message alone where no cause is known."""
    message = failure.message if len(failure.message) <= _SHORT else failure.message[: _SHORT - 1] + "…"
    if failure.inferred or not failure.cause:
        return message
    what, _, place = message.rpartition(", in ")
    message = what if what and place in failure.cause else message  # a cause may name the place, too
    said = message.partition(": ")[2] or message
    if said.rstrip(". ") in failure.cause:
        return failure.cause
    return f"{failure.cause.rstrip('.')} ({message.rstrip('. ')})."


def fill(template: str, known: Mapping[str, str]) -> str:
    """Put values into a template; a parenthesis with an unknown one goes. Never raises on a pack that was checked."""
    text = _PARENTHESIS.sub(lambda found: found[0] if known.keys() >= set(names_in(found[1])) else "", template)
    parts = Formatter().parse(text)
    text = "".join(literal + ("" if name is None else known.get(name, "unknown")) for literal, name, _, _ in parts)
    return _SECOND_STOP.sub("", text)


@lru_cache(maxsize=2048)
def names_in(template: str) -> tuple[str, ...]:
    """The names in braces."""
    return tuple(name for _, name, _, _ in Formatter().parse(template) if name is not None)


def bare_names_in(template: str) -> tuple[str, ...]:
    """The names in braces outside all parentheses: they must be known."""
    return names_in(_PARENTHESIS.sub("", template))


def _applies(case: Case, known: Mapping[str, str], phase: str | None) -> bool:
    if case.phase and case.phase != phase:
        return False
    if case.of and re.fullmatch(case.like, known.get(case.of, ""), re.DOTALL) is None:
        return False
    return known.keys() >= {*bare_names_in(case.cause), *bare_names_in(case.remedy)}


def words(name: str, value: Value) -> str:
    """A value in words by the unit in its name; empty where there is none."""
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value)
    if isinstance(value, int | float):
        if name.endswith("_bytes"):
            return size(value)
        if name.endswith("_s"):
            return duration(value)
        if name.endswith("exit_code"):
            return _exit_code(int(value))
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, tuple):
        return ", ".join(filter(None, (words(name, part) for part in value)))
    text = str(value).strip()
    if name.endswith("exit_code") and re.fullmatch(r"-?\d{1,9}", text):
        return _exit_code(int(text))
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"


def _exit_code(code: int) -> str:
    """``-9, SIGKILL``; ``137`` is the same end, as a shell tells it."""
    signal = -code if code < 0 else code - 128 if code > 128 else 0
    return f"{code}, {_SIGNALS[signal]}" if signal in _SIGNALS else str(code)


def derived(facts: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    """What follows from the memory that the log tells of.

    SGLang reserves ``mem_fraction_static`` of what was free before the load for weights and cache together; what
    is left for the cache is what is free after the load less the rest (model_runner.py:profile_max_num_token).
    """
    fraction, before = _number(facts, "mem_fraction_static"), _number(facts, "avail_mem_bytes")
    after = _number(facts, "draft_after_load_bytes") or _number(facts, "after_load_bytes")
    if fraction is None or not before:
        return
    yield "share_bytes", round(fraction * before)
    if after is None or not 0 < after <= before:
        return
    room = round(after - before * (1 - fraction))
    yield ("room_bytes", room) if room > 0 else ("over_bytes", -room)
    needed = ceil((1 - after / before) * 100 + 0.5) / 100
    if needed > fraction:  # else something else took the memory
        yield "fraction_needed", f"{needed:.2f}"


def _number(facts: Mapping[str, Value], name: str) -> float | None:
    value = facts.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
