"""Launches that never were: logs in the words of SGLang 0.5.16, with times of our choosing.

What a machine takes is a law that a test knows, so that it can ask whether an estimate holds. Each piece of the log
carries the second at which it is written, counted from the command.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from math import exp
from typing import TYPE_CHECKING

from phasetrack.core.model import Chunk, Closed, Tick
from phasetrack.core.past import past_of
from phasetrack.core.tracker import Tracker
from tests.talk import patterns

if TYPE_CHECKING:
    from random import Random

    from phasetrack.core.model import PastBoot, Priors, Snapshot

MODEL = "/srv/models/DeepSeek-R1-0528"
BEGAN_S = datetime(2026, 11, 30, 15, 0, 0, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of each stretch of a launch."""

    imports: float = 14.0  # before the first line
    bootstrap: float = 25.0
    dist: float = 6.0
    lead: float = 2.0  # before the weight bar
    shards: float = 200.0
    tail: float = 40.0  # after the full bar
    draft: float = 60.0
    kv: float = 4.0
    silent: float = 900.0  # the first size of the capture
    capture: float = 60.0  # the others
    draft_graph: float = 90.0
    wake: float = 5.0
    warmup: float = 60.0

    def varied(self, random: Random, spread: float, today: float = 0.0) -> Took:
        """The same machine another day: log-normal around these, and a factor for the whole day."""
        day = random.gauss(0.0, today)
        values = {f.name: getattr(self, f.name) * exp(day + random.gauss(0.0, spread)) for f in fields(self)}
        return replace(self, **values)


class Launch:
    """A TP8 launch with an EAGLE3 draft of its own, piece by piece."""

    def __init__(
        self, took: Took, *, tp: int = 8, shards: int = 163, model: str = MODEL, began_s: float = BEGAN_S
    ) -> None:
        """Write it."""
        self.began_s = began_s
        self.pieces: list[tuple[float, bytes]] = []
        self._ranks = [f" TP{k}" for k in range(tp)] if tp > 1 else [""]
        self._at_s = took.imports
        self.began: dict[str, float] = {}
        self._write(took, shards, model, tp)
        self.ready_s = self._at_s

    def until(self, at_s: float) -> bytes:
        """What stands in the log at a second after the command."""
        return b"".join(data for when, data in self.pieces if when <= at_s)

    def _write(self, took: Took, shards: int, model: str, tp: int) -> None:
        self._say("Attention backend not specified. Use fa3 backend by default.")
        self._at_s += 2
        self._say(
            f"server_args=ServerArgs(model_path='{model}', tokenizer_path='{model}', tokenizer_worker_num=1, nnodes=1,"
            f" node_rank=0, tp_size={tp}, pp_size=1, dp_size=1, load_format='auto', host='0.0.0.0', port=30000,"
            " device='cuda', speculative_algorithm='EAGLE3', speculative_draft_model_path='/srv/models/R1-EAGLE3',"
            " disable_cuda_graph=False, skip_server_warmup=False, cuda_graph_max_bs=256)"
        )
        self._at_s += took.bootstrap - 2
        self._each("dist_init", "Init torch distributed begin.")
        self._at_s += took.dist
        self._each("", "Init torch distributed ends. elapsed=5.17 s, mem usage=0.61 GB")
        self._load("target_load", shards, took.lead, took.shards, took.tail, "DeepseekV3ForCausalLM")
        self._each("", "Init torch distributed begin.")
        self._each("", "Init torch distributed ends. elapsed=0.00 s, mem usage=0.00 GB")
        self._load("draft_load", 12, 1.0, took.draft - 2, 1.0, "LlamaForCausalLMEagle3")
        pool = "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 512000, K size: {0} GB, V size: {0} GB"
        self._each("kv_cache", pool.format("20.0"))
        self._at_s += took.kv
        self._each("", "Memory pool end. avail mem=20.33 GB")
        self._each("", pool.format("1.0"))
        self._each("", "Memory pool end. avail mem=18.57 GB")
        sizes = "num_tokens_per_req=3, bs=[1, 2, 4, 8], avail mem=18.57 GB"
        self._each("target_graph", f"Capture target verify CUDA graph begin. backend=full, {sizes}")
        self._capture(52, took.silent, took.capture)
        self._each("", "Capture target verify CUDA graph end. elapsed=960.0 s, mem usage=1.57 GB, avail mem=17.0 GB.")
        self._each("draft_graph", f"Capture draft decode CUDA graph begin. backend=full, {sizes}")
        self._capture(52, took.draft_graph * 0.5, took.draft_graph * 0.5)
        self._each("", "Capture draft decode CUDA graph end. elapsed=90.0 s, mem usage=0.57 GB, avail mem=16.4 GB.")
        limits = "chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=48, context_len=8192"
        self._say(f"max_total_num_tokens=512000, {limits}, available_gpu_mem=16.4 GB", " TP0" if tp > 1 else "")
        self._at_s += took.wake
        self.began["http_up"] = self._at_s
        self._say("INFO:     Started server process [2428]")
        self._say("INFO:     Waiting for application startup.")
        self._say("INFO:     Application startup complete.")
        self._say("INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)")
        self._at_s += 1
        self.began["warmup"] = self._at_s
        self._say('INFO:     127.0.0.1:52292 - "GET /model_info HTTP/1.1" 200 OK')
        self._at_s += took.warmup
        self._say("The server is fired up and ready to roll!")

    def _load(self, phase: str, shards: int, lead: float, bar: float, tail: float, kind: str) -> None:
        self._each(phase, "Load weight begin. avail mem=139.09 GB")
        self._at_s += lead
        began = self._at_s
        for k in range(shards + 1):
            spent = bar * k / shards
            rate = f"{k / spent:.2f}it/s" if k and spent else "?it/s"
            times = f"[{_mmss(spent)}<{_mmss(bar - spent)}, {rate}]"
            text = f"Multi-thread loading shards: {100 * k // shards:>3}% Completed | {k}/{shards} {times}"
            self.pieces.append((began + spent, b"\r" + text.encode()))
        self._at_s = began + bar
        self.pieces.append((self._at_s, b"\n"))
        self._at_s += tail
        memory = "avail mem=60.62 GB, mem usage=78.48 GB."
        self._each("", f"Load weight end. elapsed={bar + tail:.2f} s, type={kind}, {memory}")

    def _capture(self, sizes: int, first: float, others: float) -> None:
        """A bar that stands at 0 while kernels compile for the first size."""
        began = self._at_s
        self.pieces.append((began, f"\r  0%|          | 0/{sizes} [00:00<?, ?it/s]".encode()))
        head = "Capturing batches (bs=8 avail_mem=18.50 GB):"
        self.pieces.append((began + 1, f"\r{head}   0%|          | 0/{sizes} [00:00<?, ?it/s]".encode()))
        for k in range(1, sizes + 1):
            spent = first + others * k / sizes
            bar = "█" * (10 * k // sizes)
            text = f"{head} {100 * k // sizes:>3}%|{bar:<10}| {k}/{sizes} [{_mmss(spent)}<00:10,  1.00it/s]"
            self.pieces.append((began + spent, f"\r{text}".encode()))
        self._at_s = began + first + others
        self.pieces.append((self._at_s, b"\n"))

    def _say(self, text: str, rank: str = "") -> None:
        stamp = datetime.fromtimestamp(self.began_s + self._at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
        self.pieces.append((self._at_s, f"[{stamp}{rank}] {text}\n".encode()))

    def _each(self, phase: str, text: str) -> None:
        if phase:
            self.began[phase] = self._at_s
        for rank in self._ranks:
            self._say(text, rank)


def _mmss(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 60:02d}:{whole % 60:02d}"


def polled(launch: Launch, at_s: float, priors: Priors | None = None) -> Snapshot:
    """What ``status`` answers at a second after the command: the whole log is read anew."""
    tracker = Tracker(patterns(), "server.log")
    if priors is not None:
        tracker.feed(priors)
    written = [when for when, _ in launch.pieces if when <= at_s]
    tracker.feed(Chunk(launch.until(at_s)))
    now = launch.began_s + at_s
    tracker.feed(Tick(now, launch.began_s + (written[-1] if written else 0.0)))
    return tracker.snapshot(now)


def learned(launch: Launch) -> PastBoot:
    """What a whole launch teaches."""
    tracker = Tracker(patterns(), "server.log")
    tracker.feed(Chunk(launch.until(float("inf"))))
    tracker.feed(Closed())
    past = past_of(tracker.snapshot())
    assert past is not None
    return past
