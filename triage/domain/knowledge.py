"""What kb/ holds: signatures, filter rules, cascades, advice, past incidents."""

from __future__ import annotations

from dataclasses import dataclass

from triage.domain.labels import Outcome, Role


@dataclass(frozen=True, slots=True)
class Signature:
    """A rule that knows one kind of line. Read from kb/signatures/*.yaml, which holds its proof as well."""

    id: str
    title: str
    patterns: tuple[str, ...]
    failure_type: str
    root_cause_class: str
    role: Role
    remedy: str
    component: str = ""
    weight: int = 50  # 0..100: how specific the cause is; decides between two roots that time cannot order
    outcome: Outcome = "failed"
    unless: tuple[str, ...] = ()  # a line that matches one of these is not matched
    kinds: tuple[str, ...] = ()  # file kinds it may fire in; empty: any
    references: tuple[str, ...] = ()
    status: str = "active"
    node_fault: bool = False  # True: the machine named in the line is at fault, not the application
    check: str = ""  # a command or a thing to fetch that confirms or refutes it
    action: str = ""  # an id of taxonomy.yaml, where it is not that of the failure type
    examples: tuple[str, ...] = ()
    counter_examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FilterRule:
    """A rule that takes routine lines. Read from kb/filters/*.yaml."""

    id: str
    title: str
    pattern: str
    examples: tuple[str, ...] = ()
    counter_examples: tuple[str, ...] = ()
    drops_warnings: bool = False  # may take a line with a warning level (FutureWarning and the like)


@dataclass(frozen=True, slots=True)
class Cascade:
    """Read from kb/cascades.yaml: findings of the types or signatures in `cause` explain those in `effect`."""

    id: str
    cause: tuple[str, ...]
    effect: tuple[str, ...]
    order: str  # before: the cause comes first; any: it is reported late by its nature
    why: str
    same_event: bool = False  # cause and effect are lines of one event, so both are the root


@dataclass(frozen=True, slots=True)
class Advice:
    """Read from kb/advice.yaml: what to do for a failure type, how to confirm it, what to fetch when unsure."""

    id: str
    action: str
    confirm: str = ""
    fetch: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    url: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class KnownIncident:
    """A past incident of kb/incidents/ or one imported: facts in our own words."""

    id: str
    org: str
    date: str  # ISO date, or a year and month
    title: str
    failure_type: str
    root_cause_class: str
    components: tuple[str, ...]
    symptoms: str
    error_strings: tuple[str, ...]
    root_cause: str
    remediation: tuple[str, ...]
    lessons: str = ""
    facts: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    outcome: str = "confirmed"  # confirmed|corrected|rejected|none
