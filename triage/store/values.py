"""What the store takes and returns. No SQLAlchemy here, so a face may import it for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from triage.domain import InputFile, LearnedRule, LearnedSignature, Seen

VerdictKind = Literal["confirmed", "corrected", "rejected"]
Worked = Literal["yes", "no", "unknown"]
SignatureVerdict = Literal["confirmed", "contradicted"]


@dataclass(frozen=True, slots=True)
class JobRef:
    """The job an incident belongs to, as far as it is known. Requeues of one job share a row.

    external_id: the scheduler's id ("4711", a pod name); fingerprint: of what is run, so that the next
    submission of the same thing is recognised; nodes: those it ran on; gpu_hours: what this run lost; owner: whose it is;
    recorded_by: who has it diagnosed.
    """

    external_id: str = ""
    name: str = ""
    scheduler: str = ""
    fingerprint: str = ""
    nodes: tuple[str, ...] = ()
    gpu_hours: float | None = None
    owner: str = ""
    recorded_by: str = ""

    @property
    def label(self) -> str:
        return self.external_id or self.name


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person, or the job's next run, said about an incident's diagnosis.

    failure_type, root_cause_class: what it truly was; "" is filled by the store as far as the verdict tells it.
    """

    verdict: VerdictKind
    who: str
    via: str = "cli"  # cli|chat|web|mcp|...: where it was said
    cause: str = ""
    fix: str = ""
    worked: Worked = "unknown"
    note: str = ""
    at: datetime | None = None  # when it was recorded; the store sets it
    failure_type: str = ""
    root_cause_class: str = ""
    version: int = 0  # of the diagnosis it is said of: the one that was seen; 0: the latest, which the store finds


Sort = Literal["created", "last-seen", "attempts", "gpu-hours", "type"]


@dataclass(frozen=True, slots=True)
class Filters:
    """None takes all. since, until: aware, of the time of recording, until not included; owner: of the job; job: id or name;
    verdict: the latest, "none" where there is none; text: anywhere in title, cause or cited lines, whatever its case.
    """

    outcome: str | None = None
    failure_type: str | None = None
    node: str | None = None
    owner: str | None = None
    job: str | None = None
    verdict: str | None = None
    status: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class IncidentSummary:
    """One line of a list. created_at is aware, in UTC; verdict: the latest one, or "none".

    failure_type, root_cause_class: what triage said; true_type, true_class: what the latest verdict says, "" where it does not.
    """

    id: int
    created_at: datetime
    title: str
    outcome: str
    failure_type: str
    category: str
    root_cause_class: str
    status: str
    action: str
    fingerprint: str = ""
    nodes: tuple[str, ...] = ()  # suspects first, then the others it ran on
    job: str = ""
    gpu_hours: float | None = None
    verdict: str = "none"
    true_type: str = ""
    true_class: str = ""
    owner: str = ""
    attempts: int = 1
    last_seen: datetime | None = None  # when its last attempt was recorded


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """external_id: of the job, with the task of its array; files: those that were read."""

    number: int
    recorded_at: datetime
    external_id: str = ""
    task: str = ""
    last_step: int | None = None
    gpu_hours: float | None = None
    files: tuple[InputFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Version:
    """A reading of the incident, in brief."""

    version: int
    attempt: int
    at: datetime
    produced_by: str
    tool_version: str
    failure_type: str
    root_cause_class: str
    status: str
    recorded_by: str = ""


@dataclass(frozen=True, slots=True)
class Feedback:
    """A thumb. about: similar, step or hypothesis; ref: its place in the result, from 1."""

    about: Literal["similar", "step", "hypothesis"]
    ref: int
    thumb: Literal["up", "down"]
    who: str
    via: str = "cli"
    note: str = ""
    at: datetime | None = None  # the store sets it
    version: int = 1  # of the diagnosis that showed it; the store sets it


@dataclass(frozen=True, slots=True)
class StoredIncident:
    """An incident with its latest diagnosis, or the one asked for; result: its `triage.diagnosis/1` object."""

    summary: IncidentSummary
    result: Mapping[str, Any]
    version: int = 1
    diagnosed_at: datetime | None = None
    tool_version: str = ""
    settings: Mapping[str, str] | None = None
    job: JobRef | None = None
    verdicts: tuple[Verdict, ...] = ()  # oldest first
    attempts: tuple[StoredAttempt, ...] = ()
    versions: tuple[Version, ...] = ()
    feedback: tuple[Feedback, ...] = ()
    seen: Seen | None = None  # the same failure, this incident included; None without a fingerprint
    kb_version: str = ""

    @property
    def id(self) -> int:
        return self.summary.id


@dataclass(frozen=True, slots=True)
class RuleEvent:
    """A rule went from one state to another. before: "" for its first; change: number of what was done at once."""

    change: int
    at: datetime
    who: str
    what: str  # learn|approve|retire|incident|rollback|...
    before: str
    after: str
    reason: str


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What a rollback did. moved: rules and learned signatures as they are now; held: ids of those that an incident retired."""

    moved: tuple[LearnedRule | LearnedSignature, ...]
    held: tuple[str, ...] = ()
