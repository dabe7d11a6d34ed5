"""Signatures and runbooks by words or by a line of a log, beside the incidents that `triage kb search` finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from triage import kb
from triage.domain import Runbook, Signature
from triage.regex import compile_pattern
from triage.retrieve.lexical import Lexicon, words
from triage.runbooks import SECTIONS, runbooks

MOST = 3  # of each kind
_LEAST = 0.6  # of the words asked for


@dataclass(frozen=True, slots=True)
class Known:
    """why: that a pattern fires on the text, or the words in common."""

    kind: str  # signature|runbook
    id: str
    failure_type: str
    title: str
    why: str

    def document(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "id": self.id,
            "failure_type": self.failure_type,
            "title": self.title,
            "why": self.why,
        }


def known(text: str, failure_type: str = "") -> tuple[Known, ...]:
    """The signatures that fire on the text or share its rare words, then the runbooks of their types or of these words."""
    signatures = [s for s in kb.signatures() if failure_type in ("", s.failure_type)]
    fires = [
        Known("signature", s.id, s.failure_type, s.title, "it fires on this text") for s in _firing(signatures, text)
    ]
    taken = {found.id for found in fires}
    found = fires + [hit for hit in _by_words(signatures, text) if hit.id not in taken]
    books = [book for book in runbooks().of.values() if failure_type in ("", book.id)]
    types = dict.fromkeys(hit.failure_type for hit in found[:MOST])
    of_types = [
        Known("runbook", b.id, b.id, b.title, "of the signature's failure type") for b in books if b.id in types
    ]
    more = [hit for hit in _by_words(books, text) if hit.id not in types]
    return (*found[:MOST], *(of_types + more)[:MOST])


def _firing(signatures: Iterable[Signature], text: str) -> Iterator[Signature]:
    """The most telling first."""
    lines = text.splitlines()
    hits = [s for s in signatures if any(_fires(s, line) for line in lines)]
    yield from sorted(hits, key=lambda s: (s.role != "root", -s.weight))


def _fires(signature: Signature, line: str) -> bool:
    return any(compile_pattern(p).search(line) for p in signature.patterns) and not any(
        compile_pattern(p).search(line) for p in signature.unless
    )


def _by_words(entries: Sequence[Signature | Runbook], text: str) -> list[Known]:
    """Those that hold most of the words asked for, the rarer words first."""
    listed = {entry.id: _texts(entry) for entry in entries}
    asked = {term for term, _ in words(text)}
    held = {name: {t for part in parts for t, _ in words(part)} & asked for name, parts in listed.items()}
    near = [name for name, terms in held.items() if asked and len(terms) >= _LEAST * len(asked)]
    if not near:
        return []
    lexicon = Lexicon(listed)
    scores = lexicon.scores(text)
    near.sort(key=lambda name: (-len(held[name]), -scores.get(name, 0.0), name))
    of = {entry.id: entry for entry in entries}
    return [_of(of[name], lexicon.shared(name, text)) for name in near[:MOST]]


def _of(entry: Signature | Runbook, shared: Sequence[str]) -> Known:
    kind = "signature" if isinstance(entry, Signature) else "runbook"
    why = f"shared words {', '.join(f'`{word}`' for word in shared)}" if shared else "the same words"
    return Known(kind, entry.id, entry.failure_type, entry.title, why)


def _texts(entry: Signature | Runbook) -> tuple[str, ...]:
    name = entry.id.replace("-", " ").replace(".", " ")
    if isinstance(entry, Signature):
        return (name, entry.title, entry.title, *entry.examples, entry.remedy, entry.failure_type.replace("-", " "))
    return (name, entry.title, entry.title, *(step.step for section in SECTIONS for step in getattr(entry, section)))
