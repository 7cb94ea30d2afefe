"""``phasetrack run``: a server started, followed like any other log, and its end passed on.

Signals that we are sent go to the server, once each, and we wait for it to end; our exit code is then the one that a
shell would give us for that signal. Where the server ends by itself, its own exit code is ours; a server that ends
with 0 without ever having been ready gives 5: nothing more will come.
"""

from __future__ import annotations

import os
import shlex
import signal
import time
from typing import TYPE_CHECKING, Any

from phasetrack.beside import samplers
from phasetrack.core.model import Chunk, EvidenceSample, Outcome, ProbeResult
from phasetrack.edges.command import Command, log_name
from phasetrack.edges.outlet import refuse_same
from phasetrack.edges.recorded import Recorder, beside
from phasetrack.edges.sampler import EvidenceSampler
from phasetrack.errors import Exit
from phasetrack.run import Session, Teller
from phasetrack.views.status import status_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import FrameType

    from phasetrack.beside import Look
    from phasetrack.core.model import Gap, Input, PatternSet, Record, Snapshot
    from phasetrack.edges.history import History
    from phasetrack.run import Sampler
    from phasetrack.views.tui.feed import Left

# After these a program is expected to end; the others are passed on all the same.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PASSED_ON = (*ENDING, signal.SIGUSR1, signal.SIGUSR2)

# The longest that the end of the server goes unnoticed.
_LOOK_S = 0.2


class Launch:
    """One server, from its start to our end."""

    def __init__(
        self,
        arguments: Sequence[str],
        log: Path | None,
        patterns: PatternSet,
        look: Look,
        *,
        say: Callable[[str], None],
        record: Path | None = None,
        copy: Callable[[bytes], None] | None = None,
    ) -> None:
        """Start it.

        Args:
            arguments: its command line.
            log: where its output goes; a name is made where None.
            patterns: all packs, merged.
            look: what to look at beside the log.
            say: takes one line for the user.
            record: where to write an asciicast; evidence goes beside it.
            copy: takes the log's bytes as they come.

        Raises:
            UsageError: the log or the recording cannot be written, there is no such command, or the URL is none.
        """
        self.log = log if log is not None else log_name(time.strftime("%Y%m%d-%H%M%S"))
        self._patterns = patterns
        self._say = say
        self._known: Snapshot | None = None
        self._copy = copy
        self._samplers: list[Sampler] = [s for s in samplers(str(self.log), look) if not isinstance(s, EvidenceSampler)]
        self._recorder = None
        if record is not None:
            refuse_same(record, beside(str(record)), self.log)
            self._recorder = Recorder(str(record), began_s=time.time(), command=shlex.join(arguments), say=say)
        self.command = Command(arguments, self.log)
        pass_signals_on(self.command)
        self._evidence = None
        if not look.log_only:
            self._evidence = EvidenceSampler(str(self.log), pid=self.command.pid, exit_code=self.command.poll)
            self._samplers.insert(0, self._evidence)
        say(f"log: {self.log} (pid {self.command.pid})")

    # --- following ----------------------------------------------------------------------------------

    def plain(self, history: History | None, out: Callable[[str], None], *, plain: bool) -> None:
        """Tell the start in lines until the server has ended."""
        session = self._session(history, say=self._say)
        teller = Teller(session, self._patterns, out, plain=plain)
        while self.command.poll() is None:
            teller.tell(session.poll(min(teller.due_s(), _LOOK_S)))
        teller.tell(self._end(session))
        self._close(session)
        if self._known is not None:
            out(status_line(self._known, plain=plain))

    def screen(
        self,
        history: Callable[..., History | None],
        show: Callable[[Callable[..., Session]], Left],
        ask: Callable[[str], str],
    ) -> None:
        """Show the screen; when it is left while the server lives, ask what is to become of the server."""

        def open_session(warn: Callable[[str], None], **more: Callable[..., None]) -> Session:
            if self.command.signalled in ENDING:  # it came when the screen did not take signals yet
                os.kill(os.getpid(), self.command.signalled)
            return self._session(history(warn=warn), **more)

        left = show(open_session)
        pass_signals_on(self.command)  # the screen had them
        self._known = None if left.news is None else left.news.known
        if left.exit_code > 128 and self.command.signalled not in ENDING:
            self.command.pass_on(left.exit_code - 128)
        elif self.command.poll() is None:
            part(self.command, ask, self._say)
        if self.command.signalled in ENDING:
            while self.command.poll() is None:
                time.sleep(_LOOK_S)
        self._finish_recording()

    def exit_code(self) -> int:
        """Our own, once the server has ended or was left running."""
        return passed_on(self.command.poll(), self.command.signalled, self._known)

    def _session(self, history: History | None, **more: Any) -> Session:
        """A session that begins where the server's own output does."""
        tap = more.pop("tap", None)

        def take(item: Chunk | Gap) -> None:
            if tap is not None:
                tap(item)
            if isinstance(item, Chunk):
                self._take(item)

        lookers = [Noting(s, self._recorder) for s in self._samplers] if self._recorder is not None else self._samplers
        at = self.command.began_at
        return Session(self._patterns, str(self.log), samplers=lookers, history=history, tap=take, position=at, **more)

    def _take(self, chunk: Chunk) -> None:
        if self._recorder is not None:
            self._recorder.output(chunk.data, chunk.arrived_s if chunk.arrived_s is not None else time.time())
        if self._copy is not None:
            self._copy(chunk.data)

    def _end(self, session: Session) -> list[Record]:
        """The server has ended: read its last lines, and look once more at what it left."""
        last = None if self._evidence is None else self._evidence.sample(session.snapshot(), time.time())
        if last is not None and self._recorder is not None:
            self._recorder.seen(last)
        return session.finish(f"the server has ended (exit code {self.command.poll()})", last)

    def _close(self, session: Session) -> None:
        self._known = session.snapshot()
        session.close()
        self._finish_recording()

    def _finish_recording(self) -> None:
        if self._recorder is not None:
            self._recorder.close()
        if self._evidence is not None:
            self._evidence.close()


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


def part(command: Command, ask: Callable[[str], str], say: Callable[[str], None]) -> None:
    """The viewer was left while the server lives: ask whether to leave it running or to stop it.

    Args:
        command: the server.
        ask: prints a question and answers a line; an empty one where there is nobody to ask.
        say: takes one line.
    """
    question = f"The server (pid {command.pid}) still runs: [d]etach or [s]top it? [d] "
    while command.poll() is None:
        answer = ask(question).strip().lower()[:1]
        if answer in {"d", ""}:
            say(f"left running as pid {command.pid}; watch it again with: phasetrack tail {command.log}")
            return
        if answer == "s":
            say(f"stopping pid {command.pid}")
            command.stop()
            return


def passed_on(code: int | None, signalled: int | None, known: Snapshot | None) -> int:
    """Our exit code.

    Args:
        code: the server's own, negative for a signal; None where it lives on.
        signalled: the first signal that we were sent and passed on.
        known: what was known of its start at the end.
    """
    if signalled in ENDING:
        return 128 + (signalled or 0)
    if code is None:
        return Exit.OK
    if code:
        return code if code > 0 else 128 - code
    was_ready = known is not None and (known.ready_offset is not None or known.outcome is Outcome.READY)
    return Exit.OK if was_ready else Exit.OVER
