"""Failure signatures that incidents gave: which are in force, what later outcomes say of them, and what became of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from sqlalchemy import Connection, Select, func, or_, select, update

from triage.domain import LearnedSignature, RuleState
from triage.errors import NotFoundError
from triage.store import clean, engine, signature_rows
from triage.store.base import Store, insert_or_not, insert_row
from triage.store.rule_tables import LearnedSignature as Row
from triage.store.rule_tables import RuleChange, SignatureEvent, SignatureOutcome
from triage.store.tables import Diagnosis, Evidence, Incident
from triage.store.values import RuleEvent as Event
from triage.store.values import SignatureVerdict

MAX_LINES = 20_000
INCIDENT = "incident"  # a change that no rollback takes back


def _outcomes(verdict: SignatureVerdict) -> Select[int]:
    chosen = select(func.count()).where(SignatureOutcome.signature_id == Row.id, SignatureOutcome.verdict == verdict)
    return chosen.correlate(Row)


_SIGNATURES = select(
    *Row.__table__.c,
    _outcomes("confirmed").scalar_subquery().label("confirmed"),
    _outcomes("contradicted").scalar_subquery().label("contradicted"),
    select(Incident.fingerprint)
    .where(Incident.id == Row.incident_id)
    .correlate(Row)
    .scalar_subquery()
    .label("taught_by"),
)


class SignatureStore(Store):
    """Learned signatures; their ids are "learned-signature.N". Errors of each method: StoreError when the database fails."""

    # -------------------------------------------------------------------------------------------- write
    def add(self, signature: LearnedSignature, by: str) -> LearnedSignature:
        """As it is stored. One whose pattern and type are there already stays as it is, retired ones too."""
        row = signature_rows.new(signature) | {"created_at": self._clock()}
        there = select(Row.id).where(Row.digest == row["digest"]).with_for_update()
        with engine.writing(self._engine) as connection:
            if connection.scalar(there) is None:
                connection.execute(insert_or_not(connection)(Row).values(**row).on_conflict_do_nothing())
            key = connection.execute(there).scalar_one()
            known = select(SignatureEvent.id).where(SignatureEvent.signature_id == key).limit(1)
            if connection.scalar(known) is None:
                change = self._change(connection, by, "learn")
                event = {"change_id": change, "signature_id": key, "before": "", "after": row["state"]}
                insert_row(connection, SignatureEvent, event | {"reason": row["reason"]})
            return one(connection, key)

    def move(self, signature: str, state: RuleState, reason: str, by: str, what: str) -> LearnedSignature:
        """The signature in its new state; nothing happens to one that is in it already. Errors: NotFoundError.

        what: the kind of change, such as "approve", which notes by whom; "incident" for one that no rollback takes back.
        """
        key = signature_rows.key_of(signature)
        with engine.writing(self._engine) as connection:
            before = connection.scalar(select(Row.state).where(Row.id == key).with_for_update())
            if before is None:
                raise _unknown(signature)
            if before != state or what == "approve":
                self._move(connection, key, before, state, clean.text(reason), clean.text(by), what)
            return one(connection, key)

    def _move(
        self, connection: Connection, key: int, before: str, state: RuleState, reason: str, by: str, what: str
    ) -> None:
        values = {"state": state, "reason": reason} | ({"approved_by": by} if what == "approve" else {})
        connection.execute(update(Row).where(Row.id == key).values(values))
        event = {"change_id": self._change(connection, by, what), "signature_id": key, "before": before}
        insert_row(connection, SignatureEvent, event | {"after": state, "reason": reason})

    def judge(self, incident: int, said: Iterable[tuple[str, SignatureVerdict]], expires: datetime | None) -> None:
        """What the outcome of an incident says of signatures; said again, the latest word counts. expires: of candidates."""
        with engine.writing(self._engine) as connection:
            for signature, verdict in said:
                key = signature_rows.key_of(signature)
                row = {"signature_id": key, "incident_id": incident, "verdict": verdict}
                insert = insert_or_not(connection)(SignatureOutcome).values(**row)
                same = ["signature_id", "incident_id"]
                connection.execute(insert.on_conflict_do_update(index_elements=same, set_={"verdict": verdict}))
                if verdict == "confirmed":
                    waiting = update(Row).where(Row.id == key, Row.state == "candidate")
                    connection.execute(waiting.values(expires_at=expires))

    def expire(self) -> tuple[LearnedSignature, ...]:
        """Gives up the candidates whose time is over; those that it gave up."""
        now = self._clock()
        due = select(Row.id, Row.created_at).where(Row.state == "candidate", Row.expires_at <= now).order_by(Row.id)
        with engine.reading(self._engine) as connection:
            if not connection.execute(due.limit(1)).first():
                return ()
        with engine.writing(self._engine) as connection:
            found = [row.id for row in connection.execute(due.with_for_update())]
            for key in found:
                self._move(connection, key, "candidate", "retired", "nobody confirmed it in time", "triage", "expire")
            return tuple(one(connection, key) for key in found)

    def _change(self, connection: Connection, by: str, what: str) -> int:
        return insert_row(
            connection, RuleChange, {"at": self._clock(), "who": clean.text(by), "what": what, "undoes": None}
        )

    def until(self, days: int) -> datetime:
        """When a candidate of now is given up."""
        return self._clock() + timedelta(days=days)

    # -------------------------------------------------------------------------------------------- read
    def get(self, signature: str) -> LearnedSignature:
        """Errors: NotFoundError."""
        with engine.reading(self._engine) as connection:
            row = connection.execute(_SIGNATURES.where(Row.id == signature_rows.key_of(signature))).mappings().first()
        if row is None:
            raise _unknown(signature)
        return signature_rows.learned(row)

    def list(
        self, *, state: str | None = None, source: str | None = None, text: str | None = None, limit: int | None = None
    ) -> tuple[LearnedSignature, ...]:
        """The oldest first. text: found anywhere in the pattern, the title or the reason, whatever its case."""
        chosen = _SIGNATURES.order_by(Row.id).limit(limit)
        for column, wanted in ((Row.state, state), (Row.source, source)):
            if wanted is not None:
                chosen = chosen.where(column == clean.storable(wanted))
        if text is not None:
            words = clean.storable(text)
            columns = (Row.pattern, Row.title, Row.reason)
            chosen = chosen.where(or_(*(column.icontains(words, autoescape=True) for column in columns)))
        with engine.reading(self._engine) as connection:
            return tuple(map(signature_rows.learned, connection.execute(chosen).mappings()))

    def history(self, signature: str) -> tuple[Event, ...]:
        """What became of the signature, oldest first. Errors: NotFoundError."""
        key = signature_rows.key_of(signature)
        columns = (SignatureEvent.before, SignatureEvent.after, SignatureEvent.reason)
        events = (
            select(RuleChange.id.label("change"), RuleChange.at, RuleChange.who, RuleChange.what, *columns)
            .join_from(SignatureEvent, RuleChange)
            .where(SignatureEvent.signature_id == key)
            .order_by(SignatureEvent.id)
        )
        with engine.reading(self._engine) as connection:
            found = tuple(Event(**row) for row in connection.execute(events).mappings())
        if not found:
            raise _unknown(signature)
        return found

    def incidents(self, signature: str) -> tuple[tuple[int, str], ...]:
        """The incidents whose outcome spoke of the signature, with what each said."""
        chosen = select(SignatureOutcome.incident_id, SignatureOutcome.verdict).order_by(SignatureOutcome.incident_id)
        key = signature_rows.key_of(signature)
        with engine.reading(self._engine) as connection:
            return tuple((i, v) for i, v in connection.execute(chosen.where(SignatureOutcome.signature_id == key)))

    def cited_lines(self, *, healthy: bool, roles: Collection[str], limit: int = MAX_LINES) -> tuple[str, ...]:
        """Lines that recorded incidents cite in these roles, each once, the latest first. healthy: of healthy ones only."""
        of_outcome = Incident.outcome == "healthy" if healthy else Incident.outcome != "healthy"
        cited = (
            select(Evidence.text)
            .join_from(Evidence, Diagnosis)
            .join(Incident, Incident.id == Diagnosis.incident_id)
            .where(of_outcome, Evidence.role.in_(roles))
            .group_by(Evidence.text)
            .order_by(func.max(Evidence.id).desc())
            .limit(limit)
        )
        with engine.reading(self._engine) as connection:
            return tuple(connection.scalars(cited))


def one(connection: Connection, key: int) -> LearnedSignature:
    """The signature of this row."""
    return signature_rows.learned(connection.execute(_SIGNATURES.where(Row.id == key)).mappings().one())


def _unknown(signature: str) -> NotFoundError:
    return NotFoundError(f"no learned signature {signature!r}", "see: triage rules list")
