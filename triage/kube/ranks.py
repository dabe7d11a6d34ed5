"""Which rank of the training a pod is, as its labels and its launcher's variables say. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from triage.kube.values import Container, Pod

_OF_NODE = ("PET_NODE_RANK", "NODE_RANK", "RANK")
_PROCESSES = ("PET_NPROC_PER_NODE", "NPROC_PER_NODE")
_COMPLETION = "batch.kubernetes.io/job-completion-index"
_JOB_INDEX = "jobset.sigs.k8s.io/job-index"
_REPLICATED = "jobset.sigs.k8s.io/replicatedjob-name"
_ROLE = ("training.kubeflow.org/job-role", "training.kubeflow.org/replica-type", "mpi-job-role")
_REPLICA = "training.kubeflow.org/replica-index"
_TASK, _TASK_INDEX = "volcano.sh/task-spec", "volcano.sh/task-index"
_LAUNCHERS = frozenset({"launcher", "master", "chief"})


class Ranks:
    """Of the pods of one job. A rank is that of a process where the pod has one, else that of the pod among the nodes."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._tasks = {pod.labels.get(_TASK, "") for pod in pods} - {""}
        self._replicated = {pod.labels.get(_REPLICATED, "") for pod in pods} - {""}
        self._per_job = 1 + max((n for pod in pods if (n := _completion(pod)) is not None), default=0)
        self._masters = sum(_role(pod) == "master" for pod in pods)
        self._mpi = any(_role(pod) == "launcher" for pod in pods)

    def node_rank(self, pod: Pod) -> int | None:
        """Its place among the pods of the job, from 0; None where nothing says."""
        if self._mpi:
            return None  # ranks are the launcher's own affair, and so is the output
        for container in pod.containers:
            told = (container.env.get(name, "") for name in _OF_NODE)
            if found := next((value for value in told if value.isdecimal()), ""):
                return int(found)
        return self._by_labels(pod)

    def rank(self, pod: Pod, container: Container) -> int | None:
        """That of all lines of the container's log; None where several ranks write them, or nothing says."""
        if container.init or _processes(container, pod) != 1:
            return None
        return self.node_rank(pod)

    def _by_labels(self, pod: Pod) -> int | None:
        labels = pod.labels
        if _JOB_INDEX in labels:
            within = _completion(pod)
            if len(self._replicated) != 1 or not labels[_JOB_INDEX].isdecimal() or within is None:
                return None
            return int(labels[_JOB_INDEX]) * self._per_job + within
        if (found := _completion(pod)) is not None:
            return found
        if labels.get(_REPLICA, "").isdecimal():
            index = int(labels[_REPLICA])
            return index if _role(pod) == "master" else index + self._masters
        index_of = labels.get(_TASK_INDEX) or pod.annotations.get(_TASK_INDEX, "")
        return int(index_of) if len(self._tasks) == 1 and index_of.isdecimal() else None


def _processes(container: Container, pod: Pod) -> int:
    """Ranks that one container runs: as its launcher is told, else one a GPU."""
    said = next((value for name in _PROCESSES if (value := container.env.get(name, ""))), "")
    if said.isdecimal():
        return int(said)
    return max(1, container.gpus or (pod.gpus if said in ("auto", "gpu") else 0))


def _completion(pod: Pod) -> int | None:
    said = pod.labels.get(_COMPLETION) or pod.annotations.get(_COMPLETION, "")
    return int(said) if said.isdecimal() else None


def _role(pod: Pod) -> str:
    return next((pod.labels[name].lower() for name in _ROLE if name in pod.labels), "")


def is_launcher(pod: Pod) -> bool:
    return _role(pod) in _LAUNCHERS
