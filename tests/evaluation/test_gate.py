from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPO
from tests.evaluation.answering import record
from triage.errors import InputError
from triage.evaluation import metrics
from triage.evaluation.gate import as_text, check, load_gate

HEAD = "schema: triage.gate/1\n"


def gate(tmp_path: Path, text: str, head: str = HEAD):
    (tmp_path / "gate.yaml").write_text(head + text)
    return load_gate(tmp_path / "gate.yaml")


def figures() -> dict[str, Any]:
    """Three of four right; one of them a healthy job."""
    want = {"type": "ecc-error"}
    table = {"outcome": "failed", "failure_type": "type-error", "evidence": [], "action": "none"}
    records = [
        record("a", want, {"type": "ecc-error", "outcome": "failed"}, baselines={"keyword-table": table}),
        record("b", want, {"type": "ecc-error", "outcome": "failed"}, baselines={"keyword-table": table}),
        record("c", want, {"type": "gpu-lost", "outcome": "failed"}, tags=["hard"]),
        record("d", {"outcome": "healthy", "type": "healthy"}, {"type": "healthy", "outcome": "healthy"}),
    ]
    return metrics.score(records)


def verdict(tmp_path: Path, text: str):
    return check(figures(), gate(tmp_path, text))


def test_floors_and_ceilings_hold_at_their_very_value(tmp_path: Path) -> None:
    found = verdict(tmp_path, "splits: {all: {type_accepted: {min: 0.75, n: 4}, false_alarm: {max: 0}}}")
    assert found.passed and len(found.passes) == 2
    assert found.passes[1] == "False alarm (false_alarm): 0% (0% to 79.35%) on 1 case (at most 0%)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "all: {type_accepted: {min: 0.76}}",
            r"^Failure type right \(type_accepted\): 75% \(.*\) on 4 cases; below its floor of 76%",
        ),
        ("all: {type_accepted: {max: 0.7}}", "above its ceiling of 70%"),
        ("all: {type_accepted: {min: 0.5, n: 5}}", "on 4 cases; needs 5 cases"),
        ("all: {node_top1: {min: 0.5}}", "\\(node_top1\\): cannot be checked, no case is labelled for it"),
        ("tag:large: {outcome: {min: 0.5}}", "cannot be checked, the run has no split 'tag:large'"),
        ("tag:hard: {type_exact: {min: 0.5}}", r"\(tag:hard type_exact\): 0% .* on 1 case; below its floor of 50%"),
    ],
)
def test_what_falls_short_fails_in_words(tmp_path: Path, text: str, words: str) -> None:
    found = verdict(tmp_path, f"splits:\n  {text}")
    assert not found.passed and not found.passes
    assert re.search(words, found.failures[0])


def test_the_margin_over_a_baseline_is_bounded_too(tmp_path: Path) -> None:
    assert verdict(tmp_path, "margins: {keyword-table: {type_accepted: {min: 1}}}").passed
    found = verdict(tmp_path, "margins: {first-error: {type_accepted: {min: 0}}}")
    assert found.failures == ("Failure type right over first-error (type_accepted): cannot be checked, the run has no baseline 'first-error'",)  # fmt: skip


def test_failures_come_first_in_the_text(tmp_path: Path) -> None:
    text = as_text(verdict(tmp_path, "splits: {all: {outcome: {min: 0}, type_exact: {min: 1}}}"))
    assert [line.split()[0] for line in text.splitlines()] == ["FAIL", "ok", "gate:"]
    assert text.endswith("gate: not passed, 1 of 2 checks failed\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("splits: {all: {type_acepted: {min: 1}}}", "splits.all.type_acepted: unknown metric, did you mean type_accepted"),
        ("splits: {all: {type_exact: 0.5}}", "splits.all.type_exact: must be a mapping, not 0.5"),
        ("splits: {all: {type_exact: {}}}", "splits.all.type_exact: needs min or max"),
        ("splits: {all: {type_exact: {n: 4}}}", "splits.all.type_exact: needs min or max"),
        ("splits: {all: {type_exact: {min: high}}}", "splits.all.type_exact.min: must be a number, not 'high'"),
        ("splits: {all: {type_exact: {min: true}}}", "must be a number, not True"),
        ("splits: {all: {type_exact: {min: .nan}}}", "must be a number, not nan"),
        ("splits: {all: {type_exact: {floor: 1}}}", "splits.all.type_exact.floor: unknown field"),
        ("splits: {all: {type_exact: {min: 1, max: 0}}}", "min 1 is above max 0"),
        ("splits: {all: {type_exact: {min: 0, n: -3}}}", "type_exact.n: must be a whole number of cases, not -3"),
        ("splits: {all: {type_exact: {min: 0, n: 0.9}}}", "type_exact.n: must be a whole number of cases, not 0.9"),
        ("splits: {all: {type_exact: {min: " + "9" * 400 + "}}}", "type_exact.min: must be a number, not 999"),
        ("splits: {all: {type_exact: {min: 0, min: 1}}}", "the key 'min' stands twice"),
        ("splits: [all]", "splits: must be a mapping"),
        ("margins: {x: {tokens: {min: 0}}}", "margins.x.tokens: unknown metric"),
        ("floors: {}", "floors: unknown field"),
        ("splits: {}", "bounds nothing"),
        ("splits: {all: ]", "not valid YAML"),
    ],
)  # fmt: skip
def test_a_gate_that_is_wrong_says_where(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        gate(tmp_path, text)
    assert words in str(caught.value) and "gate.yaml" in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_no_gate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no gate; it must begin with schema: triage\.gate/1"):
        gate(tmp_path, "splits: {}", head="")
    with pytest.raises(InputError, match="cannot be read"):
        load_gate(tmp_path / "none.yaml")


def test_the_gate_that_ships_is_sound() -> None:
    bounds = load_gate(REPO / "eval" / "gate.yaml")
    assert {"type_accepted", "outcome", "root_hit", "false_alarm", "citation_valid", "answered"} <= {b.metric for b in bounds}  # fmt: skip
