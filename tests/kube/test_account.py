"""What is said of a job, as lines that can be cited."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kube import objects as k
from triage.kube import account, read
from triage.kube.choose import Chosen, choose
from triage.kube.ranks import Ranks
from triage.kube.values import Condition, Event

EARLY, LATE = "2026-11-30T06:59:00Z", "2026-11-30T08:19:00Z"


def of_pods(*raw: dict[str, Any], events: tuple[Event, ...] = ()) -> str:
    pods = [read.pod(pod) for pod in raw]
    return account.of_pods(choose(None, pods), Ranks(pods), {pods[0].uid: events})


def event(reason: str, at: str, message: str = "so it is", warning: bool = True, count: int = 1) -> Event:
    return read.event(k.event(k.pod("train-0"), reason, message, warning=warning, at=at, count=count))


def test_a_pod_is_described_as_kubectl_does() -> None:
    main = k.container("main", k.over(137, "OOMKilled"), k.over(1), 3, resources={"limits": {"memory": "64Gi"}})
    text = of_pods(k.pod("train-0", main, message="two\nlines\x1b[2J"))
    assert text.splitlines()[:3] == ["Name:           train-0", "Namespace:      ml", "Node:           gpu-1"]
    assert "Message:        two lines\ufffd[2J" in text
    assert "    State:          Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n" in text
    assert "    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    1\n" in text
    assert "    Restart Count:  3\n    Limits:         memory=64Gi\n" in text


def test_what_a_container_came_through_is_left_out() -> None:
    text = of_pods(k.pod("train-0", k.container("fetch", k.over(0), k.over(1), init=True), k.container()))
    assert "Exit Code:    0" in text and "Last State" not in text and "Completed" not in text


def test_events_from_the_runs_that_are_looked_at_on() -> None:
    events = (
        event("Unhealthy", LATE, count=3),
        event("FailedScheduling", EARLY),
        event("Pulled", LATE, warning=False),
    )
    text = of_pods(k.pod("train-0"), events=events)
    assert "  2026-11-30T08:19:00Z  Warning  Unhealthy  kubelet  so it is (x3)\n" in text
    assert "FailedScheduling" not in text and "Pulled" not in text
    waits = k.pod("train-0", k.container(state=k.waiting("ContainerCreating")), phase="Pending")
    assert "FailedScheduling" in of_pods(waits, events=events)


def test_the_lines_of_a_state_are_of_its_end_and_those_of_events_of_their_own_time() -> None:
    text = of_pods(
        k.pod("train-0", k.container(state=k.over(1), last=k.over(2, finished=EARLY))), events=(event("Killing", LATE),)
    )
    stamps = account.stamps(text)
    at = {line.strip(): stamps.at(n) for n, line in enumerate(text.splitlines(), 1)}
    assert f"{at['Exit Code:    1']:%H:%M}" == "08:20" and f"{at['Exit Code:    2']:%H:%M}" == "06:59"
    assert at["Name:           train-0"] is None and at["Restart Count:  0"] is None
    assert [f"{when:%H:%M}" for line, when in at.items() if "Killing" in line and when] == ["08:19"]


@pytest.mark.parametrize(
    ("type_", "status", "bad"),
    [
        ("Ready", "True", False),
        ("Ready", "Unknown", True),
        ("Ready", "False", True),
        ("MemoryPressure", "False", False),
        ("MemoryPressure", "True", True),
        ("NetworkUnavailable", "True", True),
        ("KernelDeadlock", "False", False),
        ("GPUMissing", "True", True),
        ("AcceleratedHardwareReady", "False", True),
        ("AcceleratedHardwareReady", "True", False),
        ("GpuHealthy", "Unknown", False),
    ],
)
def test_which_conditions_of_a_node_ail_it(type_: str, status: str, bad: bool) -> None:
    assert account.ails(Condition(type_, status)) is bad


def test_of_nodes_what_began_while_the_job_ran() -> None:
    pods = [read.pod(k.pod("train-0"))]
    days_ago = k.condition("KernelDeadlock", reason="Docker", at="2026-11-01T00:00:00Z")
    now = k.condition("DiskPressure", reason="KubeletHasDiskPressure", at=LATE)
    taint = [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]
    node = read.node(k.node("gpu-1", days_ago, now, taints=taint, gpus=(7, 8)))
    text = account.of_nodes([node], ["gpu-2"], [], pods, None)
    assert "Node gpu-1 condition DiskPressure is True: KubeletHasDiskPressure" in text and "KernelDeadlock" not in text
    assert "node.kubernetes.io/disk-pressure:NoSchedule" in text and "7 of them are allocatable now" in text
    assert "Node gpu-2 is no longer in the cluster." in text
    assert account.of_nodes([read.node(k.node("gpu-1"))], [], [], pods, None) == ""


def test_nothing_is_said_of_nothing() -> None:
    assert account.of_pods(Chosen(), Ranks([]), {}) == ""
    assert account.of_job(None, (), (), "job ml/train") == ""


def test_the_year_in_which_go_begins_is_no_time() -> None:
    """And a number that is none of ours is no number."""
    zero = "0001-01-01T00:00:00Z"
    raw = k.pod("train-0")
    raw["metadata"]["creationTimestamp"] = raw["status"]["startTime"] = zero
    raw["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "\u00b2"}}
    pods = [read.pod(raw)]
    assert (pods[0].created, pods[0].started, pods[0].gpus) == (None, None, 0)
    told = event("NodeNotReady", zero)
    assert "NodeNotReady" in account.of_nodes([], [], [told], pods, None)
    assert "NodeNotReady" in of_pods(raw, events=(told,))
