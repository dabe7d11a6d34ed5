"""What a pipeline is made of: knowledge, and the effects that the composition root gives it as functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from triage import learned
from triage.diagnose.judge import Knowledge
from triage.domain import Diagnosis, Filed, FilterRule, Folded, History, JobLog, JobPrint, Similar
from triage.evidence.profile import GoodRun
from triage.ingest import streams

Tell = Callable[[str], None]
Recall = Callable[[Diagnosis], tuple[tuple[Similar, ...], tuple[str, ...]]]  # similar incidents, what was not asked
Explain = Callable[[JobLog, Folded, Diagnosis], Diagnosis]  # what a model makes of it
Remember = Callable[[Diagnosis], History]  # what earlier incidents say to this one
Record = Callable[[Diagnosis, dict[str, Any]], Filed]
GoodRunOf = Callable[[JobPrint], GoodRun | None]  # the last run of this kind of job that went well
KeepGood = Callable[[int, JobPrint, JobLog], None]  # an incident that is a run that went well


@dataclass(frozen=True, slots=True)
class AskedJob:
    """A job that was asked for by its id. ids: as in JobLog; said: as in Diagnosis.account.

    nodes, name, user: as its scheduler has them.

    inputs: what its scheduler says of it; now: what it says of today, which does not tell one run from another.
    """

    ids: tuple[str, ...]
    inputs: tuple[streams.Input, ...] = ()
    now: tuple[streams.Input, ...] = ()
    nodes: tuple[str, ...] = ()
    name: str = ""
    user: str = ""
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parts:
    """What a pipeline is made of. recall, remember, record and rules may fail: a diagnosis is published all the same.

    folded: is given the compressed log, by which an evaluation measures what compression keeps; rules: those learned.
    good, keep: where runs that went well are looked for and kept, to compare with.
    """

    knowledge: Knowledge
    filters: tuple[FilterRule, ...]
    recall: Recall | None = None
    explain: Explain | None = None
    record: Record | None = None
    remember: Remember | None = None
    tell: Tell = field(default=lambda _text: None)
    token_budget: int = 12000
    notes: tuple[str, ...] = ()  # what was not asked, for `missing`
    folded: Callable[[Folded], None] = field(default=lambda _folded: None)
    rules: learned.Rules | None = None
    good: GoodRunOf | None = None
    keep: KeepGood | None = None
    failed: Callable[[Exception], None] = field(default=lambda _error: None)  # is given what broke the model's stage
    job: AskedJob | None = None
    identify: bool = False  # unrecorded too, so that what was recorded of these very files is no similar incident
    jobs: int = 1  # processes that read large inputs
