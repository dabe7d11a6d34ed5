"""What a model is told of an incident with a question about it, within the room that it has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from triage.chat.remembered import remembered
from triage.chat.values import Cited, Event, Subject, Text
from triage.redact import redact
from triage.report import course
from triage.store.chat_values import StoredTurn

CHARS_PER_TOKEN = 2.2  # as triage/agents/case.py counts
ROOM = 12_000  # tokens of all blocks, where the model takes more
_SHARES = {
    "evidence": 0.35,
    "known": 0.2,
    "conversation": 0.15,
    "hypotheses": 0.1,
    "steps": 0.1,
    "similar": 0.05,
    "facts": 0.05,
}
_MOST_EVIDENCE, _MOST_LINE = 30, 400


def inputs(
    subject: Subject, said: str, turns: Sequence[StoredTurn], known: Iterable[Event], room: int
) -> dict[str, str]:
    """The inputs of the prompt `chat-question`. room: tokens."""
    r = subject.result
    chars = int(room * CHARS_PER_TOKEN)
    told = {
        "evidence": "\n".join(map(_evidence, subject.evidence[:_MOST_EVIDENCE])),
        "hypotheses": "\n".join(
            f"- {h['failure_type']} ({h['status']}), {h['root_cause_class']}: {h['root_cause']} for {h['for']} against {h['against']}"
            for h in r.get("hypotheses", ())
        ),
        "steps": "\n".join(f"- {s['step']} [{s['risk']}] {s.get('command', '')}" for s in r.get("remediation", ())),
        "similar": "\n".join(map(_similar, r.get("similar", ()))),
        "facts": "\n".join(_facts(subject)),
        "known": "".join(_known(known)),
    }
    diagnosis = (
        f"{subject.name}: outcome {r['outcome']}, {r['failure_type']}, cause {r['root_cause_class']}, {r['status']}"
    )
    found = blocks(told, said, turns, chars, _SHARES)
    return {**found, "diagnosis": redact(f"{diagnosis}\n{r['root_cause']}")}


def blocks(
    told: Mapping[str, str], said: str, turns: Sequence[StoredTurn], chars: int, shares: Mapping[str, float]
) -> dict[str, str]:
    """Each text cut to its share of so many characters, without secrets; with the question and the conversation so far."""
    cut = {name: _cut(text, int(chars * shares[name])) or "none" for name, text in told.items()}
    so_far = remembered(turns, int(chars * shares["conversation"])) or "none"
    found = {**cut, "conversation": so_far, "question": _cut(said, chars // 10)}
    return {name: redact(text) for name, text in found.items()}


def _evidence(e: Any) -> str:
    who = "".join(f" {name} {e[name]}" for name in ("rank", "node", "gpu") if e.get(name) is not None)
    means = f" = {e['title']}" if e.get("title") else ""
    return f"{e['id']} {e['file']}:{e['line']} [{e['role']}{who}] {e['text'][:_MOST_LINE]}{means}"


def _similar(s: Any) -> str:
    fix = f"; fix: {s['fix']} (worked: {s.get('worked', 'unknown')})" if s.get("fix") else ""
    return f"- past incident {s['incident']} ({s['outcome']}): {s['title']}{fix}"


def _facts(subject: Subject) -> Iterable[str]:
    r = dict(subject.result)
    yield f"job {r.get('job') or 'of unknown id'}; files {', '.join(r.get('files', ())[:8])}"
    yield f"suspects: nodes {r['suspects']['nodes']}, ranks {r['suspects']['ranks']}, gpus {r['suspects']['gpus']}"
    yield ", ".join([*course.progress_parts(r), *course.cost_parts(r)])
    if again := course.recurrence_text(r):
        yield again
    for v in subject.stored.verdicts if subject.stored else ():
        yield f"{v.who} recorded: {v.verdict} {v.cause} fix: {v.fix or 'none'} (worked: {v.worked})"
    yield from (f"not seen: {note}" for note in r.get("missing", ())[:6])


def _known(events: Iterable[Event]) -> Iterable[str]:
    for event in events:
        if isinstance(event, Text):
            yield event.text
        elif isinstance(event, Cited):
            yield f"  {event.id} {event.file}:{event.line} {event.text[:_MOST_LINE]}\n"


def _cut(text: str, most: int) -> str:
    """Whole lines, of more than there is room for the first."""
    if len(text) <= most:
        return text
    kept = text[:most].rpartition("\n")[0] or text[:most]
    return f"{kept}\n... cut"
