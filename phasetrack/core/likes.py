"""Like boots, and what they teach of each phase and each step of it.

One object per boot that is followed: it sorts the past boots by likeness once and remembers each law it was
asked for. A phase that ran with filled caches and one that ran with empty ones are two laws, not one wide one;
which of them holds is told by the run itself (``forecast``).
"""

from __future__ import annotations

from math import log
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core import shipped
from phasetrack.core.fixed import Fixed, fixed
from phasetrack.core.key import (
    Level,
    billions,
    cards_of,
    device,
    has_own_draft,
    known_size,
    likeness,
    nodes_of,
    same_gpu,
)
from phasetrack.core.laws import FLOOR_S, Law, Seen, learn, of_seconds
from phasetrack.core.past import KNOTS, LEAD, TAIL, kind_of
from phasetrack.core.plan import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from phasetrack.core.model import BootKey, PastBoot, PastPhase, Priors, Range, Value

# How far boots of each level lie from this one, in log-seconds. What the machine decides (imports, joining,
# HTTP) is alike for every model on it.
_APART = (0.0, 0.12, 0.35, 0.45, 0.7)
_APART_OF_MACHINE = (0.0, 0.08, 0.12, 0.15, 0.3, 0.25)
# Boots on other cards ran on another machine, with another disk: pairs of one size lie as far apart as public boots do
# (1.4 in their loads, 0.95 in their captures, 0.6 in what the machine decides), twice as far as on the same cards.
_ELSEWHERE = len(Level)
_APART_ELSEWHERE, _APART_ELSEWHERE_OF_MACHINE = 1.15, 0.6
COMPILING = {"target_graph", "draft_graph", "warmup"}
_OF_MACHINE = {"bootstrap", "http_up", "kv_cache", "draft_kv", "dist_init"}

# The same before anything is known of a boot but what was started here lately.
_GUESS_SAME, _GUESS_ANY = 0.15, 0.6

# Two kinds of a phase are two laws where their middles lie this far apart.
_TWO_KINDS_RATIO = 1.8
# Kernels that were compiled once are found by the next boot, unless the cache is lost each time: how likely the
# next capture is cold again after none, one, two, three cold ones in a row.
_COLD_AGAIN = (0.08, 0.5, 0.7, 0.85)
# The first boot of a set-up finds kernels of its relatives, or none.
_COLD_FIRST = 0.4
# One in so many phases has a cause that no history holds (another program's lock, a stopped process, a new kernel);
# its law is wide. Without it, a phase that outlasts its history would always be about to end.
_SURPRISE, _SURPRISE_SPREAD, _SURPRISE_LATER = 0.05, 1.1, 0.5


class Part(NamedTuple):
    """One of the laws that may hold, and how often it did."""

    weight: float
    law: Law
    cold: bool | None = None  # of a phase that compiles: with empty caches, or filled ones


class Before(NamedTuple):
    """What is believed of a phase before any boot here; of a capture also by kind."""

    whole: Law
    filled: Law  # with filled caches
    empty: Law
    kinds: bool  # whether these two differ


class OfPhase(NamedTuple):
    """One phase of a past boot, with how alike the boot is."""

    level: Level
    boot: PastBoot
    phase: PastPhase
    elsewhere: bool = False  # on another machine


@fixed(frozen=True, slots=True)
class Bars(Fixed):
    """The steps to expect in a phase with bars, by name, and whether like boots told them."""

    names: tuple[str, ...]  # of the bars, in order
    learned: bool


class Likes:
    """Past boots by likeness to one that is followed."""

    def __init__(
        self,
        key: BootKey | None,
        args: Mapping[str, Value],
        priors: Priors | None,
        weights_bytes: int | None = None,
        engine: str = shipped.SGLANG,
    ) -> None:
        """Sort the past boots.

        Args:
            key: of the boot that is followed; None while nothing is known of it.
            args: its ``server_args``.
            priors: past boots, the newest first.
            weights_bytes: what one rank has loaded, where it has.
            engine: its name.
        """
        self.shape = _shape(args, weights_bytes, engine)
        boots = priors.boots if priors is not None else ()
        graded = [(likeness(key, past.key) if key is not None else Level.EXACT, past) for past in boots]
        self.graded = sorted(graded, key=lambda pair: pair[0])  # stable: the newest first within a level
        self._phases: dict[tuple[str, int], list[OfPhase]] = {}
        for level, boot in self.graded:
            elsewhere = key is not None and level <= Level.SIZE and same_gpu(key, boot.key) is False
            for phase in boot.phases:
                one = OfPhase(level, boot, phase, elsewhere)
                self._phases.setdefault((phase.phase, phase.occurrence), []).append(one)
        self._parts: dict[tuple[str, ...], tuple[Part, ...]] = {}
        self.usual: dict[tuple[str, int], tuple[Range | None, float | None]] = {}  # of a phase; for eta to remember
        self._keyed = key is not None
        self._guess = 0.0 if key is not None else _guess(boots)

    def count(self, worst: Level = Level.FAMILY) -> int:
        """How many boots that got ready are at least so alike."""
        return sum(level <= worst and boot.startup_s is not None for level, boot in self.graded)

    def others(self, worst: Level = Level.FAMILY) -> int:
        """How many are so alike and did not get ready: they teach the phases that they finished."""
        return sum(level <= worst for level, _ in self.graded) - self.count(worst)

    def of(self, phase: str, occurrence: int = 1, worst: Level = Level.ANY) -> list[OfPhase]:
        """What like boots tell of a phase."""
        return [one for one in self._phases.get((phase, occurrence), ()) if one.level <= worst]

    # --- laws ---------------------------------------------------------------------------------------

    def body(self, phase: str, occurrence: int = 1) -> tuple[Part, ...]:
        """How long a phase takes."""
        return self._learned(("body", phase, str(occurrence)), lambda: self._before(phase, 1.0), _body)

    def gap(self, phase: str, occurrence: int = 1) -> tuple[Part, ...]:
        """How long it takes from a phase's end to the next begin."""
        return self._learned(("gap", phase, str(occurrence)), lambda: _one_kind(shipped.gap(phase, self.shape)), _gap)

    def step(self, phase: str, occurrence: int, name: str) -> tuple[Part, ...]:
        """How long one step of a phase takes."""
        what = ("step", phase, str(occurrence), name)
        return self._learned(what, lambda: self._before_step(phase, name), _step(name))

    def _before_step(self, phase: str, name: str) -> Before:
        """The shipped figures of one step."""
        lead, bar, tail = shipped.shares(phase)
        if name not in {LEAD, TAIL}:  # kernels are compiled inside a bar
            return self._before(phase, bar)
        share, spread = (lead, shipped.LEAD_SPREAD) if name == LEAD else (tail, shipped.TAIL_SPREAD)
        figure = shipped.figure(phase, self.shape)
        return _one_kind(figure._replace(typical_s=figure.typical_s * share, spread=spread))

    def _before(self, phase: str, share: float) -> Before:
        """The shipped figures of a share of a phase."""
        figure = shipped.figure(phase, self.shape)
        whole = figure._replace(typical_s=figure.typical_s * share)
        kinds = shipped.captures(self.shape) if phase == "target_graph" else None
        if kinds is None:
            return _one_kind(whole)
        filled, empty = (of_seconds(one.typical_s * share, one.spread) for one in kinds)
        return _one_kind(whole)._replace(filled=filled, empty=empty, kinds=True)

    def _learned(
        self,
        what: tuple[str, ...],
        before: Callable[[], Before],
        measure: Callable[[PastPhase], tuple[float, bool] | None],
    ) -> tuple[Part, ...]:
        known = self._parts.get(what)
        if known is None:
            known = self._parts[what] = tuple(self._kinds(what[1], int(what[2]), before(), measure))
        return known

    def _teaching(self, phase: str, occurrence: int) -> list[OfPhase]:
        """What past boots teach of a phase.

        Nodes join when the last of them is there: who starts them decides, not the machine. So only the same set-up
        tells how long several nodes wait for each other, and they tell nothing of how long one takes alone.
        """
        if phase != "dist_init" or not self._keyed:
            return self.of(phase, occurrence)
        if self.shape.nodes > 1:
            return self.of(phase, occurrence, Level.FAMILY)
        return [one for one in self.of(phase, occurrence) if nodes_of(one.boot.key) == 1]

    def _kinds(
        self, phase: str, occurrence: int, before: Before, measure: Callable[[PastPhase], tuple[float, bool] | None]
    ) -> Iterator[Part]:
        apart = self._apart(phase)
        seen = list(_observations(self._teaching(phase, occurrence), measure))
        laws = [Part(1.0, learn(before.whole, [one for one, _ in seen], apart))]
        marked = "cold" if phase in COMPILING else "warm"
        these = [one for one, cache in seen if cache == marked]
        others = [one for one, cache in seen if cache != marked]
        cold = True if marked == "cold" else None
        if share := _cold_share(seen, kinds=before.kinds) if cold else _warm_share(these, others):
            laws = [
                Part(share, learn(before.empty, these, apart), cold),
                Part(1.0 - share, learn(before.filled, others, apart), cold and False),
            ]
        yield from (part._replace(weight=part.weight * (1.0 - _SURPRISE)) for part in laws)
        middle = max(before.whole.mu, *(part.law.mu for part in laws)) + _SURPRISE_LATER
        yield Part(_SURPRISE, Law(middle, _SURPRISE_SPREAD))

    def _apart(self, phase: str) -> dict[int, float]:
        """How far boots of each group lie from this one."""
        of_machine = phase in _OF_MACHINE
        apart = dict(enumerate(_APART_OF_MACHINE if of_machine else _APART))
        apart[Level.EXACT] += self._guess
        apart[_ELSEWHERE] = _APART_ELSEWHERE_OF_MACHINE if of_machine else _APART_ELSEWHERE
        return apart

    # --- what to expect -----------------------------------------------------------------------------

    def bars(self, phase: str, occurrence: int = 1) -> Bars | None:
        """The bars that a phase draws; None where it draws none."""
        like = [one for one in self.of(phase, occurrence, Level.FAMILY) if one.phase.complete]
        if like:
            best = like[0].phase.steps
            return Bars(tuple(step.name for step in best if step.name not in {LEAD, TAIL}), True) if best else None
        return Bars((), False) if phase in shipped.BAR_SHARES or phase.endswith("_graph") else None

    def knots(self, phase: str, occurrence: int, name: str) -> tuple[float, ...]:
        """A bar's learned curve: the share of its time at each further 5 % done; empty where none is known."""
        curves = [
            step.knots
            for one in self.of(phase, occurrence, Level.RELEASE)
            for step in one.phase.steps
            if step.name == name and len(step.knots) == KNOTS
        ][:8]
        return tuple(sum(column) / len(curves) for column in zip(*curves, strict=True)) if curves else ()

    def chance(self, phase: str, *, planned: bool) -> float:
        """How likely a phase that has not begun will come; an unplanned one only where the same set-up had it."""
        boots = [boot for level, boot in self.graded if level <= (Level.FAMILY if planned else Level.RELEASE)]
        seen = sum(any(one.phase == phase for one in boot.phases) for boot in boots)
        whole = sum(boot.startup_s is not None or any(one.phase == phase for one in boot.phases) for boot in boots)
        return (seen + 1.9) / (whole + 2.0) if planned else seen / (whole + 0.5)

    def typical(self) -> list[str]:
        """The phases of like boots."""
        boots = [boot for level, boot in self.graded if level <= Level.FAMILY]
        return list(dict.fromkeys(phase.phase for boot in boots for phase in boot.phases))

    def longest_s(self, phase: str, occurrence: int) -> tuple[int, float] | None:
        """The longest that like boots spent in a phase, and how many they are; None where no one finished it."""
        took = [one.phase.elapsed_s for one in self.of(phase, occurrence, Level.FAMILY) if one.phase.complete]
        return (len(took), max(took)) if took else None


def _guess(boots: tuple[PastBoot, ...]) -> float:
    """How far a boot of which nothing is known yet lies from the last ones: little where they were all the same."""
    return _GUESS_SAME if len({boot.key.release for boot in boots}) <= 1 else _GUESS_ANY


def _shape(args: Mapping[str, Value], weights_bytes: int | None, engine: str) -> shipped.Shape:
    return shipped.Shape(
        size=known_size(args, weights_bytes) or "any",
        cards=cards_of(args) if args else 0,
        engine=engine,
        ascend=device(args) == "npu",
        nodes=number(args, "nnodes", 1),
        own_draft=has_own_draft(args) or (billions(args) or 0.0) < 100,
        workers=number(args, "tokenizer_worker_num", 1),
        eager=args.get("disable_cuda_graph") is True,
    )


def _body(phase: PastPhase) -> tuple[float, bool] | None:
    return phase.elapsed_s, phase.complete


def _gap(phase: PastPhase) -> tuple[float, bool] | None:
    return None if phase.gap_s is None else (phase.gap_s, True)


def _step(name: str) -> Callable[[PastPhase], tuple[float, bool] | None]:
    def measure(phase: PastPhase) -> tuple[float, bool] | None:
        found = next((step for step in phase.steps if step.name == name), None)
        return None if found is None else (found.elapsed_s, found.complete)

    return measure


def _one_kind(figure: shipped.Figure) -> Before:
    law = of_seconds(figure.typical_s, figure.spread)
    return Before(law, law, law, kinds=False)


def _observations(
    ones: list[OfPhase], measure: Callable[[PastPhase], tuple[float, bool] | None]
) -> Iterator[tuple[Seen, str | None]]:
    for one in ones:
        value = measure(one.phase)
        if value is not None:
            group = _ELSEWHERE if one.elsewhere else int(one.level)
            yield Seen(value[0], group, one.boot.key.exact, value[1]), kind_of(one.phase.cache)


def _cold_share(seen: list[tuple[Seen, str | None]], *, kinds: bool) -> float:
    """How likely a phase compiles; 0 where no like boot had to, and none elsewhere is known to have."""
    near = [cache == "cold" for one, cache in seen if one.group <= Level.FAMILY]
    own = [cache == "cold" for one, cache in seen if one.group == Level.EXACT]
    if not any(near):
        return shipped.COLD_SHARE / (1 + len(near)) if kinds else 0.0
    if not own:
        return _COLD_FIRST
    in_a_row = own.index(False) if False in own else len(own)
    return _COLD_AGAIN[min(in_a_row, len(_COLD_AGAIN) - 1)]


def _warm_share(warm: list[Seen], others: list[Seen]) -> float:
    """How likely a load finds its pages in memory; 0 where boots do not tell two kinds apart."""
    if not _apart(warm, others):
        return 0.0
    near, far = _near(warm), _near(others)
    return (near + 0.3) / (near + far + 0.6)


def _near(seen: list[Seen]) -> float:
    """How many of the observations are of like boots; the newest counts for most."""
    near = [one for one in seen if one.group <= Level.FAMILY]
    return sum(0.8**k for k in range(len(near)))


def _apart(these: list[Seen], others: list[Seen]) -> bool:
    middles = []
    for kind in (these, others):
        near = [log(max(one.seconds, FLOOR_S)) for one in kind if one.complete and one.group <= Level.FAMILY]
        if not near:
            return False
        middles.append(median(near))
    return abs(middles[0] - middles[1]) >= log(_TWO_KINDS_RATIO)
