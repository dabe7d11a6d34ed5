"""Runs cases through the production pipeline, each in a worker that sees its input files alone, and records what came of it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from triage.agents import failure_agent
from triage.config import Settings
from triage.errors import InputError
from triage.evaluation import baseline_llm, kept, provenance, record, staging
from triage.evaluation.answers import of_tool
from triage.evaluation.cases import Case
from triage.evaluation.measures import outcome, type_accepted
from triage.evaluation.pool import Pool
from triage.evaluation.worker import Done, MakeModel, MakeParts, Prepare, Setup, Task
from triage.redact import redact

_SHOWN = 5
_BESIDE_MODEL = 30.0  # seconds beside its calls: importing the client, reading the files again


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run. make_parts, make_model, prepare: importable functions, given the settings with the home of this evaluation.

    make_model: whom two of the baselines ask; None, or without baselines: nobody.
    preload: modules that workers share. seconds: how long a case may take; seed: of the intervals; again: run once more what crashed or timed out before.
    """

    settings: Settings
    make_parts: MakeParts
    prepare: Prepare | None = None
    jobs: int = 2
    repeats: int = 1
    seconds: float = 120.0
    seed: int = 0
    again: bool = False
    similar: bool = True
    baselines: bool = True
    make_model: MakeModel | None = None
    preload: tuple[str, ...] = ()

    @property
    def asks(self) -> bool:
        """Whether a model is asked by baselines; the diagnosis asks it by its own settings."""
        return self.baselines and self.make_model is not None and self.settings.llm != "off"

    @property
    def most_seconds(self) -> float:
        """How long a worker may take: what waiting for the model adds is no time of the case."""
        if self.settings.llm == "off":
            return self.seconds
        baselines = baseline_llm.CALLS * self.settings.llm_timeout + _BESIDE_MODEL if self.asks else 0.0
        diagnosis = failure_agent.SECONDS * self.settings.llm_timeout * self.settings.llm_samples
        return self.seconds + diagnosis + baselines


Tell = Callable[
    [int, int, str, int], None
]  # diagnoses done, of how many, id of the last, how many of those done now are wrong
Item = tuple[Case, int]  # a case and which repeat


def run(cases: Sequence[Case], path: Path, plan: Plan, tell: Tell = lambda _done, _all, _id, _wrong: None) -> None:
    """Runs what has no record yet and scores the whole run folder.

    The user's home and database are never touched: the workers have a temporary home. Errors: InputError for labels that
    do not fit their files, UsageError for a run folder that cannot be used, TriageError when workers cannot start.
    """
    lines = _count_lines(cases)
    with record.open_run(path) as folder:
        folder.begin(_header(cases, plan))
        todo = [
            (case, repeat)
            for case in sorted(cases, key=_size, reverse=True)  # the longest first: no worker idles at the end
            for repeat in range(plan.repeats)
            if (problem := folder.done.get((case.sha256, repeat))) is None or (plan.again and problem)
        ]
        total = len(cases) * plan.repeats
        done = total - len(todo)
        tell(done, total, "", 0)
        if todo:
            _work(todo, lines, folder, plan, lambda at, name, wrong: tell(done + at, total, name, wrong))
        folder.finish()
    rescore(path)


def rescore(path: Path) -> dict[str, Any]:
    """Makes metrics.json anew from the records of a run folder; returns it. Errors: InputError, UsageError."""
    return record.write_metrics(path, _score(path))


def figures(path: Path) -> dict[str, Any]:
    """The figures of the records as they are now: metrics.json where it is of these, else made anew. Errors: InputError."""
    if (path / record.METRICS).exists():
        found = record.read_metrics(path)
        if found.get("records_sha256") == record.records_sha256(path):
            return found
    return _score(path)


def _score(path: Path) -> dict[str, Any]:
    from triage.evaluation import metrics

    seed = record.read_run(path)["seed"]
    found: dict[str, Any] = metrics.score(record.read_records(path), seed=seed)
    return found


def _work(
    todo: Sequence[Item],
    lines: dict[str, dict[str, int]],
    folder: record.Recorder,
    plan: Plan,
    tell: Callable[[int, str, int], None],
) -> None:
    with tempfile.TemporaryDirectory(prefix="triage-", ignore_cleanup_errors=True) as scratch:
        pool: Pool[Item] = Pool(_setup(plan, Path(scratch)), plan.jobs, plan.most_seconds)

        def stage(item: Item, slot: int) -> Task:
            return staging.stage(item[0], Path(scratch) / str(slot))

        wrong = 0
        with contextlib.closing(pool.run(todo, stage)) as finished:  # workers end before their folder goes
            for at, ((case, repeat), done) in enumerate(finished, 1):
                made = {**_record(case, repeat, done, lines[case.id]), "memory": pool.memory}
                folder.append(made)
                wrong += not _right(made)
                tell(at, case.id, wrong)


def _right(made: dict[str, Any]) -> bool:
    """Type and outcome are the labelled ones, or accepted."""
    answer = of_tool(made)
    return answer.answered and type_accepted(answer) != 0 and outcome(answer) != 0


def _setup(plan: Plan, scratch: Path) -> Setup:
    home = scratch / "home"
    home.mkdir()
    own = replace(plan.settings, home=home, database_url=f"sqlite:///{home / 'triage.db'}", chroma_url="")
    prepare, make_model = plan.prepare if plan.similar else None, plan.make_model if plan.asks else None
    return Setup(own, plan.make_parts, scratch, prepare, plan.baselines, make_model, plan.preload)


def _count_lines(cases: Sequence[Case]) -> dict[str, dict[str, int]]:
    counts, wrong = {}, []
    for case in cases:
        try:
            counts[case.id] = staging.count_lines(case)
        except InputError as error:
            wrong.append(error.message)
    if wrong:
        more = [f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else []
        raise InputError("\n  ".join([*wrong[:_SHOWN], *more]))
    return counts


def _size(case: Case) -> int:
    return sum(path.stat().st_size for _, path in case.files())


def _header(cases: Sequence[Case], plan: Plan) -> dict[str, Any]:
    return {
        "schema": record.SCHEMA,
        "started": record.now(),
        "finished": None,
        **provenance.header(plan.settings, _prompts(plan)),
        "similar": plan.similar,
        "baselines": plan.baselines,
        "seed": plan.seed,
        "repeats": plan.repeats,
        "jobs": plan.jobs,
        "timeout": plan.seconds,
        "cases": [{"id": c.id, "sha256": c.sha256, "split": c.split, "tags": list(c.tags)} for c in cases],
    }


def _record(case: Case, repeat: int, done: Done, lines: dict[str, int]) -> dict[str, Any]:
    files = dict(case.files())
    account = (done.result or {}).get("compression", {})
    return {
        "case": case.id,
        "sha256": case.sha256,
        "repeat": repeat,
        "split": case.split,
        "tags": list(case.tags),
        "source": redact(case.source),
        "synthetic": case.synthetic,
        "gpu_hours": case.gpu_hours,
        "scheduler": {name: redact(x) if isinstance(x, str) else x for name, x in case.scheduler.items()},
        "expect": {name: redact(x) if name == "why" else x for name, x in case.expect.to_json().items()},
        "alike": kept.alike(case.expect.evidence or (), files),
        "labelled": kept.texts(case.expect.evidence or (), files),
        "files": lines,
        "result": done.result,
        "problem": done.problem,
        "seconds": round(done.seconds, 4),
        "peak_mb": round(done.peak_mb, 1),
        "compressed": {
            "bytes_in": account.get("bytes_in", 0),
            "bytes_kept": account.get("bytes_kept", 0),
            "decisive": [
                [d.file, d.first, d.last, kept.kept(d, done.shown, files)] for d in case.expect.evidence or ()
            ],
        },
        "citations": done.citations,
        "baselines": done.baselines,
        "notes": done.notes,
    }


def _prompts(plan: Plan) -> list[str]:
    """The names of those that the diagnosis and the baselines may ask with."""
    if plan.settings.llm == "off":
        return []
    return [*([baseline_llm.PROMPT] if plan.asks else []), *failure_agent.PROMPTS]
