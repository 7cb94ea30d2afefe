"""Templates and facts in, sentences out."""

from __future__ import annotations

import pytest

from phasetrack.core.advice import advise, derived, fill, headline, words
from phasetrack.core.model import Case, Failure, Place, Role, Rule, Where

GIB = 2**30


def rule(**given: object) -> Rule:
    return Rule(id="x.fail", engine="x", role=Role.FAILURE, where=Where.EXCEPTION, **given)  # type: ignore[arg-type]


def test_a_parenthesis_goes_with_a_fact_that_is_unknown():
    template = "Lower --mem-fraction-static (now {mem_fraction_static}) or use more GPUs (--tp-size, now {tp_size})."
    assert fill(template, {"tp_size": "8"}) == "Lower --mem-fraction-static or use more GPUs (--tp-size, now 8)."


def test_a_parenthesis_without_a_fact_stays():
    assert fill("Start it (as root).", {}) == "Start it (as root)."


def test_a_value_that_is_a_sentence_ends_one_only_once():
    assert fill("It failed: {reason}.", {"reason": "no space left."}) == "It failed: no space left."
    assert fill("It failed: {reason}.", {"reason": "not a single kernel!"}) == "It failed: not a single kernel!"
    assert fill("It failed: {reason}.", {"reason": "../x/y.."}) == "It failed: ../x/y..."


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("weights_bytes", 8.48 * GIB, "8.5 GiB"),
        ("waited_s", 480.0, "8 min 00 s"),
        ("exit_code", "-9", "-9, SIGKILL"),
        ("exit_code", 137, "137, SIGKILL"),
        ("exit_code", "1", "1"),
        ("mem_fraction_static", 0.88, "0.88"),
        ("sizes", (1, 2), "1, 2"),
        ("unknown", None, ""),
        ("text", "x" * 500, "x" * 239 + "…"),
    ],
)
def test_a_value_is_said_by_the_unit_in_its_name(name, value, said):
    assert words(name, value) == said


def test_the_first_case_whose_condition_holds_and_whose_facts_are_known_is_taken():
    kind = rule(
        cause="It failed.", remedy="Look.", remedies={"kv_cache": "Lower it."},
        cases=(
            Case(of="code", like="-9.*", cause="Killed on {rank}."),
            Case(phase="kv_cache", cause="No room in the cache: {room_bytes}."),
            Case(cause="No room: {room_bytes}.", remedy="Make room."),
        ),
    )  # fmt: skip
    assert advise(kind, {}, None) == ("It failed.", "Look.")
    assert advise(kind, {"code": -9, "rank": "TP1"}, None)[0] == "Killed on TP1."
    assert advise(kind, {"code": -9}, None)[0] == "It failed."
    assert advise(kind, {"room_bytes": GIB}, "kv_cache") == ("No room in the cache: 1.0 GiB.", "Lower it.")
    assert advise(kind, {"room_bytes": GIB}, "warmup") == ("No room: 1.0 GiB.", "Make room.")


def test_the_share_that_is_reserved_and_the_least_that_would_do_follow_from_the_log():
    facts = {"mem_fraction_static": 0.04, "avail_mem_bytes": 100 * GIB, "after_load_bytes": 90 * GIB}
    found = dict(derived(facts))
    assert found == {"share_bytes": 4 * GIB, "over_bytes": 6 * GIB, "fraction_needed": "0.11"}
    assert dict(derived(facts | {"mem_fraction_static": 0.8}))["room_bytes"] == 70 * GIB
    assert not dict(derived({"mem_fraction_static": None, "avail_mem_bytes": GIB}))


def test_a_headline_is_the_cause_with_the_message_unless_it_says_so_already():
    def failure(message: str, cause: str, *, inferred: bool = False) -> Failure:
        return Failure("x", True, None, None, Place(1, 1, 0), None, message, cause, inferred=inferred)

    assert headline(failure("KeyError: 'a.b'", "A tensor is unknown.")) == "A tensor is unknown (KeyError: 'a.b')."
    assert headline(failure("Error: no space", "A disk is full: no space.")) == "A disk is full: no space."
    assert headline(failure("Error: no space.", "")) == "Error: no space."
    assert headline(failure("It is gone.", "Killed.", inferred=True)) == "It is gone."


def test_a_share_that_is_large_enough_already_is_not_advised():
    facts = {"mem_fraction_static": 0.9, "avail_mem_bytes": 80 << 30, "after_load_bytes": 40 << 30}
    assert "fraction_needed" not in dict(derived(facts))
    assert dict(derived({**facts, "mem_fraction_static": 0.4}))["fraction_needed"] == "0.51"
