"""What kb/ holds: signatures, filter rules, cascades, runbooks, past incidents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triage.domain.labels import Outcome, Risk, Role


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
    fingerprint: str = ""  # of a learned one: of the incident that taught it, whose likes were recorded without it


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
    order: (
        str  # before: the cause comes no later; first: it strictly comes first; any: it is reported late by its nature
    )
    why: str
    same_event: bool = False  # cause and effect are lines of one event, so both are the root


# What a command or text of a runbook may leave open, and the words for it where the job's log does not name it.
PLACEHOLDERS: Mapping[str, str] = {
    "job": "the job",
    "type": "the failure",
    "node": "the node",
    "nodes": "the suspect node",
    "rank": "the rank",
    "gpu": "the GPU",
    "pid": "the process",
    "file": "the log",
    "path": "the path",
    "peer": "the peer",
    "port": "the port",
    "hca": "the network card",
    "module": "the module",
    "step": "the last step",
    "checkpoint": "the last complete checkpoint",
    "pod": "the pod",
    "namespace": "the namespace",
    "exclude": "the option that leaves the suspect node out",
    "close": "the command that keeps jobs off the suspect node",
    "each": "each node of the job",
    "time": "the time of failure",
}


# What a log may show of a job and its failure beside its cause; steps of runbooks ask for it.
SHOWN = (
    "foreign-memory",  # another process holds memory of the GPU
    "fragmentation",  # GPU memory is in pieces rather than full
    "quota",
    "pull-limit",  # the registry refuses because too many images were pulled
    "local-disk",  # the path is on a disk of the node itself
    "shared-disk",  # the path is on no such disk, as far as its name tells
    "lustre",  # the path is
    "infiniband",
    "roce",
    "nccl",
    "steps",  # training steps were made
    "checkpoint",  # one was saved or loaded
    "no-checkpoint",
    "stacks",  # of all ranks are here
    "no-stacks",
)


@dataclass(frozen=True, slots=True)
class When:
    """A step applies where each of these that is not empty holds."""

    scheduler: tuple[str, ...] = ()  # slurm, kubernetes, pbs, lsf, sge, flux, other; none: no line tells of any
    component: tuple[str, ...] = ()  # of the signature that found the cause
    signature: tuple[str, ...] = ()
    cause: tuple[str, ...] = ()  # root cause classes
    action: tuple[str, ...] = ()
    spread: tuple[str, ...] = ()  # one-node: of several; many-nodes
    seen: tuple[str, ...] = ()  # one of these stands in a line of the log, or in a stack beside it
    recurrence: tuple[str, ...] = ()  # first; again: an earlier run in this log ended in the same way
    shows: tuple[str, ...] = ()  # one of SHOWN


@dataclass(frozen=True, slots=True)
class RunbookStep:
    step: str
    why: str
    risk: Risk
    command: str = ""  # with {placeholders}; what is unknown of them keeps it from being a command
    when: When = When()


@dataclass(frozen=True, slots=True)
class Way:
    """A command that only reads, and when it is the one to use."""

    command: str  # with {placeholders}
    when: When = When()


@dataclass(frozen=True, slots=True)
class Fetch:
    """What would settle a cause where the log does not. ways: how it is had; the first that applies and whose names are all known counts."""

    text: str
    ways: tuple[Way, ...] = ()
    when: When = When()


@dataclass(frozen=True, slots=True)
class Runbook:
    """What to do for one failure type. Read from kb/runbooks/TYPE.yaml; a text may hold {placeholders} as a command may."""

    id: str  # the failure type
    title: str
    action: str
    confirm: tuple[RunbookStep, ...] = ()
    act: tuple[RunbookStep, ...] = ()
    verify: tuple[RunbookStep, ...] = ()
    escalate: tuple[RunbookStep, ...] = ()
    fetch: tuple[Fetch, ...] = ()
    references: tuple[str, ...] = ()

    @property
    def failure_type(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class Runbooks:
    """of: by failure type, every one of the taxonomy; doing: how each action is done, read from kb/actions.yaml."""

    of: Mapping[str, Runbook]
    doing: Mapping[str, tuple[RunbookStep, ...]]


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
