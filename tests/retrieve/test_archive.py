"""The index of recorded incidents follows the database, whatever happens between the two writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import delete

from tests.retrieve.conftest import REPO, Start
from tests.retrieve.recorded import DAY, ListArchive, recorded
from tests.retrieve.test_chroma import server  # noqa: F401 - a fixture
from tests.store.samples import ECC, as_json
from triage.retrieve.archive import ArchiveIndex, passage
from triage.retrieve.chroma import ChromaIndex
from triage.retrieve.embedding import MiniLM
from triage.retrieve.index import Index, MemoryIndex
from triage.store import engine, tables
from triage.store.incidents import IncidentStore
from triage.store.known import KnownReader

WORKER = str(REPO / "tests" / "retrieve" / "recording.py")


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


@pytest.fixture(params=["chroma", "memory"])
def index(request: pytest.FixtureRequest, model: MiniLM, tmp_path: Path) -> Index:
    if request.param == "memory":
        return MemoryIndex()
    return ChromaIndex(model.name, model.dimension, folder=tmp_path / "index", part="recorded")


def mended(index: Index, model: MiniLM, archive: ListArchive) -> str:
    """What was wrong, in words; it is mended then."""
    kept = ArchiveIndex(index, model, archive)
    said = str(kept.mismatch())
    assert kept.heal() == 0
    assert not kept.mismatch().missing and not kept.mismatch().extra
    return said


def test_a_question_adds_what_is_missing_and_takes_out_what_was_deleted(index: Index, model: MiniLM) -> None:
    archive = ListArchive(*(recorded(n, line=f"error {n}") for n in range(1, 41)))
    assert mended(index, model, archive) == "lacks 40 of 40 recorded incidents"
    assert mended(index, model, archive) == "holds all 40 recorded incidents"
    del archive.all[3]
    archive.all[41] = recorded(41)
    assert mended(index, model, archive) == (
        "lacks 1 of 40 recorded incidents and holds 1 that the database does not"
    ), "also where the counts are equal"
    archive.all[40] = replace(archive.all[40], version=2)
    assert "lacks 1 of 40" in mended(index, model, archive), "a new reading has another text"
    archive.all[40] = recorded(40, at=DAY + timedelta(seconds=1), line="of a database that was restored")
    assert "lacks 1 of 40" in mended(index, model, archive), "another incident got its number"
    archive.all.clear()
    assert mended(index, model, archive) == "holds 40 that the database does not"


def test_the_newest_are_mended_first(index: Index, model: MiniLM) -> None:
    archive = ListArchive(*(recorded(n) for n in range(1, 31)))
    kept = ArchiveIndex(index, model, archive)
    assert kept.heal(most=10) == 20
    assert kept.mismatch().missing == {archive.all[n].key for n in range(1, 21)}


def test_rebuild_makes_it_anew(index: Index, model: MiniLM) -> None:
    archive = ListArchive(*(recorded(n) for n in range(1, 301)))
    kept = ArchiveIndex(index, model, archive)
    kept.add([recorded(999)])
    told: list[int] = []
    assert kept.rebuild(told.append) == 300
    assert told == [256, 300]
    assert str(kept.mismatch()) == "holds all 300 recorded incidents"


def test_the_nearest_come_by_number(index: Index, model: MiniLM) -> None:
    texts = {1: "CUDA out of memory on one GPU", 2: "disk quota exceeded", 3: "the port is in use"}
    archive = ListArchive(*(recorded(n, title=text, line=text) for n, text in texts.items()))
    kept = ArchiveIndex(index, model, archive)
    assert kept.nearest(model.embed(["anything"])) == {}
    kept.heal()
    found = kept.nearest(model.embed(["no quota left on the disk", "address already in use"]))
    assert set(found) == {1, 2, 3} and min(found[2], found[3]) > found[1]


def test_the_text_holds_no_verdict() -> None:
    plain, told = recorded(1, line="x"), recorded(1, line="x", verdict="confirmed", note="n", fix="f", cause="c")
    assert passage(plain) == passage(told)


# ------------------------------------------------------------------------------------------------ processes
def archive_index(model: MiniLM, reader: KnownReader, home: Path, url: str = "") -> ArchiveIndex:
    where = {"url": url} if url else {"folder": home / "index"}
    return ArchiveIndex(ChromaIndex(model.name, model.dimension, part="recorded", **where), model, reader)  # type: ignore[arg-type]


def test_a_process_killed_between_the_two_writes_is_found_and_mended(
    model: MiniLM, tmp_path: Path, start: Start
) -> None:
    url = f"sqlite:///{tmp_path}/triage.db"
    with IncidentStore.open(url) as store, KnownReader.open(url) as reader:
        kept = archive_index(model, reader, tmp_path)
        store.record(ECC, as_json(ECC))
        kept.heal()
        writer = start(WORKER, "stop-between", url, str(tmp_path))
        assert writer.stdout is not None
        assert writer.stdout.readline() == "recorded 2\n"
        writer.kill()
        writer.wait()
        assert str(kept.mismatch()) == "lacks 1 of 2 recorded incidents"
        assert kept.heal() == 0
        assert set(kept.nearest(model.embed(["double-bit ECC error"]))) == {1, 2}


def test_two_processes_that_record_at_once_leave_both_in_agreement(model: MiniLM, tmp_path: Path, start: Start) -> None:
    url = f"sqlite:///{tmp_path}/triage.db"
    IncidentStore.open(url).close()
    writers = [start(WORKER, "record", url, str(tmp_path), "", "6") for _ in range(2)]
    for writer in writers:
        out, err = writer.communicate(timeout=120)
        assert writer.returncode == 0, err
        assert len(out.split("\n")) == 7
    with KnownReader.open(url) as reader:
        assert str(archive_index(model, reader, tmp_path).mismatch()) == "holds all 12 recorded incidents"


def test_a_deleted_incident_vanishes_from_the_index(model: MiniLM, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/triage.db"
    with IncidentStore.open(url) as store, KnownReader.open(url) as reader:
        kept = archive_index(model, reader, tmp_path)
        ids = [store.record(ECC, as_json(ECC)) for _ in range(3)]
        kept.heal()
        with engine.writing(store._engine) as connection:
            connection.execute(delete(tables.Incident).where(tables.Incident.id == ids[0]))
        kept.heal()
        assert set(kept.nearest(model.embed(["ECC"]))) == set(ids[1:])


# ------------------------------------------------------------------------------------------------ a team's server
def test_two_clients_of_one_server_share_what_each_recorded(
    server: str,  # noqa: F811
    model: MiniLM,
    tmp_path: Path,
    start: Start,
) -> None:
    url = f"sqlite:///{tmp_path}/triage.db"
    IncidentStore.open(url).close()
    writers = [start(WORKER, "record", url, str(tmp_path), server, "5") for _ in range(2)]
    for writer in writers:
        _, err = writer.communicate(timeout=120)
        assert writer.returncode == 0, err
    with KnownReader.open(url) as reader:
        kept = archive_index(model, reader, tmp_path, server)
        assert str(kept.mismatch()) == "holds all 10 recorded incidents"
        assert len(kept.nearest(model.embed(["double-bit ECC error"]))) == 10
    assert not (tmp_path / "index").exists(), "nothing is kept beside the server"
