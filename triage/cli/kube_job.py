"""The pod or job that `triage diagnose --pod` and `--k8s-job` name: its logs as files, and what Kubernetes says of it beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from triage.cli.case import Case, folder
from triage.errors import InputError, UsageError
from triage.ingest.names import Place
from triage.ingest.streams import Input
from triage.kube import account, choose, gather, logs, names
from triage.kube.choose import Chosen
from triage.kube.client import Cluster
from triage.kube.gather import Gathered
from triage.kube.logs import Fetched
from triage.kube.ranks import Ranks
from triage.kube.values import Pod
from triage.parts import AskedJob
from triage.redact import redact

FOLDER = "kubernetes"  # under the home, with the logs and accounts of jobs whose diagnosis is recorded


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the options name. One of pod and job; namespace, context: "" for those of the kubeconfig."""

    pod: str | None = None
    job: str | None = None
    namespace: str = ""
    context: str = ""

    def asked(self) -> names.Asked:
        """Errors: UsageError for what can be no name."""
        if self.pod is not None and self.job is not None:
            raise UsageError("--pod and --k8s-job exclude each other", "a job's pods are found by its name")
        return names.parse(self.pod or self.job or "", self.namespace, pod=self.pod is not None)


@contextmanager
def cases(
    wanted: Wanted, paths: Sequence[str], home: Path | None, offline: bool, tell: Callable[[str], None]
) -> Iterator[list[Case]]:
    """The one diagnosis to make. paths: further files; home: where logs are kept, None to drop them at the end.

    Errors: UsageError, InputError: the cluster cannot be asked, the job is not known, or has not begun.
    """
    asked = wanted.asked()
    if offline:
        raise UsageError(
            "TRIAGE_OFFLINE=1 bars every connection, and the cluster's API is one",
            "set TRIAGE_OFFLINE=0, or give the logs and `kubectl describe` as files",
        )
    tell("asking Kubernetes")
    cluster = Cluster(wanted.context)
    found = gather.gather(cluster, asked)
    chosen = choose.choose(found.job, found.pods)
    _begun(found, chosen)
    gather.with_nodes(cluster, found, chosen.pods)
    uid = found.job.uid if found.job else found.pods[0].uid if found.pods else ""
    own = f"{found.asked.namespace}_{found.asked.name}_{uid[:8] or 'gone'}"
    with folder(home, FOLDER) as place:
        into = place / own
        into.mkdir(mode=0o700, exist_ok=True)
        kept = (*chosen.looks, *(chosen.beside if home is not None else ()))
        fetched = logs.fetch(cluster, kept, into, tell)
        yield [_case(found, chosen, fetched[: len(chosen.looks)], into, paths)]


def _begun(found: Gathered, chosen: Chosen) -> None:
    """Errors: InputError where nothing has run, and nothing says that it will not."""
    job = found.job
    trouble = any(e.type != "Normal" for e in found.events) or any(map(choose.troubled, found.pods))
    if chosen.looks or trouble or (job and job.ended) or any(pod.failed for pod in found.pods):
        return
    if job and job.state == "Suspended":
        raise InputError(f"{found.asked} is suspended, and no pod of it runs", "its queue or its owner lets it go on")
    if job is None and not found.pods and not account.telling(found.events):
        words = "; ".join((f"{found.asked} is no longer there, and no event tells how it ended", *found.missing))
        raise InputError(words, "give its logs as files, or `kubectl logs` kept elsewhere")
    if found.pods or (job and not found.of_gone):
        phases = ", ".join(dict.fromkeys(choose.how(pod) for pod in found.pods)) or (job.state if job else "")
        raise InputError(
            f"{found.asked} has not begun{': ' * bool(phases)}{phases}",
            "a job is diagnosed once it ran, or cannot start",
        )


def _case(found: Gathered, chosen: Chosen, fetched: Sequence[Fetched], place: Path, paths: Sequence[str]) -> Case:
    ranks = Ranks(found.pods)
    nodes = tuple(dict.fromkeys(pod.node for pod in chosen.pods if pod.node))
    job = found.job
    name = f"{found.asked.namespace}/{job.name if job else found.asked.name}"
    said = redact(choose.summary(None if found.asked.pod else job, chosen.pods, _titled(found)))
    notes = list(chosen.notes)
    if any((place / look.name).is_file() for look in chosen.beside):
        notes.append(f"logs of other runs of the same containers are kept in {place}")
    of_kube = AskedJob(
        ids=tuple(dict.fromkeys((name, found.asked.name, *([job.uid] if job and job.uid else ())))),
        inputs=tuple(_log(one, ranks) for one in fetched if one.path),
        now=_account(found, chosen, ranks, place),
        nodes=nodes,
        name=redact(job.name if job else found.asked.name),
        said=(said, *map(redact, notes)),
    )
    return Case(
        of_kube,
        tuple(paths),
        tuple(redact(note) for note in (*found.missing, *(one.note for one in fetched)) if note),
        live=chosen.live,
        state=job.state if job else chosen.pods[0].phase if chosen.pods else "",
        gpu_hours=_gpu_hours(found.pods),
        scheduler="kubernetes",
    )


def _titled(found: Gathered) -> str:
    if found.job and not found.asked.pod:
        return f"{found.job.kind} {found.asked.namespace}/{found.job.name}"
    return str(found.asked)


def _log(one: Fetched, ranks: Ranks) -> Input:
    path = one.path or Path()
    rank = ranks.rank(one.look.pod, one.look.container)
    place = Place(rank=rank, node=one.look.pod.node or None)
    ended = one.look.container.last if one.look.previous else one.look.container.ended
    written = ended.finished if ended and ended.finished else datetime.now(UTC)
    return Input(path.name, path, path.stat().st_size, "job", written, place, one.stamps)


def _account(found: Gathered, chosen: Chosen, ranks: Ranks, place: Path) -> tuple[Input, ...]:
    """Of today: events go after an hour, so it does not tell one run from another."""
    text = "\n".join(
        filter(
            None,
            (
                account.of_pods(chosen, ranks, found.of_pods),
                account.of_job(found.job, found.of_job, found.of_gone, str(found.asked)),
                account.of_nodes(found.nodes, found.gone_nodes, found.of_nodes, chosen.pods, found.job),
            ),
        )
    )
    if not text:
        return ()
    path = place / f"kubernetes-{found.asked.name}.txt"
    path.write_text(text := redact(text), "utf-8")
    told = account.stamps(text)
    return (Input(path.name, path, path.stat().st_size, "kubernetes", datetime.now(UTC), Place(), told),)


def _gpu_hours(pods: Sequence[Pod]) -> float | None:
    """Of the runs that are over, as far as the pods still tell."""
    used = [
        container.gpus * (ended.finished - ended.started).total_seconds() / 3600
        for pod in pods
        for container in pod.containers
        for ended in (container.last, container.ended)
        if container.gpus and ended and ended.started and ended.finished
    ]
    return sum(used) if used else None
