"""The cases in eval/cases: the schema holds, labels point at real lines, and nothing a diagnosis can read tells the answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import REPO
from triage.evaluation.cases import Case, load_cases

CASES = {case.id: case for case in load_cases(REPO / "eval" / "cases")}
# The injector's cases are c101, c102 ...; each comes from processes that really ran.
INJECTED = [case for name, case in CASES.items() if re.fullmatch(r"c\d{3}", name)]
TELLING = re.compile(r"(?i)inject|fault|hang|oom|nan|crash|kill|corrupt|healthy|error|fail")


def input_files(case: Case) -> list[Path]:
    return [p for p in case.folder.rglob("*") if p.is_file() and p.name != "case.yaml"]


def test_the_injected_cases_cover_many_kinds() -> None:
    assert len(INJECTED) >= 60
    assert len({case.expect.failure_type for case in INJECTED}) >= 25
    assert sum(len(input_files(case)) > 1 for case in INJECTED) >= 8
    assert sum(case.expect.outcome == "healthy" for case in INJECTED) >= 8
    assert {case.expect.outcome for case in INJECTED} == {"failed", "hung", "interrupted", "healthy"}
    assert {case.split for case in INJECTED} == {"dev", "test"}


@pytest.mark.parametrize("case", CASES.values(), ids=lambda c: c.id)
def test_evidence_lies_within_the_files_and_holds_text(case: Case) -> None:
    for ref in case.expect.evidence or ():
        lines = (case.folder / ref.file).read_bytes().split(b"\n")
        assert 1 <= ref.first <= ref.last <= len(lines), ref
        assert any(line.strip() for line in lines[ref.first - 1 : ref.last]), ref


@pytest.mark.parametrize("case", INJECTED, ids=lambda c: c.id)
def test_an_injected_case_is_neutral_and_its_failure_has_a_line(case: Case) -> None:
    assert case.expect.outcome == "healthy" or case.expect.evidence
    for path in input_files(case):
        assert not TELLING.search(path.relative_to(case.folder).as_posix()), path
        text = path.read_text("utf-8", "replace").lower()
        for trace in ("inject", "sandbox", "/root/", "/mnt/out", "pytest-of-", str(REPO).lower()):
            assert trace not in text, f"{path}: {trace}"


def test_the_injected_cases_stay_small() -> None:
    assert sum(p.stat().st_size for case in INJECTED for p in input_files(case)) < 6_000_000
