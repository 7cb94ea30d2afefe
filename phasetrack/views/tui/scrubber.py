"""What a replay adds to every picture of the screen: the clock, what came true, and the scrubber; and its keys.

From top to bottom above the key line: how it is played and which moment is shown; what came true of what was said
at that moment; the phases by name; the way, with the outcome as a mark. Where the height does not suffice the
names go first, then what came true, then the clock and the way share a line.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rich.cells import cell_len

from phasetrack.core.model import Outcome, Range
from phasetrack.views.tui.acts import Ask, Size, Steer
from phasetrack.views.tui.look import BLANK, Line, Span
from phasetrack.views.tui.replay import Faster, PlayPause, Skip, SkipPhase, ToShare
from phasetrack.views.words import clock, duration, span_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from phasetrack.core.hindsight import Hindsight
    from phasetrack.views.tui.acts import Act
    from phasetrack.views.tui.feed import News
    from phasetrack.views.tui.look import Look
    from phasetrack.views.tui.replay import Replay, Stage, Wish

KEYS = (
    ("space", "play"), ("← →", "10 s"), ("[ ]", "phase"), ("< >", "speed"), (":", "go to"), ("p", "post-mortem"),
    ("b", "boots"), ("l", "log"), ("0-9", "tenths"), ("?", "help"), ("q", "quit"),
)  # fmt: skip
GO_TO = "go to (time, line, phase, 40%, +90s): "
_SKIP_S = 10.0
_CLICK = "@"  # a click on the scrubber is this key and a share
_WISHES: dict[str, Wish] = {
    " ": PlayPause(), "left": Skip(-_SKIP_S), "right": Skip(_SKIP_S), "[": SkipPhase(-1), "]": SkipPhase(1),
    "<": Faster(-1), ">": Faster(1),
}  # fmt: skip
# A name shorter than this says nothing.
_NAME = 3
_HOWS = {
    "exact": "recorded", "stamped": "as stamped", "inferred": "inferred from the bar", "spread": "between two stamps",
}  # fmt: skip
_DEMO = "Demo: a recording of a real start, with exact times. q leaves, ? tells the keys."


def keys_of(look: Look) -> tuple[tuple[str, str], ...]:
    """The key line of a replay's main screen."""
    return tuple((key.replace("← →", "<- ->"), word) for key, word in KEYS) if look.ascii else KEYS


def steer(key: str) -> Act | None:
    """What a key means to a replay; None: nothing."""
    if key in _WISHES:
        return Steer(_WISHES[key])
    if key.isdecimal() and len(key) == 1:
        return Steer(ToShare(int(key) / 10))
    if key.startswith(_CLICK) and len(key) > 1:
        return Steer(ToShare(float(key[1:])))
    return Ask(GO_TO) if key == ":" else None


def framed(draw: Callable[[Size], list[Line]], news: News, size: Size, look: Look) -> list[Line]:
    """A picture with the scrubber above its key line, exactly ``size.height`` lines.

    Args:
        draw: the picture in less height.
        news: of a replay.
        size: of the screen.
        look: glyphs.
    """
    replay = news.replay
    if replay is None or size.height < 4:
        return draw(size)
    head = [look.line(look.cut(_DEMO, size.width), "bold")] if replay.demo and size.height >= 14 else []
    foot = scrubber(replay, size, look)
    inner = Size(size.width, size.height - len(head) - len(foot))
    lines = draw(inner)
    lines = [*lines, *[BLANK] * (inner.height - len(lines))][: inner.height]
    return [*head, *lines[:-1], *foot, lines[-1]]


def scrubber(replay: Replay, size: Size, look: Look) -> list[Line]:
    """As many lines as the height affords."""
    width = size.width
    if size.height < 12:
        words = look.cut(_clock_words(replay, look, brief=width < 60), max(width - 14, width // 2))
        way = bar(replay, width - cell_len(words) - 1, look)
        return [Line((look.span(words + " ", "bold"), *way.spans))]
    lines = [transport(replay, width, look)]
    if size.height >= 16:
        lines.append(came_true(replay, width, look))
    if size.height >= 20:
        lines.append(names(replay, width, look))
    return [*lines, bar(replay, width, look)]


# --- the clock ---------------------------------------------------------------------------------------


def transport(replay: Replay, width: int, look: Look) -> Line:
    """How it is played, and which moment is shown; an answer to the last wish instead of the small print."""
    head = _clock_words(replay, look)
    parts = [replay.said] if replay.said else list(_small_print(replay))
    line = look.cut(look.dot.join([head, *parts]), width)
    return Line((look.span(line[: len(head)], "bold"), look.span(line[len(head) :], "" if replay.said else "dim")))


def _clock_words(replay: Replay, look: Look, *, brief: bool = False) -> str:
    """What it does, the moment, and how far that is; a figure that is cut would be another figure."""
    speed = f"{replay.speed:g}×"
    if replay.going is not None:
        state = f"{look.between} {100 * min(max(replay.going, 0.0), 0.99):.0f} % of the way"
    elif replay.playing:
        state = f"{look.running} {speed}"
    else:
        state = look.stop if brief else f"{look.stop} paused, {speed}"
    mark = "~" if replay.how in {"inferred", "spread"} else ""
    moment = "no clock" if replay.clock_s is None else mark + clock(replay.clock_s)
    spent, total = duration(round(replay.spent_s)), duration(round(replay.total_s))
    return look.text(f"{state} {moment} {spent}" if brief else f"{state}  {moment}  {spent} of {total}")


def _small_print(replay: Replay) -> Iterator[str]:
    yield f"times {_HOWS.get(replay.how, replay.how)}"
    if replay.idle_s is not None:
        yield f"silences over {duration(replay.idle_s)} shortened"
    if replay.note:
        yield replay.note


# --- what came true ----------------------------------------------------------------------------------


def came_true(replay: Replay, width: int, look: Look) -> Line:
    """What followed this moment, beside what was said at it."""
    if replay.came is None:
        return BLANK
    found = [_outcome_came(replay.came), _phase_came(replay.came)]
    parts = [part for part in (reversed(found) if replay.came.message else found) if part]
    head = "Came true: "
    text = look.cut(look.dot.join(parts), width - len(head))
    return Line((look.span(head, "dim"), look.span(text))) if parts else BLANK


def _phase_came(came: Hindsight) -> str:
    if not came.phase or came.phase_left_s is None:
        return ""
    return f"{came.phase} {duration(round(came.phase_left_s))} more, of {duration(came.phase_took_s)}"


def _outcome_came(came: Hindsight) -> str:
    left = "" if came.outcome_left_s is None else f" in {duration(round(came.outcome_left_s))}"
    if came.outcome is Outcome.READY:
        return f"ready{left}{_told(came)}"
    if came.outcome is Outcome.FAILED:
        return f"failed{left}: {came.message}" if came.message else f"failed{left}"
    if came.outcome is Outcome.STOPPED:
        return f"shut down{left}"
    return f"the log stops{left}"


def _told(came: Hindsight) -> str:
    told = came.told
    if told is None or told.low_s is None or told.mid_s is None or told.high_s is None:
        return ""
    word = {True: "held", False: "missed", None: ""}[came.held]
    said = f"told {span_of(Range(told.low_s, told.mid_s, told.high_s))}"
    return f" ({said}: {word})" if word else f" ({said})"


# --- the way -----------------------------------------------------------------------------------------


def names(replay: Replay, width: int, look: Look) -> Line:
    """The phases by name, each where it begins, where there is room for it."""
    spans: list[Span] = []
    at = 0
    for stage, begin, end in _cells(replay, width):
        room = end - begin - 1
        if room < _NAME:
            continue
        spans.append(Span(" " * (begin - at)))
        tone = "bold" if stage.begin <= replay.share < stage.end else "dim"
        text = look.cut(stage.title, room)
        spans.append(Span(text, tone, f"{_CLICK}{stage.begin}"))
        at = begin + cell_len(text)
    return Line(tuple(spans))


def bar(replay: Replay, width: int, look: Look) -> Line:
    """The way: played and still to come, the phases' borders, the outcome, and the moment that is shown."""
    if width < 1:
        return BLANK
    cells = [look.rule] * width
    for _, begin, _ in _cells(replay, width):
        if begin:
            cells[begin] = look.border
    for mark in replay.marks:
        cells[_cell(mark.share, width)] = {"ready": look.done, "failed": look.failed}.get(mark.kind, look.stop)
    here = _cell(replay.share, width)
    cells[here] = look.here
    bounds = sorted({0, here, here + 1, width, *(begin for _, begin, _ in _cells(replay, width))})
    spans = []
    for begin, end in pairwise(bounds):
        tone = "bold" if begin == here else "busy" if begin < here else "dim"
        spans.append(Span("".join(cells[begin:end]), tone, f"{_CLICK}{begin / width:.4f}"))
    return Line(tuple(spans))


def _cells(replay: Replay, width: int) -> Iterator[tuple[Stage, int, int]]:
    """Which cells each phase has."""
    for stage in replay.stages:
        begin, end = _cell(stage.begin, width), _cell(stage.end, width)
        yield stage, begin, end + 1 if stage.end >= 1.0 else end


def _cell(share: float, width: int) -> int:
    return min(max(int(share * width), 0), width - 1)
