"""The labels, read once from kb/taxonomy.yaml and handed round as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FailureType:
    id: str
    category: str
    means: str
    symptom: bool = False  # rarely the cause on its own
    acme: bool = False


@dataclass(frozen=True, slots=True)
class Taxonomy:
    types: Mapping[str, FailureType]
    root_cause_classes: frozenset[str]
    actions: Mapping[str, str]  # id -> what it means
    outcomes: frozenset[str]
    statuses: frozenset[str]
    roles: frozenset[str]
    version: int

    def category(self, failure_type: str) -> str:
        return self.types[failure_type].category
