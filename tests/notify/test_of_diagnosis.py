from __future__ import annotations

from dataclasses import replace

from triage.domain import Diagnosis, Evidence, Progress, Remedy, Suspects
from triage.notify import of_diagnosis
from triage.notify.message import MOST_BODY, clean

FOUND = Diagnosis(
    "failed", "gpu-lost", "hardware", "gpu", "established", "GPU 3 fell off the bus.", "drain-node",
    evidence=(
        Evidence("E1", "a.log", 7, "context", "context", ""),
        Evidence("E2", "b.dmesg", 9, "NVRM: Xid 79", "root", "gpu-lost"),
    ),
    suspects=Suspects(nodes=("gpu-042",), ranks=(3, 4, 5)),
    remediation=(Remedy("Drain it", "why", "reversible", "scontrol update ..."),),
    progress=Progress(last_step=41),
    incident=7, fingerprint="f00", job="4711_3",
)  # fmt: skip


def test_what_a_person_needs_at_night_is_there() -> None:
    told = of_diagnosis(FOUND, "## body")
    fields = dict(told.fields)
    assert (told.key, told.title, told.state, told.summary) == (
        "incident-7",
        "failed: gpu-lost",
        "failed",
        FOUND.root_cause,
    )
    assert (fields["job"], fields["suspect nodes"], fields["suspect ranks"], fields["last step"]) == (
        "4711_3",
        "gpu-042",
        "3-5",
        "41",
    )
    assert fields["evidence"] == "b.dmesg:9  NVRM: Xid 79"
    assert fields["what to do"] == "1. Drain it\n   scontrol update ..."
    assert told.body_markdown == "## body"


def test_tasks_of_an_array_that_fail_alike_are_one_message_and_another_failure_is_a_change() -> None:
    first = of_diagnosis(FOUND)
    assert of_diagnosis(replace(FOUND, job="4711_4", status="supported", attempt=2)).digest == first.digest
    assert of_diagnosis(replace(FOUND, failure_type="node-down")).digest != first.digest
    assert of_diagnosis(replace(FOUND, outcome="hung")).digest != first.digest


def test_without_a_record_the_failure_itself_is_the_key() -> None:
    assert of_diagnosis(replace(FOUND, incident=None)).key == "failure-f00"


def test_a_body_is_cut_to_what_trackers_take() -> None:
    assert len(clean(of_diagnosis(FOUND, "x" * 200_000)).body_markdown) == MOST_BODY
