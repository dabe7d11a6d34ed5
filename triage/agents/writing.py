"""Rules that a model writes: several independent answers, a vote by what the rules match, one repair, a second look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from triage.agents import proposals, sample
from triage.agents.asking import Asker
from triage.agents.findings import Findings
from triage.agents.proposals import Proposal
from triage.compress.same import groups_of_equal
from triage.domain import FilterRule, RuleOrigin

_OTHER_ANSWERS = 0.7  # temperature of all answers but the first
_SHOWN = 4  # lines of a rule in the second look and in a repair
_BEYOND_REPAIR = frozenset({"duplicate", "worth", "empty", "secret"})


@dataclass(frozen=True, slots=True)
class _Ballot:
    """Proposals that take the same lines count as one. votes: answers that hold it."""

    rule: FilterRule
    proposal: Proposal
    votes: int


def write(batch: Sequence[sample.Kind], findings: Findings, asker: Asker, answers: int) -> bool:
    """Asks for rules for these kinds of line, and adopts what passes. False: no answer could be read.

    Errors: ModelError; nothing of the batch counts then.
    """
    lines = sample.numbered(batch)
    shown = "\n".join(f"{n}: {line}" for n, line in enumerate(lines, 1))
    found: list[Proposal] = []
    readable = False
    for n in range(answers):
        text = asker.ask("log-write", _OTHER_ANSWERS if n else 0.0, lines=shown)
        found += proposals.written(text, lines, n)
        readable = readable or proposals.is_list(text)
    passed: list[_Ballot] = []
    refused: list[tuple[_Ballot, str]] = []
    _sort(_ballots(found, findings), findings, passed, refused)
    refused = _repair(refused, passed, findings, asker)
    routine = _second_look(passed, findings, asker)
    origin = RuleOrigin("model", asker.model, asker.used, sample.digest(shown), asked=answers)
    for at, ballot in enumerate(passed, 1):
        mine = replace(origin, lines=ballot.proposal.named[: sample.EXAMPLES], votes=ballot.votes)
        sure = ballot.votes * 2 > answers and at in routine
        findings.adopt(ballot.rule, mine, "active" if sure else "shadow", _why(ballot, answers, at in routine))
    for ballot, reason in refused:
        mine = replace(origin, lines=ballot.proposal.named[: sample.EXAMPLES], votes=ballot.votes)
        findings.keep(ballot.rule, mine, reason)
    return readable


def _ballots(found: Sequence[Proposal], findings: Findings) -> list[_Ballot]:
    """One of each group of proposals that take the same lines, those of most answers first."""
    of = {f"new.{at}": proposal for at, proposal in enumerate(found, len(findings.rules) + 1)}
    rules = [proposal.rule(name) for name, proposal in of.items()]
    known = list(dict.fromkeys((*(line for p in found for line in p.named), *(line for line, _ in findings.lines))))
    ballots = [
        _Ballot(group[0], of[group[0].id], len({of[rule.id].answer for rule in group}))
        for group in groups_of_equal(rules, known)
    ]
    return sorted(ballots, key=lambda ballot: -ballot.votes)


def _sort(
    ballots: Sequence[_Ballot], findings: Findings, passed: list[_Ballot], refused: list[tuple[_Ballot, str]]
) -> None:
    """Verifies each, with those that passed before it in force."""
    before = list(findings.in_force)
    for ballot in ballots:
        check = findings.check(ballot.rule)
        if check.accepted:
            passed.append(ballot)
            findings.in_force.append(ballot.rule)
        elif check.check not in _BEYOND_REPAIR:
            refused.append((ballot, check.reason))
    findings.in_force[:] = before


def _repair(
    refused: Sequence[tuple[_Ballot, str]], passed: list[_Ballot], findings: Findings, asker: Asker
) -> list[tuple[_Ballot, str]]:
    """One turn: the model sees why its rules were refused. Returns those still refused."""
    if not refused:
        return []
    told = "\n\n".join(
        f"{n}: {ballot.rule.pattern}\nrefused: {reason}\n" + _quoted(ballot.proposal.named)
        for n, (ballot, reason) in enumerate(refused, 1)
    )
    text = asker.ask("log-repair", rules=told)
    mended = dict(proposals.repaired(text, [ballot.proposal for ballot, _ in refused]))
    ballots = [
        replace(refused[at][0], rule=new.rule(refused[at][0].rule.id), proposal=new) for at, new in mended.items()
    ]
    still: list[tuple[_Ballot, str]] = [entry for at, entry in enumerate(refused) if at not in mended]
    before = list(findings.in_force)
    findings.in_force += [ballot.rule for ballot in passed]
    _sort(ballots, findings, passed, still)
    findings.in_force[:] = before
    return still


def _second_look(passed: Sequence[_Ballot], findings: Findings, asker: Asker) -> frozenset[int]:
    """The places, from 1, of the rules that the model calls routine when it sees what they take."""
    if not passed:
        return frozenset()
    texts = [line for line, _ in findings.lines]
    told = "\n\n".join(
        f"{n}: {ballot.rule.pattern}\n" + _quoted(findings.taken(ballot.rule, texts, _SHOWN))
        for n, ballot in enumerate(passed, 1)
    )
    return proposals.routine(asker.ask("log-vote", rules=told)) or frozenset()


def _quoted(lines: Sequence[str]) -> str:
    return "\n".join(f"    {line[: sample.MOST_CHARS]}" for line in lines[:_SHOWN])


def _why(ballot: _Ballot, answers: int, routine: bool) -> str:
    second = "a second look calls its lines routine" if routine else "a second look does not call its lines routine"
    return f"{ballot.votes} of {answers} answers hold it, {second}"
