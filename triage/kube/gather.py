"""Everything that the cluster tells of a job: itself, its pods, their nodes, and the events about all of these.

What this account may not read, or what is no longer there, stands in `missing`, and the rest is used.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from triage.errors import InputError, UsageError
from triage.kube.client import MOST_EVENTS, MOST_PODS, Cluster, Refused
from triage.kube.kinds import KINDS, NAME_LABELS, Kind, kind_of
from triage.kube.names import Asked
from triage.kube.values import Event, Job, Node, Pod

MOST_NODES = 128
_CLOCKS = timedelta(minutes=2)
# Of `train`: train-x7k2p, train-0-x7k2p, train-worker-3, train-worker-0-1-x7k2p, and not those of train-2.
_OF_JOB = r"-(?:[a-z]+-\d{1,5}(?:-\d{1,5})?(?:-[a-z0-9]{5})?|(?:\d{1,5}|[a-z]+)-[a-z0-9]{5}|[a-z0-9]{5})"


@dataclass(slots=True)
class Gathered:
    """job: None where there is no such object, or none that may be read; missing: what could not be read, in words.

    of_pods: events by the uid of their pod, or its name; of_gone: of pods of the job that are no more. unread: it may be there all the same.
    """

    asked: Asked
    job: Job | None = None
    pods: tuple[Pod, ...] = ()
    missing: list[str] = field(default_factory=list)
    unread: bool = False
    of_pods: Mapping[str, Sequence[Event]] = field(default_factory=dict)
    of_job: tuple[Event, ...] = ()
    of_gone: tuple[Event, ...] = ()
    nodes: tuple[Node, ...] = ()
    gone_nodes: tuple[str, ...] = ()
    of_nodes: tuple[Event, ...] = ()

    @property
    def events(self) -> list[Event]:
        return [*self.of_job, *self.of_gone, *(event for of_pod in self.of_pods.values() for event in of_pod)]


def gather(cluster: Cluster, asked: Asked) -> Gathered:
    """The job or pod, its pods and the events about them; of nodes see `with_nodes`.

    Errors: InputError: neither is known, or the cluster cannot be asked; UsageError: several kinds have a job of the name.
    """
    asked = replace(asked, namespace=asked.namespace or cluster.namespace)
    found = Gathered(asked)
    if asked.pod:
        _one_pod(cluster, found)
    else:
        _job(cluster, found)
        _pods(cluster, found)
    _events(cluster, found)
    if not found.pods and found.job is None and not found.events:
        raise InputError(*_unknown(found))
    return found


def _unknown(found: Gathered) -> tuple[str, str]:
    refused = "; ".join(found.missing)
    look = "pods" if found.asked.pod else ",".join(kind.resource for kind in KINDS)
    if found.unread:
        return (
            f"{found.asked} cannot be read: {refused}",
            f"see whether `kubectl -n {found.asked.namespace} get {look}` works here, or give its logs as files",
        )
    why = f" ({refused})" if refused else ""
    return (
        f"{found.asked} is not there{why}",
        f"see `kubectl -n {found.asked.namespace} get {look}`; is it of another namespace or --context, or deleted more than"
        " an hour ago? give its logs as files to have them read all the same",
    )


def _one_pod(cluster: Cluster, found: Gathered) -> None:
    try:
        found.pods = (cluster.pod(found.asked.namespace, found.asked.name),)
    except Refused as error:
        what = "the pod is no longer there" if error.absent else f"the pod was not read: {error.words}"
        found.missing.append(what)
        found.unread = not error.absent
        return
    owner = next(iter(found.pods[0].owners), None)
    kinds = [kind for kind in KINDS if owner and kind.name == owner.kind]
    for kind in kinds:
        try:
            job = cluster.job(kind, found.asked.namespace, owner.name if owner else "")
        except Refused:
            continue  # the pod alone was asked for
        if owner and job.uid == owner.uid:
            found.job = replace(job, alone=False)


def _job(cluster: Cluster, found: Gathered) -> None:
    jobs: list[Job] = []
    refused: dict[str, str] = {}
    for kind in (found.asked.kind,) if found.asked.kind else KINDS:
        try:
            jobs.append(cluster.job(kind, found.asked.namespace, found.asked.name))
        except Refused as error:
            if not error.absent:
                refused[kind.resource] = error.words
    uids = {job.uid for job in jobs}
    jobs = [
        job for job in jobs if not any(owner.uid in uids for owner in job.owners)
    ]  # what makes others of its own name
    if len(jobs) > 1:
        named = [f"{_word(job)}/{job.name}" for job in jobs]
        raise UsageError(
            f"{found.asked} is of several kinds: {', '.join(named)}", f"give one of them: --k8s-job {named[0]}"
        )
    found.job = jobs[0] if jobs else None
    if refused and not jobs:
        found.missing.append(f"no job was read of {', '.join(refused)}: {next(iter(refused.values()))}")
        found.unread = True


def _word(job: Job) -> str:
    kind = kind_of(job.group, job.kind)
    return kind.words[0] if kind else job.kind.lower()


def _pods(cluster: Cluster, found: Gathered) -> None:
    name, namespace = found.asked.name, found.asked.namespace
    labels = _labels(found.asked.kind or (kind_of(found.job.group, found.job.kind) if found.job else None))
    pods: dict[str, Pod] = {}
    try:
        for label in labels:
            listed = cluster.pods(namespace, f"{label}={name}")
            pods |= {pod.uid or pod.name: pod for pod in listed.items}
            _cut(found, listed.cut, f"only {len(listed.items)} pods with {label}={name} were read")
        if not pods:  # of a kind that is not known by name
            listed = cluster.pods(namespace)
            owners = {name} | ({found.job.name} if found.job else set())
            pods = {pod.uid or pod.name: pod for pod in listed.items if any(o.name in owners for o in pod.owners)}
            _cut(found, listed.cut and not pods, f"only {MOST_PODS} pods of the namespace were looked at")
    except Refused as error:
        found.missing.append(f"the pods of namespace {namespace} were not read: {error.words}")
        found.unread = True
    of_job = tuple(pod for pod in pods.values() if found.job is None or _is_of(pod, found.job))
    if len(of_job) < len(pods):
        found.missing.append(
            f"{len(pods) - len(of_job)} of the pods are of an earlier job of the same name and were left out"
        )
    found.pods = of_job
    if not of_job and found.job is not None:
        found.missing.append("no pod of the job is there, and so no log; its own conditions and events are read")


def _cut(found: Gathered, cut: bool, words: str) -> None:
    if cut:
        found.missing.append(words)


def _labels(kind: Kind | None) -> Iterable[str]:
    return kind.labels if kind else NAME_LABELS


def _is_of(pod: Pod, job: Job) -> bool:
    """Not of an earlier job that had the same name: its owner would bear another uid."""
    same = [owner for owner in pod.owners if (owner.kind, owner.name) == (job.kind, job.name)]
    return not same or any(owner.uid == job.uid for owner in same)


def _events(cluster: Cluster, found: Gathered) -> None:
    try:
        listed = cluster.events(found.asked.namespace)
    except Refused as error:
        found.missing.append(f"the events of namespace {found.asked.namespace} were not read: {error.words}")
        return
    _cut(found, listed.cut, f"only {MOST_EVENTS} events of the namespace were read")
    uids, names = {pod.uid for pod in found.pods} - {""}, {pod.name for pod in found.pods}
    of_pods: dict[str, list[Event]] = defaultdict(list)
    of_job, gone = [], []
    for event in listed.items:
        if event.kind == "Pod" and event.uid in uids:
            of_pods[event.uid].append(event)
        elif event.kind == "Pod" and event.name in names and (not event.uid or not uids):
            of_pods[event.name].append(event)
        elif event.kind == "Pod":
            if event.name not in names and _gone(event, found):
                gone.append(event)
        elif _about_job(event, found):
            of_job.append(event)
    found.of_pods, found.of_job, found.of_gone = dict(of_pods), tuple(of_job), tuple(gone)


def _about_job(event: Event, found: Gathered) -> bool:
    """About the job, its child jobs, or what queues stand for it: volcano's PodGroup, kueue's Workload."""
    job = found.job
    name = job.name if job else found.asked.name
    if job and event.uid and event.uid == job.uid:
        return True
    if found.asked.pod and job is None:
        return False
    if event.name == name:
        kinds = {kind.name for kind in KINDS} | {"PodGroup"}
        return (event.kind == job.kind and not event.uid) or event.kind == "PodGroup" if job else event.kind in kinds
    if event.kind == "Workload":
        return bool(re.fullmatch(rf"[a-z]+-{re.escape(name)}-[0-9a-f]{{5}}", event.name))
    if event.kind in ("Job", "PodGroup"):
        return bool(re.fullmatch(rf"{re.escape(name)}-(?:[a-z]+(?:-\d{{1,5}})?|[0-9a-f-]{{36}})", event.name))
    return False


def _gone(event: Event, found: Gathered) -> bool:
    if found.asked.pod:
        return not found.pods and event.name == found.asked.name
    late = found.job is None or found.job.created is None or event.last is None
    if not late and event.last and found.job and found.job.created and event.last < found.job.created - _CLOCKS:
        return False
    return bool(re.fullmatch(re.escape(found.asked.name) + _OF_JOB, event.name))


def with_nodes(cluster: Cluster, found: Gathered, pods: Sequence[Pod]) -> None:
    """The nodes of these pods, and the events about them."""
    names = list(dict.fromkeys(pod.node for pod in pods if pod.node))
    if not names:
        return
    nodes, gone = [], []
    for name in names[:MOST_NODES]:
        try:
            nodes.append(cluster.node(name))
        except Refused as error:
            if error.absent:
                gone.append(name)
                continue
            found.missing.append(f"the nodes were not read: {error.words}")
            break
    found.nodes, found.gone_nodes = tuple(nodes), tuple(gone)
    _cut(found, len(names) > MOST_NODES, f"only {MOST_NODES} of {len(names)} nodes were looked at")
    try:
        listed = cluster.events("default", "involvedObject.kind=Node")
    except Refused as error:
        found.missing.append(f"the events of the nodes were not read: {error.words}")
        return
    found.of_nodes = tuple(event for event in listed.items if event.name in names)
