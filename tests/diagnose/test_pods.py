"""What kubectl prints, read by pod, container and time."""

from __future__ import annotations

import pytest

from tests.diagnose.conftest import Diagnose

ERROR = (
    "".join(f"step {i} loss 2.{i}\n" for i in range(1, 9))
    + 'Traceback (most recent call last):\n  File "/w/t.py", line 3, in step\n    x = batch["y"]\nKeyError: \'y\'\n'
)
WELL = "".join(f"step {i} loss 2.{i}\n" for i in range(1, 9)) + "Training complete\n"
DESCRIBE = """Name:             bert-worker-2
Namespace:        nlp
Node:             pool-7-x9/10.1.0.7
Status:           Failed
Containers:
  logship:
    State:          {shipper}
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Finished:     Fri, 01 May 2026 09:10:00 +0000
    Ready:          True
  main:
    State:          Terminated
      Reason:       {reason}
      Exit Code:    {code}
      Finished:     Fri, 01 May 2026 10:10:00 +0000
    Ready:          False
"""
EVENTS = """LAST SEEN   TYPE      REASON         OBJECT                MESSAGE
{age}         Warning   FailedMount    pod/{pod}     MountVolume.SetUp failed for volume "data" : timed out waiting for the condition
50m         Normal    Started        pod/bert-0            Started container main
"""


def test_a_sidecar_that_lives_on_is_not_the_cause(diagnosed: Diagnose) -> None:
    text = DESCRIBE.format(shipper="Running", reason="Error", code=1)
    d = diagnosed({"describe.txt": text, "bert-worker-2.log": ERROR})
    assert d.failure_type == "key-error"


def test_the_container_that_was_killed_is(diagnosed: Diagnose) -> None:
    text = DESCRIBE.format(shipper="Running", reason="OOMKilled", code=137)
    d = diagnosed({"describe.txt": text, "bert-worker-2.log": WELL.replace("Training complete\n", "")})
    assert d.failure_type == "host-out-of-memory"
    assert next(e.line for e in d.evidence if e.role == "root") == 15


def test_a_single_container_that_was_killed_before_its_restart_is(diagnosed: Diagnose) -> None:
    text = DESCRIBE.format(shipper="Waiting", reason="", code=0).split("  main:")[0]
    assert diagnosed({"describe.txt": text}).failure_type == "host-out-of-memory"


@pytest.mark.parametrize(("pod", "kind"), [("prometheus-0", "key-error"), ("bert-1", "host-out-of-memory")])
def test_of_a_list_of_pods_only_the_jobs_own_count(diagnosed: Diagnose, pod: str, kind: str) -> None:
    table = f"NAME            READY   STATUS      RESTARTS   AGE\nbert-0          0/1     Error       0          2h\n{pod}    0/1     OOMKilled   4          9d\n"
    assert diagnosed({"pods.txt": table, "bert-0.log": ERROR}).failure_type == kind


@pytest.mark.parametrize(
    ("age", "pod", "outcome"),
    [
        ("61m", "bert-0", "healthy"),
        ("58m (x3 over 60m)", "bert-0", "healthy"),
        ("2m", "other-0", "healthy"),
        ("2m", "bert-0", "failed"),
    ],
)
def test_events_of_before_the_start_and_of_other_pods_are_past(
    diagnosed: Diagnose, age: str, pod: str, outcome: str
) -> None:
    assert diagnosed({"events.txt": EVENTS.format(age=age, pod=pod), "bert-0.log": WELL}).outcome == outcome


def test_the_node_is_that_to_which_the_pod_was_assigned(diagnosed: Diagnose) -> None:
    text = (
        "LAST SEEN   TYPE      REASON          OBJECT         MESSAGE\n"
        "10m         Normal    Scheduled       pod/bert-0     Successfully assigned nlp/bert-0 to pool-7-x9.example.internal\n"
        "10m         Normal    Scheduled       pod/bert-1     Successfully assigned nlp/bert-1 to pool-8-y2.example.internal\n"
        "3m          Warning   NodeNotReady    pod/bert-0     Node is not ready\n"
    )
    d = diagnosed({"events.txt": text})
    assert (d.failure_type, d.suspects.nodes, d.action) == (
        "node-failure",
        ("pool-7-x9.example.internal",),
        "restart-excluding",
    )
