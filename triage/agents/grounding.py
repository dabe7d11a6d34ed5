"""Holds what a model says to the log: lines that are there, words that stand in them, names that occur. Pure.

What fails is dropped and counted. A cause that names what is nowhere, or points at no line that is there, is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from triage.agents.answer import Answer, Cited
from triage.agents.injected import holds_command, speaks_to_model
from triage.domain import LogLine

Lines = Mapping[tuple[str, int], LogLine]

# What a sentence may only say if the input says it: numbers, paths, names of hosts and files, what is quoted.
_NAMED = re.compile(
    r"(\w{2,12}://[^\s`\"'<>)\]]+)"
    r"|`([^`]{2,200})`"
    r"|(?<![\w/.])((?:/[\w.@%+=:-]+){2,})"
    r"|(?<![\w.-])([A-Za-z][A-Za-z_.-]*\d[\w.-]*)"
    r"|(?<![\w.-])([A-Za-z0-9_-]+\.(?:py|sh|cc|cpp|cu|yaml|json|log|out|err|bin|pt|so)\b)"
    r"|(?<![\w.])(\d+(?:\.\d+)?)(?![\w])"
)
_WORDS = re.compile(r"\s+")
_SMALL = 3  # numbers below it are words of any sentence


@dataclass(frozen=True, slots=True)
class Grounded:
    """answer: without what did not hold; dropped: that, in words; broken: why the cause itself cannot stand."""

    answer: Answer
    dropped: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


def ground(answer: Answer, lines: Lines, corpus: str, nodes: frozenset[str], ranks: frozenset[int]) -> Grounded:
    """lines: all that may be cited; corpus: all that the model was told of this job; nodes, ranks: those that occur."""
    dropped: list[str] = []
    cited = tuple(c for c in answer.cited if holds(c, lines, dropped))
    good_nodes = tuple(n for n in answer.nodes if _kept(n in nodes or _occurs(n, corpus), f"node {n}", dropped))
    good_ranks = tuple(r for r in answer.ranks if _kept(r in ranks, f"rank {r}", dropped))
    steps = tuple(s for s in answer.steps if _is_advice(s, corpus, dropped))
    broken = [
        f"{name!r} of root_cause stands nowhere in the input" for name in unknown_names(answer.root_cause, corpus)
    ]
    if answer.names_a_cause and not any(c.role == "root" for c in cited):
        broken.append("no line with the role root is cited that is there and holds its quote")
    return Grounded(
        replace(answer, cited=cited, nodes=good_nodes, ranks=good_ranks, steps=steps), tuple(dropped), tuple(broken)
    )


def unknown_names(text: str, corpus: str) -> tuple[str, ...]:
    """The names, paths and numbers of a sentence that the corpus does not hold."""
    found = (next(filter(None, match.groups())) for match in _NAMED.finditer(text))
    names = dict.fromkeys(name.rstrip(".,:;") for name in found)
    return tuple(name for name in names if not _trivial(name) and not _occurs(name, corpus))


def _trivial(name: str) -> bool:
    return not name or (name.isdigit() and int(name) < _SMALL)


def _occurs(name: str, corpus: str) -> bool:
    """As it stands, not as a part of a longer name or number."""
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", corpus) is not None


def _kept(good: bool, what: str, dropped: list[str]) -> bool:
    if not good:
        dropped.append(f"{what} does not occur in the input")
    return good


def holds(cited: Cited, lines: Lines, dropped: list[str]) -> bool:
    """Whether the line was shown and has the words; what is wrong with it goes into `dropped`."""
    line = lines.get((cited.file, cited.line))
    where = f"{cited.file}:{cited.line}"
    if line is None:
        dropped.append(f"{where} was not shown")
        return False
    if speaks_to_model(line.text):
        dropped.append(f"{where} speaks to who reads it")
        return False
    if not cited.quote or _plain(cited.quote) not in _plain(line.text):
        dropped.append(f"{where} does not hold {cited.quote[:80]!r}")
        return False
    return True


def _is_advice(step: tuple[str, str], corpus: str, dropped: list[str]) -> bool:
    """In words only: a command that a log gave to a model must not come out as ours."""
    if holds_command(" ".join(step), corpus):
        dropped.append(f"step {step[0]!r} holds a command")
        return False
    return _kept(not unknown_names(" ".join(step), corpus), f"step {step[0]!r}", dropped)


def _plain(text: str) -> str:
    return _WORDS.sub(" ", text).strip().casefold()
