"""A start in the words that every report uses."""

from __future__ import annotations

from dataclasses import replace

from phasetrack.core.model import Outcome, PastBoot, PastPhase, Remembered
from phasetrack.views.facts import fact_text
from phasetrack.views.history import show_text
from phasetrack.views.markdown import report_markdown
from phasetrack.views.page import report_page
from phasetrack.views.plain import report_text
from phasetrack.views.rows import cells, fate, share, total_s
from phasetrack.views.status import status_line
from phasetrack.views.words import phase_title
from tests.talk import args, hear, log, patterns

BEGUN = f"42:04 | {args(tp_size=1)}\n42:22 | Init torch distributed begin.\n"
AGAIN = f"46:04 | {args(tp_size=1)}\n"
FAILED = "42:30 | Scheduler hit an exception: Traceback (most recent call last):\n | ValueError: x\n"


def fates(text, *, ended=True):
    known = hear(log(text), open_end=not ended).snapshot
    return [fate(known, boot) for boot in known.boots]


def test_a_start_that_another_one_followed_is_unfinished():
    assert fates(BEGUN + AGAIN, ended=False) == ["unfinished", "starting"]


def test_a_start_whose_log_has_ended_is_unfinished():
    assert fates(BEGUN) == ["unfinished"]


def test_what_a_line_says_of_a_start_stays():
    assert fates(BEGUN + FAILED + AGAIN, ended=False) == ["failed", "starting"]


def test_the_reports_list_an_unfinished_start_as_such():
    known = hear(log(BEGUN + AGAIN)).snapshot
    for text in (report_text(known), report_markdown(known)):
        assert "unfinished" in text


DECODE = (
    "Decode batch, #running-req: 6, #token: 225, token usage: 0.00, cuda graph: True, gen throughput (token/s): 9.5,"
)
SERVING = f"42:46 | {DECODE} #queue-req: 0\n42:47 | {DECODE} #queue-req: 0\n"
TERM = "42:53 | SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
READY = "42:55 | The server is fired up and ready to roll!\n"
LOADED = "type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=130.65 GB"
BAR = " | Loading safetensors checkpoint shards: {percent:3d}% Completed | {done}/{total} [{took}<00:00,  1.00s/it]\n"


def bar(done, total, took):
    return BAR.format(percent=100 * done // total, done=done, total=total, took=took)


def capture(done, total, took):
    name = "Capturing batches (bs=1 avail_mem=14.64 GB): "
    return f" | {name}{100 * done // total:3d}%|####| {done}/{total} [{took}<00:00,  1.00s/it]\n"


def texts(known):
    return report_text(known), report_markdown(known), report_page(known)


def test_an_excerpt_of_serving_was_ready_before_it_begins_and_has_no_start():
    known = hear(log(SERVING + TERM)).snapshot
    assert (known.outcome, known.started_at_s, known.startup_s) == ("stopped", None, None)
    assert "STOPPED; was ready before this log begins." in report_text(known)
    assert all("was ready before this log begins" in text for text in texts(known))
    assert all("Start processes" not in text and "after the start" not in text for text in texts(known))
    assert "begins while the server was serving already" in status_line(known)


def test_a_server_that_an_excerpt_shows_serving_is_ready():
    known = hear(log(SERVING), open_end=True).snapshot
    assert (known.outcome, known.ready_at_s) == ("ready", None)
    assert "READY before this log begins." in report_text(known)


def test_an_excerpt_of_a_start_has_no_length():
    known = hear(log(f"42:50 | Load weight end. {LOADED}\n{READY}")).snapshot
    assert (known.started_at_s, known.startup_s, known.between_phases_s) == (None, None, None)
    assert [row.phase for row in known.phases] == ["target_load", "ready"]
    assert all("begins in the middle of this start" in text for text in texts(known))
    assert "after unknown" not in report_text(known)
    assert "%" not in report_text(known)


def test_a_failure_in_an_excerpt_is_no_time_after_a_start_that_nobody_saw():
    known = hear(log(FAILED)).snapshot
    assert "after the start" not in report_text(known)
    assert known.unopened == "holds no line that opens this start: when it began is not known"


def test_arguments_behind_a_warning_still_open_their_start():
    early = "42:03 | Attention backend not set. Use fa3 backend by default.\n"
    assert hear(log(early + BEGUN)).snapshot.unopened is None


def test_nothing_is_replayed_of_processes_that_nobody_saw_start():
    told = hear(log(f"42:50 | Load weight end. {LOADED}\n{READY}"))
    assert not any("bootstrap" in said for said in told.told("phase"))
    assert any("bootstrap" in said for said in hear(log(BEGUN)).told("phase"))


def test_no_part_is_more_than_the_whole():
    known = hear(log(BEGUN + bar(0, 4, "00:00") + bar(4, 4, "09:00"))).snapshot
    assert total_s(replace(known, now_s=known.started_at_s + 1)) is None
    assert share(3.0, 2.0) == "100 %"


def test_a_capture_lasts_as_long_as_its_bar_says_where_no_stamp_does():
    known = hear(
        log(f"42:04 | {args(tp_size=1)}\n" + bar(0, 4, "00:00") + bar(4, 4, "00:06") + capture(26, 26, "08:19"))
    )
    row = known.row("target_graph")
    assert row.elapsed_s == 499
    assert known.row("bootstrap").elapsed_s is None


def test_what_no_line_closed_shows_how_far_it_was_last_seen():
    text = BEGUN + "42:23 | Load weight begin. avail mem=139.13 GB\n" + bar(0, 163, "00:00") + bar(115, 163, "01:00")
    known = hear(log(f"{text}43:40 | Load weight end. {LOADED}\n")).snapshot
    row = next(row for row in known.phases if row.phase == "target_load")
    assert cells(row, None).progress == "last seen 115/163"
    assert cells(row, None).inferred
    line = next(line for line in report_text(known).splitlines() if line.startswith("✓ Target weights"))
    assert "~" in line
    assert len(line) <= 80


def test_a_rank_between_those_that_ended_counts_as_not_done():
    ends = "".join(f"42:5{k} TP{k} | Load weight end. {LOADED}\n" for k in (0, 1, 3))
    row = hear(log(ends)).row("target_load")
    assert (row.status, row.ranks_done, row.ranks_seen) == ("running", 3, 4)


def test_ranks_that_have_not_begun_count_where_the_arguments_tell_of_them():
    begun = f"42:04 | {args(tp_size=16, pp_size=1, dp_size=1, nnodes=2, node_rank=0)}\n" + "".join(
        f"42:22 TP{k} | Init torch distributed begin.\n" for k in (5, 6)
    )
    row = hear(log(begun)).row("dist_init")
    assert (row.ranks_done, row.ranks_seen) == (0, 8)


def test_no_silence_is_longer_than_its_phase_and_what_lies_between_is_told():
    text = BEGUN + "42:23 | Init torch distributed ends. elapsed=0.21 s, mem usage=0.10 GB\n"
    known = hear(log(text + "42:53 | Load weight begin. avail mem=139.13 GB\n42:55 | Something.\n")).snapshot
    assert all((row.longest_silence_s or 0) <= (row.elapsed_s or 0) for row in known.phases)
    assert "Between phases: 30 s after Distributed init, before Target weights." in report_text(known)


def test_a_log_that_just_stops_is_unfinished_in_every_report():
    known = hear(log(BEGUN)).snapshot
    assert "UNFINISHED. The log stops here" in report_text(known)
    assert "### Unfinished" in report_markdown(known)
    assert "STARTING" not in report_text(known) + report_page(known)


def test_nothing_is_said_of_a_draft_or_of_like_starts_where_no_arguments_are_known():
    known = hear(log(f"42:50 | Load weight end. {LOADED}\n{READY}")).snapshot
    assert "draft" not in report_text(known)
    assert "Usually" not in report_text(known)


def test_wordings_that_contradict_each_other_tell_no_version():
    known = hear(log(BEGUN)).tracker
    boot = known._machine.state.shown
    boot.since, boot.until = "0.5.14", "0.5.12"
    engine = known.snapshot().engine
    assert (engine.version_low, engine.version_high) == (None, None)


def test_the_version_of_a_banner_wins():
    known = hear("SGLang Version 0.5.12+1a2b3c4d\n" + log(BEGUN)).snapshot
    assert report_text(known).splitlines()[1].startswith("SGLang 0.5.12+1a2b3c4d,")


def test_memory_that_came_back_is_no_size_of_graphs():
    assert not fact_text("graph_mem_bytes", -440_000_000)


def test_a_worker_node_was_up_not_ready():
    known = hear(log(BEGUN)).snapshot
    known = replace(known, outcome=Outcome.STOPPED, ready_offset=9, ready_at_s=9.0, facts={"node_rank": 1})
    assert "this node was up" in report_text(known)
    assert "this node was up" in report_markdown(known)


def test_a_failure_names_its_phase_by_its_title():
    known = hear(log(BEGUN + FAILED)).snapshot
    assert "Distributed init, line" in status_line(known)
    assert phase_title(known, "serving") == phase_title(known, "ready") == "Serving"
    assert phase_title(known, "draft_load") == "Draft load"


def test_a_boot_of_the_history_is_shown_in_words_too():
    past = PastBoot("k", None, "ready", 9.0, (PastPhase("dist_init", 1, 2.0, None),))
    boot = Remembered("u", past, "sglang", "", "m", "", {})
    assert "  Distributed init " in show_text(boot, patterns().phases_of("sglang"))


def test_times_of_other_lines_than_the_starts_are_not_denied():
    known = hear(f"Load weight end. {LOADED}\n", open_end=True).snapshot
    assert known.eta.why == "no line of this start has a time"
