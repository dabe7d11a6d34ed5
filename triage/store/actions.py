"""The record of what triage did: a command is written down before it runs, and how it ended after it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, update

from triage.errors import NotFoundError
from triage.store import clean, engine
from triage.store.action_tables import RecoveryAction
from triage.store.base import Store, insert_row, possible
from triage.store.tables import Incident

MOST_OUTPUT = 4000  # characters of the end
MOST_WORD = 400  # of a word of a command


@dataclass(frozen=True, slots=True)
class Action:
    """A command that triage ran for an incident, or for none. ended_at None: triage was ended before it was."""

    kind: str
    what: str
    risk: str
    argv: tuple[str, ...]
    who: str
    undo: str = ""
    incident: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    exit_code: int | None = None
    output: str = ""


class ActionStore(Store):
    """Errors of each method: StoreError when the database fails."""

    def begin(self, action: Action) -> int:
        """Its number. Errors: NotFoundError for an incident that is not there."""
        words = [word if len(word) <= MOST_WORD else f"{word[:MOST_WORD]}..." for word in action.argv]
        row = {
            "incident_id": action.incident,
            "kind": action.kind,
            "what": clean.text(action.what),
            "risk": action.risk,
            "argv": clean.dump(clean.tree(words)),
            "undo": clean.text(action.undo),
            "who": clean.text(action.who),
            "started_at": self._clock(),
            "output": "",
        }
        with engine.writing(self._engine) as connection:
            wanted = action.incident
            if wanted is not None and (
                not possible(wanted) or connection.scalar(select(Incident.id).where(Incident.id == wanted)) is None
            ):
                raise NotFoundError(f"no incident {wanted}", "see: triage incidents list")
            return insert_row(connection, RecoveryAction, row)

    def end(self, number: int, exit_code: int | None, output: str) -> None:
        values = {"ended_at": self._clock(), "exit_code": exit_code, "output": clean.text(output)[-MOST_OUTPUT:]}
        with engine.writing(self._engine) as connection:
            connection.execute(update(RecoveryAction).where(RecoveryAction.id == number).values(**values))

    def of(self, incident: int | None) -> Sequence[Action]:
        """Oldest first; None: of no incident."""
        table = RecoveryAction
        same = table.incident_id.is_(None) if incident is None else table.incident_id == incident
        with engine.reading(self._engine) as connection:
            rows = connection.execute(select(table.__table__).where(same).order_by(table.id)).mappings().all()
        return tuple(
            Action(
                kind=row["kind"],
                what=row["what"],
                risk=row["risk"],
                argv=tuple(json.loads(row["argv"])),
                who=row["who"],
                undo=row["undo"],
                incident=row["incident_id"],
                started_at=row["started_at"],
                ended_at=row["ended_at"],
                exit_code=row["exit_code"],
                output=row["output"],
            )
            for row in rows
        )
