"""``phasetrack history``: what earlier boots took. The commands, as in ``cli``."""

from __future__ import annotations

import sys
import time
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from phasetrack.cli_options import Json, Patterns, ToFile, load_patterns, note, target_of
from phasetrack.errors import UsageError

if TYPE_CHECKING:
    from phasetrack.edges.history import Store

history_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="What earlier boots of this machine took; estimates and 'usually' come from there.",
)

_DAY_S = 86400.0


def _store() -> Store:
    from phasetrack.edges.history import Store

    return Store()


@history_app.command("list")
def list_boots(
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="So many of the newest.")] = 20,
    every: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    json: Json = False,
) -> None:
    """List boots, the newest first."""
    from phasetrack.views.history import boot_json, list_text

    boots = _store().boots(None if every else limit)
    if json:
        from phasetrack.views.jsonl import dumps

        typer.echo(dumps({"boots": [boot_json(boot) for boot in boots]}))
    else:
        sys.stdout.write(list_text(boots))


@history_app.command()
def show(
    boot: Annotated[int, typer.Argument(metavar="BOOT", help="Its number in 'history list'.")],
    json: Json = False,
) -> None:
    """Show one boot: what each of its phases took, and whether it found its caches filled."""
    from phasetrack.views.history import boot_json, show_text
    from phasetrack.views.jsonl import dumps

    found = _store().boot(boot)
    if found is None:
        raise UsageError(f"no boot {boot} in the history ('phasetrack history list' lists them)")
    if json:
        sys.stdout.write(dumps(boot_json(found)) + "\n")
    else:
        sys.stdout.write(show_text(found, load_patterns(None).phases_of(found.engine)))


@history_app.command("import")
def import_boots(
    paths: Annotated[
        list[Path], typer.Argument(metavar="DIR|FILE...", help="Logs, casts, exports, or folders of them.")
    ],
    patterns: Patterns = None,
) -> None:
    """Learn from old logs and casts. Reading the same boot again changes nothing."""
    from phasetrack.learn import learn

    store, files, boots, new = _store(), 0, 0, 0
    for found in learn(paths, load_patterns(patterns)):
        if found.why:
            note(found.why if found.boots else f"{found.why}; passed over")
        kept = store.remember(found.boots, now_s=time.time()) if found.boots else 0
        files, boots, new = files + 1, boots + len(found.boots), new + kept
    if not files:
        note("no file in there has a name like a log's; name the file itself")
    typer.echo(f"{files} files read, {boots} boots in them, {new} new to the history ({store.path})")


@history_app.command()
def export(
    output: ToFile = None,
) -> None:
    """Print every boot as a line of JSON, for 'history import' on another machine; facts are redacted."""
    from phasetrack.learn import export_line

    with target_of(output) as out:
        for boot in _store().all():
            out.write(export_line(boot) + "\n")


@history_app.command()
def forget(
    boots: Annotated[
        list[int] | None, typer.Argument(metavar="[BOOT]...", help="Their numbers in 'history list'.")
    ] = None,
    older_than: Annotated[
        float | None, typer.Option("--older-than", metavar="DAYS", min=0, help="Boots that began so long ago.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
) -> None:
    """Delete boots from the history."""
    if sum((bool(boots), older_than is not None, every)) != 1:
        raise UsageError("history forget: say which: numbers of boots, --older-than DAYS, or --all")
    before_s = None if older_than is None else time.time() - older_than * _DAY_S
    gone = _store().forget(numbers=boots or (), before_s=before_s, everything=every)
    typer.echo(f"{gone} boots forgotten")
