"""The figures of a run as a short table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from triage.evaluation.figures import FIGURES, Metric, by_strength, figure, interval, written
from triage.text import how_many

# Costly mistakes last, as on the page of the report.
_ROWS = (
    "type_accepted", "type_exact", "outcome", "root_hit", "action", "cause_class_accepted", "node_top1", "rank_top1", "missed_failure",
    "false_alarm", "false_cordon",
)  # fmt: skip
_NOTHING = "-"
_PROBLEMS = 10


def table(metrics: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> str:
    """The main figures of all cases, the tool beside the baselines; then what did not run, time and memory."""
    tool, baselines = metrics["splits"]["all"], metrics["baselines"]
    order = by_strength(baselines)
    heads = [name.rpartition("-") for name in order]  # on two lines, so that the table fits 80 columns
    rows = [
        ["", "", "", "", *(f"{first}{dash}" for first, dash, _ in heads)],
        ["", "triage", "95 %", "n", *(last for _, _, last in heads)],
    ]
    for name in _ROWS:
        metric = tool.get(name)
        n = str(metric["n"]) if metric else "0"
        others = [_value(name, baselines[b].get(name)) for b in order]
        rows.append([FIGURES[name].label, _value(name, metric), interval(metric) or _NOTHING, n, *others])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
    return "\n".join([*filter(None, lines), "", *_account(tool, records)]) + "\n"


def _account(tool: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> list[str]:
    failed = [record for record in records if record["problem"]]
    lines = [f"{how_many(len({record['case'] for record in records}), 'case')}, {_ended(len(records), len(failed))}"]
    lines += [f"  {record['case']}: {record['problem']}" for record in failed[:_PROBLEMS]]
    lines += [f"  and {len(failed) - _PROBLEMS} more"] if len(failed) > _PROBLEMS else []
    median, high, memory = (tool.get(name) for name in ("seconds_median", "seconds_p95", "peak_mb_max"))
    if median and high and memory:
        took = f"{median['value']:.2f} s a diagnosis (median), {high['value']:.2f} s (95th percentile)"
        lines.append(f"{took}; at most {memory['value']:.0f} MB")
    return lines


def _ended(diagnoses: int, failed: int) -> str:
    said = how_many(diagnoses, "diagnosis", "diagnoses")
    if not failed:
        return f"{said}, all answered" if diagnoses else said
    return f"{said}; {failed} did not end with an answer:"


def _value(name: str, metric: Metric) -> str:
    return written(metric["value"], figure(name).unit) if metric else _NOTHING
