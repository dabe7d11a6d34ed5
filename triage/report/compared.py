"""What differs from a good run, for JSON, text and markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from triage.domain import Compared, Difference

LISTS = ("changed", "new", "missing")


def compared_json(c: Compared) -> dict[str, Any]:
    found = {name: [_difference(d) for d in getattr(c, name)] for name in LISTS}
    return {"words": c.words, "good": list(c.good), **found}


def _difference(d: Difference) -> dict[str, Any]:
    full = {
        "kind": d.kind, "name": d.name, "text": d.text, "why": d.why, "good": d.good, "bad": d.bad, "evidence": d.evidence,
        "file": d.at.file if d.at else "", "line": d.at.line if d.at else 0,
        "good_file": d.good_at.file if d.good_at else "", "good_line": d.good_at.line if d.good_at else 0,
    }  # fmt: skip
    if d.kind == "line":
        full |= {"good": "", "bad": ""}  # the text itself, and `why`
    return {key: value for key, value in full.items() if value or key in ("kind", "text", "why")}


def differences(compared: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(changed, new or missing; the difference), in the order in which they are shown."""
    for name in LISTS:
        for found in compared[name]:
            yield name, found


def places(found: Mapping[str, Any]) -> str:
    """Where this run says it, and where the good one does; "" when nowhere."""
    mine = f"{found['file']}:{found['line']}" if found.get("file") else ""
    other = f"good run {found['good_file']}:{found['good_line']}" if found.get("good_file") else ""
    cited = f"{found['evidence']} " if found.get("evidence") else ""
    return cited + ", ".join(part for part in (mine, other) if part)
