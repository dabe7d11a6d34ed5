"""The message of a diagnosis. Pure."""

from __future__ import annotations

from triage.domain import Diagnosis, Evidence
from triage.notify.message import Message
from triage.text import excerpt, rank_ranges

_SHOWN = 3  # cited lines
_STEPS = 3


def of_diagnosis(found: Diagnosis, body_markdown: str = "", links: tuple[tuple[str, str], ...] = ()) -> Message:
    """The incident is its key, so the tasks of an array that fail alike give one message. body_markdown: for a ticket."""
    key = f"incident-{found.incident}" if found.incident else f"failure-{found.fingerprint or found.job}"
    roots = [e for e in found.evidence if e.role == "root"] or list(found.evidence)
    steps = [
        f"{number}. {step.step}" + (f"\n   {step.command}" if step.command else "")
        for number, step in enumerate(found.remediation[:_STEPS], 1)
    ]
    fields = (
        ("job", found.job),
        ("incident", str(found.incident or "")),
        ("status", found.status),
        ("action", found.action),
        ("suspect nodes", ", ".join(found.suspects.nodes)),
        ("suspect ranks", rank_ranges(found.suspects.ranks)),
        ("suspect GPUs", ", ".join(found.suspects.gpus)),
        ("last step", "" if found.progress.last_step is None else str(found.progress.last_step)),
        ("last checkpoint", found.progress.last_checkpoint or ""),
        ("lost", found.progress.lost_time or ""),
        ("evidence", "\n".join(map(_line, roots[:_SHOWN]))),
        ("what to do", "\n".join(steps)),
    )
    return Message(
        key=key,
        title=f"{found.outcome}: {found.failure_type}" if found.outcome != "healthy" else "healthy",
        state=found.outcome,
        summary=found.root_cause,
        fields=tuple((name, value) for name, value in fields if value),
        links=links,
        body_markdown=body_markdown,
    )


def _line(evidence: Evidence) -> str:
    return f"{evidence.file}:{evidence.line}  {excerpt(evidence.text, limit=300)}"
