"""The values that stages hand to each other. Frozen, no I/O, no ids of storage.

Line numbers are 1-based and count `\\n` only, in the file as the user has it (decompressed).
Times are timezone-aware; a stamp that names no zone is taken as UTC, and kernel stamps since boot have no time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Outcome = Literal["failed", "hung", "interrupted", "healthy", "unknown"]
Role = Literal["root", "cascade", "context", "benign"]
Status = Literal["established", "supported", "hypothesis", "unknown"]
Stage = Literal["launch", "init", "train", "eval", "checkpoint", "teardown", "unknown"]
Risk = Literal["read-only", "reversible", "destructive"]
FileKind = Literal[
    "job", "slurm", "kernel", "sacct", "kubernetes", "fabric", "stacks", "flight-recorder", "binary", "empty"
]


# ------------------------------------------------------------------------------------------------ lines
@dataclass(frozen=True, slots=True)
class RawLine:
    """A line as the scan kept it: bytes without the newline; a line of megabytes is cut in its middle."""

    number: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Template:
    """All lines of one run that differ only in digits and hex letters.

    first, last: the occurrences kept word for word, in order, disjoint; count: all occurrences.
    rule: id of the filter rule that takes these lines as routine, or None.
    hot: a signature may match lines of this template, so nothing of it may be left out of evidence.
    ranks: the ranks whose prefix these lines carried.
    """

    id: int
    count: int
    first: tuple[RawLine, ...]
    last: tuple[RawLine, ...]
    rule: str | None
    hot: bool
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ScannedRun:
    """One run (attempt, appended job) inside a file, as the scan saw it."""

    first_line: int
    last_line: int
    templates: tuple[Template, ...]
    edges: tuple[RawLine, ...]  # head and tail of the run word for word, whatever rule takes them
    bytes_in: int
    started_by: str = ""  # the text that opened it, "" for the first run of a file


@dataclass(frozen=True, slots=True)
class ScannedFile:
    name: str
    bytes_in: int
    lines_in: int
    runs: tuple[ScannedRun, ...]
    problems: tuple[str, ...] = ()  # e.g. "compressed stream ends early after line 120"


@dataclass(frozen=True, slots=True)
class LogLine:
    """One kept line, decoded, colour codes and control characters gone, secrets replaced, progress bars at their last state.

    repeats: how many lines of the same template this one stands for (1: itself alone); ranks: whose.
    rule: the filter rule that takes it as routine (evidence may still use it, the compressed log leaves it out).
    """

    file: str
    number: int
    text: str
    time: datetime | None = None
    rank: int | None = None
    local_rank: int | None = None
    node: str | None = None
    gpu: str | None = None
    level: str | None = None  # debug|info|warning|error|fatal
    program: str | None = None  # python|slurm|kernel|nccl|torch|...
    template: int = -1
    repeats: int = 1
    ranks: tuple[int, ...] = ()
    rule: str | None = None
    hot: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a file that holds several; outcome as far as its end tells."""

    file: str
    first_line: int
    last_line: int
    outcome: Outcome
    ended_by: str = ""  # the line that says so
    ended_line: int | None = None


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a job: the kept lines of its last run, in order of line number."""

    name: str
    kind: FileKind
    lines: tuple[LogLine, ...]
    bytes_in: int
    lines_in: int
    first_line: int = 1
    last_line: int = 0
    rank: int | None = None
    node: str | None = None
    runs: tuple[Run, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)  # rule id -> lines, last run only
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobLog:
    """Everything that is known of one job; missing: what could not be read, in words."""

    files: tuple[LogFile, ...]
    missing: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------------------ knowledge
@dataclass(frozen=True, slots=True)
class Signature:
    """A rule that knows one kind of line. Read from kb/signatures/*.yaml, which holds its proof as well."""

    id: str
    title: str
    patterns: tuple[str, ...]
    failure_type: str
    root_cause_class: str
    role: Role
    remedy: str
    component: str = ""
    weight: int = 50  # 0..100: how specific the cause is; decides between two roots that time cannot order
    outcome: Outcome = "failed"
    unless: tuple[str, ...] = ()  # a line that matches one of these is not matched
    kinds: tuple[str, ...] = ()  # file kinds it may fire in; empty: any
    references: tuple[str, ...] = ()
    status: str = "active"
    node_fault: bool = False  # True: the machine named in the line is at fault, not the application
    check: str = ""  # a command or a thing to fetch that confirms or refutes it
    action: str = ""  # an id of taxonomy.yaml, where it is not that of the failure type
    examples: tuple[str, ...] = ()
    counter_examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FilterRule:
    """A rule that takes routine lines. Read from kb/filters/*.yaml."""

    id: str
    title: str
    pattern: str
    examples: tuple[str, ...] = ()
    counter_examples: tuple[str, ...] = ()
    drops_warnings: bool = False  # may take a line with a warning level (FutureWarning and the like)


@dataclass(frozen=True, slots=True)
class Cascade:
    """Read from kb/cascades.yaml: findings of the types or signatures in `cause` explain those in `effect`."""

    id: str
    cause: tuple[str, ...]
    effect: tuple[str, ...]
    order: str  # before: the cause comes first; any: it is reported late by its nature
    why: str
    same_event: bool = False  # cause and effect are lines of one event, so both are the root


@dataclass(frozen=True, slots=True)
class Advice:
    """Read from kb/advice.yaml: what to do for a failure type, how to confirm it, what to fetch when unsure."""

    id: str
    action: str
    confirm: str = ""
    fetch: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    url: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class KnownIncident:
    """A past incident of kb/incidents/ or one imported: facts in our own words."""

    id: str
    org: str
    date: str  # ISO date, or a year and month
    title: str
    failure_type: str
    root_cause_class: str
    components: tuple[str, ...]
    symptoms: str
    error_strings: tuple[str, ...]
    root_cause: str
    remediation: tuple[str, ...]
    lessons: str = ""
    facts: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    outcome: str = "confirmed"  # confirmed|corrected|rejected|none


# ------------------------------------------------------------------------------------------------ diagnosis
@dataclass(frozen=True, slots=True)
class Evidence:
    """One cited line. text is the line itself, at most 500 characters, around what matched."""

    id: str
    file: str
    line: int
    text: str
    role: Role
    failure_type: str
    title: str = ""  # what the line means, in words
    signature: str = ""
    rank: int | None = None
    node: str | None = None
    gpu: str | None = None
    time: datetime | None = None
    repeats: int = 1
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Hypothesis:
    failure_type: str
    root_cause_class: str
    root_cause: str
    status: Status
    supporting: tuple[str, ...] = ()  # evidence ids; `for` in the JSON
    against: tuple[str, ...] = ()
    check: str = ""


@dataclass(frozen=True, slots=True)
class Suspects:
    nodes: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remedy:
    step: str
    why: str
    risk: Risk
    command: str = ""
    evidence: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Similar:
    """A past incident like this one; score in 0..1 orders them and is no probability."""

    incident: str
    title: str
    score: float
    why: str
    outcome: str = "none"
    remediation: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    stage: Stage = "unknown"
    last_step: int | None = None
    last_checkpoint: str | None = None
    lost_time: str | None = None
    last_step_line: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Compression:
    bytes_in: int = 0
    lines_in: int = 0
    lines_kept: int = 0
    bytes_kept: int = 0
    tokens_kept: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    folded: int = 0
    cut: int = 0  # lines left out by the token budget


@dataclass(frozen=True, slots=True)
class Folded:
    """The compressed log: the lines to show, in order of file and number, and an account of all others.

    Of every file's last run: lines shown + account.folded + account.cut + the sum of account.dropped = its lines.
    """

    lines: tuple[LogLine, ...]
    account: Compression
    cut: tuple[str, ...] = ()  # what the token budget and the scan left out, in words


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result; its JSON form is `triage.diagnosis/1`."""

    outcome: Outcome
    failure_type: str
    category: str
    root_cause_class: str
    status: Status
    root_cause: str
    action: str
    evidence: tuple[Evidence, ...] = ()
    chain: tuple[str, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    suspects: Suspects = Suspects()
    remediation: tuple[Remedy, ...] = ()
    similar: tuple[Similar, ...] = ()
    runs: tuple[Run, ...] = ()
    progress: Progress = Progress()
    compression: Compression = Compression()
    produced_by: str = "rules"
    missing: tuple[str, ...] = ()
    timing: Mapping[str, float] = field(default_factory=dict)  # seconds per stage
    usage: Mapping[str, int] = field(default_factory=dict)  # llm calls, tokens_in, tokens_out
    files: tuple[str, ...] = ()
    incident: int | None = None
    fingerprint: str = ""  # of the failure, ranks, nodes and numbers removed
    job: str = ""  # the scheduler's id of the job, where a line or a file name says it
