"""Holds what a model says to the log: lines that are there, words that stand in them, names that occur. Pure.

What fails is dropped and counted. A cause that names what is nowhere, or points at no line that is there, is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from triage.agents.answer import Answer, Cited
from triage.agents.case import Ground
from triage.agents.injected import holds_command, speaks_to_model
from triage.agents.naming import Told, unknown_names
from triage.domain import LogLine
from triage.heads import split
from triage.risk import destroys

Lines = Mapping[tuple[str, int], LogLine]

_WORDS = re.compile(r"\s+")
_CLAUSE = re.compile(r"[.,;:]\s+|\s(?:and|then|or)\s")
_QUOTED = 3  # words of a quote


@dataclass(frozen=True, slots=True)
class Grounded:
    """answer: without what did not hold; dropped: that, in words; broken: why the cause itself cannot stand."""

    answer: Answer
    dropped: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def ground(answer: Answer, known: Ground) -> Grounded:
    """The answer, held to what was shown and told."""
    dropped: list[str] = []
    cited = tuple(c for c in answer.cited if holds(c, known.lines, dropped))
    nodes = tuple(n for n in answer.nodes if _is_blamed(n, cited, known, dropped))
    ranks = tuple(
        r for r in answer.ranks if r in known.ranks or _drop(f"rank {r} does not occur in the input", dropped)
    )
    steps = tuple(s for s in answer.steps if stands(" ".join(s), f"step {s[0]!r}", known, dropped, step=True))
    against = answer.against if stands(answer.against, "against", known, dropped) else ""
    broken = [*wrong(answer.root_cause, "root_cause", known, advice=False)]
    if answer.names_a_cause and not any(c.role == "root" for c in cited):
        broken.append("no line with the role root is cited that is there and holds its quote")
    kept = replace(answer, cited=cited, nodes=nodes, ranks=ranks, steps=steps, against=against)
    return Grounded(kept, tuple(dropped), tuple(broken))


def stands(text: str, what: str, known: Ground, dropped: list[str], step: bool = False, advice: bool = True) -> bool:
    """Whether a text of the model may be told on; what is wrong with it goes into `dropped`."""
    problem = next(wrong(text, what, known, advice), "")
    if not problem and step and destroys(text):
        problem = f"{what} would end or delete something"
    return not problem or _drop(problem, dropped)


def wrong(text: str, what: str, known: Ground, advice: bool = True) -> Iterator[str]:
    """Why a text of the model cannot be told on: each passes here. advice: it says what to do, not only what was."""
    yield from wrong_of(text, what, known.told, advice)


def wrong_of(text: str, what: str, told: Told, advice: bool = True) -> Iterator[str]:
    """The same by what was told of a job."""
    if holds_command(text, told.text, advice):
        yield f"{what} holds a command"
    elif advice and _orders(text):
        yield f"{what} would end or delete something"
    for name in unknown_names(text, told):
        yield f"{name!r} of {what} stands nowhere in the input"


def _orders(text: str) -> bool:
    """Does a clause begin with the order to destroy something? Further on, `kill` and `clear` may tell of what was."""
    return any(destroys(" ".join(clause.split()[:2])) for clause in _CLAUSE.split(text))


def _is_blamed(node: str, cited: tuple[Cited, ...], known: Ground, dropped: list[str]) -> bool:
    """A node of the job, and a line that is cited for the failure speaks of it."""
    if node not in known.nodes:
        return _drop(f"{node} is no node that the job is known to use", dropped)
    lines = (known.lines[(c.file, c.line)] for c in cited if c.role != "context")
    name = re.compile(rf"(?<![A-Za-z0-9]){re.escape(node)}(?![A-Za-z0-9])")
    return any(line.node == node or name.search(line.text) for line in lines) or _drop(
        f"node {node} is blamed by no line that is cited", dropped
    )


def _drop(why: str, dropped: list[str]) -> bool:
    dropped.append(why)
    return False


def holds(cited: Cited, lines: Lines, dropped: list[str]) -> bool:
    """Whether the line was shown and has the words; what is wrong with it goes into `dropped`."""
    line = lines.get((cited.file, cited.line))
    where = f"{cited.file}:{cited.line}"
    if line is None:
        return _drop(f"{where} was not shown", dropped)
    if speaks_to_model(line.text):
        return _drop(f"{where} speaks to who reads it", dropped)
    quote = _plain(cited.quote)
    if not quote or quote not in _plain(line.text):
        return _drop(f"{where} does not hold {cited.quote[:80]!r}", dropped)
    if not _is_sizeable(quote, line):
        return _drop(f"{cited.quote[:80]!r} is too little of {where}", dropped)
    return True


def _is_sizeable(quote: str, line: LogLine) -> bool:
    """Three words, or half of what the line says: a letter stands in every line."""
    words = [word for word in quote.split() if any(map(str.isalpha, word))]
    return len(words) >= _QUOTED or len(quote) * 2 >= len(_plain(split(line.text)[1]))


def _plain(text: str) -> str:
    return _WORDS.sub(" ", text).strip().casefold()
