"""Cases: what loads, what is refused and in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.evaluation import make
from triage.errors import InputError
from triage.evaluation.cases import Decisive, load_case, load_cases


def test_a_whole_case_is_read_and_written_as_labelled(tmp_path: Path) -> None:
    labels: dict[str, Any] = {
        "expect_also_accept": ["value-error"],
        "expect_root_cause_class": "software-bug",
        "expect_action": ["fix-and-resubmit"],
        "expect_nodes": [],
        "expect_ranks": [0, 3],
        "expect_must_mention": [["tokens_per_shard", "index"]],
        "expect_must_not": ["out-of-memory"],
        "expect_evidence": [["job.out", 3, 6], ["", 6, 6]],
    }
    make.case(tmp_path, "a1", tags=["hard"], gpu_hours=12, similar=["kb-1"], **labels)
    (case,) = load_cases(tmp_path)
    assert (case.id, case.split, case.synthetic, case.tags, case.gpu_hours) == ("a1", "dev", True, ("hard",), 12.0)
    assert case.expect.evidence == (Decisive("job.out", 3, 6), Decisive("", 6, 6))
    assert case.expect.to_json() == {
        "outcome": "failed",
        "failure_type": "key-error",
        "similar": ["kb-1"],
        **{name.removeprefix("expect_"): value for name, value in labels.items()},
    }


def test_what_is_not_labelled_is_none_and_an_empty_list_is_a_label(tmp_path: Path) -> None:
    expect = load_case(make.case(tmp_path, "a1", expect_evidence=None, expect_nodes=[])).expect
    assert (expect.evidence, expect.nodes, expect.ranks, expect.root_cause_class) == (None, (), None, None)
    assert expect.to_json() == {"outcome": "failed", "failure_type": "key-error", "nodes": []}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": "triage.case/2"}, "schema: must be triage.case/1"),
        ({"tag": ["hard"]}, "tag: unknown field"),
        ({"tags": ["tricky"]}, "tags: 'tricky' is not one of cascade,"),
        ({"split": "train"}, "split: 'train' is not one of dev, test"),
        ({"synthetic": "yes"}, "synthetic: must be true or false, not 'yes'"),
        ({"source": None}, "source: is missing"),
        ({"gpu_hours": -1}, "gpu_hours: must be a number that is not negative, not -1"),
        ({"inputs": []}, "inputs: is empty"),
        ({"inputs": ["other.out"]}, "inputs: 'other.out' is not in the case folder"),
        ({"inputs": ["../a2/job.out"]}, "inputs: '../a2/job.out' must lie inside the case folder"),
        ({"inputs": ["./case.yaml"]}, "inputs: case.yaml holds the labels and cannot be an input"),
        ({"expect": ["failed"]}, "expect: must be a mapping of fields"),
        ({"expect_outcome": None}, "expect.outcome: is missing"),
        ({"expect_failure_type": "keyerror"}, "expect.failure_type: 'keyerror' is not one of argument-error,"),
        ({"expect_also_acept": ["type-error"]}, "expect.also_acept: unknown field"),
        ({"expect_action": ["reboot"]}, "expect.action: 'reboot' is not one of escalate,"),
        ({"expect_ranks": ["3"]}, "expect.ranks: must be a list of whole numbers"),
        ({"expect_evidence": [["job.out", 6, 5]]}, "expect.evidence[0]: must be [file, first line, last line]"),
        ({"expect_evidence": [["job.out", 0, 5]]}, "expect.evidence[0]: must be [file, first line, last line]"),
        ({"expect_must_mention": ["index"]}, "expect.must_mention[0]: must be a list of alternatives"),
    ],
)
def test_a_wrong_field_is_named_with_its_file(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    folder = make.case(tmp_path, "a1", **change)
    with pytest.raises(InputError) as caught:
        load_cases(tmp_path)
    assert str(caught.value).startswith(f"{folder / 'case.yaml'}: {said}")
    assert ";" not in str(caught.value), "one mistake, one complaint"


def test_all_wrong_cases_are_told_at_once(tmp_path: Path) -> None:
    for at in range(7):
        make.case(tmp_path, f"a{at}", split="all", tags=["x"])
    with pytest.raises(InputError) as caught:
        load_cases(tmp_path)
    lines = str(caught.value).split("\n")
    assert [line.count("split: ") for line in lines] == [1, 1, 1, 1, 1, 0]
    assert all("tags: " in line for line in lines[:5])
    assert lines[5].strip() == "and 2 more"


def test_an_id_stands_once(tmp_path: Path) -> None:
    make.case(tmp_path, "a1")
    make.case(tmp_path, "a2", id="a1")
    with pytest.raises(InputError, match=r"a2/case.yaml: id: 'a1' is taken by"):
        load_cases(tmp_path)


def test_broken_yaml_and_an_empty_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no cases"):
        load_cases(tmp_path)
    (make.case(tmp_path, "a1") / "case.yaml").write_text("id: [\n")
    with pytest.raises(InputError, match=r"a1/case.yaml: not valid YAML"):
        load_cases(tmp_path)


def test_the_whole_folder_as_input_leaves_the_labels_out(tmp_path: Path) -> None:
    folder = make.case(tmp_path, "a1", inputs=["."])
    (folder / "ranks").mkdir()
    (folder / "ranks" / "1.log").write_text("x\n")
    assert [name for name, _ in load_case(folder).files()] == ["job.out", "ranks/1.log"]


def test_the_hash_changes_with_labels_and_with_inputs_and_not_with_the_place(tmp_path: Path) -> None:
    first = load_case(make.case(tmp_path / "x", "a1"))
    assert load_case(make.case(tmp_path / "y", "a1")).sha256 == first.sha256
    assert load_case(make.case(tmp_path / "z", "a1", expect_action=["restart"])).sha256 != first.sha256
    (first.folder / "job.out").write_text("other\n")
    assert load_case(first.folder).sha256 != first.sha256


@pytest.mark.parametrize(
    ("name", "log", "telling"),
    [
        ("a17", "rank_3.log", []),
        ("node-type-key", "job.err", []),
        ("cuda_error-2", "job.out", ["cuda-error"]),
        ("a1", "OOM.log", ["oom"]),
        ("c3", "logs/rankHang.txt", ["hang"]),
    ],
)
def test_names_that_tell_the_answer_are_warned_of(tmp_path: Path, name: str, log: str, telling: list[str]) -> None:
    folder = make.case(tmp_path, name, expect_evidence=None)
    (folder / log).parent.mkdir(exist_ok=True)
    (folder / "job.out").rename(folder / log)
    text = (folder / "case.yaml").read_text()
    (folder / "case.yaml").write_text(text.replace("job.out", log))
    warnings = load_case(folder).warnings
    assert [w.rsplit("says ", 1)[1].strip("'") for w in warnings] == telling


def test_the_real_logs_load(shared: Path) -> None:
    cases = load_cases(shared / "logs")
    assert len(cases) == 88
    assert {c.expect.root_cause_class for c in cases} == {None}
    assert any(d.file == "" for c in cases for d in c.expect.evidence or ())
