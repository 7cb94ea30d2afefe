"""Sleep until a log may have changed. Nobody relies on being woken: the sleeper looks anyway, and often.

Only directories are watched: a watch on the file itself is lost with the first rename, and the polling mode
of watchfiles was seen to miss changes. Where nothing can be watched (no inotify left, a directory that does
not exist yet) it is a plain sleep, of half the length.
"""

from __future__ import annotations

import time
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from watchfiles._rust_notify import RustNotify

# How long a follower may sleep between two looks where it is woken, and where it is not.
LOOK_S = 0.25
BLIND_LOOK_S = 0.08
# watchfiles looks at its queue this often, each time for 55 us; a change is told after two looks without another. Where
# nothing has changed for a while, the first change may be told 40 ms later.
_STEP_MS, _QUIET_STEP_MS = 30, 50
_QUIET_S = 2.0


class Wakeup:
    """Watches the directories of some logs."""

    def __init__(self, logs: Iterable[str]) -> None:
        """Name the logs; the watch begins with the first sleep."""
        self._directories = {str(Path(log).absolute().parent) for log in logs}
        self._watch: RustNotify | None = None
        self._began = False
        self._changed_s = -inf

    def sleep(self, wait_s: float) -> None:
        """Sleep for ``wait_s``, for less where something changed, and never longer than a look may wait."""
        if not self._began:
            self._began = True
            self._watch = self._start()
        if self._watch is None:
            time.sleep(min(wait_s, BLIND_LOOK_S))
            return
        left_ms = int(1000 * min(wait_s, LOOK_S))
        began = time.monotonic()
        step_ms = _STEP_MS if began - self._changed_s < _QUIET_S else _QUIET_STEP_MS
        if left_ms <= step_ms:
            time.sleep(max(wait_s, 0.0))
            return
        found = self._watch.watch(2 * step_ms, step_ms, left_ms, None)
        if found == "signal":
            raise KeyboardInterrupt
        if found != "timeout":
            self._changed_s = began

    def _start(self) -> RustNotify | None:
        try:
            from watchfiles._rust_notify import RustNotify

            return RustNotify(list(self._directories), False, False, 0, False, True)
        except Exception:  # noqa: BLE001 - whatever hinders watching, looking more often takes its place
            return None

    def close(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
