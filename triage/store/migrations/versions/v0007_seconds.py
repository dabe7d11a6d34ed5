"""How long a diagnosis took, to be counted in SQL, and what the counting of nodes needs."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("diagnosis", sa.Column("seconds", sa.Float()))
    op.drop_index("ix_incident_node_node", "incident_node")
    op.create_index("ix_incident_node_node_incident_id_suspect", "incident_node", ["node", "incident_id", "suspect"])
    op.create_index("ix_diagnosis_seconds_incident_id", "diagnosis", ["seconds", "incident_id"])
