"""The learned rules of the database, as a run asks for them. The database is opened for each question, not for the run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from triage.domain import JobPrint, LearnedRule

if TYPE_CHECKING:
    from triage.store.rules import RuleStore

TRIAL_RUNS = 3  # of a shadow rule
_FILE = "sqlite:///"


def unmade(url: str) -> bool:
    """Whether nobody has made the database yet; to make one in order to find it empty takes a second."""
    return url.startswith(_FILE) and not Path(url.removeprefix(_FILE)).expanduser().exists()


class LearnedRules:
    """A triage.learned.Rules over the database at a URL."""

    def __init__(self, url: str, writes: bool) -> None:
        self.writes = writes
        self._url = url

    def in_force(self, job: JobPrint) -> tuple[LearnedRule, ...]:
        """Those of this kind of job, then those of the kinds alike, the most alike first."""
        if unmade(self._url):
            return ()
        from triage.evidence.jobprint import ALIKE, similarity

        with self._open() as store:
            scores = {other.key: similarity(job, other) for other in store.jobs()}
            alike = sorted((key for key, score in scores.items() if score >= ALIKE), key=lambda key: -scores[key])
            return store.in_force(job.key, alike)

    def find(self, rule: str) -> LearnedRule | None:
        if unmade(self._url):
            return None
        with self._open() as store:
            return store.get(rule)

    def settle(self, hits: Mapping[str, int], retired: Mapping[str, str]) -> None:
        with self._open() as store:
            store.count(hits)
            for rule, reason in retired.items():
                store.move(rule, "retired", reason, "triage", "incident")
            for rule in sorted(set(hits) - set(retired)):
                _end_trial(store, rule)

    def _open(self) -> RuleStore:
        from triage.store.rules import RuleStore

        return RuleStore.open(self._url)


def _end_trial(store: RuleStore, rule: str) -> None:
    """A shadow rule that took lines in some runs, and none that a diagnosis cited, is put in force."""
    found = store.get(rule)
    if found.state == "shadow" and found.runs >= TRIAL_RUNS:
        reason = f"on trial it took {found.hits} lines in {found.runs} runs, and none that was cited"
        store.move(rule, "active", reason, "triage", "trial")
