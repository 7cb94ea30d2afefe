"""Earlier boots of this machine, in an SQLite file that many processes share.

One file for all processes of a user, often in a network home directory. So: a rollback journal (WAL needs shared
memory, which network file systems lack), one short transaction a boot, a busy timeout, and nothing held open
between. A boot is written when it is over; what was written is safe from a kill at any moment, and a reader rolls
back what a killed writer left. Tracking never depends on any of it: ``History`` turns every fault into one warning.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, contextmanager
from math import inf
from typing import TYPE_CHECKING
from urllib.parse import quote

from phasetrack.core.model import Outcome, Priors
from phasetrack.edges.folders import state_folder
from phasetrack.edges.tables import APPLICATION_ID, VERSION, alike, create, heads, newest, read, write
from phasetrack.errors import HistoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from phasetrack.core.model import BootKey, Remembered, Snapshot

# A writer waits so long for others; a screen's worker does not wait that long to read.
_WRITE_TIMEOUT_S, _READ_TIMEOUT_S = 10.0, 2.0
# SQLite's largest integer.
_MOST = 2**63 - 1


def default_path() -> Path:
    """``$XDG_STATE_HOME/phasetrack/history.db``."""
    return state_folder() / "history.db"


class Store:
    """One history file. Every method opens it, does one thing in one transaction, and closes it.

    A file that does not exist reads as empty, and is made by the first boot written.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Use a file; the user's own where None."""
        self.path = path if path is not None else default_path()

    # --- writing ------------------------------------------------------------------------------------

    def remember(self, boots: Iterable[Remembered], *, now_s: float) -> int:
        """Write boots; of one that is there already, the account that saw more of it stays.

        Returns:
            How many were new or replaced.

        Raises:
            HistoryError: they could not be written; nothing of them was.
        """
        with self._faults("written"), closing(self._writable()) as base, _transaction(base):
            return sum(write(base, boot, now_s) for boot in boots)

    def forget(self, *, numbers: Sequence[int] = (), before_s: float | None = None, everything: bool = False) -> int:
        """Delete boots by number, by age, or all; answer how many.

        Raises:
            HistoryError: nothing was deleted.
        """
        if not self.path.exists():
            return 0
        with self._faults("written"), closing(self._writable()) as base:
            with _transaction(base):
                if everything:
                    found = base.execute("DELETE FROM boots").rowcount
                elif before_s is not None:
                    found = base.execute("DELETE FROM boots WHERE at_s < ?", (before_s,)).rowcount
                else:
                    there = [(number,) for number in numbers if abs(number) <= _MOST]
                    found = sum(base.execute("DELETE FROM boots WHERE number = ?", one).rowcount for one in there)
            if found:
                base.execute("VACUUM")
            return found

    # --- reading ------------------------------------------------------------------------------------

    def priors(self, key: BootKey | None, *, but: Collection[str | None] = (), before_s: float = inf) -> Priors:
        """Past boots that are like one, the newest first within each level of likeness.

        Args:
            key: of the boot that is followed; None while nothing is known of it: the newest boots.
            but: uids of boots that are no past: what was kept of the boot itself.
            before_s: only boots that were over by then: what was known at a time in the past.

        Raises:
            HistoryError: the file cannot be read.
        """
        with self._reading() as base:
            if base is None:
                return Priors()
            numbers = newest(base, before_s) if key is None else alike(base, key, before_s)
            return Priors(tuple(one.past for one in read(base, numbers) if one.uid not in but))

    def boots(self, limit: int | None = None) -> list[Remembered]:
        """The newest boots without their phases, the newest first.

        Raises:
            HistoryError: the file cannot be read.
        """
        with self._reading() as base:
            if base is None:
                return []
            return heads(base, None if limit is None else min(limit, _MOST))

    def boot(self, number: int) -> Remembered | None:
        """One boot with all its phases; None where there is none of this number.

        Raises:
            HistoryError: the file cannot be read.
        """
        with self._reading() as base:
            return None if base is None or number > _MOST else next(iter(read(base, [number])), None)

    def all(self) -> Iterator[Remembered]:
        """Every boot with its phases, the oldest first.

        Raises:
            HistoryError: the file cannot be read.
        """
        with self._reading() as base:
            if base is None:
                return
            numbers = [row[0] for row in base.execute("SELECT number FROM boots ORDER BY at_s, number")]
            for k in range(0, len(numbers), 200):
                yield from read(base, numbers[k : k + 200])

    # --- the file -----------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        if not self.path.exists():
            yield None
            return
        with self._faults("read"), closing(self._readable()) as base:
            yield base if self._check(base) else None

    def _readable(self) -> sqlite3.Connection:
        """Open without making anything; writable where it can be, for a killed writer's journal must be undone."""
        uri = f"file:{quote(str(self.path.resolve()))}"
        for mode in ("rw", "ro"):
            base = sqlite3.connect(f"{uri}?mode={mode}", uri=True, timeout=_READ_TIMEOUT_S, isolation_level=None)
            try:
                self._check(base)
            except sqlite3.OperationalError:
                base.close()
                if mode == "ro":
                    raise
            else:
                return base
        raise AssertionError

    def _writable(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        base = sqlite3.connect(self.path, timeout=_WRITE_TIMEOUT_S, isolation_level=None)
        try:
            base.execute("PRAGMA foreign_keys = ON")
            if self._check(base) == 0:
                with _transaction(base):
                    create(base)
        except BaseException:
            base.close()
            raise
        return base

    def _check(self, base: sqlite3.Connection) -> int:
        """Answer the format of the file: 0 where it is empty."""
        with _transaction(base, "DEFERRED"):  # another process may be making the tables: all of them or none are seen
            return self._format(base)

    def _format(self, base: sqlite3.Connection) -> int:
        found = int(base.execute("PRAGMA user_version").fetchone()[0])
        if found > VERSION:
            raise HistoryError(
                f"{self.path}: written by a newer phasetrack (format {found}, this one knows {VERSION}); left alone"
                " (update phasetrack, or set XDG_STATE_HOME to keep a second history)"
            )
        if not found and base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise HistoryError(f"{self.path}: a database, but not a history of phasetrack (move it away)")
        if found and int(base.execute("PRAGMA application_id").fetchone()[0]) != APPLICATION_ID:
            raise HistoryError(f"{self.path}: a database, but not a history of phasetrack (move it away)")
        return found

    @contextmanager
    def _faults(self, act: str) -> Iterator[None]:
        """Turn what SQLite and the system say into one line that names the file, the fact and the next step."""
        try:
            yield
        except sqlite3.Error as fault:
            raise HistoryError(f"{self.path}: {_in_words(fault, act, self.path)}") from None
        except OSError as fault:
            raise HistoryError(f"{self.path}: cannot be {act}: {fault.strerror or fault}") from None


def _in_words(fault: sqlite3.Error, act: str, path: Path) -> str:
    said = str(fault)
    if "not a database" in said or "malformed" in said or "no such table" in said or "no such column" in said:
        return f"the history is damaged (move it away: mv {path} {path}.damaged)"
    if "full" in said:
        return "cannot be written: the disk is full"
    if "readonly" in said or "read-only" in said:
        return "cannot be written: it is read-only"
    if "locked" in said:
        return f"cannot be {act}: another process has held it for {_WRITE_TIMEOUT_S:.0f} s"
    return f"cannot be {act}: {said}"


@contextmanager
def _transaction(base: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[None]:
    base.execute(f"BEGIN {kind}")
    try:
        yield
    except BaseException:
        if base.in_transaction:  # a full disk has rolled it back already
            base.execute("ROLLBACK")
        raise
    base.execute("COMMIT")


# --- beside a session -------------------------------------------------------------------------------


class History:
    """Past boots for a session, and the session's boots for those to come (``run.Sampler``).

    Never raises: what goes wrong with the file is told once, and tracking goes on without.
    """

    interval_s = 2.0

    def __init__(self, log: str, warn: Callable[[str], None], store: Store | None = None) -> None:
        """Serve one session.

        Args:
            log: its name, kept with its boots.
            warn: takes the one line that tells what is wrong with the history.
            store: the file; the user's own where None.
        """
        self._log = log
        self._warn = warn
        self._store = store if store is not None else Store()
        self._readable = self._writable = True
        self._warned = False
        self._asked: BootKey | None = None
        self._first = True
        self._last: Snapshot | None = None
        self._over: tuple[int, float | None, Outcome] | None = None  # the boot whose end was seen last
        self._kept: set[tuple[str, str]] = set()  # (boot, outcome) that were written

    def sample(self, known: Snapshot, now_s: float) -> Priors | None:
        """Keep a boot that is over, and answer what is known of boots like the one that is shown."""
        last = self._last
        if last is not None and last.boot and last.boot != known.boot:
            self.remember(last, now_s)
        self._last = known
        state = known.boot, known.started_at_s, known.outcome
        if known.outcome not in {Outcome.NONE, Outcome.STARTING} and state != self._over:
            self._over = state  # a server is watched for days after its start
            self.remember(known, now_s)
        return self.recall(known)

    def recall(self, known: Snapshot) -> Priors | None:
        """Past boots like the shown one; None where they are known already."""
        from phasetrack.core.key import key_of
        from phasetrack.core.past import uid_of

        key = key_of(known)
        if not self._readable or (key == self._asked and not self._first):
            return None
        self._asked, self._first = key, False
        try:
            return self._store.priors(key, but={uid_of(known)})
        except HistoryError as fault:
            self._readable = self._writable = False
            self._tell(fault, "going on without it")
            return None

    def then(self, known: Snapshot, before_s: float) -> Priors | None:
        """Past boots like the shown one that were over by a time of its log; None where they cannot be read."""
        from phasetrack.core.key import key_of
        from phasetrack.core.past import uid_of

        if not self._readable:
            return None
        try:
            return self._store.priors(key_of(known), but={uid_of(known)}, before_s=before_s)
        except HistoryError as fault:
            self._readable = False
            self._tell(fault, "going on without it")
            return None

    def remember(self, known: Snapshot, now_s: float | None = None) -> None:
        """Keep a boot as far as it is known; calling it again with no more to tell writes nothing."""
        from phasetrack.core.past import remembered

        boot = remembered(known, self._log)
        if not self._writable or boot is None or (boot.uid, boot.past.outcome) in self._kept:
            return
        try:
            self._store.remember([boot], now_s=time.time() if now_s is None else now_s)
        except HistoryError as fault:
            self._writable = False
            self._tell(fault, "this start will not be remembered")
        else:
            self._kept.add((boot.uid, boot.past.outcome))

    def close(self, known: Snapshot) -> None:
        """Keep what was seen of a boot that is left while it starts: it lasts at least so long."""
        self.remember(known)

    def _tell(self, fault: HistoryError, so: str) -> None:
        if not self._warned:
            self._warn(f"history: {fault}; {so}")
        self._warned = True
