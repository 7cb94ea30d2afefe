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

from phasetrack import __version__
from phasetrack.cli_after import compare, demo, doctor, replay, report
from phasetrack.cli_history import history_app
from phasetrack.cli_live import run, status, tail, wait
from phasetrack.cli_options import note
from phasetrack.cli_patterns import patterns_app
from phasetrack.errors import Exit, PhasetrackError


class _Group(typer.core.TyperGroup):
    """Runs a command; where the reader of our output has gone away, that is no error of ours."""

    def invoke(self, ctx: Any) -> object:
        try:
            found: object = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(Exit.OK) from None
        return found

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

_received: list[int] = []  # the signal that ends us


def _interrupt(number: int, frame: object) -> None:
    del frame
    _received.append(number)
    raise KeyboardInterrupt


def _prepare() -> None:
    """End on signals as on Ctrl-C, and never over a character that the terminal does not have."""
    import signal

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


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


def main() -> NoReturn:
    """Run the command line; nothing but an exit code leaves it."""
    _prepare()
    code: int | str | None = Exit.OK
    try:
        app()
    except PhasetrackError as fault:
        note(str(fault))
        code = fault.exit_code
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except Exception as fault:  # noqa: BLE001 - a user sees no traceback of ours
        code = _internal(fault)
    if _received:
        code = 128 + _received[0]
    sys.exit(code)
