"""Frightening but harmless logs are not called failed."""

from __future__ import annotations

import pytest

from tests.conftest import REPO
from triage import pipeline
from triage.cli import wiring
from triage.parts import Parts

HEALTHY = sorted((REPO / "eval" / "healthy").glob("*.log"))


@pytest.fixture(scope="module")
def parts() -> Parts:
    return wiring.parts(wiring.settings("off"), lambda _text: None, record=False, similar=False)


@pytest.mark.parametrize("path", HEALTHY, ids=lambda p: p.stem)
def test_a_healthy_log_is_called_healthy(parts: Parts, path) -> None:
    result, _ = pipeline.diagnose([str(path)], parts)
    assert (result.outcome, result.action) == ("healthy", "none"), result.root_cause


def test_there_are_healthy_logs() -> None:
    assert len(HEALTHY) >= 10
