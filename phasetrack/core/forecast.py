"""How long a boot will still take: what remains, piece by piece, summed by stratified draws.

The pieces are the rest of the current phase (its running step, given that it has not ended yet, and the steps
and the gap behind it) and every phase still to come. What a run shows of itself enters in three ways: the
running step lasts at least as long as it has; a moving bar tells its own pace, weighed against history by
precision; and the finished steps tell whether *this machine is slow today*, one factor shared by all pieces.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate
from math import exp, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

from phasetrack.core import shipped
from phasetrack.core.fixed import Fixed, fixed
from phasetrack.core.key import Level
from phasetrack.core.laws import DRAWS, FLOOR_S, Law, beyond, normal_strata, of_seconds, quantile, strata
from phasetrack.core.likes import COMPILING, Part
from phasetrack.core.model import Range, Status
from phasetrack.core.pace import pace
from phasetrack.core.past import COLD_FIRST_S, LEAD, TAIL, kind_of, leading_bars, step_names, timed_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.likes import Likes
    from phasetrack.core.model import BarRow, PhaseRow, Snapshot

# The part of a spread that all pieces share: the same disk, the same busy host.
_SHARED = 0.6
_ALONE = sqrt(1 - _SHARED**2)
# What a finished phase took tells of the others by no more than this, in log-seconds. A wide law is wide because starts
# differ in disk, network and caches, and one of these tells nothing of the next: over 50 starts, how far joining and
# load lay from the usual had nothing in common (r = -0.06), nor had load and capture (30 starts, r = -0.10).
_SHARED_TOLD = 0.5

# History of a phase is dropped where its own bar tells a time outside a third to three times of it.
_DROP_RATIO = 3.0
_DROP_AFTER_S = 15.0

# What nearly every start goes through, while nothing tells what this one will.
_USUAL = ("dist_init", "target_load", "kv_cache", "target_graph", "http_up", "warmup")

# What ends these is what begins next (the first rank joins; the server is ready): nothing lies between.
_NO_GAP = {"bootstrap", "warmup"}

# A capture that compiled, or did not, makes the same so much likelier for the next.
_AGREES = 4.0

# A capture of so many sizes takes a small part of its time for the first, unless kernels are compiled before it.
_MANY_SIZES = 4
# What its first size speaks against becomes so much less likely: its frames can be missing, or another process held it.
_HARDLY = 0.02

# A phase that has begun proves that these are over, printed or not.
_RANK_PHASES = ("bootstrap", "download", "dist_init", "target_load", "draft_load", "kv_cache", "draft_kv")
_GRAPH_PHASES = ("target_graph", "draft_graph")
_PASSED_BY = {
    "dist_init": ("bootstrap",),
    "target_load": ("bootstrap", "dist_init", "download"),
    "draft_load": ("bootstrap", "dist_init", "download", "target_load"),
    "kv_cache": ("bootstrap", "dist_init", "download", "target_load"),
    "draft_kv": _RANK_PHASES,
    "target_graph": ("bootstrap", "dist_init", "download", "target_load", "kv_cache"),
    "draft_graph": (*_RANK_PHASES, "target_graph"),
    "http_up": (*_RANK_PHASES, *_GRAPH_PHASES),
    "warmup": (*_RANK_PHASES, *_GRAPH_PHASES, "http_up"),
}


class Piece(NamedTuple):
    """One stretch of time that is still to pass, or to end."""

    name: str  # seeds its draws
    parts: tuple[Part, ...]
    spent_s: float = 0.0
    chance: float = 1.0


@fixed(frozen=True, slots=True)
class Forecast(Fixed):
    """What remains, before it is put in words."""

    left: Range
    phase_left: Range | None  # of the running phase
    phase: str
    spent_s: float  # in the running phase
    live: bool = False  # the running bar's own pace decides
    dropped: str = ""  # why history was dropped
    beyond: float = 1.0  # share of known starts that spend longer in the running phase


def forecast(known: Snapshot, likes: Likes) -> Forecast | None:
    """Tell what remains of a boot that is starting; None where its log holds no times.

    The same snapshot and the same past give the same answer.
    """
    rows = timed_rows(known)
    if known.now_s is None:
        return None
    if not rows:
        return _at_the_begin(known, likes)
    running = _Running(known, rows, likes)
    here = list(running.pieces())
    pieces = [*here, *_planned(known, rows, likes)]
    shift, spread = running.slow()
    draws = _sum(pieces, shift, spread)
    inside = [piece for piece in here if not piece.name.startswith("gap")]
    phase_left = _range(_sum(inside, shift, spread)) if inside else None
    row = rows[-1]
    spent = max(known.now_s - (row.began_s or known.now_s), 0.0)
    share = sum(part.weight * part.law.survival(spent) for part in likes.body(row.phase, row.occurrence))
    return Forecast(_range(draws), phase_left, row.phase, spent, running.live, running.dropped, share)


def _at_the_begin(known: Snapshot, likes: Likes) -> Forecast | None:
    """The first phase runs, and no line has told since when: all of it may be left."""
    rows = [row for row in known.phases if row.status is not Status.PENDING]
    if [(row.phase, row.status) for row in rows] != [("bootstrap", Status.RUNNING)]:
        return None
    pieces = [Piece("bootstrap", likes.body("bootstrap")), *_planned(known, rows, likes)]
    return Forecast(_range(_sum(pieces, 0.0, 1.0)), None, "bootstrap", 0.0)


def before_the_log(likes: Likes, spent_s: float) -> Forecast:
    """What a start takes from the command to ready, while nothing has been printed."""
    silent = of_seconds(shipped.SILENT_START.typical_s, shipped.SILENT_START.spread)
    pieces = [Piece("silent start", (Part(1.0, silent),), spent_s)]
    for phase in likes.typical() or ("bootstrap", *_USUAL):
        pieces += [Piece(phase, likes.body(phase)), *_gap(phase, likes.gap(phase))]
    return Forecast(_range(_sum(pieces, 0.0, 1.0)), None, "bootstrap", spent_s)


def expected(likes: Likes, phase: str, occurrence: int) -> Range | None:
    """How long a phase usually takes; None where neither like boots nor the shipped figures speak of it."""
    runs = sum(one.phase.complete for one in likes.of(phase, occurrence, Level.FAMILY))
    others = 0 if runs else sum(one.phase.complete for one in likes.of(phase, occurrence, Level.MODEL))
    if not runs and not others and not shipped.speaks_of(phase, likes.shape):
        return None
    source = f"{others} boot{'s' if others > 1 else ''} of this model on other cards"
    source = "" if runs else source if others else shipped.starts(likes.shape)
    return replace(_usual(phase, likes.body(phase, occurrence)), runs=runs, source=source)


@lru_cache(maxsize=128)
def _usual(phase: str, parts: tuple[Part, ...]) -> Range:
    return _range(_sum([Piece(phase, parts)], 0.0, 1.0))


class _Running:
    """The phase that began last: where it stands, and what is left of it."""

    def __init__(self, known: Snapshot, rows: list[PhaseRow], likes: Likes) -> None:
        self._rows, self._likes = rows, likes
        self._row = rows[-1]
        self._now = known.now_s or 0.0
        self._told: list[tuple[float, float, float]] = []  # (actual, law's mu, law's sd) of what is finished
        self.live = False
        self.dropped = ""

    def pieces(self) -> Iterator[Piece]:
        row = self._row
        gap = self._likes.gap(row.phase, row.occurrence)
        if row.status is Status.DONE and row.ended_s is not None:
            yield Piece(f"gap {row.phase}", gap, self._since(row.ended_s))
            return
        yield from self._inside(row)
        yield from _gap(row.phase, gap)

    def _since(self, at_s: float | None) -> float:
        return max(self._now - (at_s if at_s is not None else self._now), 0.0)

    def _inside(self, row: PhaseRow) -> Iterator[Piece]:
        bars = leading_bars(row)
        plan = self._likes.bars(row.phase, row.occurrence)
        if not bars and (plan is None or not plan.learned):
            yield Piece(row.phase, self._likes.body(row.phase, row.occurrence), self._since(row.began_s))
            return
        drawn = step_names(bars)
        planned = list(plan.names) if plan is not None and plan.learned else []
        names = self._names(drawn, planned)
        at = len(bars)
        if not bars:
            yield self._piece(row, LEAD, self._since(row.began_s))
        elif _is_full(bars[-1]) and at >= len(planned):
            self._tell(row, names[: at - 1], bars)
            yield self._piece(row, TAIL, self._since(bars[-1].last_s))
            return
        else:
            self._tell(row, names[: at - 1], bars)
            yield self._bar(row, names[at - 1], bars[-1])
        for name in names[at:]:
            yield self._piece(row, name, 0.0)
        yield self._piece(row, TAIL, 0.0)

    def _names(self, drawn: list[str], planned: list[str]) -> list[str]:
        """The bars drawn and those to come; a first frame without a title is the one that is due."""
        due = planned[: len(drawn)]
        known = [name if not name.startswith(" ") or k >= len(due) else due[k] for k, name in enumerate(drawn)]
        return known + planned[len(drawn) :] if drawn or planned else ["bar 1"]

    def _piece(self, row: PhaseRow, name: str, spent_s: float) -> Piece:
        return Piece(f"{row.phase} {name}", self._likes.step(row.phase, row.occurrence, name), spent_s)

    def _tell(self, row: PhaseRow, names: list[str], bars: list[BarRow]) -> None:
        """Note how long the finished bars took, against what was known of them."""
        for name, bar, after in zip(names, bars, bars[1:], strict=False):
            took = (after.began_s or 0.0) - (bar.began_s or 0.0)
            self._note(took, self._likes.step(row.phase, row.occurrence, name))

    def _bar(self, row: PhaseRow, name: str, bar: BarRow) -> Piece:
        parts = self._likes.step(row.phase, row.occurrence, name)
        spent = self._since(bar.began_s)
        if row.phase in COMPILING:
            parts = _first_size(parts, leading_bars(row), spent)
        live = None if _is_full(bar) else pace(bar, spent, self._likes.knots(row.phase, row.occurrence, name))
        if live is None:
            return Piece(f"{row.phase} {name}", parts, spent)
        if self._contradicts(parts, live, spent):
            ratio = live.median_s / max(parts, key=lambda part: part.weight).law.median_s
            if self._likes.of(row.phase, row.occurrence):
                much = f"{ratio:.0f} times slower" if ratio > 1 else f"{1 / ratio:.0f} times faster"
                self.dropped = f"this bar runs {much} than in earlier boots; their times are left aside"
            self.live = True
            return Piece(f"{row.phase} {name}", (Part(1.0, live),), spent)
        nearest = max(parts, key=lambda part: part.weight * part.law.density(live))
        self.live = live.sd < nearest.law.sd
        self._note(live.median_s, parts, live.sd)
        blended = tuple(
            part._replace(weight=part.weight * part.law.density(live), law=part.law.blend(live)) for part in parts
        )
        return Piece(f"{row.phase} {name}", blended, spent)

    def _contradicts(self, parts: tuple[Part, ...], live: Law, spent_s: float) -> bool:
        if max(spent_s, live.median_s) < _DROP_AFTER_S:
            return False
        return all(abs(live.mu - part.law.mu) > max(log(_DROP_RATIO), 2 * live.sd) for part in parts)

    # --- slow today ---------------------------------------------------------------------------------

    def _note(self, took_s: float, parts: tuple[Part, ...], sd: float = 0.0) -> None:
        actual = log(max(took_s, FLOOR_S))
        law = min((part.law for part in parts), key=lambda law: abs(law.mu - actual) / law.sd)
        rounding = 0.6 / max(took_s, law.median_s, FLOOR_S)
        self._told.append((actual, law.mu, sqrt(law.sd**2 + sd**2 + rounding**2)))

    def slow(self) -> tuple[float, float]:
        """Middle and spread of the shared factor (standard normal before anything is known)."""
        for row in self._rows[:-1]:
            if row.elapsed_s is not None and row.status is Status.DONE:
                self._note(row.elapsed_s, self._likes.body(row.phase, row.occurrence))
        precision, weighted = 1.0, 0.0
        for actual, mu, sd in self._told:
            shared = min(_SHARED * sd, _SHARED_TOLD)
            alone = sqrt(sd**2 - shared**2)
            precision += (shared / alone) ** 2
            weighted += shared * max(min(actual - mu, 3 * sd), -3 * sd) / alone**2
        return weighted / precision, precision**-0.5


def _first_size(parts: tuple[Part, ...], bars: list[BarRow], spent_s: float) -> tuple[Part, ...]:
    """Where the first of many sizes takes long, kernels are compiled; later bars find them, as where it did not."""
    bar = bars[-1]
    if (bar.total or 0.0) < _MANY_SIZES:
        return parts
    filled, empty = 1.0, 1.0
    if len(bars) > 1:
        empty = _HARDLY
    elif bar.done <= 0:
        first = of_seconds(shipped.FIRST_SIZE.typical_s, shipped.FIRST_SIZE.spread)
        filled = max(first.survival(spent_s), _HARDLY)
    elif (bar.curve[0][0] if bar.curve else bar.elapsed_s or spent_s) < COLD_FIRST_S:
        empty = _HARDLY
    factor = {None: 1.0, False: filled, True: empty}
    return tuple(part._replace(weight=part.weight * factor[part.cold]) for part in parts)


def _is_full(bar: BarRow) -> bool:
    return bar.total is not None and bar.done >= bar.total


# --- phases to come ---------------------------------------------------------------------------------


def _planned(known: Snapshot, rows: list[PhaseRow], likes: Likes) -> Iterator[Piece]:
    begun = {row.phase for row in rows}
    passed = begun.union(*(_PASSED_BY.get(phase, ()) for phase in begun))
    planned = [row.phase for row in known.phases if row.status is Status.PENDING and row.phase != "ready"]
    if "server_args" not in known.facts and not planned:
        planned = likes.typical() or list(_USUAL)
    others = [phase for phase in likes.typical() if phase not in planned]
    for phase in [*planned, *others]:
        if phase in passed or phase in {"ready", "serving", "download"}:
            continue
        chance = likes.chance(phase, planned=phase in planned)
        if chance > 0.02:
            yield Piece(phase, _so_far(known, phase, likes.body(phase)), 0.0, chance)
            yield from _gap(phase, likes.gap(phase), chance)


def _gap(phase: str, parts: tuple[Part, ...], chance: float = 1.0) -> list[Piece]:
    """What passes between a phase's end and the next begin."""
    return [] if phase in _NO_GAP else [Piece(f"gap {phase}", parts, 0.0, chance)]


def _so_far(known: Snapshot, phase: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """What this run has shown of its kernels' cache counts for the phases to come."""
    told = {kind_of(row.cache) for row in known.phases if row.phase in COMPILING and row.cache is not None}
    if phase not in COMPILING or len(told) != 1:
        return parts
    was_cold = "cold" in told
    return tuple(
        part if part.cold is None else part._replace(weight=part.weight * (_AGREES if part.cold is was_cold else 1.0))
        for part in parts
    )


# --- sums -------------------------------------------------------------------------------------------


def _sum(pieces: list[Piece], shift: float, spread: float) -> list[float]:
    """Draw all pieces and add them up; sorted."""
    total = [0.0] * DRAWS
    for piece in pieces:
        left = _draw(piece, shift, spread)
        total = [a + b for a, b in zip(total, left, strict=True)]
    return sorted(total)


# A screen asks every second, and of all pieces only the running one has changed by then.
@lru_cache(maxsize=512)
def _draw(piece: Piece, shift: float, spread: float) -> list[float]:
    """What is left of one piece, in each draw; not to be changed by who gets it."""
    shared = [shift + spread * z for z in normal_strata("slow today")]
    phase = piece.name.partition(" ")[0]
    kind = "kernels" if phase in COMPILING else f"{piece.name} kind"  # one cache serves all captures
    parts = _still_possible(piece)
    laws = [parts[k].law for k in _choices(kind, tuple(round(part.weight, 3) for part in parts))]
    if piece.spent_s <= 0:
        alone = normal_strata(piece.name)
        drawn = [
            exp(law.mu + law.sd * (_SHARED * t + _ALONE * z)) for law, t, z in zip(laws, shared, alone, strict=True)
        ]
    else:
        drawn = [
            beyond(law.mu + law.sd * _SHARED * t, law.sd * _ALONE, piece.spent_s, u) - piece.spent_s
            for law, t, u in zip(laws, shared, strata(piece.name), strict=True)
        ]
    if piece.chance >= 1.0:
        return drawn
    return [value if u <= piece.chance else 0.0 for value, u in zip(drawn, strata(f"{phase} comes"), strict=True)]


@lru_cache(maxsize=512)
def _choices(name: str, weights: tuple[float, ...]) -> tuple[int, ...]:
    """Which law holds in each draw."""
    bounds = list(accumulate(weights))[:-1]
    return tuple(bisect_left(bounds, u) for u in strata(name))


def _still_possible(piece: Piece) -> tuple[Part, ...]:
    """The laws, weighed by how well each fits with what has been spent."""
    weights = [part.weight * max(part.law.survival(piece.spent_s), 1e-6) for part in piece.parts]
    whole = sum(weights)
    return tuple(part._replace(weight=weight / whole) for weight, part in zip(weights, piece.parts, strict=True))


def _range(draws: list[float]) -> Range:
    return Range(quantile(draws, 0.1), quantile(draws, 0.5), quantile(draws, 0.9))
