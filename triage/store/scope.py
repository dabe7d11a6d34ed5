"""Which incidents a count is of, said in the way that costs the database least."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, func, not_, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from triage.store.query import Chosen, conditions
from triage.store.tables import Incident
from triage.store.values import Filters


class Scope:
    """The incidents that a filter chooses; narrow: it may leave some out."""

    def __init__(self, connection: Connection, filters: Filters) -> None:
        self.narrow = filters != Filters()
        self._conditions = tuple(conditions(filters))
        self._is_most = connection.dialect.name == "sqlite" and _is_most(connection, filters)

    def of(self, query: Chosen) -> Chosen:
        """A query of incidents, of these alone."""
        return query.where(*self._conditions)

    def below(self, query: Chosen, incident: InstrumentedAttribute[int], *also: ColumnElement[bool]) -> Chosen:
        """A query of what hangs below incidents, of these alone, as far as they are `also` so."""
        if not self._conditions and not also:
            return query
        if self._is_most:  # a short list of those that are not wanted is searched faster
            unwanted = or_(*(not_(c) for c in (*self._conditions, *also)))
            return query.where(incident.not_in(select(Incident.id).where(unwanted)))
        return query.where(incident.in_(self.of(select(Incident.id)).where(*also)))


def _is_most(connection: Connection, filters: Filters) -> bool:
    """Asked of times alone: what may be NULL has no plain opposite."""
    if filters != Filters(since=filters.since, until=filters.until):
        return False
    everything = select(func.count()).select_from(Incident)
    chosen = everything.where(*conditions(filters))
    return 2 * (connection.scalar(chosen) or 0) > (connection.scalar(everything) or 0)
