"""``server_args`` as printed, whole or cut, and the phases that are due."""

from __future__ import annotations

import pytest

from phasetrack.core.plan import expected_phases, has_draft, is_worker_node, number, parse_args


def test_a_call_is_read():
    assert parse_args("ServerArgs(model_path='m', tp_size=8, mem_fraction_static=0.88, log_requests=False, x=None)") == {  # noqa: E501 - as printed
        "model_path": "m", "tp_size": 8, "mem_fraction_static": 0.88, "log_requests": False, "x": None,
    }  # fmt: skip


def test_a_dict_is_read():
    assert parse_args("{'model_path': 'm', 'tp_size': 8, 'mem_fraction_static': 0.88, 'log_requests': False}") == {
        "model_path": "m", "tp_size": 8, "mem_fraction_static": 0.88, "log_requests": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("A(a='x, y=z', b=1)", "b", 1),
        ("A(a='it\\'s', b=1)", "a", "it\\'s"),
        ('A(a="it\'s, b=2", b=1)', "b", 1),
        ("A(a=[1, 2, 3], b=1)", "a", "[1, 2, 3]"),
        ("A(a=[1, 2, 3], b=1)", "b", 1),
        ("A(a={'k': 'v', 'w': 1}, b=1)", "b", 1),
        ("A(a=B(c=1, d=2), e=3)", "e", 3),
        ("A(a=<Enum.X: 'x'>, b=1)", "b", 1),
        ("A(a=1e-05, b=-1)", "a", 1e-05),
        ("A(a=1e-05, b=-1)", "b", -1),
        ("A(a=0.5)   ", "a", 0.5),
        ("A(json_model_override_args='{}', b=1)", "json_model_override_args", "{}"),
    ],
)
def test_values_of_every_kind(text, key, value):
    assert parse_args(text)[key] == value


def test_arguments_that_a_terminal_cut_off_are_read_as_far_as_they_go():
    whole = "ServerArgs(model_path='/srv/models/m', tokenizer_path='/srv/models/m', tp_size=8, port=30000)"
    for end in range(len(whole)):
        found = parse_args(whole[:end])
        assert found.get("model_path") in {None, "/srv/models/m"}
        assert found.get("tp_size") in {None, 8}


@pytest.mark.parametrize(
    "text", ["", "{", "(", "ServerArgs", "ServerArgs(", "a" * 30000, "a=" * 15000, "A(a=" + "9" * 5000, "A(x=1e999)",
             "A(a='" + "\\" * 9999, "{'a': " * 5000, "A(x=" + " " * 30000 + "y", "A(a=nan, b=inf)"],
)  # fmt: skip
def test_hostile_arguments_are_text(text):
    values = parse_args(text).values()
    assert all(value is None or abs(value) < 1e19 for value in values if not isinstance(value, str))


@pytest.mark.parametrize(
    ("algorithm", "answer"),
    [
        ("EAGLE", True),
        ("EAGLE3", True),
        ("NEXTN", True),
        ("STANDALONE", True),
        ("DFLASH", True),
        ("NGRAM", False),
        (None, False),
    ],
)
def test_whether_a_draft_is_due(algorithm, answer):
    assert has_draft({"speculative_algorithm": algorithm}) is answer


def test_whether_a_draft_is_due_is_unknown_without_the_argument():
    assert has_draft({}) is None


def test_a_worker_node_serves_no_http():
    assert is_worker_node({"node_rank": 1})
    assert not is_worker_node({"node_rank": 0})
    assert not is_worker_node({})
    assert number({"tp_size": True}, "tp_size", 1) == 1


WHOLE = ("bootstrap", "dist_init", "target_load", "kv_cache", "target_graph", "http_up", "warmup", "ready")


@pytest.mark.parametrize(
    ("args", "lacking", "added"),
    [
        ({"tp_size": 1}, (), ()),
        ({"speculative_algorithm": "EAGLE3"}, (), ("draft_load", "draft_kv", "draft_graph")),
        (
            {"speculative_algorithm": "EAGLE3", "disable_cuda_graph": True},
            ("target_graph",),
            ("draft_load", "draft_kv"),
        ),
        ({"speculative_algorithm": "NGRAM"}, (), ()),
        ({"disable_cuda_graph": True}, ("target_graph",), ()),
        ({"skip_server_warmup": True}, ("warmup",), ()),
        ({"disaggregation_mode": "prefill"}, ("target_graph",), ()),
        ({"disaggregation_mode": "decode"}, (), ()),
        ({"nnodes": 2, "node_rank": 1}, ("http_up", "warmup"), ()),
    ],
)
def test_the_phases_to_expect(args, lacking, added):
    phases = expected_phases(args)
    assert set(phases) == (set(WHOLE) - set(lacking)) | set(added)
    assert len(phases) == len(set(phases))
    assert phases[-1] == "ready"


def test_nothing_is_expected_of_an_unknown_start():
    assert expected_phases({}) == ()


def test_a_call_inside_of_the_arguments_is_one_value():
    found = parse_args("ServerArgs(tp_size=2, graphs=Graphs(decode=Phase(backend='full', bs=[1, 2]), n=None), bs=3)")
    assert found == {"tp_size": 2, "graphs": "Graphs(decode=Phase(backend='full', bs=[1, 2]), n=None)", "bs": 3}
