"""The fault injector makes failures for real, and its labels hold for what the processes printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPO
from triage.evaluation.cases import Case, load_cases

RUN = REPO / "eval" / "inject" / "run.py"


def inject(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(RUN), *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)


def labelled_lines(case: Case) -> list[str]:
    """The lines that the label calls decisive, as they stand in the case's files."""
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


def sandbox_refused() -> str:
    """Why this machine cannot make a sandbox; empty where it can."""
    if os.geteuid() or not (Path(sys.prefix) / "pyvenv.cfg").exists():
        return "needs root and a virtual environment with torch"
    if subprocess.run(["unshare", "-m", "-u", "-n", "-i", "true"], check=False, capture_output=True).returncode:
        return "this machine allows no namespaces"
    return ""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """Three cases, from runs made now: an exception on one rank, a kill -9, ranks that call different collectives."""
    if reason := sandbox_refused():
        pytest.skip(reason)
    out = tmp_path_factory.mktemp("made")
    done = inject("key-error", "sigkill", "collective-mismatch", "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    return {case.id: case for case in load_cases(out)}


@pytest.mark.torch
def test_an_exception_on_one_rank(made: dict[str, Case]) -> None:
    case = made["c101"]
    assert (case.expect.outcome, case.expect.failure_type, case.expect.ranks) == ("failed", "key-error", (3,))
    assert labelled_lines(case) == ["[rank3]: KeyError: 'lm_loss'"]
    assert "ChildFailedError" in (case.folder / "job.log").read_text()


@pytest.mark.torch
def test_a_killed_rank(made: dict[str, Case]) -> None:
    case = made["c121"]
    assert (case.expect.outcome, case.expect.failure_type, case.expect.ranks) == ("failed", "unknown", (2,))
    assert any("exitcode: -9" in line and "local_rank: 2" in line for line in labelled_lines(case))


@pytest.mark.torch
def test_ranks_that_call_different_collectives(made: dict[str, Case]) -> None:
    case = made["c145"]
    assert (case.expect.outcome, case.expect.failure_type) == ("failed", "collective-mismatch")
    assert labelled_lines(case)
    assert all("Detected mismatch between collectives on ranks" in line for line in labelled_lines(case))


@pytest.mark.torch
def test_the_made_files_show_the_sandbox_and_not_this_machine(made: dict[str, Case]) -> None:
    for case in made.values():
        text = (case.folder / "job.log").read_text()
        assert "/home/user/run/" in text
        for trace in (str(REPO), str(case.folder.parent), sys.prefix):
            assert trace not in text, f"{case.id}: {trace}"
        assert not re.search(rf"\b{re.escape(os.uname().nodename)}\b", text), case.id
