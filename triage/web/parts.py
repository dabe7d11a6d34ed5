"""What the server is made of, given by who wires it: everything that reads or writes what triage knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from triage.domain import Folded
from triage.store.stats import Stats
from triage.store.values import Filters, IncidentSummary, StoredIncident, Verdict

if TYPE_CHECKING:
    from triage.chat.conversation import Conversation
    from triage.chat.values import OpenedLog
    from triage.store.incidents import IncidentStore
    from triage.taxonomy import Taxonomy
    from triage.web.access import Access
    from triage.web.jobs import Jobs
    from triage.web.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Options:
    """folder: for uploads and jobs; roots: folders whose paths may be named; most_bytes: of one upload, all files together.

    slurm: its commands are here, so that jobs may be asked for by their ids; namespaces: of Kubernetes, the same; rate: requests of one caller in a minute; hosts: names by which it may be asked, () for any.
    """

    folder: Path
    roots: tuple[Path, ...] = ()
    slurm: bool = False
    namespaces: tuple[str, ...] = ()
    most_bytes: int = 1 << 30
    rate: int = 1200
    hosts: tuple[str, ...] = ()
    workers: int = 1
    keep_days: int = 30
    command: tuple[str, ...] = ()  # that starts a worker: triage/web/worker.py says how it is spoken with


@dataclass(frozen=True, slots=True)
class Parts:
    """filters: of what a list is asked for by name, Errors UsageError; resolve: an outcome, recorded, in words;

    converse: with whom, about which incident (None: all), and whether outcomes may be recorded; open_log: of an incident,
    Errors InputError that says why it cannot be read again; fold: its compressed log.
    """

    store: IncidentStore
    labels: Taxonomy
    access: Access
    filters: Callable[[Mapping[str, str]], Filters]
    list_json: Callable[[Sequence[IncidentSummary]], dict[str, Any]]
    show_json: Callable[[StoredIncident], dict[str, Any]]
    stats_json: Callable[[Stats], dict[str, Any]]
    resolve: Callable[[int, Verdict], Sequence[str]]
    converse: Callable[[int | None, str, bool], Conversation]
    open_log: Callable[[int], OpenedLog]
    fold: Callable[[OpenedLog], Folded]
    version: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """What every request may reach."""

    parts: Parts
    options: Options
    jobs: Jobs
    metrics: Metrics
