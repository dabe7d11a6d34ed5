from __future__ import annotations

import json
from typing import Any

import pytest

from tests.evaluation.answering import cite, record, said
from triage.evaluation import metrics
from triage.evaluation.answers import in_case, of_tool
from triage.evaluation.diagnosed import DIAGNOSED
from triage.evaluation.measures import LABELLED, category_measure

MEASURES = {m.name: m for m in (*LABELLED, *DIAGNOSED, category_measure({"ecc-error": "infrastructure", "gpu-lost": "infrastructure", "type-error": "script"}))}  # fmt: skip


def value(name: str, want: dict[str, Any], got: dict[str, Any] | None, **fields: Any) -> float | None:
    return MEASURES[name](of_tool(record("c", want, got, **fields)))


RANGES = [["job.log", 10, 12], ["job.log", 20, 20]]
ONE_OF_TWO = [cite(11), cite(50), cite(20, "cascade")]
RESTART, STOP = {"action": ["restart", "escalate"]}, {"action": ["fix-and-resubmit"]}
HEALTHY = {"outcome": "healthy", "type": "healthy"}
FAILED = {"type": "ecc-error"}


@pytest.mark.parametrize(
    ("name", "want", "got", "expected"),
    [
        ("type_exact", {"type": "ecc-error", "also_accept": ["gpu-lost"]}, {"type": "gpu-lost"}, 0),
        ("type_accepted", {"type": "ecc-error", "also_accept": ["gpu-lost"]}, {"type": "gpu-lost"}, 1),
        ("type_accepted", {"type": "ecc-error"}, {"type": "gpu-lost"}, 0),
        ("type_accepted", {}, {"type": "gpu-lost"}, None),
        ("outcome", {"outcome": "failed", "also_outcome": ["hung"]}, {"outcome": "hung"}, 1),
        ("outcome", {"outcome": "failed"}, {"outcome": "hung"}, 0),
        ("cause_class", {"root_cause_class": "software-bug"}, {"root_cause_class": "software-bug"}, 1),
        ("cause_class", {"root_cause_class": "software-bug"}, {"root_cause_class": "config-error"}, 0),
        ("cause_class", {}, {"root_cause_class": "config-error"}, None),
        ("cause_class", {**HEALTHY, "root_cause_class": "none"}, {"root_cause_class": "none"}, None),
        ("cause_class_accepted", {"root_cause_class": "software-bug", "root_cause_class_accept": ["config-error"]}, {"root_cause_class": "config-error"}, 1),
        ("category", {"type": "ecc-error"}, {"type": "gpu-lost", "category": "infrastructure"}, 1),
        ("category", {"type": "ecc-error"}, {"type": "type-error", "category": "script"}, 0),
        ("category", {"type": "ecc-error", "also_accept": ["type-error"]}, {"type": "type-error", "category": "script"}, 1),
        ("category", {"type": "ecc-error"}, {"type": "gpu-lost"}, 1),  # a baseline names no category: its type tells it
        ("status", {"status": ["hypothesis", "unknown"]}, {"status": "unknown"}, 1),
        ("status", {"status": ["hypothesis"]}, {"status": "established"}, 0),
        ("evidence_precision", {"evidence": RANGES}, {"evidence": ONE_OF_TWO}, 1 / 2),  # 11 of 11, 50
        ("evidence_recall", {"evidence": RANGES}, {"evidence": ONE_OF_TWO}, 1 / 2),  # 20 is not cited as root
        ("evidence_f1", {"evidence": RANGES}, {"evidence": [cite(10), cite(11), cite(60), cite(70)]}, 1 / 2),
        ("evidence_f1", {"evidence": RANGES}, {"evidence": [cite(10)]}, 2 / 3),  # precision 1, recall 1/2
        ("evidence_f1", {"evidence": RANGES}, {"evidence": [cite(99)]}, 0),
        ("evidence_precision", {"evidence": RANGES}, {"evidence": []}, 0),
        ("evidence_precision", {"evidence": []}, {"evidence": [cite(1)]}, None),
        ("root_hit", {"evidence": RANGES}, {"evidence": [cite(20, "cascade")]}, 0),
        ("any_hit", {"evidence": RANGES}, {"evidence": [cite(20, "cascade")]}, 1),
        ("any_hit", {"evidence": RANGES}, {"evidence": [cite(13)]}, 0),
        ("any_hit", {"evidence": RANGES}, {"evidence": [cite(11, file="other.log")]}, 0),
        ("any_hit", {"evidence": [["", 11, 11]]}, {"evidence": [cite(11, file="other.log")]}, 1),
        ("node_top1", {"nodes": ["gpu-2"]}, {"suspects": {"nodes": ["gpu-2.cluster.local"]}}, 1),
        ("node_top1", {"nodes": ["gpu-2"]}, {"suspects": {"nodes": ["gpu-1", "GPU-2"]}}, 0),
        ("node_top5", {"nodes": ["gpu-2"]}, {"suspects": {"nodes": ["gpu-1", "GPU-2"]}}, 1),
        ("node_top5", {"nodes": ["gpu-2"]}, {"suspects": {"nodes": ["n1", "n2", "n3", "n4", "n5", "gpu-2"]}}, 0),
        ("node_top1", {"nodes": ["10.0.0.12"]}, {"suspects": {"nodes": ["10.0.0.1"]}}, 0),
        ("node_top1", {"nodes": []}, {"suspects": {"nodes": ["gpu-1"]}}, None),
        ("rank_top1", {"ranks": [3]}, {"suspects": {"ranks": [3, 4]}}, 1),
        ("rank_top1", {"ranks": [4]}, {"suspects": {"ranks": [3, 4]}}, 0),
        ("rank_top5", {"ranks": [4]}, {"suspects": {"ranks": ["rank 3", "4"]}}, 1),
        ("action", RESTART, {"action": "escalate"}, 1),
        ("action", RESTART, {"action": "none"}, 0),
        ("must_mention", {"must_mention": [["GPU", "device"], ["drain"]]}, {"root_cause": "a device died", "remediation": [{"step": "Drain it"}]}, 1),
        ("must_mention", {"must_mention": [["GPU"], ["drain"]]}, {"root_cause": "a gpu died", "remediation": []}, 0),
        ("must_mention", {"must_mention": [["scontrol"]]}, {"remediation": [{"step": "x", "command": "scontrol update"}]}, 1),
        ("must_not", {"must_not": ["type-error"]}, {"type": "type-error"}, 1),
        ("must_not", {"must_not": ["type-error"]}, {"type": "ecc-error"}, 0),
        ("must_not", {}, {"type": "ecc-error"}, None),
        ("false_stop", RESTART, {"action": "fix-and-resubmit"}, 1),
        ("false_stop", RESTART, {"action": "restart-excluding"}, 0),
        ("false_stop", {"action": ["restart", "fix-and-resubmit"]}, {"action": "none"}, None),
        ("false_stop", STOP, {"action": "fix-and-resubmit"}, None),
        ("false_restart", STOP, {"action": "kill-and-restart"}, 1),
        ("false_restart", STOP, {"action": "none"}, 0),
        ("false_restart", RESTART, {"action": "restart"}, None),
        ("false_cordon", {"nodes": []}, {"suspects": {"nodes": ["gpu-1"]}}, 1),
        ("false_cordon", {"nodes": ["gpu-1"]}, {"suspects": {"nodes": ["gpu-1", "gpu-2"]}}, 1),
        ("false_cordon", {"nodes": ["gpu-1"]}, {"suspects": {"nodes": ["gpu-1"]}}, 0),
        ("false_cordon", {}, {"suspects": {"nodes": ["gpu-1"]}}, None),  # the label says nothing of nodes
        ("false_cordon", HEALTHY, {"suspects": {"nodes": ["gpu-1"]}}, 1),
        ("false_alarm", HEALTHY, {"outcome": "failed"}, 1),
        ("false_alarm", HEALTHY, {"outcome": "healthy"}, 0),
        ("false_alarm", {**HEALTHY, "also_outcome": ["unknown"]}, {"outcome": "unknown"}, 0),
        ("false_alarm", FAILED, {"outcome": "failed"}, None),
        ("missed_failure", FAILED, {"outcome": "healthy", "type": "healthy"}, 1),
        ("missed_failure", FAILED, {"outcome": "failed", "type": "type-error"}, 0),
        ("missed_failure", {**FAILED, "also_outcome": ["healthy"]}, {"outcome": "healthy"}, 0),
        ("missed_failure", HEALTHY, {"outcome": "healthy"}, None),
        ("unknown_rate", FAILED, {"type": "unknown"}, 1),
        ("unknown_rate", FAILED, {"type": "ecc-error"}, 0),
        ("unknown_right", {"type": "ecc-error", "also_accept": ["unknown"]}, {"type": "unknown"}, 1),
        ("unknown_right", {"type": "ecc-error"}, {"type": "unknown"}, 0),
        ("unknown_right", {"type": "ecc-error"}, {"type": "ecc-error"}, None),
        ("answered", FAILED, {"type": "ecc-error"}, 1),
        ("selective_established", FAILED, {"type": "ecc-error", "status": "established"}, 1),
        ("selective_established", FAILED, {"type": "ecc-error", "status": "hypothesis"}, None),
        ("selective_supported", FAILED, {"type": "gpu-lost", "status": "supported"}, 0),
        ("selective_hypothesis", FAILED, {"type": "ecc-error", "status": "hypothesis"}, 1),
        ("selective_unknown", FAILED, {"type": "unknown", "status": "unknown"}, 0),
        ("recall_at_1", {"similar": ["A", "B"]}, {"similar": [{"incident": "B"}, {"incident": "A"}]}, 1 / 2),
        ("recall_at_3", {"similar": ["A", "B"]}, {"similar": [{"incident": x} for x in "BXA"]}, 1),
        ("recall_at_5", {"similar": ["A"]}, {"similar": [{"incident": x} for x in "UVWXYA"]}, 0),
        ("mrr", {"similar": ["A"]}, {"similar": [{"incident": x} for x in "XYA"]}, 1 / 3),
        ("mrr", {"similar": ["A"]}, {"similar": []}, 0),
    ],
)  # fmt: skip
def test_each_measure_by_hand(name: str, want: dict[str, Any], got: dict[str, Any], expected: float | None) -> None:
    found = value(name, want, got)
    assert found == (expected if expected is None else pytest.approx(expected))


def test_every_measure_is_tested_and_defined() -> None:
    tested = {case[0] for case in test_each_measure_by_hand.pytestmark[0].args[1]}  # type: ignore[attr-defined]
    assert tested == set(MEASURES)
    assert all(m.definition for m in MEASURES.values())


EVERYTHING = {
    "outcome": "failed", "type": "ecc-error", "root_cause_class": "hardware-failure", "status": ["established"], "evidence": RANGES,
    "nodes": ["gpu-1"], "ranks": [1], "must_mention": [["x"]], "must_not": ["type-error"], "similar": ["A"],
}  # fmt: skip
CONDITIONAL = {"unknown_rate", "unknown_right", *(f"selective_{s}" for s in ("established", "supported", "hypothesis", "unknown"))}  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(MEASURES) - CONDITIONAL))
def test_no_answer_is_wrong_wherever_the_case_counts(name: str) -> None:
    want = {"false_alarm": HEALTHY, "false_restart": STOP}.get(name, {**EVERYTHING, **RESTART})
    assert value(name, want, None) == (1.0 if MEASURES[name].better == "lower" else 0.0)


def test_ranges_that_say_the_same_are_recalled_by_one_of_them() -> None:
    want = {"evidence": [["job.log", 1, 1], ["job.log", 5, 5], ["job.log", 9, 9]]}
    got = {"evidence": [cite(5)]}
    assert value("evidence_recall", want, got) == pytest.approx(1 / 3)
    assert value("evidence_recall", want, got, alike=[0, 0, 1]) == 1 / 2
    assert value("evidence_recall", want, got, alike=[0, 0, 0]) == 1
    assert value("evidence_recall", want, got, alike=[0]) == pytest.approx(1 / 3)  # of an older label


def test_a_result_beside_a_timeout_is_no_answer() -> None:
    assert value("type_exact", FAILED, {"type": "ecc-error"}, problem="timeout") == 0


@pytest.mark.parametrize(
    ("said_name", "meant"),
    [
        ("job.log", "job.log"),
        ("./job.log", "job.log"),
        ("/tmp/x/job.log", "job.log"),
        ("logs/rank_1.out", "logs/rank_1.out"),
        ("rank_1.out", "logs/rank_1.out"),
        ("logs\\rank_1.out.gz", "logs/rank_1.out"),
        ("twice.out", "twice.out"),  # stands in two folders: not plain which is meant
        ("elsewhere.log", "elsewhere.log"),
    ],
)
def test_a_cited_file_is_found_however_it_is_named(said_name: str, meant: str) -> None:
    assert in_case(said_name, ["job.log", "logs/rank_1.out.gz", "a/twice.out", "b/twice.out"]) == meant


def test_odd_answers_are_wrong_and_break_nothing() -> None:
    odd = {"type": 7, "outcome": ["failed"], "evidence": [1, None, {"file": None, "line": "3"}, {"line": True}], "suspects": "gpu-1",
           "remediation": ["drain"], "similar": {"incident": "A"}, "action": None, "usage": "much"}  # fmt: skip
    found = metrics.score([record("c", {**EVERYTHING, **RESTART}, odd)])
    assert found["splits"]["all"]["type_exact"]["value"] == 0
    assert found["splits"]["all"]["node_top1"]["value"] == 0
    json.dumps(found)


# ------------------------------------------------------------------------------------------------ figures of a set
def test_figures_of_a_set_have_value_interval_and_number_of_cases() -> None:
    found = metrics.score(said("ecc-error", "ecc-error", "gpu-lost", None))
    figure = found["splits"]["all"]["type_exact"]
    assert (figure["value"], figure["n"]) == (0.5, 4)
    assert 0 <= figure["low"] < 0.5 < figure["high"] <= 1
    assert found["splits"]["all"]["node_top1"] is None
    assert found["splits"]["all"]["answered"]["value"] == 0.75
    assert set(found["splits"]["all"]) == set(metrics.metric_names()) == set(found["definitions"])
    json.dumps(found, allow_nan=False)


def test_the_same_records_give_the_same_figures() -> None:
    records = said("ecc-error", "gpu-lost", None, "unknown")
    assert metrics.score(records) == metrics.score(records)
    assert metrics.score(records, seed=1)["splits"]["all"]["type_exact"]["value"] == 0.25


def test_splits_by_set_tag_origin_and_whether_anything_failed() -> None:
    records = [
        record("a", FAILED, {"type": "ecc-error"}, split="dev", tags=["misleading", "large"]),
        record("b", FAILED, {"type": "gpu-lost"}, split="test", tags=["misleading"], synthetic=True),
        record("c", HEALTHY, {"type": "healthy", "outcome": "healthy"}, split="test"),
    ]
    found = metrics.score(records)["splits"]
    figures = {name: (f["type_exact"]["value"], f["type_exact"]["n"]) for name, f in found.items()}
    assert figures == {
        "all": (pytest.approx(2 / 3), 3), "failing": (0.5, 2), "dev": (1.0, 1), "test": (0.5, 2), "real": (1.0, 2),
        "synthetic": (0.0, 1), "tag:misleading": (0.5, 2), "tag:large": (1.0, 1),
    }  # fmt: skip


def test_gpu_hours_weigh_what_each_case_cost() -> None:
    """Right on 1 GPU-hour, wrong on 99: half by count, 1 % by cost; the third case has no hours and does not count."""
    records = [
        record("a", FAILED, {"type": "ecc-error"}, gpu_hours=1),
        record("b", FAILED, {"type": "gpu-lost"}, gpu_hours=99),
        record("c", FAILED, {"type": "ecc-error"}, gpu_hours=None),
    ]
    found = metrics.score(records)["splits"]["all"]
    assert found["type_exact"]["value"] == pytest.approx(2 / 3, abs=1e-6)
    assert (found["type_exact_gpu"]["value"], found["type_exact_gpu"]["n"]) == (0.01, 2)


def test_macro_f1_and_the_figures_of_each_type() -> None:
    """ecc: wanted 2, given 1, both 1: F1 2/3. type-error: wanted 1, given 1, both 0: F1 0 (accepted: 1)."""
    records = [
        record("a", {"type": "ecc-error"}, {"type": "ecc-error"}),
        record("b", {"type": "ecc-error"}, {"type": "type-error"}),
        record("c", {"type": "type-error", "also_accept": ["gpu-lost"]}, {"type": "gpu-lost"}),
    ]
    found = metrics.score(records)
    assert found["splits"]["all"]["macro_f1"]["value"] == pytest.approx((2 / 3 + 0) / 2, abs=1e-6)
    # accepted: type-error is given twice and right once: 2 / (1 + 2)
    assert found["splits"]["all"]["macro_f1_accepted"]["value"] == pytest.approx((2 / 3 + 2 / 3) / 2, abs=1e-6)
    ecc = found["types"]["ecc-error"]
    assert (ecc["n"], ecc["predicted"]) == (2, 1)
    assert [ecc[k]["value"] for k in ("precision", "recall", "f1")] == [1.0, 0.5, pytest.approx(2 / 3, abs=1e-6)]
    assert found["types"]["gpu-lost"]["n"] == 0 and found["types"]["gpu-lost"]["recall"] is None


def test_the_confusion_matrix_counts_wanted_against_given() -> None:
    records = [
        record("a", {"type": "ecc-error"}, {"type": "ecc-error"}),
        record("b", {"type": "ecc-error", "also_accept": ["gpu-lost"]}, {"type": "gpu-lost"}),
        record("c", {"type": "gpu-lost"}, None),
    ]
    found = metrics.score(records)["confusion"]
    assert found["labels"] == ["(no answer)", "ecc-error", "gpu-lost"]
    assert found["counts"] == [[0, 0, 0], [0, 1, 1], [1, 0, 0]]
    assert {"want": "ecc-error", "got": "gpu-lost", "n": 1, "accepted": 1, "cases": ["b"]} in found["cells"]


def test_the_last_record_of_a_case_and_repeat_counts() -> None:
    found = metrics.score([*said("gpu-lost"), *said("ecc-error")])
    assert (found["records"], found["splits"]["all"]["type_exact"]["value"]) == (1, 1.0)


def test_citations_bytes_seconds_memory_and_tokens() -> None:
    records = [
        record("a", FAILED, {"type": "ecc-error", "usage": {"tokens_in": 100, "tokens_out": 20, "cost": 0.5}}, seconds=1.0, peak_mb=90,
               citations={"cited": 3, "valid": 3}, compressed={"bytes_in": 100, "bytes_kept": 10, "decisive": [["job.log", 1, 1, True]]}),
        record("b", FAILED, {"type": "ecc-error", "usage": {"tokens_in": 0, "tokens_out": 0}}, seconds=3.0, peak_mb=200,
               citations={"cited": 1, "valid": 0}, compressed={"bytes_in": 100, "bytes_kept": 50, "decisive": [["job.log", 1, 1, True], ["job.log", 9, 9, False]]}),
        record("c", FAILED, {"type": "ecc-error"}, seconds=2.0, citations={"cited": 0, "valid": 0}),
    ]  # fmt: skip
    found = metrics.score(records)["splits"]["all"]
    values = {name: found[name] and found[name]["value"] for name in ("citation_valid", "bytes_removed", "decisive_kept", "seconds_median", "peak_mb_max", "tokens", "cost")}  # fmt: skip
    assert values == {"citation_valid": 0.75, "bytes_removed": 0.7, "decisive_kept": 0.75, "seconds_median": 2.0, "peak_mb_max": 200.0, "tokens": 60.0, "cost": 0.5}  # fmt: skip
    assert found["seconds_p95"]["value"] == pytest.approx(2.9)
    assert (found["peak_mb_max"]["low"], found["peak_mb_max"]["high"]) == (None, None)
    assert found["tokens"]["n"] == 2


def test_repeats_give_pass_at_1_spread_and_flips() -> None:
    """Case a is right in both rounds, b only in the first: rounds score 1 and 0.5, whose deviation is 0.3536."""
    answers = {("a", 0): "ecc-error", ("a", 1): "ecc-error", ("b", 0): "ecc-error", ("b", 1): "gpu-lost"}
    records = [record(c, FAILED, {"type": t}, repeat=r) for (c, r), t in answers.items()]
    found = metrics.score(records)
    all_ = found["splits"]["all"]
    assert (found["cases"], found["records"], found["repeats"]) == (2, 4, 2)
    assert (all_["pass_at_1"]["value"], all_["pass_at_1"]["n"]) == (0.75, 2)
    assert all_["spread"]["value"] == pytest.approx(0.353553, abs=1e-6)
    assert all_["flips"]["value"] == 0.5
    once = metrics.score([r for r in records if r["repeat"] == 0])["splits"]["all"]
    assert (once["pass_at_1"], once["spread"], once["flips"]) == (None, None, None)


def test_baselines_are_measured_as_the_tool_is_and_against_it() -> None:
    right = {"outcome": "failed", "failure_type": "ecc-error", "evidence": [cite(11)], "action": "restart"}
    wrong = {"outcome": "failed", "failure_type": "type-error", "evidence": [], "action": "fix-and-resubmit"}
    want = {**FAILED, **RESTART, "evidence": RANGES}
    records = [
        record("a", want, {"type": "ecc-error", "outcome": "failed", "evidence": [cite(10)]}, baselines={"last-exception": wrong}),
        record("b", want, {"type": "ecc-error", "outcome": "failed", "evidence": []}, baselines={"last-exception": right}),
        record("c", want, None, baselines={"last-exception": wrong}),
    ]  # fmt: skip
    found = metrics.score(records)
    figures = found["baselines"]["last-exception"]
    assert figures["type_accepted"]["value"] == pytest.approx(1 / 3, abs=1e-6)
    assert figures["false_stop"]["value"] == pytest.approx(2 / 3, abs=1e-6)
    assert figures["root_hit"]["value"] == pytest.approx(1 / 3, abs=1e-6)
    assert "node_top1" not in figures  # what a baseline does not say is not held against it
    margin = found["margins"]["last-exception"]["type_accepted"]
    assert (margin["before"], margin["after"], margin["better"], margin["worse"], margin["n"]) == (pytest.approx(1 / 3, abs=1e-6), pytest.approx(2 / 3, abs=1e-6), 1, 0, 3)  # fmt: skip
    assert margin["p"] == 1.0


def test_no_records_are_no_figures() -> None:
    found = metrics.score([])
    assert list(found["splits"]) == ["all"] and set(found["splits"]["all"].values()) == {None}
