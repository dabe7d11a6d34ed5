"""Runs that went well: kept with their incident, the last few of a kind, and none that is no longer held for healthy."""

from __future__ import annotations

import dataclasses

from tests.store.samples import ECC, JOB, OTHER_JOB, as_json
from triage.store.good_runs import KEPT, GoodRunStore
from triage.store.incidents import IncidentStore

WELL = dataclasses.replace(ECC, outcome="healthy", failure_type="healthy", fingerprint="")
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


def test_the_newest_of_a_kind_is_found_and_only_the_last_few_are_kept(url: str) -> None:
    with IncidentStore.open(url) as incidents, GoodRunStore.open(url) as store:
        ids = [incidents.record(WELL, as_json(WELL)) for _ in range(KEPT + 2)]
        for number in ids:
            store.add(JOB, number, {"n": number, "text": f"key {SECRET}"})
        store.add(OTHER_JOB, incidents.record(WELL, as_json(WELL)), {"n": -1})

        found = store.last([JOB.key])
        assert found is not None
        assert (found.incident, found.profile["n"]) == (ids[-1], ids[-1])
        assert SECRET not in str(found.profile)
        assert {job.key for job in store.jobs()} == {JOB.key, OTHER_JOB.key}
        assert store.last(["unknown"]) is None
        with store._engine.connect() as connection:
            kept = connection.exec_driver_sql("SELECT count(*) FROM good_run").scalar_one()
        assert kept == KEPT + 1


def test_a_run_that_turned_out_to_have_failed_is_no_good_run(url: str) -> None:
    with IncidentStore.open(url) as incidents, GoodRunStore.open(url) as store:
        number = incidents.record(WELL, as_json(WELL))
        store.add(JOB, number, {"n": 1})
        store.add(JOB, number, {"n": 2})  # again: the later one counts
        found = store.last([JOB.key])
        assert found is not None
        assert found.profile == {"n": 2}
        incidents.revise(number, ECC, as_json(ECC))
        assert store.last([JOB.key]) is None
