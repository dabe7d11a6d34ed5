"""The figures of a run as a short table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_ROWS = {
    "type_accepted": "type accepted",
    "type_exact": "type exact",
    "outcome": "outcome",
    "root_hit": "root line hit",
    "action": "action",
    "false_alarm": "false alarms",
    "missed_failure": "missed",
}
_NOTHING = "-"


def table(metrics: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> str:
    """The main figures of all cases, the tool beside the baselines; then what did not run, time and memory."""
    tool, baselines = metrics["splits"]["all"], metrics["baselines"]
    rows = [["", "triage", "95 %", "n", *baselines]]
    for name, words in _ROWS.items():
        figure = tool.get(name)
        others = [_value(found.get(name)) for found in baselines.values()]
        rows.append([words, _value(figure), _interval(figure), str(figure["n"]) if figure else _NOTHING, *others])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
    return "\n".join([*lines, "", *_account(tool, records)]) + "\n"


def _account(tool: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> list[str]:
    cases = len({record["case"] for record in records})
    failed = [record for record in records if record["problem"]]
    lines = [f"{cases} cases, {len(records)} diagnoses; {len(failed)} of them did not end well"]
    lines += [f"  {record['case']}: {record['problem']}" for record in failed[:10]]
    lines += [f"  and {len(failed) - 10} more"] if len(failed) > 10 else []
    median, high, memory = (tool.get(name) for name in ("seconds_median", "seconds_p95", "peak_mb_max"))
    if median and high and memory:
        took = f"{median['value']:.2f} s a diagnosis (median), {high['value']:.2f} s (95th percentile)"
        lines.append(f"{took}; at most {memory['value']:.0f} MB")
    return lines


def _value(figure: Mapping[str, Any] | None) -> str:
    return f"{figure['value']:.3f}" if figure else _NOTHING


def _interval(figure: Mapping[str, Any] | None) -> str:
    return f"{figure['low']:.2f}-{figure['high']:.2f}" if figure and figure["low"] is not None else _NOTHING
