"""Several answers to one question: whether they agree, and which of them speaks for all. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from triage.agents.answer import Answer


@dataclass(frozen=True, slots=True)
class Vote:
    """leader: the answer that speaks for most; asked: how many were; others: one answer of each other failure type.

    unanimous: of several, all held, name the same type and share a root line with the leader; majority: more than half
    of those asked name its type.
    """

    leader: Answer
    asked: int = 1
    others: tuple[Answer, ...] = ()
    unanimous: bool = False
    majority: bool = True


def vote(answers: Sequence[Answer], asked: int, rules_type: str) -> Vote:
    """answers: those that held, at least one; asked: how many were asked for; of equals, what the rules say leads."""
    counted = Counter(answer.failure_type for answer in answers)
    most = max(counted.values())
    best = [kind for kind, count in counted.items() if count == most]  # in the order of the answers
    chosen = rules_type if rules_type in best else best[0]
    agreeing = [a for a in answers if a.failure_type == chosen]
    leader = max(agreeing, key=lambda a: sum(bool(roots(a) & roots(b)) for b in agreeing))
    others = {a.failure_type: a for a in reversed(answers) if a.failure_type != chosen}
    one_place = not leader.names_a_cause or all(roots(leader) & roots(a) for a in agreeing)
    return Vote(
        leader,
        asked,
        tuple(reversed(others.values())),
        unanimous=asked > 1 and len(agreeing) == asked and one_place,
        majority=len(agreeing) * 2 > asked,
    )


def roots(answer: Answer) -> frozenset[tuple[str, int]]:
    """The places that it calls the root."""
    return frozenset((c.file, c.line) for c in answer.cited if c.role == "root")
