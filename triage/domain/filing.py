"""What the record keeps of a diagnosis besides its result: which log it was read from, what a model was asked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that was read. path: absolute, "" for stdin; size: bytes on disk; digest, head: see ingest/identity.py, "" for stdin."""

    name: str
    path: str = ""
    size: int = 0
    digest: str = ""
    head: str = ""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model. error: the kind of error it ended with, "" for none; seconds: spent waiting for the answer."""

    model: str
    seconds: float
    tokens_in: int = 0
    tokens_out: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Filed:
    """Where a diagnosis was recorded. attempt: of the incident; version: of its diagnoses."""

    incident: int
    attempt: int = 1
    version: int = 1
