"""A model that is slow, and a client that goes away."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.openai_server import Answer, Asked, OpenAIServer
from tests.web import serving
from tests.web.serving import LOST_GPU

pytestmark = pytest.mark.service


def slow(asked: Asked) -> Answer:
    """To a question, not to what explains the diagnosis."""
    if "what should I do?" not in asked.text:
        return Answer("nothing")
    return Answer("The GPU has fallen off the bus [E1]. " * 30, drip=0.05)


def test_a_client_that_goes_away_leaves_the_conversation_free(tmp_path: Path) -> None:
    with OpenAIServer(slow) as model:
        served = serving.start(
            tmp_path, TRIAGE_LLM="openai:slow", TRIAGE_LLM_BASE_URL=model.url, TRIAGE_LLM_API_KEY="none"
        )
        try:
            number = served.diagnosed({"a.dmesg": (LOST_GPU / "gpu-042.dmesg").read_bytes()})
            path = f"/api/v1/incidents/{number}/chat"
            with served.client() as client:
                with client.stream("POST", path, json={"said": "what should I do?"}) as answer:
                    pieces = answer.iter_bytes(16)  # which closes the answer when it is forgotten
                    next(pieces)
                    assert served.client().post(path, json={"said": "/hypotheses"}).status_code == 409
                end = time.monotonic() + 30
                while (code := client.post(path, json={"said": "/hypotheses"}).status_code) == 409:
                    assert time.monotonic() < end
                    time.sleep(0.2)
                assert code == 200
                assert "stopped" in {turn["state"] for turn in client.get(path).json()}
        finally:
            serving.kill(served)
