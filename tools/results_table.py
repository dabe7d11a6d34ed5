"""Write the table of results into the README: `python tools/results_table.py NAME=RUN/metrics.json ... [--readme FILE] [--check]`.

The table replaces what stands between the lines `<!-- results:begin -->` and `<!-- results:end -->`. NAME is what the set of cases is
called; without it, the name of the run folder.
"""

from __future__ import annotations

import argparse
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
BASELINES = 3
README = Path(__file__).resolve().parents[1] / "README.md"
Sets = Sequence[tuple[str, Mapping[str, Any]]]


def table(sets: Sets) -> str:
    """The table of one or more sets: each measure with its interval, the tool beside the best baselines."""
    return "\n".join(_lines(sets))


def _lines(sets: Sets) -> Iterator[str]:
    best = _best(sets)
    yield _row(["cases", "measure", "n", "triage", *best])
    yield _row(["---", "---", "---:", *["---:"] * (1 + len(best))])
    for name, metrics in sets:
        ours = metrics["splits"]["all"]
        told = name
        for measure in MEASURES:
            if metric := ours.get(measure):
                what = figure(measure)
                low = " (lower is better)" if what.better == "low" else ""
                theirs = [with_interval(metrics.get("baselines", {}).get(b, {}).get(measure)) for b in best]
                yield _row([told, f"{what.label}{low}", str(metric["n"]), f"**{with_interval(metric)}**", *theirs])
                told = ""


def _best(sets: Sets) -> list[str]:
    """The baselines that name the failure type best, averaged over the sets."""
    scores: dict[str, list[float]] = {}
    for _, metrics in sets:
        for name, found in metrics.get("baselines", {}).items():
            scores.setdefault(name, []).append(rank(found.get("type_accepted"), "high"))
    return sorted(scores, key=lambda n: (-sum(scores[n]) / len(scores[n]), n))[:BASELINES]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def placed(text: str, made: str) -> str:
    """The text with the table between its markers. Errors: ValueError without the markers, once each and in order."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"needs one line {BEGIN} and, after it, one line {END}")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{made}\n{END}{rest.split(END)[1]}"


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
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where the table is another")
    args = parser.parse_args()
    sets = []
    for argument in args.metrics:
        try:
            sets.append(read(argument))
        except (OSError, ValueError) as error:
            return _fail(f"{argument.rpartition('=')[2]}: {error}")
    try:
        text = args.readme.read_text("utf-8")
        made = placed(text, table(sets))
    except (OSError, ValueError) as error:
        return _fail(f"{args.readme}: {error}")
    if args.check:
        return 0 if made == text else 1
    args.readme.write_text(made, "utf-8")
    return 0


def _fail(message: str) -> int:
    sys.stderr.write(f"{message}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
