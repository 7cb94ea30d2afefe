"""Failing records to the first cause of a boot: what failed, why, what only followed from it.

Rules:

1. *The kind* of a failure is that of the first exception in its chain that any rule knows, so that the root wins
   over what wrapped it; one that usually follows from another failure gives way to any other. A record whose
   exceptions nobody knows is of the kind of its first line, or of a *clue* that came with it.
2. *The first cause* is the earliest in time, then in position. A *secondary* one (a peer that closed, a barrier, a
   worker that vanished) gives way to one that stands up to half a minute later: which rank writes first is chance.
3. *Echoes* (sigquit, exit codes, ``Killed``) are no causes. Where nothing else was printed, a fatal one stands for
   the cause until something better comes.
4. What says the same on other ranks is counted; what says something else is folded under the cause.
5. A *hang* that the log itself tells of makes the boot stuck; once an echo says that the process goes, it is the
   cause.
6. A failure told only by an uncaught traceback is taken back if the start goes on. ``KeyboardInterrupt`` is none:
   somebody stopped the server.
7. An uncaught traceback from outside the engine's code (a launch script's) is *stray*: the cause only once nothing
   more will come, or an echo says that the process went. A client that could not connect is none.
"""

from __future__ import annotations

import re
from collections import ChainMap
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from phasetrack.core.advice import advise, derived
from phasetrack.core.failing import Failing, FailingRecord
from phasetrack.core.model import Basis, Failure, Outcome, Warned, Where
from phasetrack.core.raised import exception_class
from phasetrack.core.state import LOADS, Boot, Clue, axes, rank_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from phasetrack.core.model import Event, PatternSet, Rule, Value

    Tellings: TypeAlias = list[tuple[str, dict[str, Value]]]
    Kind: TypeAlias = tuple[Rule, Mapping[str, Value]]

# Of failures as many as ranks in the largest launches, of others what anybody reads.
_KEPT = {True: 512, False: 64}
_CLUES_KEPT, _ECHOES_KEPT = 32, 12
_ECHO_LIMIT = 160
# Stamps have whole seconds, and ranks and the main process write when they get to it.
_GIVES_WAY_S = 30.0
# A compiler's error or a time-out this long before a failure explains it.
_CLUE_S = 60.0
_CLUE_BYTES = 64 * 1024  # where no clock tells
_REASON_BYTES = 4 * 1024  # several ranks say so at once
_TAGS_KEPT = 256  # a hostile log could name as many writers as it has lines
_STRAY = "The log ends with an exception outside the engine's own code, and nothing follows it."
_DIGITS = re.compile(r"\d+")


class Blame:
    """The records that are open, and what to tell of them. Boots are the machine's; only their failures change here."""

    def __init__(self, patterns: PatternSet, kind_of: Callable[[str, str], Kind | None]) -> None:
        """Take the patterns, and the lookup of a failure's kind: exception line, engine -> rule and its groups."""
        self._patterns = patterns
        self._kind_of = kind_of
        self._failing: dict[tuple[str, str], Failing] = {}
        self._soft: set[int] = set()  # boots whose failure may be taken back
        self._stray: tuple[str, FailingRecord] | None = None  # its server
        self._vague_lines = {rule.id for rule in patterns.rules if rule.vague and rule.where is Where.LINE}
        # echoes that do not even hold an exit code
        self._plain_echoes = {rule.id for rule in patterns.rules if rule.where is Where.ECHO and not rule.cases}

    @property
    def is_failing(self) -> bool:
        """Whether a failing record is open, of any server: its lines are not complete."""
        return any(failing.is_open for failing in self._failing.values())

    def _failing_of(self, event: Event) -> Failing:
        key = event.prefix.server, event.prefix.process
        failing = self._failing.get(key)
        if failing is None:
            if len(self._failing) >= _TAGS_KEPT:
                closed = (key for key, other in self._failing.items() if not other.is_open)
                del self._failing[next(closed, next(iter(self._failing)))]
            failing = self._failing[key] = Failing(self._patterns.packages)
        return failing

    def stamped(self, event: Event) -> None:
        """Take notice of a stamped line: it ends records."""
        self._failing_of(event).stamped(event.prefix.rank)

    def text(self, event: Event, at_s: float | None) -> list[FailingRecord]:
        """Take an untimed line; answer the records that it has made or kept certain."""
        records = self._failing_of(event).text(event, at_s)
        stray = next((record for record in records if record.is_stray), None)
        if stray is not None and self._stray is None:
            self._stray = event.prefix.server, stray
        return [record for record in records if record.is_certain]

    def forget(self, tag: str, boot: Boot) -> None:
        """Another boot of the same server has begun."""
        self._soft.discard(boot.number)
        self._stray = None
        self._failing = {key: failing for key, failing in self._failing.items() if key[0] != tag}

    # --- what happened ------------------------------------------------------------------------------

    def fail(self, boot: Boot, event: Event, rule: Rule, at_s: float | None) -> Tellings:
        """Take a line of a failure rule."""
        if boot.outcome is Outcome.STOPPED:
            return []
        if rule.where is Where.CLUE:
            return self._clue(boot, event, rule, at_s)
        if rule.where is Where.ECHO:
            return self._echo(boot, event, rule, at_s)
        if rule.generic and rule.phase == "bootstrap" and boot.ready is not None:
            return []  # another program of the same terminal: a server that serves has started
        return self._told(boot, self._failing_of(event).begin(event, at_s), rule)

    def raised(self, boot: Boot, record: FailingRecord) -> Tellings:
        """Take an exception that ends a record's traceback, or one of its chain."""
        if record.rule is None:
            self._soft.add(boot.number)
        return self._told(boot, record, record.rule)

    def interrupted(self, boot: Boot, record: FailingRecord) -> bool:
        """Whether a record only says that somebody stopped the server; then it was no failure after all."""
        if exception_class(record.message) != "KeyboardInterrupt":
            return False
        boot.failures = [failure for failure in boot.failures if failure.place != record.place]
        if boot.outcome is Outcome.FAILED and first_cause(boot) is None:
            boot.outcome = Outcome.STARTING if boot.ready is None else Outcome.READY
        return True

    def revoke(self, boot: Boot) -> Tellings:
        """The start goes on: the uncaught traceback was another process's."""
        self._stray = None
        if boot.number not in self._soft or boot.outcome is not Outcome.FAILED:
            return []
        self._soft.discard(boot.number)
        boot.outcome = Outcome.READY if boot.ready is not None else Outcome.STARTING
        for failure in boot.failures:
            key = f"survived.{failure.id}"
            boot.warnings[key] = Warned(key, failure.message, failure.place.line)
        boot.failures.clear()
        return [("outcome", {"outcome": str(boot.outcome)})]

    def _clue(self, boot: Boot, event: Event, rule: Rule, at_s: float | None) -> Tellings:
        stamped_s = None if event.continued else at_s  # an untimed line may stand long after the stamp before it
        clue = Clue(rule, event.text[:_ECHO_LIMIT], event.prefix.rank, stamped_s, event.place, event.fields)
        boot.clues = [*boot.clues[1 - _CLUES_KEPT :], clue]
        vague = [failure for failure in boot.failures if self._is_explained(failure, event)]
        if vague:
            cause, remedy = advise(rule, event.fields, vague[0].phase)
            told = [replace(failure, id=rule.id, cause=cause, remedy=remedy, clue=clue.text) for failure in vague]
            return [said for failure in told for said in self._keep(boot, failure)]
        records = self.text(event, at_s) if event.continued else []
        return [told for record in records for told in self._told(boot, record, record.rule)]

    def _is_explained(self, failure: Failure, event: Event) -> bool:
        """Whether an untimed line stands close enough below one that says little to be its reason."""
        near = event.place.offset - failure.place.offset <= _REASON_BYTES
        return event.continued and near and failure.id in self._vague_lines

    def _echo(self, boot: Boot, event: Event, rule: Rule, at_s: float | None) -> Tellings:
        said: Tellings = []
        if first_cause(boot) is None and boot.stuck is not None and rule.fatal:
            said = self._keep(boot, replace(boot.stuck, fatal=True))
        stray = self._stray_of(boot)
        if first_cause(boot) is None and stray is not None and rule.fatal:
            said = self._keep(boot, self._failure_of_stray(boot, stray))
        cause, text = first_cause(boot), event.text[:_ECHO_LIMIT]
        if cause is None:
            if rule.fatal:
                return self._told(boot, self._failing_of(event).begin(event, at_s), rule)
            return self._last_words(boot, event, rule, text)
        if cause.message != text and text not in boot.echoes and len(boot.echoes) < _ECHOES_KEPT:
            boot.echoes.append(text)
        if rule.cases and cause.id in self._plain_echoes:
            return self._better_echo(boot, cause, event, rule, at_s)
        return said

    def _better_echo(self, boot: Boot, cause: Failure, event: Event, rule: Rule, at_s: float | None) -> Tellings:
        """An exit code says more than that a process has gone."""
        boot.failures = [failure for failure in boot.failures if failure.place != cause.place]
        self._told(boot, self._failing_of(event).begin(event, at_s), rule)
        told = boot.failures.pop()
        message = f"{cause.message} {told.message}"
        return self._keep(
            boot,
            replace(
                told, place=cause.place, at_s=cause.at_s, phase=cause.phase, rank=cause.rank, message=message,
                lines=(*cause.lines, *told.lines),
            ),
        )  # fmt: skip

    def _last_words(self, boot: Boot, event: Event, rule: Rule, text: str) -> Tellings:
        """A process has gone without tidying up: no failure by itself, but perhaps all that a kill leaves."""
        if boot.stuck is not None or boot.ready is not None or boot.is_over or rule.id in boot.warnings:
            return []
        boot.warnings[rule.id] = Warned(rule.id, text, event.place.line)
        return [("warning", {"id": rule.id, "message": text})]

    # --- what to tell -------------------------------------------------------------------------------

    def last_words(self, boot: Boot | None) -> Failure | None:
        """An uncaught exception from outside the engine with which the log ends; None where it does not."""
        if boot is None:
            stray = None if self._stray is None else self._stray[1]
            return None if stray is None else self._failure_of_stray(Boot(0, "", stray.place, ""), stray)
        stray = self._stray_of(boot)
        return None if stray is None else self._failure_of_stray(boot, stray)

    def _stray_of(self, boot: Boot) -> FailingRecord | None:
        if self._stray is None or boot.ready is not None or boot.is_over:
            return None
        server, record = self._stray
        fits = server == boot.server and record.place.offset >= boot.begin.offset
        return record if fits and record.is_stray else None

    def _failure_of_stray(self, boot: Boot, record: FailingRecord) -> Failure:
        failure = self._failure(boot, record, None)
        kind = next((rule for rule in self._patterns.rules if rule.id == failure.id), None)
        if kind is not None and kind.generic:
            return failure
        return replace(failure, id="uncaught", cause=_STRAY, remedy="Read its last line and the frames above it.")

    def _told(self, boot: Boot, record: FailingRecord, rule: Rule | None) -> Tellings:
        if not record.is_terse:
            boot.terse.pop(record.place, None)
        elif len(boot.terse) < _KEPT[False]:
            boot.terse[record.place] = record
        failure = self._failure(boot, record, rule)
        if rule is not None and rule.hang and not rule.fatal:
            return self._hang(boot, failure)
        return self._keep(boot, failure)

    def _failure(self, boot: Boot, record: FailingRecord, rule: Rule | None) -> Failure:
        clue = _clue_of(boot, record)
        kind, fields = self._kind(boot, record, rule, clue)
        rank = record.rank or _dead_rank(boot, fields)
        phase = _phase_at(boot, rank)
        cause, remedy = "", ""
        if kind is not None:
            values = _values(boot, record, clue, self._title(phase), fields)
            cause, remedy = advise(kind, values, _doing(boot, rank, phase))
        return Failure(
            id=kind.id if kind is not None else "uncaught",
            fatal=rule is None or rule.fatal,
            phase=phase,
            rank=rank or None,
            place=record.place,
            at_s=record.at_s,
            message=record.message,
            cause=cause,
            remedy=remedy,
            lines=record.first_lines,
            after_ready=boot.ready is not None,
            secondary=kind is not None and (kind.secondary or kind.where is Where.ECHO),
            mixed=record.mixed,
            clue="" if clue is None or clue.text in record.message else clue.text,
        )

    def _kind(
        self, boot: Boot, record: FailingRecord, rule: Rule | None, clue: Clue | None
    ) -> tuple[Rule | None, Mapping[str, Value]]:
        known = [kind for text in record.exceptions if (kind := self._kind_of(text, boot.engine)) is not None]
        telling = [kind for kind in known if not kind[0].vague]
        primary = [kind for kind in telling if not kind[0].secondary]
        if telling:
            return primary[0] if primary else telling[-1]
        if clue is not None and (rule is None or rule.where is Where.RECORD or rule.id in self._plain_echoes):
            return clue.rule, clue.fields
        return known[0] if known else (rule, record.fields)

    def _title(self, phase: str | None) -> str:
        info = self._patterns.phases.get(phase or "")
        return "" if info is None else info.title

    def _keep(self, boot: Boot, failure: Failure) -> Tellings:
        before = first_cause(boot)
        k = next((k for k, old in enumerate(boot.failures) if old.place == failure.place), None)
        old = None if k is None else boot.failures[k]
        if k is not None and old is not None:
            boot.failures[k] = failure = replace(failure, phase=old.phase, after_ready=old.after_ready)
        elif sum(other.fatal is failure.fatal for other in boot.failures) < _KEPT[failure.fatal]:
            boot.failures.append(failure)
        if not failure.fatal:
            return [] if old is not None and old.message == failure.message else [_said(failure)]
        cause = first_cause(boot) or failure
        if boot.outcome is not Outcome.FAILED:
            boot.outcome = Outcome.FAILED
            return [_said(cause), ("outcome", {"outcome": str(boot.outcome)})]
        changed = before is None or (before.place, before.message, before.id) != (cause.place, cause.message, cause.id)
        return [_said(cause)] if changed else []

    def _hang(self, boot: Boot, failure: Failure) -> Tellings:
        """A watchdog's text: stuck, and failed once the process goes."""
        if boot.stuck is not None:
            return []
        boot.stuck = failure
        return [_said(failure)]


def _said(failure: Failure) -> tuple[str, dict[str, Value]]:
    return "failure", {
        "id": failure.id, "fatal": failure.fatal, "rank": failure.rank, "phase": failure.phase,
        "message": failure.message, "begin_line": failure.place.line,
    }  # fmt: skip


def _dead_rank(boot: Boot, fields: Mapping[str, Value]) -> str:
    """The rank of which a parent says that it died, as the log's own lines call it."""
    number = str(fields.get("dead_rank", ""))
    ranks = [rank for rank in boot.ranks if number and str(axes(rank).get("TP", "")) == number]
    return ranks[0] if len(ranks) == 1 else ""


def _doing(boot: Boot, rank: str, phase: str | None) -> str | None:
    """The phase whose advice fits: once a rank's weights are there, it makes room for the cache."""
    state = boot.ranks.get(rank)
    last = None if state is None else state.last
    loaded = last is not None and last.phase in LOADS and not last.is_open and last.end_basis is Basis.LOGGED
    return "kv_cache" if loaded and phase in LOADS else phase


def _phase_at(boot: Boot, rank: str) -> str | None:
    if boot.ready is not None:
        return "serving" if boot.serving else "ready"
    state = boot.ranks.get(rank) if rank else None
    if state is not None and state.last is not None and state.last.is_open:
        return state.last.phase
    return boot.phase


def _clue_of(boot: Boot, record: FailingRecord) -> Clue | None:
    """The newest clue that came with a record or soon before it, and not from another rank."""
    for clue in reversed(boot.clues):
        theirs, ours = axes(clue.rank), axes(record.rank)
        apart = any(theirs.get(axis, number) != number for axis, number in ours.items())
        if clue.rule.where is Where.CLUE and not apart and not _is_far(clue, record):
            return clue
    return None


def _is_far(clue: Clue, record: FailingRecord) -> bool:
    if clue.at_s is not None and record.at_s is not None:
        return abs(record.at_s - clue.at_s) > _CLUE_S
    return abs(record.place.offset - clue.place.offset) > _CLUE_BYTES


def _values(
    boot: Boot, record: FailingRecord, clue: Clue | None, title: str, fields: Mapping[str, Value]
) -> Mapping[str, Value]:
    """All that advice may name."""
    frame = record.frame
    of_record: dict[str, Value] = {
        "exception": record.exceptions[0] if record.exceptions else None,
        "frame": record.place_words or None,
        "path": None if frame is None else frame.path,
        "source": record.source or None,
        "phase": title or None,
        "rank": record.rank or None,
        "clue": None if clue is None else clue.text,
    }
    facts = {name: value for name, (_, value) in boot.facts.items()}
    known = ChainMap(facts, boot.args)
    return ChainMap(dict(fields), of_record, facts, dict(derived(known)), boot.args)


# --- the first cause --------------------------------------------------------------------------------


def first_cause(boot: Boot) -> Failure | None:
    """The earliest fatal failure; a secondary one gives way to another that stands little later."""
    fatal = [failure for failure in boot.failures if failure.fatal]
    first = min(fatal, key=_order, default=None)
    if first is None or not first.secondary:
        return first
    until = _order(first)[0] + _GIVES_WAY_S
    others = [failure for failure in fatal if not failure.secondary and (failure.at_s is None or failure.at_s <= until)]
    return min(others, key=_order, default=first)


def _order(failure: Failure) -> tuple[float, int]:
    return (failure.at_s if failure.at_s is not None else float("inf"), failure.place.offset)


def whole_cause(boot: Boot) -> Failure | None:
    """The first cause with all that belongs to it: who said the same, and what followed.

    Where nothing was fatal, the log's word that it hangs, or what went wrong before ready.
    """
    cause = first_cause(boot)
    if cause is None:
        return boot.stuck or next((failure for failure in boot.failures if not failure.after_ready), None)
    fatal = [failure for failure in boot.failures if failure.fatal]
    same = [failure for failure in fatal if _says_the_same(failure, cause)]
    others = [failure for failure in fatal if failure not in same]
    ranks = {failure.rank for failure in same if failure.rank}
    told = cause if cause.clue else next((failure for failure in same if failure.clue), cause)  # by any rank
    return replace(
        _with_place(boot, cause),
        cause=told.cause,
        remedy=told.remedy,
        clue=told.clue,
        ranks=tuple(sorted(ranks, key=rank_key)),
        repeats=len(same),
        mixed=cause.mixed and any(failure.mixed for failure in others),
        echoes=(*_folded(others), *(echo for echo in boot.echoes if echo not in cause.message)),
    )


def _with_place(boot: Boot, cause: Failure) -> Failure:
    """A failure of which no text tells, with the place where it stands in the code."""
    record = boot.terse.get(cause.place)
    if record is None or not record.place_words:
        return cause
    return replace(cause, message=f"{cause.message}, in {record.place_words}", lines=record.first_lines)


def _says_the_same(failure: Failure, cause: Failure) -> bool:
    if failure.id != cause.id:
        return False
    return exception_class(failure.message) != "" or _blank(failure.message) == _blank(cause.message)


def _folded(failures: list[Failure]) -> list[str]:
    """What other ranks said after the first cause, each text once, with the ranks that said it."""
    by_text: dict[str, list[Failure]] = {}
    for failure in sorted(failures, key=_order):
        by_text.setdefault(_blank(failure.message), []).append(failure)
    said = []
    for group in list(by_text.values())[:_ECHOES_KEPT]:
        ranks = sorted({failure.rank for failure in group if failure.rank}, key=rank_key)
        who = ", ".join(ranks[:4]) + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")
        said.append((f"{who}: " if who else "") + group[0].message[:_ECHO_LIMIT])
    return said


def _blank(text: str) -> str:
    return _DIGITS.sub("0", text[:_ECHO_LIMIT])
