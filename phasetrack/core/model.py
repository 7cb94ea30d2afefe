"""Every type that crosses a module border, and nothing else.

Frozen and slotted, so that a snapshot handed to a screen can never change under it. Two clocks are kept
apart by name: ``at_s`` and every other ``*_s`` point in time of a log is on the *log's own wall clock*
(seconds since 1970 as if its naive stamps were UTC); ``arrived_s`` and ``now_s`` are ours (Unix time).
Durations are plain seconds. ``None`` means unknown; zero means zero.

Those made once a line or more often are NamedTuples: as immutable, and built in a third of the time.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from phasetrack.core.fixed import Fixed, fixed

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = "phasetrack.snapshot/1"
# The id of the warning that a log could not be read to its end.
DAMAGED = "log.damaged"

Scalar: TypeAlias = "str | int | float | bool | None"
Value: TypeAlias = "Scalar | tuple[Value, ...] | Mapping[str, Value]"

EMPTY: Mapping[str, Value] = MappingProxyType({})


def _empty() -> Mapping[str, Value]:
    return EMPTY


# --- words ------------------------------------------------------------------------------------------


class Role(StrEnum):
    """What a rule says of its line."""

    BEGIN = "begin"
    PROGRESS = "progress"
    END = "end"
    FACT = "fact"
    FAILURE = "failure"
    WARNING = "warning"


class Status(StrEnum):
    """Where a phase row stands."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


class Basis(StrEnum):
    """How a boundary or a time is known."""

    LOGGED = "logged"
    INFERRED = "inferred"
    PROBED = "probed"


class Outcome(StrEnum):
    """What became of a boot."""

    NONE = "none"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


class VerdictState(StrEnum):
    """The answer to "is it stuck?", from calm to lost, then the states after the start."""

    WAITING = "waiting"
    PROGRESSING = "progressing"
    QUIET = "quiet"
    WORKING = "working"
    OVERDUE = "overdue"
    SUSPECT = "suspect"
    STUCK = "stuck"
    READY = "ready"
    DEGRADED = "degraded"
    FAILED = "failed"
    STOPPED = "stopped"
    ENDED = "ended"


class End(StrEnum):
    """What ended a segment."""

    LF = "lf"  # \n, \r\n or \r\r\n: the line is complete
    CR = "cr"  # a lone \r or a cursor-up: the line is about to be redrawn
    CUT = "cut"  # the length limit; the line goes on
    OPEN = "open"  # nothing yet: a peek at the tail


class Where(StrEnum):
    """In which part of a failing record a failure rule looks."""

    RECORD = "record"  # the first line of a failing record; a traceback may follow
    EXCEPTION = "exception"  # the last line of a traceback: names the kind
    LINE = "line"  # a line that is fatal by itself
    ECHO = "echo"  # a consequence of an earlier failure; never a cause
    CLUE = "clue"  # fails nothing, but explains a failure that comes with it or soon after


# --- text -------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A position in the stream. ``line`` counts LF from 1 and is None where the beginning was not read."""

    line: int | None
    frame: int  # frames (redraws) within the line, from 1
    offset: int  # bytes from the start of the stream


class Segment(NamedTuple):
    """Text up to a terminator: decoded, without escape sequences."""

    text: str
    place: Place
    end: End


class Bulk(NamedTuple):
    """A run of whole serving lines that was stepped over at speed."""

    lines: int
    place: Place  # of the first line
    newest: str  # the line that moves the time furthest: ranks write out of turn
    last: str
    bytes: int


class Bar(NamedTuple):
    """A parsed progress bar frame."""

    desc: str
    done: float
    total: float | None
    elapsed_s: float | None
    rate_per_s: float | None
    unit: str  # "it", "B", …, as printed


# --- patterns ---------------------------------------------------------------------------------------


@fixed(frozen=True, slots=True)
class Silence(Fixed):
    """How long a phase is known to print nothing while healthy."""

    typical_s: float
    long_s: float
    n: int  # starts behind the numbers
    source: str


@fixed(frozen=True, slots=True)
class PhaseInfo(Fixed):
    """A named stage of a boot, as the pack describes it."""

    id: str
    title: str
    unit: str = ""  # what its bar counts: shards, graphs
    silence: Silence | None = None
    quiet_why: str = ""  # why silence is normal here, one clause
    deadline_s: float | None = None  # the engine itself gives up after this long
    deadline_why: str = ""
    planned: bool = True  # False: not every version tells of it, so no start waits for it


@fixed(frozen=True, slots=True)
class Case(Fixed):
    """Advice that is better than its rule's where it applies: all that it names is known, and its condition holds."""

    of: str = ""  # a fact or group of the rule; "" where only what the texts name must be known
    like: str = ""  # a regular expression of that value as a whole
    phase: str = ""
    cause: str = ""
    remedy: str = ""


@fixed(frozen=True, slots=True)
class Rule(Fixed):
    """One line of knowledge about an engine's log."""

    id: str
    engine: str
    role: Role
    phase: str | None = None
    match: str | None = None
    bar: str | None = None
    activity: str | None = None  # names work inside a phase
    title: str = ""  # of the activity
    ends: tuple[str, ...] = ()  # phases of its rank that this line proves to be over
    implies: bool = False  # opens its phase, but only as an inference
    then: str | None = None  # the phase that begins where this line ends its own, as an inference
    everywhere: bool = False  # one process says it for all ranks
    generic: bool = False  # other programs print this too: it never opens a boot
    inside: bool = False  # acts in boots of its own engine only, and there before another pack's rule
    where: Where | None = None
    fatal: bool = False
    cause: str = ""
    remedy: str = ""
    remedies: Mapping[str, str] = field(default_factory=dict)  # phase -> remedy where it differs
    cases: tuple[Case, ...] = ()  # the first that applies
    hang: bool = False  # its line says that the engine hangs; a failure once the process goes
    secondary: bool = False  # usually follows from another failure, and gives way to it
    vague: bool = False  # says less than any other kind that knows the line
    since: str | None = None  # first and last engine version that prints it
    until: str | None = None
    source: str = ""
    must_match: tuple[str, ...] = ()
    must_not_match: tuple[str, ...] = ()
    trusted: bool = True  # shipped with the package: compiled with re


@fixed(frozen=True, slots=True)
class PatternSet(Fixed):
    """All loaded packs, merged. Rules keep the order of their files."""

    rules: tuple[Rule, ...]
    phases: Mapping[str, PhaseInfo]
    bulk: tuple[str, ...]  # regular expressions of whole messages that only a serving engine prints
    packages: Mapping[str, str]  # Python package in tracebacks -> engine
    titles: Mapping[str, str]  # engine -> its name in words
    packs: Mapping[str, str]  # engine -> "0.2.15 to 0.5.23", the versions the pack knows
    own_phases: Mapping[str, Mapping[str, PhaseInfo]] = field(default_factory=dict)  # of engines with a package
    arguments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # engine -> its names -> ours (SGLang's)

    def phases_of(self, engine: str) -> Mapping[str, PhaseInfo]:
        """What is known of the phases of an engine's boots: its own words first."""
        return {**self.phases, **self.own_phases.get(engine, {})}


# --- what the classifier says -----------------------------------------------------------------------


class Prefix(NamedTuple):
    """What stands before a message."""

    stamp_s: float | None = None  # the engine's own stamp, log clock
    dated: bool = True  # False: the stamp has no date
    outer_s: float | None = None  # a transport's stamp
    outer_offset_s: int | None = None  # its UTC offset, where printed
    outer_dated: bool = True
    rank: str = ""  # "TP3", "DP1 TP3 EP3"; "" where the line carries none
    server: str = ""  # tag of the server or container that wrote the line
    level: str = ""
    engine: bool = False  # the stamp has the engine's form
    foreign: bool = False  # a harness's own line
    library: bool = False  # a library's log form inside the engine's process
    process: str = ""  # "EngineCore_DP0 pid=7", where the engine's processes name themselves


class Event(NamedTuple):
    """One meaning of one piece of a segment."""

    place: Place
    at_s: float | None
    prefix: Prefix
    rule: Rule | None  # None: no rule knows this text
    text: str  # the message, redacted
    fields: Mapping[str, Value] = EMPTY
    bar: Bar | None = None
    open: bool = False  # from a peek: may yield progress only
    continued: bool = False  # untimed: belongs to the record before


@fixed(frozen=True, slots=True)
class Record(Fixed):
    """One entry of the event stream (``tail --output json``, ``report --format ndjson``)."""

    type: str
    boot: int
    place: Place
    at_s: float | None
    data: Mapping[str, Value] = field(default_factory=_empty)


# --- what came in -----------------------------------------------------------------------------------


class Turned(NamedTuple):
    """The whole of a log that stands newest line first and is read from its last line up."""

    lines: int
    bytes: int  # with the line end that its last line may lack


@fixed(frozen=True, slots=True)
class Chunk(Fixed):
    """Bytes of the log. ``arrived_s`` is our clock, None for a backlog whose age is unknown."""

    data: bytes
    arrived_s: float | None = None
    recorded_s: float | None = None  # Unix time of these bytes, where a recording (a cast) kept it
    played_s: float | None = None  # seconds since a recording began
    turned: Turned | None = None  # whole lines, the last one of the file first


@fixed(frozen=True, slots=True)
class Gap(Fixed):
    """Bytes of the log that were not read. A hole holds zeros; else the lines in it are not known."""

    bytes: int
    hole: bool = False
    why: str = ""  # the rest of the log cannot be read: its archive is damaged; where nothing lacks, it is a hole


@fixed(frozen=True, slots=True)
class Tick(Fixed):
    """The clock moved. ``output_s`` is when the log last grew (its mtime), our clock."""

    now_s: float
    output_s: float | None = None


@fixed(frozen=True, slots=True)
class Closed(Fixed):
    """Nothing more will come."""

    why: str = "the input ended"
    at_s: float | None = None  # our clock


@fixed(frozen=True, slots=True)
class ProcessSample(Fixed):
    """One process of the server's tree, once."""

    pid: int
    ppid: int
    name: str
    role: str  # main, rank, detokenizer, compiler, other
    rank: str  # "TP3", "" where not a rank
    state: str  # R S D T Z
    cpu_s: float | None = None  # user + system since its start
    faults: int | None = None  # major + minor
    read_bytes: int | None = None  # from storage; 0 with a warm page cache
    syscalls_read: int | None = None
    rss_bytes: int | None = None
    started_s: float | None = None  # our clock
    read_chars: int | None = None  # bytes through read calls, from the page cache too; mmap does not move it
    write_chars: int | None = None


@fixed(frozen=True, slots=True)
class GpuSample(Fixed):
    """One GPU, once. Utilisation alone proves nothing: a spinning NCCL kernel shows 100 %."""

    index: int
    name: str = ""
    util_percent: float | None = None
    memory_bytes: int | None = None
    power_w: float | None = None


@fixed(frozen=True, slots=True)
class EvidenceSample(Fixed):
    """What could be seen outside the log at one moment (our clock)."""

    now_s: float
    processes: tuple[ProcessSample, ...] = ()
    root_pid: int | None = None
    root_alive: bool | None = None
    exit_code: int | None = None  # of the root, where we are its parent
    gpus: tuple[GpuSample, ...] = ()
    cache_bytes: int | None = None  # JIT caches, all together
    cache_files: int | None = None
    download_bytes: int | None = None  # *.incomplete of the hub cache
    log_bytes: int | None = None
    log_age_s: float | None = None
    port_open: bool | None = None  # a process of the tree listens on the server's port
    missing: tuple[str, ...] = ()  # what cannot be seen from here, in words
    found: str = ""  # how the server was found, in words
    port_owner: str = ""  # another program that listens on the server's port, in words
    orphan_log: bool = False  # every process that could write the log was looked at, and none has it open


@fixed(frozen=True, slots=True)
class ProbeResult(Fixed):
    """One HTTP answer of the server, or the lack of one."""

    now_s: float  # our clock, when it was done
    path: str
    status: int | None
    took_s: float
    body_bytes: int | None = None
    error: str = ""
    server: str = ""  # the Server header, to tell a foreign one
    startup_s: float | None = None  # from /server_info, 0.5.18+
    client: str = ""  # our own end, "127.0.0.1:52174": its access lines are no progress
    pending: bool = False  # sent, not yet answered


# --- what earlier boots took ------------------------------------------------------------------------


@fixed(frozen=True, slots=True)
class BootKey(Fixed):
    """What makes boots alike, from the finest to the coarsest; equal texts mean alike at that level."""

    exact: str  # model, revision, quantisation, engine, parallel axes, draft, graphs, loader
    release: str  # the same without the engine's version and the graph list
    family: str  # model family, size and number of GPUs
    size: str  # size class and kind of device
    gpu: str = ""  # name where known; boots on another GPU are alike in size only
    gpu_bytes: int | None = None  # free memory before loading: tells GPUs apart where no name is known


@fixed(frozen=True, slots=True)
class PastStep(Fixed):
    """One step of a phase: what comes before its bars, each bar, what comes after."""

    name: str  # "lead", "tail", or a bar's title with its number
    elapsed_s: float
    knots: tuple[float, ...] = ()  # of a bar: share of its time at each further 5 % done
    complete: bool = True


@fixed(frozen=True, slots=True)
class PastPhase(Fixed):
    """One phase of an earlier boot. Incomplete: it lasted at least this long."""

    phase: str
    occurrence: int
    elapsed_s: float  # from its begin to its end, or to the begin of the next one
    gap_s: float | None  # from its end to the next begin; None where not seen
    complete: bool = True
    silence_s: float | None = None
    cache: str | None = None
    steps: tuple[PastStep, ...] = ()


@fixed(frozen=True, slots=True)
class PastBoot(Fixed):
    """What is learned of one boot."""

    key: BootKey
    began_s: float | None  # log clock
    outcome: str
    startup_s: float | None
    phases: tuple[PastPhase, ...]


@fixed(frozen=True, slots=True)
class Remembered(Fixed):
    """One boot as the history keeps it: what it taught, and what it was."""

    uid: str  # the same boot, read twice, has the same
    past: PastBoot
    engine: str = ""
    version: str = ""
    model: str = ""
    log: str = ""
    facts: Mapping[str, Value] = field(default_factory=_empty)  # redacted
    number: int | None = None  # of the history
    stored_s: float | None = None  # our clock


@fixed(frozen=True, slots=True)
class Priors(Fixed):
    """Earlier boots that are like this one, the newest first. An input: the core asks no database."""

    boots: tuple[PastBoot, ...] = ()


Input: TypeAlias = Chunk | Gap | Tick | EvidenceSample | ProbeResult | Closed | Priors


@fixed(frozen=True, slots=True)
class Channel(Fixed):
    """One kind of outside evidence: what moved, and when it last did."""

    id: str  # memory, storage, gpu_memory, compilers, caches, downloads, cpu, gpu_power
    title: str
    strong: bool  # movement alone proves work
    moved_ago_s: float | None  # None: not since it is watched
    watched_s: float
    now: str = ""  # its value in words

    @property
    def flat_s(self) -> float:
        """For how long it has not moved, as far as was seen."""
        return self.watched_s if self.moved_ago_s is None else self.moved_ago_s


@fixed(frozen=True, slots=True)
class Evidence(Fixed):
    """All that was seen outside the log up to one moment, as windows and ages. Our clock."""

    now_s: float
    age_s: float  # of the newest sample
    watched_s: float  # since the first sample
    channels: tuple[Channel, ...] = ()
    processes: tuple[ProcessSample, ...] = ()  # alive in the newest sample
    root_pid: int | None = None
    root_gone_s: float | None = None  # for how long the main process is gone; None: alive or never seen
    root_zombie: bool = False  # it is gone, and its parent does not notice
    exit_code: int | None = None
    lost: tuple[Sign, ...] = ()  # ranks' processes that went while others live
    stopped: tuple[tuple[ProcessSample, float], ...] = ()  # state T, and for how long
    blocked: tuple[tuple[ProcessSample, float], ...] = ()  # state D without a byte read, and for how long
    missing: tuple[str, ...] = ()
    found: str = ""
    orphan_log: bool = False  # nobody has the log open
    port_open_s: float | None = None  # since when a process of the tree listens on the server's port
    port_owner: str = ""


# --- what is known ----------------------------------------------------------------------------------


@fixed(frozen=True, slots=True)
class Range(Fixed):
    """A P10–P90 range of seconds with its middle."""

    low_s: float
    mid_s: float
    high_s: float
    runs: int = 0  # like boots behind it; 0: shipped figures alone
    source: str = ""  # "public starts of models under 16B"; empty where boots of this family told it


@fixed(frozen=True, slots=True)
class Progress(Fixed):
    """k of N."""

    done: float
    total: float | None
    unit: str
    rate_per_s: float | None = None


@fixed(frozen=True, slots=True)
class BarRow(Fixed):
    """One bar of a phase: captures and compiles come one after the other inside one phase."""

    title: str
    done: float
    total: float | None
    unit: str
    began_s: float | None
    last_s: float | None
    elapsed_s: float | None
    rate_per_s: float | None
    rank: str = ""
    curve: tuple[tuple[float, float], ...] = ()  # (elapsed_s, done), thinned


@fixed(frozen=True, slots=True)
class RankSpan(Fixed):
    """One phase on one rank."""

    rank: str
    status: Status
    began_s: float | None
    ended_s: float | None
    begin_line: int | None
    end_line: int | None
    basis: Basis


@fixed(frozen=True, slots=True)
class PhaseRow(Fixed):
    """One phase over all its ranks."""

    phase: str
    title: str
    occurrence: int
    status: Status
    began_s: float | None = None
    ended_s: float | None = None
    elapsed_s: float | None = None
    begin_line: int | None = None
    end_line: int | None = None
    begin_offset: int | None = None
    end_offset: int | None = None
    basis: Basis = Basis.LOGGED
    progress: Progress | None = None
    ranks_done: int = 0
    ranks_seen: int = 0
    slowest_rank: str | None = None
    skew_s: float | None = None
    longest_silence_s: float | None = None
    silence_from_s: float | None = None  # when the longest silence began
    silence_end_offset: int | None = None  # of the output that ended it
    expected: Range | None = None
    # "cold" or "warm": page cache of a load, compiled kernels of a capture; "~cold", "~warm" where only its pace tells
    cache: str | None = None
    note: str = ""  # "finishing (repack, slowest rank)"
    bars: tuple[BarRow, ...] = ()
    ranks: tuple[RankSpan, ...] = ()


@fixed(frozen=True, slots=True)
class Activity(Fixed):
    """Work inside a phase that never replaces it: JIT, autotune, compile, hold."""

    id: str
    title: str
    phase: str | None
    began_s: float | None
    ended_s: float | None
    line: int | None
    bar: Progress | None = None


@fixed(frozen=True, slots=True)
class Sign(Fixed):
    """One piece of evidence in words, and since when: how long ago it was seen, or for how long it has been so."""

    text: str
    age_s: float | None = None


@fixed(frozen=True, slots=True)
class Verdict(Fixed):
    """Is it stuck? With the evidence for it, against it, and what could not be seen."""

    state: VerdictState
    because: str
    signs_for: tuple[Sign, ...] = ()
    signs_against: tuple[Sign, ...] = ()
    missing: tuple[str, ...] = ()
    since_s: float | None = None  # our clock
    deadline_s: float | None = None  # our clock: the engine gives up then if nothing changes
    deadline_why: str = ""
    next_step: str = ""  # a command or an act, where one helps
    deadline_at_s: float | None = None  # the same moment on the log's clock


@fixed(frozen=True, slots=True)
class Eta(Fixed):
    """How long still, as a range with its source."""

    low_s: float | None
    mid_s: float | None
    high_s: float | None
    basis: str  # none, prior, learned, live, overdue
    runs: int
    source: str = ""  # "9 like boots"
    why: str = ""  # why the estimate moved, or why there is none
    done_fraction: float | None = None  # of the whole boot, by time
    finish_s: float | None = None  # when the middle falls due, log clock; moves later only with a ``why``
    phase_left: Range | None = None  # of the running phase alone


@fixed(frozen=True, slots=True)
class Failure(Fixed):
    """Bad news, with its cause where it is known."""

    id: str
    fatal: bool
    phase: str | None
    rank: str | None
    place: Place
    at_s: float | None
    message: str  # the last line of its record
    cause: str = ""
    remedy: str = ""
    lines: tuple[str, ...] = ()  # first lines of the record, redacted
    ranks: tuple[str, ...] = ()  # ranks that repeated it
    echoes: tuple[str, ...] = ()  # consequences folded under it, in words
    after_ready: bool = False
    inferred: bool = False  # no line says so: told from what stopped
    secondary: bool = False  # usually a consequence: the cause stands in another rank's or node's log
    repeats: int = 1  # records that say the same, this one too
    mixed: bool = False  # lines of several ranks lay mixed: that this rank said it is a guess
    clue: str = ""  # a line beside the record that explains it: a compiler's error, a time-out of a peer


@fixed(frozen=True, slots=True)
class Warned(Fixed):
    """Something to know that is no failure; repeated ones are counted."""

    id: str
    message: str
    line: int | None
    count: int = 1
    asked: Value = None
    got: Value = None


@fixed(frozen=True, slots=True)
class BootSummary(Fixed):
    """What is kept of a boot once another has begun."""

    boot: int
    line: int | None
    offset: int
    outcome: Outcome
    started_at_s: float | None = None
    ready_at_s: float | None = None
    startup_s: float | None = None
    server: str = ""
    failure_id: str | None = None
    end_offset: int | None = None


@fixed(frozen=True, slots=True)
class Source(Fixed):
    """What was read."""

    path: str
    bytes: int
    lines: int | None
    frames: int
    unmatched_lines: int
    scanned_from: int = 0  # bytes; above 0 the beginning was skipped
    skipped_bytes: int = 0


@fixed(frozen=True, slots=True)
class Zone(Fixed):
    """How to print points in time of this log: with or without a date, with a printed UTC offset or none."""

    dated: bool = True
    offset_s: int | None = None


@fixed(frozen=True, slots=True)
class Engine(Fixed):
    """Who wrote the log."""

    name: str
    title: str
    version: str | None  # printed by the engine; never guessed
    version_low: str | None  # inferred from wordings: no older, no newer
    version_high: str | None
    pack: str


@fixed(frozen=True, slots=True)
class Rung(Fixed):
    """One rung of the readiness ladder: process, port, health, token, warm."""

    id: str
    title: str
    at_s: float | None  # our clock
    ok: bool | None  # None: not known yet
    detail: str = ""


@fixed(frozen=True, slots=True)
class TimingCheck(Fixed):
    """A figure that the engine itself printed beside the one derived from the log."""

    name: str
    engine_s: float
    derived_s: float | None


@fixed(frozen=True, slots=True)
class Snapshot(Fixed):
    """All that is known at one moment. Every view is a function of this."""

    now_s: float | None  # log clock; the newest time known
    outcome: Outcome
    verdict: Verdict
    zone: Zone = Zone()
    engine: Engine | None = None
    sources: tuple[Source, ...] = ()
    boots: tuple[BootSummary, ...] = ()
    boot: int = 0
    phase: str | None = None
    activity: Activity | None = None
    progress: Progress | None = None
    silent_s: float | None = None
    phases: tuple[PhaseRow, ...] = ()
    between_phases_s: float | None = None
    started_at_s: float | None = None
    ready_at_s: float | None = None
    ready_line: int | None = None
    ready_offset: int | None = None
    startup_s: float | None = None
    eta: Eta | None = None
    next_check_s: float | None = None
    failure: Failure | None = None
    warnings: tuple[Warned, ...] = ()
    facts: Mapping[str, Value] = field(default_factory=_empty)
    activities: tuple[Activity, ...] = ()
    rungs: tuple[Rung, ...] = ()
    timings: tuple[TimingCheck, ...] = ()
    drift: str | None = None
    unopened: str | None = None  # why it is not known when the start began; None where it is
    ended: bool = False
    evidence: EvidenceSample | None = None
    channels: tuple[Channel, ...] = ()  # what moved outside the log, with ages
