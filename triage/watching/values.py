"""What is told of a job that is watched."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from triage.probing.values import NodeView

# idle: it waits for connections and for nothing else; failed: it ended with an error.
State = Literal[
    "running", "slow", "phase", "idle", "hung", "suspended", "preempted", "queued", "finished", "failed", "unseen"
]
Phase = Literal["launch", "dataset", "compile", "first step", "train", "evaluation", "checkpoint", "end", ""]
# stopped: by a signal; blocked: in the kernel (D); dead; asleep; busy: on a CPU, with nothing to show for it; workers: it waits for
# its own worker processes; waits: otherwise than its peers; behind: its log is at an earlier step; throttled: its GPU is;
# stacks: what was collected tells.
Cause = Literal["stopped", "blocked", "dead", "asleep", "busy", "workers", "waits", "behind", "throttled", "stacks"]


@dataclass(frozen=True, slots=True)
class Options:
    """hang_time: seconds without progress that are a hang; period: seconds between two looks."""

    hang_time: float = 1800.0
    period: float = 60.0


@dataclass(frozen=True, slots=True)
class Suspect:
    """A rank that may hold the others up. rank: None where its environment does not tell."""

    cause: Cause
    why: str
    rank: int | None = None
    node: str = ""
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class LogView:
    """What the logs tell at one look. quiet: seconds since they showed progress, None where they never did.

    steps: the last of each rank (-1: no rank is named). limit: seconds of silence that this phase may last by the job's own history,
    0 where it has none. step_time, usual: seconds of the last steps and of those before, None where too few were seen.
    only_beats: what came is nothing but signs of life; trained: steps were seen. shows: `said` shows work, and is not only a line that
    is new; failure: what it says since that ended the program.
    """

    phase: Phase = ""
    phase_age: float = 0.0
    steps: dict[int, int] = field(default_factory=dict)
    quiet: float | None = None
    said: str = ""  # the last line that was progress
    shows: bool = False
    failure: str = ""
    limit: float = 0.0
    step_time: float | None = None
    usual: float | None = None
    trained: bool = False
    grew: int = 0  # bytes since the last look
    only_beats: bool = False
    problems: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()  # of a checkpoint that is being written


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What the scheduler says of the job, where one is asked. failed: it ended, and not well."""

    state: Literal["queued", "running", "suspended", "preempted", "finished", ""] = ""
    words: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """One look. now: seconds that only grow; processes: whether any were asked for; touched: we collect from them meanwhile."""

    now: float
    nodes: tuple[NodeView, ...] = ()
    scheduled: Scheduled = Scheduled()
    log: LogView | None = None
    processes: bool = False
    touched: bool = False


@dataclass(frozen=True, slots=True)
class Status:
    """words: what was seen, one fact each. quiet: seconds without progress. phase, step: by the logs. moved: whether progress was ever seen.

    held: seconds for which it was seen suspended; resume: what is to be done that it goes on.
    """

    state: State
    words: tuple[str, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    quiet: float = 0.0
    limit: float = 0.0
    phase: Phase = ""
    step: int | None = None
    moved: bool = False
    held: float = 0.0
    resume: str = ""
