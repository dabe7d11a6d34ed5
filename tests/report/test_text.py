"""The text of a diagnosis: short, the answer before its proof, and nothing lost of a line but its middle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from triage.domain import Diagnosis, Evidence, Hypothesis, Remedy, Similar
from triage.report import render_text, to_json

LONG = (
    'Failed to pull image "images.example/team/train:1.2": rpc error: code = Unknown desc = failed to pull and unpack image, failed to '
    "copy: httpReadSeeker: failed open: unexpected status code https://images.example/v2/team/train/manifests/1.2: 429 Too Many Requests "
    "- Server message: toomanyrequests: You have reached your pull rate limit. You may increase the limit by upgrading your account"
)
SAYS = Similar("a-1", "Another hang", 0.5, "same failure type nccl-timeout; shared words `says`, `own`, `followed`")
TELLS = Similar("b-2", "The same", 0.6, "same failure type nccl-timeout; shared words `Xid 79`, `says`")
FULL = Diagnosis(
    outcome="failed",
    failure_type="launch-failure",
    category="scheduler",
    root_cause_class="config-error",
    status="established",
    root_cause="The image cannot be pulled: `429 Too Many Requests` (pod.txt:35).",
    action="fix-and-resubmit",
    evidence=(
        Evidence("E1", "pod.txt", 35, LONG, "root", "launch-failure", title="the image cannot be pulled"),
        *(
            Evidence(f"E{n}", "job.out", n, f"srun: error {n}", "cascade", "unknown", title=f"line {n}")
            for n in range(2, 9)
        ),
        Evidence("E9", "job.out", 90, 'File "/w/t.py", line 3', "context", "unknown", title="the deepest frame"),
    ),
    chain=tuple(f"E{n}" for n in range(1, 9)),
    hypotheses=tuple(
        Hypothesis(name, "unknown", f"it may be {name}", "hypothesis") for name in ("launch-failure", "hang")
    ),
    remediation=(
        Remedy("See the events of the pod", "they tell", "read-only", "kubectl describe pod a"),
        Remedy("Wait for the limit to pass", "the name is right", "reversible"),
    ),
    similar=(SAYS, TELLS),
)


def text(**changed: Any) -> str:
    return render_text(to_json(replace(FULL, **changed)), 80)


def test_the_action_and_the_first_command_come_right_after_the_cause() -> None:
    lines = text().splitlines()
    at = {
        mark: next(i for i, line in enumerate(lines) if mark in line) for mark in ("action ", "$ kubectl", "Evidence")
    }
    assert at["action "] < at["$ kubectl"] < at["Evidence"] and at["$ kubectl"] <= 8


def test_it_is_short_and_details_show_the_rest() -> None:
    short, whole = text(), render_text(to_json(FULL), 80, details=True)
    assert len(short.splitlines()) <= 45
    assert "3 more and their context: --verbose" in short
    for only in ("E9 job.out:90", "chain       E1 > E2", "Other hypotheses", "= the name is right", "cause class"):
        assert only in whole and only not in short
    assert all(len(line) <= 80 for line in [*short.splitlines(), *whole.splitlines()] if not line.startswith("     $"))


@pytest.mark.parametrize("status", ["supported", "hypothesis"])
def test_where_a_doubt_is_left_it_and_its_rivals_are_shown(status: Any) -> None:
    assert "Other hypotheses" in text(status=status) and f"status      {status}: " in text(status=status)
    assert "status " not in text()


def test_a_long_line_keeps_its_begin_and_the_reason() -> None:
    quoted = " ".join(line[7:] for line in text().splitlines() if line.startswith("     | "))
    assert quoted.startswith("Failed to pull image") and "429 Too Many Requests" in quoted


def test_an_incident_that_only_shares_plain_words_is_not_shown() -> None:
    assert "b-2: The same" in text() and "a-1" not in text()
    assert "a-1" in render_text(to_json(FULL), 80, details=True)
    assert [s["incident"] for s in to_json(FULL)["similar"]] == ["a-1", "b-2"]
