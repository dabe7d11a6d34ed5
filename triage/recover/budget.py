"""Whether a failed job is to be started again as it is: by what failed, how often, and how far it came each time. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.diagnose.recurrence import RETRIES
from triage.text import how_many

_FIX = frozenset({"fix-and-resubmit"})
_WAITING = frozenset({"escalate"})


@dataclass(frozen=True, slots=True)
class Budget:
    """restart: may it be started again now; left: starts without progress that are left after this one; why: in a sentence."""

    restart: bool
    why: str
    left: int = 0
    incidents: tuple[str, ...] = ()


def budget(result: Mapping[str, Any], last_steps: Sequence[int | None]) -> Budget:
    """result: the diagnosis as its JSON object; last_steps: of the incident's attempts, oldest first."""
    again = result.get("recurrence") or {}
    incidents = tuple(map(str, again.get("incidents", ())))
    if result.get("outcome") == "healthy":
        return Budget(False, "the job went well: there is nothing to recover")
    if again.get("kind") == "same-step":
        return Budget(
            False, "it failed at the same step before: a restart as it is will fail there again", 0, incidents
        )
    if result.get("action") in _FIX:
        return Budget(False, "the failure is the job's own (code, data or settings): fix it, then submit it again")
    unknown = result.get("failure_type") == "unknown"
    if result.get("action") in _WAITING and not unknown:
        return Budget(
            False,
            "the cluster or its storage is at fault for all nodes: a restart meets it again until that is repaired",
        )
    idle = _without_progress(last_steps)
    if idle >= RETRIES:
        return Budget(
            False,
            f"it was started {how_many(idle, 'time')} without coming further: find the fault before the next one",
            0,
            incidents,
        )
    if unknown:
        return Budget(
            not idle,
            "the cause is unknown: one restart may show more"
            if not idle
            else "the cause is unknown, and a restart did not help",
        )
    return Budget(True, _reason(result), RETRIES - idle - 1, incidents)


def _reason(result: Mapping[str, Any]) -> str:
    nodes = result.get("suspects", {}).get("nodes", [])
    if nodes:
        return f"the fault is of {', '.join(nodes)}: the job can go on without {'it' if len(nodes) == 1 else 'them'}"
    if result.get("outcome") == "hung":
        return "the job hangs: once it is ended, it can go on from its checkpoint"
    if result.get("action") == "rollback-and-skip":
        return "the loss left its level: go back before that, and leave out the data around it"
    if result.get("outcome") == "interrupted":
        asked = ", if it is wanted back" if result.get("action") == "none" else ""
        return f"it was ended from outside, and nothing failed: it can go on from its checkpoint{asked}"
    return "the failure may pass: the job can go on from its checkpoint"


def _without_progress(steps: Sequence[int | None]) -> int:
    """Restarts at the end that came no further than the attempts before them."""
    best, idle = -1, 0
    for at, step in enumerate(steps):
        further = step is not None and step > best
        best = step if further and step is not None else best
        idle = 0 if further or at == 0 else idle + 1
    return idle
