"""Pattern files: what is read, and how each error of form names the file, the item and the mend."""

from __future__ import annotations

import re

import pytest

from phasetrack.core.model import Chunk, Role, Where
from phasetrack.core.patterns import load_pack, merge
from phasetrack.core.tracker import Tracker
from phasetrack.errors import PatternError
from tests.talk import ROOT, patterns

HEAD = '[pack]\nschema = 1\nengine = "mine"\ntitle = "Mine"\n'


def rule(**changes: str | None) -> str:
    """A sound rule, with some keys written otherwise or left out."""
    keys = {"id": '"mine.load"', "role": '"begin"', "phase": '"target_load"', "match": "'Load begins'"} | changes
    return HEAD + "[[rule]]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items() if value is not None)


def test_a_sound_rule_is_read():
    text = rule(
        match="'Load begins in (?P<took_s>[\\d.]+) s'", ends='["download"]', must_match='["Load begins in 1 s"]'
    )
    found = load_pack(text, "mine.toml", trusted=False)
    only = found.rules[0]
    assert (only.id, only.engine, only.role, only.phase, only.ends) == (
        "mine.load", "mine", Role.BEGIN, "target_load", ("download",),
    )  # fmt: skip
    assert not only.trusted
    assert found.titles == {"mine": "Mine"}


def test_a_failure_says_where_it_looks():
    text = rule(role='"failure"', where='"exception"', cause='"c"', remedy='"r"', phase=None)
    assert load_pack(text, "mine.toml").rules[0].where is Where.EXCEPTION


def test_a_phase_of_its_own_may_be_used_by_its_rules():
    text = rule(phase='"shuffle"') + '[[phase]]\nid = "shuffle"\ntitle = "Shuffle"\n'
    assert load_pack(text, "mine.toml").phases["shuffle"].title == "Shuffle"


@pytest.mark.parametrize(
    ("text", "item", "fact", "mend"),
    [
        ("[pack\n", "", "not valid TOML", "mend the line"),
        ("x = 1\n" + HEAD, "[x]", "unknown table", "[[rule]]"),
        ("", "[pack]", "missing", "schema = 1"),
        ("[[pack]]\n", "[pack]", "missing", "schema = 1"),
        ('[pack]\nschema = 1\nengine = "m"\ntitel = "M"\n', "[pack]", "unknown key 'titel'", "title"),
        ('[pack]\nschema = 2\nengine = "m"\n', "[pack]", "schema = 2", "schema = 1"),
        ("[pack]\nschema = 1\n", "[pack]", "engine must be text", "missing"),
        ("[pack]\nschema = 1\nengine = 5\n", "[pack]", "engine must be text", "found 5"),
        (HEAD + "[rule]\n", "[[rule]]", "array of tables", "not [rule]"),
        ("rule = 3\n" + HEAD, "[[rule]]", "array of tables", "not [rule]"),
        (rule(mach="'x'"), "[[rule]] mine.load", "unknown key 'mach'", "match"),
        (rule(id=None), "[[rule]] 1", "id must be text", "missing"),
        (rule(id="7"), "[[rule]] 7", "id must be text", "found 7"),
        (rule(match=None), "[[rule]] mine.load", "needs either match or bar", ""),
        (rule(bar="'x'"), "[[rule]] mine.load", "needs either match or bar", ""),
        (rule(match="'Load (begins'"), "[[rule]] mine.load", "match is no regular expression", "Load (begins"),
        (rule(match="5"), "[[rule]] mine.load", "match must be text", "found 5"),
        (rule(match=None, bar="'*x'"), "[[rule]] mine.load", "bar is no regular expression", "*x"),
        (rule(match="'x (?P<took>\\d+)'"), "[[rule]] mine.load", "group 'took' has no unit", "_s _ms"),
        (rule(phase="5"), "[[rule]] mine.load", "unknown phase 5", "target_load"),
        (rule(phase='"weights"'), "[[rule]] mine.load", "unknown phase 'weights'", "target_load"),
        (rule(role='"start"'), "[[rule]] mine.load", "role = 'start'", "begin"),
        (rule(role=None), "[[rule]] mine.load", "role = None", "begin"),
        (rule(where='"anywhere"'), "[[rule]] mine.load", "where = 'anywhere'", "record"),
        (rule(must_match='"one line"'), "[[rule]] mine.load", "must_match must be a list of texts", "one line"),
        (rule(must_not_match="[1]"), "[[rule]] mine.load", "must_not_match must be a list of texts", "[1]"),
        (rule(ends='"download"'), "[[rule]] mine.load", "ends must be a list of texts", "download"),
        (rule(ends='["downlode"]'), "[[rule]] mine.load", "unknown phase 'downlode'", "download"),
        (rule(remedies='{ tea_break = "x" }'), "[[rule]] mine.load", "unknown phase 'tea_break'", "download"),
        (rule(fatal='"yes"'), "[[rule]] mine.load", "fatal must be true or false", "found 'yes'"),
        (rule(generic="1"), "[[rule]] mine.load", "generic must be true or false", "found 1"),
        (rule(cause="3"), "[[rule]] mine.load", "cause must be text", "found 3"),
        (rule(since="0.4"), "[[rule]] mine.load", "since must be text", "found 0.4"),
        (rule(activity="[]"), "[[rule]] mine.load", "activity must be text", "found []"),
        (rule(remedies='"x"'), "[[rule]] mine.load", "remedies must be a table", "found 'x'"),
        (HEAD + "[[bulk]]\n", "[[bulk]] 1", "match must be text", "missing"),
        (HEAD + '[[phase]]\nid = "x"\n', "[[phase]] x", "title must be text", "missing"),
        (HEAD + '[[phase]]\nid = "x"\ntitle = "X"\ncolor = 1\n', "[[phase]] x", "unknown key 'color'", "quiet_why"),
        (HEAD + '[[phase]]\nid = "x"\ntitle = "X"\nsilent_s = 5\n', "[[phase]] x", "silent_s must hold", "found 5"),
        (HEAD + '[[phase]]\nid = "x"\ntitle = "X"\nsilent_s = { typical = 9, long = 5, n = 1, source = "s" }\n',
         "[[phase]] x", "not above long", ""),
        (HEAD + '[[phase]]\nid = "x"\ntitle = "X"\nsilent_s = { typical = "9", long = 5, n = 1, source = "s" }\n',
         "[[phase]] x", "silent_s must hold", "9"),
        (HEAD + '[[phase]]\nid = "x"\ntitle = "X"\ndeadline_s = "soon"\n', "[[phase]] x",
         "deadline_s must be a number", "soon"),
    ],
)  # fmt: skip
def test_an_error_of_form_names_the_file_the_item_and_the_mend(text, item, fact, mend):
    with pytest.raises(PatternError) as caught:
        load_pack(text, "here/mine.toml", trusted="[[bulk]]" in text)
    fault = caught.value
    assert (fault.path, fault.item) == ("here/mine.toml", item)
    assert fact in fault.fact
    assert mend in f"{fault.fact} {fault.mend}"
    assert str(fault).startswith("here/mine.toml: ")
    assert "\n" not in str(fault)


def test_an_id_that_stands_twice_is_an_error_over_all_packs():
    pack = load_pack(rule(), "one.toml")
    with pytest.raises(PatternError, match=r"mine\.load: this id stands twice"):
        merge([pack, pack])


def test_packs_are_merged_and_the_first_phase_of_an_id_stays():
    mine = load_pack(HEAD + '[[phase]]\nid = "target_load"\ntitle = "Mine"\n', "mine.toml")
    both = merge([patterns(), mine])
    assert both.phases["target_load"].title == "Target weights"
    assert set(both.titles) == {*patterns().titles, "mine"}


def test_the_shipped_pack_tells_how_long_every_phase_may_be_silent():
    for phase in patterns().phases.values():
        if phase.id not in {"ready", "serving"}:
            assert phase.silence is not None, phase.id
            assert phase.silence.source, phase.id
            assert phase.quiet_why, phase.id


def test_bulk_lines_are_for_shipped_packs_only():
    text = HEAD + "[[bulk]]\nmatch = 'Decode batch'\n"
    assert load_pack(text, "mine.toml").bulk == ("Decode batch",)
    with pytest.raises(PatternError, match="only in shipped packs"):
        load_pack(text, "mine.toml", trusted=False)


SLOW = "(?:a|a)+b?c"


@pytest.mark.parametrize(
    ("item", "line"),
    [
        (rule(match=f"'{SLOW}'"), "a" * 200 + "!c"),
        (rule(match=f"'{SLOW}'", role='"failure"', where='"exception"'), "a" * 200 + ".Error: c"),
        (rule(match=None, bar=f"'{SLOW}'"), "a" * 200 + ":  50%|#    | 1/2 [00:01<00:01,  1.00s/it]"),
    ],
)
def test_a_users_rule_that_takes_too_long_is_switched_off_and_said(item, line):
    mine = load_pack(item, "mine.toml", trusted=False)
    tracker = Tracker(merge([patterns(), mine]))
    begin = "[2026-11-30 15:42:22] Scheduler hit an exception: Traceback (most recent call last):\n"
    tracker.feed(Chunk(f"{begin}{line}\nValueError: {line}\n{line}: x\n".encode()))
    found = {warning.id: warning.message for warning in tracker.snapshot().warnings}
    assert "Rule mine.load was switched off" in found["off.mine.load"]


def test_no_group_is_repeated_possessively():
    """CPython up to 3.11.3 keeps what a repetition took that failed midway; it reads atomic groups rightly."""
    sources = [
        path for where in ("phasetrack/**/*.py", "tests/**/*.py", "patterns/*.toml") for path in ROOT.glob(where)
    ]
    lines = [(path.name, line) for path in sources for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(sources) > 50
    assert [each for each in lines if re.search(r"(?<!\\)\)(?:[*+?]|\{\d*,\d*\})\+", each[1])] == []
