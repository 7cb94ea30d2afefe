"""The lines on top: whose log this is, the outcome in a word, and the verdict in a sentence.

The outcome stands in a badge with a glyph and a word, and the rest of its line says when. What must never be
misread is decided here: a worker node that is up is not a server that is ready, a saved log that ends is not
one that hangs, and while the log is still being read nothing that was true in its middle is told as true now.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from phasetrack.core.model import Outcome, Status, VerdictState
from phasetrack.views.tui.look import Line, Span, width_of
from phasetrack.views.tui.rows import short
from phasetrack.views.words import clock, duration, eta_words, phase_title, progress, ready_when, size

if TYPE_CHECKING:
    from phasetrack.core.model import PhaseRow, Snapshot
    from phasetrack.views.tui.feed import News
    from phasetrack.views.tui.look import Look

_PARALLEL = (("tp_size", "tp"), ("pp_size", "pp"), ("dp_size", "dp"), ("ep_size", "ep"))
_SHORTEST_NAME = 12
_LEAST_NAME = 10


class Badge(NamedTuple):
    """The outcome in a word, and how it looks."""

    glyph: str
    word: str
    style: str


def badge(known: Snapshot, look: Look, *, reading: bool = False) -> Badge:
    """The one word that a tired reader takes away."""
    state = known.verdict.state
    if reading:
        return Badge(look.between, "READING THE LOG", "badge-plain")
    if known.outcome is Outcome.READY:
        if is_worker(known):
            return Badge(look.done, "NODE UP", "badge-good")
        if state is VerdictState.DEGRADED:
            return Badge(look.warning, "READY, DEGRADED", "badge-warn")
        return Badge(look.done, "READY", "badge-good")
    if known.outcome is Outcome.FAILED:
        return Badge(look.failed, "FAILED", "badge-bad")
    if known.outcome is Outcome.STOPPED:
        return Badge(look.stop, "STOPPED", "badge-plain")
    if state is VerdictState.ENDED:
        return Badge(look.stop, "LOG ENDED", "badge-plain")
    return _unsettled(known, look)


def _unsettled(known: Snapshot, look: Look) -> Badge:
    state = known.verdict.state
    if state in {VerdictState.SUSPECT, VerdictState.STUCK}:
        return Badge(look.warning, str(state).upper(), "badge-bad")
    if state is VerdictState.OVERDUE:
        return Badge(look.warning, "OVERDUE", "badge-warn")
    if known.outcome is Outcome.NONE:
        return Badge(look.between, "WAITING", "badge-plain")
    return Badge(look.running, "STARTING", "badge-busy")


def is_worker(known: Snapshot) -> bool:
    """Whether this log is of a node that never serves: node 0 decides."""
    rank = known.facts.get("node_rank")
    return isinstance(rank, int) and rank > 0


def current(known: Snapshot) -> PhaseRow | None:
    """The row of the current phase: of several occurrences the last."""
    return next((row for row in reversed(known.phases) if row.phase == known.phase), None)


# --- whose log --------------------------------------------------------------------------------------


def identity(news: News, path: str, width: int, look: Look, *, rows: int = 1) -> list[Line]:
    """File, engine and version, parallelism, draft or not, model; names are cut before figures are.

    Where the width is scarce the model moves to a second line, or goes if there is none to have.
    """
    known = news.known
    name = "standard input" if path == "-" else path
    if path != "-" and (width < 100 or cell_len(look.text(path)) > width // 3):
        name = PurePosixPath(path).name or path
    parts = [] if news.is_reading else _figures(known, brief=width < 60)
    while len(parts) > 2 and sum(cell_len(look.text(p)) + cell_len(look.dot) for p in parts) + _LEAST_NAME > width:
        parts.pop(0)
    model = _model(known, width)
    room = width - sum(cell_len(look.text(part)) + cell_len(look.dot) for part in parts)
    aside = bool(model) and room < cell_len(look.dot) + 2 * _SHORTEST_NAME
    if model and not aside:
        share = max(room - cell_len(look.dot) - cell_len(look.text(name)), room // 2)
        shown = look.cut_front(model, share)
        parts.insert(1, shown)
        room -= cell_len(look.dot) + cell_len(shown)
    spans = [look.span(look.cut_front(name, max(room, _LEAST_NAME)), "bold")]
    for part in parts:
        if width_of(spans) + cell_len(look.dot) + cell_len(look.text(part)) <= width:
            spans.append(look.span(look.dot + part))
    lines = [Line(tuple(spans))]
    return [*lines, look.line(look.cut_front(model, width))] if aside and rows > 1 else lines


def _figures(known: Snapshot, *, brief: bool) -> list[str]:
    """The parts that are figures or words of few letters, the most wanted first."""
    parts = [engine_words(known, brief=brief)]
    if known.outcome is Outcome.NONE and not known.facts:
        return parts
    facts = known.facts
    told = "server_args" in facts or "model_path" in facts
    sizes = [f"{word} {facts[name]}" for name, word in _PARALLEL if facts.get(name) not in {None, 1}]
    if facts.get("tp_size") == 1 or (told and not sizes):
        sizes.insert(0, "tp 1")
    if sizes:
        parts.append(" ".join(sizes))
    draft = facts.get("speculative_algorithm")
    parts.append(f"draft {draft}" if draft else "no draft" if told else "draft unknown")
    nodes = facts.get("nnodes")
    if isinstance(nodes, int) and nodes > 1:
        parts.append(f"node {facts.get('node_rank', '?')} of {nodes}")
    if len(known.boots) > 1:
        parts.append(f"boot {known.boot} of {len(known.boots)}")
    return parts


def engine_words(known: Snapshot, *, brief: bool = False) -> str:
    """Engine and version; one that was told from wordings carries a ``~``."""
    engine = known.engine
    if engine is None:
        return "no engine line yet" if not known.ended else "no engine line"
    if engine.version:
        return engine.version if brief else f"{engine.title} {engine.version}"
    low, high = engine.version_low, engine.version_high
    if low is None and high is None:
        return engine.title if brief else f"{engine.title}, version unknown"
    if high is None:
        return f"~{low}+" if brief else f"{engine.title} ~{low} or later"
    if brief or low is None:
        return f"~{high}" if brief else f"{engine.title} ~{high} or earlier"
    return f"{engine.title} ~{low}–{high}"


def _model(known: Snapshot, width: int) -> str:
    path = known.facts.get("model_path") or known.facts.get("served_model_name")
    if not path:
        return ""
    return str(path) if width >= 140 else PurePosixPath(str(path)).name or str(path)


# --- the outcome ------------------------------------------------------------------------------------


def outcome(news: News, width: int, rows: int, look: Look) -> list[Line]:
    """The badge and what belongs to it: since when, how far, how long it took.

    What does not fit beside the badge goes on a second line, or away where ``rows`` is 1.
    """
    known = news.known
    sign = badge(known, look, reading=news.is_reading)
    head = look.span(f" {sign.glyph} {sign.word} ", sign.style)
    parts = [part for part in outcome_parts(news, brief=width < 60) if part]
    room = width - cell_len(head.text) - 1
    beside: list[str] = []
    while parts and cell_len(look.text(look.dot.join([*beside, parts[0]]))) <= room:
        beside.append(parts.pop(0))
    if parts and not beside:
        beside.append(parts.pop(0) if room >= 2 * _SHORTEST_NAME or rows < 2 else "")
    lines = [Line((head, Span(" "), look.span(look.cut(look.dot.join(beside), room), "bold")))]
    if parts and rows > 1:
        lines.append(look.line(look.cut(look.dot.join(parts), width), "bold"))
    return lines


def outcome_parts(news: News, *, brief: bool = False) -> list[str]:
    """What stands beside the badge, the most wanted first."""
    known = news.known
    if news.unread_bytes is not None:
        whole = news.log_bytes + news.unread_bytes
        share = f"{100 * news.log_bytes // whole} % of {size(whole)}" if news.unread_bytes else size(news.log_bytes)
        return [share, "the answer comes when all of it has been read"]
    if known.outcome is Outcome.READY:
        return _ready_parts(known)
    if known.outcome is Outcome.FAILED:
        return _failed_parts(known)
    if known.outcome is Outcome.STOPPED:
        was = "" if known.ready_at_s is None else f"was ready at {clock(known.ready_at_s)}"
        if known.ready_at_s is None and known.ready_offset is not None:
            was = f"was ready {ready_when(known)}"
        took = "" if known.startup_s is None else f"after {duration(known.startup_s)}"
        return ["the server was shut down", f"{was} {took}".strip()]
    if known.outcome is Outcome.NONE:
        return ["for the engine's first line" if not known.ended else "without an engine's start-up in it"]
    last = _ago(known.silent_s or 0.0) if known.ended else ""
    return [_where(known, brief=brief), _since(known), last and f"the last line came {last}"]


def _where(known: Snapshot, *, brief: bool) -> str:
    row = current(known)
    if row is None:
        return "phase unknown"
    return far(row, brief=brief)


def far(row: PhaseRow, *, brief: bool = False) -> str:
    """How far a phase is. A full bar is not the end of a load, and must not read like one."""
    if row.status is Status.DONE:
        return f"after {row.title}"
    if row.note.startswith("finishing"):
        return f"{row.title}, finishing" if brief else f"{row.title}, {progress(row.progress)} read, finishing"
    if brief and row.progress is not None:
        return f"{row.title} {short(row.progress)}"
    return f"{row.title} {progress(row.progress)}".rstrip()


def _since(known: Snapshot) -> str:
    if known.started_at_s is None:
        return "start time unknown" if known.unopened is None else f"this log {known.unopened}"
    if known.now_s is None:
        return f"started {clock(known.started_at_s)}"
    spent = duration(max(known.now_s - known.started_at_s, 0.0))
    return f"{spent} {'after the start at' if known.ended else 'since'} {clock(known.started_at_s)}"


def _ready_parts(known: Snapshot) -> list[str]:
    took = "start-up time unknown" if known.startup_s is None else f"after {duration(known.startup_s)}"
    parts = [ready_when(known) if known.ready_at_s is None else f"at {clock(known.ready_at_s)}, {took}"]
    if is_worker(known):
        parts.insert(0, "node 0 decides when the server is ready")
    if known.ended:
        parts.append("the log has ended since")
    elif known.now_s is not None and known.ready_at_s is not None:
        parts.append(_ago(known.now_s + (known.silent_s or 0.0) - known.ready_at_s))
    return parts


def _ago(seconds: float) -> str:
    """Whole minutes or hours: what does not tick need not be drawn every second."""
    if seconds < 120:
        return ""
    return f"{seconds // 60:.0f} min ago" if seconds < 7200 else f"{seconds // 3600:.0f} h ago"


def _failed_parts(known: Snapshot) -> list[str]:
    failure = known.failure
    parts: list[str] = []
    if known.ready_at_s is not None:
        parts.append(f"while serving, ready since {clock(known.ready_at_s)}")
    elif known.ready_offset is not None:
        parts.append("while serving")
    elif failure is not None and failure.phase is not None:
        parts.append(f"in {phase_title(known, failure.phase)}")
    if failure is not None and failure.rank:
        parts.append(f"rank {failure.rank}")
    if failure is not None and failure.at_s is not None:
        parts.append(f"at {clock(failure.at_s)}")
        if known.started_at_s is not None and known.ready_at_s is None:
            parts.append(f"{duration(max(failure.at_s - known.started_at_s, 0.0))} after the start")
    return parts or ["the cause is not known"]


# --- the verdict ------------------------------------------------------------------------------------


def verdict(known: Snapshot, width: int, rows: int, look: Look) -> list[Line]:
    """Is it stuck? In a sentence, and what to do where something can be done."""
    lines = [look.line(text) for text in look.wrap(known.verdict.because, width, rows)]
    if known.verdict.next_step:
        lines += [look.line(text, "bold") for text in look.wrap("Do: " + known.verdict.next_step, width, 2)]
    return lines


def expectation(known: Snapshot, width: int, look: Look) -> list[Line]:
    """How long still, with the source of the estimate; nothing where nothing is known."""
    if known.outcome is not Outcome.STARTING or known.ended or not (words := eta_words(known.eta)):
        return []
    return [look.line(look.cut(sentence(words), width), "bold")]


def sentence(words: str) -> str:
    """With a capital; the rest as it is."""
    return words[:1].upper() + words[1:]


def notes(news: News, width: int, look: Look, *, warnings: bool) -> list[Line]:
    """What casts doubt on the rest: a rotated log, one newer than the pack or not wholly read, warnings."""
    known = news.known
    words = [news.notice] if news.notice else []
    if known.drift:
        words.append(f"this log {known.drift}")
    unread = sum(source.scanned_from + source.skipped_bytes for source in known.sources)
    if unread:
        words.append(f"{size(unread)} of the log were not read")
    lines = [look.line(look.cut(f"{look.warning} {text}", width), "bold") for text in words]
    if warnings and known.warnings and known.outcome is not Outcome.FAILED:
        first = known.warnings[-1].message
        more = f" (and {len(known.warnings) - 1} more: w)" if len(known.warnings) > 1 else ""
        room = width - cell_len(more) - 2
        lines.append(look.line(f"{look.warning} {look.cut(first, room)}{more}", "dim"))
    return lines


def title(known: Snapshot, path: str, look: Look, *, reading: bool) -> str:
    """The terminal's title: short, and without a clock, so that it is written only when something changes."""
    sign = badge(known, look, reading=reading)
    name = "stdin" if path == "-" else PurePosixPath(path).name
    row = current(known)
    word = sign.word.lower()
    if sign.word == "STARTING" and row is not None:
        word = far(row, brief=True)
    return look.text(f"{sign.glyph} {word}{look.dot}{name}")
