"""Recorded incidents for the tests, and a small archive of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from triage.domain import Family, KnownIncident, Misled, PastFailure, Recorded

DAY = datetime(2026, 6, 1, tzinfo=UTC)


def recorded(
    number: int, *, at: datetime = DAY, verdict: str = "none", cause: str = "", line: str = "", **fields: Any
) -> Recorded:
    """line: the one that it cites."""
    known = {name: fields.pop(name) for name in ("title", "failure_type", "root_cause_class") if name in fields}
    story = KnownIncident(
        id=str(number),
        org="",
        date=at.date().isoformat(),
        components=(),
        symptoms="",
        error_strings=(line,) if line else (),
        root_cause=cause,
        remediation=(),
        outcome=verdict,
        **{"title": f"incident {number}", "failure_type": "unknown", "root_cause_class": "unknown", **known},
    )
    told = cause if verdict != "none" else ""
    return Recorded(PastFailure(number, at, first_line=line, verdict=verdict), story, cause=told, **fields)


class ListArchive:
    """An Archive of a list, which a test changes."""

    def __init__(self, *incidents: Recorded) -> None:
        self.all = {r.incident: r for r in incidents}
        self.shown: dict[str, Misled] = {}

    def count(self) -> int:
        return len(self.all)

    def keys(self, newest: int | None = None) -> tuple[str, ...]:
        last = sorted(self.all, reverse=True)[:newest]
        return tuple(self.all[number].key for number in last)

    def read(self, incidents: Collection[int]) -> tuple[Recorded, ...]:
        return tuple(self.all[number] for number in incidents if number in self.all)

    def after(self, incident: int, most: int) -> tuple[Recorded, ...]:
        return tuple(self.all[number] for number in sorted(self.all) if number > incident)[:most]

    def like(self, fingerprint: str, failure_type: str, signatures: Collection[str], most: int) -> tuple[int, ...]:
        return tuple(
            r.incident
            for r in self.all.values()
            if (fingerprint and r.fingerprint == fingerprint) or r.story.failure_type == failure_type
        )

    def families(self, fingerprints: Collection[str]) -> Mapping[str, Family]:
        found = {}
        for name in fingerprints:
            same = [r.past.at for r in self.all.values() if r.fingerprint == name]
            if same:
                found[name] = Family(len(same), max(same))
        return found

    def misled(self, fingerprint: str) -> Mapping[str, Misled]:
        return self.shown if fingerprint else {}
