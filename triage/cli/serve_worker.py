"""The process that diagnoses for `triage serve`; triage/web/worker.py says how it is spoken with."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from triage.cli import kube_job, serve_roots, slurm_job, tasks, wiring
from triage.cli.case import Case
from triage.config import Settings
from triage.domain import Diagnosis
from triage.errors import InputError, TriageError
from triage.parts import Tell
from triage.redact import redact
from triage.roots import within
from triage.text import excerpt

ALLOW = f"{serve_roots.SETTING} allows another folder"
MOST_TOLD = 3  # files that were not read
MOST_FOUND = 400  # characters of a cause that could not be recorded


def main() -> None:
    """Until stdin ends. Only what is said to the server goes to stdout."""
    server = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        for line in sys.stdin:
            asked = json.loads(line)
            _say(server, _diagnosed(server, asked))


def _diagnosed(server: IO[str], asked: dict[str, Any]) -> dict[str, Any]:
    try:
        os.chdir(asked["folder"])  # so that files go by the names under which they were sent
        chosen = wiring.settings()
        rules = wiring.learned_rules(chosen, writes=True)
        parts = wiring.parts(chosen, lambda text: _say(server, {"told": text}), rules=rules)
        parts = wiring.with_good_runs(parts, chosen, writes=True)
        with _cases(asked, chosen, parts.tell) as found:
            named = [replace(case, by=asked["who"]) for case in found]
            groups = tasks.diagnose(named, parts, chosen, None, new=False, live=True)
    except TriageError as error:
        return {"error": redact(str(error))}
    except Exception as error:  # noqa: BLE001 - the next job can still be diagnosed
        return {"error": f"this went wrong inside ({type(error).__name__}); please report it"}
    made = [task for group in groups for task in group]
    first = made[0].document
    if first["incident"] is None:
        return {"error": redact(_unrecorded(made[0].result))}
    others = ", ".join(str(task.document["incident"]) for task in made[1:])
    said = f"{len(made)} tasks were diagnosed; the other incidents: {others}" if others else ""
    return {"said": said, **{name: first[name] for name in ("incident", "failure_type", "outcome", "status")}}


def _unrecorded(result: Diagnosis) -> str:
    """What was found all the same, and why it is shown nowhere else."""
    why = next((m for m in reversed(result.missing) if "recorded" in m), "the incident was not recorded")
    found = "" if result.failure_type == "unknown" else f"{result.failure_type} ({result.status}): "
    return f"{why}. What was found: {found}{excerpt(result.root_cause, limit=MOST_FOUND)}"


@contextlib.contextmanager
def _cases(asked: dict[str, Any], chosen: Settings, tell: Tell) -> Iterator[list[Case]]:
    """Errors: UsageError, InputError."""
    match asked["scheduler"]:
        case "":
            named = [path for path in asked["paths"] if Path(path).is_absolute()]  # what was sent lies in the folder
            if named:
                within(named, serve_roots.roots(chosen), ALLOW)  # once more: links may have changed while it waited
            yield [Case(None, tuple(asked["paths"]))]
        case "slurm":
            with slurm_job.cases(asked["asked"], (), chosen.home) as found:
                yield [_below(case, serve_roots.roots(chosen)) for case in found]
        case scheduler:
            wanted = {"pod" if scheduler == "pod" else "job": asked["asked"]}
            with kube_job.cases(kube_job.Wanted(**wanted), (), chosen.home, chosen.offline, tell) as found:
                yield found


def _below(case: Case, roots: Sequence[Path]) -> Case:
    """With the files that lie below the roots: whoever submits a job says where its output goes. Errors: InputError."""
    inside: list[str] = []
    outside: list[str] = []
    for path in case.paths:
        try:
            inside += within([path], roots, ALLOW)
        except InputError as error:
            outside.append(error.message)
    if outside and not inside:
        raise InputError(outside[0], ALLOW)
    return replace(case, paths=tuple(inside), notes=(*case.notes, *outside[:MOST_TOLD]))


def _say(server: IO[str], said: dict[str, Any]) -> None:
    server.write(json.dumps(said) + "\n")
    server.flush()


if __name__ == "__main__":
    main()
