"""A session as a screen wants it: news when something is worth a new picture, and the log's bytes beside it.

The pace is kept here, so that a screen needs no clock: never more pictures a second than were asked for,
however fast the log grows, and one a second while only the clocks tick.
"""

from __future__ import annotations

import os
import queue
import time
from typing import TYPE_CHECKING

from phasetrack.core.model import Chunk, Closed
from phasetrack.edges.follower import Follower
from phasetrack.edges.pages import LogPages
from phasetrack.run import Loop
from phasetrack.views.tui.replay import OpenBoot

if TYPE_CHECKING:
    from collections.abc import Callable

    from phasetrack.core.model import Gap, Snapshot
    from phasetrack.run import Session
    from phasetrack.views.tui.replay import Wish

# Pictures a second; over ssh each costs a round of the line.
HZ, SSH_HZ = 4.0, 2.0
_TICK_S = 1.0
# The longest wait at a time: leaving the screen waits for it.
_SLICE_S = 0.25
# How long a line about the source itself (rotated, truncated) stands on the screen.
_NOTICE_S = 20.0
# Bytes of an earlier boot that are read at a time.
_BLOCK_BYTES = 1 << 20


class Watch:
    """Feeds a screen from a live session (``views.tui.feed.Feed``). For one thread, but for ``pages``."""

    def __init__(self, open_session: Callable[..., Session], path: str, *, hz: float | None = None) -> None:
        """Open a log to be watched.

        Args:
            open_session: makes the session; called with its ``say`` and ``tap``.
            path: of the log, ``-`` for standard input.
            hz: pictures a second; None chooses by whether this is an ssh session.

        Raises:
            SourceError: the log is there but cannot be read.
        """
        self._period_s = 1.0 / (hz or (SSH_HZ if "SSH_CONNECTION" in os.environ else HZ))
        self._path = path
        self._notice = ""
        self._noticed_s = 0.0
        self._session: Session = open_session(say=self._say, tap=self._tap)
        self._loop = Loop([self._session], woken=False)  # a picture comes four times a second at most
        followed = isinstance(self._session.source, Follower)
        self.pages = LogPages(path if followed else None)
        if followed:
            self.pages.take(self._session.begins, self._session.begins)  # what stands before can be looked at
        self._drawn_s = 0.0
        self._moved = False
        self._shown: Snapshot | None = None  # the session's own look that is drawn
        self._wishes: queue.SimpleQueue[Wish] = queue.SimpleQueue()
        self._opened: Snapshot | None = None  # an earlier boot
        self.replay = None
        self.pinned: int | None = None

    def wish(self, wish: Wish) -> None:
        """Take a wish; of a live log only an earlier boot can be wished for."""
        self._wishes.put(wish)

    def next(self) -> Snapshot | None:
        """Take what is new; answer all that is known where it is worth a new picture, after a short wait at most."""
        while not self._wishes.empty():
            self._grant(self._wishes.get())
        session, size = self._session, self.pages.size()
        left_s = max(self._drawn_s + (self._period_s if self._moved else _TICK_S) - time.monotonic(), 0.0)
        if session.ended:
            time.sleep(min(left_s, _SLICE_S))
        else:
            [(_, records)] = self._loop.poll(min(left_s, _SLICE_S))
            self._moved |= bool(records) or self.pages.size() != size
        return self._picture(time.monotonic())

    def _picture(self, now: float) -> Snapshot | None:
        """What is worth drawing: news, not too often; else what the session itself looked at to judge it."""
        session = self._session
        since_s = now - self._drawn_s
        if self._moved or session.ended or since_s > 2 * _TICK_S:
            if since_s < (self._period_s if self._moved else _TICK_S):
                return None
            known = session.glance()
        else:
            latest = session.latest
            if latest is None or latest is self._shown:
                return None
            known = latest
        self._drawn_s, self._moved, self._shown = now, False, session.latest
        return known if self._opened is None else self._opened

    def _grant(self, wish: Wish) -> None:
        if isinstance(wish, OpenBoot):
            known = self._session.snapshot()
            self._opened = self.pinned = None
            if wish.boot is not None and wish.boot != known.boot:
                after = [one.offset for one in known.boots if one.boot > wish.boot]
                self._opened, self.pinned = self._read_again(wish.boot), min(after, default=self.pages.size())
            self._moved, self._drawn_s = True, 0.0

    def _read_again(self, boot: int) -> Snapshot:
        """An earlier boot as it was in the end. Of a boot that is over, only summaries are kept."""
        tracker, at = self._session.another(boot), self._session.begins
        while data := self.pages.read(at, _BLOCK_BYTES):
            tracker.feed(Chunk(data))
            at += len(data)
        tracker.feed(Closed())
        return tracker.snapshot()

    @property
    def unread_bytes(self) -> int | None:
        """What is left to read of what stood there at the start; None once all of it was read, 0 where unknown."""
        if self._session.caught_up or self._session.ended:
            return None
        try:
            return max(os.stat(self._path).st_size - self.pages.size(), 0)  # noqa: PTH116
        except OSError:
            return 0

    @property
    def notice(self) -> str:
        """The newest line about the source itself, for a while; and that an earlier boot is shown."""
        if self._opened is not None:
            return "an earlier boot of this file: esc goes back to the latest"
        waiting = not self.pages.size()
        return self._notice if waiting or time.monotonic() < self._noticed_s + _NOTICE_S else ""

    def close(self) -> None:
        """Let the log go."""
        self._session.close()
        self._loop.close()
        self.pages.close()

    def _say(self, what: str) -> None:
        """Take a line about the source; whose it is stands on the screen already."""
        self._notice = what.removeprefix(f"{self._path}: ")
        self._noticed_s = time.monotonic()

    def _tap(self, item: Chunk | Gap) -> None:
        """Keep what the pager will ask for."""
        source = self._session.source
        if not self.pages.size() and self._session.begins:
            self.pages.take(self._session.begins, self._session.begins)  # not read, but there to be looked at
        position = source.position if isinstance(source, Follower) else None
        self.pages.take(item.data if isinstance(item, Chunk) else item.bytes, position)
