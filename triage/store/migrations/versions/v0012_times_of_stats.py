"""What counting incidents of a span of time by their labels and by their users reads, in indexes of its own."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# In each the id, which no count asks for any longer, gives its place to the time.
COUNTED = {
    "ix_incident_labels": ["root_cause_class", "failure_type", "outcome"],
    "ix_incident_owners": ["owner", "outcome"],
}


def upgrade() -> None:
    for name, by in COUNTED.items():
        op.drop_index(f"ix_incident_{'_'.join(by)}_id_gpu_hours", "incident")
        op.create_index(name, "incident", [*by, "created_at", "gpu_hours"])
