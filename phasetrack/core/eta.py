"""How long still: a range with its source, or the reason why there is none.

States: ``none`` (nothing to tell), ``prior`` (shipped figures), ``learned`` (like boots of this machine), ``live``
(the running bar's own pace decides), ``overdue`` (longer than all that is known: a number would be invented).

What is told is steady: within a tenth the finish stays where it was told; it moves earlier freely, and later only
with a reason that is told along. That needs a memory, which is an argument and a result (``Told``), never a state
of this module. tqdm's own estimate is not used: it knows neither the work after a full bar nor the phases behind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from phasetrack.core import shipped
from phasetrack.core.fixed import Fixed, fixed
from phasetrack.core.forecast import before_the_log, expected, forecast
from phasetrack.core.key import Level, key_of
from phasetrack.core.likes import Likes
from phasetrack.core.model import Eta, Outcome, PhaseInfo, Range, Silence, Status, VerdictState
from phasetrack.core.past import cache_of
from phasetrack.core.say import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from phasetrack.core.forecast import Forecast
    from phasetrack.core.model import BootKey, PhaseRow, Priors, Snapshot

# Within this share of what remains, or this many seconds, the finish stays where it was told.
_STEADY, _STEADY_S = 0.1, 1.5
# A reason is told for so long.
_WHY_S = 60.0
# Beyond all like boots means beyond their longest by this factor and these seconds (stamps have whole seconds).
_OVERDUE_TIMES, _OVERDUE_S = 1.1, 2.0
_ENOUGH_BOOTS = 3
# With few like boots: beyond all but this share of what is believed.
_OVERDUE_SHARE = 0.02
_OVERDUE_FROM_S = 20.0
# Asking again: never in a hurry, never longer than a failure may go unseen.
_CHECK_MIN_S, _CHECK_MAX_S, _CHECK_OVERDUE_S, _CHECK_NONE_S = 5.0, 180.0, 60.0, 10.0
# A log that holds this much text and no engine line is not a start that is about to begin: with a process of the
# server in sight, and without one.
_EMPTY_BYTES, _PREFACE_BYTES = 65536, 2048
_SOURCES = (
    (Level.EXACT, "{} like boot{}"),
    (Level.RELEASE, "{} boot{} of this set-up with another release"),
    (Level.FAMILY, "{} boot{} of this model family"),
    (Level.MODEL, "{} boot{} of this model on other cards"),
)
_NO_ROW = {"ready", "serving"}


@fixed(frozen=True, slots=True)
class Told(Fixed):
    """What was told last, for the next estimate to be steady against."""

    boot: int
    phase: str
    finish_s: float  # log clock
    runs: int
    why: str = ""
    since_s: float = 0.0  # log clock: since when the finish stands there


class Past:
    """Past boots sorted for one boot; sorts again only when what they are sorted by changes."""

    def __init__(self) -> None:
        """Know nothing."""
        self._for: tuple[BootKey | None, int | None, str] | None = None
        self._priors: Priors | None = None
        self._likes: Likes | None = None

    def likes(self, known: Snapshot, priors: Priors | None) -> Likes:
        """Like boots of the shown boot."""
        weights, args = known.facts.get("weights_bytes"), known.facts.get("server_args")
        weights_bytes = weights if isinstance(weights, int) else None
        now = (key_of(known), weights_bytes, shipped.SGLANG if known.engine is None else known.engine.name)
        if self._likes is None or self._for != now or self._priors is not priors:
            self._for, self._priors = now, priors
            self._likes = Likes(now[0], args if isinstance(args, dict) else {}, priors, *now[1:])
        return self._likes


def estimate(known: Snapshot, likes: Likes, told: Told | None = None) -> tuple[Snapshot, Told | None]:
    """Add how long still, what each phase usually takes, and when to ask again.

    Args:
        known: everything but these.
        likes: past boots by likeness.
        told: what was told last; None where nothing was.

    Returns:
        The snapshot with its estimate, and what has now been told. Same arguments, same result.
    """
    known = replace(known, phases=tuple(_with_usual(known, row, likes) for row in known.phases))
    if known.outcome is Outcome.NONE:
        look_s = None if known.ended else _next_look(known.silent_s)
        return replace(known, eta=_before(known, likes), next_check_s=look_s), None
    if known.outcome is not Outcome.STARTING or known.ended:
        return replace(known, eta=None, next_check_s=None), None
    found = forecast(known, likes)
    if found is None or known.now_s is None:
        return replace(known, eta=_none("no line of this start has a time"), next_check_s=15.0), None
    if known.activity is not None and known.activity.id == "hold":
        return replace(known, eta=_none("the launch is held until it is activated"), next_check_s=60.0), None
    late = _overdue(known, found, likes)
    if late:
        runs, source = _source(likes)
        eta = replace(_none(late), basis="overdue", runs=runs, source=source)
        return replace(known, eta=eta, next_check_s=_CHECK_OVERDUE_S), told
    now_told = _settle(known, found, likes, told)
    eta = _in_figures(known, found, likes, now_told)
    return replace(known, eta=eta, next_check_s=_next_check(found)), now_told


def _next_look(silent_s: float | None) -> float:
    """When to look at a log again that holds no engine's line: the longer it has said nothing, the later."""
    return _two(min(max(_CHECK_NONE_S, (silent_s or 0.0) / 4), _CHECK_MAX_S))


def withheld(known: Snapshot) -> Snapshot:
    """The same snapshot, without an estimate where evidence has ended the boot or nothing moves."""
    if known.eta is None:
        return known
    if known.outcome is Outcome.NONE and known.evidence is not None and known.evidence.orphan_log:
        return replace(known, eta=None, next_check_s=None)
    if known.outcome not in {Outcome.STARTING, Outcome.NONE}:
        return replace(known, eta=None, next_check_s=None)
    if known.verdict.state is VerdictState.OVERDUE and known.eta.mid_s is not None:
        return replace(known, eta=_none("it is silent for longer than is known"))
    if known.verdict.state not in {VerdictState.SUSPECT, VerdictState.STUCK}:
        return known
    return replace(known, eta=_none("nothing moves; no estimate while that lasts"))


# --- what each phase usually takes ------------------------------------------------------------------


def _with_usual(known: Snapshot, row: PhaseRow, likes: Likes) -> PhaseRow:
    if row.phase in _NO_ROW or row.status is Status.SKIPPED:
        return row
    usual, fastest_s = _usual(likes, row.phase, row.occurrence)
    if usual is not None:
        row = replace(row, expected=usual)
    cache = cache_of(known, row, fastest_s)
    return row if cache == row.cache else replace(row, cache=cache)  # copies are most of what a look costs


def _usual(likes: Likes, phase: str, occurrence: int) -> tuple[Range | None, float | None]:
    """What a phase usually takes, and the least that the same boot took; worked out once for the same past."""
    known = likes.usual.get((phase, occurrence))
    if known is None:
        fast = [one.phase.elapsed_s for one in likes.of(phase, occurrence, Level.RELEASE) if one.phase.complete]
        found = expected(likes, phase, occurrence)
        known = None if found is None else _rounded(found), min(fast, default=None)
        likes.usual[phase, occurrence] = known
    return known


def known_silences(phases: Mapping[str, PhaseInfo], likes: Likes) -> Mapping[str, PhaseInfo]:
    """What each phase is known for, joined by what like boots were silent for and healthy."""
    return {name: _joined(info, likes) for name, info in phases.items()}


def _joined(info: PhaseInfo, likes: Likes) -> PhaseInfo:
    seen = sorted(
        one.phase.silence_s
        for one in likes.of(info.id, 1, Level.FAMILY)
        if one.phase.complete and one.phase.silence_s is not None
    )
    if not seen or info.silence is None:
        return info
    typical = max(info.silence.typical_s, seen[len(seen) // 2] * 1.1)
    long = max(info.silence.long_s, seen[-1] * 1.25, typical)
    said = f"{len(seen)} like boots on this machine were silent here for up to {duration(seen[-1])}"
    return replace(info, silence=Silence(typical, long, info.silence.n + len(seen), f"{said}; {info.silence.source}"))


# --- states -----------------------------------------------------------------------------------------


def _none(why: str) -> Eta:
    return Eta(None, None, None, "none", 0, why=why)


def _before(known: Snapshot, likes: Likes) -> Eta | None:
    """Before the first engine line: the whole of a start, as far as anything is known of it."""
    read = sum(source.bytes for source in known.sources)
    seen = known.evidence is not None and bool(known.evidence.processes)
    if known.ended or read > (_EMPTY_BYTES if seen else _PREFACE_BYTES):
        return None
    found = before_the_log(likes, known.silent_s or 0.0)
    left = _rounded(found.left)
    runs = likes.count()
    here = f"the last {runs} ready boots here" if runs > 1 else "the last ready boot here"
    source = _sources(likes, runs, here)
    return Eta(left.low_s, left.mid_s, left.high_s, "learned" if runs else "prior", runs, source, done_fraction=0.0)


def _overdue(known: Snapshot, found: Forecast, likes: Likes) -> str:
    """Say so where the phase lasts longer than all that is known; empty where it does not."""
    row = _row(known, found)
    if found.live or row is None or row.status is not Status.RUNNING:
        return ""
    longest = likes.longest_s(row.phase, row.occurrence)
    if longest is not None and longest[0] >= _ENOUGH_BOOTS:
        if found.spent_s <= longest[1] * _OVERDUE_TIMES + _OVERDUE_S:
            return ""
        return f"{row.title} lasts longer than in all {longest[0]} like boots (at most {duration(longest[1])})"
    if found.beyond >= _OVERDUE_SHARE or found.spent_s < _OVERDUE_FROM_S:
        return ""
    return f"{row.title} lasts longer than in nearly all known starts"


def _row(known: Snapshot, found: Forecast) -> PhaseRow | None:
    rows = [row for row in known.phases if row.phase == found.phase and row.began_s is not None]
    return rows[-1] if rows else None


def _source(likes: Likes) -> tuple[int, str]:
    """Where an estimate comes from: the most alike boots that there are, and how many."""
    for level, words in _SOURCES:
        runs = likes.count(level)
        if runs:
            return runs, _sources(likes, runs, words.format(runs, "s" if runs > 1 else ""))
    return 0, _sources(likes, 0, "")


def _sources(likes: Likes, runs: int, here: str) -> str:
    """Few boots of this machine are held against the public ones; those that did not get ready teach phases."""
    if runs >= _ENOUGH_BOOTS:
        return here
    failed = likes.others(Level.MODEL)
    more = f"the finished phases of {failed} boot{'s' if failed > 1 else ''} here that did not get ready"
    return " and ".join(filter(None, (here, "" if runs or not failed else more, shipped.source(likes.shape))))


# --- what is told -----------------------------------------------------------------------------------


def _settle(known: Snapshot, found: Forecast, likes: Likes, told: Told | None) -> Told:
    """Keep the finish where it was told, unless it comes earlier or there is a reason to move it later."""
    now, runs = known.now_s or 0.0, likes.count()
    fresh = Told(known.boot, found.phase, now + found.left.mid_s, runs, found.dropped, now)
    if told is None or told.boot != known.boot:
        return fresh
    moved = fresh.finish_s - told.finish_s
    if abs(moved) <= max(_STEADY * found.left.mid_s, _STEADY_S):
        return replace(told, phase=found.phase, runs=runs)
    if moved < 0:
        return replace(fresh, why=found.dropped)
    why = found.dropped or _reason(known, found, told, runs)
    return replace(fresh, why=why) if why else replace(told, phase=found.phase, runs=runs)


def _reason(known: Snapshot, found: Forecast, told: Told, runs: int) -> str:
    """Why the finish is later than was told; empty where nothing explains it."""
    row = _row(known, found)
    if runs != told.runs:
        return "earlier boots are known now"
    if row is not None and row.expected is not None and found.spent_s > row.expected.mid_s:
        return f"{row.title} lasts longer than usual ({duration(row.expected.mid_s)})"
    if found.live and row is not None:
        return f"{row.title}: the bar moves more slowly than before"
    done = [one for one in known.phases if one.status is Status.DONE and one.elapsed_s is not None]
    slow = [one for one in done if one.expected is not None and (one.elapsed_s or 0.0) > one.expected.mid_s + 1]
    if slow:
        last = max(slow, key=lambda one: one.began_s or 0.0)
        usual = duration(last.expected.mid_s if last.expected else None)
        return f"{last.title} took {duration(last.elapsed_s)}, usually {usual}"
    if row is None:
        return ""
    if found.phase != told.phase:
        return f"{row.title} was not expected"
    return f"{row.title} lasts longer than was told" if told.finish_s <= (known.now_s or 0.0) else ""


def _in_figures(known: Snapshot, found: Forecast, likes: Likes, told: Told) -> Eta:
    now = known.now_s or 0.0
    runs, source = _source(likes)
    mid = max(told.finish_s - now, min(found.left.mid_s, 1.0))
    left = _rounded(Range(min(found.left.low_s, mid), mid, max(found.left.high_s, mid)))
    basis = "live" if found.live else "learned" if runs else "prior"
    spent = max(now - (known.started_at_s if known.started_at_s is not None else now), 0.0)
    return Eta(
        left.low_s,
        left.mid_s,
        left.high_s,
        basis,
        runs,
        source=("the bar's own pace, " if found.live else "") + source,
        why=told.why if now - told.since_s <= _WHY_S else "",
        done_fraction=round(spent / (spent + mid), 4) if spent + mid > 0 else 0.0,
        finish_s=round(now + mid, 1),
        phase_left=None if found.phase_left is None else _rounded(found.phase_left),
    )


def _rounded(value: Range) -> Range:
    """Two significant figures, whole seconds, never nothing."""
    return replace(value, low_s=_two(value.low_s), mid_s=_two(value.mid_s), high_s=_two(value.high_s))


def _two(seconds: float) -> float:
    return float(f"{seconds:.2g}") if seconds >= 10 else float(max(round(seconds), 1))


def _next_check(found: Forecast) -> float:
    """When asking again will tell something new: about when the phase ends, or the whole."""
    left = found.left.low_s if found.phase_left is None else min(found.phase_left.mid_s, found.left.low_s)
    return _two(min(max(left, _CHECK_MIN_S), _CHECK_MAX_S))
