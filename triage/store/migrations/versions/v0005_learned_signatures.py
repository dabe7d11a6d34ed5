"""Failure signatures that incidents gave, and what became of them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _table(
        "learned_signature",
        sa.Column("incident_id", sa.Integer(), sa.ForeignKey("incident.id", ondelete="SET NULL"), index=True),
        *_texts("digest pattern title failure_type root_cause_class outcome remedy state reason"),
        *_texts("source model prompts sample lines who"),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        *_texts("approved_by"),
        sa.UniqueConstraint("digest"),
        sqlite_autoincrement=True,
    )
    _table(
        "signature_event",
        _parent("rule_change", "change_id", index=True),
        _parent("learned_signature", "signature_id", index=True),
        *_texts("before after reason"),
    )
    _table(
        "signature_outcome",
        _parent("learned_signature", "signature_id"),
        _parent("incident", "incident_id", index=True),
        *_texts("verdict"),
        sa.UniqueConstraint("signature_id", "incident_id"),
    )


def _table(name: str, *columns: SchemaItem, **options: bool) -> None:
    op.create_table(name, sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True), *columns, **options)


def _parent(table: str, name: str, index: bool = False) -> sa.Column[int]:
    parent = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
    return sa.Column(name, sa.Integer(), parent, nullable=False, index=index)


def _texts(names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names.split()]
