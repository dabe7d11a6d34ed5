"""A job as Slurm knows it. Sizes in bytes, spans in seconds; what Slurm does not say is None or ""."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

# States in which nothing of the job runs any more, and whether the job is the worse for it.
ENDED_BADLY: Final = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "RECONFIG_FAIL",
        "REQUEUED",
        "REQUEUE_FED",
        "REQUEUE_HOLD",
        "REVOKED",
        "SPECIAL_EXIT",
        "TIMEOUT",
    }
)
WAITING: Final = frozenset({"PENDING", "CONFIGURING", "POWER_UP_NODE", "RESV_DEL_HOLD"})


@dataclass(frozen=True, slots=True)
class SlurmStep:
    """One step of a job. id: as Slurm writes it, such as 123.0 or 123_4.batch; max_rss: of its largest task."""

    id: str
    name: str = ""
    state: str = ""
    exit_code: int | None = None
    signal: int | None = None
    nodes: tuple[str, ...] = ()
    start: datetime | None = None
    end: datetime | None = None
    max_rss: int | None = None
    max_rss_node: str = ""
    submitted: str = ""  # the command line


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """One job, one task of an array or one component of a heterogeneous job, in its latest attempt.

    id: as people write it (123, 123_4, 123+1); raw_id: the number that Slurm counts it by, %j in file names.
    state: one word, of the attempt that is looked at; cancelled_by: user id or name; nodes: expanded.
    earlier: attempts before a requeue, oldest first, as far as the accounting has them.
    """

    id: str
    raw_id: str = ""
    state: str = ""
    cancelled_by: str = ""
    reason: str = ""
    exit_code: int | None = None
    signal: int | None = None
    derived_exit_code: int | None = None
    derived_signal: int | None = None
    name: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    cluster: str = ""
    nodes: tuple[str, ...] = ()
    node_list: str = ""  # as Slurm writes it
    failed_node: str = ""
    submit: datetime | None = None
    start: datetime | None = None
    end: datetime | None = None
    elapsed: int | None = None
    time_limit: int | None = None
    restarts: int = 0
    tres: str = ""  # what it was given: cpu=8,mem=64G,node=2,gres/gpu=8
    req_mem: str = ""
    gpus: int = 0
    max_rss: int | None = None  # of the largest task of all steps
    max_rss_node: str = ""
    work_dir: str = ""
    stdout: str = ""  # patterns or paths, as Slurm has them
    stderr: str = ""
    command: str = ""  # the batch script and its arguments, or the command line of the submission
    comment: str = ""  # of the system and of administrators
    array_job: str = ""
    array_task: str = ""  # the index; of tasks that wait together, their list
    het_job: str = ""
    het_offset: int | None = None
    steps: tuple[SlurmStep, ...] = ()
    earlier: tuple[SlurmJob, ...] = ()

    @property
    def waits(self) -> bool:
        return self.state in WAITING

    @property
    def ended(self) -> bool:
        return self.state == "COMPLETED" or self.state in ENDED_BADLY

    @property
    def ended_badly(self) -> bool:
        """COMPLETED with a step that failed is no bad end: the script went on by its own will."""
        return self.state in ENDED_BADLY

    @property
    def gpu_hours(self) -> float | None:
        """What it used, by the accounting; None where it had no GPU or did not run."""
        return self.gpus * self.elapsed / 3600 if self.gpus and self.elapsed else None


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """One node as it is now. state: in small letters, such as idle, down*, drained; reason: why it is out of service."""

    name: str
    state: str
    reason: str = ""
    since: str = ""
    by: str = ""

    @property
    def out_of_service(self) -> bool:
        plain = self.state.rstrip("*~#!%$@^-+").lower()
        return plain.startswith(("down", "drain", "fail", "unknown", "not_responding", "inval")) or self.state.endswith(
            "*"
        )
