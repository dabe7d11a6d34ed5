"""Runs the real command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import REPO


def _surroundings() -> dict[str, str]:
    """Without what is meant for the tests themselves: it is no setting."""
    return {name: value for name, value in os.environ.items() if name != "TRIAGE_SHARED"}


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def triage(tmp_path: Path) -> Run:
    """triage("diagnose", "x.log", stdin=..., cwd=...) -> the finished process, text in UTF-8."""

    def run(
        *args: str, stdin: str | bytes = "", cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [sys.executable, "-m", "triage", *args],
            input=data,
            capture_output=True,
            cwd=cwd or tmp_path,
            env={**_surroundings(), "PYTHONPATH": str(REPO), **env},
            timeout=120,
            check=False,
        )
        out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8", "replace")
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    return run
