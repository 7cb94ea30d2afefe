"""The store, on real files: what is written is read again, whoever else writes, and whatever happens to the file."""

from __future__ import annotations

import sqlite3
import stat
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from phasetrack.core.key import key_of
from phasetrack.core.model import Outcome
from phasetrack.core.past import remembered
from phasetrack.edges.history import History, Store, default_path
from phasetrack.edges.tables import VERSION
from phasetrack.errors import HistoryError
from phasetrack.share import look_beside, noise_between
from tests.talk import FIXTURES, hear, patterns, recording

if TYPE_CHECKING:
    from pathlib import Path

    from phasetrack.core.model import Remembered, Snapshot

NOW_S = 1_796_053_000.0


def known(name: str) -> Snapshot:
    return hear(recording(name)).snapshot


def boot(name: str) -> Remembered:
    found = remembered(known(name), f"{name}.log")
    assert found is not None
    return found


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "deep" / "history.db")


def test_the_history_lies_where_the_system_wants_state(state_home):
    assert default_path() == state_home / "phasetrack" / "history.db"


def test_what_was_written_is_read_again(store):
    one = boot("03a-eagle3-file-coldjit")
    assert store.remember([one], now_s=NOW_S) == 1
    (listed,) = store.boots()
    read = store.boot(listed.number)
    assert read.past == one.past
    assert dict(read.facts) == dict(one.facts)
    assert (read.uid, read.model, read.log, read.stored_s) == (one.uid, one.model, one.log, NOW_S)


def test_nothing_is_made_by_reading(store):
    assert store.boots() == []
    assert store.priors(None).boots == ()
    assert store.forget(everything=True) == 0
    assert not store.path.exists()


def test_only_its_owner_can_read_it(store):
    store.remember([boot("01-plain-file")], now_s=NOW_S)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


def test_the_same_boot_twice_is_one_boot(store):
    one = boot("01-plain-file")
    assert store.remember([one], now_s=NOW_S) == 1
    assert store.remember([one], now_s=NOW_S + 60) == 0
    assert len(store.boots()) == 1


def test_a_boot_that_was_left_while_it_started_is_replaced_by_the_whole_of_it(store):
    data = recording("01-plain-file")
    early = remembered(hear(data[: data.index(b"Memory pool end")]).snapshot)
    whole = boot("01-plain-file")
    assert early.past.outcome == Outcome.STARTING
    assert store.remember([early], now_s=NOW_S) == 1
    assert store.remember([whole], now_s=NOW_S) == 1
    assert store.remember([early], now_s=NOW_S) == 0
    (kept,) = store.boots()
    assert kept.past.outcome == "ready"


def test_past_boots_come_by_likeness_and_then_the_newest_first(store):
    names = ["07a-tp2-file", "03b-eagle3-pipe", "01-plain-file", "02-plain-pty", "16b-plain-file"]
    store.remember(map(boot, names), now_s=NOW_S)
    priors = store.priors(key_of(known("06h-ctrl-c-ignored-pty")))
    began = {boot(name).past.began_s: name for name in names}
    assert [began[past.began_s] for past in priors.boots[:3]] == ["02-plain-pty", "01-plain-file", "16b-plain-file"]


def test_a_boot_is_no_past_of_itself(store):
    one = boot("01-plain-file")
    store.remember([one, boot("02-plain-pty")], now_s=NOW_S)
    assert [past.began_s for past in store.priors(one.past.key, but={one.uid}).boots] == [
        boot("02-plain-pty").past.began_s
    ]


def test_boots_are_forgotten_by_number_by_age_or_all(store):
    store.remember(map(boot, ["01-plain-file", "02-plain-pty", "16b-plain-file"]), now_s=NOW_S)
    newest = store.boots()[0].number
    assert store.forget(numbers=[newest, 999]) == 1
    assert store.forget(before_s=boot("02-plain-pty").past.began_s) == 1
    assert store.forget(everything=True) == 1
    assert store.boots() == []
    with sqlite3.connect(store.path) as base:
        assert base.execute("SELECT count(*) FROM spans").fetchone() == (0,)


def test_a_failed_write_leaves_nothing_of_it(store):
    store.remember([boot("01-plain-file")], now_s=NOW_S)
    broken = replace(boot("02-plain-pty"), engine=None)  # type: ignore[arg-type]
    with pytest.raises(HistoryError):
        store.remember([boot("16b-plain-file"), broken], now_s=NOW_S)
    assert len(store.boots()) == 1


# --- what can be wrong with the file ----------------------------------------------------------------


def damaged(path: Path) -> None:
    path.write_bytes(b"this is no database" * 100)


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20000])


def newer(path: Path) -> None:
    with sqlite3.connect(path) as base:
        base.execute(f"PRAGMA user_version = {VERSION + 6}")


def foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE cookies (name)")
        base.execute("PRAGMA user_version = 1")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (damaged, "damaged (move it away: mv "),
        (torn, "damaged (move it away: mv "),
        (newer, "written by a newer phasetrack (format 7, this one knows 1); left alone"),
        (foreign, "not a history of phasetrack"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_once_and_tracking_goes_on(store, spoil, said):
    store.remember(map(boot, ["01-plain-file", "02-plain-pty", "03a-eagle3-file-coldjit"]), now_s=NOW_S)
    spoil(store.path)
    before = store.path.read_bytes()
    warnings: list[str] = []
    history = History("server.log", warnings.append, store)
    for _ in range(3):
        assert history.sample(known("16b-plain-file"), NOW_S) is None
        assert history.sample(known("07a-tp2-file"), NOW_S) is None
    history.close(known("07a-tp2-file"))
    (warning,) = warnings
    assert said in warning
    assert str(store.path) in warning
    assert store.path.read_bytes() == before
    with pytest.raises(HistoryError):
        store.boots()


def test_a_directory_in_its_place_is_named(store):
    store.path.mkdir(parents=True)
    warnings: list[str] = []
    History("server.log", warnings.append, store).close(known("01-plain-file"))
    assert len(warnings) == 1


# --- beside a session -------------------------------------------------------------------------------


def test_a_session_is_told_of_like_boots_once_and_keeps_its_own(store):
    store.remember([boot("01-plain-file")], now_s=NOW_S)
    history = History("server.log", pytest.fail, store)
    one = known("02-plain-pty")
    assert len(history.sample(one, NOW_S).boots) == 1
    assert history.sample(one, NOW_S) is None
    assert len(store.boots()) == 2
    assert store.boots()[0].log == "server.log"


def test_a_boot_that_another_follows_is_kept_as_far_as_it_came(store):
    data = recording("01-plain-file")
    early = hear(data[: data.index(b"Memory pool end")], open_end=True).snapshot
    history = History("server.log", pytest.fail, store)
    history.sample(early, NOW_S)
    assert store.boots() == []
    history.sample(replace(known("02-plain-pty"), boot=2), NOW_S)
    assert [one.past.outcome for one in store.boots()] == ["ready", "starting"]


def test_a_page_shows_the_estimates_of_their_time_and_a_comparison_asks_the_same_history(tmp_path: Path) -> None:
    """Neither boots that came later nor the boot itself are its past."""
    name = "07b-tp2-eagle3-pipe"
    log, now, itself = str(FIXTURES / name / "server.log"), known(name), boot(name)
    others = [
        replace(itself, uid=f"{k:032d}", past=replace(itself.past, began_s=(itself.past.began_s or 0.0) + days * 86400))
        for k, days in enumerate((1, 2, 3, 4))
    ]
    store = Store(tmp_path / "later.db")
    store.remember([itself, *others], now_s=0.0)
    told = look_beside(patterns(), log, now, History(log, print, store)).told
    assert told
    assert all("like boot" not in one.source for one in told)
    assert noise_between(now, now, store) == {}

    store = Store(tmp_path / "earlier.db")
    earlier = [replace(one, past=replace(one.past, began_s=(one.past.began_s or 0.0) - 30 * 86400)) for one in others]
    store.remember([itself, *earlier], now_s=0.0)
    told = look_beside(patterns(), log, now, History(log, print, store)).told
    assert told[-1].source.endswith("4 like boots")
    assert noise_between(now, now, store)["target_load"].runs == 4
