"""Every form of every recording agrees with the JSON on every number."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache

import pytest

from phasetrack.core.model import BootSummary, Outcome
from phasetrack.core.say import duration
from phasetrack.share import report_in
from phasetrack.views.jsonl import dumps, record_json, snapshot_json
from phasetrack.views.rows import share
from tests.talk import hear, recording, recordings

_TAGS = re.compile(r"<[^>]+>")


@cache
def known(name: str):
    return hear(recording(name)).snapshot


@cache
def data(name: str) -> dict:
    return json.loads(report_in("json", known(name)))


def begun(name: str) -> list[dict]:
    return [row for row in data(name)["phases"] if row["status"] not in {"pending", "skipped"}]


def total(name: str) -> float | None:
    snapshot = data(name)
    if snapshot["startup_s"] is not None:
        return snapshot["startup_s"]
    heard = known(name)
    return None if heard.started_at_s is None or heard.now_s is None else heard.now_s - heard.started_at_s


def cells(name: str, row: dict) -> list[str]:
    """What a row must say, in order."""
    part = "" if row["phase"] in {"ready", "serving"} else share(row["elapsed_s"], total(name))
    bar = row["progress"]
    done = "" if bar is None else f"{bar['done']:g}/{bar['total']:g}"
    ranks = f"{row['ranks_done']}/{row['ranks_seen']}" if row["ranks_seen"] > 1 else ""
    begin = row["began"][11:19] if row["began"] else "--:--:--"
    return [text for text in (begin, duration(row["elapsed_s"]), part, done, ranks) if text]


def in_order(texts: list[str], line: str) -> bool:
    """Whether a line says all these, one after the other."""
    at = 0
    for text in texts:
        at = line.find(text, at)
        if at < 0:
            return False
        at += len(text)
    return True


@pytest.mark.parametrize("name", recordings())
def test_the_text_agrees(name):
    text = report_in("text", known(name))
    for row in begun(name):
        lines = [line for line in text.splitlines() if line[2:].startswith(f"{row['title']} ")]
        assert any(in_order(cells(name, row), line) for line in lines), (row["title"], cells(name, row), lines)
    between = data(name)["between_phases_s"]
    lines = [line for line in text.splitlines() if line.strip().startswith("between phases")]
    assert [duration(between) in line for line in lines] == ([] if between is None else [True])


@pytest.mark.parametrize("name", recordings())
def test_the_markdown_agrees(name):
    text = report_in("md", known(name)).replace("\\", "")
    for row in begun(name):
        lines = [line for line in text.splitlines() if f" {row['title']} |" in line]
        assert any(in_order(cells(name, row), line) for line in lines), (row["title"], cells(name, row), lines)
    failure = data(name)["failure"]
    if failure is not None:
        assert f"line {failure['line']}" in text


@pytest.mark.parametrize("name", recordings())
def test_the_page_agrees(name):
    page = report_in("html", known(name))
    for row in begun(name):
        which = f'data-phase="{row["phase"]}" data-occurrence="{row["occurrence"]}"'
        found = re.search(rf'<tr[^>]*{which} data-elapsed-s="([^"]*)">(.*?)</tr>', page, re.DOTALL)
        assert found is not None, row["phase"]
        assert (float(found[1]) if found[1] else None) == row["elapsed_s"]
        svg_less = re.sub(r"<svg.*</svg>", "", found[2], flags=re.DOTALL)
        assert in_order(cells(name, row), _TAGS.sub(" ", svg_less)), (row["title"], cells(name, row))


@pytest.mark.parametrize("name", recordings())
def test_the_trace_agrees(name):
    trace = json.loads(report_in("trace", known(name)))
    slices = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == "phase"]
    timed = [row for row in begun(name) if row["began"]]
    assert len(slices) == len(timed)
    for event, row in zip(slices, timed, strict=True):
        assert event["name"].startswith(row["title"])
        assert event["dur"] == round((row["elapsed_s"] or 0) * 1e6)
        assert event["args"].get("elapsed_s") == row["elapsed_s"]
        assert event["args"].get("begin_line") == row["begin_line"]
    assert trace["otherData"]["startup_s"] == data(name)["startup_s"]
    assert len(trace["otherData"]["untimed"]) == len(data(name)["phases"]) - len(timed)


@pytest.mark.parametrize("name", recordings())
def test_the_stream_ends_with_the_same_snapshot(name):
    heard = hear(recording(name))
    records = [record_json(record, heard.tracker.zone) for record in heard.records]
    assert snapshot_json(heard.snapshot) == json.loads(report_in("json", known(name)))
    ready = [record for record in records if record["type"] == "ready"]
    assert [record["line"] for record in ready[:1]] == [line for line in [data(name)["ready_line"]] if line is not None]
    for row in begun(name):
        of_phase = [r for r in records if r["type"] == "progress" and r.get("phase") == row["phase"]]
        if row["progress"] is not None and row["occurrence"] == 1 and row["status"] == "done":
            assert of_phase[-1]["done"] == row["progress"]["done"]


def test_json_in_pieces_is_the_same_text_as_in_one():
    one = known(recordings()[0])
    summary = BootSummary(1, None, 0, Outcome.READY, 1.8e9, server='a" , b')
    for boots in ((), (summary,), (summary, *one.boots)):
        shown = replace(one, boots=boots)
        assert report_in("json", shown) == dumps(snapshot_json(shown), indent=2) + "\n"
