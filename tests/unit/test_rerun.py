"""A log played again: at any moment what a live tracker would have known, and in the end what a report says."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phasetrack.core.model import Chunk, Closed, Outcome, Priors, Tick, VerdictState
from phasetrack.core.past import past_of, remembered
from phasetrack.core.tracker import Tracker
from phasetrack.edges.file import open_log
from phasetrack.edges.history import History, Store
from phasetrack.edges.recorded import Recorder
from phasetrack.rerun import Rerun
from phasetrack.run import read_whole
from phasetrack.tape import Tape
from phasetrack.views.jsonl import snapshot_json
from tests.probes import START_S, inputs
from tests.talk import FIXTURES, hear, patterns, recording, recordings

if TYPE_CHECKING:
    from pathlib import Path

    from phasetrack.core.model import Snapshot

FORMS = ("server.log", "server.cast")
QUICK = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(path: Path | str) -> Tape:
    tape = Tape(patterns(), str(path))
    for _ in tape.read():
        pass
    return tape


@cache
def tape_of(name: str, form: str) -> Tape:
    return read(FIXTURES / name / form)


def seen(known: Snapshot) -> str:
    return json.dumps(snapshot_json(known))


def played(tape: Tape, at_s: float, **options: object) -> Snapshot:
    """What is known when a fresh replay has been played to a moment, input by input."""
    rerun = Rerun(tape, **options)  # type: ignore[arg-type]
    for _ in rerun.play(at_s):
        pass
    return rerun.snapshot()


# --- honest ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", recordings())
def test_in_the_end_a_replay_says_what_the_report_says(name, form):
    tape = tape_of(name, form)
    tracker, records = read_whole(patterns(), tape.path)
    for _ in records:
        pass
    rerun = Rerun(tape)
    assert rerun.seek(tape.end_s)
    assert rerun.ended
    assert seen(rerun.snapshot()) == seen(tracker.snapshot())


@pytest.mark.parametrize("name", ["03a-eagle3-file-coldjit", "06f-sigstop-60s-in-graph-capture", "07d-dp2-file"])
def test_at_each_moment_it_says_what_a_tracker_beside_the_live_log_said(name):
    """Told apart by another supplier: the recorded chunks at their arrival, and a tick each second."""
    header, *events = map(json.loads, (FIXTURES / name / "server.cast").read_text("utf-8").splitlines())
    live, rerun, began = Tracker(patterns(), "server.cast"), Rerun(tape_of(name, "server.cast")), header["timestamp"]
    for second in range(1, int(events[-1][0])):
        while events[0][0] <= second:
            at = began + events[0][0]
            live.feed(Chunk(events.pop(0)[2].encode(), arrived_s=at, recorded_s=at))
        live.feed(Tick(began + second))
        rerun.seek(began + second)
        then, now = live.snapshot(began + second), rerun.snapshot()
        assert (then.verdict.state, then.verdict.because) == (now.verdict.state, now.verdict.because)
        assert (then.phases, then.progress, then.silent_s) == (now.phases, now.progress, now.silent_s)
        assert (then.now_s, then.outcome, then.failure) == (now.now_s, now.outcome, now.failure)
        assert (then.eta is None) == (now.eta is None)


def test_nothing_is_known_of_what_comes_later():
    tape = tape_of("06a1-mem-fraction-too-small", "server.log")
    rerun = Rerun(tape)
    rerun.seek(tape.end_s)
    assert rerun.snapshot().outcome is Outcome.FAILED
    rerun.seek(tape.stretch(1).settled_s - 3)
    then = rerun.snapshot()
    assert (then.outcome, then.failure, then.ended) == (Outcome.STARTING, None, False)
    assert then.sources[0].bytes == rerun.position < tape.pages.size()


@pytest.mark.parametrize("name", ["06a1-mem-fraction-too-small", "07b-tp2-eagle3-pipe"])
def test_the_clocks_of_a_start_that_is_over_stand_still_while_its_log_is_still_watched(name):
    live, now_s = Tracker(patterns(), "server.log"), 1_796_100_000.0
    live.feed(Chunk(recording(name), arrived_s=now_s))
    soon, later = live.snapshot(now_s), live.snapshot(now_s + 3600)
    assert soon.outcome in {Outcome.FAILED, Outcome.STOPPED}
    assert later.phases == soon.phases
    assert later.between_phases_s == soon.between_phases_s


# --- whatever the way ---------------------------------------------------------------------------------

PLACES = st.lists(st.floats(-0.02, 1.02), min_size=2, max_size=7)


@QUICK
@given(st.sampled_from(recordings()), st.sampled_from(FORMS), PLACES)
def test_the_state_at_a_moment_is_the_same_whatever_way_it_was_reached(name, form, places):
    tape = tape_of(name, form)
    rerun, length = Rerun(tape), tape.end_s - tape.schedule.begin_s
    for place in places:
        at_s = tape.schedule.begin_s + place * length
        rerun.seek(at_s)
        assert seen(rerun.snapshot()) == seen(played(tape, at_s))


@QUICK
@given(st.data())
def test_it_is_the_same_with_states_kept_at_any_distance(data):
    """Many and few states on the way: only the time that it takes may depend on them."""
    tape = tape_of("07b-tp2-eagle3-pipe", "server.log")
    rerun = Rerun(tape)
    rerun.keepsakes._apart_s = data.draw(st.sampled_from([0.0, 0.005, 10.0]))
    rerun.seek(tape.end_s)
    at_s = tape.schedule.begin_s + data.draw(st.floats(0, 1)) * (tape.end_s - tape.schedule.begin_s)
    rerun.seek(at_s)
    assert seen(rerun.snapshot()) == seen(played(tape, at_s))


def test_a_seek_that_is_interrupted_goes_on_where_it_was():
    tape = tape_of("01-plain-file", "server.cast")
    rerun = Rerun(tape)
    steps = 1
    while not rerun.seek(tape.end_s, lambda: True):
        steps += 1
    assert steps > 20
    assert seen(rerun.snapshot()) == seen(played(tape, tape.end_s))


@pytest.mark.parametrize("name", ["06b2-truncated-shard", "07b-tp2-eagle3-pipe"])
def test_a_state_can_be_kept_and_gone_on_from_at_every_input_even_amid_a_failing_record(name):
    tape = tape_of(name, "server.cast")
    rerun = Rerun(tape)
    while not rerun.ended:
        rerun._step(rerun._due_s())
        rerun._keep()
        rerun._thaw(rerun.keepsakes._kept[-1])
    assert seen(rerun.snapshot()) == seen(played(tape, tape.end_s))


# --- evidence ----------------------------------------------------------------------------------------


def recorded(name: str, folder: Path) -> Path:
    """A recording as ``run --record`` makes it: a cast, and the evidence beside it."""
    cast = folder / "server.cast"
    recorder = Recorder(str(cast), began_s=START_S, command="sglang")
    for at, item in inputs(name, http=True):
        if isinstance(item, Chunk):
            recorder.output(item.data, START_S + at)
        else:
            recorder.seen(item)  # type: ignore[arg-type]
    recorder.close()
    return cast


def test_evidence_that_was_recorded_beside_a_cast_is_replayed_with_it(tmp_path):
    tape = read(recorded("06f-sigstop-60s-in-graph-capture", tmp_path))
    assert len(tape.seen) > 50
    rerun = Rerun(tape)
    states = set()
    for at_s in range(int(tape.schedule.begin_s), int(tape.end_s)):
        rerun.seek(at_s)
        known = rerun.snapshot()
        states.add(known.verdict.state)
        if known.verdict.state is VerdictState.SUSPECT:
            assert "SIGCONT" in known.verdict.because + known.verdict.next_step
    assert {VerdictState.SUSPECT, VerdictState.PROGRESSING} <= states
    middle = (tape.schedule.begin_s + tape.end_s) / 2
    rerun.seek(middle)
    assert seen(rerun.snapshot()) == seen(played(tape, middle))


def test_without_evidence_the_same_log_never_suspects():
    tape = tape_of("06f-sigstop-60s-in-graph-capture", "server.cast")
    rerun = Rerun(tape)
    for at_s in range(int(tape.schedule.begin_s), int(tape.end_s), 3):
        rerun.seek(at_s)
        assert rerun.snapshot().verdict.state is not VerdictState.SUSPECT


# --- the history of then ------------------------------------------------------------------------------


def test_only_boots_that_were_over_by_then_are_known(tmp_path):
    before, now, after = ("03a-eagle3-file-coldjit", "03b-eagle3-pipe", "07b-tp2-eagle3-pipe")
    snapshots = [hear(recording(name)).snapshot for name in (before, now, after)]
    assert sorted(snapshots, key=lambda one: one.started_at_s or 0) == snapshots
    store = Store(tmp_path / "history.db")
    store.remember([kept for one in snapshots if (kept := remembered(one)) is not None], now_s=1.0)
    rerun = Rerun(tape_of(now, "server.log"), history=History("server.log", lambda _: None, store))
    rerun.seek(tape_of(now, "server.log").stretch(1).settled_s - 10)
    assert rerun._now.tracker._priors == Priors((past_of(snapshots[0]),))  # type: ignore[arg-type]
    assert rerun.snapshot().eta.basis in {"learned", "live"}  # type: ignore[union-attr]
    assert "1 like boot" in rerun.snapshot().eta.source  # type: ignore[union-attr]


# --- logs of every kind -------------------------------------------------------------------------------


def twenty_boots() -> bytes:
    """Some starts, appended to one file day after day."""
    names = ["06a1-mem-fraction-too-small", "04-nograph-nowarmup", "06b2-truncated-shard", "08-multithread-load-pipe"]
    return b"".join(
        recording(names[day % len(names)]).replace(b"2026-11-30", f"2026-12-{day + 1:02d}".encode())
        for day in range(20)
    )


def mixed() -> bytes:
    """Two servers of one compose file whose lines alternate."""
    one, two = recording("01-plain-file").split(b"\n"), recording("04-nograph-nowarmup").split(b"\n")
    pairs = zip(one, two, strict=False)
    return b"".join(b"sglang-1  | " + a + b"\nsglang-2  | " + b + b"\n" for a, b in pairs)


KINDS = {
    "a clock that jumps": recording("01-plain-file") + recording("02-plain-pty").replace(b" 15:", b" 03:"),
    "no stamps": re.sub(rb"\[2026-[^\]]*\] ", b"", recording("01-plain-file")),
    "newest first": b"\n".join(reversed(recording("01-plain-file").split(b"\n"))),
    "two servers": mixed(),
    "twenty boots": twenty_boots(),
    "empty": b"",
    "one byte": b"x",
    "no log": bytes(range(256)) * 200,
    "a hole": recording("01-plain-file")[:9000] + b"\0" * 200_000 + recording("01-plain-file")[9000:],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_log_can_be_played_and_gone_through_in_any_order(kind, tmp_path):
    path = tmp_path / "server.log"
    path.write_bytes(KINDS[kind])
    tape = read(path)
    rerun = Rerun(tape)
    for share in (0.5, 1.0, 0.0, 0.7, 0.2, 1.0):
        at_s = tape.schedule.begin_s + share * (tape.end_s - tape.schedule.begin_s)
        rerun.seek(at_s)
        assert seen(rerun.snapshot()) == seen(played(tape, at_s))
    tracker = Tracker(patterns(), str(path))
    with open_log(str(path)) as log:
        for chunk in log.chunks():
            tracker.feed(chunk)
    tracker.feed(Closed())
    assert seen(rerun.snapshot()) == seen(tracker.snapshot())


def test_without_times_nothing_is_said_of_silence(tmp_path):
    path = tmp_path / "server.log"
    path.write_bytes(KINDS["no stamps"])
    tape = read(path)
    assert "no line of this log tells a time" in tape.note
    rerun = Rerun(tape)
    for share in (0.2, 0.5, 0.9):
        rerun.seek(tape.schedule.begin_s + share * (tape.end_s - tape.schedule.begin_s))
        assert rerun.snapshot().silent_s is None


def test_a_file_with_holes_is_played_without_reading_them(tmp_path):
    path = tmp_path / "server.log"
    data = recording("01-plain-file")
    with path.open("wb") as file:
        file.write(data[:9000])
        file.seek(1 << 33)
        file.write(data[9000:])
    tape = read(path)
    rerun = Rerun(tape)
    rerun.seek(tape.end_s)
    assert rerun.snapshot().ready_at_s is not None
    assert rerun.position == (1 << 33) + len(data) - 9000


@pytest.mark.parametrize("pack", [gzip.compress])
def test_an_archive_is_played_like_its_log(pack, tmp_path):
    path = tmp_path / "server.log.gz"
    path.write_bytes(pack(recording("03b-eagle3-pipe")))
    tape, plain = read(path), tape_of("03b-eagle3-pipe", "server.log")
    at_s = tape.schedule.begin_s + 20
    assert played(tape, at_s).phases == played(plain, at_s).phases


def test_a_cast_without_a_date_is_played_by_its_own_clock(tmp_path):
    head, rest = (FIXTURES / "01-plain-file" / "server.cast").read_text("utf-8").split("\n", 1)
    header = json.loads(head)
    del header["timestamp"]
    path = tmp_path / "server.cast"
    path.write_text(json.dumps(header) + "\n" + rest, encoding="utf-8")
    tape, dated = read(path), tape_of("01-plain-file", "server.cast")
    assert tape.schedule.begin_s == 0.0
    assert tape.end_s == pytest.approx(dated.end_s - dated.schedule.begin_s)
    assert [*tape.schedule.begins] == [*dated.schedule.begins]


@pytest.mark.parametrize("times", [["NaN", "1.0"], ["Infinity", "-3"], ["1e308", "1e308"], ["5", "-Infinity"]])
def test_a_damaged_casts_clock_never_turns_back(times, tmp_path):
    path = tmp_path / "server.cast"
    events = [f'[{at}, "o", "[2026-11-30 10:00:0{k}] x\\n"]' for k, at in enumerate(times)]
    path.write_text('{"version": 2, "width": 80, "height": 24}\n' + "\n".join(events), encoding="utf-8")
    tape = read(path)
    rerun = Rerun(tape)
    rerun.seek(tape.end_s)
    assert rerun.ended


# --- boots -------------------------------------------------------------------------------------------


def test_each_of_twenty_boots_has_its_own_part_and_its_own_truth(tmp_path):
    path = tmp_path / "server.log"
    path.write_bytes(twenty_boots())
    tape = read(path)
    parts = [tape.stretch(boot) for boot in range(1, 21)]
    assert tape.latest == 20
    assert all(before.end_s == after.begin_s for before, after in pairwise(parts))
    assert [tape.boot_at(part.begin_offset + 1) for part in parts] == [*range(1, 21)]
    for boot in (1, 2, 19):
        tracker, records = read_whole(patterns(), str(path), boot=boot)
        for _ in records:
            pass
        assert seen(tape.truth(boot)) == seen(tracker.snapshot())
        rerun = Rerun(tape, boot=boot)
        rerun.seek(parts[boot - 1].end_s - 0.5)
        assert rerun.snapshot().boot == boot
        assert rerun.snapshot().outcome is tape.truth(boot).outcome


def test_states_are_kept_in_bounds_of_number_and_size(tmp_path):
    path = tmp_path / "server.log"
    path.write_bytes(twenty_boots())
    tape = read(path)
    rerun = Rerun(tape)
    rerun.keepsakes._apart_s = 0.0
    rerun.seek(tape.end_s)
    assert 40 < len(rerun.keepsakes._kept) <= 96
    assert rerun.keepsakes.bytes < 96 * 100_000
