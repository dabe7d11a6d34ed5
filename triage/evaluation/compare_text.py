"""A comparison of two runs for a terminal or a CI log, at 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from triage.evaluation.compare import DECIDES
from triage.evaluation.figures import Unit, figure, written
from triage.evaluation.made import summary
from triage.text import how_many

_WIDTH = 80
_TIMES = ("seconds", "peak_mb")
_NOTES = {
    "+": "+ and -: cases that got better and worse. Differences of shares are in percent points, their intervals from paired draws.",
    "p": "p: exact McNemar (sign) test over the cases that differ, for one figure looked at alone; of twenty that do not differ, one is below "
    "0.05 by chance.",
    "-": "p is - where a figure is no share of cases, or neither way is better.",
    "time": "Time and memory depend on the machine, on what else ran there and on --jobs: compare runs made alone on one machine.",
}  # fmt: skip


def as_text(found: Mapping[str, Any], a: str = "", b: str = "") -> str:
    """compare()'s object as text; a, b: what the runs are called."""
    lines = [*_heading(found.get("runs"), a, b), f"{how_many(found['cases']['both'], 'case')} in both runs"]
    lines += [line for text in found["warnings"] for line in _wrapped(f"warning: {text}")]
    lines += ["", *_table(found["metrics"])]
    for verdict, words in (
        ("worse", "worse"),
        ("mixed", "mixed"),
        ("better", "better"),
        ("other", "changed in other figures only"),
    ):
        entries = found[verdict]
        if entries:
            lines += ["", f"{words} ({len(entries)})", *(line for entry in entries for line in _case(entry))]
    lines += ["", f"same: {how_many(found['same'], 'case')}"]
    return "\n".join(map(_printable, lines)) + "\n"


def _heading(runs: Mapping[str, Any] | None, a: str, b: str) -> Iterator[str]:
    for mark, name in (("a", a), ("b", b)):
        if name:
            yield f"{mark.upper()}  {name}"
        if runs:
            yield from _wrapped(f"   {summary(runs[mark])}", "   ")
    if runs:
        differ = [f"{d['label']} {d['a']} -> {d['b']}" for d in runs["differences"]]
        yield from _wrapped(
            f"made differently: {'; '.join(differ)}"
            if differ
            else "made alike: same program, knowledge, settings and machine"
        )
        yield ""


def _table(metrics: Mapping[str, Any]) -> Iterator[str]:
    yield f"{'':<30}{'A':>6}{'B':>6}{'B - A':>7} {'95 % interval':<15}{'+':>3}{'-':>3} p"
    there = {name: m for name, m in metrics.items() if m is not None}
    shown = [
        name for name, m in there.items() if name in DECIDES or m["better"] or m["worse"] or abs(m["value"]) > 1e-9
    ]
    for name in shown:
        m, unit = there[name], figure(name).unit
        span = f"[{_signed(m['low'], unit)}, {_signed(m['high'], unit)}]" if m["low"] is not None else "-"
        row = f"{figure(name).label:<30}{_value(m['before'], unit):>6}{_value(m['after'], unit):>6}{_signed(m['value'], unit):>7} {span:<15}"
        yield f"{row}{_count(m['better']):>3}{_count(m['worse']):>3} {_p(m['p'])}"
    if quiet := len(there) - len(shown):
        yield f"{how_many(quiet, 'more figure does', 'more figures do')} not differ (--format json tells all)"
    notes = [
        "+",
        "p",
        *(["-"] if any(there[n]["p"] is None for n in shown) else []),
        *(["time"] if {*_TIMES} & {*shown} else []),
    ]
    yield ""
    yield from (line for note in notes for line in _wrapped(_NOTES[note], "  "))


def _case(entry: Mapping[str, Any]) -> Iterator[str]:
    changes = []
    for mark in ("worse", "better"):
        if names := [figure(name).label for name, m in entry["changed"].items() if m == mark]:
            changes.append(f"{mark} in {', '.join(names)}")
    yield from _wrapped(f"  {entry['case']}: {'; '.join(changes)}", "      ")
    before, after = _said(entry["before"]), _said(entry["after"])
    same = " (as before)" if before == after else f", was {before}"
    yield f"      wants {_pair(entry['want'])}, is {after}{same}"


def _said(said: Mapping[str, Any]) -> str:
    return said["problem"][:60] or _pair(said)


def _pair(label: Mapping[str, Any]) -> str:
    return f"{label['failure_type'] or '?'}/{label['outcome'] or '?'}"


def _wrapped(text: str, indent: str = "  ") -> Iterable[str]:
    return textwrap.wrap(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )


def _value(value: float, unit: Unit) -> str:
    if unit == "share":
        return f"{value * 100:.1f}%" if 0 < value < 1 else f"{value * 100:.0f}%"
    return written(value, unit).replace(" ", "")


def _signed(value: float | None, unit: Unit) -> str:
    if value is None:
        return "-"
    if unit == "share":
        return f"{value * 100:+.1f}"
    return f"{value:+.2f}" if abs(value) < 100 else f"{value:+.0f}"


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}" if value >= 0.001 else "<0.001"


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in line)
