"""Several processes at once, and one that dies: nothing acknowledged is lost, nothing is left half done."""

from __future__ import annotations

import random
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.store import processes
from tests.store.samples import ECC, as_json
from triage.store import tables
from triage.store.incidents import IncidentStore


def test_eight_processes_write_twenty_five_each(url: str) -> None:
    IncidentStore.open(url).close()

    workers = [processes.start("record", url, "25") for _ in range(8)]
    printed = [int(line) for worker in workers for line in processes.end(worker).split()]

    with IncidentStore.open(url) as store:
        found = [s.id for s in store.list(limit=1000)]
        assert sorted(printed) == sorted(found) == list(range(min(found), min(found) + 200))
        with store._engine.connect() as connection:
            assert connection.scalar(sa.select(sa.func.count()).select_from(tables.Evidence)) == 400
            assert connection.scalar(sa.select(sa.func.count()).select_from(tables.Job)) == 1


def test_first_starts_at_once_make_one_database(url: str) -> None:
    workers = [processes.start("record", url, "2") for _ in range(6)]

    for worker in workers:
        processes.end(worker)

    with IncidentStore.open(url) as store:
        assert len(store.list()) == 12


def test_revisions_at_once_get_a_version_each(store: IncidentStore) -> None:
    """They read before they write, which on SQLite fails unless the writer says so from the start."""
    incident = store.record(ECC, as_json(ECC))

    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(lambda _i: store.revise(incident, ECC, as_json(ECC)), range(40)))

    assert sorted(versions) == list(range(2, 42))


def test_a_writer_killed_at_any_moment_loses_nothing_acknowledged(url: str) -> None:
    acknowledged: set[int] = set()
    for lines in (1, 40, 150):  # killed early, in the middle, and after a checkpoint of the write-ahead log
        writer = processes.start("record", url, "100000")
        assert writer.stdout is not None
        acknowledged |= {int(writer.stdout.readline()) for _ in range(lines)}
        writer.send_signal(signal.SIGKILL)
        acknowledged |= {int(line) for line in writer.stdout.read().split("\n")[:-1] if line}
        writer.communicate(timeout=10)

    with IncidentStore.open(url) as store:
        found = {s.id for s in store.list(limit=100_000)}
        assert acknowledged <= found
        assert len(acknowledged) >= 191
        assert store.get(max(found)).result["failure_type"] == "ecc-error"  # the last one is whole
        with store._engine.connect() as connection:
            whole = sa.select(sa.func.count()).select_from(tables.Evidence)
            assert connection.scalar(whole) == 2 * len(found)
            if connection.dialect.name == "sqlite":
                assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"


@pytest.mark.parametrize("kills", [15, pytest.param(200, marks=pytest.mark.service)])
def test_a_loop_that_files_revises_and_resolves_killed_at_random_moments(url: str, kills: int) -> None:
    """What it said is committed, and nothing is there by halves: each incident has its attempts, readings and evidence."""
    IncidentStore.open(url).close()
    chance = random.Random(kills)
    said: dict[str, set[int]] = {"filed": set(), "resolved": set()}
    for _ in range(kills):
        for line in processes.killed(url, chance.random() * 0.1):
            what, _, number = line.partition(" ")
            said[what].add(int(number))

    with IncidentStore.open(url) as store:
        found = {s.id: s for s in store.list(limit=100_000)}
        assert said["filed"] <= found.keys()
        assert {i for i in said["resolved"] if found[i].verdict != "confirmed"} == set()
        assert said["filed"]
        assert sum(s.attempts for s in found.values()) >= kills
        for incident in found:
            whole = store.get(incident)
            assert [a.number for a in whole.attempts] == list(range(1, whole.summary.attempts + 1))
            assert [v.version for v in whole.versions] == list(range(1, len(whole.versions) + 1))
            assert {v.attempt for v in whole.versions} == {a.number for a in whole.attempts}
        with store._engine.connect() as connection:
            count = {
                t: connection.scalar(sa.select(sa.func.count()).select_from(t))
                for t in (tables.Evidence, tables.Diagnosis)
            }
            assert count[tables.Evidence] == 2 * count[tables.Diagnosis]
            if connection.dialect.name == "sqlite":
                assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
                assert connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall() == []


def test_a_first_start_killed_in_the_middle_leaves_nothing_half_made(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/triage.db"
    for tenths in range(1, 8):
        starter = processes.start("open", url)
        try:
            starter.wait(tenths / 10)
        except processes.subprocess.TimeoutExpired:
            starter.kill()
        starter.communicate(timeout=10)

    assert processes.end(processes.start("open", url)) == "0\n"
