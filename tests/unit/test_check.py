"""A broken pack gives the problem that names what is broken; nothing else does."""

from __future__ import annotations

import itertools
import json
from time import perf_counter

import pytest

from phasetrack.core.check import PATIENCE_S, check
from phasetrack.core.patterns import load_pack, merge

STAMP = "[2026-11-30 15:42:03 TP0] "
GOOD = {
    "id": "x.load.begin",
    "phase": "target_load",
    "role": "begin",
    "match": r"Load begins\. avail=(?P<avail_mem_gib>[\d.]+) GB",
    "must_match": [STAMP + "Load begins. avail=13.25 GB"],
    "must_not_match": [STAMP + "Load ends. avail=13.25 GB"],
}
OTHER = {
    "id": "x.load.end",
    "phase": "target_load",
    "role": "end",
    "match": r"Load ends\.",
    "must_match": [STAMP + "Load ends. avail=13.25 GB"],
    "must_not_match": [STAMP + "Load begins. avail=13.25 GB"],
}
BAR = {
    "id": "x.load.bar",
    "phase": "target_load",
    "role": "progress",
    "bar": r"Loading shards\Z",
    "must_match": ["Loading shards:  33% Completed | 1/3 [00:01<00:03,  1.74s/it]"],
    "must_not_match": ["Loading shards slowly:  33% Completed | 1/3 [00:01<00:03,  1.74s/it]"],
}
FAILURE = {
    "id": "x.fail.memory",
    "role": "failure",
    "where": "exception",
    "fatal": True,
    "match": r"[\w.]*Error: no room for (?P<wanted_text>\d+)",
    "cause": "There was no room for {wanted}.",
    "remedy": "Ask for less (now {mem_fraction_static}).",
    "must_match": ["RuntimeError: no room for 12"],
    "must_not_match": ["RuntimeError: no room"],
}


def frozen() -> float:
    return 0.0


def pack(*rules, bulk=(), trusted=True):
    lines = ["[pack]", "schema = 1", 'engine = "x"']
    for pattern in bulk:
        lines += ["[[bulk]]", f"match = {json.dumps(pattern)}"]
    for rule in rules:
        lines += ["[[rule]]", *(f"{key} = {json.dumps(value)}" for key, value in rule.items() if value is not None)]
    return load_pack("\n".join(lines), "x.toml", trusted=trusted)


def facts(*rules, **changes):
    """The problems of a good pack with the last rule changed."""
    *others, rule = rules
    return [problem.fact for problem in check(pack(*others, rule | changes), frozen)]


def test_a_good_pack_has_no_problem():
    assert check(pack(GOOD, OTHER, BAR, FAILURE, bulk=[r"Step \d+"]), perf_counter) == []


@pytest.mark.parametrize("kind", ["must_match", "must_not_match"])
@pytest.mark.parametrize("rule", [GOOD, BAR, FAILURE], ids=["line", "bar", "exception"])
def test_a_rule_without_samples_of_both_kinds_does_not_exist(rule, kind):
    problems = check(pack({**rule, kind: None}), frozen)
    assert f"has no {kind} sample" in [problem.fact for problem in problems]
    assert {problem.rule_id for problem in problems} == {rule["id"]}


def test_a_sample_that_its_rule_does_not_match_is_named_with_the_sample():
    problems = check(pack(GOOD | {"must_match": [*GOOD["must_match"], STAMP + "Loading begins"]}), frozen)
    assert [(p.fact, p.text) for p in problems] == [("does not match its own sample", STAMP + "Loading begins")]


def test_a_line_that_must_not_match_but_does_is_named():
    assert facts(GOOD, must_not_match=[STAMP + "Load begins. avail=1.5 GB, as ever"]) == [
        "claims a line that it must not match"
    ]


def test_two_rules_that_claim_one_line_are_both_named():
    twin = OTHER | {"id": "x.twin", "match": r"Load (?:begins|ends)\.", "must_match": OTHER["must_match"]}
    problems = check(pack(GOOD, OTHER, twin | {"must_not_match": [STAMP + "Load"]}), frozen)
    assert [(p.rule_id, p.fact) for p in problems] == [
        ("x.load.begin", "shares a sample with x.twin"),
        ("x.load.end", "shares a sample with x.twin"),
        ("x.twin", "shares a sample with x.load.end"),
        ("x.twin", "matches its sample, but the pipeline does not find it"),
    ]


def test_rules_of_all_packs_loaded_are_held_against_each_other():
    mine = pack(OTHER | {"id": "mine.end"})
    assert "shares a sample with mine.end" in [p.fact for p in check(merge([pack(GOOD, OTHER), mine]), frozen)]


def test_two_bars_of_one_description_are_named():
    twin = BAR | {
        "id": "x.twin",
        "bar": "Loading",
        "must_not_match": ["Fetching:  33%|█  | 1/3 [00:01<00:03,  1.74s/it]"],
    }
    assert "shares a sample with x.twin" in facts(twin, BAR)


def test_the_empty_description_is_a_bar_of_its_own():
    bare = BAR | {"id": "x.bare", "bar": "", "must_match": ["  0%|          | 0/36 [00:00<?, ?it/s]"]}
    assert facts(BAR, bare) == []


def test_a_bar_rule_is_tried_with_whole_frames_only():
    assert facts(BAR, must_match=["Loading shards"]) == ["does not match its own sample"]


def test_two_kinds_for_one_exception_are_named():
    twin = FAILURE | {"id": "x.twin", "match": r"[\w.]*Error: no (?P<wanted_text>room)", "must_not_match": ["no room"]}
    assert "shares a sample with x.twin" in facts(twin, FAILURE)


def test_an_exception_that_a_line_rule_claims_too_is_named():
    line = OTHER | {"id": "x.line", "match": "RuntimeError: no room", "must_match": ["RuntimeError: no room left"]}
    assert "shares a sample with x.line" in facts(line, FAILURE)


@pytest.mark.parametrize(
    ("match", "fact"),
    [
        (r"Load begins\. avail=13", "holds the literal digit 1; write \\d"),
        (r"Load begins\. avail=[1-3]", "holds the literal digit 1; write \\d"),
        (r"(Load) begins\. avail=(?!\1)", "holds a back-reference"),
        (r".*begins\. avail=", "is not anchored: it may begin anywhere"),
        (r"[A-Z]\w+ \w+\. \w+=", "holds no literal text to look it up by"),
    ],
)
def test_an_expression_that_the_lookup_cannot_trust_is_named(match, fact):
    assert fact in facts(GOOD, match=match)


def test_digits_in_names_and_repetitions_are_no_literals():
    assert facts(GOOD, match=r"Load begins\. avail=(?P<e2e_gib>\d{2}\.\d{1,2})") == []


@pytest.mark.parametrize(
    ("match", "fact"),
    [
        (
            r"Load begins\. avail=(?P<avail_mem_tokens>[\d.]+)",
            "group avail_mem_tokens is no value of its unit: '13.25'",
        ),
        (r"Load begins\.(?P<why_text> because.*)?", "group why_text takes part in no sample"),
    ],
)
def test_a_group_that_gives_no_fact_is_named(match, fact):
    assert facts(GOOD, match=match) == [fact]


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({"where": None}, "is a failure without `where`"),
        ({"cause": None}, "is a failure without a cause"),
        ({"remedy": None}, "is a failure without a remedy"),
        ({"remedy": "Lower {0}"}, "has a placeholder that is no fact's name"),
        ({"remedy": "Lower {"}, "has a placeholder that is no fact's name"),
        ({"remedy": "Lower {mem_fraction_static}"}, "names a fact that may be unknown; put it in parentheses"),
    ],
)
def test_advice_that_cannot_be_given_is_named(changes, fact):
    assert fact in facts(FAILURE, **changes)


def test_a_rule_that_is_slow_on_every_try_is_named_once():
    clock = itertools.count(step=2 * PATIENCE_S)
    problems = check(pack(GOOD), lambda: next(clock))
    assert [p.fact for p in problems] == ["takes 100 ms on a hostile text"]


def test_a_machine_that_stalls_once_is_forgiven():
    ticks = itertools.chain([0.0, 9.0], itertools.repeat(9.0))
    assert check(pack(GOOD), lambda: next(ticks)) == []


def test_a_users_rule_that_never_ends_is_stopped_and_named():
    rule = GOOD | {"match": r"Load (?:[a-z]+)+!", "must_match": [STAMP + "Load it!"]}
    problems = check(pack(rule, trusted=False), perf_counter)
    assert len(problems) == 1
    assert problems[0].fact.endswith("on a hostile text")


def test_bulk_expressions_are_tried_with_hostile_texts_too():
    clock = itertools.count(step=2 * PATIENCE_S)
    problems = check(pack(bulk=[r"Step \d+"]), lambda: next(clock))
    assert [(p.rule_id, p.fact) for p in problems] == [("bulk 1", "takes 100 ms on a hostile text")]


def test_a_bulk_expression_with_a_literal_digit_is_named():
    assert [p.rule_id for p in check(pack(bulk=["Step 1"]), frozen)] == ["bulk 1"]
