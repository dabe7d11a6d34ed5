"""Run folders: torn lines, resuming, one writer at a time."""

from __future__ import annotations

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
