"""``phasetrack run``: a server started, followed like any other log, and its end passed on.

Signals that we are sent go to the server, once each, and we wait for it to end; our exit code is then the one that a
shell would give us for that signal. Where the server ends by itself, its own exit code is ours; a server that ends
with 0 without ever having been ready gives 5: nothing more will come.
"""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING

from phasetrack.core.model import Chunk, EvidenceSample, Outcome, ProbeResult
from phasetrack.errors import Exit

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from phasetrack.core.model import Gap, Input, Record, Snapshot
    from phasetrack.edges.command import Command
    from phasetrack.edges.recorded import Recorder
    from phasetrack.run import Sampler, Session, Teller

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)

# After these a program is expected to end.
ENDING = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}

# The longest that the end of the server goes unnoticed.
_LOOK_S = 0.2


class Taps:
    """What becomes of the log's bytes beside being followed: a recording, a copy to our stdout."""

    def __init__(self, recorder: Recorder | None, *, passthrough: bool) -> None:
        """Take a recorder, and whether to copy."""
        self._recorder = recorder
        self._passthrough = passthrough

    def __call__(self, item: Chunk | Gap) -> None:
        """Take a piece of the log as it is fed."""
        if not isinstance(item, Chunk):
            return
        if self._recorder is not None:
            self._recorder.output(item.data, item.arrived_s if item.arrived_s is not None else time.time())
        if self._passthrough:
            sys.stdout.buffer.write(item.data)
            sys.stdout.buffer.flush()


class Noting:
    """A sampler whose findings are recorded too."""

    def __init__(self, sampler: Sampler, recorder: Recorder) -> None:
        """Stand before a sampler."""
        self._sampler = sampler
        self._recorder = recorder

    @property
    def interval_s(self) -> float:
        """The sampler's own pace."""
        return self._sampler.interval_s

    def sample(self, known: Snapshot, now_s: float) -> Input | None:
        """Ask it, and write down what it answers."""
        found = self._sampler.sample(known, now_s)
        if isinstance(found, EvidenceSample | ProbeResult):
            self._recorder.seen(found)
        return found


def pass_signals_on(command: Command) -> None:
    """From now on what we are sent goes to the server. What we were started to ignore stays ignored."""

    def receive(number: int, frame: FrameType | None) -> None:
        del frame
        command.pass_on(number)

    for number in PASSED_ON:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, receive)


def end(command: Command, session: Session, sampler: Sampler | None) -> list[Record]:
    """The server has ended: read its last lines, and look once more at what it left."""
    last = None if sampler is None else sampler.sample(session.snapshot(), time.time())
    code = command.poll()
    return session.finish(f"the server has ended (exit code {code})", last)


def exit_code(command: Command, known: Snapshot) -> int:
    """Our own exit code once the server has ended, or was left running."""
    if command.signalled in ENDING:
        return 128 + (command.signalled or 0)
    code = command.poll()
    if code is None:
        return Exit.OK
    if code:
        return code if code > 0 else 128 - code
    was_ready = known.ready_at_s is not None or known.ready_line is not None or known.outcome is Outcome.READY
    return Exit.OK if was_ready else Exit.OVER


def follow(command: Command, teller: Teller, sampler: Sampler | None) -> Snapshot:
    """Tell the start in plain lines until the server has ended; answer what is known then."""
    session = teller.session
    while command.poll() is None:
        teller.tell(session.poll(min(teller.due_s(), _LOOK_S)))
    teller.tell(end(command, session, sampler))
    return session.snapshot()


def part(command: Command, ask: Callable[[str], str], say: Callable[[str], None]) -> None:
    """The viewer was left while the server lives: ask whether to leave it running or to stop it.

    Args:
        command: the server.
        ask: prints a question and answers a line; an empty one where there is nobody to ask.
        say: takes one line.
    """
    question = f"The server (pid {command.pid}) is running. [d]etach and leave it running, or [s]top it? "
    while command.poll() is None:
        answer = ask(question).strip().lower()[:1]
        if answer in {"d", ""}:
            say(f"left running as pid {command.pid}; watch it again with: phasetrack tail {command.log}")
            return
        if answer == "s":
            say(f"stopping pid {command.pid}")
            command.stop()
            return
