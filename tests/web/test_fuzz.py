"""What the description of the API allows, and what it does not: nothing of it is answered with a failure of the server."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from tests.web.serving import WRITE, Served, as_

pytestmark = pytest.mark.service
SECONDS = 30.0  # of all operations together
MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)


def test_no_request_breaks_the_server(served: Served, incident: int) -> None:
    schema = schemathesis.openapi.from_url(f"{served.url}/api/v1/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) >= 15
    broken: list[str] = []
    asked, end = [0], time.monotonic() + SECONDS
    for number, operation in enumerate(operations):
        share = max(0.0, end - time.monotonic()) / (len(operations) - number) / len(MODES)
        for mode in MODES:
            ask(operation, mode, time.monotonic() + share, asked, broken)
    assert broken == []
    assert asked[0] > 200


def ask(operation: Any, mode: Any, until: float, asked: list[int], broken: list[str]) -> None:
    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=40, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def one(case: Any) -> None:
        if time.monotonic() > until:
            return
        answer = case.call(headers=as_(WRITE), timeout=60)
        asked[0] += 1
        if answer.status_code >= 500 or "Traceback" in answer.text:
            broken.append(f"{operation.method} {operation.path}: {answer.status_code} {answer.text[:200]}")

    with contextlib.suppress(Unsatisfiable):  # nothing can be wrong with a request that takes nothing
        one()
