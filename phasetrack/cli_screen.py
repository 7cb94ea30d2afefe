"""Whether a screen can be shown, and what is left behind where one was."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import typer

from phasetrack.cli_options import OutputForm, note
from phasetrack.errors import OutputError, PhasetrackError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from phasetrack.run import Session
    from phasetrack.views.tui.feed import Left, News
    from phasetrack.watch import Watch


def wants_screen(output: OutputForm, logs: list[str]) -> bool:
    """A screen shows one log, on a terminal that can be drawn on and gives keys."""
    if output not in {OutputForm.AUTO, OutputForm.TUI}:
        return False
    lack = _lack_of_screen(logs)
    if lack and output is OutputForm.TUI:
        raise UsageError(f"--output tui: {lack}")
    return not lack and (output is OutputForm.TUI or sys.stdout.isatty())


def _lack_of_screen(logs: list[str]) -> str:
    if len(logs) != 1:
        return "a screen shows one log (--output plain follows several)"
    if os.environ.get("TERM", "dumb") == "dumb":
        return "the terminal cannot be drawn on (TERM is dumb)"
    if logs == ["-"] and sys.stdin.isatty():
        return "standard input is the terminal itself (pipe a log into it)"
    if sys.stdin.isatty() and sys.stderr.isatty():
        return ""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return "there is no terminal (--output plain needs none)"
    return ""


def show_screen(log: str, open_session: Callable[..., Session], *, plain: bool, bell: bool, mouse: bool) -> Left:
    """Show the screen; leave the last state behind as plain text, and answer how it was left."""
    from phasetrack.views.tui import run_screen
    from phasetrack.views.tui.feed import Options

    def feed() -> Watch:
        from phasetrack.watch import Watch

        return Watch(partial(open_session, notes.append), log)

    notes: list[str] = []  # nothing may be printed over a screen
    left = run_screen(feed, Options(log, plain, "NO_COLOR" not in os.environ, bell, mouse))
    for said in notes:
        note(said)
    return leave(left, log, plain=plain)


def leave(left: Left, log: str, *, plain: bool) -> Left:
    """Print what stays of a screen, and what went wrong with it."""
    if left.news is not None:
        _part(left.news, log, plain=plain)
    if isinstance(left.fault, PhasetrackError):
        raise left.fault
    if left.fault is not None:
        from phasetrack.crash import write_report

        where = write_report(left.fault, None if left.news is None else left.news.known)
        note(f"internal error: {type(left.fault).__name__}: {left.fault}")
        note(f"the report was written to {where}" if where else "a report could not be written")
        raise typer.Exit(left.exit_code)
    return left


def _part(news: News, log: str, *, plain: bool) -> None:
    import shutil

    from phasetrack.views.tui.look import ASCII, UNICODE
    from phasetrack.views.tui.parting import parting_text

    width = shutil.get_terminal_size().columns
    with suppress(OutputError):  # the terminal may be gone
        sys.stdout.write(parting_text(news, log, max(width, 20), ASCII if plain else UNICODE))
        sys.stdout.flush()
