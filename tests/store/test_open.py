"""Opening: what is made, and what is said when it cannot be: one line, with what to do, and never a password."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pytest
import sqlalchemy as sa

from tests.store.conftest import PASSWORD, Postgres
from tests.store.processes import ROOT
from tests.store.samples import ECC, as_json
from triage.errors import StoreError
from triage.store import engine, migrate, rows, tables
from triage.store.incidents import IncidentStore
from triage.store.values import JobRef


def refused(url: str) -> StoreError:
    with pytest.raises(StoreError) as caught:
        IncidentStore.open(url)
    said = str(caught.value)
    assert "\n" not in said
    assert caught.value.hint
    assert PASSWORD not in said
    assert quote(PASSWORD, safe="") not in said
    return caught.value


def sqlite_url(path: Path | str) -> str:
    return f"sqlite:///{path}"


# ------------------------------------------------------------------------------------------------ SQLite: made
def test_folder_and_file_are_made_for_their_owner_alone(tmp_path: Path) -> None:
    old = os.umask(0o022)
    try:
        with IncidentStore.open(sqlite_url(tmp_path / "a" / "b" / "triage.db")) as store:
            store.record(ECC, as_json(ECC))
            files = {p.name: oct(p.stat().st_mode & 0o777) for p in (tmp_path / "a" / "b").iterdir()}
    finally:
        os.umask(old)

    assert oct((tmp_path / "a" / "b").stat().st_mode & 0o777) == "0o700"
    assert {name: files[name] for name in ("triage.db", "triage.db-wal", "triage.db-shm")} == dict.fromkeys(
        ("triage.db", "triage.db-wal", "triage.db-shm"), "0o600"
    )


def test_an_empty_file_is_a_new_database(tmp_path: Path) -> None:
    (tmp_path / "triage.db").touch()

    with IncidentStore.open(sqlite_url(tmp_path / "triage.db")) as store:
        assert store.list() == ()


def test_odd_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, made in [
        ("relative/t.db", "relative/t.db"),
        (f"{tmp_path}/with space %41 ü/t.db", "with space %41 ü/t.db"),
        ("~/t.db", "home/t.db"),
    ]:
        IncidentStore.open(sqlite_url(name)).close()
        assert (tmp_path / made).is_file()


def test_sqlite_is_set_up_for_several_processes(tmp_path: Path) -> None:
    with IncidentStore.open(sqlite_url(tmp_path / "t.db")) as store, store._engine.connect() as connection:
        pragmas = {
            p: connection.exec_driver_sql(f"PRAGMA {p}").scalar()
            for p in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        }

    assert pragmas == {"journal_mode": "wal", "synchronous": 1, "busy_timeout": 5000, "foreign_keys": 1}


def test_on_a_shared_filesystem_the_journal_is_one_that_several_hosts_can_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triage.store.engine.network_filesystem", lambda _path: "nfs4")  # no such mount in a test

    with IncidentStore.open(sqlite_url(tmp_path / "t.db")) as store, store._engine.connect() as connection:
        store.record(ECC, as_json(ECC))
        pragmas = [connection.exec_driver_sql(f"PRAGMA {p}").scalar() for p in ("journal_mode", "synchronous")]

    assert pragmas == ["delete", 2]


# ------------------------------------------------------------------------------------------------ URLs
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "the database URL has no scheme"),
        ("://", "the database URL has no scheme"),
        ("nonsense", "the database URL has no scheme"),
        ("/home/ada/triage.db", "the database URL has no scheme"),
        ("postgresql://ada:hunter22@host:port/db", "the database URL postgresql://... cannot be read"),
        ("postgresql://ada:@hunter22@host/db", "the database URL has an unescaped sign in its user or password"),
        ("postgresql://ada:x@y/hunter22@host/db", "the database URL has an unescaped sign in its user or password"),
        ("sqlite://", "the database URL names no plain SQLite file"),
        ("sqlite:///:memory:", "the database URL names no plain SQLite file"),
        ("sqlite:///file:t.db?uri=true", "the database URL names no plain SQLite file"),
        (
            "sqlite+aiosqlite:////tmp/t.db",
            "the database URL names sqlite+aiosqlite, which triage does not use",
        ),
        (
            "postgresql+psycopg2://ada@host/db",
            "the database URL names postgresql+psycopg2, which triage does not use",
        ),
        ("mysql://ada:hunter22@host/db", "the database URL names mysql, which triage does not use"),
    ],
)
def test_a_url_that_is_no_use(url: str, message: str) -> None:
    error = refused(url)

    assert error.message == message
    assert "hunter22" not in str(error)


def test_two_slashes_too_few_are_explained() -> None:
    assert "four slashes" in refused("sqlite://home/ada/triage.db").hint


# ------------------------------------------------------------------------------------------------ SQLite: refused
def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    assert refused(sqlite_url(tmp_path)).message == f"the incident database {tmp_path} is a folder"


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "home").touch()

    assert (
        refused(sqlite_url(tmp_path / "home" / "t.db")).message
        == f"the folder {tmp_path}/home cannot be made: File exists"
    )


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "t.db").write_text("step 1 loss 2.3\n" * 1000)

    error = refused(sqlite_url(tmp_path / "t.db"))

    assert error.message == f"the incident database {tmp_path}/t.db: file is not a database"
    assert "triage incidents restore FILE --replace" in error.hint
    assert (tmp_path / "t.db").read_text().startswith("step 1")  # left as it was


def test_a_damaged_database(tmp_path: Path) -> None:
    with IncidentStore.open(sqlite_url(tmp_path / "t.db")) as store:
        for _ in range(20):
            store.record(ECC, as_json(ECC))
    whole = (tmp_path / "t.db").read_bytes()
    (tmp_path / "t.db").write_bytes(whole[:4096] + os.urandom(len(whole) - 4096))

    error = refused(sqlite_url(tmp_path / "t.db"))

    assert error.message == f"the incident database {tmp_path}/t.db: database disk image is malformed"
    assert "back-up" in error.hint


@contextlib.contextmanager
def another_user() -> Iterator[None]:
    """Root may write anywhere, so root becomes nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that another user may enter."""
    with TemporaryDirectory(prefix="triage-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("t.db", "the incident database {}/t.db cannot be set up: Permission denied"),
        ("home/t.db", "the folder {}/home cannot be made: Permission denied"),
    ],
)
def test_a_folder_that_is_read_only(folder: Path, name: str, message: str) -> None:
    folder.chmod(0o555)

    with another_user():
        error = refused(sqlite_url(folder / name))

    assert error.message == message.format(folder)
    assert error.hint == "its folder must be writable; point TRIAGE_HOME or TRIAGE_DATABASE_URL elsewhere"


def test_a_database_that_is_read_only(folder: Path) -> None:
    IncidentStore.open(sqlite_url(folder / "t.db")).close()
    (folder / "t.db").chmod(0o444)
    folder.chmod(0o555)

    with another_user():
        error = refused(sqlite_url(folder / "t.db"))

    assert error.message in (
        f"the incident database {folder}/t.db: unable to open database file",
        f"the incident database {folder}/t.db: attempt to write a readonly database",
    )
    assert "TRIAGE_HOME" in error.hint


def test_a_full_disk_loses_that_record_only(tmp_path: Path) -> None:
    with IncidentStore.open(sqlite_url(tmp_path / "t.db")) as store:
        store.record(ECC, as_json(ECC))
        with store._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count=1")  # SQLite's own way to run out of room
        with pytest.raises(StoreError, match="database or disk is full; free some space") as caught:
            for _ in range(1000):
                store.record(ECC, {**as_json(ECC), "note": "x" * 100_000})
        with store._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count=1000000")
        assert "xxx" not in str(caught.value)
        assert [s.id for s in store.list()] == [1]
        assert store.record(ECC, as_json(ECC)) == 2


def test_a_database_that_another_process_keeps(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "t.db")
    with IncidentStore.open(url) as store, IncidentStore.open(url) as other:
        with store._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA busy_timeout=50")
        with engine.writing(other._engine):
            with pytest.raises(StoreError, match="database is locked; another process keeps it busy"):
                store.record(ECC, as_json(ECC))
            assert store.list() == ()  # a reader need not wait


# ------------------------------------------------------------------------------------------------ both
def test_a_schema_of_a_newer_triage(url: str) -> None:
    with IncidentStore.open(url) as store, store._engine.begin() as connection:
        connection.execute(sa.text("UPDATE triage_schema SET version_num = '9999'"))

    error = refused(url)

    assert f"has schema 9999, this triage knows up to {migrate.HEAD}" in error.message
    assert "upgrade" in error.hint


def test_a_database_with_tables_of_something_else(url: str) -> None:
    with IncidentStore.open(url) as store, store._engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE triage_schema"))

    error = refused(url)

    assert "already exists" in error.message
    assert "a database of its own" in error.hint
    with pytest.raises(StoreError):  # and nothing was half made
        IncidentStore.open(url)


# ------------------------------------------------------------------------------------------------ PostgreSQL
def test_without_the_driver(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from triage.store.incidents import IncidentStore\n"
        "try: IncidentStore.open('postgresql+psycopg://ada:hunter22@localhost/x')\n"
        "except Exception as e: print(type(e).__name__, e)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert (
        done.stdout
        == "StoreError the PostgreSQL driver is not installed (psycopg); pip install 'hpc-triage[postgres]'\n"
    )


@pytest.mark.service
@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_url_without_driver_means_ours(postgres: Postgres, scheme: str) -> None:
    url = postgres.create().replace("postgresql+psycopg", scheme)

    with IncidentStore.open(url) as store:
        assert store.record(ECC, as_json(ECC)) == 1


@pytest.mark.service
def test_a_server_that_says_no(postgres: Postgres) -> None:
    url = postgres.create()
    nowhere = url.replace(f":{postgres.port}/", ":9/")
    where = f"the incident database postgresql+psycopg://postgres@127.0.0.1:{postgres.port}/"

    wrong = refused(postgres.url("t1", password="no-such-secret"))
    absent = refused(postgres.url("absent"))
    dead = refused(nowhere)

    assert wrong.message.startswith(f"{where}t1: ")
    assert "password authentication failed" in wrong.message
    assert "no-such-secret" not in str(wrong)
    assert 'database "absent" does not exist' in absent.message
    assert "refused" in dead.message
    assert "is it running" in dead.hint


@pytest.mark.service
def test_a_user_who_may_make_no_tables(postgres: Postgres) -> None:
    url = postgres.create()
    with postgres.admin() as connection:
        connection.execute("DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN PASSWORD 'guest-secret'")

    error = refused(url.replace("postgres:" + quote(PASSWORD, safe=""), "guest:guest-secret"))

    assert "permission denied for schema public" in error.message
    assert "guest-secret" not in str(error)


@pytest.mark.service
def test_a_server_that_restarts_is_found_again(postgres: Postgres) -> None:
    url = postgres.create()
    with IncidentStore.open(url) as store:
        store.record(ECC, as_json(ECC))
        with postgres.admin() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'triage'"
            )
        assert store.record(ECC, as_json(ECC)) == 2


@pytest.mark.service
def test_a_write_does_not_wait_for_ever(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "WRITE_TIMEOUT_MS", 200)
    job, url = JobRef("4711"), postgres.create()
    with IncidentStore.open(url) as store, IncidentStore.open(url) as other:
        with engine.writing(other._engine) as stalled:
            stalled.execute(sa.insert(tables.Job).values(**rows.job(job), first_seen=datetime.now(UTC)))
            with pytest.raises(StoreError, match="statement timeout; another process keeps it busy"):
                store.record(ECC, as_json(ECC), job)
        assert store.list() == ()
        assert store.record(ECC, as_json(ECC), job) > 0


@pytest.mark.service
def test_a_server_is_asked_by_so_many_connections_at_most(postgres) -> None:
    url = f"{postgres.create()}?pool_size=3"
    seen: list[int] = []

    def write(_n: int) -> None:
        store.record(ECC, as_json(ECC))
        with postgres.admin() as connection:
            of_triage = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'triage'"
            seen.append(connection.execute(of_triage).fetchone()[0])

    with IncidentStore.open(url) as store, ThreadPoolExecutor(12) as pool:
        list(pool.map(write, range(36)))
        assert len(store.list()) == 36
    assert 1 < max(seen) <= 3


@pytest.mark.parametrize("size", ["0", "x", "-1", "1001"])
def test_a_pool_that_cannot_be_is_told(size: str) -> None:
    with pytest.raises(StoreError, match=f"the database URL says pool_size={size}; use a whole number from 1 to 1000"):
        IncidentStore.open(f"postgresql://ada@127.0.0.1:9/x?pool_size={size}")
