"""Random logs of servers that start, serve, fail and are killed: pieces of real shapes, put together by chance."""

from __future__ import annotations

from hypothesis import strategies as st

STAMP = "[2026-11-30 {:02d}:{:02d}:{:02d}{}] "
ARGS = "server_args=ServerArgs(model_path='/srv/models/m', tp_size={}, port=30000, random_seed={})"
TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/opt/site/sglang/srt/managers/scheduler.py", line 2412, in run_scheduler_process\n'
    "    scheduler.event_loop_overlap()\n"
    "RuntimeError: CUDA error: an illegal memory access was encountered\n"
)

ranks = st.sampled_from(["", " TP0", " TP1", " DP1 TP0", " DP0 TP0 EP0"])
numbers = st.integers(0, 99999)


@st.composite
def stamps(draw: st.DrawFn, rank: st.SearchStrategy[str] = ranks) -> str:
    second = draw(st.integers(0, 3599))
    text = STAMP.format(15, second // 60, second % 60, draw(rank))
    return draw(st.sampled_from([text] * 8 + [text.replace("] ", ".123] ", 1)]))


@st.composite
def batches(draw: st.DrawFn) -> str:
    n = draw(numbers)
    return draw(
        st.sampled_from(
            [
                f"Decode batch, #running-req: {n}, #token: 48, gen throughput (token/s): 1.58, #queue-req: {n}",
                f"Decode batch. #running-req: 1, #token: {n}, largest-len: 0, #queue-req: 0, ",
                f"Decode batch [12], #running-req: 1, #token: {n}, #queue-req: 0, ",
                f"Decode batch, #running-req: 1, #token: {n}, #queue-req: 0, fwd occupancy: 99.10%",
                f"Prefill batch, #new-seq: 1, #new-token: {n}, #cached-token: 0, input throughput (token/s): {n}.49",
                f"Prefill batch. #new-seq: 1, #new-token: {n}, #cached-token: 0, #running-req: 0, #queue-req: 0",
                f"Prefill batch, #new-seq: 1, #new-token: {n}, #cached-token: 0, #queue-req: 0, cuda graph: False",
            ]
        )
    )


@st.composite
def requests(draw: st.DrawFn) -> str:
    path = draw(st.sampled_from(["/generate", "/health", "/v1/chat/completions?x=1", "/[x]"]))
    answer = draw(st.sampled_from(["200 OK", "503 Service Unavailable", "499", "200 OK "]))
    plain = f'INFO:     127.0.0.1:{draw(numbers)} - "POST {path} HTTP/1.1" {answer}'
    coloured = plain.replace("INFO:", "\x1b[32mINFO\x1b[0m:").replace("200 OK", "\x1b[32m200 OK\x1b[0m")
    return draw(st.sampled_from([plain] * 5 + [coloured]))


serving = st.builds(lambda stamp, text: f"{stamp}{text}\n", stamps(), batches() | requests())
others = st.sampled_from([
    TRACEBACK,
    "[2026-11-30 15:42:46 TP1] Scheduler hit an exception: " + TRACEBACK,
    "[2026-11-30 15:42:46] Exception in ASGI application\n" + TRACEBACK.replace("run_scheduler_process", "__call__"),
    "[2026-11-30 15:42:47] Received sigquit from a child process. It usually means the child failed.\n",
    "[2026-11-30 15:42:48] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n",
    "[2026-11-30 15:42:48] Cache flushed successfully!\n",
    "Killed\n", "Segmentation fault (core dumped)\n", "\n", "\r\n", "some text\n", "[2026-11-30 15:4",
    "RuntimeError: exit code: -9\n", "\x00\x00\x00", "\r", "\x1b[2K", "\x1b[A", "\xff", "#queue-req: 0\n",
    "[2026-11-30 15:45:00] " + ARGS.format(1, 7) + "\n",
    "[2026-11-30 15:45:01 TP0] Load weight begin. avail mem=138.42 GB\n",
])  # fmt: skip


@st.composite
def bars(draw: st.DrawFn) -> str:
    """Frames of a bar, mostly in order; sometimes of two bars in turn, glued to a record, or ended by a line feed."""
    desc = draw(
        st.sampled_from(["Loading safetensors checkpoint shards", "Capturing batches (bs={} avail_mem=15.2{} GB)", ""])
    )
    total = draw(st.sampled_from([3, 12, 40]))
    frames = []
    for _ in range(draw(st.integers(1, 12))):
        done = draw(st.integers(0, total))
        head = desc.format(draw(st.integers(1, 3)), draw(st.integers(0, 9)))
        head = f"{head}: " if head else ""
        rate = draw(st.sampled_from(["1.74s/it", "37.9it/s", "?it/s"]))
        middle = draw(st.sampled_from(["% Completed | ", "%|████      | "]))
        frames.append(f"{head}{100 * done // total:3d}{middle}{done}/{total} [00:{done % 60:02d}<00:03,  {rate}]")
    if draw(st.booleans()):
        frames.sort(key=lambda frame: int(frame.partition("%")[0].rpartition(" ")[2] or 0))
    odd = ["\r\r", "\n", "\r\n", "", "[2026-11-30 15:43:00 TP0] x\n"]
    ends = [draw(st.sampled_from(["\r"] * 12 + odd)) for _ in frames]
    return "".join(frame + end for frame, end in zip(frames, ends, strict=True)) + draw(st.sampled_from(["\n", ""]))


@st.composite
def starts(draw: st.DrawFn) -> str:
    """A start up to ready and serving, with bars."""
    tp = draw(st.sampled_from([1, 2]))
    lines = [f"[2026-11-30 15:00:00] {ARGS.format(tp, draw(numbers))}\n"]
    for rank in [""] if tp == 1 else [" TP0", " TP1"]:
        lines.append(f"[2026-11-30 15:00:01{rank}] Init torch distributed begin.\n")
        lines.append(f"[2026-11-30 15:00:02{rank}] Load weight begin. avail mem=138.42 GB\n")
    lines.append(draw(bars()))
    if draw(st.integers(0, 5)):
        lines += [
            "[2026-11-30 15:00:09] KV Cache is allocated. #tokens: 876234, K size: 53.48 GB, V size: 53.48 GB\n",
            "[2026-11-30 15:00:10] Capture cuda graph begin. This can take up to several minutes. avail mem=15.31 GB\n",
            draw(bars()),
            "[2026-11-30 15:00:14] The server is fired up and ready to roll!\n",
            '[2026-11-30 15:00:15] INFO:     127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK\n',
        ]
    return "".join(lines)


@st.composite
def glued(draw: st.DrawFn) -> str:
    """A piece cut anywhere; whatever follows is glued to it."""
    text = draw(serving | bars())
    return text[: draw(st.integers(0, len(text)) | st.just(len(text) - 1))]


@st.composite
def logs(draw: st.DrawFn, *, long_runs: bool = True) -> bytes:
    """A whole log."""
    run = st.lists(serving, min_size=1, max_size=80 if long_runs else 3).map("".join)
    pieces = draw(st.lists(run | run | others | bars() | glued() | starts(), max_size=14))
    return (draw(starts()) + "".join(pieces)).encode("utf-8", "surrogateescape")
