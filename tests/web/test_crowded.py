"""Answers that take minutes, of a slow model, leave the server free for everything else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx

from tests.web.serving import READ, as_
from triage.chat.values import Done, Event
from triage.web import access, app
from triage.web.chats import MOST_ANSWERS
from triage.web.parts import Options, Parts


class Slow:
    """A conversation whose model answers once it is let."""

    def __init__(self, let: threading.Event) -> None:
        self._let = let
        self.turns: list[Any] = []
        self.form = None

    def ask(self, _said: str) -> Iterator[Event]:
        self._let.wait(60)
        yield Done()


def test_health_is_answered_while_everybody_waits_for_a_model(tmp_path: Path) -> None:
    let = threading.Event()
    given = SimpleNamespace(
        access=access.Access([access.token("a", "read", READ)], b"k"), converse=lambda *_: Slow(let),
        store=SimpleNamespace(list=lambda **_: ()), version="1",
    )  # fmt: skip
    served = app.create(cast("Parts", given), Options(tmp_path, rate=60_000))

    async def asked() -> tuple[list[int], int, list[int]]:
        transport = httpx.ASGITransport(served)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://x", headers=as_(READ)) as client:
            questions = [
                asyncio.create_task(client.post(f"/api/v1/incidents/{n}/chat", json={"said": "why?"}))
                for n in range(1, 61)
            ]
            try:
                refused = set[asyncio.Task[httpx.Response]]()
                for _second in range(60):
                    if len(refused) < 60 - MOST_ANSWERS:
                        refused, _ = await asyncio.wait(questions, timeout=1)
                health = await asyncio.wait_for(client.get("/api/v1/health"), 20)
            finally:
                let.set()
            return [q.result().status_code for q in refused], health.status_code, [
                (await q).status_code for q in questions if q not in refused
            ]  # fmt: skip

    refused, health, answered = asyncio.run(asked())
    assert refused == [503] * (60 - MOST_ANSWERS)
    assert health == 200
    assert answered == [200] * MOST_ANSWERS
