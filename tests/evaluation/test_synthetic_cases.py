"""The synthetic cases eval/cases/s*: complete labels that point at real lines, names that say nothing, files that can be made again."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

REPO = Path(__file__).resolve().parents[2]
CASES = REPO / "eval" / "cases"
FOLDERS = sorted(CASES.glob("s[0-9][0-9][0-9]"))
TAXONOMY = yaml.safe_load((REPO / "kb" / "taxonomy.yaml").read_text("utf-8"))
TYPES = {t["id"] for t in TAXONOMY["failure_types"]}
ACTIONS = {a["id"] for a in TAXONOMY["actions"]}
TAGS = {
    "cascade", "hang", "hardware", "healthy", "interrupted", "kernel", "kubernetes", "large", "misleading", "multi-file", "multi-node",
    "multi-run", "network", "scheduler", "slurm", "storage", "training", "unknown",
}  # fmt: skip
# Words of a file name that would tell the answer.
TELLING = re.compile(
    r"oom|nan|hang|hung|stuck|kill|crash|fail|error|fault|corrupt|timeout|preempt|cancel|healthy|good|bad|abort|ecc|xid|segv|mismatch|spike"
    r"|dead|lost|broken|success",
    re.IGNORECASE,
)
SIZE = 12_000_000  # bytes of all cases together


def label(folder: Path) -> dict[str, Any]:
    return yaml.safe_load((folder / "case.yaml").read_text("utf-8"))


def inputs(folder: Path) -> Iterator[Path]:
    return (p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != "case.yaml")


@pytest.fixture(scope="module")
def made() -> Any:
    """The generators."""
    sys.path.insert(0, str(REPO / "eval"))
    try:
        from synth import build, kit

        build.load()
        yield kit
    finally:
        sys.path.remove(str(REPO / "eval"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_labels_are_complete_and_of_the_taxonomy(folder: Path) -> None:
    case, expect = label(folder), label(folder)["expect"]
    assert (case["schema"], case["id"], case["synthetic"]) == ("triage.case/1", folder.name, True)
    assert case["license"] == "Apache-2.0" and case["source"] and case["split"] in ("dev", "test")
    assert set(case["tags"]) <= TAGS
    assert {expect["outcome"], *expect["also_outcome"]} <= set(TAXONOMY["outcomes"])
    assert {expect["failure_type"], *expect["also_accept"], *expect["must_not"]} <= TYPES
    assert not {expect["failure_type"], *expect["also_accept"]} & set(expect["must_not"])
    assert {expect["root_cause_class"], *expect.get("root_cause_class_accept", [])} <= set(
        TAXONOMY["root_cause_classes"]
    )
    assert set(expect.get("status", [])) <= set(TAXONOMY["statuses"])
    assert expect["action"] and set(expect["action"]) <= ACTIONS
    assert all(isinstance(r, int) for r in expect.get("ranks", [])) and all(
        isinstance(n, str) for n in expect.get("nodes", [])
    )
    assert all(
        isinstance(m, list) and m and all(isinstance(w, str) and w for w in m) for m in expect.get("must_mention", [])
    )
    assert expect["why"] and case.get("gpu_hours", 0) >= 0
    assert (expect["outcome"] == "healthy") == (expect["failure_type"] == "healthy") == ("healthy" in case["tags"])
    assert bool(expect["evidence"]) or expect["outcome"] == "healthy"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_evidence_lies_in_the_files(folder: Path) -> None:
    case = label(folder)
    names = {p.relative_to(folder).as_posix() for p in inputs(folder)}
    assert sorted({n.split("/")[0] for n in names}) == case["inputs"]
    for file, first, last in case["expect"]["evidence"]:
        rows = (folder / file).read_bytes().decode().split("\n")
        assert 1 <= first <= last < len(rows)
        assert all(row.strip() for row in rows[first - 1 : last])


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_blamed_nodes_and_ranks_stand_in_the_files(folder: Path) -> None:
    expect = label(folder)["expect"]
    text = "\n".join(p.read_text("utf-8") + p.name for p in inputs(folder))
    for node in expect.get("nodes", []):
        assert node in text
    for rank in expect.get("ranks", []):
        assert re.search(rf"(?<!\d){rank}(?!\d)", text)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_names_say_nothing_of_the_answer(folder: Path) -> None:
    for path in inputs(folder):
        name = path.relative_to(folder).as_posix()
        assert not TELLING.search(name), name
        assert not any("-" in kind and kind in name for kind in TYPES), name


def test_marked_lines_are_what_the_labels_point_at(made: Any) -> None:
    assert set(made.REGISTRY) == {f.name for f in FOLDERS}
    for folder in FOLDERS:
        rows = {}
        for file, first, last in label(folder)["expect"]["evidence"]:
            lines = (folder / file).read_bytes().decode().split("\n")
            rows.update({(file, n): lines[n - 1] for n in range(first, last + 1)})
        case = made.build(folder.name)
        assert rows == {(log.name, n): text for log in case.files.values() for n, text in log.marked.items()}, (
            folder.name
        )


@pytest.mark.parametrize("name", ["s005", "s016"])
def test_the_command_writes_the_same_bytes(name: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, REPO / "eval" / "synth" / "build.py", name, "--out", tmp_path], check=True)
    written = {p.relative_to(tmp_path / name): p.read_bytes() for p in (tmp_path / name).rglob("*") if p.is_file()}
    kept = {p.relative_to(CASES / name): p.read_bytes() for p in (CASES / name).rglob("*") if p.is_file()}
    assert written == kept


def test_there_are_enough_of_each_kind() -> None:
    cases = [label(f) for f in FOLDERS]
    tags, outcomes = Counter(t for c in cases for t in c["tags"]), Counter(c["expect"]["outcome"] for c in cases)
    assert len(cases) >= 110
    assert tags["misleading"] >= 45 and tags["multi-run"] >= 4
    assert outcomes["healthy"] >= 15 and outcomes["hung"] >= 8 and outcomes["interrupted"] >= 8
    assert sum(c["expect"]["failure_type"] == "unknown" for c in cases) >= 8
    assert sum("multi-file" in c["tags"] for c in cases) * 3 >= len(cases)
    assert sum("gpu_hours" in c for c in cases) >= 100


def test_each_failure_type_has_a_case() -> None:
    """Types that are symptoms, or that no case has for its own, are at least accepted by one."""
    kinds = {k for f in FOLDERS for k in (label(f)["expect"]["failure_type"], *label(f)["expect"]["also_accept"])}
    assert kinds == TYPES


def test_size_stays_small() -> None:
    assert sum(p.stat().st_size for f in FOLDERS for p in inputs(f)) < SIZE


def test_no_two_cases_tell_the_same_story() -> None:
    whys = Counter(label(f)["expect"]["why"] for f in FOLDERS)
    assert max(whys.values()) == 1
