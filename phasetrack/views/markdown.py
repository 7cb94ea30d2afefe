"""The report as Markdown, for an issue or a pull request.

Log text stands in code spans and fences only, where no markup, mention or issue number of it can act.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from phasetrack.core.model import Outcome
from phasetrack.core.say import duration
from phasetrack.views.facts import shown_facts
from phasetrack.views.headline import engine_words, failure_block, headline
from phasetrack.views.rows import cells, fate, gaps, last_ranks, share, total_s
from phasetrack.views.template import cut
from phasetrack.views.words import glyph, iso, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import PhaseRow, Snapshot

_HEADS = ("phase", "begin", "elapsed", "share", "progress", "ranks", "silent")
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~@&$])")
_WARNINGS_MAX = 20
_BOOTS_MAX = 20


def report_markdown(known: Snapshot) -> str:
    """The postmortem as GitHub-flavoured Markdown."""
    blocks = (
        _head(known), _failure(known), _table(known),
        [f"- {prose(line)}" for line in [*last_ranks(known)[:12], *gaps(known)]],
        _warnings(known), _boots(known), _facts(known),
    )  # fmt: skip
    return "\n\n".join("\n".join(block) for block in map(list, blocks) if block) + "\n"


def prose(text: str) -> str:
    """Text outside code: nothing in it is markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """A code span that holds any text, backticks and pipes too, on one line."""
    text = " ".join(text.split()).replace("|", "\\|")
    if not text:
        return ""
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if len(ticks) > 1 else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def fence(lines: list[str]) -> list[str]:
    """A fenced block that no line in it can close."""
    ticks = "`" * max(3, max((len(run) for line in lines for run in re.findall("`+", line)), default=0) + 1)
    return [f"{ticks}text", *(re.sub(r"[\r\n\x0b\x0c\x85\u2028\u2029]", " ", line) for line in lines), ticks]


def table(heads: tuple[str, ...], rows: list[list[str]], *, right: frozenset[str] = frozenset()) -> list[str]:
    """A pipe table; cells come escaped."""
    rule = "|".join(" ---: " if head in right else " --- " for head in heads)
    return [f"| {' | '.join(heads)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]


def _head(known: Snapshot) -> Iterator[str]:
    word, rest = headline(known)
    yield f"### {word} {prose(rest)}"
    yield ""
    if known.outcome is not Outcome.STOPPED:
        yield prose(cut(known.verdict.because, 1000))
        yield ""
    facts = [engine_words(known), iso(known.started_at_s, known.zone) or ""]
    facts += [f"{key[:2]} {known.facts[key]}" for key in ("tp_size", "pp_size", "dp_size") if _many(known, key)]
    draft = known.facts.get("speculative_algorithm")
    facts += [f"draft {draft}"] if draft else []
    model = known.facts.get("model_path")
    yield " · ".join([*([code(cut(str(model)))] if model else []), *(prose(cut(fact)) for fact in facts if fact)])
    for source in known.sources:
        lines = "" if source.lines is None else f", {source.lines} lines"
        yield ""
        yield f"{code(cut(source.path))} ({size(source.bytes)}{lines})"
    if known.drift is not None:
        yield ""
        yield f"Note: this log {prose(known.drift)}."
    if known.unopened is not None:
        yield ""
        yield f"Note: this log {prose(known.unopened)}."


def _many(known: Snapshot, key: str) -> bool:
    return known.facts.get(key) not in {None, 1}


def _failure(known: Snapshot) -> Iterator[str]:
    if known.failure is None:
        return
    block = failure_block(known.failure, known)
    yield f"**First cause** ({prose(str(block['where']))})"
    yield ""
    yield from fence(known.failure.message.splitlines()[:20] or [""])
    for title, key in (("Why", "cause"), ("Do", "remedy"), ("Ranks", "ranks")):
        if block[key]:
            yield ""
            yield f"**{title}:** {prose(str(block[key]))}"
    for echo in known.failure.echoes[:8]:
        yield f"- then: {prose(cut(echo))}"
    lines = [cut(line) for line in known.failure.lines[:60]]
    if lines and lines != [known.failure.message]:
        yield from _folded("Its lines", fence(lines))


def _folded(title: str, lines: list[str]) -> Iterator[str]:
    yield ""
    yield f"<details><summary>{title}</summary>"
    yield ""
    yield from lines
    yield ""
    yield "</details>"


def _table(known: Snapshot) -> list[str]:
    if not known.phases:
        return []
    total = total_s(known)
    rows = [_row(row, total) for row in known.phases]
    if known.between_phases_s is not None:
        between = [duration(known.between_phases_s), share(known.between_phases_s, total)]
        rows.append(["between phases", "", *between, "", "", ""])
    lines = table(_HEADS, rows, right=frozenset({"elapsed", "share", "ranks", "silent"}))
    if any(cells(row, total).inferred for row in known.phases):
        lines += ["", "\\~ inferred: not printed by the engine"]
    return lines


def _row(row: PhaseRow, total: float | None) -> list[str]:
    cell = cells(row, total)
    elapsed = f"\\~{cell.elapsed}" if cell.inferred and cell.elapsed else cell.elapsed
    progress = prose(cell.progress) + (f" {prose(cell.note)}" if cell.note else "")
    title = f"{glyph(row.status)} {prose(cell.title)}"
    return [title, cell.begin, elapsed, cell.share, progress.strip(), cell.ranks, cell.silent]


def _warnings(known: Snapshot) -> Iterator[str]:
    if known.warnings:
        yield "**Warnings**"
        yield ""
    for warning in known.warnings[:_WARNINGS_MAX]:
        times = f" ({warning.count} times)" if warning.count > 1 else ""
        yield f"- {code(cut(warning.message))}{times}"
    if len(known.warnings) > _WARNINGS_MAX:
        yield f"- and {len(known.warnings) - _WARNINGS_MAX} more kinds"


def _boots(known: Snapshot) -> list[str]:
    if len(known.boots) < 2:
        return []
    rows = [
        [
            f"**{boot.boot}**" if boot.boot == known.boot else str(boot.boot),
            "" if boot.line is None else str(boot.line),
            iso(boot.started_at_s, known.zone) or "time unknown",
            fate(known, boot) + (f" ({prose(boot.failure_id)})" if boot.failure_id else ""),
            "" if boot.startup_s is None else duration(boot.startup_s),
        ]
        for boot in known.boots[-_BOOTS_MAX:]
    ]
    return ["**Boots in this file**", "", *table(("boot", "line", "started", "outcome", "took"), rows)]


def _facts(known: Snapshot) -> Iterator[str]:
    rows = [[prose(title), code(cut(text))] for title, text in shown_facts(known.facts)]
    if rows:
        yield from list(_folded("Facts", table(("fact", "value"), rows)))[1:]
