"""The server's processes: which they are, and what each of them did.

The main process is found from, in this order: the pid that was given; who has the log open, or feeds the pipe of one
who has; the pid that the log names; the only command line that fits the log. What cannot be seen is said, never
guessed: a container's or another user's processes are *missing*, not gone.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

import psutil

from phasetrack.core.model import ProcessSample
from phasetrack.core.titles import COMPILER, DETOKENIZER, MAIN, OTHER, RANK, Title, is_launch, title_of
from phasetrack.edges import procfs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from phasetrack.core.model import Snapshot
    from phasetrack.edges.procfs import FileId, Stat

_SHELLS = frozenset({
    "sh", "bash", "dash", "zsh", "fish", "ksh", "tini", "dumb-init", "docker-init", "timeout", "nohup",
})  # fmt: skip
# Who takes in orphans where it is not pid 1.
_REAPERS = frozenset({"systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "containerd-shim"})
# What stands between a server and its log: they have it open, and are not the server.
_FILTERS = frozenset({
    "tee", "cat", "ts", "awk", "gawk", "mawk", "sed", "grep", "tail", "pv", "logger", "multilog", "svlogd", "s6-log",
    "rotatelogs", "cronolog", "systemd-cat", "unbuffer",
})  # fmt: skip
_PORT = re.compile(r"--port[ =](?P<port>\d+)")
_MODEL = re.compile(r"--model(?:-path)?[ =](?P<model>\S+)")


class Found(NamedTuple):
    """The server's main process."""

    pid: int
    how: str  # in words
    kin: tuple[int, ...] = ()  # processes of the same server that are not below it: it was dead before


def find(path: str, known: Snapshot, asked: int | None) -> Found | None:
    """Find the main process of the server that writes a log; None where it cannot be seen from here."""
    if asked is not None:
        return Found(asked, "the pid that was given")
    there = [pid for pid in procfs.pids() if pid != os.getpid()]
    return _by_log(path, there) or _by_fact(known) or _by_command(path, known, there)


def _by_log(path: str, there: list[int]) -> Found | None:
    """Who has the log open as its output, directly or through a pipe (``2>&1 | tee server.log``)."""
    file = _id_of(path)
    if file is None:
        return None
    writers = list(procfs.holders(file, there, outputs_only=True)) or list(procfs.holders(file, there))
    main = _main_of(writers)
    if main is not None and not _is_between(main):
        kin = tuple(pid for pid in _tops(writers) if pid != main and _is_titled(pid))
        return Found(main, "it has the log open", kin)
    pipes = {(f.st_dev, f.st_ino) for pid in writers if (f := procfs.file_of(pid, 0)) is not None and _is_pipe(f)}
    feeders = [pid for pipe in pipes for pid in procfs.holders(pipe, there, outputs_only=True) if pid not in writers]
    feeder = _main_of(feeders)
    return None if feeder is None else Found(feeder, "it writes the pipe that the log is made of")


def _by_fact(known: Snapshot) -> Found | None:
    """The pid that the log names; a number alone may be another process's by now, or another container's."""
    pid = known.facts.get("pid")
    if not isinstance(pid, int) or not _is_server(pid):
        return None
    return Found(pid, "the log names it")


def _by_command(path: str, known: Snapshot, there: list[int]) -> Found | None:
    """The only command line that starts a server and does not contradict the log."""
    file = _id_of(path)
    fitting = [pid for pid in there if _is_launch(pid) and _fits(pid, known) and not _logs_elsewhere(pid, file)]
    tops = _tops(fitting)
    return Found(tops[0], "its command line fits the log") if len(tops) == 1 else None


def _main_of(pids: Iterable[int]) -> int | None:
    """Of processes that share an output, the one that started the rest; a launcher's shell is not the server."""
    pids = list(pids)
    launches = [pid for pid in pids if _is_launch(pid)]
    others = [pid for pid in pids if not _is_between(pid)]
    tops = _tops(launches or others or pids)
    return max(tops, key=_started, default=None)


def _tops(pids: list[int]) -> list[int]:
    """Those of which no other is an ancestor."""
    known = set(pids)
    return [pid for pid in pids if not known & set(_ancestors(pid))]


def _ancestors(pid: int) -> list[int]:
    found: list[int] = []
    while (stat := procfs.read_stat(pid)) is not None and stat.ppid > 0 and stat.ppid not in found:
        pid = stat.ppid
        found.append(pid)
    return found


def _started(pid: int) -> int:
    stat = procfs.read_stat(pid)
    return 0 if stat is None else stat.started_ticks


def _is_launch(pid: int) -> bool:
    """A server's command line itself, not a shell's that holds it."""
    return is_launch(procfs.command_of(pid)) and not _is_between(pid)


def _is_server(pid: int) -> bool:
    return _is_launch(pid) or _is_titled(pid)


def _is_titled(pid: int) -> bool:
    return title_of("", procfs.command_of(pid)).name.startswith("sglang::")


def _is_between(pid: int) -> bool:
    """Whether it is a shell or a filter."""
    stat = procfs.read_stat(pid)
    return stat is not None and (stat.comm in _SHELLS or stat.comm in _FILTERS)


def _is_pipe(facts: os.stat_result) -> bool:
    from stat import S_ISFIFO

    return S_ISFIFO(facts.st_mode)


def _fits(pid: int, known: Snapshot) -> bool:
    command = procfs.command_of(pid)
    for pattern, group, fact in ((_PORT, "port", "port"), (_MODEL, "model", "model_path")):
        found = pattern.search(command)
        value = known.facts.get(fact)
        if found is not None and value is not None and str(value) != found[group]:
            return False
    return True


def _logs_elsewhere(pid: int, file: FileId | None) -> bool:
    """Whether its output goes to another regular file."""
    from stat import S_ISREG

    facts = procfs.file_of(pid, 1)
    return facts is not None and S_ISREG(facts.st_mode) and (facts.st_dev, facts.st_ino) != file


def _id_of(path: str) -> FileId | None:
    try:
        facts = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


class ServerTree:
    """The processes of one server, sampled again and again."""

    def __init__(self, found: Found) -> None:
        """Begin with its main process."""
        self.found = found
        self.started_s: float | None = None  # of the main process
        self.io_hidden = False  # I/O counters are another user's
        self.is_orphaned = False  # what was found are the ranks of a main process that was dead before
        self._tree = procfs.Tree(found.pid, found.kin)
        self._titles: dict[tuple[int, int], tuple[str, Title]] = {}  # (pid, start) -> (comm, title)
        self._booted_s = psutil.boot_time()
        self._root_ticks: int | None = None

    @property
    def pid(self) -> int:
        """The main process's."""
        return self.found.pid

    def sample(self) -> tuple[tuple[ProcessSample, ...], bool]:
        """All living processes and zombies of the tree, and whether the main process is alive."""
        stats = self._tree.members()
        root = next((stat for stat in stats if stat.pid == self.pid), None)
        if root is not None and self._root_ticks is None:
            self._root_ticks = root.started_ticks
            self.started_s = self._started_s(root)
        is_same = root is not None and root.started_ticks == self._root_ticks
        self.is_orphaned = self.is_orphaned or (root is not None and self._is_orphan(root))
        alive = root is not None and is_same and root.state not in {"Z", "X"} and not self.is_orphaned
        stats = [stat for stat in stats if stat.pid != self.pid or is_same]
        self._forget({(stat.pid, stat.started_ticks) for stat in stats})
        return tuple(map(self._process, stats)), alive

    def holds(self, pid: int) -> bool:
        """Whether a process is the main one, or one that it left behind."""
        return pid == self.pid or any(pid == member for member, _ in self._titles)

    def _is_orphan(self, root: Stat) -> bool:
        """Whether what was taken for the main process is a rank that a dead one left behind."""
        if self._title(root).role not in {RANK, DETOKENIZER}:
            return False
        parent = procfs.read_stat(root.ppid)
        return root.ppid == 1 or (parent is not None and parent.comm in _REAPERS)

    def _forget(self, there: set[tuple[int, int]]) -> None:
        gone = self._titles.keys() - there
        self._tree.forget(pid for pid, _ in gone)
        for key in gone:
            del self._titles[key]

    def _process(self, stat: Stat) -> ProcessSample:
        title = self._title(stat)
        io = procfs.read_io(stat.pid)
        if stat.pid == self.pid and stat.state not in {"Z", "X"}:
            self.io_hidden = io is None
        return ProcessSample(
            pid=stat.pid,
            ppid=stat.ppid,
            name=title.name,
            role=MAIN if stat.pid == self.pid and title.role in {OTHER, COMPILER} else title.role,
            rank=title.rank,
            state=stat.state,
            cpu_s=stat.cpu_s,
            faults=stat.faults,
            read_bytes=None if io is None else io.read_bytes,
            syscalls_read=None if io is None else io.syscalls_read,
            rss_bytes=stat.rss_bytes,
            started_s=self._started_s(stat),
            read_chars=None if io is None else io.read_chars,
            write_chars=None if io is None else io.write_chars,
        )

    def _started_s(self, stat: Stat) -> float:
        return self._booted_s + stat.started_ticks / procfs.TICKS

    def _title(self, stat: Stat) -> Title:
        """Its title; the command line is read again only where the short name has changed."""
        key = (stat.pid, stat.started_ticks)
        was = self._titles.get(key)
        if was is not None and was[0] == stat.comm:
            return was[1]
        title = title_of(stat.comm, procfs.command_of(stat.pid))
        self._titles[key] = stat.comm, title
        return title
