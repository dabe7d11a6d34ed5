"""A simulated history for the bench of retrieval: the shipped cases as recorded incidents of one installation.

Each case that failed is diagnosed by the rules and recorded on a day of the half year before NOW (the days are dealt by
number and say nothing of the mechanism). What turned out is what the case is labelled with, in the words of its label:
where the type is right the diagnosis is confirmed, and of three fixes two are said to have worked; where it is another it
is corrected to the label.
Beside each stands a look-alike where there is one: the same log without its decisive lines, as when the file of the
faulty rank was lost. Where that gives another type than the label, it is recorded too, and rejected.
"""

from __future__ import annotations

import hashlib
import pickle
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from triage import pipeline, report
from triage.cli import wiring
from triage.domain import Diagnosis
from triage.evaluation import staging
from triage.evaluation.cases import Case, load_cases
from triage.parts import Parts
from triage.store.incidents import IncidentStore
from triage.store.values import Verdict

CASES = Path(__file__).resolve().parents[1] / "eval" / "cases"
NOW = datetime(2026, 7, 1, tzinfo=UTC)
DAYS = 180


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """A case with what the rules make of it, and of what is left of its log without the decisive lines."""

    case: Case
    whole: Diagnosis
    cut: Diagnosis

    def right(self, result: Diagnosis) -> bool:
        expect = self.case.expect
        return result.failure_type in (expect.failure_type, *(expect.also_accept or ()))

    @property
    def misleads(self) -> bool:
        return self.cut.outcome != "healthy" and not self.right(self.cut)


def diagnosed(kept: Path | None = None) -> list[Diagnosed]:
    """All cases that did not go well. kept: a file where they are, or are put; two minutes of work otherwise."""
    if kept is not None and kept.exists():
        found: list[Diagnosed] = pickle.loads(kept.read_bytes())
        return found
    parts = wiring.parts(wiring.settings("off"), lambda _text: None, record=False, similar=False)
    parts = replace(parts, remember=None, jobs=1)
    failed = [case for case in load_cases(CASES) if case.expect.outcome != "healthy"]
    with tempfile.TemporaryDirectory() as scratch:
        found = [_diagnosed(case, parts, Path(scratch)) for case in failed]
    if kept is not None:
        kept.write_bytes(pickle.dumps(found))
    return found


def _diagnosed(case: Case, parts: Parts, scratch: Path) -> Diagnosed:
    task = staging.stage(case, scratch)
    paths = [str(task.job / name) for name in task.inputs]
    whole, _ = pipeline.diagnose(paths, parts)
    for decisive in case.expect.evidence or ():
        for name in task.files if not decisive.file else (decisive.file,):
            _blank(task.job / name, decisive.first, decisive.last)
    cut, _ = pipeline.diagnose(paths, parts)
    return Diagnosed(case, _short(whole, task.job), _short(cut, task.job))


def _blank(path: Path, first: int, last: int) -> None:
    """Empties the lines; of a compressed file nothing."""
    if path.suffix in (".gz", ".zst", ".xz", ".bz2"):
        return
    lines = path.read_bytes().split(b"\n")
    lines[first - 1 : last] = [b""] * (last - first + 1)
    path.write_bytes(b"\n".join(lines))


def _short(result: Diagnosis, job: Path) -> Diagnosis:
    """Without the folder of this run in the names of files."""
    prefix = f"{job}/"
    evidence = tuple(replace(e, file=e.file.removeprefix(prefix)) for e in result.evidence)
    return replace(result, root_cause=result.root_cause.replace(prefix, ""), evidence=evidence)


def record(url: str, found: Sequence[Diagnosed], told: bool) -> Mapping[str, int]:
    """Fills a new database; the incident of each case. told: with what turned out."""
    at = NOW
    ids = {}
    with IncidentStore.open(url, lambda: at) as store:
        for day, item in _dealt(found):
            at = day
            ids[item.case.id] = store.record(item.whole, report.to_json(item.whole))
            if told:
                store.resolve(ids[item.case.id], _verdict(item))
            if item.misleads:
                at = day + timedelta(hours=7)
                look_alike = store.record(item.cut, report.to_json(item.cut))
                if told:
                    store.resolve(look_alike, Verdict("rejected", "bench", note="the decisive file was missing"))
    return ids


def _dealt(found: Sequence[Diagnosed]) -> Iterator[tuple[datetime, Diagnosed]]:
    dealt = sorted(found, key=lambda item: hashlib.sha256(item.case.id.encode()).digest())
    for place, item in enumerate(dealt):
        yield NOW - timedelta(days=DAYS * (1 - place / len(dealt))), item


def _verdict(item: Diagnosed) -> Verdict:
    expect = item.case.expect
    fix = f"as for {expect.failure_type}: {', '.join(expect.action or ()) or 'looked into'}"
    if item.whole.failure_type != expect.failure_type:
        kind = expect.failure_type or "unknown"
        return Verdict(
            "corrected", "bench", cause=expect.why or kind, fix=fix, failure_type=kind,
            root_cause_class=expect.root_cause_class or "",
        )  # fmt: skip
    worked = hashlib.sha256(item.case.id.encode()).digest()[1] % 3 > 0
    return Verdict("confirmed", "bench", cause=expect.why or "", fix=fix, worked="yes" if worked else "unknown")
