"""What the commands share: options, their texts made into values, and how a line is said."""

from __future__ import annotations

import io
import sys
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from phasetrack.edges.outlet import is_lost, result_file
from phasetrack.errors import OutputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TextIO

    from phasetrack.beside import Look
    from phasetrack.core.model import PatternSet, Snapshot
    from phasetrack.edges.history import History


class ProbeKind(StrEnum):
    """How far to ask over HTTP."""

    HEALTH = "health"
    GENERATE = "generate"


class OutputForm(StrEnum):
    """What tail prints."""

    AUTO = "auto"
    TUI = "tui"
    PLAIN = "plain"
    JSON = "json"


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
ToFile = Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Write there, not to stdout.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def load_patterns(patterns: list[Path] | None) -> PatternSet:
    """Load the shipped patterns, those of the user, and more."""
    from phasetrack.edges.library import load

    return load(patterns or ())


def look_of(pid: int | None, probe: ProbeKind | None, url: str | None, *, log_only: bool) -> Look:
    """What the flags ask to be looked at beside the log."""
    from phasetrack.beside import Look

    asked = probe is not None or url is not None
    return Look(pid, http=asked, generate=probe is ProbeKind.GENERATE, url=url, log_only=log_only)


def history_of(log: str, *, off: bool, warn: Callable[[str], None] | None = None) -> History | None:
    """The history of a log; None where it is not wanted. ``warn`` takes what goes wrong with it."""
    if off:
        return None
    from phasetrack.edges.history import History

    return History(log, warn or note)


def moment(text: str | None) -> float | None:
    """A point in time of the log: ``--at``."""
    from phasetrack.core.where import moment_s

    try:
        return None if text is None else moment_s(text)
    except ValueError:
        mend = "write it as the log does: 2026-11-30T15:42:03, or 15:42:03"
        raise UsageError(f"--at {text}: not a time ({mend})") from None


def seconds(text: str | None, option: str) -> float | None:
    """A length of time: ``45m``."""
    from phasetrack.core.where import length_s

    try:
        return None if text is None else length_s(text)
    except ValueError:
        raise UsageError(f"{option} {text}: not a length of time (write 45m, 90s or 1h30m)") from None


def check_boot(found: int, asked: int | None) -> None:
    """Refuse a boot that the log does not hold."""
    if asked is not None and found != asked:
        raise UsageError(f"--boot {asked}: this log holds no such boot ('phasetrack report LOG' lists them)")


def is_plain(ascii_only: bool) -> bool:  # noqa: FBT001
    """Whether nothing beyond ASCII may be printed."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    return ascii_only or encoding != "utf8"


def say(line: str, head: str = "") -> None:
    """Print a line of the result at once: its reader may be waiting for it."""
    sys.stdout.write(f"{head}{line}\n")
    sys.stdout.flush()


def tell(line: str, head: str = "") -> None:
    """Print a line of an outcome, which is none the less so where nobody can read it."""
    try:
        say(line, head)
    except OutputError as fault:
        if not fault.is_unread:
            note(str(fault))


def pour(data: bytes) -> None:
    """Write bytes to standard output at once; where that cannot be, it is told once."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OutputError as fault:
        if not fault.is_unread:
            note(str(fault))


def is_read() -> bool:
    """Whether anybody still reads our stdout: a pipe whose reader has gone says so before it is written to."""
    import select

    if is_lost(sys.stdout):
        return False
    watch = select.poll()
    watch.register(sys.stdout, 0)
    return not any(what & (select.POLLERR | select.POLLHUP) for _, what in watch.poll(0))


def note(what: str) -> None:
    """Say something beside the result, on stderr."""
    from phasetrack.core.redact import redact_secrets

    typer.echo(redact_secrets(f"phasetrack: {what}"), err=True)  # a URL or an argument may hold a secret too


def warn_of_damage(log: str, known: Snapshot) -> None:
    """Say that not all of a log could be read, once."""
    from phasetrack.core.verdict import damage_of

    if damage := damage_of(known):
        note(f"{log}: {damage}")


@contextmanager
def target_of(output: str | None, *logs: str, patterns: Iterable[Path] | None = None) -> Iterator[TextIO]:
    """Where a result goes: a file, there whole or not at all, or standard output.

    Args:
        output: the file; None or ``-`` for standard output.
        logs: what the command reads.
        patterns: pattern files that it reads.

    Raises:
        UsageError: it cannot be written, or is read by the command.
    """
    if output in {None, "-"}:
        yield sys.stdout
        return
    from phasetrack.edges.history import default_path
    from phasetrack.edges.recorded import beside

    read: list[str | Path] = [*logs, *(beside(log) for log in logs if log != "-"), *(patterns or ()), default_path()]
    with result_file(output or "", read) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="replace")
        yield text
        text.flush()
        text.detach()
