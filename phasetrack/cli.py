"""The command line: every command, and what becomes of errors and signals.

Everything heavy is imported where it is used: ``--version`` must not pay for a screen. This is the one place
that turns errors into words on stderr and an exit code.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
import typer.core

from phasetrack import __version__, signals
from phasetrack.cli_after import compare, demo, doctor, replay, report
from phasetrack.cli_history import history_app
from phasetrack.cli_live import run, status, tail, wait
from phasetrack.cli_options import note
from phasetrack.cli_patterns import patterns_app
from phasetrack.edges.outlet import open_streams
from phasetrack.errors import Exit, OutputError, PhasetrackError


class _Group(typer.core.TyperGroup):
    """Builds of a command what is needed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Build nothing for what was not given."""
        from phasetrack.light import lighten

        lighten(self.get_params(ctx))
        found: list[str] = super().parse_args(ctx, args)
        return found

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Examples under the list of commands, too."""
        from phasetrack.teach import epilog

        self.epilog = epilog("")
        super().format_epilog(ctx, formatter)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Give each command its examples, and its line in the list."""
        from phasetrack.light import lighten
        from phasetrack.teach import teach

        command = super().get_command(ctx, cmd_name)
        if command is not None:
            teach(command, cmd_name)
            lighten(command.get_params(ctx))
        return command


app = typer.Typer(
    name="phasetrack",
    cls=_Group,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Tell exactly what a starting SGLang server is doing, from its log.",
)


def _version(asked: bool) -> None:  # noqa: FBT001 - typer's callback
    if asked:
        typer.echo(f"phasetrack {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Tell exactly what a starting SGLang server is doing, from its log."""


app.command()(status)
app.command()(tail)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(run)
app.command()(wait)
app.command()(report)
app.command()(compare)
app.command()(doctor)
app.command()(replay)
app.command()(demo)
app.add_typer(history_app, name="history")
app.add_typer(patterns_app, name="patterns")


def _internal(fault: Exception) -> Exit:
    """Say in a line what broke inside; with PHASETRACK_DEBUG the whole of it."""
    if os.environ.get("PHASETRACK_DEBUG"):
        raise fault
    trace = fault.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    note(f"internal error: {type(fault).__name__}: {fault}{where} (please report it; PHASETRACK_DEBUG=1 tells more)")
    return Exit.INTERNAL


def _answer() -> int | str | None:
    """Run the command line; answer its exit code."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except OutputError as fault:
        if not fault.is_unread:
            note(str(fault))
        return fault.exit_code
    except PhasetrackError as fault:
        note(str(fault))
        return fault.exit_code
    except SystemExit as end:
        return end.code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as fault:  # noqa: BLE001 - a user sees no traceback of ours
        return _internal(fault)
    return Exit.OK


def main() -> NoReturn:
    """Run the command line; nothing but an exit code leaves it."""
    signals.raise_interrupts()
    open_streams()
    code = _answer()
    signals.end(code)
