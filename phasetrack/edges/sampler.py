"""Looks outside the log: processes, port, GPUs, caches and downloads, put together as one ``EvidenceSample``.

At most every two seconds, and at most one part in a hundred of a core: what a look cost decides when the next one is
due. What is dear (finding the server among all processes, counting caches) is looked at more rarely, and caches only
while the log is silent.
"""

from __future__ import annotations

import getpass
import os
import time
from typing import TYPE_CHECKING

from phasetrack.core.model import EvidenceSample, Outcome
from phasetrack.edges import caches, procfs
from phasetrack.edges.gpu import Gpus
from phasetrack.edges.process import Found, ServerTree, find

if TYPE_CHECKING:
    from collections.abc import Callable

    from phasetrack.core.model import GpuSample, ProcessSample, Snapshot
    from phasetrack.edges.caches import Growth

INTERVAL_S = 2.0
_SHARE = 0.01  # of one core
_FIND_S = 10.0  # between two searches for the server
_CACHES_S = 10.0
# A log that nobody has open is over after this long; a restarting wrapper takes less.
_ORPHAN_S = 60.0
_SILENT_S = 5.0  # below this the log itself tells enough


class EvidenceSampler:
    """A ``run.Sampler``: finds the server of a log, and looks at it again and again."""

    def __init__(
        self,
        path: str,
        *,
        pid: int | None = None,
        exit_code: Callable[[], int | None] | None = None,
        gpus_after_s: float = 0.0,
    ) -> None:
        """Look for the server that writes ``path``.

        Args:
            path: of the log; ``-`` for standard input, whose writer holds our pipe.
            pid: of the server's main process, where it is known.
            exit_code: where we are its parent: answers its exit code once it has ended.
            gpus_after_s: ask the NVIDIA driver once the log has been silent for so long.
        """
        self.interval_s = INTERVAL_S
        self._path = f"/proc/{os.getpid()}/fd/0" if path == "-" else path
        self._asked = pid
        self._exit_code = exit_code
        self._tree: ServerTree | None = None
        self._find_due_s = 0.0
        self._nobody = False  # who could have the log open can be seen, and nobody has
        self._gpus_after_s = gpus_after_s
        self._gpus: Gpus | None = None
        self._gpu_indices: list[int] = []
        self._environment: dict[str, str] = {}
        self._root = ""  # of the server's file system
        self._caches: Growth | None = None
        self._caches_due_s = 0.0
        self._caches_too_large = False
        self._downloads_seen = False
        self._port_open = False
        self._port_owner = ""

    def sample(self, known: Snapshot, now_s: float) -> EvidenceSample:
        """Look once. What a look costs puts off the next one."""
        began = time.thread_time()
        found = self._look(known, now_s)
        self.interval_s = max(INTERVAL_S, (time.thread_time() - began) / _SHARE)
        return found

    def _look(self, known: Snapshot, now_s: float) -> EvidenceSample:
        self._find(known, now_s)
        tree = self._tree
        log_bytes, log_age_s = _facts_of(self._path, now_s)
        if tree is None:
            return EvidenceSample(
                now_s,
                log_bytes=log_bytes,
                log_age_s=log_age_s,
                missing=(self._unseen(),),
                orphan_log=self._nobody and log_age_s is not None and log_age_s >= _ORPHAN_S,
            )
        processes, alive = tree.sample()
        downloads = self._downloads(known)
        growth = self._jit(known, now_s)
        return EvidenceSample(
            now_s=now_s,
            processes=processes,
            root_pid=None if tree.is_orphaned else tree.pid,
            root_alive=alive,
            exit_code=self._exit_code() if self._exit_code is not None and not alive else None,
            gpus=self._look_at_gpus(known, processes),
            cache_bytes=None if growth is None else growth.bytes,
            cache_files=None if growth is None else growth.files,
            download_bytes=downloads,
            log_bytes=log_bytes,
            log_age_s=log_age_s,
            port_open=self._look_at_port(known, processes),
            missing=tuple(self._missing(tree)),
            found=tree.found.how,
            port_owner=self._port_owner,
        )

    # --- the server ---------------------------------------------------------------------------------

    def _find(self, known: Snapshot, now_s: float) -> None:
        """Search for the server while it is not found, and for its successor once it is gone."""
        tree = self._tree
        if (tree is not None and (self._asked is not None or procfs.read_stat(tree.pid))) or now_s < self._find_due_s:
            return
        began = time.thread_time()
        found = find(self._path, known, self._asked)
        self._nobody = found is None and procfs.sees_writers_of(self._path)
        self._find_due_s = now_s + max(_FIND_S, (time.thread_time() - began) / _SHARE)
        if found is not None and (tree is None or not tree.holds(found.pid)):
            self._adopt(found)

    def _adopt(self, found: Found) -> None:
        self._tree = ServerTree(found)
        self._environment = procfs.environment_of(found.pid) or dict(os.environ)
        self._root = _root_of(found.pid)
        self._gpu_indices = []
        self._port_open, self._port_owner = False, ""

    def _unseen(self) -> str:
        if self._nobody:
            return "the server's process: no process of this machine has this log open"
        if procfs.sees_all_processes():
            return "the server's process: another user's, or not on this machine (give --pid, or run as its user)"
        return "the server's process: not in this container (run phasetrack beside it, or on the host)"

    def _missing(self, tree: ServerTree) -> list[str]:
        missing = []
        if tree.io_hidden:
            missing.append("bytes read: the process is another user's (run as its user or root)")
        if self._gpus is not None and self._gpus.missing:
            missing.append(self._gpus.missing)
        if self._caches_too_large:
            missing.append("JIT caches: too many files to be watched")
        return missing

    # --- what is around it --------------------------------------------------------------------------

    def _look_at_gpus(self, known: Snapshot, processes: tuple[ProcessSample, ...]) -> tuple[GpuSample, ...]:
        if self._gpus is None and (known.silent_s or 0.0) < self._gpus_after_s:
            return ()
        if self._gpus is None:
            self._gpus = Gpus()
        if self._gpus.count and not self._gpu_indices:
            self._gpu_indices = self._gpus.used_by({process.pid for process in processes}, self._environment)
        return self._gpus.sample(self._gpu_indices)

    def _look_at_port(self, known: Snapshot, processes: tuple[ProcessSample, ...]) -> bool | None:
        """Whether a process of the tree listens on the server's port; and who else does."""
        port, tree = known.facts.get("port"), self._tree
        if self._port_open or not isinstance(port, int) or tree is None:
            return self._port_open or None
        inodes = procfs.listens(tree.pid, port)
        if not inodes:
            self._port_owner = ""
            return False
        self._port_open = any(inodes & procfs.sockets_of(process.pid) for process in processes)
        if not self._port_open and not self._port_owner and known.outcome is not Outcome.READY:
            self._port_owner = _owner_of(inodes)
        return self._port_open

    def _jit(self, known: Snapshot, now_s: float) -> Growth | None:
        silent = known.silent_s is not None and known.silent_s >= _SILENT_S
        if self._caches_too_large or not silent or known.outcome is Outcome.FAILED or now_s < self._caches_due_s:
            return self._caches
        began = time.thread_time()
        user = self._environment.get("USER") or _user()
        self._caches = caches.measure(caches.jit_folders(self._environment, user), self._root)
        self._caches_too_large = self._caches is None
        self._caches_due_s = now_s + max(_CACHES_S, (time.thread_time() - began) / _SHARE)
        return self._caches

    def _downloads(self, known: Snapshot) -> int | None:
        """Bytes of unfinished downloads; None until one was seen, since most starts have none."""
        if known.outcome not in {Outcome.NONE, Outcome.STARTING} or (known.silent_s or 0.0) < _SILENT_S:
            return None
        model = known.facts.get("model_path")
        growth = caches.incomplete(caches.hub_folder(self._environment), str(model) if model else None, self._root)
        self._downloads_seen |= growth.files > 0
        return growth.bytes if self._downloads_seen else None

    def close(self) -> None:
        """Let the driver go."""
        if self._gpus is not None:
            self._gpus.close()


def _facts_of(path: str, now_s: float) -> tuple[int | None, float | None]:
    try:
        facts = os.stat(path)  # noqa: PTH116
    except OSError:
        return None, None
    return facts.st_size, max(now_s - facts.st_mtime, 0.0)


def _root_of(pid: int) -> str:
    """Where a process's file system begins for us; empty where it is ours."""
    try:
        if os.readlink(f"/proc/{pid}/ns/mnt") == os.readlink("/proc/self/ns/mnt"):  # noqa: PTH115
            return ""
    except OSError:
        return ""
    return f"/proc/{pid}/root"


def _owner_of(inodes: set[int]) -> str:
    """The program that holds a socket, in words."""
    for pid in procfs.pids():
        if inodes & procfs.sockets_of(pid):
            stat = procfs.read_stat(pid)
            return f"pid {pid}" if stat is None else f"{stat.comm} (pid {pid})"
    return "a process that cannot be seen from here"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
