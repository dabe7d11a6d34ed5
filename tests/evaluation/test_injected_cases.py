"""The cases that the fault injector made: complete, neutral, and with labels that point at real lines."""

from __future__ import annotations

import re

import pytest

from tests.conftest import REPO
from triage.evaluation.cases import load_cases

FOLDERS = sorted(p for p in (REPO / "eval" / "cases").glob("c*") if p.is_dir())


def test_there_are_at_least_thirty() -> None:
    assert len(FOLDERS) >= 30
    found = {case.id: case for case in load_cases(REPO / "eval" / "cases")}
    kinds = {found[folder.name].expect.failure_type for folder in FOLDERS}
    assert len(kinds) >= 15


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_a_case_is_neutral_and_its_decisive_lines_hold_text(folder) -> None:
    case = next(c for c in load_cases(folder) if c.id == folder.name)
    for file, first, last in ((e.file, e.first, e.last) for e in case.expect.evidence):
        lines = (folder / file).read_bytes().split(b"\n")
        assert any(line.strip() for line in lines[first - 1 : last]), f"{file}:{first}"
    text = b"\n".join(p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "case.yaml")
    assert not re.search(rb"inject|fault[_-]type|/tmp/pytest", text)
