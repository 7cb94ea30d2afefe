"""State × Event → State: everything that changes what is known of a boot.

Rules, in the order in which they bite (``DESIGN.md`` §4; the source of each is ``knowledge/sglang.md``):

1.  *Whose line?* A tag of a wrapper, container or actor keys the boot. A harness's own line belongs to none.
2.  *A boot begins* at ``server_args``, or, where the boot before is over, at a begin that its rank has already
    passed, never with an earlier stamp. Stray lines of other ranks belong to the old boot. A second
    ``server_args`` of the same cluster with another node rank joins its boot.
3.  *Target or draft* is counted per rank: the first load is the target's, later ones are the draft's; the same
    for KV pools. Graphs are told by their words; where the words are the same (0.4.2, 0.4.3), a capture after
    the draft's load is the draft's. A second distributed init of a rank opens its draft load.
4.  *A rank's next begin* closes its open span, inferred. A printed end that comes later still extends it.
5.  *HTTP up* proves that every rank has finished; *ready* closes the rest.
6.  *A bar* belongs to the load or capture that is open on a rank which draws bars. Bars alone, where the log
    level hides all else, open their phase as a hint. Those that other programs draw too are held until another
    line shows that an engine wrote them; arguments show that they were of something before.
7.  *Ready* counts once, and not after SIGTERM or a failure.
8.  *A failure* ends a boot, an uncaught traceback only if the start does not go on; which of many is the first
    cause is told in ``blame``.
9.  Only ``heard_s`` is monotone. A span that would end before it began has length 0 and is counted as odd.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from phasetrack.core import plan, tracks
from phasetrack.core.blame import Blame, first_cause
from phasetrack.core.clock import native_s
from phasetrack.core.model import Basis, BootSummary, Outcome, Record, Role, Warned, Where
from phasetrack.core.quotes import Quotes, Said, tells_of_an_end
from phasetrack.core.shortfall import shards_named, shortfalls
from phasetrack.core.state import (
    GRAPHS,
    LOADS,
    POOLS,
    BarTrack,
    Boot,
    Doing,
    RankState,
    Row,
    Span,
    State,
    axes,
    clock_went_back,
    rank_key,
    rule_versions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from phasetrack.core.blame import Tellings
    from phasetrack.core.model import Bar, Bulk, Event, Failure, PatternSet, Place, Rule, Value

# Begun by every rank; the main process's phases come after all of them.
OF_RANKS = ("dist_init", *LOADS, *POOLS, *GRAPHS)

# A stamped line up to this long before server_args is the start of that boot (imports take up to a minute).
PREAMBLE_S = 300.0
# The same arguments printed again so soon are the same boot.
_SAME_BOOT_S = 2.0
_WARNINGS_KEPT = 64
_TAGS_KEPT = 256  # a hostile log could hold as many as lines
_BARS_HELD = 512  # frames; a checkpoint of more shards loses its first ones


class Machine:
    """Folds events into a ``State`` and tells what changed."""

    def __init__(
        self,
        patterns: PatternSet,
        kind_of: Callable[[str, str], tuple[Rule, Mapping[str, Value]] | None],
        reading: Callable[[Event, str], Event],
    ) -> None:
        """Take the patterns, and two lookups that depend on the engine of a boot.

        Args:
            patterns: all packs, merged.
            kind_of: exception line, engine -> the kind of failure, and the groups of its rule.
            reading: a line of another engine's pack, engine -> the line as that engine reads it.
        """
        self.state = State()
        self._patterns = patterns
        self._reading = reading
        self._engines = frozenset(patterns.packages.values())
        self._blame = Blame(patterns, kind_of)
        self._quotes = Quotes()
        self._records: list[Record] = []
        # frames before any boot, and their times
        self._held: deque[tuple[Event, float | None]] = deque(maxlen=_BARS_HELD)
        self._brush: tuple[Boot, Row, BarTrack] | None = None  # of the newest event, where it was a frame of a bar
        self._place: Place | None = None
        self._at_s: float | None = None

    @property
    def is_failing(self) -> bool:
        """Whether a failing record is open, of any server: its lines are not complete."""
        return self._blame.is_failing

    @property
    def is_unsure(self) -> bool:
        """Whether the next lines decide what lines before them were."""
        return self._quotes.is_unsure

    def last_words(self, boot: Boot | None) -> Failure | None:
        """An uncaught exception from outside the engine with which the log ends; None where it does not."""
        return self._blame.last_words(boot)

    @property
    def at_s(self) -> float | None:
        """When the last event was, log clock; None where nothing tells."""
        return self._at_s

    # --- the fold -----------------------------------------------------------------------------------

    def advance(self, event: Event) -> list[Record]:
        """Take one event; answer the records that it gives rise to."""
        self._records = []
        self._brush = None
        event = self._as_read(event)
        rule = event.rule
        said = self._quotes.read(event)
        if said is not Said.OWN and self._is_quoted(event, said):
            return self._records
        at = self.state.clock.at(event.prefix, known=rule is not None and not rule.generic)
        if at is None and rule is not None and rule.role in {Role.FAILURE, Role.WARNING}:
            at = self._native(event)
        self._place, self._at_s = event.place, at
        if event.prefix.foreign:
            return self._records
        if rule is None and event.bar is None:
            self._unknown(event, at)
        else:
            self._known(event, at)
        return self._records

    def _native(self, event: Event) -> float | None:
        """When an untimed line was written that carries a stamp of its own."""
        boot = self._boot_of(event)
        return None if boot is None or boot.heard_s is None else native_s(event.text, boot.heard_s)

    def _is_quoted(self, event: Event, said: Said) -> bool:
        """Whether a line within a quote tells nothing; the last one takes back what those before it told."""
        boot = self._boot_of(event)
        if said is Said.DOUBTFUL and boot is not None and event.bar is None and tells_of_an_end(event.rule):
            self._quotes.doubt(event, boot, boot.heard_s)
            return False
        self._place = event.place
        self.state.unmatched_lines += not event.open
        if said is Said.LAST:
            self._take_back(event)
        return True

    def _take_back(self, event: Event) -> None:
        """The server was not at its end: lines in doubt said so."""
        found = self._quotes.take_back(event)
        if found is None:
            return
        boot, changed = found
        self._blame.forget(event.prefix.server, boot)
        if changed:
            self._tell("outcome", boot, {"outcome": str(boot.outcome)})

    def _weigh(self, boot: Boot, event: Event, rule: Rule, at: float | None) -> None:
        """Ask of a line outside all quotes whether the server is at its end."""
        if self._quotes.is_alive(event, rule, at):
            self._take_back(event)
        elif tells_of_an_end(rule) and (rule.role is Role.END or rule.fatal or rule.hang):
            if event.continued and (rule.role is Role.END or rule.where is Where.ECHO):
                self._quotes.doubt(event, boot, boot.heard_s)
            elif not (event.continued or rule.hang):
                self._quotes.certain(event)

    def _as_read(self, event: Event) -> Event:
        """A line as the engine of its boot reads it: another engine's own words mean nothing there."""
        rule = event.rule
        boot = None if rule is None else self._boot_of(event)
        if rule is None or boot is None or opens(rule) or not self._is_foreign(boot, rule):
            return event
        event = self._reading(event, boot.engine)
        if event.rule is rule and not rule.generic:
            return event._replace(rule=None, fields={})
        return event

    def _is_foreign(self, boot: Boot, rule: Rule) -> bool:
        """Whether a rule is another engine's. A user's pack without a package of its own adds to every engine."""
        return boot.engine != rule.engine and self._engines.issuperset((boot.engine, rule.engine))

    def bulk(self, run: Bulk, event: Event) -> list[Record]:
        """Step over a run of serving lines: they move the time, and nothing else."""
        self._records = []
        self._brush = None
        at = self.state.clock.at(event.prefix, known=True)
        self._place, self._at_s = run.place, at
        boot = self._boot_of(event)
        if boot is not None:
            self._hear(boot, at, stamped=True)
            self._serve(boot)
        return self._records

    def _unknown(self, event: Event, at: float | None) -> None:
        """A text that no rule knows: a step of the time, or a line of a failing record."""
        boot = self._boot_of(event)
        if event.continued:
            self._text(event, boot, at if at is not None else self._heard(boot))
        else:
            self._blame.stamped(event)
            self._note_preamble(event, at)
        if event.text and not event.open:
            self.state.unmatched_lines += 1
        if boot is not None:
            boot.stamped += boot.has_form(event.prefix)
            if not event.continued:
                self._quotes.hear(event, boot)
            self._hear(boot, at, stamped=event.prefix.stamp_s is not None)

    def _known(self, event: Event, at: float | None) -> None:
        rule = event.rule
        if event.bar is not None:
            boot = self._boot_of(event)
            if rule is not None and (boot is not None or not rule.generic):
                self._bar(boot or self._open_boot(event, at, rule.engine), event, event.bar, rule, at)
            elif rule is not None and rule.activity is None and not self.state.count:
                self._held.append((event, at))
            return
        assert rule is not None  # noqa: S101 - a known event without a bar has a rule
        if not event.continued:
            self._blame.stamped(event)
        self._note_preamble(event, at)
        boot = self._boot_for(event, at, rule)
        if boot is None:
            if rule.role is Role.FACT and "version" in event.fields:
                self.state.banner = rule.engine, event.fields["version"]
            return
        boot.landmarks += 1
        boot.stamped += boot.has_form(event.prefix)
        if not rule.generic:
            rule_versions(boot, rule)
        self._hear(boot, at, stamped=event.prefix.stamp_s is not None)
        if self._quotes.is_unsure or tells_of_an_end(rule):
            self._weigh(boot, event, rule, at)
        self._act(boot, event, rule, at if at is not None else boot.heard_s)

    def _act(self, boot: Boot, event: Event, rule: Rule, at: float | None) -> None:
        if "config" in event.fields and not boot.args:
            names = self._patterns.arguments.get(boot.engine, {})
            self._set_args(boot, plan.parse_config(str(event.fields["config"]), names))
        self._take_facts(boot, event, rule)
        if rule.role is Role.FAILURE:
            self._say(boot, self._blame.fail(boot, event, rule, at))
            return
        if rule.role is Role.WARNING:
            self._warn(boot, rule.id, event)
        for phase in rule.ends:
            if rule.everywhere:
                self._end_everywhere(boot, phase, event, at, Basis.INFERRED)
            else:  # that a server is ready says that it listens, too
                self._end_if_open(boot, phase, event, at, Basis.LOGGED if rule.phase == "ready" else Basis.INFERRED)
        if rule.activity is not None:
            self._do(boot, event, rule, at)
        elif rule.phase is not None:
            self._phase_event(boot, event, rule, at)
        self._follow(boot)

    def _phase_event(self, boot: Boot, event: Event, rule: Rule, at: float | None) -> None:
        phase, role = rule.phase, rule.role
        if phase == "ready" and role is Role.BEGIN:
            self._ready(boot, rule, at)
        elif phase == "serving" and role is Role.END:
            self._stop(boot, at)
        elif phase in {"serving", "warmup"} and role is not Role.FACT and role is not Role.WARNING:
            self._request(boot, event, rule, at)
        elif phase == "http_up":
            self._http(boot, event, rule, at)
        elif opens(rule) and "args" not in event.fields:
            return  # the boot's own row is open since it began
        elif role is Role.BEGIN or (rule.implies and role is not Role.END):
            self._begin(boot, event, rule, at)
        elif role is Role.END and phase is not None:
            if rule.everywhere and boot.has(phase):
                self._end_everywhere(boot, phase, event, at, Basis.LOGGED)
            else:
                self._end(boot, phase, event, at)
            if rule.then is not None and rule.then not in boot.rank(event.prefix.rank).passed:
                self._open_row(boot, rule.then, event, at, Basis.INFERRED, rank=event.prefix.rank)

    # --- boots --------------------------------------------------------------------------------------

    def _boot_of(self, event: Event) -> Boot | None:
        """The boot that a line belongs to, by its tag; an untagged line goes to the newest boot."""
        live = self.state.live
        tag = event.prefix.server
        if tag in live:
            return live[tag]
        if tag and len(live) > 1:
            return None
        if tag and "" not in live and live:
            return self.state.shown  # one server whose label came late, or one of several nodes
        return live.get("") or self.state.shown

    def _boot_for(self, event: Event, at: float | None, rule: Rule) -> Boot | None:
        """Find the boot of a known line, opening one where rule 2 says so."""
        if "args" in event.fields:
            return self._args(event, at, rule)
        boot = self._boot_of(event)
        if boot is None:
            return None if rule.generic or rule.where is Where.ECHO else self._open_boot(event, at, rule.engine)
        if opens(rule):
            if not self._goes_on(boot, event, at, rule):
                return self._open_boot(event, at, rule.engine)
            self._know_opened(boot)
            return boot
        if boot.is_over or boot.ready is not None:
            return self._after_end(boot, event, at, rule)
        return boot

    def _goes_on(self, boot: Boot, event: Event, at: float | None, rule: Rule) -> bool:
        """Whether a line that opens boots is of this start: told twice, or by another process of it."""
        if self._is_foreign(boot, rule):
            return False
        if at is not None and boot.heard_s is not None and at < boot.heard_s:
            return True
        if boot.is_over or boot.ready is not None:
            return False
        if event.prefix.rank:
            return boot.rank(event.prefix.rank).passed.isdisjoint(OF_RANKS)
        return all(row.phase in {"bootstrap", "download"} for row in boot.rows)

    def _after_end(self, boot: Boot, event: Event, at: float | None, rule: Rule) -> Boot:
        """A begin that its rank has already passed, and no earlier than what was seen, is a new boot's."""
        if rule.role is not Role.BEGIN or rule.phase not in {"dist_init", "target_load"}:
            return boot
        rank = boot.ranks.get(event.prefix.rank)
        passed = rank is not None and rule.phase in rank.passed
        later = at is None or boot.heard_s is None or at >= boot.heard_s
        return self._open_boot(event, at, rule.engine) if passed and later else boot

    def _args(self, event: Event, at: float | None, rule: Rule) -> Boot:
        args = plan.parse_args(str(event.fields["args"]))
        boot = self._boot_of(event)
        same = boot is not None and not self._is_foreign(boot, rule)
        if boot is not None and same and self._is_same_start(boot, args, at, event.prefix.server):
            if not boot.args or plan.number(args, "node_rank", 0) < plan.number(boot.args, "node_rank", 0):
                self._set_args(boot, args)
            self._know_opened(boot)
            boot.nodes.add(plan.number(args, "node_rank", 0))
            return boot
        boot = self._open_boot(event, at, rule.engine)
        self._set_args(boot, args)
        boot.nodes.add(plan.number(args, "node_rank", 0))
        return boot

    def _is_same_start(self, boot: Boot, args: dict[str, Value], at: float | None, tag: str) -> bool:
        """Answer whether new arguments are the same start's: another node's, or printed twice."""
        if tag and boot.server and tag != boot.server:
            return self._is_other_node(boot, args)  # replicas have equal arguments, and start at the same time
        if at is not None and boot.heard_s is not None and at < boot.heard_s - _SAME_BOOT_S:
            # Another node's log, pasted behind, or an export that stands newest first; else a clock was put back.
            return not boot.args or self._is_other_node(boot, args)
        if boot.is_over or boot.ready is not None:
            return False
        if not boot.args:
            return boot.is_young
        if self._is_of_cluster(boot, args):
            return self._is_other_node(boot, args)
        soon = at is None or boot.heard_s is None or at - boot.heard_s <= _SAME_BOOT_S
        return boot.is_young and soon and args == boot.args

    def _is_of_cluster(self, boot: Boot, args: dict[str, Value]) -> bool:
        return plan.number(args, "nnodes", 1) > 1 and args.get("dist_init_addr") == boot.args.get("dist_init_addr")

    def _is_other_node(self, boot: Boot, args: dict[str, Value]) -> bool:
        return self._is_of_cluster(boot, args) and plan.number(args, "node_rank", 0) not in boot.nodes

    def _know_opened(self, boot: Boot) -> None:
        """A line that opens starts, behind the first ones of its boot."""
        if not boot.opened and boot.phase == "bootstrap":
            self._tell("phase", boot, {"phase": "bootstrap"})
        boot.opened = True

    def _set_args(self, boot: Boot, args: dict[str, Value]) -> None:
        boot.args = args
        own = self._patterns.own_phases.get(boot.engine)
        expected = plan.expected_phases(args)
        boot.plan = tuple(phase for phase in expected if own is None or (phase in own and own[phase].planned))
        for name in ("model_path", "tp_size", "pp_size", "dp_size", "nnodes", "node_rank", "speculative_algorithm"):
            if args.get(name) is not None:
                self._tell("fact", boot, {"name": name, "value": args[name]})

    def _open_boot(self, event: Event, at: float | None, engine: str) -> Boot:
        tag = event.prefix.server
        place, started = event.place, at if event.prefix.stamp_s is not None else None
        early = self.state.preambles.pop(tag, None) or self.state.preambles.pop("", None)
        if early is not None and (at is None or 0 <= at - early[1] <= PREAMBLE_S):
            place, started = early
        held, self._held = self._held, deque(maxlen=_BARS_HELD)
        if event.rule is not None and opens(event.rule):
            held.clear()
        if held and held[0][0].place.offset < place.offset:
            place, started = held[0][0].place, None
        now, self._place = self._place, held[0][0].place if held else self._place
        self.state.count += 1
        boot = Boot(self.state.count, tag, place, engine, started, library=event.prefix.library)
        boot.opened = event.rule is not None and opens(event.rule)
        if self.state.banner is not None and self.state.banner[0] == engine:
            boot.facts["version"] = "", self.state.banner[1]
        self._retire(tag)
        self.state.live[tag] = self.state.shown = boot
        boot.heard_s = started
        self._tell("boot", boot, {"server": tag or None, "begin_line": place.line})
        self._open_row(boot, "bootstrap", event._replace(place=place), started, Basis.LOGGED, rank="")
        self._follow(boot)
        for early_event, early_at in held:
            self._place = early_event.place
            self._early_bar(boot, self._as_read(early_event), early_at)
        self._place, self._at_s = now, at
        return boot

    def _early_bar(self, boot: Boot, event: Event, at: float | None) -> None:
        """Take a frame that stood before the line that opened its boot."""
        if event.rule is not None and event.bar is not None:
            self._at_s = at
            self._bar(boot, event, event.bar, event.rule, at)

    def _retire(self, tag: str) -> None:
        old = self.state.live.pop(tag, None)
        if old is not None:
            if old.number == self.state.keep:
                self.state.kept = old
            self.state.past.append(summarize_boot(old))
            self._blame.forget(tag, old)
            self._quotes.forget(tag)

    def _note_preamble(self, event: Event, at: float | None) -> None:
        """Remember the first stamped line of each writer that may already be its next boot's."""
        rule, tag, preambles = event.rule, event.prefix.server, self.state.preambles
        if not event.prefix.engine or at is None:
            return
        boot = self._boot_of(event)
        own = boot is not None and not boot.is_over and boot.ready is None and boot.is_young
        if event.prefix.rank or not is_early(rule) or own:
            preambles.pop(tag, None)
        elif (tag in preambles or len(preambles) < _TAGS_KEPT) and (
            tag not in preambles or at - preambles[tag][1] > PREAMBLE_S
        ):
            preambles[tag] = (event.place, at)

    # --- phases of ranks ----------------------------------------------------------------------------

    def _begin(self, boot: Boot, event: Event, rule: Rule, at: float | None) -> None:
        rank = boot.rank(event.prefix.rank)
        phase = self._resolve_begin(boot, rank, rule)
        if phase is None:
            return
        basis = Basis.INFERRED if rule.implies or (phase != rule.phase and rule.phase == "dist_init") else Basis.LOGGED
        current = rank.last
        if current is not None and current.is_open and current.phase == phase:
            if not current.strong and basis is Basis.LOGGED:
                current.strong = True
            return
        if rule.implies and rule.role is Role.PROGRESS and phase in rank.passed and phase not in POOLS:
            return
        self._say(boot, self._blame.revoke(boot))
        self._open_row(boot, phase, event, at, basis, rank=event.prefix.rank)

    def _resolve_begin(self, boot: Boot, rank: RankState, rule: Rule) -> str | None:
        """Tell target from draft by counting; rule 3."""
        phase, last = rule.phase, rank.last
        if phase == "dist_init" and rank.loads and "dist_init" in rank.passed and not rule.implies:
            phase = "target_load"
        if phase in LOADS:
            if last is not None and last.is_open and last.phase in LOADS:
                return last.phase
            rank.loads += 1
            return "target_load" if rank.loads == 1 else "draft_load"
        if phase in POOLS:
            if last is not None and last.is_open and last.phase in POOLS:
                return last.phase
            if rule.implies and rank.pools and self._drafts(boot, rank.loads) is False:
                return None
            return "kv_cache" if rank.pools == 0 or not self._drafts(boot, rank.loads) else "draft_kv"
        if phase == "target_graph" and "draft_load" in rank.passed and self._captured_before_draft(boot, rule):
            return "draft_graph"
        return phase

    def _drafts(self, boot: Boot, loads: int) -> bool:
        """Whether a draft has a pool of its own: in engines that tell of one."""
        own = self._patterns.own_phases.get(boot.engine)
        return (own is None or "draft_kv" in own) and (loads > 1 or plan.has_draft(boot.args) is True)

    def _captured_before_draft(self, boot: Boot, rule: Rule) -> bool:
        """0.4.2 and 0.4.3 print the same words for both captures; the target's came before the draft's load."""
        target, draft = boot.row("target_graph"), boot.row("draft_load")
        return (
            rule.id == "sglang.target_graph.begin"
            and target is not None
            and draft is not None
            and target.begin.offset < draft.begin.offset
        )

    def _open_row(self, boot: Boot, phase: str, event: Event, at: float | None, basis: Basis, *, rank: str) -> Row:
        """Begin a phase on a rank: in the row that is there, or in a new one."""
        state = boot.rank(rank)
        self._close_rank(boot, rank, phase, event, at)
        row = boot.row(phase)
        old = None if row is None else row.spans.get(rank)
        again = old is not None and state.last is not old
        if row is None or again:
            row = Row(phase, 1 if row is None else row.occurrence + 1, self._ordinal(boot, rank), event.place)
            boot.rows.append(row)
        if old is not None and not again:  # the same phase goes on: several captures, several drafts
            old.end = old.ended_s = None
            state.last = old
            return row
        sort = at if at is not None else boot.heard_s or 0.0
        span = Span(phase, rank, event.place, at, self._ordinal(boot, rank), sort, basis, strong=basis is Basis.LOGGED)
        row.spans[rank] = span
        if row.hint is not None and row.hint.is_open:
            row.hint.end, row.hint.ended_s = event.place, at
        state.last, state.ordinal = span, span.ordinal
        state.passed.add(phase)
        self._tell_span(boot, span, "begin", basis)
        return row

    def _ordinal(self, boot: Boot, rank: str) -> int:
        if rank:
            return boot.rank(rank).ordinal + 1
        return 1 + max((state.ordinal for state in boot.ranks.values()), default=0)

    def _close_rank(self, boot: Boot, rank: str, phase: str, event: Event, at: float | None) -> None:
        """Close what a rank has open when it begins something else."""
        for row in boot.rows:
            span = row.spans.get(rank)
            if span is not None and span.is_open and span.phase not in {phase, "bootstrap"}:
                self._close(boot, span, event, at, Basis.INFERRED)
        if phase != "bootstrap":
            self._end_bootstrap(boot, event, at)

    def _end_bootstrap(self, boot: Boot, event: Event, at: float | None) -> None:
        """The first begin of anything else is, by definition, the end of starting processes."""
        row = boot.row("bootstrap")
        for span in row.spans.values() if row is not None else ():
            if span.is_open or span.end_basis is Basis.INFERRED:
                self._close(boot, span, event, at, Basis.LOGGED)

    def _end(self, boot: Boot, phase: str, event: Event, at: float | None) -> None:
        """A printed end: of the open span, of one closed by inference, or of one whose begin was not seen."""
        rank = event.prefix.rank
        if phase == "target_graph" and self._open_span(boot, rank, phase) is None:
            drafts = self._open_span(boot, rank, "draft_graph")
            phase = phase if drafts is None else drafts.phase  # one end for both, after the last capture
        span = self._open_span(boot, rank, phase) or self._inferred_end(boot, rank, phase)
        if span is None and phase in boot.rank(rank).passed and phase not in {*LOADS, *POOLS}:
            return  # a draft's own distributed init ends, or a capture says so twice
        if span is None:
            span = self._unseen(boot, rank, phase, event)
        if span.phase in POOLS:
            boot.rank(rank).pools += 1
        self._say(boot, self._blame.revoke(boot))
        self._close(boot, span, event, at, Basis.LOGGED)

    def _family(self, phase: str) -> tuple[str, ...]:
        return next((family for family in (LOADS, POOLS) if phase in family), (phase,))

    def _open_span(self, boot: Boot, rank: str, phase: str) -> Span | None:
        family = self._family(phase)
        spans = [row.spans[rank] for row in boot.rows if row.phase in family and rank in row.spans]
        return next((span for span in reversed(spans) if span.is_open), None)

    def _inferred_end(self, boot: Boot, rank: str, phase: str) -> Span | None:
        family = self._family(phase)
        spans = [row.spans[rank] for row in boot.rows if row.phase in family and rank in row.spans]
        last = spans[-1] if spans else None
        return last if last is not None and last.end_basis is Basis.INFERRED else None

    def _unseen(self, boot: Boot, rank: str, phase: str, event: Event) -> Span:
        """Make the span of an end whose begin was not printed: its begin is unknown, not zero."""
        state = boot.rank(rank)
        if phase in LOADS:
            state.loads += 1
            phase = "target_load" if state.loads == 1 else "draft_load"
        elif phase in POOLS:
            phase = "kv_cache" if state.pools == 0 or not self._drafts(boot, state.loads) else "draft_kv"
        row = self._open_row(boot, phase, event, None, Basis.INFERRED, rank=rank)
        return row.spans[rank]

    def _end_if_open(self, boot: Boot, phase: str, event: Event, at: float | None, basis: Basis) -> None:
        for row in boot.rows:
            span = row.spans.get(event.prefix.rank) if row.spans else row.hint
            if row.phase == phase and span is not None and span.is_open:
                self._close(boot, span, event, at, basis)

    def _end_everywhere(self, boot: Boot, phase: str, event: Event, at: float | None, basis: Basis) -> None:
        """One process ends a phase for all ranks, or for those of its own replica."""
        replica = axes(event.prefix.rank).get("DP", 0)
        self._say(boot, self._blame.revoke(boot))
        for row in boot.rows:
            spans = [span for span in row.all_spans() if span.is_open and axes(span.rank).get("DP", 0) == replica]
            for span in spans if row.phase in self._family(phase) else ():
                boot.rank(span.rank).pools += span.phase in POOLS
                self._close(boot, span, event, at, basis)

    def _close(self, boot: Boot, span: Span, event: Event, at: float | None, basis: Basis) -> None:
        if at is not None and span.began_s is not None and at < span.began_s:
            boot.odd += 1
            at = span.began_s
        span.end, span.ended_s, span.end_basis = event.place, at, basis
        self._tell_span(boot, span, "end", basis)

    def _close_all(self, boot: Boot, event: Event, at: float | None, phases: tuple[str, ...]) -> None:
        for row in boot.rows:
            if row.phase not in phases:
                continue
            for span in row.all_spans():
                if span.is_open:
                    self._close(boot, span, event, at, Basis.INFERRED)

    # --- phases of the main process -----------------------------------------------------------------

    def _http(self, boot: Boot, event: Event, rule: Rule, at: float | None) -> None:
        row = boot.row("http_up")
        if row is None:
            if rule.role is Role.FACT:
                return
            self._close_all(boot, event, at, ("download", *OF_RANKS))
            row = self._open_row(boot, "http_up", event, at, Basis.LOGGED, rank="")
        span = row.spans.get("")
        if rule.role is Role.END and span is not None and span.is_open:
            self._close(boot, span, event, at, Basis.LOGGED)

    def _request(self, boot: Boot, event: Event, rule: Rule, at: float | None) -> None:
        """A batch, an access line, a warm-up text: warm-up before ready, serving after it."""
        if boot.ready is None and rule.id.endswith(".batch.decode"):
            self._find_serving(boot)
        if boot.ready is not None:
            self._serve(boot)
            return
        if rule.phase != "warmup" or boot.is_over or boot.stopping is not None:
            return
        http = boot.row("http_up")
        if (http is None and (rule.generic or not boot.has("kv_cache"))) or boot.has("warmup"):
            return
        basis = Basis.LOGGED if rule.role is Role.BEGIN else Basis.INFERRED
        self._open_row(boot, "warmup", event, at, basis, rank="")

    def _ready(self, boot: Boot, rule: Rule, at: float | None) -> None:
        if boot.ready is not None or boot.stopping is not None or self._place is None:
            return
        self._say(boot, self._blame.revoke(boot))
        if boot.outcome is Outcome.FAILED:
            return
        boot.ready, boot.ready_at_s = self._place, at
        boot.headless = rule.id.endswith(".node")
        boot.outcome = Outcome.READY
        for row in boot.rows:
            for span in row.all_spans():
                if span.is_open and row.phase != "http_up":
                    self._close_at(boot, span, at, Basis.LOGGED if row.phase == "warmup" else Basis.INFERRED)
        self._tell("ready", boot, {"phase": "ready", "node": boot.headless})
        for short in shortfalls(boot):
            boot.warnings.setdefault(short.id, short)
            self._tell("warning", boot, {"id": short.id, "message": short.message})
        self._tell("outcome", boot, {"outcome": str(boot.outcome)})

    def _close_at(self, boot: Boot, span: Span, at: float | None, basis: Basis) -> None:
        assert self._place is not None  # noqa: S101
        span.end, span.end_basis = self._place, basis
        span.ended_s = at if at is None or span.began_s is None else max(at, span.began_s)
        self._tell_span(boot, span, "end", basis)

    def _find_serving(self, boot: Boot) -> None:
        """An excerpt that begins with requests: the server was ready before it, nobody knows when."""
        if boot.opened or boot.is_over or boot.stopping is not None or not boot.is_young:
            return
        boot.ready, boot.outcome, boot.found_serving = self._place, Outcome.READY, True
        self._tell("ready", boot, {"phase": "ready", "node": False})
        self._tell("outcome", boot, {"outcome": str(boot.outcome)})

    def _serve(self, boot: Boot) -> None:
        if boot.ready is not None and not boot.serving and not boot.is_over:
            boot.serving = True
            self._follow(boot)

    def _stop(self, boot: Boot, at: float | None) -> None:
        if boot.is_over:
            return
        boot.stopping, boot.stop_at_s = self._place, at
        boot.outcome = Outcome.STOPPED
        self.state.preambles.pop(boot.server, None)
        self._tell("outcome", boot, {"outcome": str(boot.outcome)})

    # --- bars and activities ------------------------------------------------------------------------

    def _bar(self, boot: Boot, event: Event, bar: Bar, rule: Rule, at: float | None) -> None:
        if boot.is_over:
            return
        boot.shards_named = max(boot.shards_named, shards_named(bar.desc))
        if rule.activity is not None:
            self._activity_bar(boot, event, bar, rule, at)
            return
        row = tracks.row_of(boot, bar, rule) or self._hint(boot, event, bar, rule, at)
        if row is None:
            return
        track = tracks.track_of(row, bar)
        is_new = track is None
        if track is None:
            track = tracks.new_track(row, bar, event.place, self._unit(rule) or bar.unit)
        elif bar.done < track.done:
            return
        if bar.desc:
            track.title = tracks.title_of(bar)
        self._paint(boot, row, track, bar, tracks.time_of(boot, row, track, bar, at), is_new=is_new)
        self._follow(boot)
        self._brush = boot, row, track

    def _paint(self, boot: Boot, row: Row, track: BarTrack, bar: Bar, at: float | None, *, is_new: bool) -> None:
        row.moved = track
        changed = track.move(bar, at) or is_new
        self._hear(boot, at, stamped=False)
        self._at_s = at
        if changed:
            self._say(boot, self._blame.revoke(boot))
            said: dict[str, Value] = {"phase": row.phase, "done": bar.done, "total": bar.total, "unit": track.unit}
            self._tell("progress", boot, said | {"rank": track.rank or None})

    def repaint(self, bar: Bar, place: Place) -> list[Record] | None:
        """Take one more frame of the bar that the newest event was a frame of: its words and its total are the same.

        Returns:
            Its records; None, and nothing is changed, where it could be another bar's: ``advance`` decides.
        """
        if self._brush is None:
            return None
        boot, row, track = self._brush
        if not track.goes_on(bar) or (track.is_full and not bar.done) or not tracks.is_alone(boot, row, track):
            return None
        self._records, self._place = [], place
        self._paint(boot, row, track, bar, tracks.time_of(boot, row, track, bar, None), is_new=False)
        return self._records

    def _unit(self, rule: Rule) -> str:
        info = self._patterns.phases.get(rule.phase or "")
        return "" if info is None else info.unit

    def _hint(self, boot: Boot, event: Event, bar: Bar, rule: Rule, at: float | None) -> Row | None:
        """Open a phase by its bar alone."""
        if boot.ready is not None or (rule.generic and not bar.desc) or rule.phase is None:
            return None
        phase = rule.phase
        rows = tracks.rows_of(boot, phase)
        if phase in LOADS and rows:
            told = any(span.end_basis is Basis.LOGGED for row in rows for span in row.spans.values() if span.end)
            if told or not any(boot.has(graph) for graph in GRAPHS):
                return rows[-1] if not told else None
            phase = "draft_load"
        elif phase in GRAPHS and rows:
            load = boot.row("draft_load")
            if load is None or load.begin.offset < rows[0].begin.offset:
                return rows[-1]
            phase = "draft_graph"
        existing = boot.row(phase)
        if existing is not None:
            return existing
        self._end_bootstrap(boot, event, at if at is not None else boot.heard_s)
        for row in boot.rows:
            if row.hint is not None and row.hint.is_open:
                self._close(boot, row.hint, event, boot.heard_s, Basis.INFERRED)
        row = Row(phase, 1, self._ordinal(boot, ""), event.place)
        began = at if at is not None else boot.heard_s
        row.hint = Span(phase, "", event.place, began, row.ordinal, began or 0.0, Basis.INFERRED, strong=at is not None)
        boot.rank("").ordinal = row.ordinal
        boot.rows.append(row)
        self._tell_span(boot, row.hint, "begin", Basis.INFERRED)
        return row

    def _do(self, boot: Boot, event: Event, rule: Rule, at: float | None) -> None:
        """An activity inside the phase that is running."""
        key = rule.activity or ""
        doing = boot.doing.get(key)
        if rule.role is Role.END:
            if doing is not None and doing.open:
                doing.ranks.discard(event.prefix.rank)
                doing.open = bool(doing.ranks)
                doing.ended_s = at
                if not doing.open:
                    self._tell("activity", boot, {"id": key, "title": doing.title, "edge": "end"})
            return
        if doing is None or not doing.open or doing.phase != boot.phase:
            doing = boot.doing[key] = Doing(key, rule.title or key, boot.phase, at, event.place)
            self._tell("activity", boot, {"id": key, "title": doing.title, "edge": "begin"})
        doing.ended_s = at
        doing.ranks.add(event.prefix.rank)

    def _activity_bar(self, boot: Boot, event: Event, bar: Bar, rule: Rule, at: float | None) -> None:
        self._do(boot, event, rule, at if at is not None else boot.heard_s)
        doing = boot.doing[rule.activity or ""]
        if doing.bar is None or not doing.bar.goes_on(bar):
            doing.bar = BarTrack(bar.desc, "", bar.unit, bar.done, bar.total, event.place)
        doing.bar.move(bar, at)

    # --- facts and warnings -------------------------------------------------------------------------

    def _take_facts(self, boot: Boot, event: Event, rule: Rule) -> None:
        """Keep a fact once per name: the first value of the first rank, as people count ranks."""
        both = rule.then is not None  # it ends target and draft together
        draft = not both and rule.phase in {*LOADS, *POOLS} and self._is_draft(boot, event.prefix.rank, rule)
        for name, value in event.fields.items():
            if name in {"args", "config"} or rule.role in {Role.FAILURE, Role.WARNING}:
                continue
            key = f"draft_{name}" if draft and not name.startswith("draft_") else name
            known = boot.facts.get(key)
            if known is None or rank_key(event.prefix.rank) < rank_key(known[0]):
                boot.facts[key] = (event.prefix.rank, value)
                if known is None:
                    self._tell("fact", boot, {"name": key, "value": value})

    def _is_draft(self, boot: Boot, rank: str, rule: Rule) -> bool:
        span = self._open_span(boot, rank, rule.phase or "")
        if span is not None:
            return span.phase.startswith("draft")
        state = boot.rank(rank)
        if rule.phase in LOADS:
            return state.loads >= 1
        return state.pools >= 1 and self._drafts(boot, state.loads)

    def _warn(self, boot: Boot, key: str, event: Event) -> None:
        old = boot.warnings.get(key)
        if old is not None:
            boot.warnings[key] = replace(old, count=old.count + 1)
        elif len(boot.warnings) < _WARNINGS_KEPT:
            asked, got = event.fields.get("asked"), event.fields.get("got")
            boot.warnings[key] = Warned(key, event.text[:400], event.place.line, 1, asked, got)
            self._tell("warning", boot, {"id": key, "message": event.text[:400]})

    # --- failures -----------------------------------------------------------------------------------

    def _text(self, event: Event, boot: Boot | None, at: float | None) -> None:
        """An untimed line: part of a failing record, which may have come to its exception."""
        for record in self._blame.text(event, at):
            if boot is None:
                boot = self._open_boot(event._replace(place=record.place), record.at_s, record.engine)
            if boot.outcome is Outcome.STOPPED or (boot.ready is not None and record.rule is None):
                continue
            if not self._blame.interrupted(boot, record):
                self._say(boot, self._blame.raised(boot, record))
            elif boot.ready is None:
                self._stop(boot, record.at_s)

    def _say(self, boot: Boot, said: Tellings) -> None:
        for kind, data in said:
            self._tell(kind, boot, data)

    # --- time and telling ---------------------------------------------------------------------------

    def _heard(self, boot: Boot | None) -> float | None:
        return None if boot is None else boot.heard_s

    def _hear(self, boot: Boot, at: float | None, *, stamped: bool) -> None:
        """Note the time of an output; the longest silence goes to the phase that it interrupted, if one was running."""
        if stamped and at is not None:
            boot.stamp_s = at
            if boot.started_at_s is None:
                self._start_clock(boot, at)
        if at is None:
            return
        if boot.heard_s is not None and at > boot.heard_s and boot.phase is not None:
            row = boot.row(boot.phase)
            gap = at - boot.heard_s
            if row is not None and row.is_open and (row.silence_s is None or gap > row.silence_s):
                row.silence_s, row.silence_from_s, row.silence_end = gap, boot.heard_s, self._place
        if boot.heard_s is None or at > boot.heard_s:
            boot.heard_s = at

    def _start_clock(self, boot: Boot, at: float) -> None:
        """A boot that an unstamped line opened starts at its first stamped one."""
        boot.started_at_s = at
        row = boot.row("bootstrap")
        for span in row.spans.values() if row is not None else ():
            if span.began_s is None and span.end is None:
                span.began_s = span.sort_s = at

    def _follow(self, boot: Boot) -> None:
        """Tell when the current phase changed: the earliest-begun open span, else the last one ended."""
        phase = current_phase(boot)
        if phase != boot.phase:
            boot.phase = phase
            if phase != "bootstrap" or boot.opened:
                self._tell("phase", boot, {"phase": phase})

    def _tell_span(self, boot: Boot, span: Span, edge: str, basis: Basis) -> None:
        self._tell("span", boot, {"phase": span.phase, "rank": span.rank or None, "edge": edge, "basis": str(basis)})

    def _tell(self, kind: str, boot: Boot, data: dict[str, Value]) -> None:
        assert self._place is not None  # noqa: S101
        self._records.append(Record(kind, boot.number, self._place, self._at_s, data))


def is_early(rule: Rule | None) -> bool:
    """Whether a stamped line may already be the next boot's, before its arguments."""
    early = {Role.FACT, Role.WARNING, Role.BEGIN}
    return rule is None or (rule.phase in {None, "bootstrap"} and rule.role in early)


def opens(rule: Rule) -> bool:
    """Whether a line begins a boot: nothing of a start comes before it but stray notes."""
    return rule.phase == "bootstrap" and rule.role is Role.BEGIN


def ordered_rows(boot: Boot) -> list[Row]:
    """Rows in the order in which they began: by time, then by each rank's own order, then by position."""
    return sorted(boot.rows, key=lambda row: (row.sort_s, row.ordinal, row.begin.offset))


def current_phase(boot: Boot) -> str | None:
    """The phase of the earliest-begun open span; where none is open, of the span that ended last."""
    if boot.ready is not None:
        return "serving" if boot.serving else "ready"
    spans = [span for row in boot.rows for span in row.all_spans()]
    running = [span for span in spans if span.is_open]
    if running:
        return min(running, key=lambda span: (span.sort_s, span.begin.offset)).phase
    ended = [(span.end.offset, span.phase) for span in spans if span.end is not None]
    return max(ended)[1] if ended else boot.phase


def summarize_boot(boot: Boot, end_offset: int | None = None) -> BootSummary:
    """What is kept of a boot."""
    cause = first_cause(boot)
    started = boot.started_at_s if boot.opened else None
    startup = None
    if boot.ready_at_s is not None and started is not None and not clock_went_back(boot):
        startup = boot.ready_at_s - started
    return BootSummary(
        boot.number, boot.begin.line, boot.begin.offset, boot.outcome, started, boot.ready_at_s, startup,
        boot.server, None if cause is None else cause.id, end_offset,
    )  # fmt: skip
