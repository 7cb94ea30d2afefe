"""Stamps of several writers on one timeline: the log's own wall clock."""

from __future__ import annotations

from datetime import UTC, datetime

from phasetrack.core.clock import Clock
from phasetrack.core.model import Prefix, Zone
from phasetrack.core.prefix import Learned, parse


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def own(text: str, **more: object) -> Prefix:
    return Prefix(stamp_s=at(text), engine=True, **more)  # type: ignore[arg-type]


def undated(text: str) -> Prefix:
    hour, minute, second = map(int, text.split(":"))
    return Prefix(stamp_s=hour * 3600.0 + minute * 60 + second, dated=False, engine=True)


def test_an_engines_stamp_is_taken_as_printed():
    clock = Clock()
    assert clock.at(own("2026-11-30T15:42:22"), known=False) == at("2026-11-30T15:42:22")
    assert clock.zone == Zone(dated=True, offset_s=None)


def test_only_the_newest_time_never_goes_back():
    clock = Clock()
    clock.at(own("2026-11-30T15:42:22"), known=True)
    assert clock.at(own("2026-11-30T15:42:20"), known=True) == at("2026-11-30T15:42:20")
    assert clock.newest_s == at("2026-11-30T15:42:22")


def test_a_line_without_a_stamp_has_no_time():
    assert Clock().at(Prefix(), known=True) is None


def test_a_clock_without_a_date_turns_to_the_next_day_at_midnight():
    clock = Clock()
    assert clock.at(undated("23:59:59"), known=True) == 86399
    assert clock.at(undated("00:00:01"), known=True) == 86400 + 1
    assert clock.at(undated("23:59:58"), known=True) == 86398  # a late line of yesterday
    assert clock.at(undated("00:00:02"), known=True) == 86400 + 2
    assert clock.zone.dated is False


def test_a_clock_without_a_date_in_a_dated_log_counts_for_its_nearest_day():
    clock = Clock()
    clock.at(own("2026-11-30T23:59:50"), known=True)
    assert clock.at(undated("23:59:55"), known=True) == at("2026-11-30T23:59:55")
    assert clock.at(undated("00:00:05"), known=True) == at("2026-12-01T00:00:05")
    assert clock.zone.dated is True


def test_a_transport_in_another_zone_is_brought_to_the_engines_clock():
    clock, learned = Clock(), Learned()
    prefix, _ = parse("2026-11-30T07:42:22.900Z [2026-11-30 15:42:22] x", learned)
    assert clock.at(prefix, known=True) == at("2026-11-30T15:42:22")
    prefix, _ = parse("2026-11-30T07:42:24.250Z Traceback", learned)
    assert clock.at(prefix, known=False) == at("2026-11-30T15:42:24.250")
    assert clock.zone.offset_s is None


def test_a_transport_alone_tells_the_time_and_its_offset():
    clock, learned = Clock(), Learned()
    prefix, _ = parse("2026-11-30T15:42:22.250+08:00 Load weight begin.", learned)
    assert clock.at(prefix, known=True) == at("2026-11-30T15:42:22.250")
    assert clock.zone == Zone(dated=True, offset_s=8 * 3600)


def test_a_transport_without_a_year_waits_for_the_engines():
    clock, learned = Clock(), Learned()
    prefix, _ = parse("Nov 30 15:42:20 gpu sglang[1]: x", learned)
    assert clock.at(prefix, known=False) is None
    prefix, _ = parse("Nov 30 15:42:22 gpu sglang[1]: [2026-11-30 15:42:22] x", learned)
    assert clock.at(prefix, known=True) == at("2026-11-30T15:42:22")
    prefix, _ = parse("Nov 30 15:42:24 gpu sglang[1]: x", learned)
    assert clock.at(prefix, known=False) == at("2026-11-30T15:42:24")


def test_a_librarys_stamp_counts_only_just_after_the_newest_time():
    clock = Clock()
    library = Prefix(stamp_s=at("2026-11-30T07:42:22"), library=True)
    assert clock.at(library, known=False) is None
    clock.at(own("2026-11-30T15:42:22"), known=True)
    assert clock.at(library, known=False) is None
    near = Prefix(stamp_s=at("2026-11-30T15:42:25"), library=True)
    assert clock.at(near, known=False) == at("2026-11-30T15:42:25")


def test_a_librarys_form_around_a_known_message_is_a_users_logging_configuration():
    clock = Clock()
    library = Prefix(stamp_s=at("2026-11-30T15:42:22"), library=True)
    assert clock.at(library, known=True) == at("2026-11-30T15:42:22")


def test_a_harness_tells_no_time():
    assert Clock().at(own("2026-11-30T15:42:22", foreign=True), known=True) is None
