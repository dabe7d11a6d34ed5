"""Write docs/labels-and-figures.md from the taxonomy and the measures themselves: `python tools/labels_doc.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from triage import kb
from triage.evaluation import cases, metrics
from triage.evaluation.figures import FIGURES

TARGET = Path(__file__).resolve().parents[1] / "docs" / "labels-and-figures.md"
_BETTER = {"higher": "higher", "lower": "lower", "": "neither"}


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    known = kb.taxonomy()
    yield "# Labels and figures"
    yield ""
    yield "Made by `python tools/labels_doc.py` from kb/taxonomy.yaml and triage/evaluation. What they are for: [evaluation.md](evaluation.md)."
    yield from ("", "## Figures", "")
    yield "The name that people read, and the one that `metrics.json`, gate files and `--format json` use; with `_gpu` behind it each case weighs"
    yield "its GPU-hours."
    yield ""
    told = metrics.definitions()
    yield from _table(
        ("figure", "name", "what it is", "better", "interval (95 %)"),
        (
            (
                FIGURES[name].label,
                f"`{name}`",
                told[name]["text"],
                _BETTER[told[name]["better"]],
                told[name]["interval"],
            )
            for name in metrics.metric_names()
            if not name.endswith("_gpu")
        ),
    )
    yield from ("", "## Failure types", "")
    types = sorted(known.types.values(), key=lambda t: (t.category, t.id))
    yield from _table(("type", "category", "means"), ((f"`{t.id}`", t.category, t.means) for t in types))
    yield from ("", "## Actions", "")
    yield from _table(("action", "means"), ((f"`{name}`", means) for name, means in known.actions.items()))
    yield from ("", "## Other labels", "")
    for name, values in (
        ("outcome", known.outcomes), ("root_cause_class", known.root_cause_classes), ("status", known.statuses), ("split", cases.SPLITS),
        ("tags", cases.TAGS),
    ):  # fmt: skip
        yield f"- `{name}`: {', '.join(f'`{value}`' for value in sorted(values))}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


if __name__ == "__main__":
    TARGET.write_text(page(), "utf-8")
