"""Snapshots made by hand: one for each thing that a tired reader must not misread."""

from __future__ import annotations

from dataclasses import replace

from phasetrack.core.model import (
    Activity,
    BarRow,
    Basis,
    BootSummary,
    Engine,
    Eta,
    Failure,
    Outcome,
    PhaseRow,
    Place,
    Progress,
    Range,
    RankSpan,
    Sign,
    Snapshot,
    Source,
    Status,
    Verdict,
    VerdictState,
    Warned,
)

T0 = 1_796_053_459.0  # 2026-11-30 15:44:19 by the log's clock
PENDING, RUNNING, DONE, FAILED, SKIPPED = Status.PENDING, Status.RUNNING, Status.DONE, Status.FAILED, Status.SKIPPED
INFERRED = Basis.INFERRED

TAIL = (
    "[2026-11-30 15:44:42] Init torch distributed begin.",
    "[2026-11-30 15:44:42] Init torch distributed ends. elapsed=0.17 s, mem usage=0.09 GB",
    "[2026-11-30 15:44:43] Load weight begin. avail mem=139.13 GB",
    "Multi-thread loading shards:  56% Completed | 36/64 [00:03<00:02, 11.05it/s]",
)
FACTS = {
    "model_path": "/srv/models/Llama-3.1-70B-Instruct",
    "tp_size": 8,
    "pp_size": 1,
    "dp_size": 1,
    "speculative_algorithm": None,
    "server_args": {"tp_size": 8},
}
TITLES = {
    "bootstrap": "Start processes", "dist_init": "Distributed init", "target_load": "Target weights",
    "kv_cache": "KV cache", "target_graph": "Target CUDA graphs", "draft_load": "Draft weights",
    "draft_kv": "Draft KV cache", "draft_graph": "Draft CUDA graphs", "http_up": "HTTP up",
    "warmup": "Warm-up request", "ready": "Ready",
}  # fmt: skip


def row(phase: str, status: Status, began: float | None = None, took: float | None = None, **more: object) -> PhaseRow:
    """A phase that began so many seconds after the start, and lasts or lasted so long."""
    return PhaseRow(
        phase, TITLES[phase], 1, status,
        began_s=None if began is None else T0 + began,
        ended_s=T0 + began + took if status is DONE and began is not None and took is not None else None,
        elapsed_s=took,
        begin_line=None if began is None else 10 + int(began),
        begin_offset=None if began is None else int(began) * 100,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def ranks(count: int, late: tuple[int, ...] = (), status: Status = RUNNING) -> dict[str, object]:
    """Ranks of a row, of which some are late."""
    spans = tuple(
        RankSpan(
            f"TP{n}", status if n in late else DONE, T0 + 24, None if n in late else T0 + 60 + n / 4, 34,
            None if n in late else 60 + n, Basis.LOGGED,
        )
        for n in range(count)
    )  # fmt: skip
    slowest = f"TP{late[0]}" if late else f"TP{count - 1}"
    return {"ranks": spans, "ranks_done": count - len(late), "ranks_seen": count, "slowest_rank": slowest}


def bar(done: float, total: float, unit: str = "shards", rate: float | None = 11.0) -> Progress:
    """A bar."""
    return Progress(done, total, unit, rate)


EARLY = (row("bootstrap", DONE, 0, 23.0), row("dist_init", DONE, 23, 1.0, **ranks(8)))
PLANNED = tuple(row(phase, PENDING) for phase in ("kv_cache", "target_graph", "http_up", "warmup", "ready"))
ENGINE = Engine("sglang", "SGLang", "0.5.12", None, None, "0.2.15 to 0.5.23")
SOURCE = Source("/var/log/sglang/server.log", 48_092, 62, 180, 3)


def starting(at: float, phase: str, verdict: Verdict, rows: tuple[PhaseRow, ...], **more: object) -> Snapshot:
    """A start that is under way."""
    current = next((r for r in rows if r.phase == phase), None)
    settings: dict[str, object] = {
        "now_s": T0 + at, "outcome": Outcome.STARTING, "verdict": verdict, "engine": ENGINE, "sources": (SOURCE,),
        "boots": (BootSummary(1, 1, 0, Outcome.STARTING, T0),), "boot": 1, "phase": phase,
        "progress": None if current is None else current.progress, "silent_s": 0.4, "phases": rows,
        "between_phases_s": 0.0, "started_at_s": T0, "facts": FACTS,
    }  # fmt: skip
    return Snapshot(**(settings | more))  # type: ignore[arg-type]


def _progressing(text: str) -> Verdict:
    return Verdict(VerdictState.PROGRESSING, text, (Sign("output just now", 0.4),))


WAITING = Snapshot(
    None, Outcome.NONE,
    Verdict(VerdictState.WAITING, "No engine line yet; the first 10 to 20 s of a start print nothing."),
    sources=(replace(SOURCE, bytes=0, lines=0, frames=0, unmatched_lines=0),), silent_s=7.0,
)  # fmt: skip

LOADING = starting(
    28, "target_load", _progressing("Target weights is running."),
    (*EARLY, row("target_load", RUNNING, 24, 4.0, progress=bar(36, 64), **ranks(8, tuple(range(8)))), *PLANNED),
)  # fmt: skip

# Every shard is read, and it is not loaded: the row must not look done.
FINISHING = starting(
    64, "target_load", _progressing("Target weights: all shards are read; repacking, one rank is not done."),
    (
        *EARLY,
        row("target_load", RUNNING, 24, 40.0, progress=bar(64, 64), note="finishing (repack, slowest rank)",
            **ranks(8, (5,))),
        *PLANNED,
    ),
)  # fmt: skip

# A second bar from zero: the draft's, no restart.
DRAFT = starting(
    75, "draft_load", _progressing("Draft weights is running."),
    (
        *EARLY, row("target_load", DONE, 24, 31.0, progress=bar(64, 64), **ranks(8)), row("kv_cache", DONE, 55, 1.0),
        row("target_graph", DONE, 56, 18.0, progress=bar(58, 58, "graphs")),
        row("draft_load", RUNNING, 74, 1.2, basis=INFERRED, progress=bar(0, 1), **ranks(8, tuple(range(8)))),
        row("draft_kv", PENDING), row("draft_graph", PENDING), row("http_up", PENDING), row("warmup", PENDING),
        row("ready", PENDING),
    ),
    facts=FACTS | {"speculative_algorithm": "EAGLE3"},
)  # fmt: skip

_CAPTURING = (
    *EARLY, row("target_load", DONE, 24, 31.0, progress=bar(64, 64), **ranks(8)),
    row("kv_cache", DONE, 55, 0.0, basis=INFERRED),
    row("target_graph", RUNNING, 56, 220.0, progress=bar(14, 36, "graphs"), expected=Range(40, 70, 96),
        bars=(BarRow("Capturing batches", 36, 36, "graphs", T0 + 56, T0 + 70, 14.0, 2.0),
              BarRow("Compiling num tokens", 14, 36, "graphs", T0 + 71, T0 + 90, 19.0, 2.0)),
        **ranks(8, tuple(range(8)))),
    *PLANNED[2:],
)  # fmt: skip

QUIET = starting(
    276, "target_graph",
    Verdict(
        VerdictState.QUIET,
        "Target CUDA graphs: silent for 3 min 04 s; normal here (kernels compile and each size is recorded without "
        "output): healthy starts were silent here for up to 20 min 00 s.",
        (Sign("no output", 184.0),),
    ),
    _CAPTURING, silent_s=184.0,
    activity=Activity(
        "deep_gemm", "DeepGEMM warm-up", "target_graph", T0 + 92, None, 77, Progress(120, 2048, "kernels")
    ),
)  # fmt: skip

OVERDUE = starting(
    1600, "target_graph",
    Verdict(
        VerdictState.OVERDUE,
        "Target CUDA graphs: silent for 25 min 10 s, longer than known (healthy starts were silent here for up to "
        "20 min 00 s).",
        (), (Sign("no output", 1510.0),), ("nothing outside the log was looked at",),
    ),
    _CAPTURING, silent_s=1510.0,
)  # fmt: skip

STUCK = starting(
    900, "target_graph",
    Verdict(
        VerdictState.STUCK, "The process of TP5 is gone while the others wait for it.",
        (Sign("process of TP5 (pid 4188) is gone", 340.0), Sign("power of all GPUs at idle", 300.0)),
        (Sign("the launcher is alive"),), ("GPU memory: no permission",),
        next_step="py-spy dump --pid 4188, then start again",
    ),
    _CAPTURING, silent_s=340.0,
)  # fmt: skip

WITH_ETA = starting(
    28, "target_load", _progressing("Target weights is running."),
    (
        replace(EARLY[0], expected=Range(18, 22, 26)), EARLY[1],
        row("target_load", RUNNING, 24, 4.0, progress=bar(36, 64), expected=Range(6, 8, 11),
            **ranks(8, tuple(range(8)))),
        *(replace(r, expected=Range(20, 300, 620)) if r.phase == "target_graph" else r for r in PLANNED),
    ),
    eta=Eta(360.0, 500.0, 660.0, "learned", 9, "9 like boots", done_fraction=0.1, finish_s=T0 + 28 + 500),
)  # fmt: skip

_TRACE = (
    "[2026-11-30 15:45:31 TP3] Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/opt/site/sglang/srt/managers/scheduler.py", line 4025, in run_scheduler_process',
    "    scheduler = Scheduler(",
    '  File "/opt/site/sglang/srt/model_executor/cuda_graph_runner.py", line 512, in capture_one_batch_size',
    "    run_once()",
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
        "GPU 3 has a total capacity of 139.80 GiB of which 1.21 GiB is free."
    ),
)
FAILED_START = starting(
    72, "target_graph", Verdict(VerdictState.FAILED, "The GPU's memory does not suffice for the graphs."),
    (
        *EARLY, row("target_load", DONE, 24, 31.0, progress=bar(64, 64), **ranks(8)), row("kv_cache", DONE, 55, 1.0),
        row("target_graph", FAILED, 56, 16.0, progress=bar(7, 36, "graphs"), **ranks(8, tuple(range(8)), FAILED)),
        row("http_up", SKIPPED), row("warmup", SKIPPED),
    ),
    outcome=Outcome.FAILED,
    failure=Failure(
        "sglang.fail.oom_graph", fatal=True, phase="target_graph", rank="TP3", place=Place(88, 1, 20_112), at_s=T0 + 72,
        message=_TRACE[-1], cause="The GPU's memory does not suffice for the graphs.",
        remedy="Lower --mem-fraction-static (now 0.88) or --cuda-graph-max-bs.", lines=_TRACE,
        ranks=("TP3", "TP5"), echoes=("Received sigquit from a child process. It usually means the child failed.",),
    ),
)  # fmt: skip

_ALL_DONE = (
    *EARLY, row("target_load", DONE, 24, 31.0, progress=bar(64, 64), **ranks(8)), row("kv_cache", DONE, 55, 1.0),
    row("target_graph", DONE, 56, 45.0, progress=bar(36, 36, "graphs"), **ranks(8)), row("http_up", DONE, 102, 0.0),
    row("warmup", DONE, 102, 3.0), row("ready", DONE, 105, 0.0),
)  # fmt: skip
READY = starting(
    105, "ready", Verdict(VerdictState.READY, "The server is ready."), _ALL_DONE, outcome=Outcome.READY,
    ready_at_s=T0 + 105, ready_line=120, startup_s=105.0, between_phases_s=2.0, progress=None,
    warnings=(Warned("clip", "Max running requests is reset to 48 for speculative decoding.", 5),),
)  # fmt: skip

WORKER = starting(
    105, "ready",
    Verdict(VerdictState.READY, "This node is up; node 0 decides when the server is ready. Follow its log."),
    (*_ALL_DONE[:-3], row("ready", DONE, 105, 0.0)), outcome=Outcome.READY, ready_at_s=T0 + 105, startup_s=105.0,
    facts=FACTS | {"nnodes": 2, "node_rank": 1, "tp_size": 16},
)  # fmt: skip

# No process has the log open any more: ten minutes ago it stopped, and its clocks stopped then.
ENDED = starting(
    276, "target_graph",
    Verdict(VerdictState.ENDED, "The log stops here, in Target CUDA graphs; the start was not finished."),
    _CAPTURING, ended=True, silent_s=600.0,
)  # fmt: skip

DRIFT = replace(
    READY, drift="looks newer than the pack: no line of target_graph, draft_graph was recognised",
    engine=replace(ENGINE, version=None, version_low="0.5.9"),
)  # fmt: skip

UNKNOWN = Snapshot(
    None, Outcome.STARTING, Verdict(VerdictState.PROGRESSING, "Target weights is running."),
    engine=replace(ENGINE, version=None), sources=(SOURCE,), boot=1, phase="target_load",
    boots=(BootSummary(1, None, 0, Outcome.STARTING),),
    phases=(
        row("target_load", RUNNING, progress=Progress(12, None, "shards"), basis=INFERRED), row("ready", PENDING),
    ),
)  # fmt: skip

MANY_RANKS = starting(
    200, "target_load", _progressing("Target weights: 62 of 64 ranks are done."),
    (
        EARLY[0], row("dist_init", DONE, 23, 1.0, **ranks(64)),
        row("target_load", RUNNING, 24, 176.0, progress=bar(64, 64), note="finishing (repack, slowest rank)",
            **ranks(64, (5, 41))),
        *PLANNED,
    ),
    facts=FACTS | {"tp_size": 64},
)  # fmt: skip

CASES = {
    "waiting": WAITING, "loading": LOADING, "finishing": FINISHING, "draft": DRAFT, "quiet": QUIET, "overdue": OVERDUE,
    "stuck": STUCK, "eta": WITH_ETA, "failed": FAILED_START, "ready": READY, "worker": WORKER, "ended": ENDED,
    "drift": DRIFT, "unknown": UNKNOWN, "ranks": MANY_RANKS,
}  # fmt: skip
