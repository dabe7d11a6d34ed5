"""The message of a watched job, for `--notify`. Pure."""

from __future__ import annotations

import platform
from typing import Any

from triage.notify import Message
from triage.text import rank_ranges

_STEPS = 3
_SAID = {
    "hung": "HUNG",
    "cause": "HUNG, and why",
    "suspects changed": "HUNG, and other suspects",
    "suspended": "suspended",
    "moving again": "moving again",
    "ended": "ended",
    "failed": "ended with an error",
}


def message(document: dict[str, Any]) -> Message:
    """document: what is printed of a change that is news. One job of one machine is one incident: its states follow each other."""
    suspects = document["suspects"]
    who = _who(suspects)
    fields = (
        ("hung since", document["since"] or ""),
        ("seen", "\n".join((*document["words"], *document["problems"]))),
        ("suspects", "\n".join(suspect["why"] for suspect in suspects)),
        ("last step", "" if document["step"] is None else str(document["step"])),
        *_diagnosed(document["diagnosis"]),
        ("next", document["next"] or ""),
    )
    return Message(
        key=f"watch {platform.node()} {document['target']}",
        title=f"{document['target']} {_SAID[document['news']]}{f': {who}' if who else ''}",
        state=document["state"],
        summary=document["words"][0] if document["words"] else "",
        fields=tuple((name, value) for name, value in fields if value),
    )


def _who(suspects: list[dict[str, Any]]) -> str:
    ranks = [suspect["rank"] for suspect in suspects if suspect["rank"] is not None]
    causes = ", ".join(dict.fromkeys(suspect["cause"] for suspect in suspects))
    if ranks:
        return f"rank {rank_ranges(ranks)} ({causes})"
    pids = [str(suspect["pid"]) for suspect in suspects if suspect["pid"] is not None]
    return f"pid {', '.join(pids)} ({causes})" if pids else causes


def _diagnosed(diagnosis: dict[str, Any] | None) -> list[tuple[str, str]]:
    if not diagnosis:
        return []
    steps = [
        f"{number}. {step['step']}" + (f"\n   {step['command']}" if step.get("command") else "")
        for number, step in enumerate(diagnosis["remediation"][:_STEPS], 1)
    ]
    return [
        ("diagnosis", f"{diagnosis['root_cause']} ({diagnosis['status']})"),
        ("action", diagnosis["action"]),
        ("what to do", "\n".join(steps)),
    ]
