"""Pattern files (TOML) to a ``PatternSet``; all validation of form.

Owns the schema of a pack. It reads no file: it is given the text and a name for messages. What a rule
*means* is the machine's business; whether its samples hold is ``check``'s.

A pack::

    [pack]      schema = 1, engine, title, versions, package
    [arguments] name of an argument = the name by which it is known here (SGLang's)
    [[phase]]   id, title, unit, silent_s = {typical, long, n, source}, quiet_why, deadline_s, deadline_why, planned
    [[bulk]]    match: a whole message that only a serving engine prints
    [[rule]]    id, role, phase, match | bar, must_match, must_not_match, source, …
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from phasetrack.core.model import Case, PatternSet, PhaseInfo, Role, Rule, Silence, Where
from phasetrack.errors import PatternError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SCHEMA = 1

E = TypeVar("E", Role, Where)

# Named groups end in their unit; the machine converts them (gib -> bytes, ms -> s) and drops _text.
UNITS = ("_s", "_ms", "_gib", "_bytes", "_tokens", "_count", "_percent", "_text")

_GROUP = re.compile(r"\(\?P<(\w+)>")
_PACK_KEYS = {"schema", "engine", "title", "versions", "package"}
_PHASE_KEYS = {"id", "title", "unit", "silent_s", "quiet_why", "deadline_s", "deadline_why", "planned"}
_CASE_KEYS = {f.name for f in fields(Case)}
_RULE_KEYS = {f.name for f in fields(Rule)} - {"engine", "trusted"}
# By the types that the model declares, so that a new key is checked as soon as it is there.
_FLAGS = {f.name for f in fields(Rule) if f.type == "bool"} & _RULE_KEYS
_WORDS = {f.name for f in fields(Rule) if f.type in {"str", "str | None"}} & _RULE_KEYS - {
    "id",
    "match",
    "bar",
    "phase",
}


def load_pack(text: str, name: str, *, trusted: bool = True) -> PatternSet:
    """Parse one pattern file.

    Args:
        text: TOML.
        name: the file's name, for messages.
        trusted: False for a user's file, whose rules run with a time limit.

    Raises:
        PatternError: the text is no TOML, or an item has the wrong form; it names the item.
    """
    return read_table(parse(text, name), name, trusted=trusted)


def parse(text: str, name: str) -> dict[str, Any]:
    """Read the TOML of a pattern file; whether its items have the right form is not looked at.

    Raises:
        PatternError: the text is no TOML.
    """
    import tomllib  # a tenth of a second's work for a pack; seldom needed (edges.library)

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise PatternError(name, "", f"not valid TOML: {fault}", "mend the line that it names") from None


def read_table(table: Mapping[str, Any], name: str, *, trusted: bool = True) -> PatternSet:
    """Make rules of what ``parse`` gave.

    Raises:
        PatternError: an item has the wrong form; it names the item.
    """
    unknown = set(table) - {"pack", "arguments", "phase", "bulk", "rule"}
    if unknown:
        known = "known: [pack], [arguments], [[phase]], [[bulk]], [[rule]]"
        raise PatternError(name, f"[{min(unknown)}]", "unknown table", known)
    return _Reader(name, trusted=trusted).read(table)


def merge(packs: Iterable[PatternSet]) -> PatternSet:
    """Put packs together.

    An engine with a package keeps its own description of its phases, and goes through no others. Where several packs
    of an engine describe a phase, or it is asked for without an engine, the first pack's counts.

    Raises:
        PatternError: two rules share an id.
    """
    rules: dict[str, Rule] = {}
    phases: dict[str, PhaseInfo] = {}
    bulk: list[str] = []
    packages: dict[str, str] = {}
    titles: dict[str, str] = {}
    versions: dict[str, str] = {}
    own: dict[str, dict[str, PhaseInfo]] = {}
    arguments: dict[str, dict[str, str]] = {}
    for pack in packs:
        for rule in pack.rules:
            if rule.id in rules:
                raise PatternError(rule.engine, rule.id, "this id stands twice", "ids are unique over all packs")
            rules[rule.id] = rule
        for phase in pack.phases.values():
            phases.setdefault(phase.id, phase)
        bulk += pack.bulk
        packages |= pack.packages
        titles |= pack.titles
        versions |= pack.packs
        for engine, described in pack.own_phases.items():
            own[engine] = {**described, **own.get(engine, {})}
        for engine, names in pack.arguments.items():
            arguments[engine] = {**names, **arguments.get(engine, {})}
    return PatternSet(tuple(rules.values()), phases, tuple(bulk), packages, titles, versions, own, arguments)


class _Reader:
    """Reads one file's tables; holds its name so that every complaint can say where."""

    def __init__(self, name: str, *, trusted: bool) -> None:
        self.name, self.trusted = name, trusted

    def read(self, table: Mapping[str, Any]) -> PatternSet:
        pack = self._table(table, "pack")
        self._keys(pack, _PACK_KEYS, "[pack]")
        if pack.get("schema") != SCHEMA:
            raise self.fault("[pack]", f"schema = {pack.get('schema')!r}", f"this phasetrack reads schema = {SCHEMA}")
        engine = self._text(pack, "engine", "[pack]")
        phases = [self._phase(item, k) for k, item in enumerate(self._items(table, "phase"), 1)]
        known = {phase.id for phase in phases} | STANDARD
        rules = tuple(self._rule(item, k, engine, known) for k, item in enumerate(self._items(table, "rule"), 1))
        if table.get("bulk") and not self.trusted:
            raise self.fault("[[bulk]]", "only in shipped packs", "leave it out: it has no time limit")
        bulk = tuple(
            self._regex(item, "match", f"[[bulk]] {k}") for k, item in enumerate(self._items(table, "bulk"), 1)
        )
        package = pack.get("package", "")
        described = {phase.id: phase for phase in phases}
        names = self._names(table)
        return PatternSet(
            rules,
            described,
            bulk,
            {package: engine} if package else {},
            {engine: str(pack.get("title", engine))},
            {engine: str(pack.get("versions", ""))},
            {engine: described} if described and package else {},
            {engine: names} if names else {},
        )

    def fault(self, item: str, fact: str, mend: str = "") -> PatternError:
        return PatternError(self.name, item, fact, mend)

    def _table(self, table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        found = table.get(key)
        if not isinstance(found, dict):
            raise self.fault(f"[{key}]", "missing", f"a pack begins with [{key}] schema = {SCHEMA}, engine = …")
        return found

    def _items(self, table: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
        found = table.get(key, [])
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise self.fault(f"[[{key}]]", "must be an array of tables", f"write [[{key}]], not [{key}]")
        return found

    def _names(self, table: Mapping[str, Any]) -> dict[str, str]:
        found = table.get("arguments", {})
        if not isinstance(found, dict) or not all(isinstance(name, str) for name in found.values()):
            raise self.fault("[arguments]", "must map names to names", 'write model = "model_path"')
        return dict(found)

    def _keys(self, item: Mapping[str, Any], known: set[str], what: str) -> None:
        for key in item:
            if key not in known:
                close = ", ".join(sorted(known))
                raise self.fault(what, f"unknown key {key!r}", f"known: {close}")

    def _text(self, item: Mapping[str, Any], key: str, what: str) -> str:
        value = item.get(key)
        if not isinstance(value, str) or not value:
            raise self.fault(what, f"{key} must be text", "it is missing" if value is None else f"found {value!r}")
        return value

    def _regex(self, item: Mapping[str, Any], key: str, what: str) -> str:
        pattern = self._text(item, key, what)
        if self.trusted:
            return pattern  # `patterns check` proves the shipped ones; compiling them all takes 0.2 s
        try:
            re.compile(pattern)
        except re.error as fault:
            raise self.fault(what, f"{key} is no regular expression: {fault}", f"in {pattern!r}") from None
        return pattern

    def _phase(self, item: dict[str, Any], k: int) -> PhaseInfo:
        what = f"[[phase]] {item.get('id', k)}"
        self._keys(item, _PHASE_KEYS, what)
        silent, planned = item.get("silent_s"), item.get("planned", True)
        if not isinstance(planned, bool):
            raise self.fault(what, "planned must be true or false", f"found {planned!r}")
        return PhaseInfo(
            self._text(item, "id", what),
            self._text(item, "title", what),
            str(item.get("unit", "")),
            None if silent is None else self._silence(silent, what),
            str(item.get("quiet_why", "")),
            self._seconds(item, "deadline_s", what),
            str(item.get("deadline_why", "")),
            planned,
        )

    def _seconds(self, item: Mapping[str, Any], key: str, what: str) -> float | None:
        value = item.get(key)
        if value is not None and not _is_number(value):
            raise self.fault(what, f"{key} must be a number of seconds", f"found {value!r}")
        return None if value is None else float(value)

    def _silence(self, value: object, what: str) -> Silence:
        if not isinstance(value, dict) or set(value) != {"typical", "long", "n", "source"}:
            raise self.fault(what, "silent_s must hold typical, long, n, source", f"found {value!r}")
        if not all(_is_number(value[key]) for key in ("typical", "long", "n")):
            raise self.fault(what, "silent_s must hold numbers: typical, long, n", f"found {value!r}")
        if not 0 < value["typical"] <= value["long"]:
            raise self.fault(what, "silent_s: typical must be above 0 and not above long")
        return Silence(float(value["typical"]), float(value["long"]), int(value["n"]), str(value["source"]))

    def _rule(self, item: dict[str, Any], k: int, engine: str, phases: set[str]) -> Rule:
        what = f"[[rule]] {item.get('id', k)}"
        self._keys(item, _RULE_KEYS, what)
        self._text(item, "id", what)
        if ("match" in item) == ("bar" in item):
            raise self.fault(what, "needs either match or bar")
        self._groups(
            self._regex(item, "match" if "match" in item else "bar", what) if item.get("bar") != "" else "", what
        )
        self._types(item, what)
        values = dict(item)
        values["role"] = self._choice(item, "role", Role, what)
        if "where" in item:
            values["where"] = self._choice(item, "where", Where, what)
        for key in ("ends", "must_match", "must_not_match"):
            values[key] = self._texts(item, key, what)
        named = [item[key] for key in ("phase", "then") if key in item]
        for phase in (*values["ends"], *item.get("remedies", {}), *named):
            if phase not in phases:
                raise self.fault(what, f"unknown phase {phase!r}", f"known: {', '.join(sorted(phases))}")
        values["cases"] = tuple(self._case(case, phases, what) for case in item.get("cases", ()))
        return Rule(engine=engine, trusted=self.trusted, **values)

    def _case(self, item: object, phases: set[str], what: str) -> Case:
        if not isinstance(item, dict) or not all(isinstance(text, str) for text in item.values()):
            raise self.fault(what, "cases must be a list of tables of text", f"found {item!r}")
        self._keys(item, _CASE_KEYS, what)
        case = Case(**item)
        if case.phase and case.phase not in phases:
            raise self.fault(what, f"unknown phase {case.phase!r}", f"known: {', '.join(sorted(phases))}")
        if bool(case.of) != bool(case.like) or not (case.cause or case.remedy):
            raise self.fault(what, "a case needs of and like or neither, and a cause or a remedy", f"found {item!r}")
        if case.like:
            self._regex(item, "like", what)
        return case

    def _types(self, item: Mapping[str, Any], what: str) -> None:
        for key, value in item.items():
            if key in _FLAGS and not isinstance(value, bool):
                raise self.fault(what, f"{key} must be true or false", f"found {value!r}")
            if key in _WORDS and not isinstance(value, str):
                raise self.fault(what, f"{key} must be text", f"found {value!r}")
        remedies = item.get("remedies", {})
        if not isinstance(remedies, dict) or not all(isinstance(text, str) for text in remedies.values()):
            raise self.fault(what, "remedies must be a table of phase = text", f"found {remedies!r}")

    def _groups(self, pattern: str, what: str) -> None:
        for group in _GROUP.findall(pattern):
            if not group.endswith(UNITS):
                raise self.fault(what, f"group {group!r} has no unit", f"end it in one of {' '.join(UNITS)}")

    def _choice(self, item: Mapping[str, Any], key: str, kind: type[E], what: str) -> E:
        try:
            return kind(str(item.get(key)))
        except ValueError:
            raise self.fault(what, f"{key} = {item.get(key)!r}", f"one of {', '.join(kind)}") from None

    def _texts(self, item: Mapping[str, Any], key: str, what: str) -> tuple[str, ...]:
        value = item.get(key, [])
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self.fault(what, f"{key} must be a list of texts", f"found {value!r}")
        return tuple(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# The phases of DESIGN; a pack may add to them.
STANDARD = {
    "bootstrap", "download", "dist_init", "target_load", "draft_load", "kv_cache", "draft_kv",
    "target_graph", "draft_graph", "http_up", "warmup", "ready", "serving",
}  # fmt: skip
