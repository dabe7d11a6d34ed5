"""What every store does alike: it is opened at a URL, closed, and writes rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Engine, insert

from triage.store import engine, migrate
from triage.store.columns import Base


def now() -> datetime:
    return datetime.now(UTC)


class Store:
    """Every method raises StoreError when the database fails; a write that returned has been committed."""

    def __init__(self, connected: Engine, clock: Callable[[], datetime] = now) -> None:
        self._engine = connected
        self._clock = clock

    @classmethod
    def open(cls, url: str, clock: Callable[[], datetime] = now) -> Self:
        """The store at a SQLAlchemy URL, sqlite or postgresql+psycopg; made, and brought to the current schema."""
        connected = engine.connect(engine.parse(url))
        try:
            migrate.ensure(connected)
        except BaseException:
            connected.dispose()
            raise
        return cls(connected, clock)

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def insert_or_not(connection: Connection) -> Any:
    """Only the dialect in use is loaded: the other costs 35 ms."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert
    from sqlalchemy.dialects import postgresql

    return postgresql.insert


def insert_row(connection: Connection, table: type[Base], values: Mapping[str, Any]) -> int:
    """Its id."""
    done = connection.execute(insert(table.__table__).values(**values))  # type: ignore[arg-type]
    assert done.inserted_primary_key is not None  # without RETURNING, which SQLite has not known before 3.35
    return int(done.inserted_primary_key[0])


def insert_rows(connection: Connection, table: type[Base], found: Sequence[Mapping[str, Any]], **parent: int) -> None:
    if found:
        connection.execute(insert(table), [{**row, **parent} for row in found])


def possible(key: int) -> bool:
    """Whether a row can have this id: PostgreSQL refuses to compare it with one that does not fit."""
    return 0 < key < 1 << 31


def key_behind(prefix: str, name: str) -> int:
    """The row's number of an id such as "learned.7"; 0 for one that no row of this prefix can have."""
    number = name.removeprefix(prefix)
    fits = name.startswith(prefix) and number.isascii() and number.isdigit() and len(number) < 10
    return int(number) if fits else 0
