"""What the tables are made of.

Text is text on both databases (a PostgreSQL JSON column would reorder keys and refuse `\\u0000`), so what was stored
comes back to the byte. Numbers that come out of log lines are 64 bits wide: NCCL prints ranks such as 4294967295.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    MetaData,
    Text,
    TypeDecorator,
)
from sqlalchemy.orm import DeclarativeBase, mapped_column

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class UtcDateTime(TypeDecorator[datetime]):
    """Aware in, aware (UTC) out. PostgreSQL keeps the zone; SQLite keeps UTC text, which sorts as time does."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without zone: {value!r}")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {str: Text(), datetime: UtcDateTime(), float: Float(), bool: Boolean()}  # noqa: RUF012 - read by SQLAlchemy


Key = Annotated[int, mapped_column(primary_key=True, autoincrement=True)]
Big = Annotated[int, mapped_column(BigInteger)]


def parent(table: str, *, index: bool = True, **options: Any) -> Any:
    return mapped_column(ForeignKey(f"{table}.id", ondelete="CASCADE"), index=index, **options)
