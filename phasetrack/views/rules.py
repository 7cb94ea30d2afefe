"""Pattern files for a reader: the table of rules, one rule at length, and what a check found."""

from __future__ import annotations

from textwrap import indent, wrap
from typing import TYPE_CHECKING

from phasetrack.core.advice import names_in
from phasetrack.core.model import Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from phasetrack.core.check import Problem
    from phasetrack.core.model import Case, PatternSet, Rule

_WIDTH = 80
# Where a failure rule looks, in words.
_WHERE = {
    Where.RECORD: "the first line of a failing record",
    Where.EXCEPTION: "the last line of a traceback",
    Where.LINE: "a line that says it all",
    Where.ECHO: "a consequence of an earlier failure, never a cause",
    Where.CLUE: "a line that fails nothing, but explains a failure that comes with it",
}


def rule_table(rules: Sequence[Rule]) -> str:
    """One rule a line: its id, what it says of a line, in which phase, and the versions that print it."""
    width = max((len(rule.id) for rule in rules), default=0)
    lines = [f"{'rule':<{width}}  {'role':<8}  {'phase':<12}  versions"]
    lines += [f"{rule.id:<{width}}  {rule.role:<8}  {rule.phase or '-':<12}  {versions(rule)}" for rule in rules]
    return "\n".join(lines) + "\n"


def versions(rule: Rule) -> str:
    """The first and last version that was seen to print it."""
    if rule.since is None and rule.until is None:
        return "all"
    if rule.until is None:
        return f"{rule.since} on"
    return f"to {rule.until}" if rule.since is None else f"{rule.since} to {rule.until}"


def rule_text(rule: Rule) -> str:
    """One rule at length: what it takes, where that was read, what it means and what to do."""
    return "\n".join([rule.id, *_facts(rule), *_meaning(rule), *_samples(rule)]) + "\n"


def _facts(rule: Rule) -> Iterator[str]:
    yield f"  says      {rule.role}" + (f" of {rule.phase}" if rule.phase else "") + (", fatal" if rule.fatal else "")
    if rule.activity is not None:
        yield f"  activity  {rule.title or rule.activity} (inside the phase)"
    if rule.where is not None:
        yield f"  looks at  {_WHERE[rule.where]}"
    if rule.hang:
        yield "  means     the engine hangs: stuck, and failed once its process goes"
    if rule.secondary:
        yield "  means     usually a consequence: it gives way to any other cause of the same moment"
    if rule.vague:
        yield "  means     less than any other kind that knows the line"
    if rule.ends:
        yield f"  ends      {', '.join(rule.ends)}"
    if rule.generic:
        yield "  generic   other programs print this too: it never opens a boot"
    yield f"  versions  {versions(rule)} of {rule.engine}"
    yield f"  source    {rule.source or 'unknown'}"
    yield "  takes     " + (f"a bar that begins with  {rule.bar}" if rule.match is None else rule.match)


def _meaning(rule: Rule) -> Iterator[str]:
    for head, text in (("Cause", rule.cause), ("Remedy", rule.remedy)):
        if text:
            yield from ("", f"{head}:", _paragraph(text))
    for phase, text in rule.remedies.items():
        yield from ("", f"Remedy in {phase}:", _paragraph(text))
    for case in rule.cases:
        yield from ("", f"{_condition(case)}:", *map(_paragraph, filter(None, (case.cause, case.remedy))))


def _condition(case: Case) -> str:
    """When a case applies."""
    parts = [f"in {case.phase}"] if case.phase else []
    parts += [f"{case.of} is like  {case.like}"] if case.of else []
    named = sorted({*names_in(case.cause), *names_in(case.remedy)})
    parts += [f"the log tells {', '.join(named)}"] if named else []
    return "Where " + ", and ".join(parts or ["nothing better is known"])


def _samples(rule: Rule) -> Iterator[str]:
    for head, samples in (("Takes", rule.must_match), ("Leaves", rule.must_not_match)):
        if samples:
            yield from ("", f"{head}:", *(f"  {sample}" for sample in samples))


def _paragraph(text: str) -> str:
    return indent("\n".join(wrap(text, _WIDTH - 2, break_on_hyphens=False)), "  ")


def check_text(patterns: PatternSet, problems: Sequence[Problem]) -> str:
    """What does not hold, one line each; else how much does."""
    if not problems:
        samples = sum(len(rule.must_match) + len(rule.must_not_match) for rule in patterns.rules)
        return (
            f"{len(patterns.rules)} rules of {', '.join(patterns.titles.values())}, {samples} sample lines: all hold.\n"
        )
    lines = [f"{found.rule_id}: {found.fact}" + (f": {found.text[:160]}" if found.text else "") for found in problems]
    return "\n".join(lines) + "\n"
