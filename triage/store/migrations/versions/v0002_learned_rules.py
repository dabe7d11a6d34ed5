"""Filter rules that were learned: the kinds of job that they belong to, and what became of them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _table("job_kind", *_texts("key features"), _time("first_seen"), sa.UniqueConstraint("key"))
    _table(
        "rule",
        _parent("job_kind"),
        *_texts("digest pattern title examples counter_examples state reason source model prompts sample lines"),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("votes", "asked")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("hits", "runs")),
        _time("created_at"),
        _time("last_used", nullable=True),
        *_texts("approved_by"),
        sa.UniqueConstraint("job_kind_id", "digest"),
        sqlite_autoincrement=True,
    )
    _table(
        "rule_change",
        _time("at"),
        *_texts("who what"),
        sa.Column("undoes", sa.Integer(), sa.ForeignKey("rule_change.id", ondelete="SET NULL")),
        sqlite_autoincrement=True,
    )
    _table(
        "rule_event",
        _parent("rule_change", name="change_id", index=True),
        _parent("rule", index=True),
        *_texts("before after reason"),
    )


def _table(name: str, *columns: SchemaItem, **options: bool) -> None:
    op.create_table(name, sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True), *columns, **options)


def _parent(table: str, name: str = "", index: bool = False) -> sa.Column[int]:
    parent = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
    return sa.Column(name or f"{table}_id", sa.Integer(), parent, nullable=False, index=index)


def _texts(names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names.split()]


def _time(name: str, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)
