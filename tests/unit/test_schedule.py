"""When each byte of a log was written: stamps, bars, what lies between, and clocks that cannot be trusted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phasetrack.core.model import Chunk, Closed
from phasetrack.core.pacing import Course, Scale, playing
from phasetrack.core.schedule import How, Schedule, lay
from phasetrack.core.stamps import Notes, straighten
from phasetrack.core.tracker import Tracker
from tests.talk import FIXTURES, log, patterns, recording, recordings


def laid(data: bytes) -> Schedule:
    notes = Notes()
    tracker = Tracker(patterns(), notes=notes)
    tracker.feed(Chunk(data))
    tracker.feed(Closed())
    return lay(notes, len(data))


def due(data: bytes, schedule: Schedule, text: bytes) -> tuple[str, How]:
    """When a text was written, as minute and second, and how that is known."""
    at_s, how = schedule.when(data.index(text) + len(text) - 1)
    return f"{int(at_s // 60 % 60):02d}:{at_s % 60:04.1f}", how


# --- stamps, bars, and text without a time -----------------------------------------------------------

LOAD = log("""
    42:00      | server_args=ServerArgs(model_path='/srv/models/m', tp_size=1)
               | a warning without a time, twenty seconds from anything
    42:40      | Load weight begin. avail mem=139.13 GB
               | Multi-thread loading shards:   0% Completed | 0/4 [00:00<?, ?it/s]
               <| Multi-thread loading shards:  25% Completed | 1/4 [00:05<00:15,  5.00s/it]
               <| Multi-thread loading shards: 100% Completed | 4/4 [00:20<00:00,  5.00s/it]
    42:55      | Load weight end. elapsed=20.0 s, type=A, avail mem=1.00 GB, mem usage=1.00 GB.
""").encode()


def test_a_stamp_counts_as_printed():
    assert due(LOAD, laid(LOAD), b"Load weight begin") == ("42:40.0", How.STAMPED)


def test_inside_a_bar_its_own_elapsed_field_counts():
    assert due(LOAD, laid(LOAD), b"1/4") == ("42:45.0", How.INFERRED)


def test_a_bar_is_held_before_the_stamp_that_follows_it():
    assert due(LOAD, laid(LOAD), b"4/4") == ("42:55.0", How.INFERRED)


def test_a_bar_that_no_rule_knows_is_timed_by_its_elapsed_field_too():
    data = log("""
        42:00      | server_args=ServerArgs(model_path='/srv/models/m', tp_size=1)
                   | Frobnicating:   0%|          | 0/4 [00:00<?, ?it/s]
                   <| Frobnicating:  50%|#####     | 2/4 [00:07<00:07,  3.50s/it]
        42:30      | Load weight begin. avail mem=139.13 GB
    """).encode()
    assert due(data, laid(data), b"2/4") == ("42:07.0", How.INFERRED)


def test_text_without_a_time_is_spread_between_its_neighbours():
    schedule = laid(LOAD)
    at, how = schedule.when(LOAD.index(b"twenty seconds"))
    assert how is How.SPREAD
    assert schedule.when(LOAD.index(b"server_args")).at_s < at < schedule.when(LOAD.index(b"Load weight")).at_s


def test_the_lines_of_a_failing_record_come_with_its_first():
    data = log("""
        42:00      | server_args=ServerArgs(model_path='/srv/models/m', tp_size=1)
        42:10      | Scheduler hit an exception: Traceback (most recent call last):
                   |   File "/opt/site/sglang/srt/x.py", line 1, in run
                   | ValueError: no
        52:10      | Load weight begin. avail mem=139.13 GB
    """).encode()
    assert due(data, laid(data), b"ValueError: no") == ("42:10.0", How.STAMPED)


def test_lines_that_are_stepped_over_at_speed_are_spread_up_to_the_last_of_them():
    batch = (
        b"Decode batch, #running-req: 1, #token: 48, token usage: 0.00, cuda graph: True, gen throughput (token/s): "
    )
    data = recording("01-plain-file").partition(b"SIGTERM")[0].rpartition(b"\n")[0] + b"\n"
    served = data + b"".join(
        b"[2026-11-30 15:%d:00] %s1.58, #queue-req: 0\n" % (k // 200, batch) for k in range(11200, 12000)
    )
    schedule = laid(served)
    assert schedule.end_s % 3600 == 59 * 60
    at, how = schedule.when((len(data) + len(served)) // 2)
    assert how is How.SPREAD
    assert 43 * 60 < at % 3600 < 59 * 60


def test_times_of_day_without_a_date_go_on_behind_midnight():
    data = b"[23:59:58] server_args=ServerArgs(tp_size=1)\n[00:00:03 TP0] Load weight begin. avail mem=1.00 GB\n"
    schedule = laid(data)
    assert schedule.end_s - schedule.begin_s == 5.0


@pytest.mark.parametrize("name", [name for name in recordings() if name != "06c-wrong-model-path"])
def test_a_log_alone_tells_when_its_lines_really_came(name):
    """Beside the recorded arrivals, but for what is spread: polling, whole seconds, the recorder's clock."""
    data = recording(name)
    schedule, offset = laid(data), 0
    header, *events = map(json.loads, (FIXTURES / name / "server.cast").read_text("utf-8").splitlines())
    for at, _, text in events:
        offset += len(text.encode())
        due_s, how = schedule.when(offset - 1)
        assert how is How.SPREAD or abs(header["timestamp"] + at - due_s) < 8.0


# --- clocks that cannot be trusted -------------------------------------------------------------------


def stamped(*seconds: float) -> bytes:
    """A start, and a line for each second after it."""
    lines = []
    for at in seconds:
        clock = f"{10 + int(at) // 3600:02d}:{int(at) // 60 % 60:02d}:{int(at) % 60:02d}"
        lines.append(f"[2026-11-30 {clock}] line at {at:g}.\n")
    return "".join(lines).encode()


def test_a_clock_that_is_set_back_does_not_turn_time_back():
    data = stamped(*range(3600, 3630), *range(30))
    schedule = laid(data)
    assert [(jump.back_s, data[jump.offset :][:21]) for jump in schedule.jumps] == [(3629.0, b"[2026-11-30 10:00:00]")]
    assert schedule.end_s - schedule.begin_s == 29 + 29
    assert schedule.clock(schedule.end_s) == pytest.approx(schedule.told_s[-1])


def test_one_line_of_the_far_future_does_not_stretch_the_log():
    data = stamped(0, 1, 2, 30_000, 3, 4, *range(5, 30))
    schedule = laid(data)
    assert (schedule.end_s - schedule.begin_s, schedule.odd, schedule.jumps) == (29.0, 1, ())
    assert schedule.when(data.index(b"30000")).how is How.SPREAD


def test_two_servers_whose_clocks_are_hours_apart_do_not_tear_the_log_apart():
    data = stamped(*(at for k in range(40) for at in (k, 20_000 + k)))
    schedule = laid(data)
    assert schedule.end_s - schedule.begin_s < 60
    assert schedule.odd >= 39


def test_a_later_day_is_a_silence_and_no_error():
    schedule = laid(stamped(*range(10), *range(36_000, 36_010)))
    assert (schedule.end_s - schedule.begin_s, schedule.odd) == (36_009.0, 0)


def test_a_log_that_stands_newest_first_is_spread_evenly():
    data = b"".join(reversed(recording("01-plain-file").splitlines(keepends=True)))
    schedule = laid(data)
    assert schedule.backwards
    assert schedule.timeless
    assert set(schedule.hows) == {How.SPREAD}
    assert schedule.when(len(data) // 2).at_s == pytest.approx((schedule.begin_s + schedule.end_s) / 2, abs=0.1)


def test_a_log_without_any_time_is_spread_evenly_over_a_length_that_says_nothing():
    data = b"a line without a time\n" * 400
    schedule = laid(data)
    assert (schedule.timeless, schedule.begin_s, schedule.end_s) == (True, 0.0, 10.0)
    assert schedule.clock(5.0) is None
    assert len(list(schedule.pieces(0, lambda offset, count: data[offset : offset + count]))) == 40


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e6) | st.sampled_from([0.0, 5.0, 4000.0, 9e9]), max_size=60))
def test_straightened_stamps_never_fall(stamps):
    found = [at for at in straighten(stamps).times if at is not None]
    assert found == sorted(found)


# --- pieces ------------------------------------------------------------------------------------------

LINES = st.sampled_from([
    b"[2026-11-30 10:00:01] a line\n", b"[2026-11-30 10:00:40] b\n", b"[2026-11-30 09:00:00] early\n", b"no time\n",
    b"Multi-thread loading shards:  25% Completed | 1/4 [00:05<00:15,  5.00s/it]\r", b"\r\n", b"half a line",
    b"[2026-11-30 12:00:00 TP0] Load weight begin. avail mem=139.13 GB\n", b"server_args=ServerArgs(tp_size=1)\n",
])  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(LINES, max_size=40).map(b"".join))
def test_pieces_cover_every_byte_once_in_order_and_are_the_same_from_wherever_one_begins(data):
    def read(offset: int, count: int) -> bytes:
        return data[offset : offset + count]

    schedule = laid(data)
    whole = list(schedule.pieces(0, read))
    assert [piece.end for piece in whole] == sorted({piece.end for piece in whole})
    assert (whole[-1].end if whole else 0) == len(data)
    assert [piece.due_s for piece in whole] == sorted(piece.due_s for piece in whole)
    for k, piece in enumerate(whole):
        assert list(schedule.pieces(piece.end, read)) == whole[k + 1 :]


# --- where a time of the clock lies -------------------------------------------------------------------


def test_a_time_of_the_logs_clock_is_found_even_while_nothing_was_written():
    schedule = laid(LOAD)
    begin = schedule.begin_s
    assert schedule.find(begin + 20, begin, schedule.end_s) == begin + 20
    assert schedule.find(15 * 3600 + 42 * 60 + 40, begin, schedule.end_s) == begin + 40
    assert schedule.find(begin + 3600, begin, schedule.end_s) is None


# --- how it is played --------------------------------------------------------------------------------


def test_an_idle_stretch_passes_in_the_time_that_was_asked_for():
    data = stamped(0, 1, 2, 102, 103)
    schedule = laid(data)
    course = playing(schedule, schedule.begin_s, schedule.end_s, 5.0)
    assert course.length == 2 + 5 + 1
    assert course.place(schedule.begin_s + 52) == 2 + 2.5
    assert course.moment(2 + 2.5) == schedule.begin_s + 52
    assert playing(schedule, schedule.begin_s, schedule.end_s, None).length == 103


def test_a_week_of_serving_leaves_the_start_its_room():
    scale = Scale(Course([(0.0, 0.0), (700_000.0, 700_000.0)]), 0.0, 100.0, 700_000.0)
    assert scale.share(100.0) == pytest.approx(0.9)
    assert scale.share(50.0) == pytest.approx(0.45)
    assert scale.moment(0.45) == pytest.approx(50.0)
    assert scale.share(700_000.0) == 1.0


def test_a_boot_that_never_settled_has_all_the_room():
    scale = Scale(Course([(0.0, 0.0), (60.0, 60.0)]), 0.0, 60.0, 60.0)
    assert (scale.share(30.0), scale.moment(1.0)) == (0.5, 60.0)
