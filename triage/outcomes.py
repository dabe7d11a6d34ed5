"""Recording how an incident turned out, and what that teaches, whatever the face it is said at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from triage.store import verdicts
from triage.store.values import Verdict
from triage.taxonomy import Taxonomy

if TYPE_CHECKING:
    from triage.store.incidents import IncidentStore

Learnt = TypeVar("Learnt")


@dataclass(frozen=True, slots=True)
class Kept(Generic[Learnt]):
    """said: the failure type of the diagnosis; learnt: what came of it, None where it could not be asked."""

    verdict: Verdict
    said: str
    learnt: Learnt


def resolve(
    store: IncidentStore, incident: int, verdict: Verdict, labels: Taxonomy, learn: Callable[[Verdict, str], Learnt]
) -> Kept[Learnt]:
    """Records the outcome, then has `learn` see it with the failure type that was said; an outcome that is kept stays kept
    whatever becomes of that.

    Errors: NotFoundError; UsageError for labels that are not known, a text too long, or a verdict that contradicts itself.
    """
    verdicts.check(verdict, labels.types, labels.root_cause_classes)
    said = str(store.get(incident, verdict.version or None).result["failure_type"])
    kept = store.resolve(incident, verdict)
    return Kept(kept, said, learn(kept, said))
