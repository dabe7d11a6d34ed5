"""What a diagnosis is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from triage.domain.agent import AgentRun
from triage.domain.compared import Compared
from triage.domain.filing import InputFile, ModelCall
from triage.domain.labels import Outcome, Risk, Role, Stage, Status
from triage.domain.lines import LogLine, Run
from triage.domain.rules import PromptUsed
from triage.domain.stacks import Stacks


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
    pids: tuple[int, ...] = ()  # of a hang


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
    """A past incident like this one; score in 0..1 orders them and is no probability.

    Of a recorded one: fix, worked (yes|no|unknown) and told_at of its verdict; times: how often this failure was recorded;
    same_fingerprint: it is the failure at hand.
    """

    incident: str
    title: str
    score: float
    why: str
    outcome: str = "none"
    remediation: tuple[str, ...] = ()
    fix: str = ""
    worked: str = ""
    told_at: datetime | None = None
    times: int = 1
    same_fingerprint: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    stage: Stage = "unknown"
    last_step: int | None = None
    last_checkpoint: str | None = None
    lost_time: str | None = None
    last_step_line: tuple[str, int] | None = None
    last_checkpoint_line: tuple[str, int] | None = None
    last_checkpoint_step: int | None = None
    world_size: int | None = None
    silence: str | None = None  # of a hang: how long no step came, in words
    lost_gpu_hours: float | None = None  # world size x time since the last checkpoint, or x silence of a hang
    restart_cost: str | None = None  # from the start of the run to its first step, in words


@dataclass(frozen=True, slots=True)
class ClockNote:
    """Files whose clocks differ from the main one alike. ahead: seconds, of which zone are the time zone's."""

    files: tuple[str, ...]
    said: str
    ahead: float
    zone: float = 0.0


@dataclass(frozen=True, slots=True)
class Moment:
    """One event of the timeline, on the clock of the job's main log. source: scheduler|kernel|fabric|job|..."""

    time: datetime
    what: str
    source: str
    file: str = ""
    line: int = 0
    node: str | None = None
    evidence: str = ""  # id


@dataclass(frozen=True, slots=True)
class Timeline:
    moments: tuple[Moment, ...] = ()  # in order of time
    clocks: tuple[ClockNote, ...] = ()
    joins: tuple[
        str, ...
    ] = ()  # what a node's own log and its failure in the job's have to do with each other, in words


@dataclass(frozen=True, slots=True)
class PastFailure:
    """An earlier attempt that failed with the same fingerprint, as far as it is compared. at: when it was recorded."""

    incident: int
    at: datetime
    nodes: tuple[str, ...] = ()
    last_step: int | None = None
    world_size: int | None = None
    first_line: str = ""  # text of the first cited line
    bytes_in: int = 0
    verdict: str = "none"
    job: str = ""  # the scheduler's id
    job_name: str = ""
    job_user: str = ""
    same_log: bool | None = None  # byte for byte that of the diagnosis at hand; None: not known
    cited: tuple[str, ...] = ()  # texts of all cited lines
    failed_at: datetime | None = None  # time of the first cited line
    places: frozenset[str] = frozenset()  # where its files lay


@dataclass(frozen=True, slots=True)
class Seen:
    """A failure by its fingerprint. first, last: when it was recorded; same_job, other_jobs: attempts of this job and of all others."""

    first: datetime
    last: datetime
    same_job: int
    other_jobs: int


@dataclass(frozen=True, slots=True)
class History:
    """What the database knows. same: earlier attempts that failed the same way, newest first, of one incident maybe several;
    of_nodes: the incident of each attempt in which a suspect node was one before; seen: how often and when.
    """

    same: tuple[PastFailure, ...] = ()
    of_nodes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    seen: Seen | None = None


@dataclass(frozen=True, slots=True)
class Recurrence:
    """kind: same-step (deterministic), moving (another step or node), again (nothing to compare by); "" the first time."""

    kind: str = ""
    said: str = ""
    incidents: tuple[int, ...] = ()
    seen: Seen | None = None  # before this time


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
    novel: int = 0  # of a followed log: lines kept that are text of no repeating kind


@dataclass(frozen=True, slots=True)
class Folded:
    """The compressed log: the lines to show, in order of file and number, and an account of all others.

    Of the last run of every file and the lines shown of earlier ones: lines shown + account.folded + account.cut + the sum of account.dropped = its lines.
    """

    lines: tuple[LogLine, ...]
    account: Compression
    cut: tuple[str, ...] = ()  # what the token budget and the scan left out, in words
    files: tuple[tuple[str, int], ...] = ()  # name, number of the last line that has text
    missing: tuple[str, ...] = ()  # what could not be read, in words


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
    produced_by: str = "rules"  # or llm:MODEL
    prompts: tuple[PromptUsed, ...] = ()
    missing: tuple[str, ...] = ()
    timing: Mapping[str, float] = field(default_factory=dict)  # seconds per stage
    usage: Mapping[str, float] = field(
        default_factory=dict
    )  # llm calls, tokens_in, tokens_out; cost where prices are known
    agent: AgentRun | None = None  # what a model did, where one was asked
    files: tuple[str, ...] = ()
    incident: int | None = None
    fingerprint: str = ""  # of the failure, ranks, nodes and numbers removed
    job: str = ""  # the scheduler's id of the job, where a line or a file name says it
    job_name: str = ""  # where a line says it, as the next
    job_user: str = ""  # the account that it ran under
    account: tuple[
        str, ...
    ] = ()  # of a job that was asked for by its id: it in one line, then what is to be said of it
    timeline: Timeline = Timeline()
    recurrence: Recurrence = Recurrence()
    nodes: tuple[str, ...] = ()  # that its lines come from
    job_nodes: str = ""  # as its scheduler lists them, where it was asked: gpu[001-004]
    inputs: tuple[InputFile, ...] = ()  # as they lay on disk
    learned: tuple[str, ...] = ()  # ids of the learned filter rules in force
    calls: tuple[ModelCall, ...] = ()
    attempt: int = 1  # of the incident
    compared: Compared | None = None  # with a good run of the same kind of job, where there was one
    stacks: Stacks | None = None  # of its processes, where some were taken
