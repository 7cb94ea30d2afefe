"""The tqdm grammar, frame by frame, as SGLang's bars were seen in files, pastes and terminals."""

from __future__ import annotations

import pytest

from phasetrack.core.bars import parse_bar

EIGHTHS = " ▏▎▍▌▋▊▉█"


@pytest.mark.parametrize(
    ("text", "desc", "done", "total", "elapsed", "rate", "unit"),
    [
        ("Loading safetensors checkpoint shards:  33% Completed | 1/3 [00:01<00:03,  1.74s/it]",
         "Loading safetensors checkpoint shards", 1, 3, 1, 1 / 1.74, "it"),
        ("Multi-thread loading shards: 100% Completed | 64/64 [00:05<00:00, 11.38it/s]",
         "Multi-thread loading shards", 64, 64, 5, 11.38, "it"),
        ("Capturing batches (bs=48 avail_mem=17.21 GB):   4%|▍         | 1/23 [00:42<15:37, 42.62s/it]",
         "Capturing batches (bs=48 avail_mem=17.21 GB)", 1, 23, 42, 1 / 42.62, "it"),
        ("  0%|          | 0/36 [00:00<?, ?it/s]", "", 0, 36, 0, None, "it"),
        ("model-00001-of-00004.safetensors:  12%|█▏        | 598M/4.98G [00:05<00:41, 106MB/s]",
         "model-00001-of-00004.safetensors", 598e6, 4.98e9, 5, 106e6, "B"),
        ("Fetching 15 files:  20%|██        | 3/15 [1:09:28<4:37:52, 1389.42s/it]",
         "Fetching 15 files", 3, 15, 4168, 1 / 1389.42, "it"),
        ("DeepGEMM warmup: 100%|██████████| 16384/16384 [02:03<00:00, 132.57it/s]",
         "DeepGEMM warmup", 16384, 16384, 123, 132.57, "it"),
        ("Compiling num tokens (num_tokens=4):  98%|█████████▊| 57/58 [00:07<00:00, 9.66it/s]",
         "Compiling num tokens (num_tokens=4)", 57, 58, 7, 9.66, "it"),
        ("Loading pt checkpoint shards:   0% Completed | 0/1 [00:00<?, ?it/s]",
         "Loading pt checkpoint shards", 0, 1, 0, None, "it"),
        (" 50%|#####     | 1/2 [00:01<00:01,  1.00s/it]", "", 1, 2, 1, 1, "it"),  # ASCII bars
        ("██████████| 23/23 [00:06<00:00,  3.75it/s]", "", 23, 23, 6, 3.75, "it"),  # wrapped by a paste
    ],
)  # fmt: skip
def test_a_frame_is_read(text, desc, done, total, elapsed, rate, unit):
    found = parse_bar(text)
    assert found is not None
    bar, end = found
    assert (bar.desc, bar.done, bar.total, bar.elapsed_s, bar.unit) == (desc, done, total, elapsed, unit)
    assert bar.rate_per_s == (None if rate is None else pytest.approx(rate))
    assert end == len(text)


@pytest.mark.parametrize("block", EIGHTHS)
def test_every_block_of_a_bar_is_read(block):
    found = parse_bar(f"Capturing batches:  50%|█{block}   | 1/2 [00:01<00:01,  1.00s/it]")
    assert found is not None
    assert found[0].done == 1


@pytest.mark.parametrize(
    "behind",
    [
        "[2026-11-30 15:42:22 TP3] Capture cuda graph end.",
        "Traceback (most recent call last):",
        "/opt/site/x.py:3: UserWarning: y",
        "Fatal Python error: Segmentation fault",
        "^C",
    ],
)
def test_what_is_glued_behind_a_frame_is_left(behind):
    text = "Capturing batches:  50%|█    | 1/2 [00:01<00:01,  1.00s/it]"
    found = parse_bar(text + behind)
    assert found is not None
    assert (text + behind)[found[1] :] == behind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "100% of the weights are here",
        "GPU  50% | 1/2",
        "50%|███",
        "  4%|▍         | 1/23",
        "  4%|▍         | 1/23 [00:4",
        "memory usage: 33% [00:01]",
        "128it [00:03, 37.9it/s]",
        "  4%|▍         | a/b [00:01<00:01]",
    ],
)
def test_what_is_no_whole_frame_is_no_bar(text):
    assert parse_bar(text) is None


@pytest.mark.parametrize(
    "text",
    [
        f" 50%|#    | {'9' * 5000}/2 [00:01<00:01]",
        f" 50%|#    | 1/2 [{'9' * 5000}:00:01<00:01]",
        f" 50%|#    | 1/2 [00:01<00:01, {'9' * 5000}it/s]",
        f" 50%|#    | 1/2 [{'99:' * 3000}01<00:01]",
        " " * 60000 + "5%|",
        "%" * 60000,
        "0%|" * 20000,
        " 50%|#    | 1/0 [00:00<00:00, 0.00s/it]",
    ],
)
def test_hostile_figures_give_finite_bars_or_none(text):
    found = parse_bar(text)
    if found is not None:
        bar = found[0]
        assert all(abs(value) < 1e20 for value in (bar.done, bar.total or 0, bar.elapsed_s or 0, bar.rate_per_s or 0))
