"""The same log again, a restart, a task of an array: which incident they belong to, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.store.samples import ECC, OOM, as_json
from triage.domain import Compression, Diagnosis, Filed, InputFile, Progress, Run, Suspects
from triage.jobids import base_and_task
from triage.store.attempts import run_of
from triage.store.history import HistoryReader
from triage.store.incidents import IncidentStore
from triage.store.values import Filters, JobRef, Verdict

DAY = timedelta(days=1)
JOB = JobRef("4711", scheduler="slurm", owner="ada")


class Now:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 3, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Now:
    return Now()


def read_from(d: Diagnosis, digest: str, size: int = 100, head: str = "h", path: str = "/runs/job.log") -> Diagnosis:
    return replace(d, inputs=(InputFile("job.log", path, size, digest, head),))


A, B = read_from(ECC, "a", head="ha"), read_from(ECC, "b", head="hb")


def file(store: IncidentStore, d: Diagnosis, job: JobRef | None = None, **options: object) -> Filed:
    return store.file(d, as_json(d), job, **{"window": DAY, **options})  # type: ignore[arg-type]


def test_the_same_log_read_again_is_a_further_diagnosis(store: IncidentStore, clock: Now) -> None:
    first = file(store, A)
    clock.now += 400 * DAY
    again = file(store, replace(A, failure_type="nvlink-error", fingerprint="other"))

    assert (first, again) == (Filed(1, 1, 1), Filed(1, 1, 2))
    found = store.get(1)
    assert [(v.version, v.attempt, v.failure_type) for v in found.versions] == [
        (1, 1, "ecc-error"),
        (2, 1, "nvlink-error"),
    ]
    assert (found.summary.failure_type, found.summary.attempts) == ("nvlink-error", 1)


def test_told_to_be_new_it_is(store: IncidentStore) -> None:
    assert [file(store, A, JOB, new=True).incident for _ in range(2)] == [1, 2]


def test_equal_logs_of_two_jobs_are_two(store: IncidentStore) -> None:
    assert file(store, A, JOB).incident == 1
    assert file(store, A, replace(JOB, external_id="9999")).incident == 2
    assert file(store, A, JOB) == Filed(1, 1, 2)


def test_a_stream_that_says_the_same_is_the_same(store: IncidentStore) -> None:
    piped = replace(ECC, inputs=(InputFile("-"),))
    assert file(store, piped) == Filed(1, 1, 1)
    assert file(store, piped) == Filed(1, 1, 2)
    other = replace(piped, evidence=(replace(ECC.evidence[0], line=119),))
    assert file(store, other).incident == 2
    silent = replace(OOM, inputs=(InputFile("-"),))  # nothing tells two of these apart
    assert [file(store, silent).incident for _ in range(2)] == [3, 4]


def test_the_same_log_compressed_or_piped_is_no_further_run(store: IncidentStore) -> None:
    whole = Compression(bytes_in=5000, lines_in=120)
    plain = replace(read_from(ECC, "a"), compression=whole)
    packed = replace(plain, inputs=(InputFile("job.log.gz", "/archive/job.log.gz", 30, "z", "hz"),))
    piped = replace(plain, inputs=(InputFile("-"),))
    job = replace(JOB, gpu_hours=8.0)
    assert [file(store, d, job) for d in (plain, packed, piped, packed, plain)] == [
        Filed(1, 1, version) for version in range(1, 6)
    ]
    assert store.list()[0].gpu_hours == 8.0, "hours lost once are counted once"

    other = replace(piped, compression=replace(whole, lines_in=121))
    cited = replace(piped, evidence=(replace(ECC.evidence[0], text="another time"),))
    elsewhere = replace(packed, inputs=(InputFile("other.log.gz", "/archive/other.log.gz", 30, "y", "hy"),))
    assert [file(store, d, job).attempt for d in (other, cited, elsewhere)] == [2, 3, 4]
    assert file(store, packed, replace(job, external_id="9999")).incident == 2, "another job's is another"


def test_a_log_that_grew_is_a_further_diagnosis(store: IncidentStore, clock: Now) -> None:
    running = read_from(replace(ECC, outcome="hung", fingerprint="hang"), "a")
    file(store, running, JOB)
    grown = file(store, read_from(ECC, "b", size=200), JOB)
    alike = file(store, read_from(ECC, "c", size=300))

    assert (grown, alike) == (Filed(1, 1, 2), Filed(1, 1, 3))
    assert store.get(1).attempts[0].files[0].digest == "c"
    clock.now += 2 * DAY
    assert file(store, read_from(ECC, "d", size=400), replace(JOB, external_id="4711")).incident == 2


@pytest.mark.parametrize(
    "other",
    [
        read_from(ECC, "b", size=50),
        read_from(ECC, "b", size=200, path="/runs/other.log"),
        read_from(ECC, "b", size=200, head="other"),
        replace(read_from(ECC, "b", size=200), runs=(Run("job.log", 70, 90, "failed"),)),
        replace(read_from(ECC, "b", size=200), fingerprint="other"),
    ],
    ids=["shorter", "another place", "another beginning", "another run of the log", "another failure of no known job"],
)
def test_what_did_not_grow_out_of_it_is_new(store: IncidentStore, other: Diagnosis) -> None:
    file(store, read_from(ECC, "a"))

    assert file(store, other).incident == 2


def test_tasks_of_an_array_that_fail_alike_are_attempts_of_one_incident(store: IncidentStore, clock: Now) -> None:
    for task, node in ((3, "gpu-001"), (7, "gpu-002"), (9, "gpu-001")):
        clock.now += timedelta(hours=20)
        d = read_from(replace(ECC, suspects=Suspects(nodes=(node,))), str(task), head=str(task))
        d = replace(d, progress=Progress(last_step=task * 100))
        file(store, d, replace(JOB, external_id=f"4711_{task}", nodes=(node, "gpu-050"), gpu_hours=float(task)))

    found = store.get(1)
    assert [(a.number, a.external_id, a.task, a.last_step) for a in found.attempts] == [
        (1, "4711_3", "3", 300),
        (2, "4711_7", "7", 700),
        (3, "4711_9", "9", 900),
    ]
    assert found.result["attempt"] == 3
    summary = store.list()[0]
    assert (summary.job, summary.attempts, summary.gpu_hours) == ("4711", 3, 19.0)
    assert summary.last_seen == clock.now
    assert summary.created_at == clock.now - timedelta(hours=40)
    assert set(summary.nodes) == {"gpu-001", "gpu-002", "gpu-016", "gpu-017", "gpu-050"}
    assert [s.id for s in store.list(Filters(job="4711_7"))] == [1]
    assert store.list(Filters(job="4711_8")) == ()


@pytest.mark.parametrize(
    ("later", "change", "incident"),
    [
        (timedelta(hours=23), {}, 1),
        (timedelta(hours=25), {}, 2),
        (timedelta(hours=1), {"external_id": "4712"}, 2),
        (timedelta(hours=1), {"external_id": "4712", "name": "pretrain"}, 2),
        (timedelta(hours=1), {"scheduler": "pbs"}, 2),
    ],
    ids=["soon", "too late", "another job", "a name that the first had not", "another scheduler"],
)
def test_a_restart(store: IncidentStore, clock: Now, later: timedelta, change: dict[str, str], incident: int) -> None:
    file(store, A, JOB)
    clock.now += later

    assert file(store, B, replace(JOB, **change)).incident == incident


def test_a_job_submitted_anew_under_its_name_by_the_same_user(store: IncidentStore) -> None:
    named = replace(JOB, name="pretrain-7b")
    file(store, A, named)

    assert file(store, B, replace(named, external_id="4712")) == Filed(1, 2, 2)
    other = read_from(ECC, "c", head="hc")
    assert file(store, other, replace(named, external_id="4713", owner="bob")).incident == 2


def test_a_name_alone_is_nobodys_job(store: IncidentStore) -> None:
    named = JobRef("4711", "pretrain-7b", "slurm")
    file(store, A, named)

    assert file(store, B, replace(named, external_id="4712")).incident == 2


def test_a_reading_that_knew_no_tasks_is_of_the_same_log(store: IncidentStore) -> None:
    assert file(store, A, JOB).incident == 1
    assert file(store, A, replace(JOB, external_id="4711_3")) == Filed(1, 1, 2)
    assert file(store, A, replace(JOB, external_id="4711_4")).incident == 1  # an attempt, as it failed alike
    assert store.get(1).summary.attempts == 2


def test_whose_job_it_is_and_who_had_it_diagnosed_are_two(store: IncidentStore) -> None:
    file(store, A, JobRef("4711", recorded_by="oncall"))
    assert store.get(1).summary.owner == ""
    file(store, A, JobRef("4711", owner="ada", recorded_by="bob"))

    assert store.get(1).summary.owner == "ada"
    assert [v.recorded_by for v in store.get(1).versions] == ["oncall", "bob"]
    assert [s.id for s in store.list(Filters(owner="ada"))] == [1]


def test_a_job_submitted_anew_counts_as_the_same(store: IncidentStore, clock: Now) -> None:
    file(store, A, JobRef("4711", "gpt", owner="ada"))
    file(store, B, JobRef("4712", "gpt", owner="bob"))
    file(store, read_from(ECC, "c", head="hc"), JobRef("4713", "gpt", owner="ada"), new=True)

    seen = store.get(3).seen
    assert seen is not None
    assert (seen.same_job, seen.other_jobs) == (2, 1)
    history = HistoryReader(store._engine).history(ECC.fingerprint, (), JobRef("4714", "gpt", owner="ada"))
    assert history.seen is not None
    assert (history.seen.same_job, history.seen.other_jobs) == (2, 1)


def test_a_job_submitted_anew_is_found_by_either_number(store: IncidentStore, clock: Now) -> None:
    file(store, A, JobRef("4711", "gpt", owner="ada"))
    clock.now += timedelta(hours=1)
    file(store, B, JobRef("4712_3", "gpt", owner="ada"))
    file(store, ECC, JobRef("471", "other"))

    def found(job: str) -> list[int]:
        return [s.id for s in store.list(Filters(job=job))]

    assert len(store.get(1).attempts) == 2
    assert found("4711") == found("4712") == found("4712_3") == found("gpt") == [1]
    assert found("471") == [2] and found("4712_4") == found("4") == []


def test_a_later_reading_tells_more_of_the_job(store: IncidentStore) -> None:
    file(store, A, JobRef("4711"))
    file(store, A, JobRef("4711", "gpt"))
    file(store, A)

    job = store.get(1).job
    assert job is not None
    assert (job.external_id, job.name) == ("4711", "gpt")
    assert [s.id for s in store.list(Filters(job="gpt"))] == [1]


def test_earlier_readings_are_told_as_of_when_the_log_was_read_first(store: IncidentStore, clock: Now) -> None:
    file(store, A, JOB)
    clock.now += timedelta(hours=1)
    file(store, B, replace(JOB, external_id="4712"))
    reader = HistoryReader(store._engine)

    first = reader.history(ECC.fingerprint, ECC.suspects.nodes, JobRef("4711"), run_of(A).digest)
    assert (first.seen, first.of_nodes) == (None, {"gpu-017": (1,)})
    second = reader.history(ECC.fingerprint, ECC.suspects.nodes, JobRef("4712"), run_of(B).digest)
    assert second.seen is not None
    assert (second.seen.other_jobs, second.of_nodes) == (1, {"gpu-017": (2, 1)})


@pytest.mark.parametrize(
    "other",
    [replace(B, fingerprint="other"), replace(B, fingerprint=""), replace(B, outcome="healthy")],
    ids=["another failure", "nothing to compare by", "it went well"],
)
def test_what_did_not_fail_alike_is_new(store: IncidentStore, other: Diagnosis) -> None:
    file(store, replace(A, fingerprint=other.fingerprint) if not other.fingerprint else A, JOB)

    assert file(store, other, JOB).incident == 2


def test_once_it_is_said_how_it_turned_out_the_next_failure_is_another_incident(store: IncidentStore) -> None:
    file(store, A, JOB)
    store.resolve(1, Verdict("confirmed", "ada", fix="drained", worked="yes"))

    assert file(store, B, JOB).incident == 2
    assert file(store, A, JOB) == Filed(1, 1, 2)  # the same log all the same


def test_tasks_that_end_at_once_find_each_other(store: IncidentStore) -> None:
    def end(task: int) -> Filed:
        return file(store, read_from(ECC, str(task), head=str(task)), replace(JOB, external_id=f"4711_{task}"))

    with ThreadPoolExecutor(8) as pool:
        filed = list(pool.map(end, range(24)))

    assert {f.incident for f in filed} == {1}
    assert sorted(f.attempt for f in filed) == sorted(f.version for f in filed) == list(range(1, 25))


def test_each_attempt_is_an_earlier_failure_and_a_later_reading_takes_the_place_of_one(store: IncidentStore) -> None:
    def steps(d: Diagnosis, step: int) -> None:
        document = as_json(d)
        store.file(d, {**document, "progress": {"last_step": step}}, JOB, window=DAY)

    steps(A, 100)
    steps(B, 200)
    steps(B, 250)

    found = HistoryReader(store._engine).history(
        ECC.fingerprint, ECC.suspects.nodes, JobRef("4711_2"), run_of(B).digest
    )
    assert [(p.incident, p.last_step) for p in found.same] == [(1, 250), (1, 100)]
    assert found.of_nodes == {"gpu-017": (1, 1)}
    assert found.seen is not None
    assert (found.seen.same_job, found.seen.other_jobs) == (1, 0)  # without the log that is read again


def test_the_same_failure_is_counted_in_this_job_and_in_others(store: IncidentStore, clock: Now) -> None:
    first = clock.now
    file(store, A, JOB)
    file(store, B, JOB)
    clock.now += 2 * DAY
    file(store, read_from(ECC, "c", head="hc"), JOB)
    file(store, read_from(ECC, "d", head="hd"), replace(JOB, external_id="1"))
    file(store, read_from(ECC, "e", head="he"))

    seen = store.get(1).seen
    assert seen is not None
    assert (seen.first, seen.last, seen.same_job, seen.other_jobs) == (first, clock.now, 3, 2)
    assert store.get(4).seen.same_job == 1


@pytest.mark.parametrize(
    ("external_id", "parts"),
    [
        ("4711", ("4711", "")),
        ("4711_3", ("4711", "3")),
        ("4711[3].pbs01.site", ("4711.pbs01.site", "3")),
        ("1122[3]", ("1122", "3")),
        ("4711+1", ("4711", "")),
        ("train-worker_3", ("train-worker_3", "")),
        ("", ("", "")),
    ],
)
def test_the_task_of_an_array(external_id: str, parts: tuple[str, str]) -> None:
    assert base_and_task(external_id) == parts
