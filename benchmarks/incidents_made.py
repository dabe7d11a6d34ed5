"""Recorded incidents, seeded, for benchmarks.incidents: python -m benchmarks.incidents_made FOLDER COUNT."""

from __future__ import annotations

import json
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from triage import kb
from triage.store import engine, tables
from triage.store.incidents import IncidentStore

NODES, USERS, BATCH = 2000, 40, 5000
LAST = datetime(2026, 11, 1, tzinfo=UTC)


def main(folder: str, count: str) -> None:
    with IncidentStore.open(f"sqlite:///{Path(folder) / 'triage.db'}") as store:
        for start in range(0, int(count), BATCH):
            _fill(store, range(start + 1, min(start + BATCH, int(count)) + 1))


def _fill(store: IncidentStore, numbers: range) -> None:
    made = [_incident(n) for n in numbers]
    with engine.writing(store._engine) as connection:
        for table in (
            tables.Incident,
            tables.IncidentNode,
            tables.Attempt,
            tables.Diagnosis,
            tables.Evidence,
            tables.Outcome,
        ):
            rows = [row for one in made for row in one[table.__tablename__]]
            connection.execute(insert(table), rows)


def _incident(n: int) -> dict[str, list[dict[str, Any]]]:
    chance = random.Random(n)
    types = sorted(kb.taxonomy().types)
    classes = sorted(kb.taxonomy().root_cause_classes)
    healthy = chance.random() < 0.4
    kind = "healthy" if healthy else types[int(len(types) * chance.random() ** 2)]
    at = LAST - timedelta(minutes=5 * (100_000 - n))
    labels = {
        "outcome": "healthy" if healthy else chance.choice(("failed", "failed", "hung", "interrupted")),
        "failure_type": kind,
        "root_cause_class": chance.choice(classes),
        "status": chance.choice(("established", "supported", "hypothesis")),
        "action": "restart",
    }
    nodes = [f"gpu-{i:04}" for i in chance.sample(range(NODES), 4)]
    cited = [
        f"2026-03-01 node {node} pid={n}, step {i} went wrong in a way that a line tells"
        for i, node in enumerate(nodes[:3])
    ]
    result = {"schema": "triage.diagnosis/1", **labels, "root_cause": f"cause {n}", "category": "infrastructure"}
    result |= {"incident": n, "evidence": [{"file": "a.log", "line": i, "text": t} for i, t in enumerate(cited, 1)]}
    return {
        "incident": [{"id": n, "created_at": at, "title": f"cause {n}", "category": "infrastructure", **labels, "fingerprint": f"f{n % 9000}", "gpu_hours": None if healthy else chance.random() * 100, "owner": f"u{chance.randrange(USERS)}"}],
        "incident_node": [{"incident_id": n, "node": node, "suspect": i == 0 and not healthy} for i, node in enumerate(nodes)],
        "attempt": [{"incident_id": n, "number": 1, "recorded_at": at, "external_id": str(n), "task": "", "digest": f"d{n}", "begins": f"b{n}", "inputs": "[]"}],
        "diagnosis": [{"id": n, "incident_id": n, "version": 1, "created_at": at, "produced_by": "rules", "tool_version": "1", **labels, "root_cause": f"cause {n}", "result": json.dumps(_whole(result)), "timing": "{}", "usage": "{}", "settings": "{}", "attempt": 1, "seconds": chance.random() * 9}],
        "evidence": [{"diagnosis_id": n, "ref": f"E{i}", "file": "a.log", "line": i, "text": t, "role": "root", "failure_type": kind, "title": "", "signature": "s", "repeats": 1} for i, t in enumerate(cited, 1)],
        "outcome": [_outcome(n, at, labels, chance)] if not healthy and chance.random() < 0.3 else [],
    }  # fmt: skip


def _outcome(n: int, at: datetime, labels: dict[str, str], chance: random.Random) -> dict[str, Any]:
    verdict = chance.choice(("confirmed", "confirmed", "corrected", "rejected"))
    told = labels["failure_type"] if verdict == "confirmed" else None if verdict == "rejected" else "hang"
    words = {"cause": "c", "fix": "f", "worked": "yes", "note": "", "who": "u1", "via": "cli"}
    return {
        "incident_id": n,
        "verdict": verdict,
        "at": at,
        "failure_type": told,
        "root_cause_class": None,
        "version": 1,
        **words,
    }


def _whole(result: dict[str, Any]) -> dict[str, Any]:
    """What `show` prints of a result."""
    empty: dict[str, Any] = {"suspects": {"nodes": [], "ranks": [], "gpus": []}, "progress": {"stage": "unknown"}}
    empty["compression"] = {"bytes_in": 1, "lines_in": 1, "lines_kept": 1, "bytes_kept": 1, "tokens_kept": 1}
    lists = dict.fromkeys(("chain", "hypotheses", "remediation", "similar", "runs", "missing", "files"), ())
    evidence = [{"id": f"E{e['line']}", "role": "root", **e} for e in result["evidence"]]
    return {**result, **empty, **lists, "evidence": evidence}


if __name__ == "__main__":
    main(*sys.argv[1:])
