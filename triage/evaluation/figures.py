"""How the figures of an evaluation are named and written for readers; triage.evaluation.measures defines them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Metric = Mapping[str, Any] | None  # {"value", "low", "high", "n"}; None: nothing was labelled
Unit = Literal["share", "score", "seconds", "megabytes", "count", "money"]


@dataclass(frozen=True, slots=True)
class Figure:
    """better: "high", "low" or "" (neither)."""

    label: str
    means: str
    better: str = "high"
    unit: Unit = "share"


FIGURES: Mapping[str, Figure] = {
    "type_accepted": Figure("Failure type right", "the type answered is the labelled one, or one that a fair second reader accepts"),
    "type_exact": Figure("Failure type exact", "the type answered is the labelled one"),
    "macro_f1": Figure("Macro F1 over types", "F1 of each labelled type, averaged: rare types count as much as frequent ones", unit="score"),
    "macro_f1_accepted": Figure("Macro F1, accepted types count", "the same, where an accepted type counts as the labelled one", unit="score"),
    "outcome": Figure("Outcome right", "failed, hung, interrupted, healthy or unknown, as labelled"),
    "cause_class": Figure("Root-cause class exact", "hardware, software bug, config error ..., as labelled"),
    "cause_class_accepted": Figure("Root-cause class right", "as labelled, or one that the label accepts"),
    "category": Figure("Category right", "infrastructure, framework, script or scheduler"),
    "root_hit": Figure("Decisive line cited as root", "a line cited as the root cause is one of those labelled as decisive"),
    "any_hit": Figure("Decisive line cited", "any cited line is one of those labelled as decisive"),
    "evidence_precision": Figure("Evidence precision", "share of the lines cited as root that are decisive"),
    "evidence_recall": Figure("Evidence recall", "share of the decisive ranges with a line cited as root"),
    "evidence_f1": Figure("Evidence F1", "precision and recall of the cited lines in one figure", unit="score"),
    "node_top1": Figure("Node right, first", "the first suspect node is a labelled one"),
    "node_top5": Figure("Node right, first five", "one of the first five suspect nodes is a labelled one"),
    "rank_top1": Figure("Rank right, first", "the first suspect rank is a labelled one"),
    "rank_top5": Figure("Rank right, first five", "one of the first five suspect ranks is a labelled one"),
    "action": Figure("Action acceptable", "what it says to do next is one of the actions labelled as acceptable"),
    "must_mention": Figure("Says what must be said", "root cause or remediation name what the label asks for"),
    "must_not": Figure("Misleading type named", "the answer is a type that would send people the wrong way", "low"),
    "false_stop": Figure("Needless stop", "says that a person must fix something first, where a restart would do", "low"),
    "false_restart": Figure("Useless restart", "says restart, where a person must fix something first", "low"),
    "false_cordon": Figure("Wrong node accused", "names a suspect node where the label names none, or others", "low"),
    "false_alarm": Figure("False alarm", "a healthy job is called otherwise", "low"),
    "missed_failure": Figure("Missed failure", "a job that failed is called healthy", "low"),
    "unknown_rate": Figure("Answered unknown", "the failure type answered is unknown", ""),
    "unknown_right": Figure("Unknown was right", "of the answers unknown: the label is unknown too, or accepts it"),
    "status": Figure("Status fair", "not surer than the log allows"),
    "answered": Figure("Answered", "no crash, no error, no timeout"),
    "selective_established": Figure("Type right where established", "of the answers with the status established"),
    "selective_supported": Figure("Type right where supported", "of the answers with the status supported"),
    "selective_hypothesis": Figure("Type right where hypothesis", "of the answers with the status hypothesis"),
    "selective_unknown": Figure("Type right where unknown", "of the answers with the status unknown"),
    "recall_at_1": Figure("Similar incidents, first", "of the incidents labelled as similar: the one found first"),
    "recall_at_3": Figure("Similar incidents, first three", "of the incidents labelled as similar: those among the first three found"),
    "recall_at_5": Figure("Similar incidents, first five", "of the incidents labelled as similar: those among the first five found"),
    "mrr": Figure("Similar incidents, MRR", "one over the place of the first labelled incident found, averaged", unit="score"),
    "citation_valid": Figure("Citations valid", "the cited line exists, and the text cited stands in it"),
    "bytes_removed": Figure("Log left out", "share of the bytes that compression leaves out, median"),
    "decisive_kept": Figure("Decisive lines kept", "share of the decisive ranges that compression keeps"),
    "seconds": Figure("Seconds a case, mean", "wall time of one diagnosis", "low", "seconds"),
    "peak_mb": Figure("Peak memory, mean", "what a case needed at its highest", "low", "megabytes"),
    "seconds_median": Figure("Seconds a case, median", "wall time of one diagnosis", "low", "seconds"),
    "seconds_p95": Figure("Seconds a case, 95th percentile", "nineteen of twenty cases take less", "low", "seconds"),
    "peak_mb_max": Figure("Peak memory", "the most that a case needed", "low", "megabytes"),
    "tokens": Figure("Tokens", "tokens in and out of the model", "low", "count"),
    "cost": Figure("Cost", "what the model cost", "low", "money"),
    "pass_at_1": Figure("Right at the first try", "share of the repeats that are right, averaged over cases"),
    "flips": Figure("Answers that changed", "share of the cases whose repeats do not all name the same type", "low"),
    "spread": Figure("Spread over repeats", "how far the repeats of a run differ from each other", "low", "score"),
}  # fmt: skip
FAULTS: Mapping[str, str] = {
    "problem": "no answer",
    "missed_failure": "missed failure",
    "false_alarm": "false alarm",
    "must_not": "misleading type",
    "false_stop": "needless stop",
    "false_restart": "useless restart",
    "false_cordon": "wrong node accused",
    "type_accepted": "wrong type",
    "outcome": "wrong outcome",
    "node_top1": "guilty node missed",
    "rank_top1": "guilty rank missed",
    "action": "wrong action",
    "cause_class_accepted": "wrong cause class",
    "any_hit": "decisive line not cited",
    "root_hit": "decisive line not cited as root",
    "must_mention": "left something unsaid",
}


def figure(name: str) -> Figure:
    """A known figure; a metric of another program or version keeps its name."""
    return FIGURES.get(name) or Figure(name, "", "", "score")


def written(value: float | None, unit: Unit = "share") -> str:
    """A figure as people read it."""
    if value is None or math.isnan(value):
        return "–"
    match unit:
        case "share":
            return percent(value)
        case "score":
            return f"{value:.2f}"
        case "seconds":
            return seconds(value)
        case "megabytes":
            return f"{value:,.0f} MB"
        case "money":
            return f"{value:,.4g}"
    return f"{value:,.0f}"


def percent(value: float) -> str:
    """Whole percent; one digit more where a whole percent would say none or all."""
    near = 0 < value < 0.01 or 0.99 < value < 1
    return f"{value * 100:.1f}%" if near else f"{value * 100:.0f}%"


def seconds(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f} s"
    return f"{value:.1f} s" if value >= 10 else f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.0f} ms"


def interval(metric: Metric, unit: Unit = "share") -> str:
    """The interval alone: "86–97%", "0.34–0.68 s"; empty where there is none."""
    if not metric or metric.get("low") is None or metric.get("high") is None:
        return ""
    low, high = written(metric["low"], unit), written(metric["high"], unit)
    if low == high:
        return ""
    mark = re.search(r"[^\d.,]*$", high)
    return f"{low.removesuffix(mark.group()) if mark else low}–{high}"


def with_interval(metric: Metric, unit: Unit = "share") -> str:
    """ "92% (86–97%)"."""
    if not metric:
        return "–"
    span = interval(metric, unit)
    return f"{written(metric['value'], unit)} ({span})" if span else written(metric["value"], unit)


def counted(metric: Metric) -> str:
    """ "81 of 88" where the share is a plain one; else "88 cases"."""
    if not metric:
        return "not labelled"
    n = int(metric["n"])
    hits = metric["value"] * n
    if abs(hits - round(hits)) < 1e-3:
        return f"{round(hits)} of {n}"
    return f"{n} case{'s' if n != 1 else ''}"


def by_strength(baselines: Mapping[str, Mapping[str, Metric]]) -> list[str]:
    """The baselines, first the one that names the failure type best: the order wherever they are shown."""
    return sorted(baselines, key=lambda name: -rank(baselines[name].get("type_accepted"), "high"))


def rank(metric: Metric, better: str) -> float:
    """Higher is better, whatever the measure."""
    if not metric:
        return -math.inf
    value = float(metric["value"])
    return -value if better == "low" else value
