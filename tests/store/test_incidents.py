"""What is recorded comes back, on both databases."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlalchemy as sa

import triage
from tests.store.samples import ECC, HUNG, OOM, PROMPTS, as_json
from triage.domain import Evidence, ModelCall, Suspects
from triage.errors import NotFoundError, StoreError, UsageError
from triage.store import schema, tables
from triage.store.incidents import IncidentStore
from triage.store.values import Feedback, Filters, IncidentSummary, JobRef, Verdict

JOB = JobRef(external_id="4711", name="pretrain-7b", scheduler="slurm", nodes=("gpu-016", "gpu-018"), gpu_hours=12.5)
FIRST = datetime(2026, 3, 1, 3, 0, 30, 250_000, UTC)


def rows(store: IncidentStore, table: type[tables.Base]) -> list[dict[str, object]]:
    with store._engine.connect() as connection:
        found = connection.execute(sa.select(table.__table__).order_by(table.__table__.c.id)).mappings()
        return [{k: v for k, v in row.items() if k not in ("id", "diagnosis_id", "incident_id")} for row in found]


def test_a_recorded_incident_comes_back(store: IncidentStore) -> None:
    incident = store.record(
        ECC, as_json(ECC), JOB, {"llm": "openai:small-1", "llm_api_key": "sk-1", "token_budget": 12000}
    )

    stored = store.get(incident)

    assert stored.summary == IncidentSummary(
        id=incident,
        created_at=FIRST,
        title="double-bit ECC error",
        outcome="failed",
        failure_type="ecc-error",
        category="infrastructure",
        root_cause_class="hardware-failure",
        status="established",
        action="restart-excluding",
        fingerprint="f3c0ffee",
        nodes=("gpu-017", "gpu-016", "gpu-018"),
        job="4711",
        gpu_hours=12.5,
        last_seen=FIRST,
    )
    assert stored.id == incident
    assert (stored.version, stored.diagnosed_at, stored.tool_version) == (1, FIRST, triage.__version__)
    assert stored.job == dataclasses.replace(JOB, nodes=stored.summary.nodes)
    assert stored.settings == {"llm": "openai:small-1", "token_budget": "12000"}


def test_the_stored_result_is_the_recorded_one_with_its_id(store: IncidentStore) -> None:
    given = json.loads(json.dumps(as_json(ECC)))
    incident = store.record(ECC, given)

    result = store.get(incident).result

    assert result == {**given, "incident": incident}
    assert list(result) == list(given)  # the order of the keys as well
    assert given["incident"] is None  # the caller's own object is left as it was


def test_times_are_utc_whatever_zone_they_came_in(store: IncidentStore) -> None:
    store.record(ECC, as_json(ECC))

    first = rows(store, tables.Evidence)[0]

    assert first["time"] == datetime(2026, 3, 1, 2, 45, 2, 123_456, UTC)
    assert first["time"].tzinfo is UTC
    assert store.list()[0].created_at.tzinfo is UTC


def test_every_part_has_its_rows(store: IncidentStore) -> None:
    store.record(ECC, as_json(ECC), JOB)

    assert rows(store, tables.Evidence)[1] == {
        "ref": "E2",
        "file": "rank_12.log",
        "line": 90_211,
        "text": ECC.evidence[1].text,
        "role": "cascade",
        "failure_type": "nccl-timeout",
        "title": "",
        "signature": "nccl-watchdog",
        "rank": 12,
        "node": "gpu-016",
        "gpu": None,
        "time": None,
        "repeats": 63,
    }
    assert [(h["position"], h["supporting"], h["against"], h["check"]) for h in rows(store, tables.Hypothesis)] == [
        (1, '["E1"]', "[]", "nvidia-smi -q -d ECC"),
        (2, '["E2"]', '["E1"]', ""),
    ]
    assert [(s["kind"], s["name"]) for s in rows(store, tables.Suspect)] == [
        ("node", "gpu-017"),
        ("rank", "24"),
        ("rank", "25"),
        ("gpu", "3"),
    ]
    assert [(s["incident"], s["score"], s["outcome"]) for s in rows(store, tables.SimilarShown)] == [
        ("IL-0125", 0.82, "confirmed")
    ]
    assert [(r["position"], r["risk"], r["incidents"]) for r in rows(store, tables.RemediationStep)] == [
        (1, "reversible", "[]"),
        (2, "reversible", '["IL-0125"]'),
    ]
    assert rows(store, tables.PromptUsed) == [{"position": 1, **PROMPTS[0], "version": "3"}]
    assert [(n["node"], n["suspect"]) for n in rows(store, tables.IncidentNode)] == [
        ("gpu-017", True),
        ("gpu-016", False),
        ("gpu-018", False),
    ]
    diagnosis = rows(store, tables.Diagnosis)[0]
    assert (diagnosis["produced_by"], diagnosis["timing"], diagnosis["usage"]) == (
        "llm:small-1",
        '{"ingest":0.25}',
        '{"calls":1,"tokens_in":900}',
    )


def test_a_requeued_job_is_one_job_with_two_incidents(store: IncidentStore) -> None:
    for job in (JOB, dataclasses.replace(JOB, gpu_hours=3.0), None):
        store.record(OOM, as_json(OOM), job)

    assert [row["external_id"] for row in rows(store, tables.Job)] == ["4711"]
    assert [(s.job, s.gpu_hours) for s in store.list()] == [("", None), ("4711", 3.0), ("4711", 12.5)]


def test_a_job_without_id_is_shown_by_its_name(store: IncidentStore) -> None:
    store.record(OOM, as_json(OOM), JobRef(name="finetune"))

    assert store.list()[0].job == "finetune"


@pytest.fixture
def three(store: IncidentStore) -> IncidentStore:
    """1: ECC error on gpu-017 at 03:00:30; 2: out of memory at 03:01:30; 3: hung at 03:02:30."""
    for diagnosis in (ECC, OOM, HUNG):
        store.record(diagnosis, as_json(diagnosis))
    return store


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, [3, 2, 1]),
        ({"outcome": "failed"}, [2, 1]),
        ({"failure_type": "hang"}, [3]),
        ({"node": "gpu-017"}, [1]),
        ({"node": "gpu-01"}, []),
        ({"since": datetime(2026, 3, 1, 3, 1, 30, 250_000, UTC)}, [3, 2]),
        ({"since": datetime(2026, 3, 1, 8, 32, 0, 0, timezone(timedelta(hours=5, minutes=30)))}, [3]),
        ({"text": "RANK 7"}, [3]),
        ({"text": "dbe (double"}, [1]),
        ({"text": "batch"}, [2]),
        ({"text": "ECC"}, [1]),
        ({"text": "100 %"}, [1]),
        ({"text": "%"}, [1]),
        ({"text": "_"}, []),
        ({"text": "\0\udcff"}, []),
        ({"node": "\0\udcff"}, []),
        ({"outcome": "failed", "failure_type": "out-of-memory"}, [2]),
    ],
)
def test_filters(three: IncidentStore, filters: dict[str, object], found: list[int]) -> None:
    assert [s.id for s in three.list(Filters(**filters))] == found


def test_a_page_of_a_list(three: IncidentStore) -> None:
    assert [s.id for s in three.list(limit=2)] == [3, 2]
    assert [s.id for s in three.list(limit=2, offset=2)] == [1]


def test_equal_failures_are_counted(three: IncidentStore) -> None:
    three.record(ECC, as_json(ECC))

    assert three.count_fingerprint("f3c0ffee") == 2
    assert three.count_fingerprint("other") == 0
    assert three.count_fingerprint("") == 0  # two others have none, which does not make them alike


def test_a_later_reading_is_a_new_version(store: IncidentStore) -> None:
    incident = store.record(OOM, as_json(OOM))

    assert store.revise(incident, ECC, as_json(ECC)) == 2

    latest, first = store.get(incident), store.get(incident, version=1)
    assert (latest.version, latest.result["failure_type"]) == (2, "ecc-error")
    assert (first.version, first.result["failure_type"]) == (1, "out-of-memory")
    assert [(s.id, s.failure_type) for s in store.list()] == [(incident, "ecc-error")]


def test_verdicts_are_kept_in_order(store: IncidentStore, clock) -> None:
    incident = store.record(ECC, as_json(ECC))
    wrong = Verdict(
        "corrected", "ada", via="chat", cause="the riser card", fix="reseated", worked="yes", note="third time"
    )
    store.resolve(incident, Verdict("confirmed", "bob"))
    store.resolve(incident, wrong)

    found = store.get(incident)

    assert [v.verdict for v in found.verdicts] == ["confirmed", "corrected"]
    assert found.verdicts[1] == dataclasses.replace(
        wrong, at=clock.now, failure_type="ecc-error", root_cause_class="hardware-failure", version=1
    )
    assert found.summary.verdict == "corrected"


def test_a_correction_stands_beside_what_triage_said(store: IncidentStore) -> None:
    incident = store.record(ECC, as_json(ECC))
    store.revise(incident, ECC, as_json(ECC))
    kept = store.resolve(incident, Verdict("corrected", "ada", failure_type="nvlink-error"))

    found = store.get(incident)

    assert (found.summary.failure_type, found.summary.root_cause_class) == ("ecc-error", "hardware-failure")
    assert (found.summary.true_type, found.summary.true_class) == ("nvlink-error", "")
    assert found.result["failure_type"] == "ecc-error"
    assert found.verdicts == (kept,)
    assert kept.version == 2


def test_a_verdict_is_of_the_diagnosis_that_was_seen(store: IncidentStore) -> None:
    incident = store.record(ECC, as_json(ECC))
    store.revise(incident, OOM, as_json(OOM))
    seen = store.resolve(incident, Verdict("confirmed", "ada", version=1))

    assert (seen.version, seen.failure_type) == (1, "ecc-error"), "what came while she looked at it is another"
    assert store.resolve(incident, Verdict("confirmed", "ada")).failure_type == "out-of-memory"
    with pytest.raises(NotFoundError, match="incident 1 has no diagnosis 3"):
        store.resolve(incident, Verdict("confirmed", "ada", version=3))


def test_the_latest_verdict_tells_what_it_was(store: IncidentStore) -> None:
    incident = store.record(ECC, as_json(ECC))
    told = []
    for verdict in (
        Verdict("confirmed", "ada"),
        Verdict("corrected", "bob", failure_type="hang", root_cause_class="unknown"),
        Verdict("rejected", "eve"),
    ):
        store.resolve(incident, verdict)
        summary = store.list()[0]
        told.append((summary.verdict, summary.true_type, summary.true_class))

    assert told == [
        ("confirmed", "ecc-error", "hardware-failure"),
        ("corrected", "hang", "unknown"),
        ("rejected", "", ""),
    ]
    assert len(store.get(incident).verdicts) == 3


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict("confirmed", "ada", failure_type="hang"),
        Verdict("confirmed", "ada", root_cause_class="unknown"),
        Verdict("corrected", "ada"),
        Verdict("corrected", "ada", cause=" ", failure_type="ecc-error"),
        Verdict("corrected", "ada", cause=ECC.root_cause),
        Verdict("rejected", "ada", fix="rebooted", worked="yes"),
        Verdict("confirmed", "ada", note="x" * 4001),
        Verdict("wrong", "ada"),  # type: ignore[arg-type]
    ],
)
def test_a_verdict_that_contradicts_itself_is_not_kept(store: IncidentStore, verdict: Verdict) -> None:
    incident = store.record(ECC, as_json(ECC))

    with pytest.raises(
        UsageError, match=r"a (confirmed|corrected|rejected) diagnosis|the note has 4,001|the verdict 'wrong'"
    ):
        store.resolve(incident, verdict)

    assert store.get(incident).verdicts == ()


@pytest.mark.parametrize("missing", [0, 99, -1, 2**31, 2**70])
def test_an_incident_that_is_not_there(store: IncidentStore, missing: int) -> None:
    store.record(ECC, as_json(ECC))

    with pytest.raises(NotFoundError, match=f"no incident {missing}; see: triage incidents list"):
        store.get(missing)
    with pytest.raises(NotFoundError):
        store.revise(missing, ECC, as_json(ECC))
    with pytest.raises(NotFoundError):
        store.resolve(missing, Verdict("confirmed", "ada"))
    with pytest.raises(NotFoundError, match="incident 1 has no diagnosis 2; see: triage incidents show 1"):
        store.get(1, version=2)
    with pytest.raises(NotFoundError, match="incident 1 has no diagnosis 99999999999999999999"):
        store.get(1, version=99_999_999_999_999_999_999)


def test_what_no_database_holds_is_replaced_not_refused(store: IncidentStore) -> None:
    odd = dataclasses.replace(
        ECC,
        root_cause="nul \0 here",
        evidence=(
            Evidence(
                "E1",
                "\udcff.log",
                1,
                "text \0 \ud83d of 𝄞 ü",
                "root",
                "unknown",
                rank=2**64 - 1,
                node="n" * 5000,
                repeats=2**70,
            ),
        ),
        suspects=Suspects(ranks=(4_294_967_295,)),
    )

    incident = store.record(odd, {**as_json(odd), "score": float("nan"), "limit": float("inf")})

    evidence = rows(store, tables.Evidence)[0]
    assert (evidence["file"], evidence["text"]) == ("�.log", "text � � of 𝄞 ü")
    assert (evidence["rank"], evidence["repeats"], len(evidence["node"])) == (None, 1, 255)
    assert [s["name"] for s in rows(store, tables.Suspect)] == ["4294967295"]
    stored = store.get(incident).result
    assert (stored["root_cause"], stored["score"], stored["limit"]) == ("nul � here", None, None)


def test_a_time_without_zone_is_a_defect_and_stores_nothing(store: IncidentStore) -> None:
    naive = dataclasses.replace(ECC, evidence=(dataclasses.replace(ECC.evidence[0], time=datetime(2026, 1, 1)),))  # noqa: DTZ001

    with pytest.raises(StoreError, match="time without zone"):
        store.record(naive, as_json(naive))

    assert store.list() == ()


@pytest.mark.parametrize(
    ("diagnosis", "title"),
    [
        (OOM, "The batch does not fit"),
        (dataclasses.replace(OOM, root_cause="One.\n Two. Three"), "One"),
        (dataclasses.replace(OOM, root_cause=""), "out-of-memory"),
        (dataclasses.replace(OOM, root_cause="a\tb " + "x" * 200), "a b " + "x" * 115 + "…"),
    ],
)
def test_titles_are_one_short_line(store: IncidentStore, diagnosis, title: str) -> None:
    store.record(diagnosis, as_json(diagnosis))

    assert store.list()[0].title == title


def test_thumbs_about_what_was_shown(store: IncidentStore, clock) -> None:
    incident = store.record(ECC, as_json(ECC))
    for about, ref, thumb in (("similar", 1, "down"), ("step", 2, "up"), ("hypothesis", 1, "up")):
        store.give(incident, Feedback(about, ref, thumb, "ada", "web", "note"))
    given = store.get(incident).feedback

    assert [(f.about, f.ref, f.thumb, f.who, f.via, f.note, f.version) for f in given] == [
        ("similar", 1, "down", "ada", "web", "note", 1),
        ("step", 2, "up", "ada", "web", "note", 1),
        ("hypothesis", 1, "up", "ada", "web", "note", 1),
    ]
    assert given[-1].at == clock.now
    with pytest.raises(NotFoundError, match="incident 1 shows no step 3"):
        store.give(incident, Feedback("step", 3, "up", "ada"))
    store.revise(incident, OOM, as_json(OOM))
    with pytest.raises(NotFoundError, match="incident 1 shows no similar 1"):  # the latest diagnosis does not
        store.give(incident, Feedback("similar", 1, "up", "ada"))
    assert len(store.get(incident).feedback) == 3


def test_calls_of_models_the_knowledge_and_the_rules_are_kept(store: IncidentStore) -> None:
    calls = (ModelCall("m", 1.5, 900, 20), ModelCall("m", 0.5, error="ModelTimeoutError"))
    d = dataclasses.replace(ECC, calls=calls, learned=("learned.3",))
    store.file(d, as_json(d), kb_version="0123abcd")

    assert store.get(1).kb_version == "0123abcd"
    assert rows(store, tables.ModelCall) == [
        {"position": 1, "model": "m", "error": "", "seconds": 1.5, "tokens_in": 900, "tokens_out": 20},
        {"position": 2, "model": "m", "error": "ModelTimeoutError", "seconds": 0.5, "tokens_in": 0, "tokens_out": 0},
    ]
    diagnosis = rows(store, tables.Diagnosis)[0]
    assert (diagnosis["learned_rules"], diagnosis["seconds"]) == ('["learned.3"]', 0.25)


def test_a_forgotten_incident_leaves_no_row_and_no_number(store: IncidentStore) -> None:
    for job in ("4711", "4711", "4712"):
        store.record(ECC, as_json(ECC), JobRef(job, "pretrain-of-jane"))
    store.resolve(1, Verdict("confirmed", "jane"))

    assert store.forget(1) == ()
    assert [s.id for s in store.list(Filters(job="4711"))] == [2], "their job is of another incident too"
    assert store.forget(2) == store.forget(3) == ()
    with store._engine.connect() as connection:
        for table in schema.METADATA.sorted_tables:
            assert connection.scalar(sa.select(sa.func.count()).select_from(table)) == 0, table.name
    assert store.record(ECC, as_json(ECC)) == 4, "its number is not given again"
    with pytest.raises(NotFoundError, match="no incident 1;"):
        store.forget(1)


def test_nothing_of_a_forgotten_incident_is_left_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "triage.db"
    told = dataclasses.replace(ECC, root_cause="the riser of jane.doe in rack 7")
    with IncidentStore.open(f"sqlite:///{file}") as store:
        store.record(told, as_json(told))
        store.record(OOM, as_json(OOM))
    assert b"jane.doe" in file.read_bytes()
    with IncidentStore.open(f"sqlite:///{file}") as store:
        store.forget(1)
    assert b"jane.doe" not in b"".join(each.read_bytes() for each in tmp_path.iterdir())
