"""What triage itself did to recover a job."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    incident = sa.ForeignKey("incident.id", ondelete="CASCADE")
    op.create_table(
        "recovery_action",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("incident_id", sa.Integer(), incident, nullable=True, index=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("kind", "what", "risk", "argv", "undo", "who")),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False, index=True),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("output", sa.Text(), nullable=False),
    )
