"""What the machine knows while it reads: boots, rows, spans, bars. Mutable, and private to the core.

Only ``machine`` and ``blame`` change these; ``summary`` turns them into a ``Snapshot``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core.clock import Clock
from phasetrack.core.model import Basis, Outcome, Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from phasetrack.core.failing import FailingRecord
    from phasetrack.core.model import Bar, BootSummary, Failure, Prefix, Rule, Value, Warned

# Phases that only counting tells apart.
LOADS = ("target_load", "draft_load")
POOLS = ("kv_cache", "draft_kv")
GRAPHS = ("target_graph", "draft_graph")
# Ranks and nodes differ by less.
_SKEW_S = 60.0

# A bar's curve is kept as at most this many points; beyond, every second one goes.
CURVE_LIMIT = 64


@dataclass(slots=True, eq=False, repr=False)
class Span:
    """One phase on one rank, once."""

    phase: str
    rank: str
    begin: Place
    began_s: float | None
    ordinal: int  # order within its rank
    sort_s: float  # when it began, or the newest time known then
    basis: Basis = Basis.LOGGED
    end: Place | None = None
    ended_s: float | None = None
    end_basis: Basis = Basis.LOGGED
    strong: bool = True  # its begin was printed

    @property
    def is_open(self) -> bool:
        """Whether it has begun and not ended."""
        return self.end is None


@dataclass(slots=True, eq=False, repr=False)
class BarTrack:
    """One bar from its first frame to its last."""

    title: str
    rank: str
    unit: str
    done: float
    total: float | None
    place: Place
    began_s: float | None = None
    base_s: float | None = None  # elapsed 0 on the log's clock
    last_s: float | None = None
    elapsed_s: float | None = None
    rate_per_s: float | None = None
    curve: list[tuple[float, float]] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Whether it stands at 100 %."""
        return self.total is not None and self.done >= self.total

    @property
    def fraction(self) -> float:
        """0 to 1; 0 where the total is unknown."""
        return min(self.done / self.total, 1.0) if self.total else 0.0

    def goes_on(self, bar: Bar) -> bool:
        """Whether a frame can be the next of this bar: it never goes back."""
        if bar.total != self.total or bar.done < self.done:
            return False
        if self.elapsed_s is None or bar.elapsed_s is None:
            return True
        return bar.elapsed_s >= self.elapsed_s - 1

    def move(self, bar: Bar, at_s: float | None) -> bool:
        """Take the next frame; answer whether ``done`` changed."""
        changed = bar.done != self.done
        self.done, self.elapsed_s, self.last_s = bar.done, bar.elapsed_s, at_s
        self.rate_per_s = bar.rate_per_s if bar.rate_per_s is not None else self.rate_per_s
        if changed and bar.elapsed_s is not None:
            self.curve.append((bar.elapsed_s, bar.done))
            if len(self.curve) > CURVE_LIMIT:
                del self.curve[1:-1:2]
        return changed


@dataclass(slots=True, eq=False, repr=False)
class Row:
    """One phase over its ranks, once."""

    phase: str
    occurrence: int
    ordinal: int
    begin: Place
    spans: dict[str, Span] = field(default_factory=dict)
    bars: list[BarTrack] = field(default_factory=list)
    hint: Span | None = None  # told by a bar alone, before any rank said so
    silence_s: float | None = None
    silence_from_s: float | None = None
    silence_end: Place | None = None  # the output that ended the longest silence
    moved: BarTrack | None = None  # the bar that moved last

    @property
    def is_open(self) -> bool:
        """Whether any of its spans is open."""
        if self.spans:
            return any(span.is_open for span in self.spans.values())
        return self.hint is not None and self.hint.is_open

    def bearers(self) -> list[Span]:
        """The open spans of ranks that draw bars."""
        return [span for rank, span in self.spans.items() if span.is_open and draws_bars(rank)]

    @property
    def began_s(self) -> float | None:
        """The first begin over its ranks."""
        starts = [span.began_s for span in self.all_spans() if span.began_s is not None]
        return min(starts, default=None)

    @property
    def sort_s(self) -> float:
        """When it began, for the order of rows."""
        return min((span.sort_s for span in self.all_spans()), default=0.0)

    def all_spans(self) -> list[Span]:
        """Its spans, the hint too where nothing better is known."""
        if self.hint is not None and (not self.spans or self.hint.began_s is not None):
            return [self.hint, *self.spans.values()]
        return list(self.spans.values())


@dataclass(slots=True, eq=False, repr=False)
class Doing:
    """An activity while it lasts."""

    id: str
    title: str
    phase: str | None
    began_s: float | None
    place: Place
    ended_s: float | None = None
    open: bool = True
    bar: BarTrack | None = None
    ranks: set[str] = field(default_factory=set)


class Clue(NamedTuple):
    """A line that explains a failure which comes with it or soon after."""

    rule: Rule
    text: str
    rank: str
    at_s: float | None
    place: Place
    fields: Mapping[str, Value]


@dataclass(slots=True, eq=False, repr=False)
class RankState:
    """Where one rank stands."""

    last: Span | None = None  # the span begun last
    passed: set[str] = field(default_factory=set)  # phases it has begun
    loads: int = 0
    pools: int = 0
    ordinal: int = 0


@dataclass(slots=True, eq=False, repr=False)
class Boot:
    """One start of one server."""

    number: int
    server: str
    begin: Place
    engine: str
    started_at_s: float | None = None
    outcome: Outcome = Outcome.STARTING
    args: dict[str, Value] = field(default_factory=dict)
    plan: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)
    ranks: dict[str, RankState] = field(default_factory=dict)
    phase: str | None = None  # the current one
    heard_s: float | None = None  # newest time of this boot
    stamp_s: float | None = None  # of the record before, for bars
    ready: Place | None = None
    ready_at_s: float | None = None
    headless: bool = False  # a worker node's ready
    serving: bool = False
    found_serving: bool = False  # requests were its first lines: it was ready before them
    stopping: Place | None = None
    stop_at_s: float | None = None
    stuck: Failure | None = None  # the log's own text says that it hangs
    failures: list[Failure] = field(default_factory=list)
    clues: list[Clue] = field(default_factory=list)  # lines that explain a failure and are none
    terse: dict[Place, FailingRecord] = field(default_factory=dict)  # failures of which no text tells, only their place
    echoes: list[str] = field(default_factory=list)  # consequences of the first cause, in words
    warnings: dict[str, Warned] = field(default_factory=dict)
    facts: dict[str, tuple[str, Value]] = field(default_factory=dict)  # name -> (rank, value)
    doing: dict[str, Doing] = field(default_factory=dict)
    since: str | None = None  # wordings: no older than
    until: str | None = None
    opened: bool = False  # a line that opens starts was seen; else the log may begin anywhere in this one
    landmarks: int = 0
    stamped: int = 0
    odd: int = 0
    nodes: set[int] = field(default_factory=set)
    shards_named: int = 0  # as the names of downloaded files count them
    library: bool = False  # its own stamps have a library's form

    @property
    def is_over(self) -> bool:
        """Whether it failed or was stopped."""
        return self.outcome in {Outcome.FAILED, Outcome.STOPPED}

    def has_form(self, prefix: Prefix) -> bool:
        """Whether a stamp has the form of this boot's engine."""
        return prefix.engine or (self.library and prefix.library)

    @property
    def is_excerpt(self) -> bool:
        """Whether it was found under way, by lines that no start prints without an opening line before them."""
        if self.opened:
            return False
        spans = (span for row in self.rows if row.phase != "bootstrap" for span in row.spans.values())
        return self.ready is not None or any(
            span.basis is Basis.LOGGED or (span.end is not None and span.end_basis is Basis.LOGGED) for span in spans
        )

    @property
    def is_young(self) -> bool:
        """Whether no rank has begun anything yet."""
        return all(row.phase == "bootstrap" for row in self.rows)

    def rank(self, name: str) -> RankState:
        """Its state of a rank, made where new."""
        state = self.ranks.get(name)
        if state is None:
            state = self.ranks[name] = RankState()
        return state

    def row(self, phase: str) -> Row | None:
        """The newest row of a phase."""
        return next((row for row in reversed(self.rows) if row.phase == phase), None)

    def has(self, phase: str) -> bool:
        """Whether a phase has begun."""
        return any(row.phase == phase for row in self.rows)

    def fact(self, name: str) -> Value:
        """A fact's value, None where unknown."""
        found = self.facts.get(name)
        return None if found is None else found[1]


@dataclass(slots=True, eq=False, repr=False)
class State:
    """All boots of one source."""

    clock: Clock = field(default_factory=Clock)
    past: list[BootSummary] = field(default_factory=list)
    live: dict[str, Boot] = field(default_factory=dict)  # server tag -> its newest boot
    shown: Boot | None = None
    count: int = 0
    keep: int | None = None  # the boot to be kept whole when another begins
    kept: Boot | None = None
    unmatched_lines: int = 0
    banner: tuple[str, Value] | None = None  # engine and version, printed before any boot
    # of each writer the first stamped line that may belong to its next boot
    preambles: dict[str, tuple[Place, float]] = field(default_factory=dict)


_AXIS = re.compile(r"([A-Z_]+)(\d+)")


def axes(rank: str) -> dict[str, int]:
    """Read a rank tag: ``DP1 TP3 EP3`` is {"DP": 1, "TP": 3, "EP": 3}."""
    return {name: int(k) for name, k in _AXIS.findall(rank)}


def rank_key(rank: str) -> tuple[tuple[int, ...], str]:
    """Sort ranks as people count them."""
    return tuple(int(k) for _, k in _AXIS.findall(rank)), rank


def draws_bars(rank: str) -> bool:
    """Only the first rank of a tensor-parallel group draws bars (sglang.md §2), never vLLM's nameless workers."""
    places = axes(rank)
    return places.get("TP", 0) == 0 and "PID" not in places


def rule_versions(boot: Boot, rule: Rule) -> None:
    """Narrow the range of versions by one wording that was seen."""
    if rule.since is not None and (boot.since is None or version_key(rule.since) > version_key(boot.since)):
        boot.since = rule.since
    if rule.until is not None and (boot.until is None or version_key(rule.until) < version_key(boot.until)):
        boot.until = rule.until


def version_key(version: str) -> tuple[int, ...]:
    """Order versions: 0.4.6 < 0.4.6.post5 < 0.4.7."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def clock_went_back(boot: Boot) -> bool:
    """Whether ready is earlier than what came before it, by more than ranks differ: nothing it took is known."""
    ready, place = boot.ready_at_s, boot.ready
    if ready is None or place is None:
        return False
    return any(
        row.began_s is not None and row.began_s - ready > _SKEW_S and row.begin.offset < place.offset
        for row in boot.rows
    )
