"""The commands: flags to a source, a view and a policy.

Everything heavy is imported where it is used: ``--version`` must not pay for a screen. This is the one place
that turns errors into words on stderr and an exit code.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from phasetrack import __version__
from phasetrack.errors import Exit, PhasetrackError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import Record, Snapshot
    from phasetrack.core.tracker import Tracker

app = typer.Typer(
    name="phasetrack",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Tell exactly what a starting SGLang server is doing, from its log.",
)


class ReportFormat(StrEnum):
    """Forms of a report."""

    TEXT = "text"
    JSON = "json"
    NDJSON = "ndjson"
    MD = "md"
    HTML = "html"
    TRACE = "trace"


Log = Annotated[str, typer.Argument(metavar="LOG", help="The server's log file, or - for standard input.")]
Patterns = Annotated[
    list[Path] | None, typer.Option("--patterns", metavar="PATH", help="More pattern files, or folders of them.")
]
AtLine = Annotated[int | None, typer.Option("--at-line", metavar="N", min=0, help="The answer as known after line N.")]
At = Annotated[
    str | None, typer.Option("--at", metavar="TIME", help="The answer as known then: 15:42:03, or a date and time.")
]
BootNumber = Annotated[int | None, typer.Option("--boot", metavar="N", min=1, help="An earlier boot in the same file.")]
Ascii = Annotated[bool, typer.Option("--ascii", help="No characters beyond ASCII.")]


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


@app.command()
def status(
    log: Log,
    json: Annotated[bool, typer.Option("--json", help="Print the whole snapshot as JSON.")] = False,
    at_line: AtLine = None,
    at: At = None,
    boot: BootNumber = None,
    patterns: Patterns = None,
    ascii_only: Ascii = False,
) -> None:
    """Answer once: which phase, how far, and whether the silence is normal here.

    Exit code: 0 ready, 1 failed, 3 still starting, 4 stuck, 5 over, 6 no such log.
    """
    from phasetrack.run import exit_code, look_once
    from phasetrack.views.jsonl import dumps, snapshot_json
    from phasetrack.views.plain import status_line

    known = look_once(_load(patterns), log, at_line=at_line, at_s=_moment(at), boot=boot)
    _check_boot(known.boot, boot)
    typer.echo(dumps(snapshot_json(known)) if json else status_line(known, plain=_plain(ascii_only)))
    raise typer.Exit(exit_code(known))


@app.command()
def report(
    log: Log,
    form: Annotated[ReportFormat, typer.Option("--format", "-f", help="Form of the report.")] = ReportFormat.TEXT,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write there, not to stdout.")
    ] = None,
    at_line: AtLine = None,
    at: At = None,
    boot: BootNumber = None,
    patterns: Patterns = None,
    ascii_only: Ascii = False,
) -> None:
    """Postmortem of a whole log: a table of phases, the outcome, the first cause, the facts.

    md is for an issue, html is one page to keep or send, trace opens in ui.perfetto.dev.
    """
    from phasetrack.run import read_whole

    tracker, records = read_whole(_load(patterns), log, at_line=at_line, at_s=_moment(at), boot=boot)
    if form is ReportFormat.NDJSON:
        _stream(tracker, records, output, boot)
        return
    for _ in records:
        pass
    known = tracker.snapshot()
    _check_boot(known.boot, boot)
    with _target(output) as out:
        out.write(_rendered(form, known, plain=_plain(ascii_only)))


def _rendered(form: ReportFormat, known: Snapshot, *, plain: bool) -> str:
    """A report as text; each view is imported only where it is asked for."""
    if form is ReportFormat.JSON:
        from phasetrack.views.jsonl import dumps, snapshot_json

        return dumps(snapshot_json(known), indent=2) + "\n"
    if form is ReportFormat.MD:
        from phasetrack.views.markdown import report_markdown

        return report_markdown(known)
    if form is ReportFormat.HTML:
        from phasetrack.views.page import report_page

        return report_page(known)
    if form is ReportFormat.TRACE:
        from phasetrack.views.trace import report_trace

        return report_trace(known)
    from phasetrack.views.plain import report_text

    return report_text(known, plain=plain)


def _stream(tracker: Tracker, records: Iterator[Record], output: Path | None, boot: int | None) -> None:
    """One record a line as they come; the whole snapshot is the last."""
    from itertools import chain

    from phasetrack.views.jsonl import dumps, record_json, snapshot_json

    first = next(records, None)  # a log that cannot be read leaves the output alone
    with _target(output) as out:
        for record in chain(() if first is None else (first,), records):
            out.write(dumps(record_json(record, tracker.zone)) + "\n")
        known = tracker.snapshot()
        _check_boot(known.boot, boot)
        out.write(dumps({"type": "snapshot", "snapshot": snapshot_json(known)}) + "\n")


def _load(patterns: list[Path] | None):  # type: ignore[no-untyped-def] # noqa: ANN202 - its type would be imported for every command
    from phasetrack.edges.library import load

    return load(patterns or ())


def _target(output: Path | None):  # type: ignore[no-untyped-def] # noqa: ANN202
    from contextlib import nullcontext

    if output is None:
        return nullcontext(sys.stdout)
    try:
        return output.open("w", encoding="utf-8", errors="replace")
    except OSError as fault:
        raise UsageError(f"{output}: cannot be written: {fault.strerror}") from None


def _plain(ascii_only: bool) -> bool:  # noqa: FBT001
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    return ascii_only or encoding != "utf8"


def _moment(text: str | None) -> float | None:
    if text is None:
        return None
    from datetime import UTC, datetime

    for form in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f"):
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    raise UsageError(f"--at {text}: not a time (write it as the log does: 2026-11-30T15:42:03)")


def _check_boot(found: int, asked: int | None) -> None:
    if asked is not None and found != asked:
        raise UsageError(f"--boot {asked}: this log holds no such boot ('phasetrack report LOG' lists them)")


def main() -> NoReturn:
    """Run the command line; nothing but an exit code leaves it."""
    try:
        app()
    except PhasetrackError as fault:
        typer.echo(f"phasetrack: {fault}", err=True)
        sys.exit(fault.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away: nothing to say, and no one to say it to
        sys.exit(Exit.OK)
    sys.exit(Exit.OK)
