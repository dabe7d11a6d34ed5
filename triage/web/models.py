"""The bodies of the API, as they are documented."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from triage.roots import MOST_PATH, MOST_PATHS
from triage.web.jobs import Job, Scheduler

Path = Annotated[str, StringConstraints(min_length=1, max_length=MOST_PATH)]
Words = Annotated[str, StringConstraints(max_length=4000)]


class Problem(BaseModel):
    """error: what is wrong; hint: what to do."""

    error: str
    hint: str | None = None


class Paths(BaseModel):
    """Logs of one job that lie where the server can read them."""

    model_config = ConfigDict(extra="forbid")
    paths: Annotated[list[Path], Field(min_length=1, max_length=MOST_PATHS)]


class SlurmJob(BaseModel):
    """job: as Slurm names it: 123, 123_4 or 123_[1-4] of an array, 123+1."""

    model_config = ConfigDict(extra="forbid")
    job: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class KubernetesJob(BaseModel):
    """name: NAMESPACE/NAME, or NAMESPACE/KIND/NAME of a job; pod: it is one pod, not all of a job."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, StringConstraints(min_length=1, max_length=400)]
    pod: bool = False


class JobOut(BaseModel):
    """A diagnosis that waits, runs or is done. ahead: jobs before it; incident: once it is done.

    scheduler, asked: who was asked for what, "" where logs were given.
    """

    id: str
    scheduler: Scheduler
    asked: str
    state: Literal["queued", "running", "done", "failed"]
    said: str
    ahead: int
    paths: list[str]
    created: float
    ended: float | None
    incident: int | None
    outcome: str
    failure_type: str
    status: str

    @classmethod
    def of(cls, job: Job, ahead: int) -> JobOut:
        fields = {name: getattr(job, name) for name in cls.model_fields if name not in ("ahead", "paths")}
        return cls(**fields, ahead=ahead, paths=list(job.paths))


class OutcomeIn(BaseModel):
    """How an incident turned out."""

    model_config = ConfigDict(extra="forbid")
    verdict: Literal["confirmed", "corrected", "rejected"]
    cause: Words = ""
    fix: Words = ""
    worked: Literal["yes", "no", "unknown"] = "unknown"
    note: Words = ""
    failure_type: Annotated[str, StringConstraints(max_length=100)] = ""
    root_cause_class: Annotated[str, StringConstraints(max_length=100)] = ""


class OutcomeOut(BaseModel):
    """said: what was recorded, in words."""

    incident: int
    said: list[str]


class Question(BaseModel):
    model_config = ConfigDict(extra="forbid")
    said: Annotated[str, StringConstraints(min_length=1, max_length=20_000)]


class Turn(BaseModel):
    """A question and its answer, as they are kept."""

    asked: str
    answer: str
    state: str
    produced_by: str
    citations: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    notes: list[str]


class LineOut(BaseModel):
    line: int
    text: str


class LinesOut(BaseModel):
    """Lines of a file as they lie on disk, secrets replaced."""

    file: str
    lines: list[LineOut]


class Health(BaseModel):
    status: Literal["ok"]
    version: str
    waiting: int
