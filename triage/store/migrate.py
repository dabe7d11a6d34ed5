"""Brings a database to this code's schema: one transaction, one process at a time. Loads Alembic only on need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from triage.errors import StoreError
from triage.store import engine as door

REVISIONS = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
)  # oldest first; the files in migrations/versions, held equal by a test
HEAD = REVISIONS[-1]
VERSION_TABLE = "triage_schema"  # not Alembic's own name: a shared PostgreSQL database may hold another program's
SCRIPTS = Path(__file__).parent / "migrations"
LOCK_TIMEOUT_S = 60
_HINT = "its folder must be writable; point TRIAGE_HOME or TRIAGE_DATABASE_URL elsewhere"
_ADVISORY_LOCK = 0x7472_6961_6765  # "triage"


def ensure(engine: Engine) -> None:
    """The database exists and has the schema HEAD. Errors: StoreError, also for a schema newer than this code."""
    file = door.path(engine.url)
    if file is not None:
        _make_folder(file)
    if (file is None or _has_content(file)) and revision(engine) == HEAD:
        return
    with _only_one(file):
        upgrade(engine)


def revision(engine: Engine) -> str:
    """The schema found, "" for none. Errors: StoreError for one that this code does not know."""
    with door.reading(engine) as connection:
        return _known(_read(connection), engine)


def upgrade(engine: Engine, target: str = HEAD) -> None:
    """All or nothing. Another process may have done the work meanwhile; then nothing happens."""
    with door.translated(engine.url), engine.connect().execution_options(triage_write=True) as connection:
        sqlite = connection.dialect.name == "sqlite"
        if sqlite:
            # SQLite alters a table by copying it; with foreign keys on, dropping the old one deletes what refers to it.
            connection.detach()
            connection.connection.cursor().execute("PRAGMA foreign_keys=OFF")
        with connection.begin():
            if not sqlite:
                connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S}s'"))
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})"))
            if _known(_read(connection), engine) == target:
                return
            _run_alembic(connection, target)
            if sqlite and (broken := connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()):
                raise StoreError(
                    f"the upgrade of {door.shown(engine.url)} would leave {len(broken)} rows without parent",
                    "nothing was changed",
                )


def _run_alembic(connection: Connection, target: str) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, target)


def _read(connection: Connection) -> str:
    if not connection.dialect.has_table(connection, VERSION_TABLE):
        return ""
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalars().all()  # noqa: S608 - a constant
    return str(found[0]) if found else ""


def _known(found: str, engine: Engine) -> str:
    if found and found not in REVISIONS:
        where = door.shown(engine.url)
        raise StoreError(
            f"the incident database {where} has schema {found}, this triage knows up to {HEAD}",
            "a newer triage wrote it: upgrade this one (pip install -U hpc-triage)",
        )
    return found


def _has_content(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return False


def _make_folder(file: Path) -> None:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the folder {file.parent} cannot be made: {error.strerror}", _HINT) from None
    if file.is_dir():
        raise StoreError(f"the incident database {file} is a folder", "TRIAGE_DATABASE_URL must name a file")


@contextlib.contextmanager
def _only_one(file: Path | None) -> Iterator[None]:
    """SQLite: a lock file beside it, as two processes that turn one new file to WAL fail; PostgreSQL locks itself."""
    if file is None:
        yield
        return
    from filelock import FileLock, Timeout

    lock = FileLock(f"{file}.lock", timeout=LOCK_TIMEOUT_S)
    try:
        lock.acquire()
    except Timeout:
        raise StoreError(
            f"another process has been setting up {file} for {LOCK_TIMEOUT_S} s", "see which one: fuser -v " + str(file)
        ) from None
    except (OSError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or "the filesystem has no file locks"
        raise StoreError(f"the incident database {file} cannot be set up: {reason}", _HINT) from None
    try:
        file.touch(mode=0o600)  # what a log says is the user's own; SQLite gives its side files the same rights
        yield
    except OSError as error:
        raise StoreError(f"the incident database {file} cannot be made: {error.strerror}", _HINT) from None
    finally:
        lock.release()
