"""The diagnoses that a client talks about: incidents by their numbers, those that are not recorded by names of ours."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from triage.agents.tools.kit import ToolError
from triage.chat.values import Subject

MOST = 4  # an opened log takes memory


class Opened:
    """open_incident: Errors NotFoundError, StoreError."""

    def __init__(self, open_incident: Callable[[int], Subject]) -> None:
        self._open_incident = open_incident
        self._known: OrderedDict[str, Subject] = OrderedDict()
        self._made = 0

    def add(self, subject: Subject) -> str:
        """Its name from now on."""
        if subject.incident is not None:
            name = str(subject.incident)
        else:
            self._made += 1
            name = f"d{self._made}"
        self._keep(name, subject)
        return name

    def get(self, about: str) -> Subject:
        """As it stands in the database now; a log that was read again stays open. Errors: ToolError, NotFoundError, StoreError."""
        name = about.strip().lstrip("#").lower()
        known = self._known.get(name)
        if name.isascii() and name.isdigit() and len(name) < 10:
            found = self._open_incident(int(name))
            if known and known.stored and found.stored and known.stored.version == found.stored.version:
                found = replace(found, open_log=known.open_log)
            return self._keep(name, found)
        if known is None:
            raise ToolError(f"nothing is open as {about[:40]!r}: give an incident's number, or diagnose it first")
        return self._keep(name, known)

    def _keep(self, name: str, subject: Subject) -> Subject:
        self._known[name] = subject
        self._known.move_to_end(name)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return subject
