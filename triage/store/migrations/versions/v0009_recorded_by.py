"""Who had a diagnosis made stands beside it; whose the job is, is what its log says."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("diagnosis", sa.Column("recorded_by", sa.Text()))
    # So far the owner was always who ran triage.
    op.execute("UPDATE diagnosis SET recorded_by = (SELECT owner FROM incident WHERE incident.id = incident_id)")
    op.execute("UPDATE incident SET owner = NULL")
