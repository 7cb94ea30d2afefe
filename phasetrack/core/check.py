"""A pattern set's own samples through the real pipeline → problems.

``patterns`` looks at form; here the question is whether the rules say what they claim: every sample is cut,
parsed and classified as a log's line would be, beside all other rules that are loaded. Kept apart from
``classify`` so that following a log never pays for it. The clock comes from outside, as everywhere in core.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from phasetrack.core.advice import DERIVED, OF_RECORD, bare_names_in, names_in
from phasetrack.core.bars import parse_bar
from phasetrack.core.classify import Classifier, Matcher, convert, literal_heads
from phasetrack.core.model import Role, Segment, Where
from phasetrack.core.patterns import UNITS
from phasetrack.core.prefix import Learned, parse
from phasetrack.core.segments import Piece, Segmenter
from phasetrack.core.summary import SHOWN_ARGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from phasetrack.core.model import Event, PatternSet, Rule

# A hostile text as long as a server_args line must be answered within this. A rule whose work grows with the
# square of the length needs seconds for it, an honest one less than a millisecond.
HOSTILE_BYTES = 16 * 1024
PATIENCE_S = 0.05
# A machine that stalls is not the rule's fault: only the fastest of so many tries counts.
_TRIES = 3
# Fewer letters, at the start or anywhere, would send nearly every line to the rule.
_HEAD, _NEEDLE = 4, 3

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NOT_TEXT = re.compile(r"\(\?P[<=]\w+[>)]|\{\d*,?\d*\}")
_BACK_REFERENCE = re.compile(r"\(\?P=|\\[1-9]")
_GREEDY_START = re.compile(r"\^?(?:\.|\[\\s\\S\])[*+]")
_GROUP = re.compile(r"\(\?P<(\w+)>")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that does not hold: which rule, what, and the text that shows it."""

    rule_id: str
    fact: str
    text: str = ""


def check(patterns: PatternSet, clock: Callable[[], float]) -> list[Problem]:
    """Prove every rule of a pattern set.

    Args:
        patterns: all packs that will be used together.
        clock: seconds of any monotonic clock; it times the answers to hostile texts.

    Returns:
        The problems in the order of the rules, those of bulk expressions last; empty where all holds.
    """
    checker = _Checker(patterns, clock)
    found = [problem for rule in patterns.rules for problem in checker.rule(rule)]
    found += [problem for k, bulk in enumerate(patterns.bulk, 1) for problem in checker.bulk(bulk, f"bulk {k}")]
    return found


class _Checker:
    """What all checks share: the classifier with every rule in it."""

    def __init__(self, patterns: PatternSet, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.classifier = Classifier(patterns)
        self.bars = [(re.compile(rule.bar or r"\Z"), rule) for rule in patterns.rules if _compiles(rule.bar)]
        given = {name for rule in patterns.rules for name in _facts_of(rule)}
        self.facts = frozenset(given | {*SHOWN_ARGS} | DERIVED | OF_RECORD)

    def rule(self, rule: Rule) -> Iterator[Problem]:
        broken = _uncompilable(rule)
        if broken is not None:
            yield broken
            return
        yield from self._shape(rule)
        for sample in rule.must_match:
            yield from self._claimed(rule, sample)
        for sample in rule.must_not_match:
            if rule in self._claimants(rule, sample):
                yield Problem(rule.id, "claims a line that it must not match", sample)
        yield from _conversions(rule)
        texts = _hostile(rule.match or rule.bar or "", rule.must_match)
        if rule.match is None:
            yield from self._patience(rule.id, re.compile(rule.bar or r"\Z").match, texts)
        else:
            matcher = Matcher(rule, 0)
            yield from self._patience(rule.id, matcher.match, texts, matcher)

    def bulk(self, pattern: str, name: str) -> Iterator[Problem]:
        yield from _digits(name, pattern)
        yield from self._patience(name, re.compile(pattern).fullmatch, _hostile(pattern, ()))

    def _shape(self, rule: Rule) -> Iterator[Problem]:
        for kind in ("must_match", "must_not_match"):
            if not getattr(rule, kind):
                yield Problem(rule.id, f"has no {kind} sample")
        yield from _digits(rule.id, rule.match or rule.bar or "")
        if rule.match is not None:
            yield from _anchors(rule)
        if rule.role is Role.FAILURE:
            yield from _advice(rule, self.facts)

    def _claimed(self, rule: Rule, sample: str) -> Iterator[Problem]:
        """Whether a sample is claimed by its own rule, by no other, and in the real pipeline too."""
        claimants = self._claimants(rule, sample)
        if rule not in claimants:
            yield Problem(rule.id, "does not match its own sample", sample)
        for other in claimants:
            if other is not rule and not other.vague and not _is_apart(rule, other):
                yield Problem(rule.id, f"shares a sample with {other.id}", sample)
        if rule in claimants and not any(found is rule for found in self._pipeline(rule, sample)):
            yield Problem(rule.id, "matches its sample, but the pipeline does not find it", sample)

    def _claimants(self, rule: Rule, sample: str) -> list[Rule]:
        """All rules that claim a whole line, bars and exceptions by their own way in."""
        _, message = parse(sample, Learned())
        if rule.bar is not None:
            bar = parse_bar(message)
            desc = None if bar is None else bar[0].desc.lstrip(". ")
            return [] if desc is None else [other for pattern, other in self.bars if pattern.match(desc) is not None]
        claimants = [matcher.rule for matcher in self.classifier.candidates(message)]
        if rule.where is Where.EXCEPTION:
            claimants += [matcher.rule for matcher in self.classifier.exceptions if matcher.match(message) is not None]
        return claimants

    def _pipeline(self, rule: Rule, sample: str) -> list[Rule | None]:
        """The rules that a log's reader would see for a whole line."""
        self.classifier.learned = Learned()  # nothing that another sample taught
        events = [event for segment in _segments(sample) for event in self.classifier.classify(segment)]
        if rule.where is Where.EXCEPTION:
            return [self.classifier.kind_of(event.text, rule.engine) for event in events]
        if rule.inside:  # it is asked only where a rule of another pack knows the line
            events = [self.classifier.reading(event, rule.engine) for event in events if event.rule is not None]
        return [event.rule for event in events if _is_kind(event, rule)]

    def _patience(
        self, name: str, match: Callable[[str], object], texts: Iterator[str], matcher: Matcher | None = None
    ) -> Iterator[Problem]:
        """Whether every hostile text is answered in time. An untrusted rule has a limit of its own."""
        for text in texts:
            took_s = [self._time(match, text)]
            while min(took_s) > PATIENCE_S and len(took_s) < _TRIES:
                took_s.append(self._time(match, text))
            if min(took_s) > PATIENCE_S or (matcher is not None and matcher.dead):
                yield Problem(name, f"takes {min(took_s) * 1000:.0f} ms on a hostile text", text[:80])
                return

    def _time(self, match: Callable[[str], object], text: str) -> float:
        began = self.clock()
        match(text)
        return self.clock() - began


def _is_apart(rule: Rule, other: Rule) -> bool:
    """Whether two rules never see the same line: one acts in its own engine's boots only, before the other."""
    return rule.engine != other.engine and (rule.inside or other.inside)


def _is_kind(event: Event, rule: Rule) -> bool:
    return (event.bar is not None) == (rule.bar is not None)


def _segments(sample: str) -> Iterator[Segment]:
    segmenter = Segmenter()
    cut: list[Piece] = [*segmenter.feed(f"{sample}\n".encode()), *segmenter.close()]
    for segment in cut:
        if isinstance(segment, Segment):  # without `swallow` nothing else comes
            yield segment


# --- one rule's regular expression ------------------------------------------------------------------


def _compiles(pattern: str | None) -> bool:
    try:
        re.compile(pattern or "")
    except re.error:
        return False
    return pattern is not None


def _uncompilable(rule: Rule) -> Problem | None:
    pattern = rule.match if rule.match is not None else rule.bar
    return None if _compiles(pattern) else Problem(rule.id, "is no regular expression", pattern or "")


def _digits(name: str, pattern: str) -> Iterator[Problem]:
    """Whether the expression tells digits apart, which the digit-blind memo of the classifier would lose."""
    if _BACK_REFERENCE.search(pattern) is not None:
        yield Problem(name, "holds a back-reference", pattern)
    found = re.search(r"\d", _NOT_TEXT.sub("", _ESCAPED.sub("", pattern)))
    if found is not None:
        yield Problem(name, f"holds the literal digit {found[0]}; write \\d", pattern)


def _anchors(rule: Rule) -> Iterator[Problem]:
    pattern = rule.match or ""
    if _GREEDY_START.match(pattern) is not None:
        yield Problem(rule.id, "is not anchored: it may begin anywhere", pattern)
    if rule.where is Where.EXCEPTION:  # few, and tried on the last line of a traceback only
        return
    heads = literal_heads(pattern)
    if len(Matcher(rule, 0).needle) < _NEEDLE and (not heads or min(map(len, heads)) < _HEAD):
        yield Problem(rule.id, "holds no literal text to look it up by", pattern)


def _advice(rule: Rule, facts: frozenset[str]) -> Iterator[Problem]:
    """Whether a failure says why and what to do, and names nothing that could be unknown just then."""
    if rule.where is None:
        yield Problem(rule.id, "is a failure without `where`")
    for name in ("cause", "remedy"):
        if not getattr(rule, name):
            yield Problem(rule.id, f"is a failure without a {name}")
    own = set(_facts_of(rule))
    in_cases = [text for case in rule.cases for text in (case.cause, case.remedy)]
    for text in (rule.cause, rule.remedy, *rule.remedies.values(), *in_cases):
        names = _placeholders(text)
        if names is None or not own | facts >= names:
            yield Problem(rule.id, "has a placeholder that is no fact's name", text)
        elif text not in in_cases and not own.issuperset(bare_names_in(text)):
            yield Problem(rule.id, "names a fact that may be unknown; put it in parentheses", text)
    for case in rule.cases:
        if case.of and case.of not in own | facts:
            yield Problem(rule.id, "has a case of no fact", case.of)
        if not _compiles(case.like):
            yield Problem(rule.id, "has a case that is no regular expression", case.like)


def _facts_of(rule: Rule) -> Iterator[str]:
    """The facts that a rule's groups give."""
    for group in _GROUP.findall(rule.match or ""):
        yield from convert({group: "1"})


def _placeholders(text: str) -> set[str] | None:
    try:
        return set(names_in(text))
    except ValueError:
        return None


def _conversions(rule: Rule) -> Iterator[Problem]:
    """Whether each named group takes part in some sample, and becomes a fact wherever it does."""
    if rule.match is None:
        return
    pattern = re.compile(rule.match)
    unused = set(pattern.groupindex)
    for sample in rule.must_match:
        _, message = parse(sample, Learned())
        found = pattern.match(message)
        for group, text in found.groupdict().items() if found is not None else ():
            if text is None:
                continue
            unused.discard(group)
            if not group.endswith(UNITS) or not convert({group: text}):
                yield Problem(rule.id, f"group {group} is no value of its unit: {text!r}", sample)
    for group in sorted(unused):
        yield Problem(rule.id, f"group {group} takes part in no sample", rule.match)


# --- texts that a careless expression chokes on -----------------------------------------------------

_RUNS = (
    "a",
    "0",
    " ",
    "[",
    "]",
    "(",
    ",",
    "=",
    ":",
    ".",
    "_",
    '"',
    "'",
    "a ",
    "a, ",
    "0.",
    "a.",
    "a: 0, ",
    "[0] ",
    "0:0:",
)


def _hostile(pattern: str, samples: tuple[str, ...]) -> Iterator[str]:
    """Yield long runs, long runs behind a good beginning, and near-matches that go on and on."""
    messages = [parse(sample, Learned())[1] for sample in samples]
    heads = {"", *literal_heads(pattern), *(message[: len(message) // 2] for message in messages[:1])}
    for head in sorted(heads):
        for run in _RUNS:
            yield (head + run * HOSTILE_BYTES)[:HOSTILE_BYTES]
    for message in messages:
        for part in (message, message[:-1], message[len(message) // 2 :]):
            yield (part * HOSTILE_BYTES)[:HOSTILE_BYTES] if part else ""
