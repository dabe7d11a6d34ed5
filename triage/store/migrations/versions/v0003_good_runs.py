"""Runs that went well, in brief, to compare later runs of the same kind of job with."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "good_run",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        _parent("job_kind", index=True),
        _parent("incident"),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.UniqueConstraint("incident_id"),
    )


def _parent(table: str, index: bool = False) -> sa.Column[int]:
    parent = sa.ForeignKey(f"{table}.id", ondelete="CASCADE")
    return sa.Column(f"{table}_id", sa.Integer(), parent, nullable=False, index=index)
