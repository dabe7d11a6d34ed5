from __future__ import annotations

import json
from typing import Any

import pytest

from tests.evaluation.answering import cite, record
from triage.errors import InputError
from triage.evaluation.compare import compare
from triage.evaluation.compare_text import as_text

WANT = {"type": "ecc-error", "evidence": [["job.log", 10, 12]]}


def run(answers: dict[str, dict[str, Any] | None], **fields: Any) -> list[dict[str, Any]]:
    return [record(case, WANT, got, **fields) for case, got in answers.items()]


def right(**more: Any) -> dict[str, Any]:
    return {"type": "ecc-error", "outcome": "failed", "evidence": [cite(10)], **more}


def wrong(**more: Any) -> dict[str, Any]:
    return right(**{"type": "type-error", **more})


def test_cases_are_better_worse_mixed_or_the_same() -> None:
    before = run({"a": wrong(), "b": right(), "c": right(evidence=[]), "d": right(), "e": wrong()})
    after = run({"a": right(), "b": right(outcome="hung"), "c": wrong(), "d": right(), "e": None})
    found = compare(before, after)
    assert {k: [e["case"] for e in found[k]] for k in ("better", "worse", "mixed")} == {
        "better": ["a"], "worse": ["b", "e"], "mixed": ["c"],
    }  # fmt: skip
    assert found["same"] == 1
    assert found["better"][0]["marks"] == {"type_accepted": "better", "outcome": "same", "root_hit": "same"}
    assert found["worse"][1]["marks"] == {"type_accepted": "same", "outcome": "worse", "root_hit": "worse"}
    assert found["worse"][1]["after"]["problem"] == "crash: boom"
    json.dumps(found, allow_nan=False)


def test_the_difference_is_paired_and_tested() -> None:
    """Six cases get right, none wrong, four stay: +0.6, p = 2 / 64."""
    before = run({str(i): wrong() if i < 6 else right() for i in range(10)})
    after = run({str(i): right() for i in range(10)})
    found = compare(before, after)["metrics"]["type_accepted"]
    assert (found["before"], found["after"], found["value"], found["n"]) == (0.4, 1.0, 0.6, 10)
    assert (found["better"], found["worse"], found["p"]) == (6, 0, 0.0312)
    assert 0.2 <= found["low"] < 0.6 < found["high"] <= 1


def test_a_ceiling_metric_is_better_when_it_falls() -> None:
    healthy = {"outcome": "healthy", "type": "healthy"}
    alarm, quiet = {"outcome": "failed", "type": "type-error"}, {"outcome": "healthy", "type": "healthy"}
    found = compare([record("a", healthy, alarm)], [record("a", healthy, quiet)])["metrics"]["false_alarm"]
    assert (found["value"], found["better"], found["worse"]) == (-1.0, 1, 0)


def test_a_rate_that_is_neither_good_nor_bad_is_not_tested() -> None:
    found = compare(run({"a": right()}), run({"a": right(type="unknown")}))["metrics"]["unknown_rate"]
    assert (found["value"], found["better"], found["worse"], found["p"]) == (1.0, None, None, None)


def test_macro_f1_and_seconds_are_compared_too() -> None:
    """b was taken for a: F1 of ecc-error 2/3, of type-error 0; then both 1."""
    before = [record("a", WANT, right(), seconds=2.0), record("b", {"type": "type-error"}, right(), seconds=2.0)]
    after = [record("a", WANT, right(), seconds=1.0), record("b", {"type": "type-error"}, wrong(), seconds=1.5)]
    found = compare(before, after)["metrics"]
    assert found["macro_f1"]["value"] == pytest.approx(1 - (2 / 3) / 2, abs=1e-6)
    assert (found["seconds"]["value"], found["seconds"]["better"], found["seconds"]["p"]) == (-0.75, 2, None)


def test_a_case_that_changed_is_named_and_left_out() -> None:
    before, after = run({"a": wrong(), "b": right()}), run({"a": right(), "b": right()})
    after[0]["sha256"] = "another"
    found = compare(before, after)
    assert (found["cases"], found["better"]) == ({"both": 1, "only_a": [], "only_b": [], "changed": ["a"]}, [])
    assert found["warnings"] == ["changed between the runs (files or labels) and left out: 1 case (a)"]


def test_cases_of_one_run_only_are_named() -> None:
    found = compare(run({"a": right(), "b": right()}), run({"b": right(), "c": right()}))
    assert found["warnings"] == ["only in A and left out: 1 case (a)", "only in B and left out: 1 case (c)"]
    assert found["metrics"]["type_accepted"]["n"] == 1


def test_runs_without_a_common_case_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="no case in common; compare two runs of the same cases"):
        compare(run({"a": right()}), run({"b": right()}))
    other = run({"a": right()}, sha256="other")
    with pytest.raises(InputError, match=r"no case in common: 1 case \(a\) changed between them"):
        compare(run({"a": right()}), other)


def test_repeats_are_averaged_for_each_case() -> None:
    """a: one of two tries right, then both."""
    before = [*run({"a": right()}), *run({"a": wrong()}, repeat=1)]
    after = [*run({"a": right()}), *run({"a": right()}, repeat=1)]
    found = compare(before, after)
    assert (found["metrics"]["type_accepted"]["before"], found["metrics"]["type_accepted"]["better"]) == (0.5, 1)
    assert [e["case"] for e in found["better"]] == ["a"]
    assert compare(before, run({"a": right()}))["warnings"] == [
        "A has 2 records of these cases, B 1: repeats are averaged for each case"
    ]


def test_the_text_fits_a_terminal_and_names_what_changed() -> None:
    before = run({"a": wrong(), "b": right(), "c": right(), **{f"s{i}": right() for i in range(9)}}, seconds=1.0)
    after = run({"a": right(), "b": None, "c": right(), **{f"s{i}": right() for i in range(9)}}, seconds=12.0)
    after[2]["sha256"] = "other"
    text = as_text(compare(before, after), "runs/monday", "runs/tuesday")
    assert max(map(len, text.split("\n"))) <= 80
    for line in (
        "A  runs/monday",
        "11 cases in both runs",
        "warning: changed between the runs (files or labels) and left out: 1 case (c)",
        "worse (1)",
        "  b: worse in Failure type exact, Failure type right, Outcome right, Evidence",
        "      precision, Evidence recall, Evidence F1, Decisive line cited as root,",
        "      wants ecc-error/failed, is crash: boom, was ecc-error/failed",
        "better (1)",
        "      wants ecc-error/failed, is ecc-error/failed, was type-error/failed",
        "same: 9 cases",
    ):
        assert line in text.split("\n")
    row = next(line for line in text.split("\n") if line.startswith("Failure type right"))
    assert row.split() == ["Failure", "type", "right", "90.9%", "90.9%", "+0.0", "[-27.3,", "+27.3]", "1", "1", "1"]
    assert "more figures do not differ (--format json tells all)" in text
    assert "p is - where" in text and "Time and memory depend on the machine" in text


def test_a_change_in_another_figure_alone_names_its_case() -> None:
    want = {**WANT, "also_accept": ["type-error"]}
    before, after = [record("a", want, right())], [record("a", want, wrong())]
    found = compare(before, after)
    assert (found["same"], [e["case"] for e in found["other"]]) == (0, ["a"])
    assert found["other"][0]["changed"] == {"type_exact": "worse"}
    text = as_text(found)
    assert "changed in other figures only (1)\n  a: worse in Failure type exact\n" in text
    assert "Time and memory" not in text, "they did not change"


def test_how_the_runs_differ_stands_first() -> None:
    one = {
        "started": "2026-11-29T20:00:00+00:00", "version": "1.0", "commit": "a" * 40, "kb_sha256": "k" * 64, "model": "off", "similar": True,
        "settings": {"token_budget": 12000}, "packages": {"numpy": "2.0"}, "jobs": 1,
    }  # fmt: skip
    two = {
        **one,
        "commit": "b" * 40,
        "changed": True,
        "similar": False,
        "settings": {"token_budget": 8000},
        "packages": {"numpy": "2.1"},
    }
    records = run({"a": right()})
    found = compare(records, records, runs=(one, two))
    assert [(d["label"], d["a"], d["b"]) for d in found["runs"]["differences"]] == [
        ("commit", "aaaaaaaaaaaa", "bbbbbbbbbbbb"),
        ("setting token_budget", "12000", "8000"),
        ("similar incidents", "yes", "no"),
        ("package numpy", "2.0", "2.1"),
    ]
    text = as_text(found, "before", "after")
    assert text.startswith(
        "A  before\n   2026-11-29 20:00, version 1.0, commit aaaaaaaaaaaa, knowledge kkkkkkkkkkkk,\n"
    )
    assert "commit bbbbbbbbbbbb with local changes" in " ".join(text.split())
    assert "made differently: commit aaaaaaaaaaaa -> bbbbbbbbbbbb; setting token_budget" in text
    assert max(map(len, text.split("\n"))) <= 80
    assert "made alike" in as_text(compare(records, records, runs=(one, one)))
    json.dumps(found, allow_nan=False)


def test_what_a_model_said_cannot_steer_the_terminal() -> None:
    text = as_text(compare(run({"a": right()}), run({"a": right(type="\x1b[31mred")})))
    assert "\x1b" not in text and "?[31mred" in text
