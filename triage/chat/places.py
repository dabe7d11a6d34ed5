"""What a question names of a log: lines, ranks, nodes and files."""

from __future__ import annotations

import re

from triage.agents.naming import REFERENCE
from triage.chat.values import Subject
from triage.errors import TriageError
from triage.evidence.known import known_nodes

_TOLD = 8  # nodes, and files, where what was asked for is none of them
EVIDENCE = re.compile(r"(?i)\bE(\d{1,4})\b")
PLACE = REFERENCE  # FILE:LINE
TRACEBACK = re.compile(r"(?i)\b(?:traceback|stack ?trace|exception|call stack)\b")
CLOCK = re.compile(r"(?<![\d:])(\d{1,2}:\d\d(?::\d\d)?)(?![\d:])")
RANK = re.compile(r"(?i)\b(?:rank|ranks|r)[ #:=]{0,2}(\d{1,7})\b")

NO_RANK = re.compile(r"(?i)\branks?[ #:=]{1,2}(-\d+)")


def named(subject: Subject, said: str) -> str:
    """The file or node that a question names."""
    words = [word.strip("?!.,;:'\"`()") for word in said.split()]
    files = subject.result.get("files", ())
    for word in words:
        ends = [name for name in files if name == word or (len(word) > 3 and name.endswith(word))]
        if len(ends) == 1:
            return str(ends[0])
    known = nodes(subject)
    return next((word for word in words if word in known), "")


def nodes(subject: Subject) -> set[str]:
    """All that are known, of the log too where it can be read again."""
    known = {e["node"] for e in subject.evidence if e.get("node")} | set(subject.result["suspects"]["nodes"])
    known |= set(subject.stored.summary.nodes) if subject.stored else set()
    try:
        return known | known_nodes(subject.open_log().log)
    except TriageError:
        return known


def names_node(subject: Subject, said: str) -> bool:
    name = named(subject, said)
    return bool(name) and name not in subject.result.get("files", ())


def names_one(subject: Subject, said: str) -> bool:
    """Whether it is a file or node of the evidence by itself."""
    word = said.strip().strip("?`'\"")
    known = {*subject.result["suspects"]["nodes"], *(e.get("node") for e in subject.evidence)}
    return word in known or word in subject.result.get("files", ())


def names_log(said: str) -> bool:
    """Whether it is a place of the log by itself: E3, or FILE:LINE."""
    word = said.strip()
    found = PLACE.fullmatch(word)
    return bool(EVIDENCE.fullmatch(word)) or bool(found and not re.fullmatch(r"[\d.]+", found[1]))


def is_place(subject: Subject, what: str) -> bool:
    """Whether around_failure understands it."""
    known = (EVIDENCE, PLACE, TRACEBACK, CLOCK, RANK)
    return any(form.search(what) for form in known) or bool(named(subject, what))


def there(subject: Subject) -> str:
    """What could have been named."""
    found = (("nodes", sorted(nodes(subject))), ("files", subject.result.get("files", ())))
    parts = [
        f"{kind} {', '.join(names[:_TOLD])}{' ...' if len(names) > _TOLD else ''}" for kind, names in found if names
    ]
    return f"; there are {' and '.join(parts)}" if parts else ""
