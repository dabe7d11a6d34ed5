"""A diagnosis as a message. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from triage.chat.said import refuted
from triage.chat.values import Subject
from triage.notify.message import Message, clean
from triage.text import excerpt, rank_ranges

_LINES = 3  # cited
_STEPS = 3
_NOTES = 3


def of_subject(subject: Subject) -> Message:
    """Verdict, cause, root line, action, steps and what was not seen, without secrets."""
    r = subject.result
    suspects, progress = r["suspects"], r["progress"]
    roots = [e for e in subject.evidence if e["role"] == "root"] or list(subject.evidence)
    verdict = subject.stored.verdicts[-1] if subject.stored and subject.stored.verdicts else None
    wrong = refuted(subject.stored)
    fields = (
        ("incident", "not recorded" if subject.incident is None else str(subject.incident)),
        ("job", r["job"]),
        ("status", r["status"]),
        ("action", "" if wrong else r["action"]),
        ("suspect nodes", ", ".join(suspects["nodes"])),
        ("suspect ranks", rank_ranges(suspects["ranks"])),
        ("suspect GPUs", ", ".join(suspects["gpus"])),
        ("lost", progress.get("lost_time") or ""),
        ("turned out", f"{verdict.verdict} by {verdict.who}" if verdict else ""),
        ("evidence", "\n".join(map(_line, roots[:_LINES]))),
        ("what to do", "" if wrong else "\n".join(_steps(r["remediation"]))),
        ("not seen", "\n".join(excerpt(note, limit=300) for note in r["missing"][:_NOTES])),
    )
    healthy = r["outcome"] == "healthy"
    return clean(
        Message(
            key=subject.name,
            title="healthy" if healthy else f"{r['outcome']}: {r['failure_type']}",
            state=r["outcome"],
            summary=f"{wrong} Before, triage said: {r['root_cause']}" if wrong else r["root_cause"],
            fields=tuple((name, value) for name, value in fields if value),
        )
    )


def _line(evidence: Mapping[str, Any]) -> str:
    return f"{evidence['file']}:{evidence['line']}  {excerpt(evidence['text'], limit=300)}"


def _steps(remediation: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"{number}. {step['step']}" + (f"\n   {step['command']}" if step.get("command") else "")
        for number, step in enumerate(remediation[:_STEPS], 1)
    ]
