"""Recorded incidents as past ones, read in parts, on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from sqlalchemy import delete

from tests.store.samples import ECC, OOM, as_json
from triage.domain import Diagnosis, Misled, Similar
from triage.store import engine, tables
from triage.store.incidents import IncidentStore
from triage.store.known import KnownReader
from triage.store.values import Verdict


@pytest.fixture
def reader(store: IncidentStore) -> KnownReader:
    return KnownReader(store._engine)


def record(store: IncidentStore, d: Diagnosis) -> int:
    return store.record(d, as_json(d))


HEALTHY = replace(ECC, outcome="healthy", failure_type="healthy")
XID = ECC.evidence[0].text


def test_an_incident_tells_what_its_cause_looks_like(store: IncidentStore, reader: KnownReader) -> None:
    incident = record(store, ECC)
    (found,) = reader.read([incident, 99, -1, 1 << 40])
    assert (found.incident, found.version, found.fingerprint) == (incident, 1, "f3c0ffee")
    assert reader.keys() == (found.key,) and found.key.startswith(f"{incident}.1.")
    assert (found.story.id, found.story.failure_type, found.story.outcome) == (str(incident), "ecc-error", "none")
    assert (found.story.error_strings, found.story.symptoms) == ((XID,), "double-bit ECC error"), "the root lines alone"
    assert found.signatures == ("xid-48",)
    assert (found.past.first_line, found.worked, found.fix, found.told_at) == (XID, "unknown", "", None)
    assert isinstance(found.past.at, datetime) and found.past.at.tzinfo is not None


def test_the_latest_verdict_and_reading_stand(store: IncidentStore, reader: KnownReader) -> None:
    incident = record(store, ECC)
    store.resolve(incident, Verdict("rejected", "me", note="no"))
    store.resolve(incident, Verdict("confirmed", "me", fix="swapped the GPU", worked="yes", note="quiet since"))
    store.revise(incident, replace(ECC, root_cause="Read anew."), as_json(replace(ECC, root_cause="Read anew.")))
    (found,) = reader.read([incident])
    assert (found.version, found.story.root_cause) == (2, "Read anew.")
    assert reader.keys() == (found.key,)
    assert (found.past.verdict, found.worked, found.fix, found.note) == (
        "confirmed", "yes", "swapped the GPU", "quiet since",
    )  # fmt: skip
    assert found.story.remediation == ("swapped the GPU",)


def test_fixes_that_did_not_work_are_kept_when_a_later_one_did(store: IncidentStore, reader: KnownReader) -> None:
    incident = store.record(ECC, as_json(ECC))
    for fix, worked in (("restarted", "no"), ("reseated", "no"), ("restarted", "no"), ("swapped", "yes")):
        store.resolve(incident, Verdict("confirmed", "me", cause="a riser", fix=fix, worked=worked))  # type: ignore[arg-type]
    (found,) = reader.read([incident])
    assert (found.cause, found.fix, found.in_vain) == ("a riser", "swapped", ("restarted", "reseated"))
    store.resolve(incident, Verdict("confirmed", "me", fix="reseated", worked="yes"))
    assert reader.read([incident])[0].in_vain == ("restarted",), "the last word of a fix counts"


def test_a_corrected_incident_has_the_labels_that_turned_out_true(store: IncidentStore, reader: KnownReader) -> None:
    incident = record(store, ECC)
    store.resolve(incident, Verdict("corrected", "me", cause="a loose riser", failure_type="gpu-lost", fix="reseated"))
    (found,) = reader.read([incident])
    assert (found.story.failure_type, found.story.root_cause_class, found.said_type) == ("gpu-lost", "", "ecc-error")
    assert (found.story.root_cause, found.story.outcome) == ("a loose riser", "corrected")
    assert found.story.remediation == (), "nobody said that it worked"
    assert reader.like("", "gpu-lost", (), 5) == (incident,), "found under what it was"


def test_candidates_come_by_fingerprint_signature_and_type(store: IncidentStore, reader: KnownReader) -> None:
    same = record(store, ECC)
    of_type = record(store, replace(ECC, fingerprint="other", evidence=()))
    other = replace(OOM, evidence=(replace(ECC.evidence[0], failure_type="out-of-memory"),))
    of_signature = record(store, other)
    record(store, OOM)
    record(store, HEALTHY)
    assert reader.like("f3c0ffee", "ecc-error", ("xid-48",), 9) == (same, of_signature, of_type)
    assert reader.like("", "unknown", (), 9) == ()


def test_of_many_the_newest_and_the_resolved_come(store: IncidentStore, reader: KnownReader) -> None:
    many = [record(store, ECC) for _ in range(9)]
    store.resolve(many[0], Verdict("confirmed", "me", worked="yes"))
    assert reader.like("f3c0ffee", "", (), 3) == (many[8], many[7], many[6], many[0])


def test_one_that_went_well_is_no_past_failure(store: IncidentStore, reader: KnownReader) -> None:
    healthy, failed = record(store, HEALTHY), record(store, ECC)
    (key,) = [r.key for r in reader.read([failed])]
    record(store, HEALTHY)
    assert (reader.count(), reader.keys(), reader.keys(1)) == (1, (key,), (key,))
    assert [r.incident for r in reader.read([healthy, failed])] == [failed]
    assert [r.incident for r in reader.after(0, 5)] == [failed]


def test_all_are_read_a_part_at_a_time(store: IncidentStore, reader: KnownReader) -> None:
    ids = [record(store, ECC) for _ in range(5)]
    assert [r.incident for r in reader.after(ids[1], 2)] == ids[2:4]
    assert set(reader.keys(2)) == {r.key for r in reader.read(ids[3:])}
    store.revise(ids[0], ECC, as_json(ECC))
    newest = {r.key for r in reader.read([ids[0], ids[4]])}
    assert set(reader.keys(2)) == newest, "an old one that was read anew is new"
    assert reader.after(ids[4], 2) == ()


def test_families_are_counted(store: IncidentStore, reader: KnownReader) -> None:
    record(store, OOM)
    ids = [record(store, ECC) for _ in range(3)]
    record(store, replace(HEALTHY, fingerprint=ECC.fingerprint))
    found = reader.families(["f3c0ffee", "never"])
    assert {name: family.times for name, family in found.items()} == {"f3c0ffee": 3}
    assert found["f3c0ffee"].last == store.get(ids[2]).summary.created_at
    assert reader.families([]) == {}


def test_what_was_shown_beside_a_wrong_diagnosis_misled(store: IncidentStore, reader: KnownReader) -> None:
    def shown(*names: str) -> Diagnosis:
        return replace(ECC, similar=tuple(Similar(name, name, 0.5, "alike") for name in names))

    first = record(store, shown("IL-1", "IL-2"))
    assert reader.misled("f3c0ffee") == {}, "nothing is known of it yet"
    store.resolve(first, Verdict("corrected", "me", cause="a riser", failure_type="gpu-lost"))
    assert reader.misled("f3c0ffee") == {"IL-1": Misled(first, "gpu-lost"), "IL-2": Misled(first, "gpu-lost")}
    second = record(store, shown("IL-2"))
    store.resolve(second, Verdict("confirmed", "me"))
    assert reader.misled("f3c0ffee") == {"IL-1": Misled(first, "gpu-lost")}, "the latest verdict counts"
    assert reader.misled("another") == reader.misled("") == {}


def test_a_deleted_incident_is_gone(store: IncidentStore, reader: KnownReader) -> None:
    incident = record(store, ECC)
    with engine.writing(store._engine) as connection:
        connection.execute(delete(tables.Incident).where(tables.Incident.id == incident))
    assert (reader.read([incident]), reader.keys(), reader.like("f3c0ffee", "ecc-error", ("xid-48",), 5)) == (
        (),
        (),
        (),
    )
