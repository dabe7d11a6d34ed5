"""One command each: a copy while others write, and back, between both databases."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.store import processes
from tests.store.samples import ECC, HUNG, JOB, OOM, as_json, steps
from tests.store.test_migrate import OLD_DATA, connect
from triage.errors import StoreError
from triage.store import engine, migrate, schema
from triage.store.backup import Backup, set_aside
from triage.store.incidents import IncidentStore
from triage.store.rules import RuleStore
from triage.store.values import JobRef, Verdict


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.service)])
def other(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Another database, to restore into."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/other/triage.db"
    return request.getfixturevalue("postgres").create()


def everything(url: str) -> dict[str, list[dict[str, Any]]]:
    opened = engine.connect(engine.parse(url))
    with engine.reading(opened) as connection:
        found = {
            table.name: [dict(row) for row in connection.execute(sa.select(table).order_by(table.c.id)).mappings()]
            for table in schema.METADATA.sorted_tables
        }
    opened.dispose()
    return found


def fill(url: str) -> None:
    with IncidentStore.open(url) as store:
        for d in (ECC, OOM, HUNG):
            store.record(d, as_json(d), JobRef("4711", owner="ada", gpu_hours=1.5))
        store.resolve(1, Verdict("corrected", "ada", failure_type="nvlink-error"))
        store.revise(2, ECC, as_json(ECC))
    with RuleStore.open(url) as rules:
        rules.add(JOB, [steps(1)], "log agent")


def back_up(url: str, file: Path) -> int:
    with Backup.open(url) as store:
        return store.write(file)


def restore(url: str, file: Path, **options: bool) -> int:
    with Backup.open(url) as store:
        return store.restore(file, **options)


def test_all_of_it_comes_back_in_either_database(url: str, other: str, tmp_path: Path) -> None:
    fill(url)
    file = tmp_path / "copy.db"

    assert back_up(url, file) == 3
    assert restore(other, file) == 3

    assert everything(other) == everything(url)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith((".triage", "copy"))] == ["copy.db"]
    with IncidentStore.open(other) as store:  # and numbers go on
        assert store.record(OOM, as_json(OOM)) == 4
        store.resolve(4, Verdict("confirmed", "ada"))


def test_what_is_there_stays_unless_it_is_to_be_replaced(url: str, tmp_path: Path) -> None:
    fill(url)
    back_up(url, tmp_path / "copy.db")
    with IncidentStore.open(url) as store:
        store.record(OOM, as_json(OOM))
    now = everything(url)

    with pytest.raises(StoreError, match="the incident database is not empty; --replace puts"):
        restore(url, tmp_path / "copy.db")
    assert everything(url) == now

    assert restore(url, tmp_path / "copy.db", replace=True) == 3
    assert [row["id"] for row in everything(url)["incident"]] == [1, 2, 3]


def test_a_copy_while_others_write_is_of_one_moment(url: str, tmp_path: Path) -> None:
    IncidentStore.open(url).close()
    writers = [processes.start("record", url, "60") for _ in range(2)]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()

    count = back_up(url, tmp_path / "copy.db")

    for writer in writers:
        processes.end(writer)
    found = everything(f"sqlite:///{tmp_path}/copy.db")
    assert 2 <= count <= 120
    assert len(found["incident"]) == len(found["diagnosis"]) == len(found["attempt"]) == count
    assert len(found["evidence"]) == 2 * count
    with IncidentStore.open(url) as store:
        assert len(store.list(limit=1000)) == 120


@pytest.mark.parametrize("revision", migrate.REVISIONS)
def test_a_copy_of_any_older_schema_is_brought_up_to_date(url: str, tmp_path: Path, revision: str) -> None:
    old = connect(f"sqlite:///{tmp_path}/old.db")
    migrate.upgrade(old, revision)
    with old.begin() as connection:
        for statement in OLD_DATA[revision].split(";\n"):
            connection.exec_driver_sql(statement)
    old.dispose()
    before = (tmp_path / "old.db").read_bytes()

    assert restore(url, tmp_path / "old.db") == 1

    with IncidentStore.open(url) as store:
        assert store.get(7).summary.title == "ECC"
    assert (tmp_path / "old.db").read_bytes() == before


def test_what_cannot_be_restored_is_said_and_nothing_is_lost(url: str, tmp_path: Path) -> None:
    fill(url)
    now = everything(url)
    (tmp_path / "text.db").write_text("this is no database " * 100)
    with sqlite3.connect(tmp_path / "foreign.db") as foreign:
        foreign.execute("CREATE TABLE incident (id INTEGER)")
    back_up(url, tmp_path / "copy.db")
    damaged = bytearray((tmp_path / "copy.db").read_bytes())
    damaged[4096 * 3 : 4096 * 9] = b"\xff" * (4096 * 6)
    (tmp_path / "damaged.db").write_bytes(damaged)
    with sqlite3.connect(tmp_path / "copy.db") as newer:
        newer.execute("UPDATE triage_schema SET version_num = '9999'")

    for name, message in (
        ("none.db", "no such back-up"),
        ("text.db", "cannot be read as a back-up"),
        ("foreign.db", "is no back-up of triage"),
        ("damaged.db", "damaged|cannot be read"),
        ("", f"{tmp_path}: is a folder"),
        ("copy.db", f"{tmp_path}/copy.db: has schema 9999, this triage knows up to"),
    ):
        with pytest.raises(StoreError, match=message):
            restore(url, tmp_path / name, replace=True)

    assert everything(url) == now


def test_a_copy_never_overwrites_a_file(url: str, tmp_path: Path) -> None:
    fill(url)
    (tmp_path / "copy.db").write_text("mine")

    with pytest.raises(StoreError, match="is there already"):
        back_up(url, tmp_path / "copy.db")
    with pytest.raises(StoreError, match="cannot be written: No such file"):
        back_up(url, tmp_path / "no" / "copy.db")

    assert (tmp_path / "copy.db").read_text() == "mine"


def _header(data: bytearray) -> None:
    data[:64] = b"\xff" * 64


def _page(data: bytearray) -> None:
    data[4096 * 5 : 4096 * 30] = b"\xff" * (4096 * 25)


def _cut(data: bytearray) -> None:
    del data[len(data) // 2 :]


@pytest.mark.parametrize("damage", [_header, _page, _cut])
def test_a_damaged_database_is_kept_aside_when_it_is_replaced(
    tmp_path: Path, damage: Callable[[bytearray], None]
) -> None:
    url, file = f"sqlite:///{tmp_path}/triage.db", tmp_path / "triage.db"
    fill(url)
    back_up(url, tmp_path / "copy.db")
    data = bytearray(file.read_bytes())
    damage(data)
    file.write_bytes(data)

    with pytest.raises(
        StoreError, match=r"is damaged: .*--replace puts the back-up in its place and keeps the damaged"
    ):
        set_aside(url, tmp_path / "copy.db", replace=False)
    (tmp_path / "text.db").write_text("this is no database " * 100)
    with pytest.raises(StoreError, match="cannot be read as a back-up"):
        set_aside(url, tmp_path / "text.db", replace=True)
    assert file.read_bytes() == data

    aside = set_aside(url, tmp_path / "copy.db", replace=True)
    assert aside is not None
    assert aside.name.startswith("triage.db.damaged-")
    assert aside.read_bytes() == data
    assert restore(url, tmp_path / "copy.db", replace=True) == 3
    assert everything(url) == everything(f"sqlite:///{tmp_path}/copy.db")


def test_a_sound_database_is_not_moved(url: str, tmp_path: Path) -> None:
    fill(url)
    back_up(url, tmp_path / "copy.db")

    assert set_aside(url, tmp_path / "copy.db", replace=True) is None
