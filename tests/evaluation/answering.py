"""Small records for the tests of metrics: a label and an answer, everything else left out."""

from __future__ import annotations

from typing import Any


def record(
    case: str = "c1", want: dict[str, Any] | None = None, got: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    """got None: no answer (a crash). want and got stand in short: {"type": ...} is the failure type."""
    return {
        "case": case,
        "sha256": f"sha-{case}",
        "repeat": 0,
        "split": "dev",
        "tags": [],
        "synthetic": False,
        "expect": _long({"outcome": "failed", **(want or {})}),
        "files": {"job.log": 100},
        "result": None if got is None else _long(got),
        "problem": "crash: boom" if got is None else "",
        **fields,
    }


def said(*types: str | None, want: str = "ecc-error") -> list[dict[str, Any]]:
    """One record a given type; each case wants the same."""
    return [record(f"c{i}", {"type": want}, None if t is None else {"type": t}) for i, t in enumerate(types)]


def cite(line: int, role: str = "root", file: str = "job.log") -> dict[str, Any]:
    return {"file": file, "line": line, "role": role, "text": "x"}


def _long(short: dict[str, Any]) -> dict[str, Any]:
    return {("failure_type" if key == "type" else key): value for key, value in short.items()}
