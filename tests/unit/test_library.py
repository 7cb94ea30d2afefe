"""Packs that are kept as data are the packs."""

from __future__ import annotations

import json

import pytest

from phasetrack.edges import library
from phasetrack.errors import PatternError

PACK = """
[pack]
schema = 1
engine = "tea"
title = "Tea"

[[rule]]
id = "tea.ready"
role = "begin"
phase = "ready"
match = "Tea is ready"
must_match = ["Tea is ready"]
must_not_match = ["No tea"]
"""


@pytest.fixture
def pack(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "tea.toml"
    path.write_text(PACK)
    return path


def kept(tmp_path):
    return sorted((tmp_path / "cache" / "phasetrack").glob("pack-*.json"))


def rules(path):
    return [(rule.id, rule.match, rule.must_match) for rule in library.load([path]).rules if rule.engine == "tea"]


def test_what_was_kept_is_what_the_file_says(pack, tmp_path):
    first = library.load([pack])
    assert len(kept(tmp_path)) == len(library.shipped()) + 1
    assert library.load([pack]) == first


def test_a_changed_file_is_read_anew(pack):
    before = rules(pack)
    pack.write_text(PACK.replace("Tea is ready", "The tea is ready"))
    assert [match for _, match, _ in rules(pack)] == ["The tea is ready"] != before


@pytest.mark.parametrize("text", ["", "{", "[]", '{"key": 1}', '{"key": [], "table": {}}', "\0", '"' * 3])
def test_what_does_not_fit_is_not_used(pack, tmp_path, text):
    before = rules(pack)
    for shelf in kept(tmp_path):
        shelf.write_text(text)
    assert rules(pack) == before


def test_what_others_may_write_is_not_used(pack, tmp_path):
    before = rules(pack)
    for shelf in kept(tmp_path):
        table = json.loads(shelf.read_text())
        table["table"]["rule"] = []
        shelf.write_text(json.dumps(table))
        shelf.chmod(0o666)
    assert rules(pack) == before


def test_a_cache_that_cannot_be_written_is_no_error(pack, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert rules(pack) == [("tea.ready", "Tea is ready", ("Tea is ready",))]


def test_a_kept_file_that_is_wrong_in_form_is_told_as_the_file_itself(pack):
    pack.write_text(PACK + "colour = 3\n")
    for _ in range(2):
        with pytest.raises(PatternError, match="colour"):
            library.load([pack])


def test_only_its_owner_reads_what_is_kept(pack, tmp_path):
    rules(pack)
    assert {shelf.stat().st_mode & 0o777 for shelf in kept(tmp_path)} == {0o600}
