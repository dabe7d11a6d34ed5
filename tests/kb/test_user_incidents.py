"""The user's own incidents stand beside the shipped ones; a file that is broken takes nothing else down."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage import kb
from triage.errors import KnowledgeError

GOOD = """\
id: site-7
org: Our cluster
date: 2026-05-01
title: Cooling loop of row 7 failed
failure_type: gpu-lost
root_cause_class: hardware-failure
components: [gpu]
symptoms: GPUs of one row throttle and then vanish.
error_strings: []
root_cause: A pump stopped.
remediation: [Moved the jobs to row 8.]
"""


def write(home: Path, name: str, text: str) -> Path:
    folder = kb.user_folder(home)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_without_a_folder_there_are_none(tmp_path: Path) -> None:
    assert kb.user_incidents(tmp_path) == ((), ())


def test_they_are_read_beside_the_shipped_ones(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", GOOD)
    (found,), problems = kb.user_incidents(tmp_path)
    assert (found.id, found.failure_type, found.date, found.outcome) == (
        "site-7",
        "gpu-lost",
        "2026-05-01",
        "confirmed",
    )
    assert problems == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected one incident"),
        ("- a list", "expected one incident"),
        ("id: [", "not valid YAML"),
        ("date: 2026-13-45", "not valid YAML"),
        (GOOD + "1: odd\nunheard: x\n", "no fields are called 1, unheard"),
        (GOOD.replace("gpu-lost", "gpu-gone"), "failure_type 'gpu-gone' is not one of"),
        (GOOD + "outcome: maybe\n", "outcome 'maybe' is not one of"),
        (GOOD + "sources: [x]\n", "sources must be a list, each with a url"),
        (GOOD + "sources: 3\n", "sources must be a list, each with a url"),
        (GOOD.replace("components: [gpu]", "components: gpu"), "components must be a list"),
        (GOOD.replace("id: site-7", "id: ''"), "needs an id and a title"),
        (GOOD.replace("id: site-7", "id: IL-0125"), "is in the knowledge base that triage ships already"),
    ],
)
def test_a_broken_file_is_said_and_the_others_are_used(tmp_path: Path, text: str, problem: str) -> None:
    broken = write(tmp_path, "broken.yaml", text)
    write(tmp_path, "good.yaml", GOOD)
    found, problems = kb.user_incidents(tmp_path)
    assert [incident.id for incident in found] == ["site-7"]
    (said,) = problems
    assert said.startswith(str(broken)) and problem in said and "\n" not in said


def test_bytes_that_are_no_text_are_said(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in kb.user_incidents(tmp_path)[1][0]


def test_an_id_may_stand_once(tmp_path: Path) -> None:
    first = write(tmp_path, "a.yaml", GOOD)
    write(tmp_path, "b.yaml", GOOD)
    found, problems = kb.user_incidents(tmp_path)
    assert len(found) == 1
    assert f"the id site-7 is in {first} already" in problems[0]


def test_nothing_can_be_run_from_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, "a.yaml", "id: !!python/object/apply:os.system ['true']\n")
    with pytest.raises(KnowledgeError, match="not valid YAML"):
        kb.load_incident(path)
