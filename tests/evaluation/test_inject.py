"""The fault injector makes failures for real, and its labels hold for what the processes printed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPO
from triage.evaluation.cases import Case, load_cases

RUN = REPO / "eval" / "inject" / "run.py"


def inject(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUN), *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)


@pytest.fixture
def machine() -> None:
    """A machine on which a sandbox can be made."""
    if os.geteuid() or not (Path(sys.prefix) / "pyvenv.cfg").exists():
        pytest.skip("needs root and a virtual environment with torch")
    if subprocess.run(["unshare", "-m", "-u", "-n", "-i", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine allows no namespaces")


def lines(case: Case) -> list[str]:
    """The labelled lines, in order."""
    found: list[str] = []
    for ref in case.expect.evidence or ():
        found += (case.folder / ref.file).read_bytes().decode().split("\n")[ref.first - 1 : ref.last]
    return found


def test_every_shipped_case_of_the_injector_has_its_fault() -> None:
    listed = inject("--list")
    assert listed.returncode == 0, listed.stderr
    names = {line.split()[0] for line in listed.stdout.splitlines()}
    shipped = {p.name for p in (REPO / "eval" / "cases").glob("c[12][0-9][0-9]")}
    assert shipped
    assert shipped <= names


def test_an_unknown_fault_is_a_usage_error(tmp_path: Path) -> None:
    done = inject("no-such-thing", "--out", tmp_path)
    assert done.returncode == 2
    assert "no such fault: no-such-thing; see --list" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.torch
def test_two_real_failures_and_their_labels(tmp_path: Path, machine: None) -> None:
    done = inject("key-error", "sigkill", "--out", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cases = {case.id: case for case in load_cases(tmp_path)}
    error, killed = cases["c101"], cases["c121"]

    assert error.expect.failure_type == "key-error"
    assert error.expect.ranks == (3,)
    assert lines(error) == ["[rank3]: KeyError: 'lm_loss'"]

    assert killed.expect.failure_type == "unknown"
    assert any("exitcode: -9" in line and "local_rank: 2" in line for line in lines(killed))
    text = (killed.folder / "job.log").read_text()
    assert "/home/user/run/" in text
    assert str(tmp_path) not in text
