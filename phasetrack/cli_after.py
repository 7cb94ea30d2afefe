"""The commands after a start: report, compare, doctor, replay, demo."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from phasetrack.cli_options import (
    Ascii,
    At,
    AtLine,
    BootNumber,
    Log,
    NoHistory,
    OutputForm,
    Patterns,
    ToFile,
    check_boot,
    history_of,
    is_plain,
    load_patterns,
    moment,
    note,
    say,
    seconds,
    target_of,
    warn_of_damage,
)
from phasetrack.cli_screen import leave, wants_screen
from phasetrack.errors import HistoryError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from phasetrack.core.model import PatternSet, Record
    from phasetrack.core.tracker import Tracker
    from phasetrack.core.where import Where
    from phasetrack.edges.history import History
    from phasetrack.player import Begin
    from phasetrack.tape import Tape
    from phasetrack.views.tui.feed import Left


class ReportFormat(StrEnum):
    """Forms of a report."""

    TEXT = "text"
    JSON = "json"
    NDJSON = "ndjson"
    MD = "md"
    HTML = "html"
    TRACE = "trace"


class CompareFormat(StrEnum):
    """Forms of a comparison."""

    TEXT = "text"
    JSON = "json"
    MD = "md"
    HTML = "html"


def report(
    log: Log,
    form: Annotated[ReportFormat, typer.Option("--format", "-f", help="Form of the report.")] = ReportFormat.TEXT,
    output: ToFile = None,
    bundle: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write a .tar.gz to give away: masked log, snapshot, page; nothing is sent."),
    ] = None,
    at_line: AtLine = None,
    at: At = None,
    boot: BootNumber = None,
    no_history: NoHistory = False,
    patterns: Patterns = None,
    ascii_only: Ascii = False,
) -> None:
    """Postmortem of a whole log: a table of phases, the outcome, the first cause, the facts.

    md is for an issue, html is one page to keep or send, trace opens in ui.perfetto.dev.
    """
    from phasetrack.run import read_whole, recalled
    from phasetrack.share import look_beside, report_parts

    loaded, past = load_patterns(patterns), at_line is not None or at is not None
    if bundle is not None:
        if output is not None or past:
            raise UsageError("--bundle takes the whole log: leave out -o, --at-line and --at")
        _bundle(loaded, log, bundle, boot)
        return
    every = form is ReportFormat.NDJSON
    tracker, records = read_whole(loaded, log, at_line=at_line, at_s=moment(at), boot=boot, every=every)
    history = history_of(log, off=no_history)
    if form is ReportFormat.NDJSON:
        with target_of(output, log, patterns=patterns) as out:
            _stream(tracker, records, out, boot, history)
        warn_of_damage(log, tracker.snapshot())
        return
    for _ in records:
        pass
    known = recalled(tracker, history)
    check_boot(known.boot, boot)
    warn_of_damage(log, known)
    beside = None
    if form is ReportFormat.HTML and not past:
        beside = look_beside(loaded, log, known, history)
    with target_of(output, log, patterns=patterns) as out:
        out.writelines(report_parts(form, known, plain=is_plain(ascii_only), beside=beside))


def _bundle(patterns: PatternSet, log: str, target: str, boot: int | None) -> None:
    from phasetrack.bundle import bundle_words, write_bundle

    if target == "-":
        raise UsageError("--bundle -: a bundle is a file, to be looked through before it is given away")
    written = write_bundle(patterns, log, target, boot=boot)
    warn_of_damage(log, written.known)
    say(bundle_words(written))


def _stream(
    tracker: Tracker, records: Iterator[Record], out: TextIO, boot: int | None, history: History | None
) -> None:
    """One record a line as they come; the whole snapshot is the last."""
    from phasetrack.run import recalled
    from phasetrack.views.jsonl import dumps, record_json, snapshot_json

    out.writelines(dumps(record_json(record, tracker.zone)) + "\n" for record in records)
    known = recalled(tracker, history)
    check_boot(known.boot, boot)
    out.write(dumps({"type": "snapshot", "snapshot": snapshot_json(known)}) + "\n")


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A log, a boot of it (LOG#2), or of the history (12).")],
    b: Annotated[str, typer.Argument(metavar="B", help="The boot to ask about: what is slower there?")],
    form: Annotated[CompareFormat, typer.Option("--format", "-f", help="Form of the answer.")] = CompareFormat.TEXT,
    output: ToFile = None,
    no_history: NoHistory = False,
    patterns: Patterns = None,
) -> None:
    """Compare two boots phase by phase: which phase explains the difference, and what else differs."""
    from phasetrack.edges.history import Store
    from phasetrack.share import compare_in, noise_between, read_boot

    loaded, noise = load_patterns(patterns), None
    first, second = (read_boot(loaded, name, history_of(name, off=no_history)) for name in (a, b))
    warn_of_damage(a, first)
    warn_of_damage(b, second)
    if not no_history:
        try:
            noise = noise_between(first, second, Store())
        except HistoryError as fault:
            note(f"history: {fault}; going on without it")
    logs = (name.rpartition("#")[0] or name for name in (a, b))
    with target_of(output, a, b, *logs, patterns=patterns) as out:
        out.write(compare_in(form, first, second, names=(a, b), noise=noise))


def doctor(
    log: Annotated[str | None, typer.Argument(metavar="[LOG]", help="A server's log, to look at it too.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    patterns: Patterns = None,
    ascii_only: Ascii = False,
) -> None:
    """Tell what can be seen from here, and what to do about what cannot."""
    from phasetrack.doctor import examine, findings_json, findings_text
    from phasetrack.views.jsonl import dumps

    findings = list(examine(log, patterns or []))
    if json:
        say(dumps(findings_json(findings)))
    else:
        sys.stdout.write(findings_text(findings, plain=is_plain(ascii_only)))


def replay(
    log: Log,
    speed: Annotated[
        float | None,
        typer.Option("--speed", metavar="X", min=1, max=1000, help="So many times as fast, 1 to 1000; 1 if not given."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="PLACE", help="Begin there: 15:42:03, line 120, target_graph, 40%, +90s."),
    ] = None,
    idle: Annotated[
        str | None, typer.Option("--idle", metavar="TIME", help="Let a longer silence pass in this time: 5s.")
    ] = None,
    plain_lines: Annotated[
        bool, typer.Option("--plain", help="Print what tail would have printed; paced if --speed is given.")
    ] = False,
    boot: BootNumber = None,
    mouse: Annotated[bool, typer.Option("--mouse/--no-mouse", help="Take the mouse, or leave it alone.")] = True,
    no_history: NoHistory = False,
    patterns: Patterns = None,
    ascii_only: Ascii = False,
) -> None:
    """Watch a start again, from its log or a recording of it, with what was known at each moment.

    The screen of tail on a clock of its own, and beside it what came true; plain lines where there is no terminal.
    Times are the log's stamps; inside bars their own elapsed field; a cast's are exact.
    """
    from phasetrack.player import Begin
    from phasetrack.tape import Tape

    begin = Begin(speed or 1.0, _place(start), seconds(idle, "--idle"), boot)
    tape, plain = Tape(load_patterns(patterns), log), is_plain(ascii_only)
    history = history_of(log, off=no_history, warn=_kept_quiet)
    if plain_lines or not wants_screen(OutputForm.AUTO, [log]):
        _replay_plain(tape, begin, history, paced=speed is not None, plain=plain)
        return
    raise typer.Exit(_replay_screen(tape, begin, history, plain=plain, mouse=mouse).exit_code)


def _kept_quiet(what: str) -> None:
    """A replay asks the history of then; that there is none is no news."""
    del what


def _place(text: str | None) -> Where | None:
    from phasetrack.core.where import FORMS, where

    try:
        return None if text is None else where(text)
    except ValueError:
        raise UsageError(f"--from {text}: no place ({FORMS})") from None


def _replay_screen(tape: Tape, begin: Begin, history: History | None, *, plain: bool, mouse: bool) -> Left:
    from phasetrack.player import Player
    from phasetrack.views.tui import run_screen
    from phasetrack.views.tui.feed import Options

    options = Options(tape.path, plain, "NO_COLOR" not in os.environ, mouse=mouse)
    left = run_screen(lambda: Player(tape, begin, history=history), options)
    return leave(left, tape.path, plain=plain)


def _replay_plain(tape: Tape, begin: Begin, history: History | None, *, paced: bool, plain: bool) -> None:
    from phasetrack.player import print_plain
    from phasetrack.reel import NoPlaceError

    try:
        for said in print_plain(tape, begin, say, history=history, paced=paced, plain=plain):
            note(said)
    except NoPlaceError as fault:
        raise UsageError(f"--from: {fault}") from None


def demo(
    speed: Annotated[
        float, typer.Option("--speed", metavar="X", min=1, max=1000, help="So many times as fast, on a terminal.")
    ] = 5.0,
    ascii_only: Ascii = False,
) -> None:
    """Watch a recording that is shipped along: a start on two GPUs with a draft model; a report in a pipe."""
    from phasetrack.edges.library import demo_log
    from phasetrack.run import read_whole
    from phasetrack.views.plain import report_text

    cast = str(demo_log().with_suffix(".cast"))
    if wants_screen(OutputForm.AUTO, [cast]):
        from phasetrack.player import Begin
        from phasetrack.tape import Tape

        begin = Begin(speed, demo=True)
        raise typer.Exit(
            _replay_screen(
                Tape(load_patterns(None), cast), begin, None, plain=is_plain(ascii_only), mouse=True
            ).exit_code
        )
    tracker, records = read_whole(load_patterns(None), str(demo_log()))
    for _ in records:
        pass
    sys.stdout.write(report_text(tracker.snapshot(), plain=is_plain(ascii_only)))
