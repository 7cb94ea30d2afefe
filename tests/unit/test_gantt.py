"""The page's geometry and its bounds: small for any log, honest about what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phasetrack.core.model import (
    Activity,
    BarRow,
    Basis,
    BootSummary,
    EvidenceSample,
    Failure,
    GpuSample,
    Outcome,
    PhaseRow,
    Place,
    ProcessSample,
    Range,
    RankSpan,
    Snapshot,
    Source,
    Status,
    Verdict,
    VerdictState,
    Warned,
)
from phasetrack.views.chart import ALL
from phasetrack.views.curves import curve_path, spread
from phasetrack.views.foretold import Told
from phasetrack.views.gantt import chart, offset, tick_step
from phasetrack.views.page import report_page
from phasetrack.views.template import unbroken
from tests.talk import hear, recording

LIMIT_BYTES = 500_000
LONG = "x" * 5000 + "<&>\"'" * 1000


def ranks(count: int) -> tuple[RankSpan, ...]:
    return tuple(RankSpan(f"TP{k}", Status.DONE, 100.0, 200.0 + k, 1, 2, Basis.LOGGED) for k in range(count))


def monster(rows: int = 300, per_row: int = 512) -> Snapshot:
    """More of everything than any log has."""
    curve = tuple((float(k), float(k)) for k in range(64))
    bars = tuple(BarRow(LONG, 64, 64, "shards", 100.0, 164.0, 64.0, 1.0, "TP0", curve) for _ in range(20))
    phases = tuple(
        PhaseRow(
            "target_load", LONG[:200], k + 1, Status.DONE, 100.0 + k, 200.0 + k, 100.0, 1, 2, ranks=ranks(per_row),
            ranks_done=per_row, ranks_seen=per_row, bars=bars, longest_silence_s=50.0, silence_from_s=120.0,
            slowest_rank="TP5", skew_s=3.0, expected=Range(10, 20, 900),
        )
        for k in range(rows)
    )  # fmt: skip
    failure = Failure(
        "f", True, "target_load", "TP0", Place(9, 1, 9), 300.0, LONG, LONG[:900], LONG[:900], (LONG,) * 500
    )
    return Snapshot(
        600.0, Outcome.FAILED, Verdict(VerdictState.FAILED, LONG), phases=phases, started_at_s=100.0, failure=failure,
        boots=tuple(BootSummary(k, k, k, Outcome.READY, 1.0, 2.0, 1.0) for k in range(5000)),
        warnings=tuple(Warned(f"w{k}", LONG, k) for k in range(900)), between_phases_s=3.0,
        activities=tuple(Activity(f"a{k}", LONG[:300], "target_load", 110.0, 120.0, 1) for k in range(2000)),
        facts={"server_args": {f"argument_{k}": LONG for k in range(3000)}, "model_path": LONG},
        sources=(Source(LONG[:300], 1, 1, 1, 1),),
    )  # fmt: skip


def test_a_page_stays_under_half_a_megabyte_whatever_the_log_holds():
    assert len(report_page(monster()).encode()) < LIMIT_BYTES


def test_rows_that_are_not_drawn_are_counted_with_their_seconds():
    drawn = chart(monster(rows=ALL.lanes + 40, per_row=2))
    assert len(drawn.lanes) == ALL.lanes
    assert drawn.left_out == (40, 4000.0)


def test_many_ranks_are_drawn_in_groups_that_name_the_last():
    drawn = chart(monster(rows=8, per_row=512))
    strips = drawn.lanes[0].strips
    assert len(strips) <= 75
    assert strips[0].tip.startswith("TP0 to TP")
    assert [strip.kind for strip in strips].count("last") == 1


def test_pieces_stand_in_percent_of_the_start():
    heard = hear(recording("01-plain-file")).snapshot
    drawn = chart(heard)
    load = next(lane for lane in drawn.lanes if lane.row.phase == "target_load")
    assert load.span is not None
    assert load.span.left == pytest.approx(100 * 19 / drawn.length_s, abs=0.01)
    assert load.span.width == pytest.approx(100 * 6 / drawn.length_s, abs=0.01)


def test_silences_are_marked_where_they_were():
    drawn = chart(hear(recording("06f-sigstop-60s-in-graph-capture")).snapshot)
    lane = next(lane for lane in drawn.lanes if lane.row.phase == "target_graph")
    assert lane.silence is not None
    assert lane.silence.label == "60 s"
    assert lane.span is not None
    assert lane.span.left <= lane.silence.left
    assert lane.silence.left + lane.silence.width <= lane.span.left + lane.span.width + 0.01


def test_gaps_between_phases_add_up_to_what_the_snapshot_says():
    for name in ("01-plain-file", "03b-eagle3-pipe", "07b-tp2-eagle3-pipe"):
        heard = hear(recording(name)).snapshot
        drawn = chart(heard)
        gaps = sum(gap.width for gap in drawn.gaps) * drawn.length_s / 100
        assert gaps == pytest.approx(heard.between_phases_s, abs=0.01)


def test_a_log_without_times_is_a_table_without_a_picture():
    drawn = chart(hear("Load weight begin. avail mem=139.13 GB\nLoad weight end. avail mem=130 GB\n").snapshot)
    assert drawn.begin_s is None
    assert all(lane.span is None for lane in drawn.lanes)


def test_an_empty_log_makes_a_page_too():
    assert "No start" in report_page(hear("").snapshot)


def test_what_was_expected_stands_beside_what_came_true():
    heard = hear(recording("01-plain-file")).snapshot
    rows = tuple(
        replace(row, expected=Range(1, 2, 4, runs=9) if row.phase == "target_load" else None) for row in heard.phases
    )
    page = report_page(replace(heard, phases=rows))
    assert "Expected, and what came true" in page
    assert ">later<" in page
    assert "Ranges hold the middle 80 %: each phase by 9 like boots of this machine." in page


def test_what_was_said_while_it_started_stands_beside_how_long_it_took():
    heard = hear(recording("01-plain-file")).snapshot
    begin = heard.started_at_s
    assert begin is not None
    told = [
        Told(begin, "Start processes", Range(25, 42, 85), "30 public starts"),
        Told(begin + 19, "Init", Range(1, 2, 4), ""),
    ]
    page = report_page(heard, told=told)
    assert "said at +19 s" in page
    assert "25–85 s" in page
    assert ">as expected<" in page
    assert ">later<" in page
    assert "Ranges hold the middle 80 %: the whole start by 30 public starts; each phase by public starts of" in page


def test_no_line_ends_inside_of_a_flag_or_a_date():
    page = report_page(hear(recording("06a1-mem-fraction-too-small")).snapshot)
    assert '<span class="unbroken">2026-11-30T' in page
    assert '<span class="unbroken">--mem-fraction-static</span>' in page
    assert "<b>&" not in str(unbroken("<b>--x"))


def test_samples_become_strips_over_the_same_time_line():
    heard = hear(recording("01-plain-file")).snapshot
    begin = heard.started_at_s
    assert begin is not None
    samples = [
        EvidenceSample(
            begin + 7200 + k,
            processes=(ProcessSample(7, 1, "scheduler", "rank", "TP0", "R", cpu_s=2.0 * k, read_bytes=k << 30),),
            gpus=(GpuSample(0, "H200", util_percent=50.0, memory_bytes=k << 30),),
        )
        for k in range(30)
    ]
    page = report_page(heard, evidence=samples, lag_s=7200)
    assert "up to 2.0 cores" in page
    assert "up to 1.0 GiB/s" in page
    assert "up to 50 %" in page
    assert "Disk reads" not in report_page(heard)


def test_frames_of_one_second_are_spread_over_it():
    assert spread([1.0, 1.0, 2.0]) == [1.5, 2.0, 3.0]
    assert spread([0.0, 3.0, 2.0, 2.0]) == pytest.approx([1.0, 3 + 1 / 3, 3 + 2 / 3, 4.0])
    assert spread([0.5, 1.5]) == [0.5, 1.5]


def test_a_curve_ends_where_its_bar_does():
    bar = BarRow("shards", 2, 4, "it", 0.0, 2.0, 2.0, 1.0, "", ((1.0, 1.0), (2.0, 2.0)))
    assert curve_path(bar) == "M0,100L50,75L100,50L100,100Z"


@pytest.mark.parametrize(
    ("seconds", "label"), [(0, "0"), (5, "5 s"), (119, "119 s"), (120, "2:00"), (3725, "1:02:05"), (90061, "25:01:01")]
)
def test_offsets_read_as_clocks_once_they_are_long(seconds, label):
    assert offset(seconds) == label


@pytest.mark.parametrize(("least", "step"), [(0.2, 1), (3, 5), (61, 120), (50_000, 86400), (200_000, 259200)])
def test_ticks_stand_at_round_steps(least, step):
    assert tick_step(least) == step
