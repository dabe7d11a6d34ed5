"""A diagnosis as rows: pure. Every free text passes `clean` on its way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import triage
from triage.domain import Diagnosis, Evidence, Hypothesis, ModelCall, Remedy, Similar
from triage.jobids import base_and_task
from triage.store import clean
from triage.store.values import Feedback, JobRef, Verdict

Row = dict[str, Any]
TITLE_WIDTH = 120
JOB_WIDTH = 150  # four of them stand in one index


def labels(d: Diagnosis) -> Row:
    """The labels of the latest diagnosis, as the incident carries them."""
    return {
        "title": title(d),
        "outcome": d.outcome,
        "failure_type": d.failure_type,
        "category": d.category,
        "root_cause_class": d.root_cause_class,
        "status": d.status,
        "action": d.action,
        "fingerprint": d.fingerprint,
    }


def title(d: Diagnosis) -> str:
    """What the first root line means, else the first sentence of the cause, else the type; one line."""
    first_root = next((e.title for e in d.evidence if e.role == "root" and e.title), "")
    cause = " ".join(d.root_cause.split()).partition(". ")[0]
    line = " ".join(clean.text(first_root or cause or d.failure_type).split()).rstrip(".")
    return line if len(line) <= TITLE_WIDTH else line[: TITLE_WIDTH - 1].rstrip() + "…"


def nodes(d: Diagnosis, job: JobRef | None) -> list[Row]:
    """Suspects first, then the nodes it ran on, then those its evidence names."""
    suspects = dict.fromkeys(clean.name(n) for n in d.suspects.nodes if n)
    others = [*(job.nodes if job else ()), *(e.node for e in d.evidence if e.node)]
    found = suspects | dict.fromkeys(clean.name(n) for n in others if n)
    return [{"node": n, "suspect": n in suspects} for n in found]


def job(ref: JobRef) -> Row:
    return {
        "scheduler": clean.name(ref.scheduler, JOB_WIDTH),
        "external_id": clean.name(base_and_task(ref.external_id)[0], JOB_WIDTH),
        "name": clean.name(clean.text(ref.name), JOB_WIDTH),
        "fingerprint": clean.name(ref.fingerprint, JOB_WIDTH),
    }


def verdict(v: Verdict) -> Row:
    return {
        "verdict": v.verdict,
        "cause": clean.text(v.cause),
        "fix": clean.text(v.fix),
        "worked": v.worked,
        "note": clean.text(v.note),
        "who": clean.text(v.who),
        "via": clean.text(v.via),
        "failure_type": v.failure_type or None,
        "root_cause_class": v.root_cause_class or None,
        "version": v.version,
    }


def feedback(f: Feedback) -> Row:
    said = {"note": clean.text(f.note), "who": clean.text(f.who), "via": clean.text(f.via)}
    return {"about": f.about, "ref": str(f.ref), "thumb": f.thumb, **said}


@dataclass(frozen=True, slots=True)
class Reading:
    """A diagnosis ready to be written: its clean result, its row without that, and what hangs below it."""

    result: dict[str, Any]
    row: Row
    parts: tuple[tuple[str, list[Row]], ...]
    labels: Row


def reading(d: Diagnosis, result_json: Mapping[str, Any], settings: Mapping[str, object] | None) -> Reading:
    result = clean.tree(result_json)
    return Reading(result, _diagnosis(d, settings or {}), tuple(_parts(d, result)), labels(d))


def _diagnosis(d: Diagnosis, settings: Mapping[str, object]) -> Row:
    return {
        "produced_by": d.produced_by,
        "tool_version": triage.__version__,
        "outcome": d.outcome,
        "failure_type": d.failure_type,
        "root_cause_class": d.root_cause_class,
        "status": d.status,
        "root_cause": clean.text(d.root_cause),
        "action": d.action,
        "timing": clean.dump(clean.tree(d.timing)),
        "usage": clean.dump(clean.tree(d.usage)),
        "settings": clean.dump(clean.settings(settings)),
        "learned_rules": clean.dump(d.learned),
        "seconds": sum(d.timing.values()) if d.timing else None,
    }


def _parts(d: Diagnosis, result: Mapping[str, Any]) -> Iterator[tuple[str, list[Row]]]:
    """Table name and rows of everything that hangs below a diagnosis."""
    yield "evidence", [_evidence(e) for e in d.evidence]
    yield "hypothesis", [{"position": i, **_hypothesis(h)} for i, h in enumerate(d.hypotheses, 1)]
    yield "suspect", list(_suspects(d))
    yield "similar_shown", [{"position": i, **_similar(s)} for i, s in enumerate(d.similar, 1)]
    yield "remediation_step", [{"position": i, **_step(r)} for i, r in enumerate(d.remediation, 1)]
    yield "prompt_used", [{"position": i, **_prompt(p)} for i, p in enumerate(result.get("prompts") or (), 1)]
    yield "model_call", [{"position": i, **_call(c)} for i, c in enumerate(d.calls, 1)]


def _evidence(e: Evidence) -> Row:
    return {
        "ref": clean.name(e.id),
        "file": clean.text(e.file),
        "line": clean.whole(e.line) or 0,
        "text": clean.text(e.text),
        "role": e.role,
        "failure_type": e.failure_type,
        "title": clean.text(e.title),
        "signature": e.signature,
        "rank": clean.whole(e.rank),
        "node": None if e.node is None else clean.name(e.node),
        "gpu": None if e.gpu is None else clean.name(e.gpu),
        "time": e.time,
        "repeats": clean.whole(e.repeats) or 1,
    }


def _hypothesis(h: Hypothesis) -> Row:
    return {
        "failure_type": h.failure_type,
        "root_cause_class": h.root_cause_class,
        "root_cause": clean.text(h.root_cause),
        "status": h.status,
        "supporting": clean.dump(h.supporting),
        "against": clean.dump(h.against),
        "check": clean.text(h.check),
    }


def _suspects(d: Diagnosis) -> Iterator[Row]:
    groups = (("node", d.suspects.nodes), ("rank", map(str, d.suspects.ranks)), ("gpu", d.suspects.gpus))
    for kind, names in groups:
        yield from ({"kind": kind, "name": name} for name in dict.fromkeys(map(clean.name, names)))


def _similar(s: Similar) -> Row:
    return {
        "incident": clean.name(s.incident),
        "title": clean.text(s.title),
        "score": s.score,
        "why": clean.text(s.why),
        "outcome": s.outcome,
    }


def _step(r: Remedy) -> Row:
    return {
        "step": clean.text(r.step),
        "command": clean.text(r.command),
        "why": clean.text(r.why),
        "risk": r.risk,
        "evidence": clean.dump(r.evidence),
        "incidents": clean.dump(r.incidents),
    }


def _call(c: ModelCall) -> Row:
    return {
        "model": clean.text(c.model),
        "error": clean.text(c.error),
        "seconds": c.seconds,
        "tokens_in": clean.whole(c.tokens_in) or 0,
        "tokens_out": clean.whole(c.tokens_out) or 0,
    }


def _prompt(p: Mapping[str, Any]) -> Row:
    return {name: clean.storable(str(p.get(name, ""))) for name in ("name", "version", "sha256")}
