"""`triage mcp` as a command; the tools are tested in tests/mcp."""

from __future__ import annotations

import json
import sys

import pytest

from tests.cli.conftest import Run
from tests.mcp.serving import HELLO
from triage.cli.mcp import mcp
from triage.errors import UsageError


def test_it_ends_when_stdin_ends(triage: Run) -> None:
    done = triage("mcp", stdin=HELLO + "no protocol\n")
    assert done.returncode == 0
    assert [json.loads(line)["jsonrpc"] for line in done.stdout.splitlines()]


def test_a_root_must_be_there(triage: Run) -> None:
    done = triage("mcp", "--root", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "triage: --root nowhere is no folder; give a folder that is there\n"


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import triage.cli

    monkeypatch.delattr(triage.cli, "mcp_parts", raising=False)
    monkeypatch.delitem(sys.modules, "triage.cli.mcp_parts", raising=False)
    monkeypatch.delitem(sys.modules, "triage.mcp.server", raising=False)
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    with pytest.raises(UsageError, match=r"needs the package mcp_types.*pip install 'hpc-triage\[mcp\]'"):
        mcp(None, None, None)
