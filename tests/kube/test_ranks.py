"""Which rank a pod is, by what each operator writes on it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kube import objects
from triage.kube import read
from triage.kube.ranks import Ranks

KF, JS, VC = "training.kubeflow.org/", "jobset.sigs.k8s.io/", "volcano.sh/"
INDEX = "batch.kubernetes.io/job-completion-index"


def ranks(*pods: dict[str, Any]) -> list[int | None]:
    found = [read.pod(pod) for pod in pods]
    known = Ranks(found)
    return [known.rank(pod, pod.containers[-1]) for pod in found]


def labelled(name: str, gpus: int = 1, env: dict[str, str] | None = None, **labels: str) -> dict[str, Any]:
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    told = [{"name": key, "value": value} for key, value in (env or {}).items()]
    own = {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()}
    return objects.pod(name, objects.container(resources=limits, env=told), labels=own)


def kubeflow(kind: str, index: int, **more: Any) -> dict[str, Any]:
    pod = labelled(f"train-{kind}-{index}", **more)
    pod["metadata"]["labels"] = {KF + "replica-type": kind, KF + "replica-index": str(index)}
    return pod


def test_a_pytorchjob_counts_workers_behind_its_master() -> None:
    pods = [kubeflow("master", 0), kubeflow("worker", 0), kubeflow("worker", 1)]
    assert ranks(*pods) == [0, 1, 2]
    assert ranks(*pods[1:]) == [0, 1]  # elastic: no master


def test_the_launchers_variable_counts_more_than_labels() -> None:
    assert ranks(kubeflow("worker", 0, env={"RANK": "5"}), kubeflow("worker", 1)) == [5, 1]


@pytest.mark.parametrize(
    ("gpus", "env", "rank"),
    [
        (8, {}, None),
        (8, {"PET_NPROC_PER_NODE": "1"}, 1),
        (8, {"PET_NPROC_PER_NODE": "auto"}, None),
        (1, {"PET_NPROC_PER_NODE": "auto"}, 1),
        (0, {"NPROC_PER_NODE": "4"}, None),
        (0, {}, 1),
    ],
)
def test_a_pod_of_several_processes_has_no_rank_but_a_place(gpus: int, env: dict[str, str], rank: int | None) -> None:
    raw = kubeflow("worker", 1, gpus=gpus, env=env)
    assert ranks(raw) == [rank]
    pod = read.pod(raw)
    assert Ranks([pod]).node_rank(pod) == 1


def test_an_indexed_job_and_a_jobset() -> None:
    indexed = [objects.pod(f"train-{n}", labels={INDEX: str(n)}) for n in range(3)]
    assert ranks(*indexed) == [0, 1, 2]
    of_set = [
        objects.pod(
            f"w-{job}-{n}", labels={JS + "replicatedjob-name": "workers", JS + "job-index": str(job), INDEX: str(n)}
        )
        for job in range(2)
        for n in range(4)
    ]
    assert ranks(*of_set) == list(range(8))
    driver = objects.pod("d-0-0", labels={JS + "replicatedjob-name": "driver", JS + "job-index": "0", INDEX: "0"})
    assert ranks(*of_set[:2], driver) == [None, None, None]


def test_volcano_counts_in_each_task() -> None:
    one = [
        objects.pod(f"t-worker-{n}", labels={VC + "task-spec": "worker", VC + "task-index": str(n)}) for n in range(2)
    ]
    assert ranks(*one) == [0, 1]
    master = objects.pod("t-master-0", labels={VC + "task-spec": "master", VC + "task-index": "0"})
    assert ranks(*one, master) == [None, None, None]


def test_ranks_of_mpi_are_the_launchers_affair() -> None:
    launcher = objects.pod("train-launcher-x7k2p", labels={KF + "job-role": "launcher"})
    worker = objects.pod("train-worker-1", labels={KF + "job-role": "worker", KF + "replica-index": "1"})
    assert ranks(launcher, worker) == [None, None]


def test_an_init_container_is_of_no_rank() -> None:
    pod = read.pod(objects.pod("t-0", objects.container("fetch", init=True), objects.container(), labels={INDEX: "0"}))
    assert [Ranks([pod]).rank(pod, c) for c in pod.containers] == [None, 0]
