"""A real API server: what tests/kube/server.py plays is asked and answered so by the real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kube import cluster
from tests.kube import objects as k
from tests.kube.cluster import Cluster
from triage.cli import kube_job
from triage.cli.kube_job import Wanted
from triage.errors import InputError
from triage.kube import client
from triage.kube.choose import choose
from triage.kube.client import Cluster as Client
from triage.kube.gather import gather, with_nodes
from triage.kube.names import parse

pytestmark = [pytest.mark.service, pytest.mark.skipif(bool(cluster.lacking()), reason=cluster.lacking() or "-")]
READS = [{"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list"]}]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as started:
        started.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "ml"}})
        _fill(started)
        yield started


def _fill(real: Cluster) -> None:
    """A Job of three pods, as operators label theirs; a role that reads pods and events of the namespace for `me`."""
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example/train:1"}]}
    }
    spec = {"backoffLimit": 0, "parallelism": 3, "completions": 3, "template": template}
    given_up = k.condition(
        "Failed", reason="BackoffLimitExceeded", message="Job has reached the specified backoff limit"
    )
    job = real.add("jobs", k.batch_job("train", given_up, spec=spec))
    real.add("nodes", k.node("gpu-1", gpus=(7, 8)))
    for rank, end in enumerate((k.over(1), k.over(137, "OOMKilled"), k.over(1))):
        own = k.container("main", end, env=[{"name": "RANK", "value": str(rank)}])
        pod = real.add("pods", k.pod(f"train-{rank}-x7k2p", own, labels={"job-name": "train"}, owner=job))
        real.add("events", k.event(pod, "BackOff", "Back-off restarting failed container", count=3))
    of_role: dict[str, Any] = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": "reads", "namespace": "ml"},
    }
    real.add("roles", {**of_role, "kind": "Role", "rules": READS})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"}
    real.add(
        "rolebindings",
        {**of_role, "kind": "RoleBinding", "roleRef": role, "subjects": [{"kind": "User", "name": "me"}]},
    )


def test_all_of_a_job_is_gathered(real: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(real.kubeconfig(tmp_path / "config")))
    monkeypatch.setattr(client, "_PAGE", 2)  # so that the server hands out tokens to go on with
    asked = Client()
    found = gather(asked, parse("train"))
    with_nodes(asked, found, found.pods)
    assert found.job and (found.job.kind, found.job.state, found.job.reason) == (
        "Job",
        "Failed",
        "BackoffLimitExceeded",
    )
    assert sorted(pod.name for pod in found.pods) == ["train-0-x7k2p", "train-1-x7k2p", "train-2-x7k2p"]
    assert {event.reason for events in found.of_pods.values() for event in events} == {"BackOff"} and len(
        found.of_pods
    ) == 3
    assert [node.gpus for node in found.nodes] == [(7, 8)]
    assert found.missing == []
    (killed,) = [c.failed for pod in found.pods for c in pod.containers if c.failed and c.failed.code == 137]
    assert killed.reason == "OOMKilled" and not choose(found.job, found.pods).live


def test_who_may_read_little_reads_that(real: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(real.kubeconfig(tmp_path / "config", cluster.ME)))
    with kube_job.cases(Wanted(job="train"), (), None, offline=False, tell=lambda _text: None) as (case,):
        assert case.asked and "3 pods (3 Failed)" in case.asked.said[0]
        assert (
            case.notes[0].startswith("no job was read of pytorchjobs.kubeflow.org")
            and "cannot get resource" in case.notes[0]
        )
        assert case.notes[1].startswith('the nodes were not read: nodes "gpu-1" is forbidden')
        assert all(
            "the log of train-" in note and "was not read" in note for note in case.notes[3:]
        )  # there is no kubelet
    with (
        pytest.raises(InputError, match="job default/train cannot be read"),
        kube_job.cases(Wanted(job="default/train"), (), None, offline=False, tell=lambda _text: None),
    ):
        pass


def test_what_is_not_there_and_a_token_that_is_none(
    real: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(real.kubeconfig(tmp_path / "config")))
    with pytest.raises(InputError, match="pod ml/absent is not there"):
        gather(Client(), parse("absent", pod=True))
    monkeypatch.setenv("KUBECONFIG", str(real.kubeconfig(tmp_path / "other", "no-such-token")))
    with pytest.raises(InputError, match="does not know who asks"):
        gather(Client(), parse("train"))
