"""The commands: flags to a source, a view and a policy.

Everything heavy is imported where it is used: ``--version`` must not pay for a screen. This is the one place
that turns errors into words on stderr and an exit code.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, closing, suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
import typer.core

from phasetrack import __version__
from phasetrack.cli_history import history_app
from phasetrack.cli_patterns import patterns_app
from phasetrack.errors import Exit, HistoryError, PhasetrackError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from phasetrack.beside import Look
    from phasetrack.core.model import PatternSet, Record
    from phasetrack.core.where import Where
    from phasetrack.edges.history import History
    from phasetrack.player import Begin
    from phasetrack.run import Session
    from phasetrack.tape import Tape
    from phasetrack.views.tui.feed import Left, News
    from phasetrack.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import Record
    from phasetrack.core.tracker import Tracker


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


class ReportFormat(StrEnum):
    """Forms of a report."""

    TEXT = "text"
    JSON = "json"
    NDJSON = "ndjson"
    MD = "md"
    HTML = "html"
    TRACE = "trace"


class ProbeKind(StrEnum):
    """How far to ask over HTTP."""

    HEALTH = "health"
    GENERATE = "generate"


class FailOn(StrEnum):
    """From which verdict on a wait gives up."""

    STUCK = "stuck"
    SUSPECT = "suspect"
    NONE = "none"


class OutputForm(StrEnum):
    """What tail prints."""

    AUTO = "auto"
    TUI = "tui"
    PLAIN = "plain"
    JSON = "json"


class CompareFormat(StrEnum):
    """Forms of a comparison."""

    TEXT = "text"
    JSON = "json"
    MD = "md"
    HTML = "html"


Log = Annotated[str, typer.Argument(metavar="LOG", help="The server's log file, or - for standard input.")]
Patterns = Annotated[
    list[Path] | None, typer.Option("--patterns", metavar="PATH", help="More pattern files, or folders of them.")
]
AtLine = Annotated[int | None, typer.Option("--at-line", metavar="N", min=0, help="The answer as known after line N.")]
At = Annotated[
    str | None, typer.Option("--at", metavar="TIME", help="The answer as known then: 15:42:03, or a date and time.")
]
BootNumber = Annotated[int | None, typer.Option("--boot", metavar="N", min=1, help="An earlier boot in the same file.")]
NoHistory = Annotated[bool, typer.Option("--no-history", help="Neither read nor keep what earlier boots took.")]
Ascii = Annotated[bool, typer.Option("--ascii", help="No characters beyond ASCII.")]
Pid = Annotated[
    int | None,
    typer.Option("--pid", metavar="N", min=1, help="The server's main process; found by its log unless given."),
]
Probe = Annotated[
    ProbeKind | None,
    typer.Option("--probe", help="Ask the server over HTTP too; generate asks for one sampled token, once."),
]
Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Ask there, not at the log's port on loopback; implies --probe."),
]
LogOnly = Annotated[bool, typer.Option("--log-only", help="Look at nothing but the log.")]


app.add_typer(history_app, name="history")
app.add_typer(patterns_app, name="patterns")


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
    startup_probe: Annotated[
        bool, typer.Option("--startup-probe", help="For Kubernetes: 0 while it starts or is ready, 1 failed or stuck.")
    ] = False,
    pid: Pid = None,
    probe: Probe = None,
    url: Url = None,
    log_only: LogOnly = False,
    no_history: NoHistory = False,
    patterns: Patterns = None,
    ascii_only: Ascii = False,
) -> None:
    """Answer once: which phase, how far, and whether the silence is normal here.

    Looks at the server's processes too, where it finds them.
    Exit code: 0 ready, 1 failed, 3 still starting, 4 stuck, 5 over, 6 no such log.
    """
    from phasetrack.beside import look_around, samplers
    from phasetrack.run import exit_code, look_once, probe_code
    from phasetrack.views.jsonl import dumps, snapshot_json
    from phasetrack.views.status import status_line

    history = _history(log, off=no_history)
    look = partial(look_around, samplers=samplers(log, _look(pid, probe, url, log_only=log_only), once=True))
    known = look_once(_load(patterns), log, at_line=at_line, at_s=_moment(at), boot=boot, history=history, look=look)
    _check_boot(known.boot, boot)
    typer.echo(dumps(snapshot_json(known)) if json else status_line(known, plain=_plain(ascii_only)))
    raise typer.Exit(probe_code(known) if startup_probe else exit_code(known))


@app.command()
def tail(
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", help="Server logs, or - for standard input.")],
    output: Annotated[OutputForm, typer.Option("--output", "-o", help="What to print.")] = OutputForm.AUTO,
    bell: Annotated[bool, typer.Option("--bell", help="Ring the terminal's bell at ready or failed.")] = False,
    mouse: Annotated[bool, typer.Option("--mouse/--no-mouse", help="Take the mouse, or leave it alone.")] = True,
    pid: Pid = None,
    probe: Probe = None,
    url: Url = None,
    log_only: LogOnly = False,
    no_history: NoHistory = False,
    patterns: Patterns = None,
    ascii_only: Ascii = False,
) -> None:
    """Follow a start live, from the beginning of the latest boot; a log that does not exist yet is waited for.

    A screen on a terminal; elsewhere one line per change, and one after 30, 60, 120 s of silence.
    Exit code, where the input ends: 0 ready, 1 failed, 4 stuck, 5 over.
    """
    from phasetrack.beside import samplers
    from phasetrack.run import Session, exit_code

    if logs.count("-") > 1:
        raise UsageError("tail - -: standard input can be read once only")
    if len(logs) > 1 and (pid is not None or url is not None):
        raise UsageError("tail: --pid and --url are of one server, and there are several logs")
    look = _look(pid, probe, url, log_only=log_only)

    def session_of(log: str, warn: Callable[[str], None], **more: Any) -> Session:
        history = _history(log, off=no_history, warn=warn)
        return Session(_load(patterns), log, samplers=samplers(log, look), history=history, **more)

    if _wants_screen(output, logs):
        left = _show_screen(logs[0], partial(session_of, logs[0]), plain=_plain(ascii_only), bell=bell, mouse=mouse)
        raise typer.Exit(left.exit_code)
    known = _load(patterns)
    with ExitStack() as stack:
        pace_s = 10.0 if log_only else 1.0  # from the log alone no verdict changes fast
        sessions = [session_of(log, _note, say=_note, pace_s=pace_s) for log in logs]
        for session in sessions:
            stack.callback(session.close)
        if output is OutputForm.JSON:
            _tail_json(sessions)
        else:
            _tail_plain(sessions, known, plain=_plain(ascii_only))
    raise typer.Exit(next(filter(None, (exit_code(session.snapshot()) for session in sessions)), Exit.OK))


def _wants_screen(output: OutputForm, logs: list[str]) -> bool:
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


def _show_screen(log: str, open_session: Callable[..., Session], *, plain: bool, bell: bool, mouse: bool) -> Left:
    """Show the screen; leave the last state behind as plain text, and answer how it was left."""
    from phasetrack.views.tui import run_screen
    from phasetrack.views.tui.feed import Options

    def feed() -> Watch:
        from phasetrack.watch import Watch

        return Watch(partial(open_session, notes.append), log)

    notes: list[str] = []  # nothing may be printed over a screen
    left = run_screen(feed, Options(log, plain, "NO_COLOR" not in os.environ, bell, mouse))
    for note in notes:
        _note(note)
    return _leave(left, log, plain=plain)


def _leave(left: Left, log: str, *, plain: bool) -> Left:
    """Print what stays of a screen, and what went wrong with it."""
    if left.news is not None:
        _part(left.news, log, plain=plain)
    if isinstance(left.fault, PhasetrackError):
        raise left.fault
    if left.fault is not None:
        from phasetrack.crash import write_report

        where = write_report(left.fault, None if left.news is None else left.news.known)
        _note(f"internal error: {type(left.fault).__name__}: {left.fault}")
        _note(f"the report was written to {where}" if where else "a report could not be written")
        raise typer.Exit(left.exit_code)
    return left


def _part(news: News, log: str, *, plain: bool) -> None:
    import shutil

    from phasetrack.views.tui.look import ASCII, UNICODE
    from phasetrack.views.tui.parting import parting_text

    width = shutil.get_terminal_size().columns
    with suppress(OSError):  # the terminal may be gone
        sys.stdout.write(parting_text(news, log, max(width, 20), ASCII if plain else UNICODE))
        sys.stdout.flush()


def _tail_json(sessions: list[Session]) -> None:
    from phasetrack.run import tail_records
    from phasetrack.views.events import json_line
    from phasetrack.views.jsonl import dumps, snapshot_json

    many = len(sessions) > 1

    def out(session: Session, record: Record) -> None:
        _say(json_line(record, session.zone, session.path if many else None))

    tail_records(sessions, out, _is_read)
    for session in sessions:
        last = {"type": "snapshot", "snapshot": snapshot_json(session.snapshot())}
        _say(dumps({"path": session.path, **last} if many else last))


def _tail_plain(sessions: list[Session], patterns: PatternSet, *, plain: bool) -> None:
    from phasetrack.run import Teller, tail_plain
    from phasetrack.views.status import status_line

    heads = [f"{session.path}: " if len(sessions) > 1 else "" for session in sessions]
    outs = [partial(_say, head=head) for head in heads]
    tail_plain(
        [Teller(session, patterns, out, plain=plain) for session, out in zip(sessions, outs, strict=True)], _is_read
    )
    for session, out in zip(sessions, outs, strict=True):
        out(status_line(session.snapshot(), plain=plain))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD...", help="The server's command line.")],
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Its stdout and stderr, appended to; named if not given."),
    ] = None,
    output: Annotated[OutputForm, typer.Option("--output", "-o", help="What to print.")] = OutputForm.AUTO,
    passthrough: Annotated[bool, typer.Option("--passthrough", help="Copy the log to stdout; news to stderr.")] = False,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE.cast", help="Write an asciicast, and evidence beside it.")
    ] = None,
    probe: Probe = None,
    url: Url = None,
    log_only: LogOnly = False,
    bell: Annotated[bool, typer.Option("--bell", help="Ring the terminal's bell at ready or failed.")] = False,
    mouse: Annotated[bool, typer.Option("--mouse/--no-mouse", help="Take the mouse, or leave it alone.")] = True,
    no_history: NoHistory = False,
    patterns: Patterns = None,
    ascii_only: Ascii = False,
) -> None:
    """Start a server whose output is the log file, and follow it; killing phasetrack takes nothing from it.

    Signals and the server's exit code are passed on; a server that ends with 0 without having been ready gives 5.
    Leaving the screen asks whether to leave the server running or to stop it.
    """
    from phasetrack.launch import Launch

    plain = _plain(ascii_only)
    look = _look(None, probe, url, log_only=log_only)
    launch = Launch(command, log, _load(patterns), look, say=_note, record=record, passthrough=passthrough)
    history = partial(_history, str(launch.log), off=no_history)
    if output is OutputForm.JSON:
        raise UsageError("run: --output json is not for run (follow its log: phasetrack tail --output json LOG)")
    if not passthrough and _wants_screen(output, [str(launch.log)]):
        launch.screen(history, partial(_show_screen, str(launch.log), plain=plain, bell=bell, mouse=mouse), _ask)
        raise typer.Exit(launch.exit_code())
    launch.plain(history(), _note if passthrough else _say, plain=plain)
    raise typer.Exit(launch.exit_code())


def _ask(question: str) -> str:
    """Ask on the terminal; empty where there is none, or it is closed."""
    sys.stderr.write(question)
    sys.stderr.flush()
    try:
        return sys.stdin.readline() if sys.stdin.isatty() else ""
    except (OSError, KeyboardInterrupt):
        return ""


@app.command()
def wait(
    log: Log,
    until: Annotated[str, typer.Option("--until", metavar="PHASE", help="Until this phase has begun.")] = "ready",
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Give up after 45m, 90s, 1h30m. None unless given.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Only a boot that begins from now on counts.")] = False,
    fail_on: Annotated[FailOn, typer.Option("--fail-on", help="Give up from this verdict on.")] = FailOn.STUCK,
    pid: Pid = None,
    probe: Probe = None,
    url: Url = None,
    log_only: LogOnly = False,
    json: Annotated[bool, typer.Option("--json", help="Print the whole snapshot as JSON at the end.")] = False,
    no_history: NoHistory = False,
    patterns: Patterns = None,
    ascii_only: Ascii = False,
) -> None:
    """Block until the server is ready, has failed, or is stuck; a log that does not exist yet is waited for.

    Ends at once when the server's process dies. With --probe or --url, ready means that it answers over HTTP, too.
    Progress goes to stderr, the answer to stdout.
    Exit code: 0 ready or PHASE reached, 1 failed, 4 stuck, 5 over, 6 cannot read the log, 124 --timeout passed.
    """
    from phasetrack.beside import samplers
    from phasetrack.core.answer import Want, from_verdict
    from phasetrack.run import Session, Teller, wait_for
    from phasetrack.views.jsonl import dumps, snapshot_json
    from phasetrack.views.status import waited_line

    known = _load(patterns)
    if until not in known.phases:
        raise UsageError(f"--until {until}: no such phase; one of {', '.join(known.phases)}")
    timeout_s = _seconds(timeout, "--timeout")
    if timeout_s is None:
        _note("no --timeout given: waiting for as long as it takes")
    plain = _plain(ascii_only)
    look = _look(pid, probe, url, log_only=log_only)
    want = Want(until, fail_on=from_verdict(fail_on), healthy=look.http)
    history = _history(log, off=no_history)
    with closing(Session(known, log, samplers=samplers(log, look), say=_note, history=history)) as session:
        teller = Teller(session, known, lambda line: typer.echo(line, err=True), plain=plain)
        waited = wait_for(teller, want, new=new, timeout_s=timeout_s)
    if json:
        _say(dumps(snapshot_json(waited.known)))
    else:
        late = timeout if waited.code is Exit.DEADLINE else None
        here = known.phases[until].title if waited.code is Exit.OK and until != "ready" else None
        said = waited_line(
            waited.known, was_so=waited.was_so, timed_out=late, reached=here, fired=waited.fired, plain=plain
        )
        _say(said)
    raise typer.Exit(waited.code)


@app.command()
def report(
    log: Log,
    form: Annotated[ReportFormat, typer.Option("--format", "-f", help="Form of the report.")] = ReportFormat.TEXT,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write there, not to stdout.")
    ] = None,
    bundle: Annotated[
        Path | None,
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
    from phasetrack.share import look_beside, report_in

    loaded, past = _load(patterns), at_line is not None or at is not None
    if bundle is not None:
        if output is not None or past:
            raise UsageError("--bundle takes the whole log: leave out -o, --at-line and --at")
        _bundle(loaded, log, bundle, boot)
        return
    tracker, records = read_whole(loaded, log, at_line=at_line, at_s=_moment(at), boot=boot)
    history = _history(log, off=no_history)
    if form is ReportFormat.NDJSON:
        _stream(tracker, records, output, boot, history)
        return
    for _ in records:
        pass
    known = recalled(tracker, history)
    _check_boot(known.boot, boot)
    beside = None
    if form is ReportFormat.HTML and not past:
        again = _history(log, off=no_history)
        beside = look_beside(loaded, log, known, None if again is None else again.recall(known))
    with _target(output) as out:
        out.write(report_in(form, known, plain=_plain(ascii_only), beside=beside))


@app.command()
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A log, a boot of it (LOG#2), or of the history (12).")],
    b: Annotated[str, typer.Argument(metavar="B", help="The boot to ask about: what is slower there?")],
    form: Annotated[CompareFormat, typer.Option("--format", "-f", help="Form of the answer.")] = CompareFormat.TEXT,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write there, not to stdout.")
    ] = None,
    no_history: NoHistory = False,
    patterns: Patterns = None,
) -> None:
    """Compare two boots phase by phase: which phase explains the difference, and what else differs."""
    from phasetrack.edges.history import Store
    from phasetrack.share import compare_in, noise_between, read_boot

    loaded, noise = _load(patterns), None
    first, second = read_boot(loaded, a), read_boot(loaded, b)
    if not no_history:
        try:
            noise = noise_between(first, second, Store())
        except HistoryError as fault:
            _note(f"history: {fault}; going on without it")
    with _target(output) as out:
        out.write(compare_in(form, first, second, names=(a, b), noise=noise))


@app.command()
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
        _say(dumps(findings_json(findings)))
    else:
        sys.stdout.write(findings_text(findings, plain=_plain(ascii_only)))


@app.command()
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

    begin = Begin(speed or 1.0, _place(start), _seconds(idle, "--idle"), boot)
    tape, plain = Tape(_load(patterns), log), _plain(ascii_only)
    history = _history(log, off=no_history, warn=_kept_quiet)
    if plain_lines or not _wants_screen(OutputForm.AUTO, [log]):
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
    return _leave(left, tape.path, plain=plain)


def _replay_plain(tape: Tape, begin: Begin, history: History | None, *, paced: bool, plain: bool) -> None:
    from phasetrack.player import print_plain
    from phasetrack.reel import NoPlaceError

    try:
        for note in print_plain(tape, begin, _say, history=history, paced=paced, plain=plain):
            _note(note)
    except NoPlaceError as fault:
        raise UsageError(f"--from: {fault}") from None


@app.command()
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
    if _wants_screen(OutputForm.AUTO, [cast]):
        from phasetrack.player import Begin
        from phasetrack.tape import Tape

        begin = Begin(speed, demo=True)
        raise typer.Exit(
            _replay_screen(Tape(_load(None), cast), begin, None, plain=_plain(ascii_only), mouse=True).exit_code
        )
    tracker, records = read_whole(_load(None), str(demo_log()))
    for _ in records:
        pass
    sys.stdout.write(report_text(tracker.snapshot(), plain=_plain(ascii_only)))


def _bundle(patterns: PatternSet, log: str, target: Path, boot: int | None) -> None:
    from phasetrack.bundle import bundle_words, write_bundle

    _say(bundle_words(write_bundle(patterns, log, target, boot=boot)))


def _stream(
    tracker: Tracker, records: Iterator[Record], output: Path | None, boot: int | None, history: History | None
) -> None:
    """One record a line as they come; the whole snapshot is the last."""
    from itertools import chain

    from phasetrack.run import recalled
    from phasetrack.views.jsonl import dumps, record_json, snapshot_json

    first = next(records, None)  # a log that cannot be read leaves the output alone
    with _target(output) as out:
        for record in chain(() if first is None else (first,), records):
            out.write(dumps(record_json(record, tracker.zone)) + "\n")
        known = recalled(tracker, history)
        _check_boot(known.boot, boot)
        out.write(dumps({"type": "snapshot", "snapshot": snapshot_json(known)}) + "\n")


def _load(patterns: list[Path] | None) -> PatternSet:
    from phasetrack.edges.library import load

    return load(patterns or ())


def _look(pid: int | None, probe: ProbeKind | None, url: str | None, *, log_only: bool) -> Look:
    from phasetrack.beside import Look

    asked = probe is not None or url is not None
    return Look(pid, http=asked, generate=probe is ProbeKind.GENERATE, url=url, log_only=log_only)


def _history(log: str, *, off: bool, warn: Callable[[str], None] | None = None) -> History | None:
    if off:
        return None
    from phasetrack.edges.history import History

    return History(log, warn or _note)


def _say(line: str, head: str = "") -> None:
    """Print a line of the result at once: its reader may be waiting for it."""
    sys.stdout.write(f"{head}{line}\n")
    sys.stdout.flush()


def _is_read() -> bool:
    """Whether anybody still reads our stdout: a pipe whose reader has gone says so before it is written to."""
    import select

    watch = select.poll()
    watch.register(sys.stdout, 0)
    return not any(what & (select.POLLERR | select.POLLHUP) for _, what in watch.poll(0))


def _note(what: str) -> None:
    from phasetrack.core.redact import redact

    typer.echo(redact(f"phasetrack: {what}"), err=True)  # a URL or an argument may hold a secret too


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
    from phasetrack.core.where import moment_s

    try:
        return None if text is None else moment_s(text)
    except ValueError:
        mend = "write it as the log does: 2026-11-30T15:42:03, or 15:42:03"
        raise UsageError(f"--at {text}: not a time ({mend})") from None


def _seconds(text: str | None, option: str) -> float | None:
    from phasetrack.core.where import length_s

    try:
        return None if text is None else length_s(text)
    except ValueError:
        raise UsageError(f"{option} {text}: not a length of time (write 45m, 90s or 1h30m)") from None


def _check_boot(found: int, asked: int | None) -> None:
    if asked is not None and found != asked:
        raise UsageError(f"--boot {asked}: this log holds no such boot ('phasetrack report LOG' lists them)")


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
    _note(f"internal error: {type(fault).__name__}: {fault}{where} (please report it; PHASETRACK_DEBUG=1 tells more)")
    return Exit.INTERNAL


def main() -> NoReturn:
    """Run the command line; nothing but an exit code leaves it."""
    _prepare()
    code: int | str | None = Exit.OK
    try:
        app()
    except PhasetrackError as fault:
        _note(str(fault))
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
