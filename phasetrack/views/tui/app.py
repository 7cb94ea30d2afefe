"""The app: Textual's terminal, event loop and compositor around a ``Desk``, and the thread that feeds it.

The thread begins only after the first picture stands (paint first, scan after), and hands over the newest
news; news that comes faster than it can be shown is never queued.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.message import Message

from phasetrack.core.model import Outcome
from phasetrack.errors import Exit
from phasetrack.views.tui.acts import Copy, Quit, Size, Steer
from phasetrack.views.tui.canvas import Canvas
from phasetrack.views.tui.desk import Desk
from phasetrack.views.tui.feed import News
from phasetrack.views.tui.look import ASCII, UNICODE

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events

    from phasetrack.views.tui.acts import Act
    from phasetrack.views.tui.feed import Feed, Options
    from phasetrack.views.tui.look import Line
    from phasetrack.views.tui.replay import Wish

# Writes that may wait for a slow terminal before pictures are left out.
_BACKLOG = 3
# How long the feed's thread may take to let go of its files when the screen is left.
_CLOSING_S = 1.0
_SIGNALS = {signal.SIGTERM: Exit.TERMINATED, signal.SIGHUP: Exit.HANGUP, signal.SIGINT: Exit.INTERRUPTED}
_ENDS = {Outcome.READY, Outcome.FAILED}
_LEAST = Size(20, 1)  # a terminal may say that it has no size at all


class Arrived(Message):
    """The feed has something."""


class Spool:
    """The feed's thread, and the one place where it leaves what it has."""

    def __init__(self, make_feed: Callable[[], Feed], desk: Desk, poke: Callable[[], None]) -> None:
        """Prepare; nothing is opened before ``start``."""
        self._make_feed = make_feed
        self._desk = desk
        self._poke = poke
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="phasetrack-feed", daemon=True)
        self._news: News | None = None
        self._feed: Feed | None = None
        self.fault: BaseException | None = None

    def start(self) -> None:
        """Open the log and begin to read."""
        self._thread.start()

    def take(self) -> News | None:
        """The newest news, once."""
        news, self._news = self._news, None
        return news

    def wish(self, wish: Wish) -> None:
        """Hand a wish to the feed, once there is one."""
        if self._feed is not None:
            self._feed.wish(wish)

    def close(self) -> None:
        """Let the thread end; it holds nothing that the process does not give back by itself."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_CLOSING_S)

    def _run(self) -> None:
        try:
            feed = self._feed = self._make_feed()
            try:
                self._desk.open_log(feed.pages, self._poke)
                self._follow(feed)
            finally:
                feed.close()
        except BaseException as fault:  # noqa: BLE001 - a thread's error reaches nobody by itself
            self.fault = fault
            self._poke()

    def _follow(self, feed: Feed) -> None:
        from phasetrack.views.tui.paging import Lines, tail

        lines, prepared = Lines(feed.pages), False
        while not self._stopping.is_set():
            if (known := feed.next()) is None:
                continue
            rows = self._desk.home.tail_rows
            size, text = feed.pages.size(), tail(lines, rows, feed.pinned)
            self._news = News(known, text, size, feed.unread_bytes, feed.notice, feed.replay, feed.pinned)
            self._poke()
            if not prepared:
                self._desk.prepare()
                prepared = True


class Screen(App[int]):
    """phasetrack's screen."""

    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { background: ansi_default; color: ansi_default; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("ctrl+q", "leave", show=False, priority=True),
        Binding("ctrl+z", "pause", show=False, priority=True),
    ]

    def __init__(self, make_feed: Callable[[], Feed], options: Options, driver: type[Driver] | None = None) -> None:
        """Prepare; nothing is read yet.

        Args:
            make_feed: opens the log; called in the feed's thread after the first picture.
            options: what the user asked for.
            driver: another than Textual would choose.
        """
        super().__init__(driver_class=driver, ansi_color=True)
        self.options = options
        self.fault: BaseException | None = None
        self.desk = Desk(ASCII if options.ascii else UNICODE, options.path)
        self.spool = Spool(make_feed, self.desk, self.poke)
        self.canvas = Canvas(colour=options.colour, clicked=self.clicked, dragged=self.copy)
        self.shown_title = ""

    # --- the app's life -----------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """One widget."""
        yield self.canvas

    def on_load(self) -> None:
        """Take signals before the terminal is taken."""
        if threading.current_thread() is threading.main_thread() and not self.is_headless:
            loop = asyncio.get_running_loop()
            for number, code in _SIGNALS.items():
                # The loop's own way leaves no handler at all behind when it closes: there a signal would be lost.
                signal.signal(number, partial(_wake, loop, self.leave, code))

    def on_mount(self) -> None:
        """Have something to show in the first picture already."""
        self.draw()

    def on_ready(self) -> None:
        """Begin to read when it stands."""
        self.call_after_refresh(self.spool.start)

    def leave(self, code: int) -> None:
        """End the screen with an exit code."""
        self.exit(code)

    def _handle_exception(self, error: Exception) -> None:
        """Leave with the error for the command to report; Textual would print its locals, log text among them."""
        if self.fault is None:
            self.fault = error
        if self.is_headless:
            super()._handle_exception(error)
        self._exit_renderables.clear()
        self._return_code = Exit.INTERNAL
        self._close_messages_no_wait()

    # --- the picture --------------------------------------------------------------------------------

    @property
    def cells(self) -> Size:
        """The screen's size, never nothing."""
        return Size(max(self.size.width, _LEAST.width), max(self.size.height, _LEAST.height))

    def poke(self) -> None:
        """Ask the event loop to look at the spool; callable from any thread."""
        self.post_message(Arrived())

    def on_arrived(self) -> None:
        """Show the newest news, unless the mouse selects or the terminal is behind."""
        if self.spool.fault is not None:
            self.fault = self.spool.fault
            self.leave(Exit.INTERNAL)
            return
        if (news := self.spool.take()) is not None:
            was, self.desk.news = self.desk.news, news
            if self.options.bell and _has_ended(was, news):
                self.bell()
        if not self.canvas.is_held and getattr(self._driver, "backlog", 0) <= _BACKLOG:
            self.draw()

    def draw(self) -> None:
        """Draw what stands on the desk."""
        self.canvas.show(self.desk.picture(self.cells))
        words = self.desk.title()
        if words != self.shown_title and self._driver is not None and not self.is_headless:
            self.shown_title = words
            self._driver.write(f"\x1b]2;{words}\x07")

    def on_resize(self, event: events.Resize) -> None:
        """Draw for another size."""
        del event
        self.draw()

    @on(Driver.SignalResume)
    def resumed(self) -> None:
        """Draw everything: what the shell wrote meanwhile stands where the picture was."""
        self.shown_title = ""
        self.screen.refresh()
        self.canvas.refresh()
        self.draw()

    # --- keys and mouse -----------------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        """Give a key to the desk."""
        character = event.character
        self.press(character if character is not None and character.isprintable() else event.key)

    def on_paste(self, event: events.Paste) -> None:
        """Take a pasted text where one is asked for."""
        self.desk.paste(event.text)
        self.draw()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll."""
        del event
        self.press("wheel_down")

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll."""
        del event
        self.press("wheel_up")

    def press(self, key: str) -> None:
        """Do what a key stands for."""
        self.act(self.desk.press(key, self.cells))

    def clicked(self, line: Line, key: str) -> None:
        """Do what a click stands for."""
        self.act(self.desk.click(line, key, self.cells))

    def act(self, act: Act | None) -> None:
        """Do what the desk cannot do, and draw."""
        match act:
            case Quit(code):
                self.leave(code)
            case Copy(text):
                self.copy(text)
            case Steer(wish):
                self.spool.wish(wish)
            case _:
                pass
        self.draw()

    def copy(self, text: str) -> None:
        """Copy by OSC 52: the terminal of the user, not of this machine, takes it."""
        if text:
            self.copy_to_clipboard(text)
            rows = text.count("\n") + 1
            self.desk.said = f"copied {len(text)} characters" + (f", {rows} lines" if rows > 1 else "")
            self.draw()

    def action_interrupt(self) -> None:
        """ctrl-c."""
        self.leave(Exit.INTERRUPTED)

    def action_leave(self) -> None:
        """ctrl-q."""
        self.leave(Exit.OK)

    def action_pause(self) -> None:
        """Send what the terminal would send at ctrl-z, to the whole job: the pipe's other end belongs to it."""
        if self._driver is not None and self._driver.can_suspend:
            os.killpg(os.getpgrp(), signal.SIGTSTP)


def _wake(loop: asyncio.AbstractEventLoop, act: Callable[[int], None], code: int, *_: object) -> None:
    """Act in the loop; when it has closed the screen is being left anyway."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(act, code)


def _has_ended(was: News, now: News) -> bool:
    """Whether a start that was watched has come to its end just now."""
    watched = not was.is_reading and not now.is_reading
    return watched and now.known.outcome in _ENDS and was.known.outcome is not now.known.outcome
