"""Asks a server over HTTP whether it is up. Off unless asked for; loopback unless a URL is given; never by a proxy.

Each question has a thread of its own, since an answer may take as long as a compile: the sampler never waits. Our end
of the connection is told before the answer, so that the access line that Uvicorn prints of it is known as ours.
"""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from phasetrack import __version__
from phasetrack.core.model import Outcome, ProbeResult
from phasetrack.core.readiness import next_path
from phasetrack.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from phasetrack.core.model import Snapshot

INTERVAL_S = 5.0
# Once a token was seen there is little to learn; a health check costs the server a token each time.
_CALM_S = 30.0
_TIMEOUT_S = 30.0  # SGLang's own health check gives up after 20 s
_SAMPLED_TIMEOUT_S = 900.0  # the first sampled request may compile
_DEFAULT_PORT = 30000
_BODY_LIMIT = 1 << 20
_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - what servers bind to, not we

# The least that samples: greedy decoding would not build the sampling kernels.
_SAMPLED = {"text": "1", "sampling_params": {"max_new_tokens": 1, "temperature": 0.7, "top_p": 0.9, "top_k": 40}}


@dataclass(frozen=True, slots=True)
class Target:
    """Where to ask."""

    host: str
    port: int
    prefix: str = ""  # of the path
    secure: bool = False


def target_of(url: str) -> Target:
    """Read ``--url``; a bare ``host:port`` will do.

    Raises:
        UsageError: it is no HTTP URL.
    """
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in {"http", "https"}:
        raise UsageError(f"--url {url}: not an HTTP URL (give http://HOST:PORT)")
    secure = parts.scheme == "https"
    return Target(host, port or (443 if secure else 80), parts.path.rstrip("/"), secure)


class ProbeSampler:
    """A ``run.Sampler``: asks the cheapest question that proves the next rung."""

    def __init__(self, *, url: str | None = None, generate: bool = False) -> None:
        """Ask ``url``, or the port that the log names on loopback.

        Args:
            url: of the server.
            generate: whether to ask for one sampled token once it is healthy.

        Raises:
            UsageError: the URL is none.
        """
        self.interval_s = 0.5  # how often a running question is looked at; questions are ``INTERVAL_S`` apart
        self._target = None if url is None else target_of(url)
        self._generate = generate
        self._answers: queue.SimpleQueue[ProbeResult] = queue.SimpleQueue()
        self._asking = False
        self._due_s = 0.0
        self._given_up: set[str] = set()  # paths that are not worth a second question

    @property
    def is_idle(self) -> bool:
        """Whether no answer is on its way."""
        return not self._asking and self._answers.empty()

    def sample(self, known: Snapshot, now_s: float) -> ProbeResult | None:
        """Hand over what has come; ask the next question when it is due."""
        try:
            result = self._answers.get_nowait()
        except queue.Empty:
            result = None
        if result is not None:
            self._asking &= result.pending
            self._learn(result)
            return result
        if not self._asking and now_s >= self._due_s and known.outcome not in {Outcome.FAILED, Outcome.STOPPED}:
            self._ask(known, now_s)
        return None

    def _learn(self, result: ProbeResult) -> None:
        """A figure is asked for once; a request that is not allowed, or not known, is not repeated."""
        done = result.path == "/server_info" or (result.path != "/health" and result.status in {401, 403, 404})
        if done and not result.pending:
            self._given_up.add(result.path)

    def _ask(self, known: Snapshot, now_s: float) -> None:
        target = self._target or target_by_log(known)
        path = next_path(known, generate=self._generate, without=self._given_up)
        calm = known.outcome is Outcome.READY and any(rung.id == "token" and rung.ok for rung in known.rungs)
        patient = path not in {"/generate", "/server_info"}
        self._asking = True
        self._due_s = now_s + (_CALM_S if calm and patient else INTERVAL_S)
        threading.Thread(target=self._run, args=(target, path), daemon=True, name="phasetrack-probe").start()

    def _run(self, target: Target, path: str) -> None:
        ask(target, path, self._answers.put)


def target_by_log(known: Snapshot | None) -> Target:
    """Where the log says that its server listens; never off this machine."""
    facts = {} if known is None else known.facts
    port, host = facts.get("port"), str(facts.get("host") or "")
    host = _LOOPBACK.get(host, host)
    is_loopback = host in {"127.0.0.1", "::1", "localhost"}
    return Target(host if is_loopback else "127.0.0.1", port if isinstance(port, int) else _DEFAULT_PORT)


def ask(target: Target, path: str, tell: Callable[[ProbeResult], None]) -> None:
    """Ask once. Tells a pending result as soon as our end is known, then the answer or why there is none."""
    began, client = time.monotonic(), ""
    try:
        with closing(_connect(target, _SAMPLED_TIMEOUT_S if path == "/generate" else _TIMEOUT_S)) as connection:
            client = _client_of(connection)
            tell(ProbeResult(time.time(), path, None, 0.0, client=client, pending=True))
            answer, body = _exchange(connection, target, path)
            result = _read(path, answer, body)
    except (OSError, http.client.HTTPException) as fault:
        result = ProbeResult(0.0, path, None, 0.0, error=_words(fault))
    tell(replace(result, now_s=time.time(), took_s=time.monotonic() - began, client=client))


def _connect(target: Target, timeout_s: float) -> http.client.HTTPConnection:
    form = http.client.HTTPSConnection if target.secure else http.client.HTTPConnection
    connection = form(target.host, target.port, timeout=timeout_s)
    connection.connect()
    return connection


def _client_of(connection: http.client.HTTPConnection) -> str:
    """Our own end as Uvicorn prints it."""
    host, port = connection.sock.getsockname()[:2]
    return f"{host}:{port}"


def _exchange(
    connection: http.client.HTTPConnection, target: Target, path: str
) -> tuple[http.client.HTTPResponse, bytes]:
    headers = {"User-Agent": f"phasetrack/{__version__}", "Connection": "close"}
    if path == "/generate":
        body = json.dumps(_SAMPLED).encode()
        connection.request("POST", target.prefix + path, body, headers | {"Content-Type": "application/json"})
    else:
        connection.request("GET", target.prefix + path, headers=headers)
    answer = connection.getresponse()
    return answer, answer.read(_BODY_LIMIT)


def _read(path: str, answer: http.client.HTTPResponse, body: bytes) -> ProbeResult:
    """Of a body only its length is kept, and the one figure that is asked for."""
    startup_s = _startup_s(body) if path == "/server_info" and answer.status == 200 else None
    server = answer.getheader("Server", "")[:40]
    return ProbeResult(0.0, path, answer.status, 0.0, len(body), server=server, startup_s=startup_s)


def _startup_s(body: bytes) -> float | None:
    try:
        value = json.loads(body).get("startup_time")
    except (ValueError, AttributeError):
        return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _words(fault: Exception) -> str:
    if isinstance(fault, ConnectionRefusedError):
        return "refused"
    if isinstance(fault, TimeoutError):
        return "timed out"
    return getattr(fault, "strerror", None) or type(fault).__name__
