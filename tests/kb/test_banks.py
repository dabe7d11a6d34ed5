"""The banks of lines against which learned rules are tried, and how the shipped rules stand to them."""

import runpy
from pathlib import Path

from triage import kb
from triage.compress.candidate import MIN_WORDING, Candidate, Refused
from triage.compress.classify import Classifier
from triage.compress.takes import Lines
from triage.evidence.match import Matcher
from triage.regex import skeleton

REPO = Path(__file__).resolve().parents[2]


def test_the_bank_of_labelled_lines_is_current():
    page = runpy.run_path(str(REPO / "tools" / "protected_bank.py"))["page"]()
    assert (REPO / "kb" / "protected" / "labelled.txt").read_text("utf-8") == page, (
        "run: python tools/protected_bank.py"
    )


def test_the_banks_hold_lines_of_many_kinds():
    assert len(kb.protected_lines()) > 700
    assert "Segmentation fault (core dumped)" in kb.protected_lines()
    assert 180 <= len(kb.unrelated_lines()) <= 250
    assert len(set(kb.unrelated_lines())) == len(kb.unrelated_lines())
    assert "#include <stdio.h>" in kb.unrelated_lines()
    assert not [line for line in (*kb.protected_lines(), *kb.unrelated_lines()) if line.startswith("# ")]


def test_the_scan_drops_no_protected_line():
    matcher = Matcher(kb.signatures())
    scan = Classifier(kb.filter_rules(), matcher.hot_patterns(), matcher.patterns)
    lines = [line.encode() for line in kb.protected_lines()]
    kinds = [scan.kind(scan.shape(raw, skeleton(raw)), raw).name for raw in lines]
    assert [raw for raw, kind in zip(lines, kinds, strict=True) if kind == "routine"] == []


def test_no_shipped_rule_with_a_wording_takes_an_unrelated_line():
    """Shipped rules for tables, numbers and settings have no wording of their own, which a learned rule must have."""
    unrelated = Lines(kb.unrelated_lines())
    tried, taken = 0, {}
    for rule in kb.filter_rules():
        try:
            candidate = Candidate(rule)
        except Refused as refused:
            assert refused.result.check == "size", rule.id  # people may write longer patterns than models
            continue
        if candidate.wording() >= MIN_WORDING:
            tried += 1
            if found := candidate.takes(unrelated):
                taken[rule.id] = [unrelated.texts[at] for at in found]
    assert tried > 80
    assert taken == {}
