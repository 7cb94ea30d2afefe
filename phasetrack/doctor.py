"""What can be seen from here, and what to do about what cannot: ``phasetrack doctor``.

Each look stands alone: one that fails is a finding, never the end of the others.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from phasetrack import __version__
from phasetrack.core.say import duration
from phasetrack.core.verdict import damage_of
from phasetrack.errors import HistoryError, PhasetrackError
from phasetrack.views.words import size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import PatternSet, ProbeResult, Snapshot

OK, NOTE, PROBLEM = "ok", "note", "problem"
SCHEMA = "phasetrack.doctor/1"
_MARKS = {OK: ("✓", "+"), NOTE: ("·", "."), PROBLEM: ("✗", "x")}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    id: str
    state: str  # ok; note: works without it; problem
    found: str
    advice: str = ""


def examine(log: str | None, extra: list[Path]) -> Iterator[Finding]:
    """Look at everything once.

    Args:
        log: a server's log, where one is given.
        extra: pattern files or folders given on the command line.
    """
    yield Finding("phasetrack", OK, f"{__version__} on Python {platform.python_version()}")
    patterns, finding = _patterns(extra)
    yield finding
    known = None
    if log is None:
        yield Finding("log", NOTE, "none was given", "name one: phasetrack doctor server.log")
    elif patterns is not None:
        known, finding = _log(patterns, log)
        yield finding
    yield _process(log, known)
    yield _gpu()
    yield _port(known)
    yield _history()
    yield _terminal()


def findings_text(findings: list[Finding], *, plain: bool) -> str:
    """The findings for a terminal, with what to do under each."""
    lines = []
    for finding in findings:
        lines.append(f"{_MARKS[finding.state][plain]} {finding.id:<11} {finding.found}")
        lines += [f"  {'':<11} do: {finding.advice}"] if finding.advice else []
    problems = sum(finding.state == PROBLEM for finding in findings)
    lines += ["", f"{problems} to look at." if problems else "Nothing stands in the way."]
    return "\n".join(lines) + "\n"


def findings_json(findings: list[Finding]) -> dict[str, object]:
    """The same as data."""
    from dataclasses import asdict

    return {
        "schema": SCHEMA,
        "findings": [asdict(finding) | {"advice": finding.advice or None} for finding in findings],
    }


# --- the looks --------------------------------------------------------------------------------------


def _patterns(extra: list[Path]) -> tuple[PatternSet | None, Finding]:
    from phasetrack.edges.library import given, load, of_user

    try:
        patterns = load(extra)
        own = len(of_user()) + len(given(extra))
    except PhasetrackError as fault:
        return None, Finding(
            "patterns", PROBLEM, str(fault), "mend or remove it; try it with: phasetrack patterns check"
        )
    packs = ", ".join(f"{patterns.titles.get(name, name)} {span}".strip() for name, span in patterns.packs.items())
    more = f", {own} of your own" if own else ""
    return patterns, Finding("patterns", OK, f"{packs}; {len(patterns.rules)} rules{more}")


def _log(patterns: PatternSet, log: str) -> tuple[Snapshot | None, Finding]:
    from phasetrack.run import look_once

    try:
        known = look_once(patterns, log)
    except PhasetrackError as fault:
        fact, _, advice = str(fault).partition(" (")
        return None, Finding("log", PROBLEM, fact, advice.removesuffix(")"))
    source = known.sources[0]
    lines = "" if source.lines is None else f", {source.lines} lines"
    said = f"{log}: readable, {size(source.bytes)}{lines}"
    if damage := damage_of(known):
        return known, Finding("log", PROBLEM, f"{said}; {damage}", "get it once more, whole")
    if known.engine is None:
        advice = "is it the server's own output? start it with: phasetrack run -- python -m sglang.launch_server …"
        return known, Finding("log", NOTE, f"{said}; no engine line in it yet", advice)
    if known.drift is not None:
        advice = "update phasetrack, or report it with: phasetrack report LOG --bundle FILE.tar.gz"
        return known, Finding("log", NOTE, f"{said}; it {known.drift}", advice)
    age = "" if known.silent_s is None else f", last output {duration(known.silent_s)} ago"
    return known, Finding("log", OK, f"{said}; {known.engine.title}, {known.outcome}{age}")


def _process(log: str | None, known: Snapshot | None) -> Finding:
    from phasetrack.edges import process, procfs

    if not Path("/proc/self/stat").exists():
        return Finding("process", PROBLEM, "there is no /proc here", "verdicts come from the log alone")
    if log is None or known is None:
        return _processes(len(procfs.pids()), everywhere=procfs.sees_all_processes())
    found = process.find(log, known, None)
    if found is None:
        return Finding(
            "process", NOTE, "no running process of this log can be seen",
            "look from the same machine and container, or give --pid; a finished server has none",
        )  # fmt: skip
    tree = process.ServerTree(found)
    samples, _ = tree.sample()
    said = f"pid {found.pid} ({found.how}), {len(samples)} processes"
    if tree.io_hidden:
        return Finding("process", NOTE, f"{said}; its I/O counters are hidden", "run as the server's user, or as root")
    return Finding("process", OK, said)


def _processes(count: int, *, everywhere: bool) -> Finding:
    if everywhere:
        return Finding("process", OK, f"{count} processes are visible, all of this machine")
    said = f"{count} processes are visible: those of this container, or of this user"
    return Finding("process", NOTE, said, "to see a server outside, look from the machine itself, as its user or root")


def _gpu() -> Finding:
    from phasetrack.edges.gpu import Gpus

    gpus = Gpus()
    try:
        if gpus.missing:
            advice = (
                "pip install 'phasetrack[gpu]'" if "not installed" in gpus.missing else "needs a driver on this machine"
            )
            return Finding("gpu", NOTE, gpus.missing.removeprefix("GPUs: "), f"{advice}; verdicts do without")
        names = sorted({sample.name for sample in gpus.sample(range(gpus.count))})
        return Finding("gpu", OK, f"{gpus.count} visible: {', '.join(names)}")
    finally:
        gpus.close()


def _port(known: Snapshot | None) -> Finding:
    from phasetrack.edges import probe

    target = probe.target_by_log(known)
    answers: list[ProbeResult] = []
    probe.ask(target, "/health", answers.append)
    answer = answers[-1]
    where = f"{target.host}:{target.port}"
    if answer.status is None:
        return Finding(
            "port",
            NOTE,
            f"{where}: {answer.error}",
            "nothing to do unless a server should answer there; --url names another",
        )
    server = f" from {answer.server}" if answer.server else ""
    return Finding("port", OK, f"{where}: /health answers {answer.status}{server}")


def _history() -> Finding:
    from phasetrack.edges.history import Store

    store = Store()
    try:
        boots = len(store.boots())
    except HistoryError as fault:
        return Finding("history", PROBLEM, str(fault), "estimates do without; --no-history leaves it alone")
    folder = next((parent for parent in store.path.parents if parent.exists()), None)
    if folder is None or not os.access(folder, os.W_OK):
        return Finding(
            "history", PROBLEM, f"{store.path}: cannot be written", "set XDG_STATE_HOME to a folder of yours"
        )
    if not boots:
        return Finding(
            "history", NOTE, f"{store.path}: no boots yet", "learn from old logs: phasetrack history import DIR"
        )
    return Finding("history", OK, f"{store.path}: {boots} boots")


def _terminal() -> Finding:
    term, encoding = os.environ.get("TERM", ""), (sys.stdout.encoding or "").lower()
    if not sys.stdout.isatty():
        return Finding(
            "terminal", NOTE, "the output is no terminal: tail prints plain lines", "--output tui forces the screen"
        )
    columns, rows = os.get_terminal_size(sys.stdout.fileno())
    said = f"{term or 'unknown'}, {columns} x {rows}, {encoding}"
    if term in {"", "dumb"}:
        return Finding("terminal", PROBLEM, f"{said}: no screen can be drawn", "set TERM, as in: TERM=xterm-256color")
    if "utf" not in encoding:
        return Finding("terminal", NOTE, f"{said}: ASCII only", "set a UTF-8 locale, as in: LC_ALL=C.UTF-8")
    if columns < 80 or rows < 24:
        return Finding("terminal", NOTE, f"{said}: small", "80 x 24 shows everything")
    colour = "no colour (NO_COLOR)" if os.environ.get("NO_COLOR") else "colour"
    return Finding("terminal", OK, f"{said}, {colour}")
