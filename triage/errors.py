"""The one exception tree. Every class carries the exit code and a hint of where to look; only the CLI prints them.

TriageError (2)
├── UsageError            wrong flags or settings
├── InputError            a path that cannot be read, nothing readable in it
├── KnowledgeError        a file under kb/ or prompts/ that does not fit its schema
├── StoreError            the incident database cannot be opened, migrated or written
├── IndexUnavailableError the vector index cannot be opened or written
│   └── IndexBrokenError  it is damaged, and can be built anew
├── ModelError            the chat model gave no answer that can be used; its kinds stand in triage/llm/errors.py
└── NotFoundError         an incident, rule or signature that does not exist
"""

from __future__ import annotations


class TriageError(Exception):
    """What is wrong, where; `hint` says what to do."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageError(TriageError):
    """Wrong flags or settings."""


class InputError(TriageError):
    """Input that cannot be read."""


class KnowledgeError(TriageError):
    """A knowledge file that does not fit its schema."""


class StoreError(TriageError):
    """The incident database cannot be used."""


class IndexUnavailableError(TriageError):
    """The vector index cannot be used."""


class IndexBrokenError(IndexUnavailableError):
    """The vector index is damaged; what it holds can be built anew from the incidents."""


class ModelError(TriageError):
    """The chat model gave no answer that can be used."""


class NotFoundError(TriageError):
    """No such incident, rule or signature."""
