"""What stands before a message, in every form that a log was seen with, and what is learned from the log itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from phasetrack.core.prefix import Learned, may_hold_embedded, parse, split_embedded

MESSAGE = "Load weight begin. avail mem=139.13 GB"
OWN = "[2026-11-30 15:42:22 TP3] "


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NOON = seconds("2026-11-30T15:42:22")


# --- the engine's own stamp --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "rank", "at"),
    [
        ("[2026-11-30 15:42:22] ", "", NOON),
        ("[2026-11-30 15:42:22 TP0] ", "TP0", NOON),
        ("[2026-11-30 15:42:22 DP1 TP0] ", "DP1 TP0", NOON),
        ("[2026-11-30 15:42:22 DP1 TP3 PP0] ", "DP1 TP3 PP0", NOON),  # 0.4.6.post5 to 0.5.0
        ("[2026-11-30 15:42:22 DP1 TP3 EP3 PP0] ", "DP1 TP3 EP3 PP0", NOON),  # 0.5.1 to 0.5.5
        ("[2026-11-30 15:42:22 DP1 PP0 TP3 EP3] ", "DP1 PP0 TP3 EP3", NOON),  # 0.5.6 to 0.5.8
        ("[2026-11-30 15:42:22 DP1 PP0 ATTN_CP2 MOE_DP1 TP3 EP3] ", "DP1 PP0 ATTN_CP2 MOE_DP1 TP3 EP3", NOON),
        ("[2026-11-30 15:42:22 TP15 EP15] ", "TP15 EP15", NOON),
        ("[2026-11-30 15:42:22.123 TP0] ", "TP0", NOON + 0.123),  # SGLANG_LOG_MS
        ("[2026-11-30 15:42:22,123] ", "", NOON + 0.123),
        ("[2026-11-30 15:42:22 encode_server] ", "encode_server", NOON),
        ("[2026-11-30 15:42:22 encode_dp_worker[0]] ", "encode_dp_worker[0]", NOON),
    ],
)
def test_every_form_of_the_engines_stamp(prefix, rank, at):
    found, message = parse(prefix + MESSAGE, Learned())
    assert (found.rank, found.stamp_s, found.engine, message) == (rank, pytest.approx(at), True, MESSAGE)


@pytest.mark.parametrize(("prefix", "rank"), [("[14:39:07 TP1] ", "TP1"), ("[14:39:07 DP1 TP0] ", "DP1 TP0")])
def test_a_stamp_without_a_date_counts_from_midnight(prefix, rank):
    found, message = parse(prefix + MESSAGE, Learned())
    assert (found.stamp_s, found.dated, found.rank) == (14 * 3600 + 39 * 60 + 7, False, rank)
    assert message == MESSAGE


@pytest.mark.parametrize(("prefix", "rank"), [("[gpu=4] ", "GPU4"), ("[gpu_id=1] ", "GPU1")])
def test_the_oldest_logs_name_the_gpu_and_no_time(prefix, rank):
    found, message = parse(prefix + "Init nccl begin.", Learned())
    assert (found.rank, found.stamp_s, message) == (rank, None, "Init nccl begin.")


def test_a_stamp_of_no_calendar_has_no_time_and_keeps_its_rank():
    for stamp in ("[2026-13-45 15:42:22 TP0] ", "[2026-11-30 25:00:00 TP0] ", "[0000-01-01 00:00:00 TP0] "):
        found, message = parse(stamp + MESSAGE, Learned())
        assert (found.stamp_s, found.rank, message) == (None, "TP0", MESSAGE)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("[2026-11-30 15:42:22] INFO:     Uvicorn running on http://0.0.0.0:30000", "INFO"),
        ("INFO:     Uvicorn running on http://0.0.0.0:30000", "INFO"),
        ("[2026-11-30 15:42:22 TP0] INFO engine.py:123: Uvicorn running on http://0.0.0.0:30000", "INFO"),
        ("[2026-11-30 15:42:22] WARNING srt/x.py:14: Uvicorn running on http://0.0.0.0:30000", "WARNING"),
        ("INFO:sglang.srt.entrypoints.http_server:Uvicorn running on http://0.0.0.0:30000", "INFO"),
    ],
)
def test_level_words_are_no_part_of_the_message(text, level):
    found, message = parse(text, Learned())
    assert (found.level, message) == (level, "Uvicorn running on http://0.0.0.0:30000")


# --- what carries logs -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("transport", "at", "offset", "server"),
    [
        # docker logs -t, kubectl logs --timestamps
        ("2026-11-30T15:42:22.123456789Z ", NOON + 0.123456789, 0, ""),
        ("2026-11-30T23:42:22.5+08:00 ", NOON + 8 * 3600 + 0.5, 8 * 3600, ""),
        ("2026-11-30T15:42:22-05:30 ", NOON, -(5 * 3600 + 1800), ""),
        # a node's own files (CRI)
        ("2026-11-30T15:42:22.123456789Z stderr F ", NOON + 0.123456789, 0, ""),
        ("2026-11-30T15:42:22.123456789Z stdout P ", NOON + 0.123456789, 0, ""),
        # docker compose, with and without -t
        ("sglang-1  | ", None, None, "sglang-1"),
        ("sglang-1  | 2026-11-30T15:42:22.000000000Z ", NOON, 0, "sglang-1"),
        # kubectl --prefix, with and without --timestamps
        ("[pod/sglang-0/main] ", None, None, "pod/sglang-0/main"),
        ("[pod/sglang-0/main] 2026-11-30T15:42:22Z ", NOON, 0, "pod/sglang-0/main"),
        # srun -l
        ("0: ", None, None, "task 0"),
        (" 12: ", None, None, "task 12"),
        # ray
        ("(SGLangEngine pid=77) ", None, None, "SGLangEngine pid=77"),
        ("(RayWorkerWrapper pid=77, ip=10.0.0.4) ", None, None, "RayWorkerWrapper pid=77"),
        ("(RayTrainWorker(rank=3) pid=77, ip=10.0.0.4) ", None, None, "RayTrainWorker(rank=3) pid=77"),
        ("(ServeReplica:default:LLM pid=77) ", None, None, "ServeReplica:default:LLM pid=77"),
        # journald short-iso
        ("2026-11-30T15:42:22+0000 gpu-7 sglang[2428]: ", NOON, 0, ""),
        # torchrun
        ("[default3]:", None, None, ""),
        # a Python logging wrapper in front of the engine's own stamp
        ("[2026-11-30 15:42:22] [launcher.core] [INFO] [worker_0] ", NOON, None, "worker_0"),
        ("2026-11-30 15:42:22,000 - launcher - INFO - ", NOON, None, ""),
        ("2026-11-30 15:42:22 | INFO | launcher.core:42 | ", NOON, None, ""),
        ("[2026-11-30 15:42:22] ", NOON, None, ""),
        ("2026-11-30 15:42:22 ", NOON, None, ""),  # ts '%F %T'
        ("[pod/sglang-0/main] 2026-11-30T15:42:22Z [2026-11-30 15:42:22] [launcher.core] [INFO] [worker_0] ",
         NOON, 0, "worker_0"),
    ],
)  # fmt: skip
def test_a_transport_is_taken_off_before_the_engines_stamp(transport, at, offset, server):
    found, message = parse(transport + OWN + MESSAGE, Learned())
    assert (found.rank, found.stamp_s, found.engine, message) == ("TP3", NOON, True, MESSAGE)
    assert found.outer_s == (None if at is None else pytest.approx(at))
    assert (found.outer_offset_s, found.server) == (offset, server)


@pytest.mark.parametrize(
    "transport",
    [
        "2026-11-30T15:42:22.123456789Z ",
        "2026-11-30T15:42:22.123456789Z stderr F ",
        "sglang-1  | ",
        "[pod/sglang-0/main] ",
        "(SGLangEngine pid=77) ",
        "Nov 30 15:42:22 gpu-7 sglang[2428]: ",
        "2026-11-30T15:42:22+0000 gpu-7 sglang[2428]: ",
        "Nov 30 15:42:22 ",
        "[rank3]: ",
        "[rank3]:",
    ],
)
def test_what_can_be_nothing_else_is_taken_off_untimed_lines_at_sight(transport):
    _, message = parse(transport + '  File "x.py", line 3', Learned())
    assert message.strip() == 'File "x.py", line 3'


def test_journald_short_and_ts_have_no_year_and_take_the_logs():
    learned = Learned()
    found, _ = parse("Nov 30 15:42:22 gpu-7 sglang[2428]: before any stamp", learned)
    assert (found.outer_dated, found.outer_s) == (False, 15 * 3600 + 42 * 60 + 22)
    parse(OWN + MESSAGE, learned)
    found, message = parse("Nov 30 15:42:22 gpu-7 sglang[2428]: after one", learned)
    assert (found.outer_dated, found.outer_s, message) == (True, NOON, "after one")
    found, message = parse("Nov  3 15:42:22.250 after one", learned)
    assert (found.outer_s, message) == (seconds("2026-11-03T15:42:22.250"), "after one")


def test_rays_repetition_mark_is_no_part_of_the_message():
    line = (
        f"(SGLangEngine pid=77) {OWN}{MESSAGE} [repeated 15x across cluster] (Ray deduplicates logs by default. "
        "Set RAY_DEDUP_LOGS=0 to disable log deduplication)"
    )
    assert parse(line, Learned())[1] == MESSAGE


@pytest.mark.parametrize("rank", ["0", "13"])
def test_torchruns_rank_counts_where_the_engine_says_none(rank):
    found, message = parse(f"[rank{rank}]: Traceback (most recent call last):", Learned())
    assert (found.rank, message) == (f"rank{rank}", "Traceback (most recent call last):")
    assert parse(f"[rank{rank}]:{OWN}{MESSAGE}", Learned())[0].rank == "TP3"


def test_a_harness_line_is_foreign():
    found, message = parse("[2026-11-30 15:42:22] [launcher.core] [INFO] Starting 2 workers", Learned())
    assert (found.foreign, found.engine, message) == (True, False, "Starting 2 workers")


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-30 15:42:22,152 - INFO - flashinfer.jit: Loading JIT ops: norm",
        "INFO 11-30 15:42:22 [importing.py:53] Loading JIT ops: norm",
        "W1130 05:24:45.091000 1 torch/_inductor/x.py:630] Loading JIT ops: norm",
        "2026-11-30 15:42:22,152 INFO Loading JIT ops: norm",
        "[2026-11-30 15:42:22 +0000] [77] [INFO] Loading JIT ops: norm",
    ],
)
def test_a_librarys_own_form_is_no_engines_stamp(text):
    found, message = parse(text, Learned())
    assert (found.library, found.engine, message) == (True, False, "Loading JIT ops: norm")


def test_dots_that_a_compiler_printed_before_the_stamp_are_nothing():
    found, message = parse("........" + OWN + MESSAGE, Learned())
    assert (found.rank, message) == ("TP3", MESSAGE)
    assert parse("...", Learned())[1] == "..."


@pytest.mark.parametrize("echo", ["^C", "^C^C", "^Z", "^\\"])
def test_the_echo_of_a_key_is_nothing(echo):
    assert parse(echo + "Traceback (most recent call last):", Learned())[1] == "Traceback (most recent call last):"
    assert parse(echo + OWN + MESSAGE, Learned())[1] == MESSAGE


# --- JSON --------------------------------------------------------------------------------------------


def test_dockers_json_file():
    line = '{"log":"[2026-11-30 15:42:22 TP3] Load weight begin.\\n","stream":"stderr","time":"2026-11-30T15:42:22.5Z"}'
    found, message = parse(line, Learned())
    assert (found.rank, found.stamp_s, found.outer_s, message) == ("TP3", NOON, NOON + 0.5, "Load weight begin.")


def test_a_structured_line_gives_its_message_and_time():
    line = '{"asctime": "2026-11-30 15:42:22,000", "levelname": "INFO", "message": "Load weight begin."}'
    found, message = parse(line, Learned())
    assert (found.outer_s, message) == (NOON, "Load weight begin.")


def test_a_notebooks_strings_are_learned_from_a_stamped_one():
    learned = Learned()
    quoted = '      "  0%|          | 0/3 [00:00<?, ?it/s]\\n",'
    assert parse(quoted, learned)[1] == quoted
    assert parse('      "[2026-11-30 15:42:22 TP3] Load weight begin.\\n",', learned)[1] == "Load weight begin."
    assert parse(quoted, learned)[1] == "  0%|          | 0/3 [00:00<?, ?it/s]"


def test_escapes_and_frames_inside_json_are_as_inert_as_outside():
    line = r'{"log":"\u001b[32m\r 50%|x\r100%|x\u001b[0m \u001b]0;title\u0007\ud800 end\n"}'
    message = parse(line, Learned())[1]
    assert message == " 50%|x 100%|x ? end"
    assert message.isprintable()


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 20000 + "1" + "}" * 20000,
        '{"log":"' + "x" * 60000 + '"}',
        '{"log": 5}',
        '{"log": "not closed}',
        '{"log": NaN, "message": null}',
        "{" * 5000 + '"}',
        '{"n": ' + "9" * 5000 + "}",
    ],
)
def test_hostile_json_is_text(text):
    assert isinstance(parse(text, Learned())[1], str)


# --- what must be learned ----------------------------------------------------------------------------


def test_sruns_label_is_learned_from_a_stamped_line():
    learned = Learned()
    assert parse("0: Traceback", learned)[1] == "0: Traceback"
    parse("3: " + OWN + MESSAGE, learned)
    found, message = parse("0: Traceback", learned)
    assert (found.server, message) == ("task 0", "Traceback")


def test_an_unknown_label_is_learned_after_three_stamped_lines():
    learned = Learned()
    label = "<node-17@rack 4> "
    for k in range(3):
        assert parse("<node-3@rack 9> Traceback", learned)[1] == "<node-3@rack 9> Traceback", k
        assert list(split_embedded(label + OWN + MESSAGE, learned)) == [label, OWN + MESSAGE]
    found, message = parse("<node-3@rack 9> Traceback", learned)
    assert (found.server, message) == ("<node-3@rack 9>", "Traceback")
    found, message = parse(label + OWN + MESSAGE, learned)
    assert (found.rank, message) == ("TP3", MESSAGE)


def test_a_text_that_is_too_long_for_a_label_or_a_bar_is_none():
    learned = Learned()
    for _ in range(4):
        list(split_embedded("x" * 81 + OWN + MESSAGE, learned))
        list(split_embedded(" 50%|#   | 1/2 " + OWN + MESSAGE, learned))
    assert learned.label is None


def test_a_look_learns_nothing():
    learned = Learned()
    parse("3: " + OWN + MESSAGE, learned.copy())
    assert not learned.srun


def test_the_labels_counted_are_few():
    learned = Learned()
    for k in range(1000):
        learned.saw_label("".join(chr(97 + int(digit)) for digit in str(k)))
    assert len(learned._seen) <= 64


# --- glue --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("it/s][2026-11-30 15:42:22 TP3] Capture", ["it/s]", "[2026-11-30 15:42:22 TP3] Capture"]),
        ("one[2026-11-30 15:42:22] two[2026-11-30 15:42:23 TP0] three",
         ["one", "[2026-11-30 15:42:22] two", "[2026-11-30 15:42:23 TP0] three"]),
        ("one[15:42:22 TP1] two", ["one", "[15:42:22 TP1] two"]),
        ('said "[2026-11-30 15:42:22] two"', ['said "[2026-11-30 15:42:22] two"']),
        ("said '[2026-11-30 15:42:22] two'", ["said '[2026-11-30 15:42:22] two'"]),
        ("at [15:42:22] two", ["at [15:42:22] two"]),
    ],
)  # fmt: skip
def test_a_record_glued_behind_another_text_is_parted(text, pieces):
    assert list(split_embedded(text, Learned())) == pieces
    assert "".join(pieces) == text
    assert may_hold_embedded(text) or len(pieces) == 1


# --- hostility ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unit",
    [
        "[2026-11-30 15:42:22] ",
        "[2026-11-30 15:42:22] [a.b] [INFO] [worker_0] ",
        "2026-11-30T15:42:22Z ",
        "2026-11-30 15:42:22 - ",
        "x | ",
        "(x pid=1) ",
        "0: ",
        "[rank1]:",
        "...",
        "a.",
        " ",
        "[",
        "(",
        "Nov 30 15:42:22 ",
    ],
)
def test_prefixes_without_end_are_answered(unit):
    parse("(x pid=1) " + unit * (60000 // len(unit)) + "x", Learned())
    parse(unit * (60000 // len(unit)) + "x", Learned())


def test_a_rank_of_thousands_of_digits_is_no_rank():
    found, _ = parse(f"[2026-11-30 15:42:22 TP{'9' * 5000}] x", Learned())
    assert found.rank == ""


def test_a_text_without_a_prefix_comes_back_whole():
    for text in ("", " ", "hello", "TP0] x", "[TP0] x", "[2026] x", "Maybe 5 15:42:22 x", "1: 2"):
        assert parse(text, Learned())[1] == text
