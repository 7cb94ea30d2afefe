"""The real screen shows moments of recordings as it did: keys pressed by Textual's pilot, at two sizes."""

from __future__ import annotations

import pytest

from tests.screens.replays import FOLDER, SCENES, golden


@pytest.mark.parametrize("name", SCENES)
def test_a_replay_shows_a_moment_as_it_did(name):
    assert golden(name) == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
