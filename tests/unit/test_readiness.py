"""The readiness ladder, and which URL lies in which version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from phasetrack.core.model import Engine, Outcome, ProbeResult, Snapshot
from phasetrack.core.readiness import Ladder, is_poll, next_path, proves
from phasetrack.core.summary import NO_VERDICT
from tests.beside import Scene, loading
from tests.talk import args

UVICORN = "42:40 | INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)"
READY = "42:50 | The server is fired up and ready to roll!"


def of(version: str | None, outcome: Outcome = Outcome.STARTING) -> Snapshot:
    return Snapshot(None, outcome, NO_VERDICT, engine=Engine("sglang", "SGLang", version, None, None, ""))


def rungs(scene: Scene) -> dict[str, bool | None]:
    return {rung.id: rung.ok for rung in scene.known.rungs}


def detail(scene: Scene, rung: str) -> str:
    return next(found.detail for found in scene.known.rungs if found.id == rung)


# --- by version -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "path", "took_s", "rung"),
    [
        ("0.3.6", "/health", 0.001, "port"),
        ("0.4.10", "/health", 0.001, "port"),
        ("0.4.10.post2", "/health", 0.01, "health"),
        ("0.5.12", "/health", 1.002, "token"),
        ("0.5.12", "/health", 0.003, "health"),  # generation switched off
        ("0.4.6", "/health_generate", 0.5, "token"),
        ("0.5.23", "/ready", 0.001, "health"),
        ("0.5.12", "/v1/models", 0.002, "port"),
        ("0.5.12", "/model_info", 0.002, "port"),
        (None, "/health", 0.002, "port"),
        (None, "/health", 1.002, "token"),
    ],
)
def test_a_200_proves_what_it_proves_in_that_version(version, path, took_s, rung):
    assert proves(of(version), path, took_s) == rung


def test_a_quick_200_of_an_unknown_version_proves_health_once_the_log_agrees():
    assert proves(of(None, Outcome.READY), "/health", 0.002) == "health"


@pytest.mark.parametrize(
    ("version", "expected"), [("0.4.9", "/health"), ("0.5.19", "/health"), ("0.5.20", "/ready"), (None, "/health")]
)
def test_the_cheapest_question_is_asked_first(version, expected):
    assert next_path(of(version), generate=False) == expected


def test_where_health_lies_a_token_is_asked_for_once_the_log_is_ready():
    assert next_path(of("0.4.9", Outcome.READY), generate=False) == "/health_generate"
    assert next_path(of("0.4.9"), generate=False) == "/health"


# --- polls ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '127.0.0.1:52174 - "GET /health HTTP/1.1" 503 Service Unavailable',
        '127.0.0.1:52174 - "GET /health_generate?x=1 HTTP/1.1" 200 OK',
        '[::1]:1 - "GET /health HTTP/1.1" 200 OK'.replace("[", "").replace("]", ""),
        '10.0.0.7:1 - "GET /metrics HTTP/1.1" 200 OK',
        '10.0.0.7:1 - "HEAD /v1/models HTTP/1.0" 200 OK',
    ],
)
def test_a_health_checks_access_line_is_a_poll(text):
    assert is_poll(text)


@pytest.mark.parametrize(
    "text",
    [
        '10.0.0.7:1 - "POST /generate HTTP/1.1" 200 OK',
        '10.0.0.7:1 - "GET /v1/chat/completions HTTP/1.1" 405 Method Not Allowed',
        'HTTP Request: GET https://huggingface.co/api "HTTP/1.1 404 Not Found"',
        "Load weight begin.",
    ],
)
def test_anything_else_is_none(text):
    assert not is_poll(text)


def test_whatever_we_asked_is_a_poll():
    assert is_poll('127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK', {"127.0.0.1:5"})


# --- the ladder -------------------------------------------------------------------------------------


def test_there_is_no_ladder_where_nobody_looked():
    assert Scene().says(f"42:04 | {args(tp_size=1)}").known.rungs == ()


def test_the_ladder_is_climbed_rung_by_rung():
    scene = loading()
    assert rungs(scene) == {"process": True, "port": None}
    scene.answers("/health", None, error="refused")
    assert rungs(scene)["port"] is None
    scene.says(UVICORN).answers("/health", 503)
    assert rungs(scene) == {"process": True, "port": True, "health": None, "token": None, "warm": None}
    scene.says(READY).answers("/health", 200, took_s=1.0)
    assert rungs(scene) == {"process": True, "port": True, "health": True, "token": True, "warm": None}
    scene.answers("/generate", 200, took_s=0.2)
    assert rungs(scene)["warm"] is True


def test_each_rung_has_its_time():
    scene = loading().says(UVICORN).pass_(4).answers("/health", 503)
    first = scene.now_s
    scene.pass_(10).says(READY).answers("/health", 200, took_s=1.0)
    times = {rung.id: rung.at_s for rung in scene.known.rungs}
    assert (times["port"], times["health"]) == (first, first + 10)


def test_refusals_before_ready_are_what_a_start_looks_like():
    scene = loading()
    for _ in range(10):
        scene.pass_(5).answers("/health", None, error="refused")
    assert scene.state == "quiet"


def test_a_server_that_is_ready_by_its_log_and_refuses_is_degraded():
    scene = loading().says(UVICORN).says(READY).answers("/health", 503)
    assert scene.state == "ready"  # one answer may come a moment too early
    scene.pass_(10).answers("/health", 503)
    assert scene.state == "degraded"
    assert "/health answers 503 for 10 s" in scene.known.verdict.because
    scene.answers("/health", 200, took_s=1.0)
    assert scene.state == "ready"


@pytest.mark.parametrize(("version", "is_trap"), [("0.4.10.post2", True), ("0.5.0", True), ("0.5.1", False)])
def test_some_versions_never_say_200_without_a_warm_up(version, is_trap):
    known = replace(of(version, Outcome.READY), facts={"skip_server_warmup": True})
    ladder = Ladder()
    for after_s in (0, 10):
        ladder.feed(ProbeResult(after_s, "/health", 503, 0.01), known)
    health = next(rung for rung in ladder.rungs(known, None) if rung.id == "health")
    assert health.ok is (None if is_trap else False)
    assert ("never says 200" in health.detail) is is_trap


def test_the_first_sampled_request_that_compiles_is_not_warm_yet():
    scene = loading().says(UVICORN).says(READY).answers("/health", 200, took_s=1.0)
    scene.answers("/generate", 200, took_s=71.0)
    assert rungs(scene)["warm"] is False
    assert "not warm: the first sampled request took 71 s" in scene.known.verdict.because
    scene.answers("/generate", 200, took_s=0.1)
    assert rungs(scene)["warm"] is True
    assert detail(scene, "warm") == "the first sampled request took 71 s"


def test_an_answer_before_the_weights_are_loaded_is_another_servers():
    scene = loading().answers("/health", 200, took_s=1.0)
    assert rungs(scene)["port"] is False
    assert "another server answers on port 30000" in detail(scene, "port")
    assert rungs(scene)["health"] is None


def test_a_server_without_health_is_another_one():
    assert rungs(Scene().answers("/health", 404))["port"] is False


def test_another_program_on_the_port_is_named():
    scene = loading().looks(port_owner="nginx (pid 7)")
    assert detail(scene, "port") == "another program listens on port 30000: nginx (pid 7)"


def test_the_engines_own_startup_time_stands_beside_ours():
    scene = loading().says(UVICORN).says(READY).answers("/server_info", 200, startup_s=47.5)
    check = next(check for check in scene.known.timings if check.name == "startup")
    assert check.engine_s == 47.5
    assert check.derived_s == pytest.approx(46)
