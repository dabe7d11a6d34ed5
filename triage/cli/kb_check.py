"""The proof of the knowledge base: every file loads, and every rule matches what it must and nothing that it must not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from triage import kb, runbooks
from triage.compress.linewise import AFTER_PREFIX, RULE_END, confine
from triage.domain import FilterRule, Signature
from triage.errors import KnowledgeError
from triage.regex import compile_pattern, erase

_compiled = cache(compile_pattern)


def check(home: Path) -> tuple[dict[str, int], list[str]]:
    """How many entries of each kind were checked, and each problem as one line. home: of the user's own knowledge."""
    problems: list[str] = []
    counts = {
        "labels": len(_try(kb.taxonomy, problems).types),
        "cascades": len(_try(kb.cascades, problems) or ()),
    }
    _try(lambda: runbooks.load_actions(kb.root() / "actions.yaml"), problems)
    for kind, load, proof in (
        ("runbooks", lambda path: (runbooks.load_runbook(path),), runbooks.problems),
        ("signatures", kb.load_signatures, _signature),
        ("filters", kb.load_filters, _filter),
        ("incidents", lambda path: (kb.load_incident(path),), lambda _entry: ()),
    ):
        counts[kind] = _check_kind(kind, (kb.root(), home / "kb"), load, proof, problems)
    problems += [f"kb/runbooks/: no runbook for {name!r}" for name in runbooks.missing()]
    return counts, [" ".join(problem.split()) for problem in problems]


def _try(load: Callable[[], Any], problems: list[str]) -> Any:
    try:
        return load()
    except KnowledgeError as error:
        problems.append(str(error))
        return None


def _check_kind(
    kind: str,
    roots: Iterable[Path],
    load: Callable[[Path], Sequence[Any]],
    proof: Callable[[Any], Iterable[str]],
    problems: list[str],
) -> int:
    seen: dict[str, Path] = {}
    for path in (path for root in roots for path in sorted((root / kind).glob("*.yaml"))):
        for entry in _try(lambda path=path: load(path), problems) or ():  # type: ignore[misc]
            if entry.id in seen:
                problems.append(f"{path}: {entry.id}: the id stands in {seen[entry.id]} too")
            seen.setdefault(entry.id, path)
            try:
                problems += [f"{path}: {entry.id}: {problem}" for problem in proof(entry)]
            except KnowledgeError as error:
                problems.append(f"{path}: {entry.id}: {error}")
    return len(seen)


def _signature(signature: Signature) -> Iterable[str]:
    for pattern in (*signature.patterns, *signature.unless):
        _compiled(pattern)
    for pattern in signature.patterns:
        _compiled(erase(pattern))  # what the scan looks for
    return _proof(signature, lambda line: _any(signature.patterns, line) and not _any(signature.unless, line))


def _filter(rule: FilterRule) -> Iterable[str]:
    pattern = _compiled(confine(rule.pattern, AFTER_PREFIX, RULE_END))
    return _proof(rule, lambda line: bool(pattern.search(line)))


def _any(patterns: Iterable[str], line: str) -> bool:
    return any(_compiled(pattern).search(line) for pattern in patterns)


def _proof(entry: Signature | FilterRule, fires: Callable[[str], bool]) -> list[str]:
    none = [f"it has no {name}" for name in ("examples", "counter_examples") if not getattr(entry, name)]
    missed = [f"does not match its example {line!r}" for line in entry.examples if not fires(line)]
    taken = [f"matches its counter-example {line!r}" for line in entry.counter_examples if fires(line)]
    return [*none, *missed, *taken]
