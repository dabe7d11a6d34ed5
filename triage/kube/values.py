"""A job, its pods, their nodes and events as Kubernetes has them. Times with their zone; what it does not say is None or ""."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run of a container ended. signal: where the runtime tells it apart from the exit code."""

    code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    started: datetime | None = None
    finished: datetime | None = None

    @property
    def badly(self) -> bool:
        return bool(self.code or self.signal) or self.reason not in ("", "Completed")


@dataclass(frozen=True, slots=True)
class Container:
    """One container of a pod. state: waiting, running or terminated, "" where none is told.

    reason, message: why it waits; ended: its run that is over, where it has none since; last: the run before the one that
    is there now; gpus: that it is limited to; env: of the launcher's variables those that are no secret.
    """

    name: str
    init: bool = False
    image: str = ""
    state: str = ""
    reason: str = ""
    message: str = ""
    started: datetime | None = None
    ended: Ended | None = None
    last: Ended | None = None
    restarts: int = 0
    limits: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    sidecar: bool = False  # an init container that goes on beside the others

    @property
    def gpus(self) -> int:
        found = [value for name, value in self.limits.items() if name.endswith(("/gpu", "/gpu.shared", ".gpu"))]
        return sum(int(value) for value in found if value.isdecimal())

    @property
    def ran(self) -> bool:
        """Is there a run whose log may be read?"""
        return self.state in ("running", "terminated") or self.last is not None

    @property
    def failed(self) -> Ended | None:
        """Its last run that is over, if that ended badly."""
        over = self.ended or self.last
        return over if over is not None and over.badly else None


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Owner:
    kind: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Pod:
    name: str
    namespace: str = ""
    uid: str = ""
    node: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    created: datetime | None = None
    started: datetime | None = None
    deleted: datetime | None = None  # it was told to go
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[Owner, ...] = ()
    containers: tuple[Container, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @property
    def failed(self) -> bool:
        """Did it, or a container of it in its last run that is over, end badly?"""
        if self.phase == "Succeeded":
            return False
        return self.phase == "Failed" or bool(self.reason) or any(c.failed for c in self.containers)

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def gpus(self) -> int:
        return sum(c.gpus for c in self.containers)

    @property
    def finished(self) -> datetime | None:
        """When the last of its containers ended."""
        over = (c.ended or c.last for c in self.containers)
        return max((e.finished for e in over if e and e.finished), default=None)


@dataclass(frozen=True, slots=True)
class Event:
    """first, last: when it was seen; count: how often; kind, name, uid: what it is about."""

    type: str
    reason: str
    message: str = ""
    source: str = ""
    first: datetime | None = None
    last: datetime | None = None
    count: int = 1
    kind: str = ""
    name: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """A job of any kind. kind: as the API writes it, such as PyTorchJob; group: of the API, "batch" for a plain Job.

    state: what its controller says of it in one word, "" where it says nothing yet; restarts: that its controller made.
    """

    kind: str
    name: str
    namespace: str = ""
    group: str = ""
    uid: str = ""
    state: str = ""
    reason: str = ""
    message: str = ""
    created: datetime | None = None
    started: datetime | None = None
    finished: datetime | None = None
    restarts: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[Owner, ...] = ()
    conditions: tuple[Condition, ...] = ()
    alone: bool = True  # one pod at a time: a second one is another attempt

    @property
    def ended(self) -> bool:
        return self.state in ENDED_WELL or self.ended_badly

    @property
    def ended_badly(self) -> bool:
        return self.state in ENDED_BADLY


ENDED_WELL = frozenset({"Complete", "Completed", "Succeeded", "SuccessCriteriaMet"})
ENDED_BADLY = frozenset({"Failed", "FailureTarget", "Aborted", "Aborting", "Terminated", "Terminating"})


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    conditions: tuple[Condition, ...] = ()
    taints: tuple[str, ...] = ()
    closed: bool = False  # cordoned
    gpus: tuple[int, int] | None = None  # that pods may have, and that it has
