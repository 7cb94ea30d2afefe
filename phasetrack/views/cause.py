"""The first cause as text: what failed, why, what to do; and a block to copy into an issue.

Both hold log text only behind an indent or in a fence, masked as everything is, and nothing of the log's paths but
what the log itself says of the failure.
"""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from phasetrack.core.say import duration
from phasetrack.views.facts import shown_facts
from phasetrack.views.headline import engine_words
from phasetrack.views.markdown import fence
from phasetrack.views.words import clock, phase_title

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import Failure, Snapshot

_LABEL = 7
_RANKS, _ECHOES = 8, 4
# Facts that tell more of a company than of a failure.
_PRIVATE = {"url", "model", "draft model"}


def cause_text(known: Snapshot, width: int = 80) -> list[str]:
    """The first cause; empty where nothing failed."""
    failure = known.failure
    if failure is None:
        return []
    lines = [f"First cause: {', '.join(_where(known, failure))}", *_indented(failure.message, width, 4)]
    for label, text in _parts(failure):
        lines += _labelled(label, text, width)
    return lines


def _where(known: Snapshot, failure: Failure) -> Iterator[str]:
    if title := phase_title(known, failure.phase):
        yield title
    if failure.rank:
        yield failure.rank + (" or another rank (their lines lie mixed)" if failure.mixed else "")
    if failure.place.line is not None:
        yield f"line {failure.place.line}"
    if failure.at_s is not None:
        after = (
            "" if known.started_at_s is None else f" ({duration(failure.at_s - known.started_at_s)} after the start)"
        )
        yield f"{clock(failure.at_s)}{after}"
    if failure.inferred:
        yield "inferred: no line says so"


def _parts(failure: Failure) -> Iterator[tuple[str, str]]:
    yield "why", failure.cause
    yield "do", failure.remedy
    yield "near", failure.clue
    if len(failure.ranks) > 1:
        more = len(failure.ranks) - _RANKS
        shown = ", ".join(failure.ranks[:_RANKS]) + (f" and {more} more" if more > 0 else "")
        yield "ranks", f"{len(failure.ranks)} say the same: {shown}"
    elif failure.repeats > 1:
        yield "ranks", f"said {failure.repeats} times"
    for echo in failure.echoes[:_ECHOES]:
        yield "then", echo
    if len(failure.echoes) > _ECHOES:
        yield "", f"and {len(failure.echoes) - _ECHOES} more that follow from it"


def _labelled(label: str, text: str, width: int) -> list[str]:
    parts = wrap(text, width - _LABEL - 2, break_on_hyphens=False)
    heads = [f"{label}:" if label else "", *[""] * len(parts)][: len(parts)]
    return [f"  {head:<{_LABEL}}{part}" for head, part in zip(heads, parts, strict=True)]


def _indented(text: str, width: int, most: int) -> list[str]:
    return [f"  {part}" for part in wrap(text, width - 2, max_lines=most, placeholder=" …", break_on_hyphens=False)]


def issue_block(known: Snapshot) -> list[str]:
    """A failure for an issue, in Markdown: what, where, with which arguments, the traceback. Nothing private of it."""
    failure = known.failure
    if failure is None:
        return []
    facts = [f"{title} {text}" for title, text in shown_facts(known.facts) if title not in _PRIVATE]
    lines = [
        f"{engine_words(known)} failed in {', '.join(_where(known, failure))}".strip(),
        *([", ".join(facts)] if facts else []),
        *(line for line in failure.lines or (failure.message,)),
        *([f"beside it: {failure.clue}"] if failure.clue else []),
    ]
    if failure.message not in failure.lines:
        lines.append(failure.message)
    return ["To copy into an issue (secrets are masked):", *fence(lines)]
