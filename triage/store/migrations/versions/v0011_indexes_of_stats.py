"""What counting incidents by their labels and by their users reads, in indexes of its own."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# Not by outcome first: few outcomes there are, and a list of one of them would sort thousands of rows.
LABELS = ["root_cause_class", "failure_type", "outcome", "id", "gpu_hours"]
OWNERS = ["owner", "outcome", "id", "gpu_hours"]


def upgrade() -> None:
    op.create_index(f"ix_incident_{'_'.join(LABELS)}", "incident", LABELS)
    op.drop_index("ix_incident_owner", "incident")
    op.create_index(f"ix_incident_{'_'.join(OWNERS)}", "incident", OWNERS)
