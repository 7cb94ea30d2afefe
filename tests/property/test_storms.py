"""Tracebacks of many ranks, written into each other: what is told of them whatever a pipe does."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phasetrack.core.raised import At
from phasetrack.core.weave import Weave
from tests.storms import HEAD, Writer, chained, in_pieces, shuffled, traceback
from tests.talk import hear

SLOW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 10**9)
RANKS = [f"TP{k}" for k in range(32)]

START = """[2026-11-30 15:43:55] server_args=ServerArgs(model_path='/srv/models/m', tp_size=32, mem_fraction_static=0.8)
[2026-11-30 15:44:13 TP0] Load weight begin. avail mem=139.13 GB
"""


def told(lines: list[str]):
    """The first cause of a start that ended in these lines."""
    quit_ = "[2026-11-30 15:44:21] Received sigquit from a child process. It usually means the child failed."
    return hear(START + "\n".join([*lines, quit_]) + "\n").snapshot.failure


def woven(lines: list[str]) -> tuple[Weave, dict[int, str]]:
    weave, ranks = Weave(), {}
    for line in lines:
        if line.startswith("["):
            ranks[len(ranks)] = line[21:].partition("]")[0]
            weave.open(len(ranks) - 1, line.partition("] ")[2])
        else:
            weave.give(line)
    return weave, ranks


def plain(lines: list[str]) -> list[str]:
    """Without the frames through which module calls pass, and what stands under frames."""
    return [line for line in lines if not line.startswith("    ") and "_call_impl" not in line]


# --- ranks that say the same --------------------------------------------------------------------------


@SLOW
@given(seeds, st.booleans())
def test_32_ranks_with_the_same_200_lines_shuffled_line_by_line_are_all_counted(seed, marks):
    random = Random(seed)
    lines = traceback(random, 200, "RuntimeError: CUDA error: an illegal memory access was encountered", marks=marks)
    mixed = shuffled(random, [Writer(rank, lines) for rank in RANKS])
    failure = told(mixed)
    first = next(line for line in mixed if line.startswith("["))
    assert (failure.rank, failure.place.line) == (first[21:].partition("]")[0], 3 + mixed.index(first))
    assert failure.message == lines[-1]
    assert failure.ranks == tuple(RANKS)
    assert (failure.repeats, failure.mixed) == (32, False)
    assert failure.lines[0] == HEAD
    assert failure.lines[-1] == lines[-1]


@SLOW
@given(seeds)
def test_32_ranks_with_the_same_lines_shuffled_keep_their_groups(seed):
    random = Random(seed)
    lines = traceback(random, 200, "RuntimeError: boom")
    weave, ranks = woven(shuffled(random, [Writer(rank, lines) for rank in RANKS]))
    groups = [[text for text, _ in weave.lines(key)] for key in ranks]
    assert [group[-1] for group in groups] == ["RuntimeError: boom"] * 32
    whole = sum(plain(group[1:]) == plain(lines) for group in groups)
    assert whole >= 24, whole  # some miss their last frame: others were given it


@SLOW
@given(seeds)
def test_a_chain_that_32_ranks_print_into_each_other_gives_its_root_and_no_advice(seed):
    random = Random(seed)
    root = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
    root += "79.10 GiB of which 1.20 GiB is free."
    lines = chained(random, 200, root, "Exception: Capture cuda graph failed: x")
    failure = told(shuffled(random, [Writer(rank, lines) for rank in RANKS]))
    assert failure.id == "sglang.fail.cuda_oom"
    assert failure.message == "Exception: Capture cuda graph failed: x"
    assert failure.ranks == tuple(RANKS)


# --- ranks that say something else --------------------------------------------------------------------


@SLOW
@given(seeds, st.integers(2, 5))
def test_ranks_that_fail_differently_each_have_one_exception_and_none_is_lost(seed, kinds):
    random = Random(seed)
    said = [f"ValueError: kind {k}" for k in range(kinds)]
    texts = [traceback(random, random.randrange(40, 200), exception) for exception in said]
    writers = [Writer(rank, texts[k % kinds]) for k, rank in enumerate(RANKS)]
    weave, ranks = woven(shuffled(random, writers))
    found = [[text for text, at in weave.lines(key) if at is At.EXCEPTION] for key in ranks]
    assert sorted(found) == sorted([writer.lines[-1]] for writer in writers)


@SLOW
@given(seeds)
def test_the_one_rank_that_ran_out_of_memory_is_the_cause_and_its_31_peers_fold_under_it(seed):
    random = Random(seed)
    closed = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]"
    full = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity of 79 GiB"
    )
    peers, own = traceback(random, 120, closed), traceback(random, 160, full)
    writers = [Writer(rank, own if rank == "TP5" else peers) for rank in RANKS]
    failure = told(shuffled(random, writers))
    assert failure.id == "sglang.fail.cuda_oom"
    assert failure.message == full
    assert failure.rank == "TP5"  # the message names its GPU
    assert any("31" in echo or "Connection closed by peer" in echo for echo in failure.echoes)


@SLOW
@given(seeds)
def test_lines_that_carry_their_rank_make_whole_records_of_any_tracebacks(seed):
    random = Random(seed)
    writers = []
    for k in range(8):
        lines = ["Traceback (most recent call last):", '  File "<frozen runpy>", line 88, in _run_code']
        lines += traceback(random, 60, f"ValueError: of rank {k} alone")
        writers.append(Writer("", [f"[rank{k}]: {line}" for line in lines]))
    order = [k for k, writer in enumerate(writers) for _ in writer.lines]
    random.shuffle(order)
    left = [iter(writer.lines) for writer in writers]
    failures = hear(START + "\n".join(next(left[k]) for k in order) + "\n")
    failure = failures.snapshot.failure
    number = failure.rank.removeprefix("rank")
    assert failure.message == f"ValueError: of rank {number} alone"
    assert len(failure.echoes) == 0 or all("of rank" in echo for echo in failure.echoes)


@SLOW
@given(seeds, st.booleans())
def test_records_of_one_kind_written_in_pieces_of_8_kb_are_taken_apart_exactly(seed, marks):
    random = Random(seed)
    lines = traceback(random, 200, "RuntimeError: one", marks=marks)
    weave, ranks = woven(in_pieces(random, [Writer(rank, lines) for rank in RANKS[:8]]))
    assert [plain([text for text, _ in weave.lines(key)][1:]) for key in ranks] == [plain(lines)] * 8


@SLOW
@given(seeds)
def test_records_of_two_kinds_written_in_pieces_lose_no_exception(seed):
    random = Random(seed)
    kinds = [traceback(random, 200, "RuntimeError: one"), traceback(random, 140, "KeyError: 'two'")]
    weave, ranks = woven(in_pieces(random, [Writer(rank, kinds[k % 2]) for k, rank in enumerate(RANKS[:8])]))
    assert sorted(weave.lines(key)[-1][0] for key in ranks) == ["KeyError: 'two'"] * 4 + ["RuntimeError: one"] * 4
