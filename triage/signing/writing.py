"""A model writes the pattern of a signature; what it writes is held to the same tests as what code writes."""

from __future__ import annotations

from triage.agents.asking import Asker
from triage.domain import PromptUsed
from triage.errors import KnowledgeError
from triage.llm.limits import Limited, Limits
from triage.llm.parse import find_object, undoubled
from triage.llm.values import ChatModel
from triage.regex import compile_pattern
from triage.signing.subject import Subject

LIMITS = Limits(calls=1, tokens=20_000, seconds=60.0)


class Writer:
    """Asks once. Errors of `write`: ModelError."""

    def __init__(self, model: ChatModel) -> None:
        self._asker = Asker(Limited(model, LIMITS), deadline=60.0)
        self.model = model.name
        self.shown = ""

    @property
    def used(self) -> tuple[PromptUsed, ...]:
        return self._asker.used

    def write(self, of: Subject, lines: tuple[str, ...]) -> str:
        """The pattern, "" where the answer holds none."""
        self.shown = "\n".join(lines)
        said = self._asker.ask(
            "signature-write", lines=self.shown, failure_type=of.failure_type, cause=of.cause or "nothing more"
        )
        pattern = find_object(said).get("pattern")
        return _as_meant(pattern, lines) if isinstance(pattern, str) else ""


def _as_meant(pattern: str, lines: tuple[str, ...]) -> str:
    """Backslashes escaped once too often are mended where that makes the pattern match its own lines."""
    other = undoubled(pattern)
    return other if other != pattern and not _matches(pattern, lines) and _matches(other, lines) else pattern


def _matches(pattern: str, lines: tuple[str, ...]) -> bool:
    try:
        return all(map(compile_pattern(pattern).search, lines))
    except KnowledgeError:
        return False
