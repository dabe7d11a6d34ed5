"""Which of a job's pods are to be diagnosed, and which runs of their containers. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from triage.kube.logs import Look
from triage.kube.ranks import Ranks, is_launcher
from triage.kube.values import Container, Ended, Job, Pod
from triage.text import how_many

MOST_LOGS = 4096
_BEGINS = frozenset({"", "ContainerCreating", "PodInitializing"})  # why a container waits where all is well
_NEVER = datetime.max.replace(tzinfo=UTC)
_FIRST = datetime.min.replace(tzinfo=UTC)
_PLACES = (
    "training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index", "jobset.sigs.k8s.io/replicatedjob-name",
    "jobset.sigs.k8s.io/job-index", "batch.kubernetes.io/job-completion-index", "volcano.sh/task-spec", "volcano.sh/task-index",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chosen:
    """pods: that are diagnosed, those that failed first ahead; looks: the logs that count; beside: those of other runs of
    the same containers; notes: what is to be said of it; live: it still runs, and nothing of it has failed."""

    pods: tuple[Pod, ...] = ()
    looks: tuple[Look, ...] = ()
    beside: tuple[Look, ...] = ()
    notes: tuple[str, ...] = ()
    live: bool = False


def choose(job: Job | None, pods: Sequence[Pod]) -> Chosen:
    """Of pods in the same place of a job the last that ended badly, of a container that runs again the run before."""
    ranks = Ranks(pods)
    notes: list[str] = []
    chosen = sorted((_attempt(of_place, notes) for of_place in _places(job, pods)), key=lambda pod: _order(pod, ranks))
    looks: list[Look] = []
    beside: list[Look] = []
    for pod in chosen:
        for container in pod.containers:
            if container.ran:
                _look(pod, container, looks, beside, notes)
    if len(looks) > MOST_LOGS:
        notes.append(
            f"only {MOST_LOGS} of {how_many(len(looks), 'log')} are read, those of pods that failed first ahead"
        )
    over = job.ended if job else bool(pods) and all(pod.ended for pod in pods)
    live = not over and not any(pod.failed or troubled(pod) for pod in chosen)
    if live and any(look.container.state == "running" for look in looks):
        notes.append("it still runs: this is what its logs show so far; `triage watch --pod NAME` tells a hang")
    return Chosen(tuple(chosen), tuple(looks[:MOST_LOGS]), tuple(beside[:MOST_LOGS]), tuple(notes), live)


def troubled(pod: Pod) -> bool:
    """Does it wait for something that does not come by itself?"""
    return any(c.state == "waiting" and c.reason not in _BEGINS for c in pod.containers)


def _places(job: Job | None, pods: Sequence[Pod]) -> list[list[Pod]]:
    """Pods that stand for each other, oldest first."""
    found: dict[tuple[str, ...], list[Pod]] = defaultdict(list)
    for pod in sorted(pods, key=lambda pod: (pod.created or _FIRST, pod.name)):
        found[_place(job, pod)].append(pod)
    return list(found.values())


def _place(job: Job | None, pod: Pod) -> tuple[str, ...]:
    told = tuple(pod.labels.get(name) or pod.annotations.get(name, "") for name in _PLACES)
    if told[1] or told[3] or told[4] or told[6] or (job is not None and job.alone):
        return told
    if any(pod.labels.get(name) == "launcher" for name in ("training.kubeflow.org/job-role", "mpi-job-role")):
        return ("launcher",)
    return ("", pod.uid or pod.name)


def _attempt(pods: Sequence[Pod], notes: list[str]) -> Pod:
    last = pods[-1]
    bad = [pod for pod in pods if pod.failed]
    chosen = last if last.ended or last.failed or not bad else bad[-1]
    if chosen is not last:
        notes.append(
            f"{last.name} has taken the place of {chosen.name} ({last.phase}); {chosen.name}, which failed, is diagnosed"
        )
    earlier = [pod for pod in bad if pod is not chosen]
    if earlier:
        told = ", ".join(f"{pod.name} ({how(pod)})" for pod in earlier[-3:])
        notes.append(f"attempt {len(earlier) + 1} of the same place is {chosen.name}; before it: {told}")
    return chosen


def _look(pod: Pod, container: Container, looks: list[Look], beside: list[Look], notes: list[str]) -> None:
    """Where it waits, its log is that of the run before, which is not asked for twice."""
    last = container.last
    if container.state == "running" and last is not None and last.badly:
        looks.append(Look(pod, container, previous=True))
        beside.append(Look(pod, container))
        since = f" since {container.started:%Y-%m-%d %H:%M:%S}" if container.started else ""
        notes.append(
            f"container {container.name} of {pod.name} runs again{since} ({how_many(container.restarts, 'restart')}); "
            f"the run before it, which ended with {ending(last)}, is diagnosed"
        )
    elif container.state in ("running", "terminated"):
        looks.append(Look(pod, container))
        if last is not None:
            beside.append(Look(pod, container, previous=True))
    else:
        looks.append(Look(pod, container, previous=True))


def _order(pod: Pod, ranks: Ranks) -> tuple[bool, datetime, bool, int, str]:
    rank = ranks.node_rank(pod)
    bad = pod.failed or troubled(pod)
    return (
        not bad,
        (pod.finished or _NEVER) if bad else _NEVER,
        not is_launcher(pod),
        -1 if rank is None else rank,
        pod.name,
    )


def ending(ended: Ended) -> str:
    """Error, exit code 1"""
    parts = (
        ended.reason,
        f"exit code {ended.code}" if ended.code is not None else "",
        f"signal {ended.signal}" if ended.signal else "",
    )
    return ", ".join(filter(None, parts)) or "no word of how"


def how(pod: Pod) -> str:
    """Its phase, with what a container of it failed with."""
    failed = next((ended for c in pod.containers if (ended := c.failed)), None)
    waits = next((c.reason for c in pod.containers if c.state == "waiting" and c.reason not in _BEGINS), "")
    return ", ".join(filter(None, (pod.phase, pod.reason, waits, ending(failed) if failed else "")))


def summary(job: Job | None, pods: Sequence[Pod], named: str) -> str:
    """The job in one line: its state, its pods, where and how long it ran."""
    return f"{named}: {', '.join(_parts(job, pods)) or 'nothing more is known of it'}"


def _parts(job: Job | None, pods: Sequence[Pod]) -> Iterator[str]:
    if job is not None and job.state:
        yield job.state
        if job.reason and job.reason != job.state:
            yield f"reason {job.reason}"
    if len(pods) == 1:
        yield f"pod {pods[0].name} {how(pods[0])}"
    elif pods:
        phases = ", ".join(f"{n} {phase}" for phase, n in Counter(pod.phase for pod in pods).most_common())
        yield f"{len(pods)} pods ({phases})"
    nodes = {pod.node for pod in pods} - {""}
    if nodes:
        yield f"on {how_many(len(nodes), 'node')}" if len(nodes) > 1 else f"on {next(iter(nodes))}"
    if restarts := sum(c.restarts for pod in pods for c in pod.containers):
        yield how_many(restarts, "restart of a container", "restarts of containers")
    if job is not None and job.restarts:
        yield how_many(job.restarts, "restart")
    if span := _span(job, pods):
        yield f"ran {span // 3600}:{span // 60 % 60:02d}:{span % 60:02d}"


def _span(job: Job | None, pods: Sequence[Pod]) -> int:
    """Seconds from the first container's start to the last one's end."""
    runs = [e for pod in pods for c in pod.containers if (e := c.ended or c.last) and e.started and e.finished]
    first = min((e.started for e in runs if e.started), default=job.started if job else None)
    last = max((e.finished for e in runs if e.finished), default=job.finished if job else None)
    return max(0, int((last - first).total_seconds())) if first and last else 0
