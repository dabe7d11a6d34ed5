"""What a failure truly was, as a person said it, and of which reading it was said."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("failure_type", "root_cause_class"):
        op.add_column("outcome", sa.Column(name, sa.Text()))
    op.add_column("outcome", sa.Column("version", sa.Integer(), nullable=False, server_default="1"))
    # A verdict was said of the reading that was the latest then; one that confirmed it confirmed its labels.
    op.execute(
        """
        UPDATE outcome SET version = coalesce(
            (SELECT max(d.version) FROM diagnosis d WHERE d.incident_id = outcome.incident_id AND d.created_at <= outcome.at), 1)
        """
    )
    for name in ("failure_type", "root_cause_class"):
        op.execute(
            f"""
            UPDATE outcome SET {name} =
                (SELECT d.{name} FROM diagnosis d WHERE d.incident_id = outcome.incident_id AND d.version = outcome.version)
            WHERE verdict = 'confirmed'
            """  # noqa: S608 - constants
        )
