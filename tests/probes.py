"""Recorded probes as evidence: what a sampler beside our own recordings would have seen.

``fixtures/*/probes.jsonl.gz`` holds one JSON object a line: the process tree and GPUs once a second (``probe``), an
HTTP answer (``http``), or what was done to the server (``action``); ``t`` counts from the start, as in the cast.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from phasetrack.core.model import Chunk, Closed, EvidenceSample, GpuSample, ProbeResult, ProcessSample
from phasetrack.core.titles import MAIN, title_of
from phasetrack.core.tracker import Tracker
from tests.talk import FIXTURES, patterns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from phasetrack.core.model import Input, Snapshot

START_S = 1_800_000_000.0  # Unix time of t = 0; any will do


def recorded_with_probes() -> list[str]:
    """The recordings that were probed."""
    return sorted(path.parent.name for path in FIXTURES.glob("*/probes.jsonl.gz"))


def probes(name: str) -> list[dict[str, Any]]:
    """The raw probes."""
    with gzip.open(FIXTURES / name / "probes.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def acted(name: str, what: str) -> float:
    """When something was done to the server."""
    return next(probe["t"] for probe in probes(name) if probe.get("action", {}).get("do") == what)


def _arrivals(name: str) -> Iterator[tuple[float, Chunk]]:
    with (FIXTURES / name / "server.cast").open(encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            at, kind, text = json.loads(line)
            if kind == "o":
                yield at, Chunk(text.encode("utf-8", "surrogateescape"), arrived_s=START_S + at)


def sample_of(t: float, probe: dict[str, Any]) -> EvidenceSample:
    """One probe as the evidence it would have been."""
    root = min((p["pid"] for p in probe["ps"]), default=None)
    return EvidenceSample(
        now_s=START_S + t,
        processes=tuple(_process(p, root) for p in probe["ps"]),
        root_pid=root,
        root_alive=probe["root_alive"],
        exit_code=probe["root_rc"],
        gpus=tuple(GpuSample(g["i"], "", g["util"], g["mem_used"]) for g in probe.get("gpu") or ()),
        log_bytes=probe["log_bytes"],
    )


def _process(p: dict[str, Any], root: int | None) -> ProcessSample:
    title = title_of(p["comm"], p["cmd"])
    return ProcessSample(
        pid=p["pid"], ppid=p["ppid"], name=title.name, role=MAIN if p["pid"] == root else title.role, rank=title.rank,
        state=p["state"], cpu_s=p["cpu_s"], read_bytes=p["read_bytes"], rss_bytes=p["rss"], read_chars=p["rchar"],
    )  # fmt: skip


def inputs(
    name: str, *, probe_every_s: float = 2.0, http: bool = False, log_until: float = float("inf")
) -> Iterator[tuple[float, Input]]:
    """Log and probes of a recording in the order of their times.

    Args:
        name: of the recording.
        probe_every_s: how often processes are looked at.
        http: whether the recorded answers are told too.
        log_until: what the log holds after this is left out.
    """
    merged: list[tuple[float, Input]] = [pair for pair in _arrivals(name) if pair[0] < log_until]
    due, root = 0.0, None
    for record in probes(name):
        t = record["t"]
        if "probe" in record and t >= due:
            sample = sample_of(t, record["probe"])
            root = root or sample.root_pid  # the first main process is the one that we follow
            merged.append((t, _with_root(sample, root)))
            due = t + probe_every_s - 0.5
        elif "http" in record and http:
            merged.append((t, _answer(t, record["http"])))
    yield from sorted(merged, key=lambda pair: pair[0])


def _with_root(sample: EvidenceSample, root: int | None) -> EvidenceSample:
    return replace(sample, root_pid=root)


def _answer(t: float, answer: dict[str, Any]) -> ProbeResult:
    return ProbeResult(
        START_S + t, answer["path"], answer["status"], answer["ms"] / 1000, answer.get("len"), answer.get("err") or ""
    )


def replay(name: str, *, step_s: float = 1.0, **options: Any) -> Iterator[tuple[float, Snapshot]]:
    """Snapshots once a second, as a live follower would have shown them."""
    tracker = Tracker(patterns(), name)
    due, now = step_s, 0.0
    for now, item in inputs(name, **options):
        while due <= now:
            yield due, tracker.snapshot(START_S + due)
            due += step_s
        tracker.feed(item)
    yield now, tracker.snapshot(START_S + now)
    tracker.feed(Closed("the recording ends", START_S + now))
    yield now, tracker.snapshot()
