"""``Segment`` to ``Event``s: prefix off, glue apart, the one rule that knows the message.

Rules are anchored at the start of a message and hold no literal digit, so a message's meaning depends on its
words only. That makes two shortcuts exact: rules are looked up by the first letters of their text, and a
message whose digits alone differ from one seen before is known already. Rules compile on first use.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING

from phasetrack.core.bars import parse_bar
from phasetrack.core.model import EMPTY, End, Event, Where
from phasetrack.core.prefix import Learned, may_hold_embedded, parse, split_embedded
from phasetrack.core.redact import redact

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from phasetrack.core.model import PatternSet, Prefix, Rule, Segment, Value

# Length of the first letters by which rules are looked up.
_KEY = 4
_MEMO_LIMIT = 8192
_MEMO_TEXT = 400
_DIGITS = str.maketrans("0123456789", "0" * 10)
# A user's rule that takes longer than this on one line is switched off.
_PATIENCE_S = 0.05
# A rule sees no more of a message than this, but for arguments, which are 15 kB.
_MESSAGE_LIMIT = 32 * 1024


class Matcher:
    """One rule, compiled when first needed."""

    __slots__ = ("_compiled", "_needle", "_pattern", "dead", "order", "rule")

    def __init__(self, rule: Rule, order: int) -> None:
        """Hold a rule and its place in the order of the files."""
        self.rule, self.order = rule, order
        self.dead = ""  # why it was switched off
        self._needle: str | None = None
        self._pattern = rule.match if rule.match is not None else rule.bar or r"\Z"
        self._compiled: re.Pattern[str] | None = None

    @property
    def needle(self) -> str:
        """A text that every match must hold; only rules without literal first letters are looked up by it."""
        if self._needle is None:
            self._needle = _needle(self.rule.match or "")
        return self._needle

    def match(self, message: str) -> re.Match[str] | None:
        """Match from the start of the message. A rule over its time is switched off and matches no more."""
        if self.dead:
            return None
        if not self.rule.trusted:
            return self._match_untrusted(message)
        if self._compiled is None:
            self._compiled = re.compile(self._pattern)
        return self._compiled.match(message)

    def _match_untrusted(self, message: str) -> re.Match[str] | None:
        import regex  # slower than re here, but with a time limit; only users' rules pay for it

        try:
            return regex.compile(self._pattern).match(message, timeout=_PATIENCE_S)  # type: ignore[return-value]
        except TimeoutError:
            why = f"it took longer than {_PATIENCE_S * 1000:.0f} ms on one line"
        except regex.error as fault:
            why = str(fault)
        self.dead = f"Rule {self.rule.id} was switched off: {why} (see 'phasetrack patterns check')."
        return None


class Classifier:
    """Gives every piece of text its meaning. Its only state is what it learned of the transport."""

    def __init__(self, patterns: PatternSet) -> None:
        """Index the rules; none is compiled yet."""
        self.learned = Learned()
        self.exceptions: list[Matcher] = []  # they look at the last line of a traceback only
        self.matchers: list[Matcher] = []
        self._by_key: dict[str, list[Matcher]] = {}
        self._loose: list[tuple[str, Matcher]] = []
        bars = [(order, rule) for order, rule in enumerate(patterns.rules) if rule.bar is not None]
        self._bars = [Matcher(rule, order) for order, rule in bars if not rule.inside]
        self._inside: dict[str, list[Matcher]] = {}  # engine -> rules that act in its boots only
        self._bar_memo: dict[str, Rule | None] = {}
        self._memo: dict[str, Matcher | None] = {}
        for order, rule in enumerate(patterns.rules):
            if rule.match is not None:
                self._index(Matcher(rule, order))
            elif rule.inside:
                self._inside.setdefault(rule.engine, []).append(Matcher(rule, order))
        self._users = [matcher for matcher in (*self.matchers, *self._bars) if not matcher.rule.trusted]

    @property
    def fixed(self) -> tuple[object, ...]:
        """Everything but what was learned of the transport: an index, and memory that only saves time."""
        return tuple(part for name, part in vars(self).items() if name != "learned")

    def _index(self, matcher: Matcher) -> None:
        self.matchers.append(matcher)
        if matcher.rule.where is Where.EXCEPTION:
            self.exceptions.append(matcher)
            return
        if matcher.rule.inside:
            self._inside.setdefault(matcher.rule.engine, []).append(matcher)
            return
        heads = literal_heads(matcher.rule.match or "")
        if not heads or min(map(len, heads)) < _KEY:
            self._loose.append((matcher.needle, matcher))
            return
        for key in {head[:_KEY] for head in heads}:
            self._by_key.setdefault(key, []).append(matcher)

    def classify(self, segment: Segment) -> Iterator[Event]:
        """Yield what one segment says, glued pieces one after the other. Never raises."""
        return self._pieces(segment, self.learned)

    def stamp(self, segment: Segment) -> Event:
        """Only what stands before a message whose meaning is known."""
        return Event(segment.place, None, parse(segment.text, self.learned)[0], None, "")

    def peek(self, segment: Segment) -> Iterator[Event]:
        """The same for an open tail, of which nothing is learned."""
        return self._pieces(segment, self.learned.copy())

    def _pieces(self, segment: Segment, learned: Learned) -> Iterator[Event]:
        place = segment.place
        open_tail = segment.end is End.OPEN
        rest = [segment.text]  # pieces still to be read, the next one last
        while rest:
            prefix, message = parse(rest.pop(), learned)
            found = parse_bar(message) if "%" in message or message[:1] == "\u2588" else None
            if found is not None:
                bar, end = found
                if behind := message[end:].lstrip():
                    rest.append(behind)
                known = self.bar_rule(bar.desc)
                bar = bar._replace(desc=redact(bar.desc))
                yield Event(place, None, prefix, known, "", EMPTY, bar, open_tail, False)
                continue
            if may_hold_embedded(message):
                message, *more = split_embedded(message, learned)
                rest += reversed(more)
            yield self._event(segment, prefix, message, open_tail=open_tail)

    def _event(self, segment: Segment, prefix: Prefix, message: str, *, open_tail: bool) -> Event:
        timed = prefix.stamp_s is not None  # a transport stamps every line of a record
        if prefix.library and prefix.level == "ERROR":
            timed = False  # vLLM puts its prefix before every line of a traceback
        matcher = None if prefix.foreign else self.find(message)
        if matcher is None:
            return Event(segment.place, None, prefix, None, message, EMPTY, None, open_tail, not timed)
        found = matcher.match(message[:_MESSAGE_LIMIT])
        fields = EMPTY if found is None or not found.re.groups else convert(found.groupdict())
        return Event(segment.place, None, prefix, matcher.rule, redact(message), fields, None, open_tail, not timed)

    def find(self, message: str) -> Matcher | None:
        """Find the rule that knows a message: the first in file order."""
        if len(message) > _MEMO_TEXT:
            return self._search(message[:_MESSAGE_LIMIT])
        key = message.translate(_DIGITS)
        try:
            return self._memo[key]
        except KeyError:
            pass
        if len(self._memo) >= _MEMO_LIMIT:
            self._memo.clear()
        found = self._memo[key] = self._search(message)
        return found

    def _search(self, message: str) -> Matcher | None:
        best: Matcher | None = None
        for matcher in self._by_key.get(message[:_KEY], ()):
            if (best is None or matcher.order < best.order) and matcher.match(message) is not None:
                best = matcher
        for needle, matcher in self._loose:
            if needle in message and (best is None or matcher.order < best.order) and matcher.match(message):
                best = matcher
        return best

    def switched_off(self) -> list[tuple[str, str]]:
        """The users' rules that took too long: their ids, and why in words."""
        return [(matcher.rule.id, matcher.dead) for matcher in self._users if matcher.dead]

    def candidates(self, message: str) -> list[Matcher]:
        """All rules that claim a message (for ``patterns check``)."""
        return [
            matcher for matcher in self.matchers if matcher.rule.where is not Where.EXCEPTION and matcher.match(message)
        ]

    def kind_of(self, exception: str, engine: str = "") -> Rule | None:
        """Name the kind of failure by the last line of a traceback, as a boot of an engine knows it."""
        found = self.kind_and_facts(exception, engine)
        return None if found is None else found[0]

    def kind_and_facts(self, exception: str, engine: str = "") -> tuple[Rule, Mapping[str, Value]] | None:
        """The same with what the rule's groups say. A vague kind counts where no other knows the line."""
        best: tuple[Rule, Mapping[str, Value]] | None = None
        for inside in (True, False):
            for matcher in self.exceptions:
                rule = matcher.rule
                fits = rule.engine == engine or (not inside and (rule.generic or not rule.trusted or not engine))
                if not fits or rule.inside is not inside or (rule.vague and best is not None):
                    continue
                if (found := matcher.match(exception)) is not None:
                    best = rule, convert(found.groupdict())
                    if not rule.vague:
                        return best
        return best

    def reading(self, event: Event, engine: str) -> Event:
        """A line of another pack as a boot of an engine reads it: by the engine's own rule, where it has one."""
        text = event.text if event.bar is None else event.bar.desc
        for matcher in self._inside.get(engine, ()):
            if (matcher.rule.bar is None) == (event.bar is None) and (found := matcher.match(text)) is not None:
                return event._replace(rule=matcher.rule, fields=convert(found.groupdict()))
        return event

    def bar_rule(self, desc: str) -> Rule | None:
        """Find the rule of a bar by its description; unknown bars have none."""
        key = desc.translate(_DIGITS)
        try:
            return self._bar_memo[key]
        except KeyError:
            pass
        text = desc.lstrip(". ")
        found = next((matcher.rule for matcher in self._bars if matcher.match(text) is not None), None)
        if len(self._bar_memo) < _MEMO_LIMIT:
            self._bar_memo[key] = found
        return found


def convert(groups: Mapping[str, str | None]) -> Mapping[str, Value]:
    """Turn named groups into facts by the unit in their name.

    ``avail_mem_gib`` becomes ``avail_mem_bytes`` (SGLang's "GB" is 2^30 bytes), ``took_ms`` becomes
    ``took_s``; ``_text`` and ``_count`` go. A value that is no number is left out.
    """
    facts: dict[str, Value] = {}
    for group, text in groups.items():
        if text is None:
            continue
        name, _, unit = group.rpartition("_")
        try:
            facts.update(_fact(name, unit, text))
        except (ValueError, OverflowError):
            continue
    return facts


def _fact(name: str, unit: str, text: str) -> dict[str, Value]:
    if unit == "gib":
        return {f"{name}_bytes": round(_finite(text) * 2**30)}
    if unit == "ms":
        return {f"{name}_s": _finite(text) / 1000}
    if unit in {"s", "percent"}:
        return {f"{name}_{unit}": _finite(text)}
    if unit in {"bytes", "tokens"}:
        return {f"{name}_{unit}": int(text.replace(",", ""))}
    if unit == "count":
        return {name: int(text.replace(",", ""))}
    return {name: redact(text)}


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return value


# --- reading a pattern's literal text ---------------------------------------------------------------

_PLAIN = re.compile(r"(?:[^.^$*+?{}\[\]|()\\]|\\[^A-Za-z0-9])*")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_OPTIONAL = "?*{"


@lru_cache(maxsize=4096)
def literal_heads(pattern: str) -> tuple[str, ...]:
    """Literal texts, one of which every match begins with; empty where that cannot be told.

    Understands a plain beginning and one leading group of plain alternatives: ``(?:A|B)rest``.
    """
    pattern = pattern.removeprefix("^")
    if _has_top_alternative(pattern):
        return ()
    if pattern.startswith("(?:"):
        inside, behind = _leading_group(pattern)
        if inside is None or behind[:1] in set("?*{"):
            return ()
        options = inside.split("|")
        tails = [_literal(option) for option in options]
        return tuple(text + (_literal(behind)[0] if whole else "") for text, whole in tails)
    return (_literal(pattern)[0],)


def _has_top_alternative(pattern: str) -> bool:
    if "|" not in pattern:
        return False
    depth, k = 0, 0
    while k < len(pattern):
        char = pattern[k]
        if char == "\\":
            k += 1
        elif char == "[":
            k = pattern.find("]", k + 2)
            if k < 0:
                return True
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and depth == 0:
            return True
        k += 1
    return False


def _leading_group(pattern: str) -> tuple[str | None, str]:
    end = pattern.find(")")
    inside = pattern[3:end]
    if end < 0 or any(char in inside for char in "(["):
        return None, ""
    return inside, pattern[end + 1 :]


def _literal(pattern: str) -> tuple[str, bool]:
    """Read the literal text at the start of a pattern, and whether it is all of it."""
    found = _PLAIN.match(pattern)
    end = 0 if found is None else found.end()
    text = _ESCAPED.sub(r"\1", pattern[:end])
    if pattern[end : end + 1] in _OPTIONAL and end < len(pattern):
        text = text[:-1]
    return text, end == len(pattern)


def _needle(pattern: str) -> str:
    """Find the longest literal text that every match must hold; empty where none is sure."""
    if _has_top_alternative(pattern):
        return ""
    runs, depth, k, run = [""], 0, 0, ""
    while k < len(pattern):
        text, _ = _literal(pattern[k:])
        if text and depth == 0:
            runs.append(text)
        step = _raw_length(pattern, k, text)
        k += step
        if k < len(pattern):
            char = pattern[k]
            if char == "[":
                k = max(k, pattern.find("]", k + 2))
            elif char == "{":
                k = max(k, pattern.find("}", k))  # how often, no text
            elif char == "\\":
                k += 1
            elif char in "()":
                depth += 1 if char == "(" else -1
            k += 1
    del run
    return max(runs, key=len)


def _raw_length(pattern: str, k: int, text: str) -> int:
    """How many characters of the pattern spell a literal text."""
    length = 0
    for _ in text:
        length += 2 if pattern[k + length] == "\\" else 1
    return length
