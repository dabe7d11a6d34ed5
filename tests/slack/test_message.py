"""A diagnosis as a message in Slack."""

from __future__ import annotations

from tests.chat.talks import refuted, subject
from triage.slack.message import of_subject


def test_a_refuted_diagnosis_is_no_order_to_drain() -> None:
    named = dict(of_subject(subject()).fields)
    assert "scontrol update NodeName=gpu-042 State=DRAIN" in named["what to do"]
    wrong = of_subject(refuted())
    assert wrong.summary.startswith("ada rejected this diagnosis: somebody pulled the cable. Before, triage said: GPU")
    assert not {"what to do", "action"} & dict(wrong.fields).keys()
