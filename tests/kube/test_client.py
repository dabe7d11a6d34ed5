"""The official client against a server on this machine that answers as a cluster does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube import objects
from tests.kube.server import ApiServer
from triage.errors import InputError, UsageError
from triage.kube import client
from triage.kube.client import Cluster, Refused
from triage.kube.gather import gather
from triage.kube.kinds import WORDS
from triage.kube.names import parse

pytest.importorskip("kubernetes")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    with ApiServer() as started:
        monkeypatch.setenv("KUBECONFIG", str(started.kubeconfig(tmp_path / "config")))
        yield started


def test_a_pod_is_read_with_its_containers_and_without_its_secrets(server: ApiServer) -> None:
    env = [{"name": "RANK", "value": "3"}, {"name": "HF_TOKEN", "value": "hf_not_to_be_read"}, {"name": "WORLD_SIZE"}]
    main = objects.container("main", objects.over(137, "OOMKilled"), objects.over(1), 2, env=env, resources={"limits": {"nvidia.com/gpu": "8", "memory": "64Gi"}})  # fmt: skip
    fetch = objects.container("fetch", objects.over(0), init=True)
    server.add(objects.pod("train-0", main, fetch, reason="Evicted"))
    pod = Cluster().pod("ml", "train-0")
    first, second = pod.containers
    assert (first.name, first.init, second.name, second.gpus, second.restarts) == ("fetch", True, "main", 8, 2)
    assert second.ended and (second.ended.code, second.ended.reason, second.ended.badly) == (137, "OOMKilled", True)
    assert second.last and second.last.code == 1
    assert second.env == {"RANK": "3"}
    assert (pod.phase, pod.reason, pod.node, pod.failed) == ("Failed", "Evicted", "gpu-1", True)
    assert "hf_not_to_be_read" not in repr(pod)


def test_lists_are_read_page_by_page(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PAGE", 10)
    server.add(*(objects.pod(f"train-{n}", labels={"job-name": "train"}) for n in range(35)), objects.pod("other"))
    found = Cluster().pods("ml", "job-name=train")
    assert len(found.items) == 35 and not found.cut
    assert len(server.asked) == 4


def test_a_list_that_the_server_forgot_is_used_as_far_as_it_came(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_PAGE", 10)
    server.forgets = 2
    server.add(*(objects.pod(f"train-{n}") for n in range(35)))
    found = Cluster().pods("ml")
    assert len(found.items) == 20 and found.cut


def test_a_list_ends_where_it_is_long_enough(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_PAGE", 10)
    monkeypatch.setattr(client, "MOST_PODS", 20)
    server.add(*(objects.pod(f"train-{n}") for n in range(35)))
    found = Cluster().pods("ml")
    assert len(found.items) == 20 and found.cut


def test_an_older_version_of_a_kind_is_found(server: ApiServer) -> None:
    server.add(objects.job("MPIJob", "train", objects.condition("Failed", reason="BackoffLimitExceeded")))
    job = Cluster().job(WORDS["mpijob"], "ml", "train")
    assert (job.kind, job.state, job.reason) == ("MPIJob", "Failed", "BackoffLimitExceeded")


def test_volcano_says_a_phase_in_place_of_conditions(server: ApiServer) -> None:
    state = {"phase": "Aborted", "reason": "PodFailed", "lastTransitionTime": objects.ENDED}
    told = [{"status": "Running", "lastTransitionTime": objects.BEGAN}, {"status": "Aborted", "lastTransitionTime": objects.ENDED}]  # fmt: skip
    server.add(objects.job("Job", "train", *told, api="batch.volcano.sh/v1alpha1", state=state, retryCount=2))
    job = Cluster().job(WORDS["vcjob"], "ml", "train")
    assert (job.state, job.ended_badly, job.restarts) == ("Aborted", True, 2)


def test_what_is_not_there_and_what_is_forbidden(server: ApiServer) -> None:
    server.forbidden = {"nodes"}
    with pytest.raises(Refused, match='pods "absent" not found') as absent:
        Cluster().pod("ml", "absent")
    with pytest.raises(Refused, match='cannot get resource "nodes"') as forbidden:
        Cluster().node("gpu-1")
    assert absent.value.absent and not forbidden.value.absent


def test_who_is_not_known_to_the_cluster_is_told_so(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig(tmp_path / "other", token="expired")))
    with pytest.raises(InputError, match="does not know who asks") as raised:
        Cluster().pods("ml")
    assert "log in again" in raised.value.hint


def test_contexts_and_their_namespaces(server: ApiServer) -> None:
    assert Cluster().namespace == "ml"
    elsewhere = Cluster("elsewhere")
    assert elsewhere.namespace == "default"
    with pytest.raises(InputError, match=r"the cluster at http://127.0.0.1:9 cannot be asked: .*refused"):
        elsewhere.pods("ml")
    with pytest.raises(UsageError, match="context 'nowhere' cannot be used"):
        Cluster("nowhere")


def test_no_kubeconfig_and_no_cluster_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    with pytest.raises(UsageError, match="no cluster is known here"):
        Cluster()
    (tmp_path / "damaged").write_text("contexts: [")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "damaged"))
    with pytest.raises(UsageError, match="damaged cannot be used"):
        Cluster()


def test_the_client_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(UsageError, match="not installed") as raised:
        Cluster()
    assert raised.value.hint == 'install it: pip install "hpc-triage[k8s]"'


def test_a_pod_that_cannot_be_read_is_not_said_to_be_gone(server: ApiServer) -> None:
    with pytest.raises(InputError, match="pod ml/train-0 is not there"):
        gather(Cluster(), parse("train-0", pod=True))
    server.forbidden = {"pods", "events"}
    with pytest.raises(InputError, match="pod ml/train-0 cannot be read: the pod was not read: pods"):
        gather(Cluster(), parse("train-0", pod=True))
