"""Run folders: torn lines, resuming, one writer at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation import make
from triage.errors import InputError, UsageError
from triage.evaluation import record

HEADER: dict[str, Any] = {
    "schema": "triage.run/1",
    "started": "2026-01-01T00:00:00+00:00",
    "model": "off",
    "repeats": 1,
    "seed": 0,
    "kb_sha256": "k",
    "cases": [{"id": "a1", "sha256": "1"}],
}


def written(path: Path, *records: dict[str, Any], **changes: Any) -> Path:
    with record.open_run(path) as run:
        run.begin({**HEADER, **changes})
        for item in records:
            run.append(item)
    return path


def test_records_come_back_in_order_and_the_last_of_a_case_counts(tmp_path: Path) -> None:
    run = written(tmp_path / "r", make.record("b"), make.record("a", problem="timeout"), make.record("a"))
    found = record.read_records(run)
    assert [(r["case"], r["problem"]) for r in found] == [("a", ""), ("b", "")]


def test_any_text_survives(tmp_path: Path) -> None:
    odd = {**make.record(), "result": {"root_cause": "tab\t nul\x00 line\u2028 lone \udcff é"}}
    assert record.read_records(written(tmp_path / "r", odd)) == [odd]


def test_a_torn_last_line_is_dropped_and_cut_off_before_more_is_written(tmp_path: Path) -> None:
    run = written(tmp_path / "r", make.record("a", sha256="1"))
    with (run / "records.jsonl").open("a") as stream:
        stream.write('{"case": "b", "repe')
    assert [r["case"] for r in record.read_records(run)] == ["a"]
    with record.open_run(run) as again:
        assert again.done == {("1", 0): ""}
        again.begin(HEADER)
        again.append(make.record("b"))
    assert [r["case"] for r in record.read_records(run)] == ["a", "b"]


def test_a_broken_line_in_the_middle_is_an_error_with_its_number(tmp_path: Path) -> None:
    run = written(tmp_path / "r", make.record("a"))
    with (run / "records.jsonl").open("a") as stream:
        stream.write("{}\n")
    with pytest.raises(InputError, match=r"records.jsonl:2: is no record"):
        record.read_records(run)


def test_finishing_drops_what_was_replaced(tmp_path: Path) -> None:
    with record.open_run(tmp_path / "r") as run:
        run.begin(HEADER)
        for item in (make.record("b"), make.record("a", problem="timeout"), make.record("a")):
            run.append(item)
        assert record.read_run(tmp_path / "r")["finished"] is None
        run.finish()
    assert (tmp_path / "r" / "records.jsonl").read_text().count("\n") == 2
    assert record.read_run(tmp_path / "r")["finished"]


def test_a_resumed_run_keeps_its_start_and_its_cases(tmp_path: Path) -> None:
    run = written(tmp_path / "r")
    written(run, started="2026-02-02T00:00:00+00:00", cases=[{"id": "a0", "sha256": "9"}, {"id": "a1", "sha256": "2"}])
    found = record.read_run(run)
    assert found["started"] == HEADER["started"]
    assert found["cases"] == [{"id": "a0", "sha256": "9"}, {"id": "a1", "sha256": "2"}]


def test_records_of_other_knowledge_or_model_do_not_mix(tmp_path: Path) -> None:
    run = written(tmp_path / "r")
    with pytest.raises(
        UsageError,
        match=r"cannot be resumed: it was made with knowledge .*, now .*, with the model .*; give another --out",
    ):
        written(run, kb_sha256="other", model="openai:x")


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with record.open_run(tmp_path / "r"), pytest.raises(UsageError, match="another evaluation writes here"):
        record.open_run(tmp_path / "r")


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match="holds something else than a run"):
        record.open_run(tmp_path)
    with pytest.raises(InputError, match=r"run.json: No such file"):
        record.read_run(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"case": 5}, "records.jsonl:1: is no record: case: must be text, not 5"),
        ({"repeat": "z"}, "repeat: must be a whole number that is not negative, not 'z'"),
        ({"repeat": True}, "repeat: must be a whole number"),
        ({"sha256": ["x"]}, "sha256: must be text, not ['x']"),
        ({"gpu_hours": 1e308}, "gpu_hours: must be a number from 0 to 1e+09"),
        ({"gpu_hours": int("9" * 400)}, "gpu_hours: must be a number"),
    ],
)
def test_a_record_of_another_shape_is_refused_with_its_line(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    run = written(tmp_path / "r", make.record("a"))
    (run / "records.jsonl").write_text(json.dumps({**make.record("a"), **change}) + "\n")
    with pytest.raises(InputError) as caught:
        record.read_records(run)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_deep_nesting_is_no_crash(tmp_path: Path) -> None:
    run = written(tmp_path / "r")
    (run / "records.jsonl").write_text("[" * 100_000 + "\n")
    with pytest.raises(InputError, match=r"records\.jsonl:1: is no record"):
        record.read_records(run)
    for name, read in (("run.json", record.read_run), ("metrics.json", record.read_metrics)):
        (run / name).write_text("[" * 100_000)
        with pytest.raises(InputError, match=name):
            read(run)


@pytest.mark.parametrize(
    "change", [{"seed": None}, {"seed": -1}, {"repeats": 0}, {"cases": [{"id": "a"}]}, {"cases": None}]
)
def test_a_run_of_another_shape_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    run = written(tmp_path / "r", **change)
    with pytest.raises(InputError, match=rf"run\.json: {next(iter(change))}: must be"):
        record.read_run(run)


@pytest.mark.parametrize(
    "text",
    [
        "[]", "{}", '{"splits": [], "baselines": {}, "margins": {}}', '{"splits": {}, "baselines": {}, "margins": {}}',
        '{"splits": {"all": {"outcome": 3}}, "baselines": {}, "margins": {}}',
        '{"splits": {"all": {"outcome": {"value": "x", "n": 1}}}, "baselines": {}, "margins": {}}',
        '{"splits": {"all": {"outcome": {"value": 1, "low": [], "n": 1}}}, "baselines": {}, "margins": {}}',
    ],
)  # fmt: skip
def test_figures_of_another_shape_are_refused(tmp_path: Path, text: str) -> None:
    run = written(tmp_path / "r")
    (run / "metrics.json").write_text(text)
    with pytest.raises(InputError, match=r"metrics\.json: .*make it anew: triage eval rescore"):
        record.read_metrics(run)


def test_what_cannot_be_written_is_one_line_and_leaves_nothing_half(tmp_path: Path) -> None:
    run = written(tmp_path / "r")
    (run / "metrics.json").mkdir()  # stands for a disk that takes no more
    with pytest.raises(UsageError, match=r"metrics\.json: cannot be written"):
        record.write_metrics(run, {})
    assert not (run / "metrics.json.part").exists()


def test_a_run_folder_whose_records_are_no_file_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "r" / "records.jsonl").mkdir(parents=True)
    (tmp_path / "r" / "run.json").write_text(json.dumps(HEADER))
    with pytest.raises(UsageError, match="cannot be written: Is a directory; give another --out"):
        record.open_run(tmp_path / "r")
    (tmp_path / "r" / "records.jsonl").rmdir()
    with record.open_run(tmp_path / "r"):
        pass  # the lock was given back
