"""The commands beside a start: status, tail, run, wait."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing
from enum import StrEnum
from functools import partial
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phasetrack.cli_options import (
    Ascii,
    At,
    AtLine,
    BootNumber,
    Log,
    LogOnly,
    NoHistory,
    OutputForm,
    Patterns,
    Pid,
    Probe,
    Url,
    check_boot,
    history_of,
    is_plain,
    is_read,
    load_patterns,
    look_of,
    moment,
    note,
    pour,
    seconds,
    tell,
    warn_of_damage,
)
from phasetrack.cli_screen import show_screen, wants_screen
from phasetrack.errors import Exit, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from phasetrack.core.model import PatternSet, Record
    from phasetrack.run import Session


class FailOn(StrEnum):
    """From which verdict on a wait gives up."""

    STUCK = "stuck"
    SUSPECT = "suspect"
    NONE = "none"


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
    from phasetrack.edges.looks import Looks
    from phasetrack.run import exit_code, look_once, probe_code
    from phasetrack.views.jsonl import dumps, snapshot_json
    from phasetrack.views.status import status_line

    history = history_of(log, off=no_history)
    asked = samplers(log, look_of(pid, probe, url, log_only=log_only), once=True)
    look = partial(look_around, samplers=asked, looks=None if no_history else Looks(log))
    known = look_once(
        load_patterns(patterns), log, at_line=at_line, at_s=moment(at), boot=boot, history=history, look=look
    )
    check_boot(known.boot, boot)
    warn_of_damage(log, known)
    tell(dumps(snapshot_json(known)) if json else status_line(known, plain=is_plain(ascii_only)))
    raise typer.Exit(probe_code(known) if startup_probe else exit_code(known))


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
    look = look_of(pid, probe, url, log_only=log_only)

    def session_of(log: str, warn: Callable[[str], None], **more: Any) -> Session:
        history = history_of(log, off=no_history, warn=warn)
        return Session(load_patterns(patterns), log, samplers=samplers(log, look), history=history, **more)

    if wants_screen(output, logs):
        left = show_screen(logs[0], partial(session_of, logs[0]), plain=is_plain(ascii_only), bell=bell, mouse=mouse)
        raise typer.Exit(left.exit_code)
    known = load_patterns(patterns)
    with ExitStack() as stack:
        pace_s = 10.0 if log_only else 1.0  # from the log alone no verdict changes fast
        sessions = [session_of(log, note, say=note, pace_s=pace_s) for log in logs]
        for session in sessions:
            stack.callback(session.close)
        if output is OutputForm.JSON:
            _tail_json(sessions)
        else:
            _tail_plain(sessions, known, plain=is_plain(ascii_only))
    raise typer.Exit(next(filter(None, (exit_code(session.snapshot()) for session in sessions)), Exit.OK))


def _tail_json(sessions: list[Session]) -> None:
    from phasetrack.run import tail_records
    from phasetrack.views.events import json_line
    from phasetrack.views.jsonl import dumps, snapshot_json

    many = len(sessions) > 1

    def out(session: Session, record: Record) -> None:
        tell(json_line(record, session.zone, session.path if many else None))

    tail_records(sessions, out, is_read)
    for session in sessions:
        last = {"type": "snapshot", "snapshot": snapshot_json(session.snapshot())}
        tell(dumps({"path": session.path, **last} if many else last))


def _tail_plain(sessions: list[Session], patterns: PatternSet, *, plain: bool) -> None:
    from phasetrack.run import Teller, tail_plain
    from phasetrack.views.status import status_line

    heads = [f"{session.path}: " if len(sessions) > 1 else "" for session in sessions]
    outs = [partial(tell, head=head) for head in heads]
    tail_plain(
        [Teller(session, patterns, out, plain=plain) for session, out in zip(sessions, outs, strict=True)], is_read
    )
    for session, out in zip(sessions, outs, strict=True):
        out(status_line(session.snapshot(), plain=plain))


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

    plain = is_plain(ascii_only)
    look = look_of(None, probe, url, log_only=log_only)
    copy = pour if passthrough else None
    launch = Launch(command, log, load_patterns(patterns), look, say=note, record=record, copy=copy)
    history = partial(history_of, str(launch.log), off=no_history)
    if output is OutputForm.JSON:
        raise UsageError("run: --output json is not for run (follow its log: phasetrack tail --output json LOG)")
    if not passthrough and wants_screen(output, [str(launch.log)]):
        launch.screen(history, partial(show_screen, str(launch.log), plain=plain, bell=bell, mouse=mouse), _ask)
        raise typer.Exit(launch.exit_code())
    launch.plain(history(), note if passthrough else tell, plain=plain)
    raise typer.Exit(launch.exit_code())


def _ask(question: str) -> str:
    """Ask on the terminal; empty where there is none, or it is closed."""
    sys.stderr.write(question)
    sys.stderr.flush()
    try:
        return sys.stdin.readline() if sys.stdin.isatty() else ""
    except (OSError, KeyboardInterrupt):
        return ""


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

    known = load_patterns(patterns)
    if until not in known.phases:
        raise UsageError(f"--until {until}: no such phase; one of {', '.join(known.phases)}")
    timeout_s = seconds(timeout, "--timeout")
    if timeout_s is None:
        note("no --timeout given: waiting for as long as it takes")
    plain = is_plain(ascii_only)
    look = look_of(pid, probe, url, log_only=log_only)
    want = Want(until, fail_on=from_verdict(fail_on), healthy=look.http)
    history = history_of(log, off=no_history)
    with closing(Session(known, log, samplers=samplers(log, look), say=note, history=history)) as session:
        teller = Teller(session, known, lambda line: typer.echo(line, err=True), plain=plain)
        waited = wait_for(teller, want, new=new, timeout_s=timeout_s)
    if json:
        tell(dumps(snapshot_json(waited.known)))
    else:
        late = timeout if waited.code is Exit.DEADLINE else None
        here = known.phases[until].title if waited.code is Exit.OK and until != "ready" else None
        said = waited_line(
            waited.known,
            was_so=waited.was_so,
            timed_out=late,
            none_new=waited.none_new,
            reached=here,
            fired=waited.fired,
            plain=plain,
        )
        tell(said)
    raise typer.Exit(waited.code)
