"""Cases: what loads, what is refused and in which words."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
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
        ({"tags": ["tricky"]}, "tags: 'tricky' is none of the 24 known (docs/labels-and-figures.md lists them)"),
        ({"split": "train"}, "split: 'train' is not one of dev, test"),
        ({"synthetic": "yes"}, "synthetic: must be true or false, not 'yes'"),
        ({"source": None}, "source: is missing"),
        ({"gpu_hours": -1}, "gpu_hours: must be a number from 0 to 1e+09, not -1"),
        ({"inputs": []}, "inputs: is empty"),
        ({"inputs": ["other.out"]}, "inputs: 'other.out' is not in the case folder"),
        ({"inputs": ["../a2/job.out"]}, "inputs: '../a2/job.out' must lie inside the case folder"),
        ({"inputs": ["./case.yaml"]}, "inputs: case.yaml holds the labels and cannot be an input"),
        ({"expect": ["failed"]}, "expect: must be a mapping of fields"),
        ({"expect_outcome": None}, "expect.outcome: is missing"),
        ({"expect_failure_type": "keyerror"}, "expect.failure_type: 'keyerror' is not known, did you mean key-error?"),
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


# ------------------------------------------------------------------------------------------------ hostile cases
def labels_link(folder: Path) -> list[str]:
    (folder / "notes.txt").symlink_to("case.yaml")
    return ["notes.txt"]


def labels_hard_link(folder: Path) -> list[str]:
    os.link(folder / "case.yaml", folder / "notes.txt")
    return ["notes.txt"]


def labels_through_a_folder(folder: Path) -> list[str]:
    (folder / "d").symlink_to(".")
    return ["d"]


def labels_of_another(folder: Path) -> list[str]:
    (folder / "sub").mkdir()
    (folder / "sub" / "case.yaml").write_text("expect: {}")
    return ["."]


def link_out(folder: Path) -> list[str]:
    (folder.parent / "other.log").write_text("x\n")
    (folder / "out.log").symlink_to(folder.parent / "other.log")
    return ["out.log"]


def link_out_in_a_folder(folder: Path) -> list[str]:
    (folder / "logs").mkdir()
    (folder.parent / "other.log").write_text("x\n")
    (folder / "logs" / "out.log").symlink_to("../../other.log")
    return ["logs"]


def fifo(folder: Path) -> list[str]:
    os.mkfifo(folder / "pipe")
    return ["pipe"]


def long_name(folder: Path) -> list[str]:
    return ["x" * 300]


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (labels_link, "'notes.txt' is case.yaml under another name"),
        (labels_hard_link, "'notes.txt' is case.yaml under another name"),
        (labels_through_a_folder, "'d/case.yaml' is called as a file of labels is"),
        (labels_of_another, "'sub/case.yaml' is called as a file of labels is"),
        (link_out, "'out.log' leads out of the case folder"),
        (link_out_in_a_folder, "'logs/out.log' leads out of the case folder"),
        (fifo, "'pipe' is neither file nor folder"),
        (long_name, "cannot be looked up: File name too long"),
    ],
)
def test_no_input_shows_the_labels_or_leads_out_of_the_case(
    tmp_path: Path, prepare: Callable[[Path], list[str]], said: str
) -> None:
    folder = make.case(tmp_path / "cases", "a1")
    path = folder / "case.yaml"
    names = prepare(folder)  # before the labels are written for good: a hard link stays one
    path.write_text(path.read_text().replace("- job.out", "- " + "\n- ".join(names)))
    with pytest.raises(InputError) as caught:
        load_cases(tmp_path / "cases")
    assert f"{path}: inputs: " in str(caught.value)
    assert said in str(caught.value)


def test_a_copy_of_the_labels_is_no_input(tmp_path: Path) -> None:
    folder = make.case(tmp_path, "a1", inputs=["copy.txt"])
    (folder / "copy.txt").write_bytes((folder / "case.yaml").read_bytes())
    with pytest.raises(InputError, match=r"'copy\.txt' is case\.yaml under another name"):
        load_cases(tmp_path)


def test_a_link_inside_the_case_is_an_input_like_any_other(tmp_path: Path) -> None:
    folder = make.case(tmp_path, "a1", inputs=["rank0.log"], expect_evidence=None)
    (folder / "rank0.log").symlink_to("job.out")
    (case,) = load_cases(tmp_path)
    assert [name for name, _ in case.files()] == ["rank0.log"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("split: dev\nsplit: test\n", "the key 'split' stands twice"),
        ("gpu_hours: " + "9" * 400 + "\n", "gpu_hours: must be a number from 0 to 1e+09, not 999"),
        ("expect: {outcome: failed, ranks: [" + "9" * 6000 + "]}\n", "not valid YAML"),
        ("expect: {outcome: failed, ranks: [" + "9" * 400 + "]}\n", "expect.ranks: must be a list of whole numbers"),
        ("expect: {outcome: failed, evidence: [[job.out, 1, true]]}\n", "expect.evidence[0]: must be"),
        ('id: "a\\eb"\n', "id: "),
    ],
)
def test_odd_values_are_one_short_line(tmp_path: Path, text: str, said: str) -> None:
    folder = make.case(tmp_path, "a1", **({text.split(":", maxsplit=1)[0]: None} if "twice" not in said else {}))
    path = folder / "case.yaml"
    path.write_text(path.read_text() + text)
    with pytest.raises(InputError) as caught:
        load_cases(tmp_path)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)


def test_aliases_that_multiply_make_no_large_message(tmp_path: Path) -> None:
    folder = make.case(tmp_path, "a1", source=None)
    path = folder / "case.yaml"
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n" for a, b in itertools.pairwise("abcdefgh")
    )
    path.write_text(path.read_text() + bomb + "source: *h\n")
    with pytest.raises(InputError) as caught:
        load_cases(tmp_path)
    assert "source: must be text, not [" in str(caught.value)
    assert len(str(caught.value)) < 1000
