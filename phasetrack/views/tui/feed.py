"""What a screen is fed with. A live log, a pipe and a replay on a virtual clock all look like this.

The screen owns no clock and reads no file: a ``Feed`` says when there is news and knows the log's bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from phasetrack.core.model import Snapshot
    from phasetrack.views.tui.replay import Replay, Wish


class Pages(Protocol):
    """Random access to the bytes of a log, by offset in the stream that the tracker was fed with."""

    def begin(self) -> int:
        """The first byte that can still be had."""

    def size(self) -> int:
        """Bytes of the stream so far."""

    def read(self, offset: int, count: int) -> bytes:
        """Up to ``count`` bytes; fewer at the end, zeros where a byte is no longer to be had. Thread-safe."""


@dataclass(frozen=True, slots=True)
class News:
    """What there is to show at one moment."""

    known: Snapshot
    tail: tuple[str, ...] = ()  # the log's last lines as a terminal would show them, redacted; the newest last
    log_bytes: int = 0
    unread_bytes: int | None = None  # of what there was at the start; None once all of it has been read
    notice: str = ""  # about the source itself: missing, rotated, truncated
    replay: Replay | None = None  # of a replay, where it stands
    pinned: int | None = None  # an earlier boot was opened: where its text ends

    @property
    def is_reading(self) -> bool:
        """Whether the log has not been read to where it ends: what is known is then of its past."""
        return self.unread_bytes is not None


class Feed(Protocol):
    """Where news comes from. For one thread at a time, but for ``pages``."""

    @property
    def pages(self) -> Pages:
        """The log's bytes."""

    @property
    def unread_bytes(self) -> int | None:
        """What is left to read of what there was at the start; None once all of it was read."""

    @property
    def notice(self) -> str:
        """A line about the source itself, while it matters."""

    @property
    def replay(self) -> Replay | None:
        """Where a replay stands; None for what is live."""

    @property
    def pinned(self) -> int | None:
        """Where the text of an earlier boot ends that is shown because it was asked for; None: it is the latest."""

    def wish(self, wish: Wish) -> None:
        """Take a wish of the user; it is granted with the next picture. For any thread."""

    def next(self) -> Snapshot | None:
        """Answer all that is known where it is worth a new picture; None: ask again.

        Waits for news, no longer than a key may wait for the screen to be left, and paces: the screen draws
        each answer. About once a second there is one, since clocks tick.
        """

    def close(self) -> None:
        """Let go of files; nothing is asked afterwards."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked of the screen."""

    path: str  # the log's name, as given
    ascii: bool = False
    colour: bool = True
    bell: bool = False
    mouse: bool = True


@dataclass(frozen=True, slots=True)
class Left:
    """How the screen was left, for the command to tell in plain text."""

    exit_code: int
    news: News | None
    fault: BaseException | None = None  # ours or the feed's: the command tells users' errors from crashes
