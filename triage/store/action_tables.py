"""What triage itself did to a cluster."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from triage.store.columns import Base, Key


class RecoveryAction(Base):
    """A command that `triage recover --yes` ran; ended_at is null where triage itself was ended before the command was.

    argv: JSON list of its words; output: the end of what it printed, secrets removed; exit_code: null where it was ended for lateness.
    """

    __tablename__ = "recovery_action"
    id: Mapped[Key]
    incident_id: Mapped[int | None] = mapped_column(ForeignKey("incident.id", ondelete="CASCADE"), index=True)
    kind: Mapped[str]
    what: Mapped[str]
    risk: Mapped[str]
    argv: Mapped[str]
    undo: Mapped[str]
    who: Mapped[str]
    started_at: Mapped[datetime] = mapped_column(index=True)
    ended_at: Mapped[datetime | None]
    exit_code: Mapped[int | None]
    output: Mapped[str]
