"""Templates. Whatever is put into one is escaped, and what nobody could see of it is made visible."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from jinja2 import Environment, FileSystemLoader

from triage.markup import Safe, el, join, visible
from triage.store.stats import Group
from triage.store.values import Sort
from triage.text import FOLLOWED, how_many, rank_ranges

SORTS: tuple[str, ...] = get_args(Sort)
RISKS = {
    "read-only": "only reads",
    "reversible": "can be undone",
    "destructive": "cannot be undone",
}
ROLES = {"root": "cause", "cascade": "consequence", "context": "context"}
# What a sentence of a diagnosis quotes of the log, the place of a line, and the id of one that is cited.
_QUOTED = re.compile(r"`([^`\n]{1,2000})`|\(([^()\s]{1,300}:\d{1,12})\)|\b(E\d{1,4})\b")


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
    made.filters |= {
        "utc": _utc, "ago": _ago, "many": how_many, "ranks": rank_ranges, "thousands": _thousands,
        "quoted": quoted, "parted": _parted, "headline": _headline,
    }  # fmt: skip
    made.globals |= {"RISKS": RISKS, "ROLES": ROLES, "SORTS": SORTS}
    return made


def _seen(value: Any) -> Any:
    """Text of a log can be written with characters that hide or reorder what stands around it."""
    return value if not isinstance(value, str) or hasattr(value, "__html__") else visible(value)


def quoted(text: str, result: Mapping[str, Any]) -> Safe:
    """A sentence of the diagnosis: what it quotes as code, and each line that it cites as a link to the evidence."""
    places = {f"{e['file']}:{e['line']}": e["id"] for e in result["evidence"]}
    ids = set(places.values())
    parts: list[Any] = []
    end = 0
    for found in _QUOTED.finditer(text):
        code, place, id_ = found.groups()
        to = places.get(place, "") if place else id_ if id_ in ids else ""
        parts.append(text[end : found.start()])
        parts.append(el("code", code) if code else el("a", found[0].strip("()"), href=f"#{to}") if to else found[0])
        if to and place:
            parts[-1] = join(("(", parts[-1], ")"))
        end = found.end()
    return join((*parts, text[end:]))


def _headline(result: Mapping[str, Any], title: str) -> str:
    """What failed, in a few words; title: of the incident, which for want of a cause is how its text begins."""
    if result["status"] != "unknown":
        return title[:1].upper() + title[1:]
    how = result["outcome"]
    return "The cause is not known" if how == "unknown" else f"{how.capitalize()}; the cause is not known"


def _parted(cause: str) -> tuple[str, str]:
    """What failed, and what it led to."""
    first, followed, rest = cause.partition(FOLLOWED)
    return first.strip(), f"{followed}{rest}".strip()


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
    if n is None:
        return "–"
    least = 10.0**-digits
    return f"< {least:g}" if digits and 0 < n < least / 2 else f"{n:,.{digits}f}"


def weeks(groups: Sequence[Group], most: int = 26) -> Safe | None:
    """Incidents by week as bars; the table beside it says the same."""
    shown = groups[-most:]
    if not shown:
        return None
    highest = max(g.incidents for g in shown) or 1
    slots = max(len(shown), 12)
    width, each = 100 / slots, -(-len(shown) // 6)
    marks = []
    for i, g in enumerate(shown):
        tall, middle = 68 * g.incidents / highest, f"{(i + 0.5) * width:.2f}%"
        bar = el(
            "rect", x=f"{(i + 0.15) * width:.2f}%", width=f"{0.7 * width:.2f}%",
            y=f"{84 - tall:.2f}%", height=f"{tall:.2f}%", rx="3",
        )  # fmt: skip
        marks.append(el("g", el("title", f"week from {g.name}: {how_many(g.incidents, 'incident')}"), bar))
        marks.append(el("text", g.incidents, x=middle, y=f"{81 - tall:.2f}%", text_anchor="middle", class_="count"))
        if i % each == 0:
            marks.append(el("text", g.name[5:] or g.name, x=middle, y="97%", text_anchor="middle"))
    base = el("line", class_="rail", x1="0", x2="100%", y1="84%", y2="84%")
    return el(
        "svg", marks, base, class_="weeks", role="img", aria_label="Incidents by week; the table below says the same"
    )
