"""Linux's /proc, read as little as needed: a process's numbers, the tree below it, who holds a file open.

psutil reads the same files, but has no page faults, and finds children by opening every process there is, each time:
on a busy host that alone is more than the 1 % of a core that all of this may take. Here only newcomers are opened.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TICKS = os.sysconf("SC_CLK_TCK")  # of CPU and start times, a second
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

_LOCAL = {"ext2", "ext3", "ext4", "xfs", "f2fs", "zfs", "bcachefs", "tmpfs", "ramfs", "overlay"}

FileId = tuple[int, int]  # device, inode


class Stat(NamedTuple):
    """``/proc/PID/stat``, as far as it is used."""

    pid: int
    comm: str
    state: str
    ppid: int
    faults: int
    cpu_s: float
    started_ticks: int  # since the machine's start; with the pid, it names a process for good
    rss_bytes: int


class Io(NamedTuple):
    """``/proc/PID/io``."""

    read_chars: int
    write_chars: int
    syscalls_read: int
    read_bytes: int


def parse_stat(text: bytes) -> Stat:
    """Read one stat line; the name in it may hold blanks and parentheses."""
    head, _, tail = text.rpartition(b")")
    pid, _, comm = head.partition(b"(")
    part = tail.split()
    return Stat(
        pid=int(pid),
        comm=comm.decode("utf-8", "replace"),
        state=part[0].decode(),
        ppid=int(part[1]),
        faults=int(part[7]) + int(part[9]),
        cpu_s=(int(part[11]) + int(part[12])) / TICKS,
        started_ticks=int(part[19]),
        rss_bytes=int(part[21]) * _PAGE_BYTES,
    )


def read_stat(pid: int) -> Stat | None:
    """A process's stat; None where it is gone or hidden."""
    data = _read(f"/proc/{pid}/stat")
    return None if not data else parse_stat(data)


def read_io(pid: int) -> Io | None:
    """A process's I/O counters; None where it is gone or another user's."""
    data = _read(f"/proc/{pid}/io")
    if not data:
        return None
    values = dict(line.split(b": ", 1) for line in data.splitlines() if b": " in line)
    try:
        return Io(int(values[b"rchar"]), int(values[b"wchar"]), int(values[b"syscr"]), int(values[b"read_bytes"]))
    except (KeyError, ValueError):
        return None


def command_of(pid: int) -> str:
    """A process's command line, joined by blanks; empty where it is gone, hidden or a zombie."""
    return " ".join(arguments_of(pid))


def arguments_of(pid: int) -> list[str]:
    """A process's command line, word by word."""
    data = _read(f"/proc/{pid}/cmdline") or b""
    return data.rstrip(b"\0").decode("utf-8", "replace").split("\0") if data else []


def environment_of(pid: int) -> dict[str, str]:
    """The environment a process was started with; empty where it is another user's."""
    data = _read(f"/proc/{pid}/environ") or b""
    pairs = (item.partition("=") for item in data.decode("utf-8", "replace").split("\0"))
    return {name: value for name, _, value in pairs if name}


def pids() -> list[int]:
    """All processes that can be seen from here; none where there is no /proc."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - a thousand names, no paths
    except OSError:
        return []


def holders(file: FileId, among: Iterable[int], *, outputs_only: bool = False) -> Iterator[int]:
    """Processes that can write to a file or pipe: as stdout or stderr, or as any open file.

    Told by device and inode, so that a container's other path for the same file does not matter.
    """
    for pid in among:
        fds = ("1", "2") if outputs_only else _fds(pid)
        if any(_is_file(pid, fd, file) and (outputs_only or _writes(pid, fd)) for fd in fds):
            yield pid


def file_of(pid: int, fd: int) -> os.stat_result | None:
    """What a process's file descriptor leads to; None where it cannot be seen."""
    try:
        return os.stat(f"/proc/{pid}/fd/{fd}")  # noqa: PTH116 - a hot loop
    except OSError:
        return None


def listens(pid: int, port: int) -> set[int]:
    """Inodes of sockets that listen on a port, in a process's own network namespace."""
    found: set[int] = set()
    for name in ("tcp", "tcp6"):
        for line in (_read(f"/proc/{pid}/net/{name}") or b"").splitlines()[1:]:
            part = line.split()
            if part[3] == b"0A" and int(part[1].rpartition(b":")[2], 16) == port:
                found.add(int(part[9]))
    return found


def sockets_of(pid: int) -> set[int]:
    """Inodes of the sockets that a process holds."""
    found: set[int] = set()
    for fd in _fds(pid):
        facts = file_of(pid, int(fd))
        if facts is not None and stat.S_ISSOCK(facts.st_mode):
            found.add(facts.st_ino)
    return found


def sees_all_processes() -> bool:
    """Whether every process of this machine can be seen: not from a container, nor with hidepid.

    The first PID namespace of a machine always has this inode (``PROC_PID_INIT_INO``).
    """
    try:
        return os.readlink("/proc/self/ns/pid") == "pid:[4026531836]" and os.path.exists("/proc/1/stat")  # noqa: PTH110, PTH115
    except OSError:
        return False


def sees_writers_of(path: str) -> bool:
    """Whether a process that writes a file would be seen: it lies on a disk of this machine, and we may look.

    A log on a network or passed-through file system may be written by another machine.
    """
    try:
        facts = os.stat(path)  # noqa: PTH116
    except OSError:
        return False
    may_look = os.geteuid() in {0, facts.st_uid}
    return stat.S_ISREG(facts.st_mode) and may_look and sees_all_processes() and _kind_of(facts.st_dev) in _LOCAL


def _kind_of(device: int) -> str:
    """The kind of file system on a device; empty where no mount names it."""
    number = f"{os.major(device)}:{os.minor(device)}".encode()
    for line in (_read("/proc/self/mountinfo") or b"").splitlines():
        if line.split(b" ", 3)[2] == number:
            return line.partition(b" - ")[2].split(b" ", 1)[0].decode()
    return ""


def _fds(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
    except OSError:
        return []


def _is_file(pid: int, fd: str, file: FileId) -> bool:
    facts = file_of(pid, int(fd))
    return facts is not None and (facts.st_dev, facts.st_ino) == file


def _writes(pid: int, fd: str) -> bool:
    data = _read(f"/proc/{pid}/fdinfo/{fd}") or b""
    flags = next((line.split()[1] for line in data.splitlines() if line.startswith(b"flags:")), b"0")
    return int(flags, 8) & os.O_ACCMODE != os.O_RDONLY


def _read(path: str) -> bytes | None:
    """A small file of /proc as a whole; None where it is gone or not ours to read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = b""
        while part := os.read(fd, 65536):
            data += part
    except OSError:
        return None
    finally:
        os.close(fd)
    return data


class Tree:
    """The processes below a root, kept up to date for the price of a directory listing and its members.

    Children that outlive the root stay members: they are what holds the GPU after a parent's death.
    """

    def __init__(self, root: int, kin: Iterable[int] = ()) -> None:
        """Begin with the root, and with others that belong to it though they are not below it."""
        self.root = root
        self._parents: dict[int, int] = {}  # of all processes seen; an orphan keeps its first parent
        self._started: dict[int, int] = {}  # of members
        for pid in kin:
            if (found := read_stat(pid)) is not None:
                self._started[pid] = found.started_ticks

    def members(self) -> list[Stat]:
        """The living and the zombies among them, the root first."""
        there = set(pids())
        for pid in there - self._parents.keys():
            found = read_stat(pid)
            if found is not None:
                self._parents[pid] = found.ppid
        for pid in self._parents.keys() - there:
            del self._parents[pid]
        return [found for pid in self._below(there) if (found := self._member(pid)) is not None]

    def _below(self, there: set[int]) -> list[int]:
        children: dict[int, list[int]] = {}
        for pid, ppid in self._parents.items():
            children.setdefault(ppid, []).append(pid)
        found, todo = [], [self.root, *(pid for pid in self._started if pid in there)]
        seen: set[int] = set()
        while todo:
            pid = todo.pop(0)
            if pid in there and pid not in seen:
                seen.add(pid)
                found.append(pid)
                todo += children.get(pid, ())
        return found

    def _member(self, pid: int) -> Stat | None:
        found = read_stat(pid)
        if found is None:
            return None
        if self._started.setdefault(pid, found.started_ticks) != found.started_ticks:
            del self._started[pid]  # the number was given to another process
            self._parents[pid] = found.ppid
            return None
        return found

    def forget(self, gone: Iterable[int]) -> None:
        """Drop members that are gone."""
        for pid in gone:
            self._started.pop(pid, None)
