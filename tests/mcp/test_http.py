"""`triage mcp --http`: the same tools for who has the token, on this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import httpx2
import pytest
from anyio.from_thread import BlockingPortal
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.conftest import REPO
from tests.mcp.serving import root_in, text
from triage.cli import mcp_parts
from triage.errors import UsageError
from triage.mcp.http import Guarded

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def test_the_client_calls_over_http_with_the_token_alone(tmp_path: Path, portal: BlockingPortal) -> None:
    root = root_in(tmp_path)
    env = {name: value for name, value in os.environ.items() if name != "TRIAGE_SHARED"} | {"PYTHONPATH": str(REPO)}
    command = [sys.executable, "-m", "triage", "mcp", "--http", "0", "--root", str(root)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=env)
    try:
        assert process.stderr
        told = process.stderr.readline()
        found = re.fullmatch(
            r"triage: serving (http://127\.0\.0\.1:\d+/mcp) with the token (\S+); Ctrl-C ends it\n", told
        )
        assert found, told
        url, token = found.groups()
        for wrong in ({}, {"Authorization": "Bearer no"}, {"Authorization": token}):
            assert httpx.post(url, json=PING, headers=wrong).status_code == 401
        foreign = {"Authorization": f"Bearer {token}", "Host": "evil.example"}
        assert httpx.post(url, json=PING, headers=foreign).status_code == 421

        async def compress() -> str:
            with_token = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"})
            async with Client(streamable_http_client(url, http_client=with_token)) as client:
                assert len((await client.list_tools()).tools) > 20
                return text(await client.call_tool("compress", {"paths": ["own.out"]}))

        assert "ModuleNotFoundError" in portal.call(compress)
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("header", "may"),
    [
        (b"Bearer good", True),
        (b"bearer good", True),
        (b"Bearer  good ", True),
        (b"Bearer goo", False),
        (b"Bearer good2", False),
        (b"Basic good", False),
        (b"good", False),
        (b"Bearer \xff", False),
        (b"", False),
    ],
)
def test_only_the_token_opens(portal: BlockingPortal, header: bytes, may: bool) -> None:
    sent: list[object] = []

    async def app(_scope: object, _receive: object, send: object) -> None:
        sent.append("answered")

    async def send(message: dict[str, object]) -> None:
        sent.append(message.get("status"))

    portal.call(Guarded(app, "good"), {"type": "http", "headers": [(b"authorization", header)]}, None, send)
    assert sent == (["answered"] if may else [401, None])


def test_a_token_that_can_be_guessed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIAGE_HOME", str(tmp_path))
    monkeypatch.setenv("TRIAGE_MCP_TOKEN", "short")
    with pytest.raises(UsageError, match="TRIAGE_MCP_TOKEN is shorter than 20 characters"):
        mcp_parts.run([str(tmp_path)], False, 0)
