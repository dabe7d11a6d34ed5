"""Ranks of which the others speak: those that did not reach a collective, and those whose end the others report. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from triage.diagnose.candidates import Candidate
from triage.diagnose.facts import Facts, rank_of
from triage.evidence.known import known_ranks

WAITING = frozenset({"nccl-timeout"})
_LEFT_BEHIND = frozenset({"nccl-timeout", "nccl-remote-error", "connection-error"})
_OWN_WORDS = 10  # weight below which a line repeats what another rank's watchdog found
_FEW = 3  # at most one of so many ranks may be silent


def waited_for(facts: Facts, waiting: Sequence[Candidate]) -> tuple[int, ...]:
    """Ranks that are known but did not report the time-out: the others waited for them."""
    reported = _report(waiting, WAITING)
    absent = known_ranks(facts.log) - reported
    return tuple(sorted(absent)) if reported and len(absent) <= len(reported) else ()


def silent(facts: Facts, consequences: Sequence[Candidate]) -> tuple[int, ...]:
    """The few ranks that report no lost peer where nearly all others do: it was they who went."""
    reported = _report(consequences, _LEFT_BEHIND)
    everyone = known_ranks(facts.log) | reported
    if len(reported) >= _FEW:  # then the numbers between are ranks that said nothing at all
        everyone |= set(range(max(everyone)))
    absent = everyone - reported
    few = len(absent) == 1 or len(absent) * _FEW <= len(reported)
    return tuple(sorted(absent)) if reported and few else ()


def _report(candidates: Sequence[Candidate], types: frozenset[str]) -> set[int]:
    return {
        rank
        for c in candidates
        if c.failure_type in types and c.signature.weight >= _OWN_WORDS
        for f in c.findings
        if (rank := rank_of(f)) is not None
    }
