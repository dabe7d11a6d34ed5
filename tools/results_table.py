"""The table of results in the README: `python tools/results_table.py NAME=RUN/metrics.json ... --write` or `--check`.

It stands between the lines `<!-- results:begin -->` and `<!-- results:end -->`. NAME is what the set of cases is called; without it, the
name of the run folder. Sets of the table that are not named keep their rows: their logs may not be here. --check changes nothing and says
which rows are others; `make results` and `make check-results` run the cases that ship first.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from triage.evaluation.figures import figure, rank, with_interval

BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"
MEASURES = (
    "type_accepted", "outcome", "cause_class_accepted", "root_hit", "node_top1", "rank_top1", "action", "missed_failure", "false_alarm",
)  # fmt: skip
HEADS = ("cases", "measure", "n", "triage")
BASELINES = 3
README = Path(__file__).resolve().parents[1] / "README.md"
Sets = Sequence[tuple[str, Mapping[str, Any]]]
Rows = dict[str, list[list[str]]]  # set -> the cells of its rows


def table(sets: Sets, before: str = "") -> str:
    """The table of one or more sets: each measure with its interval, the tool beside the best baselines.

    before: the table that it replaces, of which the other sets stay as they are.
    """
    heads, there = _parsed(before)
    kept = {name: rows for name, rows in there.items() if name not in dict(sets)}
    best = heads[len(HEADS) :] if kept else _best(sets)
    made = {name: list(_rows(name, metrics, best)) for name, metrics in sets}
    order = [*there, *(name for name in made if name not in there)]
    lines = [_row([*HEADS, *best]), _row(["---", "---", "---:", *["---:"] * (1 + len(best))])]
    return "\n".join([*lines, *(_row(cells) for name in order for cells in (made | kept).get(name, ()))])


def _rows(name: str, metrics: Mapping[str, Any], baselines: Sequence[str]) -> Iterator[list[str]]:
    ours, told = metrics["splits"]["all"], name
    for measure in MEASURES:
        if metric := ours.get(measure):
            what = figure(measure)
            low = " (lower is better)" if what.better == "low" else ""
            theirs = [with_interval(metrics.get("baselines", {}).get(b, {}).get(measure)) for b in baselines]
            yield [told, f"{what.label}{low}", str(metric["n"]), f"**{with_interval(metric)}**", *theirs]
            told = ""


def _parsed(text: str) -> tuple[list[str], Rows]:
    """The headings and the rows of a table as this tool writes it; a row without a set belongs to the set above."""
    lines = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    found: Rows = {}
    name = ""
    for cells in lines[2:]:
        name = cells[0] or name
        found.setdefault(name, []).append(cells)
    return (lines[0] if lines else []), found


def _best(sets: Sets) -> list[str]:
    """The baselines that name the failure type best, averaged over the sets."""
    scores: dict[str, list[float]] = {}
    for _, metrics in sets:
        for name, found in metrics.get("baselines", {}).items():
            scores.setdefault(name, []).append(rank(found.get("type_accepted"), "high"))
    return sorted(scores, key=lambda n: (-sum(scores[n]) / len(scores[n]), n))[:BASELINES]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def parts(text: str) -> tuple[str, str, str]:
    """What stands before, between and after the markers. Errors: ValueError without them, once each and in order."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"needs one line {BEGIN} and, after it, one line {END}")
    before, rest = text.split(BEGIN)
    between, after = rest.split(END)
    return f"{before}{BEGIN}\n", between.strip("\n"), f"\n{END}{after}"


def read(argument: str) -> tuple[str, Mapping[str, Any]]:
    """NAME=FILE or FILE -> name and metrics. Errors: OSError, ValueError."""
    name, found, path = argument.rpartition("=")
    file = Path(path)
    metrics = json.loads(file.read_text("utf-8"))
    if not isinstance(metrics, dict) or "all" not in metrics.get("splits", {}):
        raise ValueError("is no metrics.json of triage eval")
    return (name if found else file.resolve().parent.name), metrics


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("metrics", nargs="+", help="NAME=RUN/metrics.json")
    parser.add_argument("--readme", type=Path, default=README)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--check", action="store_true", help="change nothing; exit 1 and say where the table is another")
    how.add_argument("--write", action="store_true", help="write the table")
    args = parser.parse_args()
    sets = []
    for argument in args.metrics:
        try:
            sets.append(read(argument))
        except (OSError, ValueError) as error:
            return _fail(f"{argument.rpartition('=')[2]}: {error}")
    try:
        before, old, after = parts(args.readme.read_text("utf-8"))
        new = table(sets, old)
        if args.write:
            args.readme.write_text(f"{before}{new}{after}", "utf-8")
    except (OSError, ValueError) as error:
        return _fail(f"{args.readme}: {error}")
    if args.check and new != old:
        changed = difflib.unified_diff(
            old.splitlines(), new.splitlines(), "in the README", "by this run", "", "", 0, ""
        )
        sys.stderr.write(
            "\n".join([f"{args.readme}: the table of results is stale; make results writes it anew", *changed, ""])
        )
        return 1
    return 0


def _fail(message: str) -> int:
    sys.stderr.write(f"{message}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
