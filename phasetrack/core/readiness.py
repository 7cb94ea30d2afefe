"""The readiness ladder: process up, port open, healthy, one token, warm; and which URL proves which rung.

``/health`` means different things by version (read in 36 releases of SGLang):

* up to 0.4.10 it is 200 as soon as Uvicorn runs: it proves the port, nothing more;
* 0.4.10.post2 to 0.5.0 answer 503 until the warm-up has passed, and for good with ``--skip-server-warmup``;
* from there on 503 while starting, then 200 after one generated token, which takes about a second; with generation
  switched off (an environment variable) the 200 comes at once and proves no token.

The body is empty in every case: the status is the answer. ``/ready`` (0.5.20+) never generates. ``/v1/models`` and
``/model_info`` are 200 the moment Uvicorn runs. The port is bound after every rank has loaded, in all versions, so an
answer before that is another server's. Ready is not warm: the first *sampled* request was seen to block for 71 and
107 s in a JIT build.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from phasetrack.core.ending import main_words
from phasetrack.core.model import Basis, Outcome, Rung
from phasetrack.core.say import duration
from phasetrack.core.state import version_key

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from phasetrack.core.model import Evidence, ProbeResult, Snapshot

# What a good answer proves; each is a rung.
PORT, HEALTH, TOKEN, WARM = "port", "health", "token", "warm"

_STATIC_UNTIL = "0.4.10"  # the last with a static /health
_SKIP_WARMUP_FIXED = "0.5.1"
_READY_SINCE = "0.5.20"
_STARTUP_TIME_SINCE = "0.5.18"
# A health check that generates waits in steps of one second.
_GENERATED_S = 0.9
# A sampled request of one token takes well under this once nothing compiles any more.
_WARM_S = 5.0
# A busy server misses a check now and then; two in a row, this far apart, are a fact.
_REFUSED_S = 4.0

# 127.0.0.1:52174 - "GET /health HTTP/1.1" 503 Service Unavailable
_ACCESS = re.compile(r'(?P<client>[\w.:-]*) - "(?P<verb>[A-Z]+) (?P<path>[^ ?]+)\S* HTTP/\d\.\d" (?P<status>\d+)')
_POLLED = frozenset({
    "/health", "/health_generate", "/ready", "/ping", "/metrics", "/model_info", "/get_model_info", "/server_info",
    "/get_server_info", "/v1/models",
})  # fmt: skip


def is_poll(text: str, clients: AbstractSet[str] = frozenset()) -> bool:
    """Whether a message is the access line of one who asks "are you there?": no progress, and no silence broken.

    Args:
        text: the message, behind stamp and level.
        clients: our own ends of connections; whatever they asked is no progress either.
    """
    found = _ACCESS.match(text)
    if found is None:
        return False
    return found["client"] in clients or (found["verb"] in {"GET", "HEAD"} and found["path"] in _POLLED)


def versions(known: Snapshot) -> tuple[str | None, str | None]:
    """The engine's version as a range: both ends the same where it was printed, None where unbounded."""
    engine = known.engine
    if engine is None:
        return None, None
    return (engine.version, engine.version) if engine.version else (engine.version_low, engine.version_high)


def is_at_least(version: str | None, other: str) -> bool:
    """Whether a version is known to be no older than another."""
    return version is not None and version_key(version) >= version_key(other)


def proves(known: Snapshot, path: str, took_s: float) -> str:
    """The highest rung that a 200 of a path proves, by the engine's version."""
    low, _ = versions(known)
    if path in {"/generate", "/health_generate"}:
        return TOKEN
    if path == "/ready":
        return HEALTH
    if path != "/health" or _is_static(known):
        return PORT
    if took_s >= _GENERATED_S:
        return TOKEN
    sure = is_at_least(low, _STATIC_UNTIL + ".post1") or known.outcome is Outcome.READY
    return HEALTH if sure else PORT


def next_path(known: Snapshot, *, generate: bool, without: AbstractSet[str] = frozenset()) -> str:
    """The path to ask next: the cheapest that proves the lowest rung not yet proven.

    Args:
        known: what is known so far, its rungs too.
        generate: whether a sampled token may be asked for.
        without: paths not to be asked.
    """
    proven = {rung.id for rung in known.rungs if rung.ok}
    low, _ = versions(known)
    wanted = []
    if known.outcome is Outcome.READY and HEALTH in proven:
        wanted += ["/server_info"] if is_at_least(low, _STARTUP_TIME_SINCE) else []
        wanted += ["/generate"] if generate and WARM not in proven else []
    if is_at_least(low, _READY_SINCE) and (HEALTH not in proven or TOKEN in proven):
        wanted.append("/ready")
    if known.outcome is Outcome.READY and _is_static(known) and HEALTH not in proven:
        wanted.append("/health_generate")
    return next((path for path in wanted if path not in without), "/health")


def _is_static(known: Snapshot) -> bool:
    """Whether /health is 200 as soon as Uvicorn runs, in every version that this may be."""
    _, high = versions(known)
    return high is not None and not is_at_least(high, _STATIC_UNTIL + ".post1")


class Ladder:
    """Keeps what was proven by HTTP, and when; our clock."""

    def __init__(self) -> None:
        """Know nothing."""
        self.clients: set[str] = set()  # our own ends, to know our access lines by
        self.startup_s: float | None = None  # the engine's own figure
        self._proofs: dict[str, ProbeResult] = {}  # rung -> the first answer that proved it
        self._newest: ProbeResult | None = None
        self._refused: ProbeResult | None = None  # the first of the bad answers since the last good one
        self._foreign: ProbeResult | None = None
        self._sampled: ProbeResult | None = None  # the first sampled request

    def feed(self, result: ProbeResult, known: Snapshot) -> None:
        """Take one answer, judged by what was known then."""
        if result.client:
            self.clients.add(result.client)
        if result.pending:
            return
        self.startup_s = result.startup_s if result.startup_s is not None else self.startup_s
        if result.path == "/server_info":
            return
        self._newest = result
        if result.status is not None and _is_foreign(result, known):
            self._foreign = self._foreign or result
            return
        if result.status is not None:
            self._foreign = None
            self._proofs.setdefault(PORT, result)
        if result.status == 200:
            self._prove(result, known)
        elif known.outcome is Outcome.READY:  # before that a refusal is what a start looks like
            self._refused = self._refused or result

    def _prove(self, result: ProbeResult, known: Snapshot) -> None:
        self._refused = None
        rung = proves(known, result.path, result.took_s)
        if rung in {HEALTH, TOKEN}:
            self._proofs.setdefault(HEALTH, result)
        if rung == TOKEN:
            self._proofs.setdefault(TOKEN, result)
        if result.path == "/generate":
            again = self._sampled is not None
            self._sampled = self._sampled or result
            if again or result.took_s < _WARM_S:
                self._proofs.setdefault(WARM, result)

    def rungs(self, known: Snapshot, evidence: Evidence | None) -> tuple[Rung, ...]:
        """The ladder as far as it is known; empty where nobody looked outside the log."""
        if evidence is None and self._newest is None:
            return ()
        process, port = self._process(evidence), self._port(known, evidence)
        if self._newest is None:
            return (process, port)
        return (process, port, self._health(known, self._newest), self._token(), self._warm(known))

    def _process(self, evidence: Evidence | None) -> Rung:
        title = "Process up"
        if evidence is not None and evidence.root_gone_s is not None:
            gone_at_s = evidence.now_s - evidence.root_gone_s
            return Rung("process", title, gone_at_s, ok=False, detail=f"{main_words(evidence)} is gone")
        if evidence is None or evidence.root_pid is None:
            return Rung("process", title, None, ok=None, detail="cannot be seen from here")
        root = next((p for p in evidence.processes if p.pid == evidence.root_pid), None)
        found = f" ({evidence.found})" if evidence.found else ""
        started_s = None if root is None else root.started_s
        return Rung("process", title, started_s, ok=True, detail=f"pid {evidence.root_pid}{found}")

    def _port(self, known: Snapshot, evidence: Evidence | None) -> Rung:
        title = "Port open"
        port = known.facts.get("port")
        name = "the port" if port is None else f"port {port}"
        foreign = self._foreign
        if evidence is not None and evidence.port_owner:
            return Rung(PORT, title, None, False, f"another program listens on {name}: {evidence.port_owner}")
        if foreign is not None:
            detail = f"another server answers on {name}: {foreign.path} {foreign.status}"
            return Rung(PORT, title, foreign.now_s, False, detail)
        first = self._proofs.get(PORT)
        if first is not None:
            return Rung(PORT, title, first.now_s, True, f"{name} answers")
        if evidence is not None and evidence.port_open_s is not None:
            return Rung(PORT, title, evidence.port_open_s, True, f"{name} is open")
        return Rung(PORT, title, None, None, f"{name} is not open yet")

    def _health(self, known: Snapshot, newest: ProbeResult) -> Rung:
        title = "Healthy"
        refused = self._refused
        if known.outcome is Outcome.READY and refused is not None and not _never_healthy(known):
            for_s = newest.now_s - refused.now_s
            if for_s >= _REFUSED_S:
                return Rung(HEALTH, title, refused.now_s, False, f"{_said(newest)} for {duration(for_s)}")
        first = self._proofs.get(HEALTH)
        if first is not None:
            return Rung(HEALTH, title, first.now_s, True, f"{first.path} 200")
        if newest.status == 200:
            return Rung(HEALTH, title, None, None, f"{newest.path} is 200 here before the server is ready: no proof")
        trap = "; this version never says 200 with --skip-server-warmup" if _never_healthy(known) else ""
        return Rung(HEALTH, title, None, None, _said(newest) + trap)

    def _token(self) -> Rung:
        first = self._proofs.get(TOKEN)
        if first is None:
            return Rung(TOKEN, "One token", None, None)
        return Rung(TOKEN, "One token", first.now_s, True, f"{first.path} in {duration(first.took_s)}")

    def _warm(self, known: Snapshot) -> Rung:
        title, warm, sampled = "Warm", self._proofs.get(WARM), self._sampled
        first = "" if sampled is None else f"the first sampled request took {duration(sampled.took_s)}"
        if warm is not None:
            return Rung(WARM, title, warm.now_s, True, first)
        if sampled is not None:
            return Rung(WARM, title, None, False, first)
        asked = "no sampled request was made; it may still compile" if known.outcome is Outcome.READY else ""
        return Rung(WARM, title, None, None, asked)


def _is_foreign(result: ProbeResult, known: Snapshot) -> bool:
    """SGLang always has /health, and binds its port after every rank has loaded."""
    if result.status == 404 and result.path == "/health":
        return True
    if known.outcome is not Outcome.STARTING:
        return False
    told = [row for row in known.phases if row.basis is Basis.LOGGED and row.begin_line is not None]
    begun = {row.phase for row in told} - {"bootstrap"}
    return bool(begun) and not begun & {"http_up", "warmup"}


def _never_healthy(known: Snapshot) -> bool:
    """The trap of 0.4.10.post2 to 0.5.0 with --skip-server-warmup."""
    low, high = versions(known)
    if known.facts.get("skip_server_warmup") is not True or high is None:
        return False
    return is_at_least(low, _STATIC_UNTIL + ".post1") and not is_at_least(high, _SKIP_WARMUP_FIXED)


def _said(result: ProbeResult) -> str:
    if result.status is None:
        return f"{result.path} gives no answer ({result.error or 'refused'})"
    return f"{result.path} answers {result.status}"
