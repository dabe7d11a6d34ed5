"""A diagnosis as the JSON object of the contract, `triage.diagnosis/1`."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import datetime
from typing import Any

from triage.domain import (
    AgentRun,
    Compression,
    Diagnosis,
    Evidence,
    Folded,
    Hypothesis,
    Progress,
    Recurrence,
    Run,
    Similar,
    Suspects,
    Timeline,
)
from triage.report.compared import compared_json
from triage.report.stacks import stacks_json

SCHEMA = "triage.diagnosis/1"
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060\u2066-\u2069\ufeff\U000e0000-\U000e0fff]"
)


def to_json(d: Diagnosis) -> dict[str, Any]:
    """The object of the contract; only JSON types, times as ISO 8601 with zone; no control or invisible characters."""
    document: dict[str, Any] = _seen(_document(d))
    return document


def visible(text: str) -> str:
    """Without what would act on a terminal."""
    return _CONTROL.sub("\ufffd", text).replace("\n", "\ufffd").replace("\t", " ")


def _seen(value: Any) -> Any:
    """Names and notes may hold what would act on a terminal: shown as a replacement character."""
    if isinstance(value, str):
        return _CONTROL.sub("\ufffd", value)
    if isinstance(value, list):
        return [_seen(item) for item in value]
    return {key: _seen(item) for key, item in value.items()} if isinstance(value, dict) else value


def _document(d: Diagnosis) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "incident": d.incident,
        **({"attempt": d.attempt} if d.attempt > 1 else {}),
        "outcome": d.outcome,
        "failure_type": d.failure_type,
        "category": d.category,
        "root_cause_class": d.root_cause_class,
        "status": d.status,
        "root_cause": d.root_cause,
        "evidence": [_evidence(e) for e in d.evidence],
        "chain": list(d.chain),
        "hypotheses": [_hypothesis(h) for h in d.hypotheses],
        "suspects": _suspects(d.suspects),
        "action": d.action,
        "remediation": [
            _drop_empty({**asdict(r), "evidence": list(r.evidence), "incidents": list(r.incidents)}, {"command"})
            for r in d.remediation
        ],
        "similar": [similar(s) for s in d.similar],
        "runs": [_run(r) for r in d.runs],
        "progress": _progress(d.progress),
        "timeline": _timeline(d.timeline),
        "recurrence": _recurrence(d.recurrence),
        "compression": compression_json(d.compression),
        "produced_by": d.produced_by,
        "prompts": [asdict(prompt) for prompt in d.prompts],
        "missing": list(d.missing),
        "job": d.job,
        "job_name": d.job_name,
        "job_user": d.job_user,
        **({"account": list(d.account)} if d.account else {}),
        **({"job_nodes": d.job_nodes} if d.job_nodes else {}),
        "fingerprint": d.fingerprint,
        "files": list(d.files),
        "compared": compared_json(d.compared) if d.compared else None,
        **({"stacks": stacks_json(d.stacks)} if d.stacks else {}),
        "timing": {stage: round(seconds, 3) for stage, seconds in d.timing.items()},
        "usage": {"llm_calls": 0, "tokens_in": 0, "tokens_out": 0, **d.usage},
        "agent": _agent(d.agent) if d.agent else None,
    }


def _suspects(s: Suspects) -> dict[str, Any]:
    full = {"nodes": list(s.nodes), "ranks": list(s.ranks), "gpus": list(s.gpus), "pids": list(s.pids)}
    return _drop_empty(full, {"pids"})


def _agent(a: AgentRun) -> dict[str, Any]:
    full = {
        "steps": a.steps,
        "tools": [_drop_empty(asdict(use), {"problem"}) for use in a.tools],
        "stopped": a.stopped,
        "asked": a.asked,
        "samples": list(a.samples),
        "objections": a.objections,
        "objections_dropped": a.dropped,
    }
    return _drop_empty(full, {"objections", "objections_dropped"})


def _progress(p: Progress) -> dict[str, Any]:
    full = {
        "last_step": p.last_step, "last_checkpoint": p.last_checkpoint, "last_checkpoint_step": p.last_checkpoint_step,
        "lost_time": p.lost_time, "silence": p.silence, "world_size": p.world_size, "lost_gpu_hours": p.lost_gpu_hours,
        "restart_cost": p.restart_cost, "stage": p.stage,
    }  # fmt: skip
    return _drop_empty(full, set(full) - {"stage"})


def _timeline(t: Timeline) -> dict[str, Any]:
    moments = [
        _drop_empty(
            {"time": _time(m.time), "what": m.what, "source": m.source, "file": m.file, "line": m.line or None,
             "node": m.node, "evidence": m.evidence},
            {"file", "line", "node", "evidence"},
        )
        for m in t.moments
    ]  # fmt: skip
    clocks = [
        {"files": list(c.files), "said": c.said, "seconds_ahead": c.ahead, "zone_seconds": c.zone} for c in t.clocks
    ]
    return {"clocks": clocks, "joins": list(t.joins), "moments": moments}


def _recurrence(r: Recurrence) -> dict[str, Any]:
    told = {"kind": r.kind or "first", "said": r.said, "incidents": list(r.incidents)}
    if r.seen is None:
        return told
    first, last = _time(r.seen.first), _time(r.seen.last)
    return {
        **told,
        "first_seen": first,
        "last_seen": last,
        "same_job": r.seen.same_job,
        "other_jobs": r.seen.other_jobs,
    }


def compression_json(c: Compression) -> dict[str, Any]:
    return {
        "bytes_in": c.bytes_in,
        "lines_in": c.lines_in,
        "lines_kept": c.lines_kept,
        "bytes_kept": c.bytes_kept,
        "tokens_kept": c.tokens_kept,
        "dropped": [{"rule": rule, "lines": n} for rule, n in c.dropped.items()],
        "folded": c.folded,
        "cut": c.cut,
    }


def folded_json(folded: Folded) -> dict[str, Any]:
    """The object of `triage compress --format json`."""
    lines = [
        _drop_empty(
            {"file": x.file, "line": x.number, "text": x.text, "repeats": x.repeats, "ranks": list(x.ranks)}, {"ranks"}
        )
        for x in folded.lines
    ]
    return {
        "schema": "triage.compressed/1",
        "compression": compression_json(folded.account),
        "cut": list(folded.cut),
        "missing": list(folded.missing),
        "files": [{"file": name, "last_line": number} for name, number in folded.files],
        "lines": lines,
    }


def _evidence(e: Evidence) -> dict[str, Any]:
    full = {
        "id": e.id, "file": e.file, "line": e.line, "text": _CONTROL.sub("�", e.text[:500]), "role": e.role, "failure_type": e.failure_type,
        "title": e.title, "signature": e.signature, "rank": e.rank, "node": e.node, "gpu": e.gpu,
        "time": _time(e.time), "repeats": e.repeats, "ranks": list(e.ranks),
    }  # fmt: skip
    return _drop_empty(full, {"title", "signature", "rank", "node", "gpu", "time", "ranks"})


def _hypothesis(h: Hypothesis) -> dict[str, Any]:
    return {
        "failure_type": h.failure_type, "root_cause_class": h.root_cause_class, "root_cause": h.root_cause, "status": h.status,
        "for": list(h.supporting), "against": list(h.against), "check": h.check,
    }  # fmt: skip


def similar(s: Similar) -> dict[str, Any]:
    full = {
        "incident": s.incident,
        "title": s.title,
        "score": round(s.score, 3),
        "why": s.why,
        "outcome": s.outcome,
        "remediation": list(s.remediation),
        "fix": s.fix,
        "worked": s.worked,
        "told_at": _time(s.told_at),
        "times": s.times if s.times > 1 else None,
    }
    return _drop_empty(full, {"fix", "worked", "told_at", "times"})


def _run(r: Run) -> dict[str, Any]:
    full = {
        "file": r.file,
        "first_line": r.first_line,
        "last_line": r.last_line,
        "outcome": r.outcome,
        "ended_by": r.ended_by,
        "ended_line": r.ended_line,
    }
    return _drop_empty(full, {"ended_by", "ended_line"})


def _time(value: datetime | None) -> str | None:
    return value.isoformat() if value else None


def _drop_empty(full: dict[str, Any], optional: set[str]) -> dict[str, Any]:
    return {k: v for k, v in full.items() if k not in optional or (v not in (None, "", [], ()))}
