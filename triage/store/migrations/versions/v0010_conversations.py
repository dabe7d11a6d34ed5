"""Conversations about incidents, turn by turn."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "chat_session",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        _parent("incident", nullable=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("who", "title")),
        *(_time(name) for name in ("started_at", "last_at")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "chat_turn",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        _parent("chat_session", nullable=False, index=False),
        sa.Column("number", sa.Integer(), nullable=False),
        _parent("incident", nullable=True),
        _time("at"),
        *(sa.Column(name, sa.Text(), nullable=False) for name in _TEXTS),
        sa.Column("unsupported", sa.Integer(), nullable=False),
        sa.UniqueConstraint("chat_session_id", "number"),
    )


_TEXTS = ("state", "asked", "answer", "produced_by", "tools", "citations", "notes", "prompts")


def _parent(table: str, nullable: bool, index: bool = True) -> sa.Column[int]:
    parent = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
    return sa.Column(f"{table}_id", sa.Integer(), parent, nullable=nullable, index=index)


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)
