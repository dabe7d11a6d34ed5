"""Templates. Whatever is put into one is escaped, and what nobody could see of it is made visible."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from jinja2 import Environment, FileSystemLoader

from triage.markup import Safe, el, visible
from triage.store.stats import Group
from triage.store.values import Sort
from triage.text import how_many, rank_ranges

SORTS: tuple[str, ...] = get_args(Sort)
RISKS = {
    "read-only": "only reads",
    "reversible": "can be undone",
    "destructive": "cannot be undone",
}
ROLES = {"root": "cause", "cascade": "consequence", "context": "context"}


def render(template: str, **shown: Any) -> str:
    return _environment().get_template(template).render(shown)


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        finalize=_seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"utc": _utc, "ago": _ago, "many": how_many, "ranks": rank_ranges, "thousands": _thousands}
    made.globals |= {"RISKS": RISKS, "ROLES": ROLES, "SORTS": SORTS}
    return made


def _seen(value: Any) -> Any:
    """Text of a log can be written with characters that hide or reorder what stands around it."""
    return value if not isinstance(value, str) or hasattr(value, "__html__") else visible(value)


def _utc(at: datetime | float | None) -> str:
    if at is None:
        return "–"
    found = datetime.fromtimestamp(at, UTC) if isinstance(at, (int, float)) else at
    return f"{found:%Y-%m-%d %H:%M}"


def _ago(at: datetime) -> str:
    seconds = max(0, int((datetime.now(UTC) - at).total_seconds()))
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {word} ago"
    return "just now"


def _thousands(n: float | None, digits: int = 0) -> str:
    return "–" if n is None else f"{n:,.{digits}f}"


def weeks(groups: Sequence[Group], most: int = 26) -> Safe | None:
    """Incidents by week as bars; the table beside it says the same."""
    shown = groups[-most:]
    if not shown:
        return None
    highest = max(g.incidents for g in shown) or 1
    width, marks = 100 / max(len(shown), 8), []
    for i, g in enumerate(shown):
        tall = 75 * g.incidents / highest
        bar = el(
            "rect",
            x=f"{i * width + 0.6:.2f}%",
            width=f"{width - 1.2:.2f}%",
            y=f"{90 - tall:.2f}%",
            height=f"{tall:.2f}%",
        )
        marks.append(el("g", el("title", f"week from {g.name}: {how_many(g.incidents, 'incident')}"), bar))
        marks.append(
            el("text", g.incidents, x=f"{(i + 0.5) * width:.2f}%", y=f"{88 - tall:.2f}%", text_anchor="middle")
        )
    base = el("line", class_="rail", x1="0", x2="100%", y1="90%", y2="90%")
    return el(
        "svg", marks, base, class_="weeks", role="img", aria_label="Incidents by week; the table below says the same"
    )
