"""What earlier single looks at a server saw: one look alone cannot tell for how long nothing has moved.

``status`` may be all that somebody has. Each of its looks is kept in ``$XDG_STATE_HOME/phasetrack/looks``, one file a
log, so that the next one sees what has moved since, as ``tail`` would have. Where that cannot be read or written, a
look knows what it sees, and no more.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from phasetrack.core.model import EvidenceSample
from phasetrack.edges.folders import state_folder
from phasetrack.edges.outlet import moved_there
from phasetrack.edges.recorded import evidence_line, evidence_of

if TYPE_CHECKING:
    from pathlib import Path

# Looks nearer than this to one another are kept as one; so many of them are more than a hang needs to be told.
_APART_S = 30.0
_KEPT = 40
# Longer ago than this nothing is known of what happened in between.
_STALE_S = 3600.0
_FORGOTTEN_S = 86400.0


class Looks:
    """The looks at one log."""

    def __init__(self, log: str) -> None:
        """Find what is kept of a log: by its file, whatever its name."""
        self._file: Path | None = None
        with suppress(OSError):
            facts = os.stat(log)  # noqa: PTH116
            self._file = state_folder() / "looks" / f"{facts.st_dev:x}-{facts.st_ino:x}.jsonl"

    def before(self, sample: EvidenceSample) -> list[EvidenceSample]:
        """Earlier looks at the same server, the oldest first, without a gap of an hour."""
        kept: list[EvidenceSample] = []
        later_s, root = sample.now_s, _root_of(sample)
        for one in reversed(self._earlier if root is not None else ()):
            if _root_of(one) != root or not 0 < later_s - one.now_s < _STALE_S:
                break
            kept.append(one)
            later_s = one.now_s
        return kept[::-1]

    def keep(self, sample: EvidenceSample) -> None:
        """Remember a look."""
        if self._file is None or _root_of(sample) is None:
            return
        kept = self.before(sample)
        if len(kept) > 1 and sample.now_s - kept[-2].now_s < _APART_S:
            kept.pop()
        with suppress(OSError):
            self._write([*kept[1 - _KEPT :], sample])
            self._forget(sample.now_s)

    @cached_property
    def _earlier(self) -> tuple[EvidenceSample, ...]:
        """All that was kept when it was first asked for."""
        lines: list[str] = []
        with suppress(OSError):
            lines = [] if self._file is None else self._file.read_text("utf-8", "replace").split("\n")
        return tuple(item for item in map(evidence_of, lines) if isinstance(item, EvidenceSample))

    def _write(self, kept: list[EvidenceSample]) -> None:
        """All or nothing: two looks at once leave one of both."""
        assert self._file is not None  # noqa: S101 - who asks has a file
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with moved_there(str(self._file)) as fresh:
            os.fchmod(fresh.fileno(), 0o600)
            fresh.writelines(f"{evidence_line(one)}\n".encode() for one in kept)

    def _forget(self, now_s: float) -> None:
        assert self._file is not None  # noqa: S101 - who asks has a file
        for old in self._file.parent.iterdir():
            if now_s - old.stat().st_mtime > _FORGOTTEN_S:
                old.unlink(missing_ok=True)


def _root_of(sample: EvidenceSample) -> tuple[int, float] | None:
    """Which server was looked at: its main process, by number and begin."""
    root = next((process for process in sample.processes if process.pid == sample.root_pid), None)
    return None if root is None or root.started_s is None else (root.pid, root.started_s)
