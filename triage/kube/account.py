"""What Kubernetes says of a job as a text whose lines can be cited, in the form of `kubectl describe`. Pure.

Events and conditions begin with the time at which they were seen last, as ages would mean another time whenever they are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from triage.domain import Stamps
from triage.kube.choose import Chosen
from triage.kube.ranks import Ranks
from triage.kube.values import Condition, Container, Ended, Event, Job, Node, Pod
from triage.text import printable

_OWN_TIME = re.compile(r"(?:(      Finished: {1,8})|  )(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")
_STATE = re.compile(r"    (?:Last )?State: ")
_MOST = 1500  # characters of a message
_AROUND = timedelta(hours=1)
# What goes before a container runs, and tells nothing of how it ended.
_ROUTINE = frozenset({"Scheduled", "Pulling", "Pulled", "Created", "Started", "SuccessfulCreate", "SuccessfulAttachVolume", "AddedInterface", "SuccessfulDelete"})  # fmt: skip
_OTHER_ENDS = frozenset({"Preempted", "Evicted", "TaintManagerEviction", "NodeNotReady", "Preempting"})
_TOLD_LABELS = ("job-name", "replica-type", "replica-index", "job-completion-index", "replicatedjob-name", "job-index", "task-spec", "task-index")  # fmt: skip
_HEALTHY = {"Ready": "True", "NetworkUnavailable": "False"}


def of_pods(chosen: Chosen, ranks: Ranks, events: Mapping[str, Sequence[Event]]) -> str:
    """events: by the uid of the pod, or by its name where events tell no uid."""
    return "\n".join("\n".join(_pod(pod, chosen, ranks, events)) + "\n" for pod in chosen.pods)


def of_job(job: Job | None, events: Sequence[Event], gone: Sequence[Event], named: str) -> str:
    """gone: events of pods that are no longer there; named: what was asked for."""
    lines = list(_job(job)) if job else []
    if job is None and _was_deleted(gone):
        lines.append(f"The {named} is no longer there: it was deleted while its containers ran.")
    told = [*_events(events, None, about=True), *_events(gone, None, about=True)]
    if told:
        lines += ["", "LAST SEEN             TYPE     REASON  FROM  OBJECT: MESSAGE", *told]
    return "\n".join(lines) + "\n" if lines else ""


def stamps(text: str) -> Stamps:
    """When what each line of an account tells came about: its own time, or the end of the run that a container's state tells of."""
    found = Stamps()
    begun = 0  # the line on which a state begins
    for number, line in enumerate(text.split("\n"), 1):
        own = _OWN_TIME.match(line)
        begun = number if _STATE.match(line) else begun
        first = begun if own and own[1] and begun else number
        at = datetime.fromisoformat(own[2]).timestamp() if own else math.nan
        while found.lines and found.lines[-1] >= first:
            found.lines.pop()
            found.times.pop()
        found.lines.append(first)
        found.times.append(at)
        begun = 0 if own and own[1] else begun
    return found


def of_nodes(
    nodes: Iterable[Node], gone: Iterable[str], events: Sequence[Event], pods: Sequence[Pod], job: Job | None
) -> str:
    """What ails the nodes of the pods, as far as it began while the job ran or soon after."""
    first, last = _span(pods, job)
    lines = [line for node in nodes for line in _node(node, first, last)]
    lines += [f"Node {name} is no longer in the cluster." for name in gone]
    lines += _events([e for e in events if _within(e.last, first, last)], None, about=True)
    return "Nodes:\n" + "\n".join(lines) + "\n" if lines else ""


def telling(events: Iterable[Event]) -> bool:
    """Is there one that says more than that all went its way?"""
    return any(e.reason not in _ROUTINE for e in events)


def _was_deleted(gone: Sequence[Event]) -> bool:
    """Were containers stopped, with no other word on why? What ended by itself leaves its pods, or was not stopped."""
    reasons = {e.reason for e in gone}
    return "Killing" in reasons and not any(e.type != "Normal" or e.reason in _OTHER_ENDS for e in gone)


def _pod(pod: Pod, chosen: Chosen, ranks: Ranks, events: Mapping[str, Sequence[Event]]) -> Iterator[str]:
    yield from _field("Name", pod.name)
    yield from _field("Namespace", pod.namespace)
    yield from _field("Node", pod.node)
    rank = next((r for c in pod.containers if (r := ranks.rank(pod, c)) is not None), None)
    yield from _field("Rank", "" if rank is None else str(rank))
    if rank is None and (place := ranks.node_rank(pod)) is not None:
        yield from _field("Node Rank", str(place))
    labels = [f"{name}={value}" for name, value in pod.labels.items() if name.rpartition("/")[2] in _TOLD_LABELS]
    yield from _field("Labels", ",".join(labels))
    yield from _field("Start Time", _time(pod.started))
    yield from _field("Deleted", _time(pod.deleted))
    yield from _field("Status", pod.phase)
    yield from _field("Reason", pod.reason)
    yield from _field("Message", pod.message)
    for title, init in (("Init Containers:", True), ("Containers:", False)):
        of_kind = [c for c in pod.containers if c.init is init]
        if of_kind:
            yield title
            for container in of_kind:
                yield from _container(container)
    told = [
        c
        for c in pod.conditions
        if c.type == "DisruptionTarget" or (c.status == "False" and c.reason == "Unschedulable")
    ]
    if told:
        yield "Conditions:"
        yield from map(_condition, told)
    known = events.get(pod.uid) or events.get(pod.name, ())
    if lines := list(_events(known, _began(pod, chosen))):
        yield "Events:"
        yield "  LAST SEEN             TYPE     REASON  FROM  MESSAGE"
        yield from lines


def _field(name: str, value: str) -> Iterator[str]:
    if value:
        yield f"{name + ':':<16}{_cell(value)}"


def _container(container: Container) -> Iterator[str]:
    yield f"  {container.name}:"
    if container.image:
        yield f"    Image:          {_cell(container.image)}"
    yield from _state("State", container.state, container.ended)
    if container.state == "running" and container.started:
        yield f"      Started:      {_time(container.started)}"
    if container.state == "waiting":
        if container.reason:
            yield f"      Reason:       {_cell(container.reason)}"
        if container.message:
            yield f"      Message:      {_cell(container.message)}"
    if container.last and (container.ended is None or container.ended.badly):  # else it has come through
        yield from _state("Last State", "terminated", container.last)
    yield f"    Restart Count:  {container.restarts}"
    if container.limits:
        limits = ", ".join(f"{name}={value}" for name, value in container.limits.items())
        yield f"    Limits:         {_cell(limits)}"


def _state(title: str, state: str, ended: Ended | None) -> Iterator[str]:
    if not state:
        return
    yield f"    {title + ':':<16}{state.capitalize()}"
    if ended is None:
        return
    if ended.reason and ended.badly:  # `Completed` of one container is no word on the others
        yield f"      Reason:       {_cell(ended.reason)}"
    if ended.message:
        yield f"      Message:      {_cell(ended.message)}"
    if ended.code is not None:
        yield f"      Exit Code:    {ended.code}"
    if ended.signal:
        yield f"      Signal:       {ended.signal}"
    yield f"      Started:      {_time(ended.started)}"
    yield f"      Finished:     {_time(ended.finished)}"


def _job(job: Job) -> Iterator[str]:
    yield from _field("Job", f"{job.kind} {job.name}")
    yield from _field("Namespace", job.namespace)
    yield from _field("State", job.state)
    if job.restarts:
        yield f"  Restarts: {job.restarts}"
    told = [c for c in job.conditions if c.status == "True" and c.type not in ("Running", "Created", "Pending")]
    yield from map(_condition, told)
    if job.message and job.state not in {c.type for c in told}:
        yield _condition(Condition(job.state, "True", job.reason, job.message, job.finished))


def _condition(found: Condition) -> str:
    at = f"{_time(found.at)}  " if found.at else ""
    return f"  {at}{found.type} {found.status} reason: {_cell(found.reason) or '-'} {_cell(found.message)}".rstrip()


def _events(events: Iterable[Event], since: datetime | None, about: bool = False) -> Iterator[str]:
    """Oldest first, without those that were over before `since`."""
    kept = [e for e in events if e.reason not in _ROUTINE and (since is None or e.last is None or e.last >= since)]
    for e in sorted(kept, key=lambda e: e.last or datetime.min.replace(tzinfo=UTC)):
        what = f"{e.kind.lower()}/{e.name}: " if about else ""
        often = f" (x{e.count})" if e.count > 1 else ""
        yield f"  {_time(e.last):<20}  {e.type:<7}  {e.reason}  {e.source or '-'}  {what}{_cell(e.message)}{often}"


def _began(pod: Pod, chosen: Chosen) -> datetime | None:
    """When the runs that are looked at began: what was before has been overcome."""
    starts = [
        (c.last if look.previous else c.ended)
        for look in chosen.looks
        if look.pod is pod and not (c := look.container).init
    ]
    begun = [ended.started for ended in starts if ended and ended.started]
    begun += [
        c.started
        for look in chosen.looks
        if look.pod is pod and not look.previous and (c := look.container).started and not c.init
    ]
    return min(begun, default=None)


def _node(node: Node, first: datetime | None, last: datetime | None) -> Iterator[str]:
    for condition in node.conditions:
        if ails(condition) and _within(condition.at, first, last):
            yield f"  {_time(condition.at):<20}  Node {node.name} condition {condition.type} is {condition.status}: {_cell(condition.reason)} {_cell(condition.message)}"
    odd = [taint for taint in node.taints if taint.startswith("node.kubernetes.io/") and "unschedulable" not in taint]
    if odd:
        yield f"  Node {node.name} is tainted now: {', '.join(odd)}"
    if node.closed:
        yield f"  Node {node.name} is cordoned now"
    if node.gpus and node.gpus[0] < node.gpus[1]:
        yield f"  Node {node.name} has {node.gpus[1]} GPUs, and {node.gpus[0]} of them are allocatable now"


def ails(condition: Condition) -> bool:
    """Kubernetes' own conditions are bad on one side; of those of health monitors, `...Ready`, `...Healthy` and `...Status` are well when True."""
    if condition.type in _HEALTHY:
        return condition.status != _HEALTHY[condition.type]
    if condition.type.endswith(("Ready", "Healthy", "Health", "OK", "Ok")):
        return condition.status == "False"
    return condition.status == "True"


def _span(pods: Sequence[Pod], job: Job | None) -> tuple[datetime | None, datetime | None]:
    begun = [at for pod in pods if (at := pod.started or pod.created)]
    first = min(begun, default=job.created if job else None)
    over = [pod.finished for pod in pods if pod.finished]
    if any(not pod.ended for pod in pods):
        return first, None
    return first, max(over, default=job.finished if job else None)


def _within(at: datetime | None, first: datetime | None, last: datetime | None) -> bool:
    return at is None or ((first is None or at >= first - _AROUND) and (last is None or at <= last + _AROUND))


def _time(at: datetime | None) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""


def _cell(text: str) -> str:
    return printable(" ".join(text.split()))[:_MOST]
