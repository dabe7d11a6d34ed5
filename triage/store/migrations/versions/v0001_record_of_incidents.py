"""The record of incidents: jobs, incidents, their diagnoses with evidence, and what turned out."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _table(
        "job",
        *_texts("scheduler external_id name fingerprint"),
        _time("first_seen"),
        _unique("scheduler external_id name fingerprint"),
    )
    _table(
        "incident",
        sa.Column("job_id", sa.Integer(), sa.ForeignKey("job.id", ondelete="SET NULL"), index=True),
        _time("created_at", index=True),
        *_texts("title outcome"),
        _text("failure_type", index=True),
        *_texts("category root_cause_class status action"),
        _text("fingerprint", index=True),
        sa.Column("gpu_hours", sa.Float()),
        sqlite_autoincrement=True,
    )
    _table(
        "incident_node",
        _parent("incident"),
        _text("node", index=True),
        sa.Column("suspect", sa.Boolean(), nullable=False),
        _unique("incident_id node"),
    )
    _table(
        "diagnosis",
        _parent("incident"),
        sa.Column("version", sa.Integer(), nullable=False),
        _time("created_at"),
        *_texts(
            "produced_by tool_version outcome failure_type root_cause_class status root_cause action "
            "result timing usage settings"
        ),
        _unique("incident_id version"),
    )
    _table(
        "evidence",
        _parent("diagnosis"),
        *_texts("ref file"),
        sa.Column("line", sa.BigInteger(), nullable=False),
        *_texts("text role failure_type title"),
        _text("signature", index=True),
        sa.Column("rank", sa.BigInteger()),
        sa.Column("node", sa.Text()),
        sa.Column("gpu", sa.Text()),
        sa.Column("time", sa.DateTime(timezone=True)),
        sa.Column("repeats", sa.BigInteger(), nullable=False),
        _unique("diagnosis_id ref"),
    )
    _list("hypothesis", *_texts("failure_type root_cause_class root_cause status supporting against check"))
    _table("suspect", _parent("diagnosis"), *_texts("kind name"), _unique("diagnosis_id kind name"))
    op.create_index("ix_suspect_kind_name", "suspect", ["kind", "name"])
    _list(
        "similar_shown",
        *_texts("incident title"),
        sa.Column("score", sa.Float(), nullable=False),
        *_texts("why outcome"),
    )
    _list("remediation_step", *_texts("step command why risk evidence incidents"))
    _list("prompt_used", *_texts("name version sha256"))
    _table(
        "outcome",
        _parent("incident", index=True),
        *_texts("verdict cause fix worked note who"),
        _time("at"),
        *_texts("via"),
    )


def _table(name: str, *columns: SchemaItem, **options: bool) -> None:
    op.create_table(name, sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True), *columns, **options)


def _list(name: str, *columns: SchemaItem) -> None:
    """Rows in an order below a diagnosis."""
    position = sa.Column("position", sa.Integer(), nullable=False)
    _table(name, _parent("diagnosis"), position, *columns, _unique("diagnosis_id position"))


def _parent(table: str, index: bool = False) -> sa.Column[int]:
    return sa.Column(
        f"{table}_id", sa.Integer(), sa.ForeignKey(f"{table}.id", ondelete="CASCADE"), nullable=False, index=index
    )


def _text(name: str, index: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=False, index=index)


def _texts(names: str) -> list[sa.Column[str]]:
    return [_text(name) for name in names.split()]


def _time(name: str, index: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, index=index)


def _unique(columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(*columns.split())
