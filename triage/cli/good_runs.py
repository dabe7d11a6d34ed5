"""Good runs, as a diagnosis asks for them: of files, or of the database, which is opened for each question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from triage import pipeline
from triage.cli.learned_rules import unmade
from triage.diagnose.judge import judge
from triage.domain import JobLog, JobPrint
from triage.errors import InputError, StoreError
from triage.evidence import profile
from triage.evidence.profile import GoodRun
from triage.ingest import sources
from triage.parts import Parts

if TYPE_CHECKING:
    from triage.store.good_runs import GoodRunStore


def of_files(paths: Sequence[str], parts: Parts) -> GoodRun:
    """The run of these files. Errors: InputError when one of the paths cannot be read."""
    for path in paths:
        try:
            sources.discover([path])
        except InputError as error:
            raise InputError(f"the good run cannot be read: {error.message}", error.hint) from None
    log = pipeline.read(paths, replace(parts, rules=None, good=None, keep=None))
    found = judge(log, parts.knowledge)
    note = f"the run given as good is no healthy one: {found.outcome}, {found.failure_type}, {found.status}"
    words = f"compared with {', '.join(paths[:3])}" + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    return GoodRun(profile.profile(log), words, "" if found.outcome == "healthy" else note)


class GoodRuns:
    """`last` and `keep` are what a pipeline takes for its `good` and `keep`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def last(self, job: JobPrint) -> GoodRun | None:
        """The last one of this very kind of job, else of the kinds most alike. Errors: StoreError."""
        if unmade(self._url):
            return None
        from triage.evidence.jobprint import ALIKE, similarity

        with self._open() as store:
            alike = [other.key for other in store.jobs() if other.key != job.key and similarity(job, other) >= ALIKE]
            found = store.last([job.key]) or (store.last(alike) if alike else None)
        if found is None:
            return None
        words = f"compared with incident {found.incident}, healthy, {found.at:%Y-%m-%d}"
        try:
            return GoodRun(profile.from_json(found.profile), words)
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"the good run of incident {found.incident} cannot be read: {error}") from None

    def keep(self, incident: int, job: JobPrint, log: JobLog) -> None:
        """Errors: StoreError."""
        with self._open() as store:
            store.add(job, incident, profile.to_json(profile.profile(log)))

    def _open(self) -> GoodRunStore:
        from triage.store.good_runs import GoodRunStore

        return GoodRunStore.open(self._url)
