"""A copy of the whole database as one SQLite file, and back: of SQLite or PostgreSQL, into SQLite or PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, Table, func, insert, select

from triage.errors import StoreError
from triage.store import engine as door
from triage.store import migrate
from triage.store.base import Store
from triage.store.rule_tables import JobKind
from triage.store.schema import METADATA
from triage.store.tables import Incident

_BATCH = 500
_TABLES = METADATA.sorted_tables  # a row's parent stands in an earlier one


class Backup(Store):
    """Errors of each method: StoreError."""

    def write(self, file: Path) -> int:
        """All that is committed now, while others write; how many incidents. The file is there whole or not at all."""
        if file.exists():
            raise StoreError(f"{file} is there already", "give the back-up another name")
        with _beside(file) as new:
            if door.path(self._engine.url) is not None:
                self._pages(new)
            else:
                self._rows(new)
            with _opened(new) as copy, door.reading(copy) as connection:
                incidents = _count(connection)
            with contextlib.closing(sqlite3.connect(new)) as whole:
                whole.execute("PRAGMA journal_mode=DELETE")  # one file, not three
            new.chmod(0o600)
            new.replace(file)
        return incidents

    def restore(self, file: Path, replace: bool = False) -> int:
        """Puts a back-up in the place of what is there, all of it or nothing; how many incidents.

        replace: although there is something. The back-up may be of an older schema; it is not changed.
        """
        with (
            _checked(file) as copy,
            _opened(copy) as source,
            door.reading(source) as rows,
            door.writing(self._engine) as connection,
        ):
            if not replace and not _empty(connection):
                raise StoreError(
                    "the incident database is not empty",
                    "--replace puts the back-up in the place of all that it holds",
                )
            for table in reversed(_TABLES):
                connection.execute(table.delete())
            _copy(rows, connection)
            _count_on(connection)
            return _count(connection)

    def _pages(self, new: Path) -> None:
        with door.reading(self._engine) as connection, contextlib.closing(sqlite3.connect(new)) as target:
            source = connection.connection.driver_connection
            assert isinstance(source, sqlite3.Connection)
            source.backup(target)

    def _rows(self, new: Path) -> None:
        with _opened(new) as target, door.translated(self._engine.url), self._engine.connect() as connection:
            rows = connection.execution_options(isolation_level="REPEATABLE READ")  # one moment for all tables
            with door.writing(target) as copy:
                _copy(rows, copy)


def set_aside(url: str, file: Path, replace: bool) -> Path | None:
    """Moves a damaged SQLite database away, so that a back-up can take its place; where it is now, None where it is sound.

    file: the back-up, which is checked first. Errors: StoreError.
    """
    database = door.path(door.parse(url))
    if database is None or not database.is_file():
        return None
    reason = _damage(database)
    if not reason or database.samefile(file):
        return None
    if not replace:
        raise StoreError(
            f"the incident database {database} is damaged: {reason}",
            "--replace puts the back-up in its place and keeps the damaged file under another name",
        )
    with _checked(file):
        pass
    aside = database.with_name(f"{database.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    try:
        for end in ("-wal", "-shm", ""):
            part = database.with_name(database.name + end)
            if part.exists():
                part.rename(aside.with_name(aside.name + end))
    except OSError as error:
        raise StoreError(f"{database}: cannot be moved away: {error.strerror}", "nothing was restored") from None
    return aside


def _damage(database: Path) -> str:
    """What SQLite finds wrong with the file; "" for nothing, and for what is no damage."""
    try:
        with contextlib.closing(sqlite3.connect(database)) as opened:
            found = str(opened.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return str(error) if any(words in str(error) for words in ("not a database", "malformed")) else ""
    return "" if found == "ok" else found.splitlines()[-1]


@contextlib.contextmanager
def _checked(file: Path) -> Iterator[Path]:
    """A copy of a back-up that is sound, and of a schema that this triage knows. Errors: StoreError that names the back-up."""
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "no such back-up"
        raise StoreError(f"{file}: {what}", "give the file that `triage incidents backup FILE` made")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "triage.db"
        _check_and_copy(file, copy)
        yield copy


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[Engine]:
    """A SQLite file in the current schema."""
    opened = door.connect(door.parse(f"sqlite:///{file}"))
    try:
        migrate.ensure(opened)
        yield opened
    finally:
        opened.dispose()


@contextlib.contextmanager
def _beside(file: Path) -> Iterator[Path]:
    """A file of a folder of its own beside it, so that it can be renamed to it."""
    try:
        with tempfile.TemporaryDirectory(prefix=".triage-", dir=file.absolute().parent) as folder:
            yield Path(folder) / "triage.db"
    except OSError as error:
        raise StoreError(f"{file}: cannot be written: {os.strerror(error.errno or 0)}", "give another folder") from None


def _check_and_copy(file: Path, copy: Path) -> None:
    """Errors: StoreError for what is no back-up, or a damaged one."""
    try:
        with (
            contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as source,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            if not source.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [migrate.VERSION_TABLE]).fetchone():
                raise StoreError(f"{file}: is no back-up of triage", "it is an SQLite file of something else")
            schema = (source.execute(f"SELECT version_num FROM {migrate.VERSION_TABLE}").fetchone() or ("",))[0]  # noqa: S608 - a constant
            if schema not in migrate.REVISIONS:
                raise StoreError(
                    f"{file}: has schema {schema}, this triage knows up to {migrate.HEAD}",
                    "a newer triage made it: upgrade this one (pip install -U hpc-triage)",
                )
            source.backup(target)
            found = target.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.Error as error:
        raise StoreError(f"{file}: cannot be read as a back-up: {error}", "nothing was changed") from None
    if found != "ok":
        raise StoreError(f"{file}: is damaged: {found.splitlines()[0]}", "nothing was changed")


def _copy(source: Connection, target: Connection) -> None:
    for table in _TABLES:
        found = source.execution_options(yield_per=_BATCH).execute(select(table).order_by(table.c.id))
        for batch in found.mappings().partitions(_BATCH):
            target.execute(insert(table), [dict(row) for row in batch])


def _count_on(connection: Connection) -> None:
    """The next row gets a number that none of these has; SQLite sees to it itself."""
    if connection.dialect.name == "postgresql":
        for table in _TABLES:
            _set_sequence(connection, table)


def _set_sequence(connection: Connection, table: Table) -> None:
    last = connection.scalar(select(func.max(table.c.id)))
    sequence = func.pg_get_serial_sequence(table.name, "id")
    connection.execute(select(func.setval(sequence, last or 1, last is not None)))


def _empty(connection: Connection) -> bool:
    return all(connection.scalar(select(func.count()).select_from(table)) == 0 for table in (Incident, JobKind))


def _count(connection: Connection) -> int:
    return connection.scalar(select(func.count()).select_from(Incident)) or 0
