"""Two boots side by side: as text, Markdown, JSON and one HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from phasetrack.core.say import duration
from phasetrack.views.facts import fact_text, fact_title
from phasetrack.views.gantt import chart, extent
from phasetrack.views.headline import engine_words, headline
from phasetrack.views.jsonl import dumps
from phasetrack.views.markdown import code, prose, table
from phasetrack.views.template import cut, render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.changes import Change
    from phasetrack.core.compare import Comparison, Side
    from phasetrack.core.differing import FactChange
    from phasetrack.core.model import Snapshot, Value

SCHEMA = "phasetrack.compare/1"

_KINDS = {
    "same": "", "noise": "noise", "slower": "slower", "faster": "faster", "only_a": "only in A", "only_b": "only in B",
    "unfinished": "not compared", "unknown": "time unknown",
}  # fmt: skip
# Facts shown in full; the rest is counted, and the JSON has them all.
_FACTS_MAX = 30


def change_words(change: Change) -> dict[str, str]:
    """One line of the table in words, the same in every form."""
    return {
        "title": change.title if change.occurrence == 1 else f"{change.title} ({change.occurrence})",
        "a": "" if change.a_s is None else duration(change.a_s),
        "b": "" if change.b_s is None else duration(change.b_s),
        "delta": signed(change.delta_s),
        "kind": _KINDS[change.kind],
        "why": "; ".join(change.reasons),
    }


def signed(seconds: float | None) -> str:
    """``+12 s``, ``-0.4 s``, ``0 s``; empty where unknown."""
    if seconds is None:
        return ""
    return duration(seconds) if seconds <= 0 else f"+{duration(seconds)}"


def band_note(found: Comparison) -> str:
    """Where the noise band comes from."""
    if found.assumed:
        return (
            "Noise: too few boots of this set-up are known; changes under 2 s or a quarter of a phase are taken for it."
        )
    runs = max(change.runs for change in found.phases)
    return f"Noise: changes within the spread of {runs} like boots in the history are taken for it."


# --- text -------------------------------------------------------------------------------------------


def compare_text(found: Comparison) -> str:
    """The comparison for a terminal."""
    lines = [
        *(_side_line(side, name) for side, name in zip((found.a, found.b), "AB", strict=True)),
        "",
        found.because,
        "",
    ]
    lines.append(f"  {'phase':<20} {'A':>12} {'B':>12} {'B - A':>13}")
    lines += [_text_line(change) for change in [*found.phases, found.between]]
    if found.delta_s is not None:
        whole = (duration(found.a.startup_s), duration(found.b.startup_s), signed(found.delta_s))
        lines.append(f"  {'start to ready':<20} {whole[0]:>12} {whole[1]:>12} {whole[2]:>13}")
    lines += ["", band_note(found)]
    for title, facts, left_out in _fact_blocks(found):
        lines += ["", f"{title}:"]
        wide = max(len(name) for name, _, _ in facts)
        lines += [_fact_line(name.ljust(wide), a, b) for name, a, b in facts]
        lines += [f"  and {left_out} more (--format json has them all)"] if left_out else []
    return "\n".join(line.rstrip() for line in lines) + "\n"


def side_label(side: Side) -> str:
    """``server.log, boot 2``: both sides alike, whatever way a boot was asked for."""
    path, _, number = side.label.rpartition("#")
    path, is_named = (path, True) if path and number == str(side.boot) else (side.label, False)
    return f"{cut(path)}, boot {side.boot}" if is_named or side.boot > 1 else cut(path)


def _side_line(side: Side, name: str) -> str:
    parts = [f"{name}  {side_label(side)}", str(side.outcome), *(text for text in (side.model, side.version) if text)]
    return "  ".join(parts)


def _fact_line(name: str, a: str, b: str) -> str:
    if not a or not b:
        return f"  only {'A' if a else 'B'}: {name}  {cut(a or b, 90)}"
    return f"  {name}  {cut(a, 60)} -> {cut(b, 60)}"


def _text_line(change: Change) -> str:
    words = change_words(change)
    line = f"  {words['title']:<20} {words['a']:>12} {words['b']:>12} {words['delta']:>13}  {words['kind']}"
    return line.rstrip() + (f": {words['why']}" if words["why"] else "")


def _fact_blocks(found: Comparison) -> Iterator[tuple[str, list[tuple[str, str, str]], int]]:
    """Facts that differ, in groups; arguments that only one boot knows are news of a version, and last."""
    groups = (
        ("Versions", [f for f in found.facts if f.kind == "version"]),
        ("Arguments", [f for f in found.facts if f.kind == "argument" and not f.one_sided]),
        ("Memory", [f for f in found.facts if f.kind == "memory"]),
        ("Other facts", [f for f in found.facts if f.kind == "other"]),
    )
    for title, facts in groups:
        if facts:
            yield title, [_fact_words(fact) for fact in facts[:_FACTS_MAX]], max(len(facts) - _FACTS_MAX, 0)
    if news := list(_news(found)):
        yield "Arguments that only one of them prints", news, 0


def _news(found: Comparison) -> Iterator[tuple[str, str, str]]:
    """What one release prints and the other does not, in one line each: mostly defaults, and no change."""
    facts = [fact for fact in found.facts if fact.one_sided]
    of_a = [fact.name for fact in facts if fact.b is None]
    of_b = [fact.name for fact in facts if fact.b is not None]
    for names, is_of_a in ((of_a, True), (of_b, False)):
        if names:
            said = cut(", ".join(names), 400)
            yield str(len(names)), said if is_of_a else "", "" if is_of_a else said


def _fact_words(fact: FactChange) -> tuple[str, str, str]:
    title = fact.name if fact.kind == "argument" else fact_title(fact.name)
    return cut(title, 80), _value(fact.name, fact.a, fact), _value(fact.name, fact.b, fact)


def _value(name: str, value: Value, fact: FactChange) -> str:
    if value is None:
        return "unset" if fact.kind == "argument" else "-"
    return cut(fact_text(name, value) or str(value), 120)


# --- Markdown ---------------------------------------------------------------------------------------


def compare_markdown(found: Comparison) -> str:
    """The comparison for an issue or a pull request."""
    lines = [f"### {prose(found.because)}", ""]
    lines += [
        f"- {name}: {code(side_label(side))}, {side.outcome}" + (f", {prose(side.version)}" if side.version else "")
        for side, name in zip((found.a, found.b), "AB", strict=True)
    ]
    rows = [_markdown_row(change) for change in [*found.phases, found.between]]
    if found.delta_s is not None:
        whole = [duration(found.a.startup_s), duration(found.b.startup_s), signed(found.delta_s)]
        rows.append(["**start to ready**", *whole, ""])
    lines += ["", *table(("phase", "A", "B", "B - A", "why"), rows, right=frozenset({"A", "B", "B - A"}))]
    lines += ["", prose(band_note(found))]
    for title, facts, left_out in _fact_blocks(found):
        rows = [[code(text) if text else "" for text in fact] for fact in facts]
        lines += ["", f"<details><summary>{title}</summary>", "", *table(("fact", "A", "B"), rows)]
        lines += ["", f"and {left_out} more"] if left_out else []
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _markdown_row(change: Change) -> list[str]:
    words = change_words(change)
    why = ": ".join(text for text in (words["kind"], words["why"]) if text)
    return [prose(words["title"]), words["a"], words["b"], words["delta"], prose(why)]


# --- JSON -------------------------------------------------------------------------------------------


def compare_json(found: Comparison) -> dict[str, Any]:
    """The comparison as data; seconds as in the snapshots, to the millisecond."""
    shown = {
        "schema": SCHEMA,
        "a": _side_json(found.a),
        "b": _side_json(found.b),
        "delta_s": _rounded(found.delta_s),
        "because": found.because,
        "first": found.first,
        "causes": [change.phase for change in found.causes],
        "phases": [_change_json(change) for change in found.phases],
        "between_phases": _change_json(found.between),
        "noise": "assumed" if found.assumed else "history",
    }
    return shown | {"facts": [asdict(replace(fact, a=_plain(fact.a), b=_plain(fact.b))) for fact in found.facts]}


def compare_dumps(found: Comparison) -> str:
    """The same as text."""
    return dumps(compare_json(found), indent=2) + "\n"


def _side_json(side: Side) -> dict[str, Any]:
    return asdict(replace(side, startup_s=_rounded(side.startup_s))) | {"outcome": str(side.outcome)}


def _change_json(change: Change) -> dict[str, Any]:
    shown = asdict(change)
    return {key: _rounded(value) if key.endswith("_s") else value for key, value in shown.items()}


def _plain(value: Value) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


# --- HTML -------------------------------------------------------------------------------------------


def compare_page(found: Comparison, a: Snapshot, b: Snapshot) -> str:
    """The comparison as one page: both starts on one scale."""
    lengths = [end - begin for begin, end in map(extent, (a, b)) if begin is not None and end is not None]
    scale = max(lengths, default=0.0) or None
    sides = [
        {
            "name": name,
            "key": f"chart-{name.lower()}",
            "label": side_label(side),
            "headline": " ".join(headline(known)),
            "engine": engine_words(known),
            "known": known,
            "chart": chart(known, prefix=f"{name.lower()}-phase", length_s=scale),
        }
        for name, side, known in zip("AB", (found.a, found.b), (a, b), strict=True)
    ]
    reach = max((abs(c.delta_s) for c in [*found.phases, found.between] if c.delta_s is not None), default=0.0)
    changes = [
        {"words": change_words(c), "change": c, "bar": _delta_bar(c, reach)} for c in [*found.phases, found.between]
    ]
    return render(
        "compare.html.j2",
        found=found,
        sides=sides,
        changes=changes,
        total=signed(found.delta_s),
        band_note=band_note(found),
        blocks=list(_fact_blocks(found)),
    )


def _delta_bar(change: Change, reach: float) -> dict[str, float | str] | None:
    """A bar from the middle: to the right where B is slower."""
    if change.delta_s is None or not reach or not change.delta_s:
        return None
    width = round(50 * abs(change.delta_s) / reach, 2)
    kind = "faint" if change.kind in {"noise", "same"} else "worse" if change.delta_s > 0 else "better"
    return {"left": 50.0 if change.delta_s > 0 else 50 - width, "width": width, "kind": kind}
