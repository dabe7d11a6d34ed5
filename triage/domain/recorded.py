"""An incident of the database, as later ones are compared with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from triage.domain.diagnosis import PastFailure
from triage.domain.knowledge import KnownIncident


@dataclass(frozen=True, slots=True)
class Recorded:
    """story: what it tells, under the labels that turned out to be true; its id is the incident's number in text.

    version: of the diagnosis that tells it; signatures: of its root lines; said_type: what the diagnosis said, where that
    turned out to be wrong.
    cause, fix, worked (yes|no|unknown), note, told_at: of the latest verdict, if there is one; in_vain: fixes of earlier
    verdicts that did not work.
    """

    past: PastFailure
    story: KnownIncident
    fingerprint: str = ""
    version: int = 1
    signatures: tuple[str, ...] = ()
    said_type: str = ""
    cause: str = ""
    fix: str = ""
    worked: str = "unknown"
    note: str = ""
    told_at: datetime | None = None
    in_vain: tuple[str, ...] = ()

    @property
    def incident(self) -> int:
        return self.past.incident

    @property
    def key(self) -> str:
        return key_of(self.past.incident, self.version, self.past.at)


def key_of(incident: int, version: int, created_at: datetime) -> str:
    """Its name in the vector index. A new reading has another, and so has an incident that got the number of one that
    is gone, as after a restore: the index and the database never disagree unseen."""
    return f"{incident}.{version}.{int(created_at.timestamp() * 1_000_000):x}"


@dataclass(frozen=True, slots=True)
class Family:
    """All recorded incidents of one fingerprint."""

    times: int
    last: datetime


@dataclass(frozen=True, slots=True)
class Misled:
    """A past incident that was shown beside `incident`, of which the diagnosis turned out wrong.

    true_type: what that one was instead, "" where it is not known.
    """

    incident: int
    true_type: str = ""
