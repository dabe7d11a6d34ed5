"""How a job went, in words: progress and its cost, the timeline, earlier incidents. Of a stored result too. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SHOWN = 16
_SHOWN_AT_FIRST = 8


def progress_parts(result: Mapping[str, Any]) -> list[str]:
    """Stage, last step and checkpoint, and what was lost."""
    p = result["progress"]
    parts = [f"stage {p['stage']}"] if p.get("stage", "unknown") != "unknown" else []
    parts += [f"last step {p['last_step']}"] if "last_step" in p else []
    if "last_checkpoint" in p or "last_checkpoint_step" in p:
        parts.append(f"last checkpoint {_checkpoint(p)}")
    parts += [p[name] for name in ("lost_time", "silence") if name in p]
    return parts


def _checkpoint(p: dict[str, Any]) -> str:
    where, step = p.get("last_checkpoint", ""), p.get("last_checkpoint_step")
    named = step is None or str(where) == f"step {step}"
    return str(where) if named else f"{where} (step {step})" if where else f"step {step}"


def cost_parts(result: Mapping[str, Any]) -> list[str]:
    """GPU-hours lost and what a restart takes."""
    p = result["progress"]
    parts = []
    if "lost_gpu_hours" in p:
        parts.append(f"{p['lost_gpu_hours']:g} GPU-hours lost on {p['world_size']} GPUs")
    if "restart_cost" in p:
        parts.append(f"restart cost {p['restart_cost']}")
    return parts


def timeline_rows(result: Mapping[str, Any], details: bool = True) -> list[str]:
    """One row a moment, where several kinds of source or several clocks take part; then clocks and joins."""
    told = result.get("timeline") or {}
    moments = told.get("moments", [])
    notes = [*(c["said"] for c in told.get("clocks", [])), *told.get("joins", [])]
    if len({m["source"] for m in moments}) < 2 and not notes:
        return []
    most = _SHOWN if details else _SHOWN_AT_FIRST
    moments = [m for before, m in zip([None, *moments[:-1]], moments, strict=True) if not _again(m, before)]
    rows = [_row(m) for m in moments[:most]]
    if len(moments) > most:
        rows.append(f"... {len(moments) - most} more")
    return [*rows, *notes]


def _again(m: dict[str, Any], before: dict[str, Any] | None) -> bool:
    """Does it say what the moment before says?"""
    return before is not None and all(m.get(name) == before.get(name) for name in ("time", "what", "source", "node"))


def chain_text(result: Mapping[str, Any]) -> str:
    """The ids from cause to last consequence; lines that mean the same, on other ranks, stand together."""
    titles = {e["id"]: e.get("title", "") for e in result["evidence"]}
    groups: list[list[str]] = []
    for name in result["chain"]:
        if groups and titles.get(name, "") and titles.get(groups[-1][-1]) == titles.get(name):
            groups[-1].append(name)
        else:
            groups.append([name])
    return " > ".join(ids[0] if len(ids) == 1 else f"{ids[0]}-{ids[-1]}" for ids in groups)


def _row(m: dict[str, Any]) -> str:
    place = f" ({m['evidence']})" if m.get("evidence") else f" ({m['file']}:{m['line']})" if m.get("file") else ""
    who = " ".join(x for x in (m["source"], m.get("node", "")) if x)
    return f"{m['time'][:19].replace('T', ' ')}  {who}: {m['what']}{place}"


def recurrence_text(result: Mapping[str, Any]) -> str:
    """What earlier incidents say, "" the first time."""
    return str((result.get("recurrence") or {}).get("said", ""))
