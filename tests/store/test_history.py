"""What earlier incidents say to a new one, on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.store.samples import ECC, OOM, as_json
from triage.domain import Diagnosis, Progress, Suspects
from triage.store.history import HistoryReader
from triage.store.incidents import IncidentStore
from triage.store.values import JobRef, Verdict


def record(store: IncidentStore, d: Diagnosis, **progress: int) -> int:
    document = as_json(d)
    return store.record(d, {**document, "progress": {**document.get("progress", {}), **progress}})


def test_the_same_failure_comes_back_newest_first_with_step_and_nodes(store: IncidentStore) -> None:
    first = record(store, ECC, last_step=100, world_size=8)
    record(store, OOM, last_step=7)
    second = record(store, replace(ECC, suspects=Suspects(nodes=("gpu-099",))), last_step=200)
    found = HistoryReader(store._engine).history(ECC.fingerprint)
    assert [(p.incident, p.last_step, p.world_size, p.nodes) for p in found.same] == [
        (second, 200, None, ("gpu-099",)),
        (first, 100, 8, ECC.suspects.nodes),
    ]
    assert found.same[0].first_line == ECC.evidence[0].text
    assert found.of_nodes == {}


def test_nodes_that_were_suspects_are_named_and_others_not(store: IncidentStore) -> None:
    node = ECC.suspects.nodes[0]
    one, two = record(store, ECC), record(store, replace(ECC, fingerprint="other"))
    record(store, replace(ECC, suspects=Suspects(), fingerprint="third"))  # its evidence names the node all the same
    found = HistoryReader(store._engine).history("new", (node, "gpu-500"))
    assert found.of_nodes == {node: (two, one)}
    assert found.same == ()


def test_what_a_person_rejected_does_not_count(store: IncidentStore) -> None:
    incident = record(store, ECC)
    store.resolve(incident, Verdict("rejected", "me"))
    found = HistoryReader(store._engine).history(ECC.fingerprint, ECC.suspects.nodes)
    assert (found.same, found.of_nodes) == ((), {})


def test_without_a_fingerprint_nothing_is_the_same(store: IncidentStore) -> None:
    record(store, replace(ECC, fingerprint=""))
    assert HistoryReader(store._engine).history("").same == ()


def test_of_an_array_of_many_tasks_the_newest_are_looked_at(store: IncidentStore) -> None:
    for task in range(1, 31):
        job = JobRef(f"4711_{task}", owner="ada")
        store.file(replace(ECC, progress=Progress(last_step=task)), as_json(ECC), job, window=timedelta(days=1))
    found = HistoryReader(store._engine).history(ECC.fingerprint, ["gpu-017"])
    assert (len(found.same), len(found.of_nodes["gpu-017"])) == (20, 20)
    assert found.seen is not None and found.seen.same_job + found.seen.other_jobs == 30, "all are counted"
