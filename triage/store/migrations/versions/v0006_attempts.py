"""Attempts of an incident, calls of models, thumbs, and the knowledge that a diagnosis was made with."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _table(
        "attempt",
        "incident",
        sa.Column("number", sa.Integer(), nullable=False),
        _time("recorded_at"),
        *_texts("external_id task digest begins inputs"),
        sa.Column("last_step", sa.BigInteger()),
        sa.Column("gpu_hours", sa.Float()),
        sa.UniqueConstraint("incident_id", "number"),
    )
    for column in ("digest", "begins"):
        op.create_index(f"ix_attempt_{column}", "attempt", [column])
    _table(
        "model_call",
        "diagnosis",
        sa.Column("position", sa.Integer(), nullable=False),
        *_texts("model error"),
        sa.Column("seconds", sa.Float(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("tokens_in", "tokens_out")),
        sa.UniqueConstraint("diagnosis_id", "position"),
    )
    _table("feedback", "diagnosis", *_texts("about ref thumb note who via"), _time("at"), index=True)
    op.add_column("incident", sa.Column("owner", sa.Text()))
    op.create_index("ix_incident_owner", "incident", ["owner"])
    op.add_column("diagnosis", sa.Column("attempt", sa.Integer(), nullable=False, server_default="1"))
    for name in ("kb_version", "learned_rules"):
        op.add_column("diagnosis", sa.Column(name, sa.Text()))
    op.execute(
        """
        INSERT INTO attempt (incident_id, number, recorded_at, external_id, task, digest, begins, inputs, last_step, gpu_hours)
        SELECT i.id, 1, i.created_at, coalesce(j.external_id, ''), '', '', '', '[]', NULL, i.gpu_hours
        FROM incident i LEFT JOIN job j ON j.id = i.job_id ORDER BY i.id
        """
    )


def _table(name: str, parent: str, *columns: SchemaItem, index: bool = False) -> None:
    key = sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True)
    above = sa.ForeignKey(f"{parent}.id", ondelete="CASCADE")
    op.create_table(name, key, sa.Column(f"{parent}_id", sa.Integer(), above, nullable=False, index=index), *columns)


def _texts(names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names.split()]


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)
