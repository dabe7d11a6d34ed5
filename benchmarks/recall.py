"""How long a question takes among many recorded incidents: python -m benchmarks.recall [--incidents 100000]

Fills a SQLite database with incidents of 2,000 fingerprints (few common, many rare), three in ten of them with a verdict,
and an embedded Chroma index. The vectors are made: that of a fingerprint is embedded, each incident's is a little off it, as
to embed 100,000 texts takes minutes and gives nothing to measure. Then asks as a diagnosis does, each time from the opening
of the database on.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import insert

from benchmarks.retrieval import categories, vague
from triage import kb
from triage.domain import key_of
from triage.retrieve.archive import ArchiveIndex
from triage.retrieve.embedding import MiniLM
from triage.retrieve.index import Entry, Index, Vector
from triage.retrieve.rank import Query
from triage.retrieve.recall import Past, Recall
from triage.retrieve.retriever import Retriever, open_index
from triage.store import engine, tables
from triage.store.incidents import IncidentStore
from triage.store.known import KnownReader

KINDS, BATCH, QUESTIONS = 2000, 2000, 30
NOW = datetime(2026, 7, 1, tzinfo=UTC)


def line(kind: int) -> str:
    signature = kb.signatures()[kind % len(kb.signatures())]
    example = signature.examples[0] if signature.examples else signature.title
    return f"{example} (component {kind})"


def rows(kinds: np.ndarray[Any, Any], first: int) -> Iterator[tuple[type[tables.Base], list[dict[str, Any]]]]:
    """Rows of the incidents numbered from `first` on, one of each kind given."""
    found: dict[type[tables.Base], list[dict[str, Any]]] = {
        t: [] for t in (tables.Incident, tables.Diagnosis, tables.Evidence, tables.SimilarShown, tables.Outcome)
    }
    for number, kind in enumerate(map(int, kinds), first):
        signature = kb.signatures()[kind % len(kb.signatures())]
        labels = {
            "outcome": "failed", "failure_type": signature.failure_type, "root_cause_class": signature.root_cause_class,
            "status": "established", "action": "restart",
        }  # fmt: skip
        at = made_at(number)
        cited = {
            "id": "E1", "file": "job.log", "line": 7, "text": line(kind), "role": "root", "title": signature.title,
            "failure_type": signature.failure_type, "signature": signature.id,
        }  # fmt: skip
        result = {"root_cause": f"{signature.title} (job.log:7)", "evidence": [cited], "pad": "x" * 4000}
        found[tables.Incident].append(
            {
                "id": number,
                "created_at": at,
                "title": signature.title,
                "category": "",
                "fingerprint": f"f{kind}",
                **labels,
            }
        )
        found[tables.Diagnosis].append(
            {
                "id": number,
                "incident_id": number,
                "version": 1,
                "created_at": at,
                "produced_by": "rules",
                "tool_version": "0",
                "root_cause": signature.title,
                "result": json.dumps(result),
                "timing": "{}",
                "usage": "{}",
                "settings": "{}",
                **labels,
            }
        )
        found[tables.Evidence].append(
            {
                "diagnosis_id": number,
                "ref": "E1",
                "file": "job.log",
                "line": 7,
                "text": line(kind),
                "role": "root",
                "failure_type": signature.failure_type,
                "title": signature.title,
                "signature": signature.id,
                "repeats": 1,
            }
        )
        found[tables.SimilarShown].append(
            {
                "diagnosis_id": number,
                "position": 1,
                "incident": str(number - 1),
                "title": "",
                "score": 0.5,
                "why": "",
                "outcome": "none",
            }
        )
        if number % 10 < 3:
            verdict, worked = (("confirmed", "yes"), ("confirmed", "unknown"), ("rejected", "unknown"))[number % 3]
            found[tables.Outcome].append(
                {
                    "incident_id": number,
                    "verdict": verdict,
                    "cause": "",
                    "fix": f"fix of {kind}",
                    "worked": worked,
                    "note": "",
                    "who": "bench",
                    "at": at,
                    "via": "cli",
                    "version": 1,
                }
            )
    yield from found.items()


def made_at(number: int) -> datetime:
    return NOW - timedelta(minutes=5 * (100_000 - number))


def fill(url: str, index: Index, model: MiniLM, count: int) -> None:
    rng = np.random.default_rng(7)
    kinds = np.minimum(rng.zipf(1.3, count) - 1, KINDS - 1)
    IncidentStore.open(url).close()
    connected = engine.connect(engine.parse(url))
    centres = model.embed([line(kind)[:300] for kind in range(KINDS)])
    for first in range(1, count + 1, BATCH):
        part = kinds[first - 1 : first - 1 + BATCH]
        with engine.writing(connected) as connection:
            for table, found in rows(part, first):
                if found:
                    connection.execute(insert(table), found)
        names = [key_of(number, 1, made_at(number)) for number in range(first, first + len(part))]
        index.add([Entry(n, _near(centres[kind], rng)) for n, kind in zip(names, map(int, part), strict=True)])
    connected.dispose()


def _near(centre: Vector, rng: np.random.Generator) -> Vector:
    vector = centre + rng.normal(0, 0.01, centre.shape).astype(np.float32)
    found: Vector = vector / np.linalg.norm(vector)
    return found


def question(kind: int) -> Query:
    signature = kb.signatures()[kind % len(kb.signatures())]
    return Query(
        signature.title, signature.failure_type, signature.root_cause_class, error_strings=(line(kind),),
        fingerprint=f"f{kind}", signatures=(signature.id,),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--incidents", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="a folder that is filled once and asked again the next time")
    asked = parser.parse_args()
    if asked.keep:
        run(asked.keep, asked.incidents)
    else:
        with tempfile.TemporaryDirectory() as folder:
            run(Path(folder), asked.incidents)


def run(folder: Path, count: int) -> None:
    model, url = MiniLM(), f"sqlite:///{folder}/triage.db"
    index = open_index(folder, "", model, part="bench")
    known = Retriever(open_index(folder, "", model), model, kb.known_incidents(), categories(), vague())
    known.sync()
    if not (folder / "triage.db").exists():
        begun = time.perf_counter()
        fill(url, index, model, count)
        print(f"{count} incidents and vectors written in {time.perf_counter() - begun:.0f} s", flush=True)
    seconds, cpu, first = [], [], 0
    kinds = [*range(QUESTIONS // 2), *range(QUESTIONS // 2, KINDS, KINDS // (QUESTIONS // 2))]  # common ones and rare
    for kind in kinds:
        begun, used = time.perf_counter(), time.process_time()
        with KnownReader.open(url) as reader:
            recall = Recall(known, Past(reader, ArchiveIndex(index, model, reader)), now=lambda: NOW)
            answer = recall.similar(question(kind), 3)
        seconds.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - used)
        first += bool(answer.similar) and answer.similar[0].same_fingerprint
        assert not answer.notes, answer.notes
    print(
        f"{len(kinds)} questions, by the clock: median {statistics.median(seconds):.2f} s, slowest {max(seconds):.2f} s; "
        f"CPU: median {statistics.median(cpu):.2f} s, most {max(cpu):.2f} s; "
        f"the same fingerprint came first for {first}"
    )


if __name__ == "__main__":
    main()
