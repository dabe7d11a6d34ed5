"""From a database URL to an engine, and from a driver's error to one clear line. A password is in neither."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from triage import disk
from triage.errors import StoreError
from triage.store.filesystem import network_filesystem

BUSY_TIMEOUT_MS = 5000
CONNECT_TIMEOUT_S = 10
POOL_SIZE = "pool_size"  # an option of the URL of a server
DEFAULT_POOL, MOST_CONNECTIONS = 5, 1000
WRITE_TIMEOUT_MS = 30_000
EXAMPLES = "use sqlite:////folder/triage.db or postgresql+psycopg://user@host/database"
_DRIVERS = {"sqlite": "pysqlite", "postgresql": "psycopg", "postgres": "psycopg"}
_MEND = "`triage incidents restore FILE --replace` puts a back-up in its place and keeps this file"
_READ_ONLY = "make it writable, or point TRIAGE_HOME or TRIAGE_DATABASE_URL elsewhere"


def parse(url: str) -> URL:
    """The URL with the driver we use, a relative path or ~ resolved. Errors: StoreError."""
    scheme, separator, rest = url.partition("://")
    backend, _, driver = scheme.partition("+")
    if not separator or not backend:
        raise StoreError("the database URL has no scheme", EXAMPLES)
    if backend not in _DRIVERS or driver not in ("", _DRIVERS[backend]):
        raise StoreError(f"the database URL names {scheme}, which triage does not use", EXAMPLES)
    return _sqlite(rest) if backend == "sqlite" else _server(rest)


def _sqlite(rest: str) -> URL:
    """The path as it stands: SQLAlchemy 2.1 would decode %41 in it, 2.0 would not, and TRIAGE_HOME is no URL."""
    name = rest[1:]
    if not rest.startswith("/") or not name or name == ":memory:" or name.startswith("file:") or "?" in name:
        raise StoreError(
            "the database URL names no plain SQLite file", "use sqlite:////folder/triage.db (four slashes)"
        )
    return URL.create("sqlite+pysqlite", database=os.path.abspath(Path(name).expanduser()))  # noqa: PTH100 - keeps links


def _server(rest: str) -> URL:
    try:
        parsed = make_url(f"postgresql+psycopg://{rest}")
    except (ArgumentError, ValueError):
        raise StoreError("the database URL postgresql://... cannot be read", EXAMPLES) from None
    if "@" in f"{parsed.host}{parsed.database}":  # a password's own @ or / puts the rest of it where all see it
        raise StoreError("the database URL has an unescaped sign in its user or password", "write @ as %40, / as %2F")
    return parsed


def shown(url: URL) -> str:
    """For messages: the path of a SQLite file, or a server address without password and options."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return URL.create(url.drivername, url.username, None, url.host, url.port, url.database).render_as_string()


def path(url: URL) -> Path | None:
    """The SQLite file, None for a server."""
    return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None


def connect(url: URL) -> Engine:
    """An engine; nothing is opened yet. Errors: StoreError when the driver is missing."""
    file = path(url)
    try:
        if file is None:
            # A cluster made in the C locale is SQL_ASCII, from which psycopg would hand out bytes.
            args: dict[str, Any] = {"client_encoding": "utf8", "application_name": "triage"}
            # Neither a dead server nor a pooler that hands out another session each time may stop a diagnosis.
            args |= {"connect_timeout": CONNECT_TIMEOUT_S, "tcp_user_timeout": WRITE_TIMEOUT_MS}
            args["prepare_threshold"] = None
            return create_engine(
                url.difference_update_query([POOL_SIZE]),
                hide_parameters=True,
                pool_pre_ping=True,
                pool_size=_pool_size(url),
                max_overflow=0,
                pool_timeout=CONNECT_TIMEOUT_S,
                connect_args={k: v for k, v in args.items() if k not in url.query},
            )
        if disk.only_read(file):
            return _to_read(url, file)
        engine = create_engine(url, hide_parameters=True, connect_args={"timeout": BUSY_TIMEOUT_MS / 1000})
    except ModuleNotFoundError as error:
        raise StoreError(
            f"the PostgreSQL driver is not installed ({error.name})", "pip install 'hpc-triage[postgres]'"
        ) from None
    except SQLAlchemyError as error:
        raise StoreError(f"the database URL cannot be used: {_reason(error, url)}", EXAMPLES) from None
    _set_up_sqlite(engine, network_filesystem(file) is not None)
    _read_on_a_full_disk(engine, file)
    return engine


def _to_read(url: URL, file: Path) -> Engine:
    """Of a file that cannot be written, as on a read-only mount."""

    def opened() -> sqlite3.Connection:
        try:
            return _read_only(file, "mode=ro")
        except sqlite3.OperationalError:  # it has no place for what SQLite puts beside a file that others may write
            return _read_only(file, "immutable=1")

    engine = create_engine(url, hide_parameters=True, creator=opened)
    _begin_ourselves(engine)
    return engine


def _read_on_a_full_disk(engine: Engine, file: Path) -> None:
    """SQLite cannot make there what it puts beside the file, not even to read; a file with nothing beside it can be read alone."""
    log = file.with_name(f"{file.name}-wal")

    @event.listens_for(engine, "do_connect")
    def _on_do_connect(dialect: Any, _record: Any, args: Any, options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = dialect.connect(*args, **options)
        try:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.Error:  # any other is told by who uses the connection
            if disk.is_full(file) and not (log.exists() and log.stat().st_size):
                connection.close()
                return _read_only(file, "immutable=1")
        return connection


def _read_only(file: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{file.as_uri()}?{how}",
        uri=True,
        timeout=BUSY_TIMEOUT_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _pool_size(url: URL) -> int:
    """Connections that one process keeps at most. Errors: StoreError."""
    given = str(url.query.get(POOL_SIZE, DEFAULT_POOL))
    if not (given.isascii() and given.isdigit() and 0 < int(given) <= MOST_CONNECTIONS):
        raise StoreError(
            f"the database URL says {POOL_SIZE}={given[:20]}", f"use a whole number from 1 to {MOST_CONNECTIONS}"
        )
    return int(given)


def _set_up_sqlite(engine: Engine, shared_folder: bool) -> None:
    # WAL keeps its index in the memory of one host: two login nodes on one NFS home would destroy the file.
    journal, synchronous = ("DELETE", "FULL") if shared_folder else ("WAL", "NORMAL")

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves: the driver's own begins too late for schema changes
        for pragma in (
            f"busy_timeout={BUSY_TIMEOUT_MS}",
            f"journal_mode={journal}",
            f"synchronous={synchronous}",
            "foreign_keys=ON",
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    _begin_ourselves(engine)


def _begin_ourselves(engine: Engine) -> None:
    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        # A reader that turns writer fails at once if another wrote meanwhile; a writer from the start waits its turn.
        writing = connection.get_execution_options().get("triage_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


@contextlib.contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    with translated(engine.url), engine.connect() as connection:
        yield connection


@contextlib.contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One transaction, committed at the end."""
    with (
        translated(engine.url),
        engine.connect().execution_options(triage_write=True) as connection,
        connection.begin(),
    ):
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SET LOCAL statement_timeout = {WRITE_TIMEOUT_MS}")
        yield connection


@contextlib.contextmanager
def translated(url: URL) -> Iterator[None]:
    """Database errors as StoreError."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise explain(error, url) from None


def explain(error: Exception, url: URL) -> StoreError:
    """What went wrong, where, and what to do."""
    where, reason, file = shown(url), _reason(error, url), path(url)
    if file is not None and any(words in reason.lower() for words in _OF_THE_DISK):
        wrong, what_to_do = disk.trouble(file)
        if wrong:
            return StoreError(f"the incident database {where}: {wrong}", what_to_do)
    for words, hint in _HINTS.items():
        if words in reason.lower():
            return StoreError(f"the incident database {where}: {reason}", hint.format(where=where))
    hint = "is it running, and may this user log in?" if file is None else "see docs/database.md"
    return StoreError(f"the incident database {where}: {reason}", hint)


_OF_THE_DISK = ("disk i/o error", "unable to open", "is full", "readonly database")  # as the one or the other is told
_HINTS = {
    "readonly database": _READ_ONLY,
    "unable to open database file": f"its folder must exist and be writable; {_READ_ONLY}",
    "is full": "free some space, or point TRIAGE_HOME to another disk; the diagnosis itself needs none (--no-record)",
    "no space left": "free some space on the server; the diagnosis itself needs none (--no-record)",
    "not a database": f"it is damaged or something else: {_MEND}",
    "malformed": f"it is damaged: {_MEND}, or try `sqlite3 {{where}} .recover`",
    "statement timeout": "another process keeps it busy; try again",
    "is locked": "another process keeps it busy; try again, and for many writers use PostgreSQL",
    "disk i/o error": "the disk or the shared filesystem failed; point TRIAGE_HOME to a local disk",
    "locking protocol": "the filesystem has no file locks; point TRIAGE_HOME to a local disk, or use PostgreSQL",
    "already exists": "this database holds tables of something else; give triage a database of its own",
    "permission denied": "give the user rights on this database and its schema",
}


def _reason(error: Exception, url: URL) -> str:
    """The driver's own words on one line, without SQL, parameters or secrets of the URL."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    primary = getattr(getattr(cause, "diag", None), "message_primary", None)  # PostgreSQL's details may hold a row
    words = " ".join(str(primary or (cause.args[0] if cause.args else cause)).split()) or type(cause).__name__
    words = words.partition(" Is the server running")[0]  # what to do is said once
    for secret in (str(url.password or ""), *(v for v in url.query.values() if isinstance(v, str))):
        if len(secret) > 2:
            words = words.replace(secret, "***")
    return words[:300]
