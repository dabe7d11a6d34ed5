"""The scan with the rules and signatures that ship: no example of a signature is lost, none of a rule stays."""

from collections.abc import Sequence
from typing import Any

import re2

from tests.compress.seed import EVERYTHING
from triage import kb
from triage.compress import clean, guard
from triage.compress.engine import Scanner
from triage.regex import erase, erased_words, skeleton

SIGNATURES = [pattern for signature in kb.signatures() for pattern in signature.patterns]


def scanned(lines: list[str]) -> list[tuple[str, str]]:
    """Each line as the scan kept it, and what became of it."""
    scanner = Scanner(kb.filter_rules(), [erase(p) for p in SIGNATURES], limits=EVERYTHING, signatures=SIGNATURES)
    found = scanner.scan("job.log", ["\n".join(lines).encode()])
    kept = [
        (line.number, clean.text(line.raw), "hot" if template.hot else template.rule or "")
        for template in found.runs[0].templates
        for line in (*template.first, *template.last)
    ]
    assert len(kept) == found.lines_in
    return [(text, kind) for _, text, kind in sorted(kept)]


def test_the_examples_of_signatures_are_hot_and_nothing_else_is():
    lines = [
        line
        for signature in kb.signatures()
        for line in (*signature.examples, *signature.counter_examples)
        if "\n" not in line and "\r" not in line
    ]
    groups = [together(SIGNATURES[at : at + 50]) for at in range(0, len(SIGNATURES), 50)]
    found = scanned(lines)
    assert len(found) == len(lines)
    for text, kind in found:
        assert (kind == "hot") == any(group.Match(text.rstrip()) for group in groups), text


def together(patterns: Sequence[str]) -> Any:
    """RE2's own set: which of the patterns are found in a text."""
    group = re2.Set.SearchSet()
    for pattern in patterns:
        group.Add(pattern)
    group.Compile()
    return group


def test_the_examples_of_rules_are_dropped_unless_hot_or_guarded():
    lines = [line for rule in kb.filter_rules() for line in rule.examples if "\n" not in line and "\r" not in line]
    stay = [text for text, kind in scanned(lines) if not kind and guard.alarm(text) in ("", "warning", "mention")]
    assert stay == []


def test_the_words_of_an_erased_pattern_are_in_the_skeleton_of_what_the_pattern_matches():
    for signature in kb.signatures():
        for pattern in signature.patterns:
            needed = erased_words(pattern)
            regex = re2.compile(pattern)
            for line in signature.examples:
                if needed is not None and regex.search(line):
                    bare = skeleton(line.encode()).decode().casefold()
                    assert any(word in bare for word in needed), (pattern, line)
