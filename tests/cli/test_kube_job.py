"""`triage diagnose --pod` and `--k8s-job`: the official client against a server on this machine that answers as a cluster does."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.kube import objects as k
from tests.kube.server import ApiServer
from triage.cli import kube_job, tasks, wiring
from triage.cli.case import Case
from triage.cli.kube_job import Wanted
from triage.domain import Diagnosis
from triage.errors import InputError, UsageError
from triage.parts import Parts

pytest.importorskip("kubernetes")

STEPS = b"".join(b"step %d loss 2.%d\n" % (n, n) for n in range(30))
RAISED = b'Traceback (most recent call last):\n  File "/app/train.py", line 70, in main\n    x = batch["labels"]\nKeyError: \'labels\'\n'
GIVEN_UP = k.condition("Failed", reason="BackoffLimitExceeded", message="Job has reached the specified backoff limit")
TRAINING = "training.kubeflow.org/"
Json = dict[str, Any]


@pytest.fixture(scope="module")
def parts() -> Parts:
    return wiring.parts(wiring.settings("off"), lambda _text: None, record=False, similar=False, site=False)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    with ApiServer() as started:
        monkeypatch.setenv("KUBECONFIG", str(started.kubeconfig(tmp_path / "config")))
        yield started


@contextlib.contextmanager
def case(wanted: Wanted, home: Path | None = None) -> Iterator[Case]:
    with kube_job.cases(wanted, (), home, offline=False, tell=lambda _text: None) as found:
        (one,) = found
        yield one


def diagnosed(parts: Parts, wanted: Wanted) -> Diagnosis:
    with case(wanted) as one:
        return tasks.diagnose([one], parts, wiring.settings("off"), None, new=False, live=False)[0][0].result


def told(found: Diagnosis) -> tuple[str, str, tuple[str, ...]]:
    return found.outcome, found.failure_type, found.suspects.nodes


def of_job(
    server: ApiServer, *conditions: Json, state: Json | None = None, last: Json | None = None, log: bytes | None = STEPS, node: Json | None = None, **pod: Any
) -> tuple[Json, Json]:  # fmt: skip
    """A plain Job with one pod that ended with exit code 1, unless told otherwise."""
    job = k.batch_job("train", *conditions)
    labels = {"batch.kubernetes.io/job-name": "train", "job-name": "train"}
    own = k.pod(
        "train-x7k2p",
        k.container("main", k.over(1) if state is None else state, last, int(bool(last))),
        labels=labels,
        owner=job,
        **pod,
    )
    server.add(job, own, node or k.node("gpu-1"))
    if log is not None:
        server.logs["ml", "train-x7k2p", "main", False] = log
    return job, own


# ------------------------------------------------------------------------------------------ how jobs end
SHUTDOWN = "Pod was terminated in response to imminent node shutdown."
STOPPED = k.condition("Ready", "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.", at="2026-11-30T08:15:00Z")  # fmt: skip
XID = k.condition("AcceleratedHardwareReady", "False", "NvidiaXID79Error", "GPU has fallen off the bus", at="2026-11-30T08:18:00Z")  # fmt: skip
COMPLETE = k.condition("Complete", reason="CompletionsReached", message="Reached expected number of succeeded pods")
NOT_FOUND = 'failed to create shim task: OCI runtime create failed: exec: "pyhton": executable file not found in $PATH'

ENDS: dict[str, tuple[Json, tuple[str, str, tuple[str, ...]]]] = {
    "raised": ({"log": STEPS + RAISED}, ("failed", "key-error", ())),
    "oom": ({"state": k.over(137, "OOMKilled")}, ("failed", "host-out-of-memory", ())),
    "evicted": ({"state": k.over(137), "reason": "Evicted", "message": "The node was low on resource: memory. Threshold quantity: 100Mi, available: 20Mi."}, ("failed", "host-out-of-memory", ())),
    "disk": ({"state": k.over(137), "reason": "Evicted", "message": "Pod ephemeral local storage usage exceeds the total limit of containers 10Gi."}, ("failed", "disk-full", ())),
    "pod deadline": ({"state": k.over(143), "reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the specified deadline"}, ("interrupted", "time-limit", ())),
    "image": ({"state": k.waiting("ImagePullBackOff", 'Back-off pulling image "registry.example/train:1"'), "phase": "Pending", "log": None}, ("failed", "launch-failure", ())),
    "config": ({"state": k.waiting("CreateContainerConfigError", 'secret "token" not found'), "phase": "Pending", "log": None}, ("failed", "launch-failure", ())),
    "cannot run": ({"state": k.over(128, "StartError", message=NOT_FOUND), "log": b""}, ("failed", "launch-failure", ())),
    "node lost": ({"state": k.running(), "phase": "Running", "reason": "NodeLost", "node": k.node("gpu-1", STOPPED)}, ("failed", "node-failure", ("gpu-1",))),
    "gpu": ({"log": STEPS + b"RuntimeError: CUDA error: unspecified launch failure\n", "node": k.node("gpu-1", XID)}, ("failed", "gpu-lost", ("gpu-1",))),
    "no gpu": ({"state": {}, "log": None, "reason": "UnexpectedAdmissionError", "message": "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 8, Available: 7, which is unexpected"}, ("failed", "gpu-lost", ("gpu-1",))),
    "shutdown": ({"state": k.over(143), "reason": "Terminated", "message": SHUTDOWN}, ("interrupted", "preempted", ("gpu-1",))),
    "crash": ({"state": k.over(139)}, ("failed", "unknown", ())),
    "well": ({"state": k.over(0), "phase": "Succeeded"}, ("healthy", "healthy", ())),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_how_a_job_ended_is_told_from_its_name(server: ApiServer, parts: Parts, name: str) -> None:
    how, expected = ENDS[name]
    of_job(server, COMPLETE if name == "well" else GIVEN_UP, **how)
    found = diagnosed(parts, Wanted(job="train"))
    assert told(found) == expected
    assert not [note for note in found.missing if not note.startswith("to settle")]
    assert found.job == "ml/train" and found.job_name == "train"


EVENTS: dict[str, tuple[Json, str, str, Json, tuple[str, str]]] = {
    "unschedulable": ({"state": {}, "phase": "Pending", "log": None, "node": None}, "FailedScheduling", "0/12 nodes are available: 12 Insufficient nvidia.com/gpu.", {}, ("failed", "launch-failure")),
    "mount": ({"state": k.waiting("ContainerCreating"), "phase": "Pending", "log": None}, "FailedMount", 'MountVolume.SetUp failed for volume "data" : mount failed: exit status 32\nOutput: mount.nfs: Connection timed out', {}, ("failed", "launch-failure")),
    "preempted": ({"state": k.over(143)}, "Preempted", "Preempted by pod 3c2b on node gpu-1", {"warning": False}, ("interrupted", "preempted")),
}  # fmt: skip


@pytest.mark.parametrize("name", EVENTS)
def test_events_tell_what_states_do_not(server: ApiServer, parts: Parts, name: str) -> None:
    how, reason, message, more, expected = EVENTS[name]
    _, pod = of_job(server, **how)
    server.add(k.event(pod, reason, message, **more))
    assert told(diagnosed(parts, Wanted(job="train"))) == (*expected, ())


def test_a_container_whose_liveness_probe_failed(server: ApiServer, parts: Parts) -> None:
    _, pod = of_job(server, state=k.running("2026-11-30T08:21:00Z"), last=k.over(137), phase="Running", log=None)
    server.logs["ml", "train-x7k2p", "main", True] = STEPS
    server.add(k.event(pod, "Killing", "Container main failed liveness probe, will be restarted", warning=False))
    found = diagnosed(parts, Wanted(job="train"))
    assert (found.outcome, found.status) == ("failed", "unknown")
    assert "exit code 137" in found.root_cause and "liveness probe had failed" in found.root_cause
    assert "the run before it, which ended with Error, exit code 137, is diagnosed" in found.account[1]


def test_what_was_overcome_before_the_containers_ran_is_no_cause(server: ApiServer, parts: Parts) -> None:
    _, pod = of_job(server, GIVEN_UP, log=STEPS + RAISED)
    early = {"at": "2026-11-30T06:59:30Z"}
    server.add(k.event(pod, "FailedScheduling", "0/12 nodes are available: 12 Insufficient nvidia.com/gpu.", **early))
    server.add(k.event(pod, "FailedMount", 'MountVolume.SetUp failed for volume "data" : timed out', **early))
    found = diagnosed(parts, Wanted(job="train"))
    assert found.failure_type == "key-error"
    assert {e.signature for e in found.evidence}.isdisjoint({"k8s.unschedulable", "k8s.mount"})


# ------------------------------------------------------------------------------------------ jobs of many pods
def training(server: ApiServer, *ends: Json, state: str = "Failed") -> tuple[Json, list[Json]]:
    """A PyTorchJob: a master and workers, each on a node of its own."""
    job = k.job("PyTorchJob", "train", k.condition(state, reason=f"PyTorchJob{state}", message="PyTorchJob train is failed because 1 Worker replica(s) failed."))  # fmt: skip
    pods = []
    for rank, end in enumerate(ends):
        kind, index = ("worker", rank - 1) if rank else ("master", 0)
        labels = {
            TRAINING + "job-name": "train",
            TRAINING + "replica-type": kind,
            TRAINING + "replica-index": str(index),
        }
        own = k.container(
            "pytorch",
            end,
            env=[{"name": "RANK", "value": str(rank)}, {"name": "API_KEY", "value": "sk-not-to-be-kept"}],
        )
        pods.append(k.pod(f"train-{kind}-{index}", own, labels=labels, owner=job, node=f"gpu-{rank}"))
        server.logs["ml", pods[-1]["metadata"]["name"], "pytorch", False] = STEPS
    server.add(job, *pods, *(k.node(f"gpu-{rank}") for rank in range(len(ends))))
    return job, pods


def test_ranks_and_nodes_are_those_of_the_pods(server: ApiServer, parts: Parts) -> None:
    training(server, k.over(1), k.over(1, finished="2026-11-30T08:10:00Z"), k.over(1))
    server.logs["ml", "train-worker-0", "pytorch", False] = STEPS + RAISED
    server.logs["ml", "train-master-0", "pytorch", False] = (
        STEPS * 2
        + b"torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error\n"
    )
    found = diagnosed(parts, Wanted(job="train"))
    first = found.evidence[0]
    assert (found.failure_type, first.file, first.rank, first.node) == (
        "key-error",
        "train-worker-0_pytorch.log",
        1,
        "gpu-1",
    )
    assert {e.rank for e in found.evidence if e.file.startswith("train-master")} == {0}
    assert found.nodes == ("gpu-1", "gpu-0", "gpu-2")
    assert (
        found.account[0]
        == "PyTorchJob ml/train: Failed, reason PyTorchJobFailed, 3 pods (3 Failed), on 3 nodes, ran 1:20:00"
    )


def test_of_one_pod_of_many_that_alone_is_read(server: ApiServer, parts: Parts) -> None:
    training(server, k.over(1), k.over(137, "OOMKilled"))
    found = diagnosed(parts, Wanted(pod="train-worker-0"))
    assert (found.evidence[0].rank, f"{found.evidence[0].time:%H:%M}") == (1, "08:20")
    assert (found.failure_type, found.files) == (
        "host-out-of-memory",
        ("train-worker-0_pytorch.log", "kubernetes-train-worker-0.txt"),
    )
    assert (found.evidence[0].node, found.job) == ("gpu-1", "ml/train")


def test_what_is_kept_holds_no_secret_of_the_pods(server: ApiServer, tmp_path: Path) -> None:
    training(server, k.over(1))
    server.logs["ml", "train-master-0", "pytorch", False] = (
        b"export AWS_SECRET_ACCESS_KEY=abcdEFGHijklMNOPqrstUVWXyz0123456789abcd\n"
    )
    with case(Wanted(job="train"), tmp_path):
        pass
    kept = [path for path in (tmp_path / "kubernetes").rglob("*") if path.is_file()]
    assert {path.name for path in kept} == {"train-master-0_pytorch.log", "kubernetes-train.txt"}
    text = "".join(path.read_text() for path in kept)
    assert "RANK" not in text and "sk-not-to-be-kept" not in text and "abcdEFGH" not in text
    assert not (tmp_path / "kubernetes").stat().st_mode & 0o007 or all(
        not p.parent.stat().st_mode & 0o077 for p in kept
    )


def test_a_job_of_the_same_name_before_this_one_is_left_out(server: ApiServer) -> None:
    job, _ = training(server, k.over(1), k.over(1))
    job["metadata"]["uid"] = k.uid("submitted again")
    server.add(job, k.pod("train-worker-7", labels={TRAINING + "job-name": "train"}, owner=job))
    server.logs["ml", "train-worker-7", "main", False] = STEPS
    with case(Wanted(job="train")) as one:
        assert one.asked and [item.name for item in one.asked.inputs] == ["train-worker-7_main.log"]
        assert "2 of the pods are of an earlier job of the same name and were left out" in one.notes


def test_the_last_attempt_of_a_plain_job_is_diagnosed(server: ApiServer) -> None:
    job = k.batch_job("train", GIVEN_UP)
    labels = {"job-name": "train"}
    for n in range(3):
        server.add(
            k.pod(
                f"train-{n}aaaa",
                k.container(state=k.over(n + 1)),
                labels=labels,
                owner=job,
                created=f"2026-11-30T07:0{n}:00Z",
            )
        )
        server.logs["ml", f"train-{n}aaaa", "main", False] = STEPS
    server.add(job)
    with case(Wanted(job="train")) as one:
        assert one.asked and [item.name for item in one.asked.inputs] == ["train-2aaaa_main.log"]
        assert one.asked.said[1] == "attempt 3 of the same place is train-2aaaa; before it: train-0aaaa (Failed, Error, exit code 1), train-1aaaa (Failed, Error, exit code 2)"  # fmt: skip


def test_logs_of_other_runs_are_kept_beside(server: ApiServer, tmp_path: Path) -> None:
    of_job(server, GIVEN_UP, last=k.over(1))
    server.logs["ml", "train-x7k2p", "main", True] = b"of the run before\n"
    with case(Wanted(job="train"), tmp_path) as one:
        assert one.asked and [item.name for item in one.asked.inputs] == ["train-x7k2p_main.log"]
        (kept,) = (tmp_path / "kubernetes").rglob("*.previous.log")
        assert kept.read_text().endswith("of the run before\n")
        assert one.asked.said[-1] == f"logs of other runs of the same containers are kept in {kept.parent}"


@pytest.mark.parametrize(
    ("kind", "api", "labels", "word"),
    [
        ("MPIJob", "kubeflow.org/v2beta1", {TRAINING + "job-name": "train"}, "mpijob"),
        ("JobSet", "jobset.x-k8s.io/v1alpha2", {"jobset.sigs.k8s.io/jobset-name": "train"}, "jobset"),
        ("Job", "batch.volcano.sh/v1alpha1", {"volcano.sh/job-name": "train"}, "vcjob"),
        ("RayJob", "ray.io/v1", {}, ""),
    ],
)
def test_jobs_of_other_kinds(server: ApiServer, kind: str, api: str, labels: dict[str, str], word: str) -> None:
    job = k.job(kind, "train", api=api)
    server.add(k.pod("train-main-0", labels=labels, owner=job), k.pod("other-0", labels={"job-name": "other"}))
    if word:
        server.add(job, k.batch_job("train"))
    server.logs["ml", "train-main-0", "main", False] = STEPS
    with case(Wanted(job=f"{word}/train" if word else "train")) as one:
        assert one.asked and [item.name for item in one.asked.inputs] == ["train-main-0_main.log"]
    if word:
        with (
            pytest.raises(UsageError, match=f"is of several kinds: {word}/train, job/train"),
            case(Wanted(job="train")),
        ):
            pass


# ------------------------------------------------------------------------------------------ what is left, or not allowed
def test_what_may_not_be_read_is_said_and_the_rest_used(server: ApiServer, parts: Parts) -> None:
    of_job(server, GIVEN_UP, log=STEPS + RAISED)
    server.forbidden = {"events", "nodes"}
    found = diagnosed(parts, Wanted(job="train"))
    assert found.failure_type == "key-error"
    refused = [note.partition(":")[0] for note in found.missing]
    assert refused == ["the events of namespace ml were not read", "the nodes were not read", "the events of the nodes were not read"]  # fmt: skip


def test_a_job_that_may_not_be_read_is_found_by_its_pods(server: ApiServer, parts: Parts) -> None:
    of_job(server, log=STEPS + RAISED)
    server.forbidden = {"jobs", "pytorchjobs", "mpijobs", "jobsets"}
    found = diagnosed(parts, Wanted(job="train"))
    assert found.failure_type == "key-error" and found.missing[0].startswith(
        "no job was read of pytorchjobs.kubeflow.org"
    )
    server.forbidden.add("pods")
    with (
        pytest.raises(InputError, match=r"job ml/train cannot be read: .*pods is forbidden"),
        case(Wanted(job="train")),
    ):
        pass


def test_of_a_job_that_was_deleted_its_events_are_left(server: ApiServer, parts: Parts) -> None:
    job = k.job("PyTorchJob", "train")
    gone, strange = k.pod("train-worker-0", owner=job), k.pod("train-2-worker-0")
    server.add(k.event(gone, "Killing", "Stopping container pytorch", warning=False))
    server.add(k.event(strange, "BackOff", "Back-off restarting failed container"))
    found = diagnosed(parts, Wanted(job="train"))
    assert told(found) == ("interrupted", "cancelled", ())
    assert "it was deleted while its containers ran" in found.root_cause


def test_of_a_job_whose_pods_are_gone_its_conditions_are_left(server: ApiServer, parts: Parts) -> None:
    server.add(k.batch_job("train", k.condition("Failed", reason="DeadlineExceeded", message="Job was active longer than specified deadline")))  # fmt: skip
    found = diagnosed(parts, Wanted(job="train"))
    assert told(found)[:2] == ("interrupted", "time-limit")
    assert "no pod of the job is there, and so no log" in found.missing[0]


def test_pods_that_could_not_be_created(server: ApiServer, parts: Parts) -> None:
    job = k.batch_job("train")
    server.add(job, k.event(job, "FailedCreate", 'Error creating: pods "train-" is forbidden: error looking up service account ml/trainer: serviceaccount "trainer" not found'))  # fmt: skip
    assert told(diagnosed(parts, Wanted(job="train")))[:2] == ("failed", "launch-failure")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda s: None, "job ml/train is not there"),
        (lambda s: of_job(s, state=k.waiting("ContainerCreating"), phase="Pending", log=None), "has not begun: Pending"),
        (lambda s: s.add(k.batch_job("train", k.condition("Suspended"))), "is suspended"),
        (lambda s: s.add(k.event(k.pod("train-x7k2p"), "Started", "Started container", warning=False)), "no event tells how it ended"),
    ],
)  # fmt: skip
def test_what_cannot_be_diagnosed_is_one_line(server: ApiServer, make: Callable[[ApiServer], Any], words: str) -> None:
    make(server)
    with pytest.raises(InputError, match=words), case(Wanted(job="train")):
        pass


def test_what_runs_is_not_recorded(server: ApiServer) -> None:
    of_job(server, state=k.running(), phase="Running")
    with case(Wanted(job="train")) as one:
        assert one.live and "it still runs" in one.asked.said[1] if one.asked else False


def test_only_what_reads_is_asked(server: ApiServer, tmp_path: Path) -> None:
    training(server, k.over(1), k.over(1))
    with case(Wanted(job="train"), tmp_path):
        pass
    assert server.asked and not server.methods
    assert not any("secret" in path or "configmap" in path for path in server.asked)


# ------------------------------------------------------------------------------------------ the command
def test_the_command(triage: Run, server: ApiServer, tmp_path: Path) -> None:
    of_job(server, GIVEN_UP, log=STEPS + RAISED)
    home = {"KUBECONFIG": str(tmp_path / "config"), "TRIAGE_HOME": str(tmp_path / "home")}
    done = triage("diagnose", "-n", "ml", "--k8s-job", "job/train", "--llm", "off", "--format", "json", **home)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["failure_type"], found["job"], found["incident"]) == ("key-error", "ml/train", 1)
    assert triage("incidents", "show", "1", "--format", "json", **home).returncode == 0
    offline = triage("diagnose", "--pod", "train-x7k2p", "--llm", "off", TRIAGE_OFFLINE="1", **home)
    assert offline.returncode == 2 and "TRIAGE_OFFLINE=1 bars every connection" in offline.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--pod", "a", "--k8s-job", "b"), "--pod and --k8s-job exclude each other"),
        (("--job", "1", "--pod", "a"), "give one of them"),
        (("x.log", "-n", "ml"), "--namespace and --context go with --pod or --k8s-job"),
        (("--pod", "No Pod"), "'No Pod' is no pod of Kubernetes"),
    ],
)
def test_options_that_do_not_fit(triage: Run, args: tuple[str, ...], words: str) -> None:
    done = triage("diagnose", *args, "--llm", "off")
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
