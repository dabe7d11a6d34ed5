"""A comparison of two runs for a terminal or a CI log, at 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from triage.evaluation.compare import DECIDES

_ALWAYS = (*DECIDES, "any_hit", "action", "false_alarm", "missed_failure", "macro_f1")
_P = (
    "p: exact McNemar (sign) test over the cases that differ, for one metric looked",
    "at alone; of twenty that do not differ, one is below 0.05 by chance",
)


def as_text(found: Mapping[str, Any], a: str = "", b: str = "") -> str:
    """compare()'s object as text; a, b: what the runs are called."""
    lines = [f"A  {a}", f"B  {b}"] if a or b else []
    lines += [f"{found['cases']['both']} cases in both runs"]
    lines += [f"warning: {text}" for text in found["warnings"]]
    lines += ["", *_table(found["metrics"])]
    for verdict in ("worse", "mixed", "better"):
        entries = found[verdict]
        if entries:
            lines += ["", f"{verdict} ({len(entries)})", *(line for entry in entries for line in _case(entry))]
    lines += ["", f"same: {found['same']} cases"]
    return "\n".join(map(_printable, lines)) + "\n"


def _table(metrics: Mapping[str, Any]) -> Iterable[str]:
    yield f"{'metric':<21}{'A':>6}{'B':>7}{'B - A':>8} {'95 % interval':<16}{'better':>7}{'worse':>6} p"
    quiet = []
    for name, m in metrics.items():
        if m is None:
            continue
        if name not in _ALWAYS and not m["better"] and not m["worse"] and not m["value"]:
            quiet.append(name)
            continue
        span = f"[{_signed(m['low'])}, {_signed(m['high'])}]"
        row = f"{name:<21}{_number(m['before']):>6}{_number(m['after']):>7}{_signed(m['value']):>8} {span:<16}"
        counts = f"{_count(m['better']):>7}{_count(m['worse']):>6}"
        yield f"{row}{counts} {_p(m['p'])}"
    if any(m and m["p"] is not None for m in metrics.values()):
        yield from _P
    if quiet:
        yield from _wrapped("no difference in: ", quiet)


def _case(entry: Mapping[str, Any]) -> Iterable[str]:
    changes = []
    for mark in ("worse", "better"):
        if names := [name for name, m in entry["marks"].items() if m == mark]:
            changes.append(f"{mark} in {', '.join(names)}")
    yield f"  {entry['case']}: {'; '.join(changes)}"
    before, after = _said(entry["before"]), _said(entry["after"])
    same = " (as before)" if before == after else f", was {before}"
    yield f"      wants {_pair(entry['want'])}, is {after}{same}"


def _said(said: Mapping[str, Any]) -> str:
    return said["problem"][:60] or _pair(said)


def _pair(label: Mapping[str, Any]) -> str:
    return f"{label['failure_type'] or '?'}/{label['outcome'] or '?'}"


def _wrapped(start: str, names: Iterable[str], width: int = 80) -> Iterable[str]:
    line = start
    for name in names:
        if len(line) + len(name) > width:
            yield line.rstrip()
            line = "  "
        line += f"{name}, "
    yield line.rstrip(", ")


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.0f}"


def _signed(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:+.3f}" if abs(value) < 100 else f"{value:+.0f}"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}" if value >= 0.001 else "<0.001"


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in line)
