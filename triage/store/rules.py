"""Filter rules that were learned: which are in force for a kind of job, what they took, and what became of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, or_, select, update

from triage.domain import JobPrint, LearnedRule, RuleState
from triage.errors import NotFoundError
from triage.store import clean, engine, rollback, rule_rows, signatures
from triage.store.base import Store, insert_or_not, insert_row
from triage.store.rule_tables import JobKind, Rule, RuleChange, RuleEvent
from triage.store.tables import Diagnosis, Evidence, Incident
from triage.store.values import RolledBack
from triage.store.values import RuleEvent as Event

IN_FORCE: tuple[RuleState, ...] = ("active", "shadow")
MAX_PROTECTED = 20_000
INCIDENT = "incident"  # a change that no rollback takes back
_RULES = select(*Rule.__table__.c, JobKind.key.label("job")).join_from(Rule, JobKind)


class RuleStore(Store):
    """Learned rules; their ids are "learned.N". Errors of each method: StoreError when the database fails."""

    # -------------------------------------------------------------------------------------------- write
    def add(self, job: JobPrint, rules: Sequence[LearnedRule], by: str, what: str = "learn") -> tuple[LearnedRule, ...]:
        """The rules of this kind of job as they are stored, in order; one change, which one rollback takes back.

        One whose pattern this kind of job has already stays as it is: what was refused once is not tried again. The
        kind of job is known from then on, though no rule came of it.
        """
        digests = [rule_rows.digest(learned.rule.pattern) for learned in rules]
        with engine.writing(self._engine) as connection:
            kind = self._kind(connection, job)
            known = _digests(connection, kind)
            fresh = {d: learned for d, learned in zip(digests, rules, strict=True) if d not in known}
            change = self._change(connection, by, what) if fresh else 0
            for learned in fresh.values():
                row = rule_rows.new(learned)
                known[row["digest"]] = key = insert_row(
                    connection, Rule, row | {"job_kind_id": kind, "created_at": self._clock()}
                )
                event = {"change_id": change, "rule_id": key, "before": "", "after": row["state"]}
                insert_row(connection, RuleEvent, event | {"reason": row["reason"]})
            return tuple(_one(connection, known[digest]) for digest in digests)

    def count(self, hits: Mapping[str, int]) -> None:
        """Adds lines that rules took in one run. What many processes count at once is all counted."""
        found = sorted((rule_rows.key_of(rule), lines) for rule, lines in hits.items() if lines > 0)
        if not found:
            return
        more = update(Rule).where(Rule.id == bindparam("of"))
        more = more.values(hits=Rule.hits + bindparam("more"), runs=Rule.runs + 1, last_used=bindparam("now"))
        now = self._clock()
        rows = [{"of": key, "more": lines, "now": now} for key, lines in found]
        with engine.writing(self._engine) as connection:
            connection.execute(more.execution_options(synchronize_session=None), rows)

    def move(self, rule: str, state: RuleState, reason: str, by: str, what: str) -> LearnedRule:
        """The rule in its new state; nothing happens to one that is in it already. Errors: NotFoundError.

        what: the kind of change, such as "approve"; "incident" for one that no rollback takes back.
        """
        key = rule_rows.key_of(rule)
        with engine.writing(self._engine) as connection:
            before = connection.scalar(select(Rule.state).where(Rule.id == key).with_for_update())
            if before is None:
                raise _unknown(rule)
            if before != state:
                values = {"state": state, "reason": clean.text(reason)}
                if state == "active":
                    values["approved_by"] = clean.text(by)
                connection.execute(update(Rule).where(Rule.id == key).values(values))
                event = {"change_id": self._change(connection, by, what), "rule_id": key, "before": before}
                insert_row(connection, RuleEvent, event | {"after": state, "reason": values["reason"]})
            return _one(connection, key)

    def rollback(self, by: str, to: datetime | None = None) -> RolledBack:
        """All rules and learned signatures back to their states at that time, or the last change taken back that is not
        yet; repeated, one more. What an incident retired stays retired. to: aware.
        """
        with engine.writing(self._engine) as connection:
            plan = rollback.undo(connection) if to is None else rollback.back_to(connection, to)
            if plan.moves or plan.undoes:
                change = self._change(connection, by, "rollback", plan.undoes)
                for move in plan.moves:
                    rollback.do(connection, move, change)
            moved = tuple(
                _one(connection, move.thing)
                if move.ledger is rollback.RULES
                else signatures.one(connection, move.thing)
                for move in plan.moves
            )
        return RolledBack(moved, tuple(ledger.name(thing) for ledger, thing in plan.held))

    def _kind(self, connection: Connection, job: JobPrint) -> int:
        """The id of the kind's row, held for this transaction: two processes that learn at once take turns."""
        row = rule_rows.job_kind(job) | {"first_seen": self._clock()}
        connection.execute(insert_or_not(connection)(JobKind).values(**row).on_conflict_do_nothing())
        return connection.execute(select(JobKind.id).where(JobKind.key == row["key"]).with_for_update()).scalar_one()

    def _change(self, connection: Connection, by: str, what: str, undoes: int | None = None) -> int:
        values = {"at": self._clock(), "who": clean.text(by), "what": what, "undoes": undoes}
        return insert_row(connection, RuleChange, values)

    # -------------------------------------------------------------------------------------------- read
    def get(self, rule: str) -> LearnedRule:
        """Errors: NotFoundError."""
        with engine.reading(self._engine) as connection:
            row = connection.execute(_RULES.where(Rule.id == rule_rows.key_of(rule))).mappings().first()
        if row is None:
            raise _unknown(rule)
        return rule_rows.learned(row)

    def jobs(self) -> tuple[JobPrint, ...]:
        """The kinds of job that have rules in force, the oldest first."""
        kinds = select(JobKind.key, JobKind.features).order_by(JobKind.id)
        kinds = kinds.where(JobKind.id.in_(select(Rule.job_kind_id).where(Rule.state.in_(IN_FORCE))))
        with engine.reading(self._engine) as connection:
            return tuple(map(rule_rows.job_print, connection.execute(kinds).mappings()))

    def job(self, key: str) -> JobPrint | None:
        """The kind of job of this key; None when nothing was ever learned, or tried to, from one."""
        kind = select(JobKind.key, JobKind.features).where(JobKind.key == clean.name(key))
        with engine.reading(self._engine) as connection:
            row = connection.execute(kind).mappings().first()
        return rule_rows.job_print(row) if row else None

    def in_force(self, job: str, alike: Collection[str] = ()) -> tuple[LearnedRule, ...]:
        """The active and shadow rules of the kind of job with this key, then those of the kinds alike.

        A pattern counts once, and what this very kind of job has refused or retired is not taken from another.
        """
        mine = self.list(job=job)
        found = {learned.rule.pattern: learned for learned in mine}
        for key in alike:
            for learned in self.list(job=key) if key != job else ():
                if learned.state in IN_FORCE:
                    found.setdefault(learned.rule.pattern, learned)
        return tuple(learned for learned in found.values() if learned.state in IN_FORCE)

    def list(
        self,
        *,
        job: str | None = None,
        state: str | None = None,
        source: str | None = None,
        text: str | None = None,
        limit: int | None = None,
    ) -> tuple[LearnedRule, ...]:
        """The oldest first. text: found anywhere in the pattern, the title or the reason, whatever its case."""
        chosen = _RULES.order_by(Rule.id).limit(limit)
        for column, wanted in ((JobKind.key, job), (Rule.state, state), (Rule.source, source)):
            if wanted is not None:
                chosen = chosen.where(column == clean.storable(wanted))
        if text is not None:
            words = clean.storable(text)
            columns = (Rule.pattern, Rule.title, Rule.reason)
            chosen = chosen.where(or_(*(column.icontains(words, autoescape=True) for column in columns)))
        with engine.reading(self._engine) as connection:
            return tuple(map(rule_rows.learned, connection.execute(chosen).mappings()))

    def history(self, rule: str) -> tuple[Event, ...]:
        """What became of the rule, oldest first. Errors: NotFoundError."""
        key = rule_rows.key_of(rule)
        events = (
            select(
                RuleChange.id.label("change"),
                RuleChange.at,
                RuleChange.who,
                RuleChange.what,
                RuleEvent.before,
                RuleEvent.after,
                RuleEvent.reason,
            )
            .join_from(RuleEvent, RuleChange)
            .where(RuleEvent.rule_id == key)
            .order_by(RuleEvent.id)
        )
        with engine.reading(self._engine) as connection:
            found = tuple(Event(**row) for row in connection.execute(events).mappings())
        if not found:
            raise _unknown(rule)
        return found

    def protected_lines(self, but: Collection[str] = (), limit: int = MAX_PROTECTED) -> tuple[str, ...]:
        """Lines cited by recorded incidents, as stored (cut, without secrets), each once, the latest first.

        but: signatures whose lines are cited though they are routine.
        """
        cited = (
            select(Evidence.text)
            .join_from(Evidence, Diagnosis)
            .join(Incident, Incident.id == Diagnosis.incident_id)
            .where(Incident.outcome != "healthy", Evidence.signature.not_in(but))
            .group_by(Evidence.text)
            .order_by(func.max(Evidence.id).desc())
            .limit(limit)
        )
        with engine.reading(self._engine) as connection:
            return tuple(connection.scalars(cited))


def _digests(connection: Connection, kind: int) -> dict[str, int]:
    """The patterns that the kind of job has, each with its rule."""
    found = connection.execute(select(Rule.digest, Rule.id).where(Rule.job_kind_id == kind))
    return {row.digest: row.id for row in found}


def _one(connection: Connection, key: int) -> LearnedRule:
    row = connection.execute(_RULES.where(Rule.id == key)).mappings().one()
    return rule_rows.learned(row)


def _unknown(rule: str) -> NotFoundError:
    return NotFoundError(f"no learned rule {rule!r}", "see: triage rules list")
