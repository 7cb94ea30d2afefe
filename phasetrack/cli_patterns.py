"""``phasetrack patterns``: what is known of an engine's log. The commands, as in ``cli``."""

from __future__ import annotations

import sys
import time
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from phasetrack.cli_options import Patterns, load_patterns, tell
from phasetrack.errors import Exit, UsageError

if TYPE_CHECKING:
    from phasetrack.core.model import Rule

patterns_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="The rules by which a log is read: list them, explain one, prove them all.",
)


@patterns_app.command("list")
def list_rules(
    word: Annotated[str, typer.Argument(metavar="WORD", help="Only rules whose name holds it.")] = "",
    role: Annotated[
        str | None, typer.Option(metavar="ROLE", help="Only rules that say this of a line: begin, end, failure, …")
    ] = None,
    phase: Annotated[str | None, typer.Option(metavar="PHASE", help="Only rules of this phase.")] = None,
    patterns: Patterns = None,
) -> None:
    """List the rules, one a line."""
    from phasetrack.views.rules import rule_table

    rules = [
        rule
        for rule in load_patterns(patterns).rules
        if word in rule.id and role in {None, rule.role} and phase in {None, rule.phase}
    ]
    sys.stdout.write(rule_table(rules))


@patterns_app.command()
def explain(
    name: Annotated[str, typer.Argument(metavar="RULE", help="Its name in 'patterns list', or the end of it.")],
    patterns: Patterns = None,
) -> None:
    """Explain one rule: the lines it takes, the source it was read from, cause and remedy."""
    from phasetrack.views.rules import rule_text

    sys.stdout.write(rule_text(_named(load_patterns(patterns).rules, name)))


def _named(rules: tuple[Rule, ...], name: str) -> Rule:
    found = [rule for rule in rules if rule.id == name] or [rule for rule in rules if rule.id.endswith(f".{name}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{name}: several rules end so: {', '.join(rule.id for rule in found[:5])}")
    from difflib import get_close_matches

    ids = [rule.id for rule in rules]
    near = [known for known in ids if name in known][:5] or get_close_matches(name, ids, n=3, cutoff=0.5)
    raise UsageError(f"{name}: no such rule ({'near: ' + ', '.join(near) if near else 'see phasetrack patterns list'})")


@patterns_app.command()
def check(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Files of your own, checked beside the shipped ones."),
    ] = None,
) -> None:
    """Prove every rule: its samples are taken by it and by no other, and hostile texts answered in time.

    Exit code: 0 all holds, 1 problems, 2 a file is wrong in form.
    """
    from phasetrack.core.check import check as prove
    from phasetrack.views.rules import check_text

    patterns = load_patterns(files)
    problems = prove(patterns, time.perf_counter)
    tell(check_text(patterns, problems).rstrip("\n"))
    raise typer.Exit(Exit.FAILED if problems else Exit.OK)
