"""Every test of the store runs on a SQLite file and, where there is one, on a throw-away PostgreSQL server."""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from tests import databases
from triage.store import engine, migrate
from triage.store.incidents import IncidentStore

PASSWORD = "p@ss/w:rd%41"  # every sign that an address must escape
_names = itertools.count(1)


class Postgres:
    """A server that only this test run knows; it asks for a password, as real ones do."""

    def __init__(self, bin_dir: Path, folder: Path) -> None:
        self._bin, self._folder = bin_dir, folder
        self._data = folder / "data"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def start(self) -> None:
        password = self._folder / "password"
        password.write_text(PASSWORD, "utf-8")
        if os.geteuid() == 0:
            shutil.chown(self._folder, "postgres")
            shutil.chown(password, "postgres")
        auth = ["-A", "scram-sha-256", "-U", "postgres", f"--pwfile={password}"]
        # The C locale gives SQL_ASCII, the encoding that surprises most; many sites run it unknowingly.
        self._run("initdb", "-D", str(self._data), "--locale=C", "--no-sync", *auth)
        options = (
            f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off -c timezone=Asia/Kolkata"
        )
        self._run("pg_ctl", "-D", str(self._data), "-o", options, "-l", str(self._folder / "log"), "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self._data), "stop", "-m", "immediate")

    def url(self, database: str, password: str = PASSWORD) -> str:
        return f"postgresql+psycopg://postgres:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def create(self, like: str = "template1") -> str:
        """A fresh database, a copy of another; its URL."""
        import psycopg

        name = f"t{next(_names)}"
        words = psycopg.sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        with self.admin() as connection:
            connection.execute(words.format(psycopg.sql.Identifier(name), psycopg.sql.Identifier(like)))
        return self.url(name)

    @functools.cached_property
    def migrated(self) -> str:
        """The name of a database of the present schema, from which others are copied."""
        url = self.create()
        made = engine.connect(engine.parse(url))
        migrate.ensure(made)
        made.dispose()
        return url.rpartition("/")[2]

    def admin(self):
        import psycopg

        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", password=PASSWORD, dbname="postgres", autocommit=True
        )

    def _run(self, program: str, *arguments: str) -> None:
        prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []  # it refuses to run as root
        done = subprocess.run(
            [*prefix, str(self._bin / program), *arguments],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, f"{program}: {done.stderr}"


def _find_postgres() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[4]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    bin_dir = _find_postgres()
    if bin_dir is None:
        pytest.skip("PostgreSQL is not installed (apt-get install -y postgresql)")
    pytest.importorskip("psycopg", reason="the extra hpc-triage[postgres] is not installed")
    with tempfile.TemporaryDirectory(prefix="triage-pg-", ignore_cleanup_errors=True) as folder:
        server = Postgres(bin_dir, Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.service)]


@pytest.fixture(params=BOTH)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database that does not exist yet (SQLite) or is empty (PostgreSQL); see `migrated`."""
    as_migrated = "migrated" in request.fixturenames
    if request.param == "sqlite":
        plain = f"sqlite:///{tmp_path}/home/triage.db"
        return databases.lay_down(plain) if as_migrated else plain
    postgres: Postgres = request.getfixturevalue("postgres")
    return postgres.create(like=postgres.migrated) if as_migrated else postgres.create()


@pytest.fixture
def migrated() -> None:
    """With it `url` names a database of the present schema, with nothing in it: a copy, which costs less than to migrate."""


class Clock:
    """Begins on a fixed day; every look is a minute later."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 2, 59, 30, 250_000, UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(migrated: None, url: str, clock: Callable[[], datetime]) -> Iterator[IncidentStore]:
    with IncidentStore.open(url, clock) as opened:
        yield opened
