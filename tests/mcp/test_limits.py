"""What an assistant may not: the same tools, asked in this process; and how the process ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import BlockingPortal
from mcp import Client

from tests.cli.test_job import ERROR, FakePrograms, row
from tests.conftest import REPO
from tests.mcp.serving import HELLO, LOG, Call, root_in, text
from tests.slurm.shapes import BATCH, STEP, table
from triage import config
from triage.agents.tools.kit import Found, tool
from triage.cli import mcp_parts
from triage.mcp.server import MOST_CHARS, Service


@contextmanager
def served(root: Path, portal: BlockingPortal, writes: bool = False) -> Iterator[Call]:
    with (
        mcp_parts.serving(config.load(), [str(root)], writes) as service,
        portal.wrap_async_context_manager(Client(service.server)) as client,
    ):
        yield lambda name, **arguments: portal.call(client.call_tool, name, arguments)


@pytest.fixture
def asked(tmp_path: Path, portal: BlockingPortal) -> Iterator[Call]:
    """Read-only, below the folder `logs`."""
    with served(root_in(tmp_path), portal) as call:
        yield call


def test_nothing_is_written_unless_allowed(asked: Call) -> None:
    assert "about: d1, not recorded" in text(asked("diagnose", paths=["own.out"]))
    assert "there is no tool 'resolve'" in text(asked("resolve", about="d1", verdict="confirmed"))
    assert "<result>\nnone\n" in text(asked("incidents"))
    assert "own.out:5" in text(asked("evidence", about="d1"))


def test_links_lead_nowhere_else(asked: Call, tmp_path: Path) -> None:
    (tmp_path / "secret.out").write_text(LOG)
    (tmp_path / "logs" / "link.out").symlink_to(tmp_path / "secret.out")
    assert "link.out is outside of the roots" in text(asked("diagnose", paths=["link.out"]))
    assert "leads outside of the roots" in text(asked("compress", paths=["."]))


def test_a_log_that_was_recorded_from_elsewhere_is_not_read_again(
    asked: Call, tmp_path: Path, portal: BlockingPortal
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "other.out").write_text(LOG)
    with served(elsewhere, portal, writes=True) as call:
        assert "recorded as incident 1" in text(call("diagnose", paths=["other.out"]))
        assert "other.out:3 " in text(call("read_lines", about="1", file="other.out", line=3))
    assert "other.out:5 " in text(asked("evidence", about="1"))
    refused = asked("read_lines", about="1", file="other.out", line=3)
    assert refused.is_error
    assert "other.out is outside of the roots" in text(refused)


def test_a_job_leads_to_no_log_outside_of_the_roots(
    asked: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = FakePrograms(tmp_path / "bin")
    monkeypatch.setenv("PATH", programs.env["PATH"])
    programs.sacct(table("24.05", row(tmp_path), BATCH, STEP))
    (tmp_path / "4242.out").write_text(ERROR)
    refused = asked("diagnose", job="4242")
    assert refused.is_error
    assert "4242.out is outside of the roots" in text(refused)
    (tmp_path / "4242.out").rename(tmp_path / "logs" / "4242.out")
    tasks = [row(tmp_path / "logs", JobID=f"4242_{n}", JobIDRaw=f"424{n}", StdOut="4242.out") for n in (1, 2)]
    programs.sacct(table("24.05", *tasks))
    told = text(asked("diagnose", job="4242"))
    assert "import-error" in told
    assert "of 2 failed tasks the first is talked about" in told


def test_answers_are_bounded(asked: Call, tmp_path: Path) -> None:
    lines = [f"rank {n % 64} says {'abc' * 200} {n}\n" for n in range(3000)]
    (tmp_path / "logs" / "big.out").write_text("".join(lines) + LOG)
    shown = [asked("diagnose", paths=["big.out"]), asked("compress", paths=["big.out"], tokens=10**9)]
    shown += [asked("search_log", about="d1", pattern="says"), asked("log", about="d1", of="big.out", line=2000)]
    assert not any(result.is_error for result in shown)
    assert max(len(text(result)) for result in shown) < MOST_CHARS + 500


def test_a_call_that_nobody_waits_for_ends(portal: BlockingPortal) -> None:
    heard: list[Callable[[str], None]] = []
    ended = threading.Event()

    def slow(_asked: Any) -> Found:
        try:
            while True:
                heard[-1]("still reading")
                time.sleep(0.02)
        finally:
            ended.set()

    service = Service(
        (tool("slow", "never ends", slow), tool("quick", "ends", lambda _: Found("x"))), frozenset(), heard.append
    )

    async def leave() -> None:
        async with Client(service.server) as client:
            with anyio.move_on_after(0.3):
                await client.call_tool("slow", {})
            assert "x" in text(await client.call_tool("quick", {}))

    portal.call(leave)
    assert ended.wait(10)


# ---------------------------------------------------------------------------------------------- the process
def test_sigterm_ends_it_at_once_and_stdout_holds_the_protocol_alone(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "triage", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "TRIAGE_SHARED"} | {"PYTHONPATH": str(REPO)},
    )
    try:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(HELLO)
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert answer["result"]["serverInfo"]["name"] == "triage"
        process.terminate()
        assert process.wait(30) == 0
        assert (process.stdout.read(), process.stderr.read()) == ("", "")
    finally:
        process.kill()
        process.communicate()
