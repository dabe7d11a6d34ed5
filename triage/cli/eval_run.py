"""The body of `triage eval run`."""

from __future__ import annotations

import functools
import json
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from triage.cli import eval_table, output, wiring
from triage.cli.progress import Progress
from triage.errors import UsageError
from triage.evaluation import cases, gate, record, runner, unfinished
from triage.evaluation.cases import Case
from triage.text import how_many


@dataclass(frozen=True, slots=True)
class Choice:
    """The flags."""

    cases: Sequence[Path]
    out: Path | None
    llm: str | None
    repeats: int
    jobs: int | None
    seconds: float
    only: str | None
    split: str | None
    tag: str | None
    gate: Path | None
    seed: int
    retry: bool
    similar: bool
    baselines: bool


def run(choice: Choice, chosen: str, quiet: bool) -> int:
    wanted = _select(_load(choice.cases), choice)
    for case in wanted:
        for warning in case.warnings:
            output.note(f"{case.folder}: {warning}; a name can give the answer away", quiet)
    bounds = gate.load_gate(choice.gate) if choice.gate else ()  # a gate that cannot be read is no reason to have run
    path = choice.out or Path("eval-runs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
    _tell_resumed(path, wanted, choice.repeats, quiet)
    signal.signal(signal.SIGTERM, _end)
    try:
        with Progress("evaluating", quiet) as tell:
            runner.run(wanted, path, _plan(choice, quiet), tell)
    except KeyboardInterrupt:
        output.note(_kept(path, len(wanted) * choice.repeats))
        raise
    metrics = record.read_metrics(path)
    if chosen == "json":
        output.write_last(json.dumps({"run": str(path), "metrics": metrics}))
    else:
        output.write_last(eval_table.table(metrics, record.read_records(path)) + f"\nThe run is in {path}\n")
    lacks = unfinished.missing(record.read_run(path), record.read_records(path))
    if lacks and not bounds:
        output.note(f"{path} is not finished: {lacks}", quiet)
    verdict = gate.check(metrics, bounds, lacks if bounds else "")
    if bounds:
        sys.stderr.write(gate.as_text(verdict))
    return 0 if verdict.passed else 1


def _plan(choice: Choice, quiet: bool) -> runner.Plan:
    settings = wiring.settings(choice.llm)
    if settings.llm != "off":
        wiring.model(settings)  # a name that cannot be meant is an error before anything runs
        also = ", and answers as two of the baselines" if choice.baselines else ""
        output.note(f"the model {settings.llm} is asked in each diagnosis{also}", quiet)
    return runner.Plan(
        settings,
        functools.partial(wiring.evaluation_parts, similar=choice.similar),
        wiring.fill_index,
        choice.jobs or _cpus(),
        choice.repeats,
        choice.seconds,
        choice.seed,
        choice.retry,
        choice.similar,
        choice.baselines,
        wiring.model,
        ("triage.cli.eval_workers", *(("triage.cli.eval_recall",) if choice.similar else ())),
    )


def _tell_resumed(path: Path, wanted: Sequence[Case], repeats: int, quiet: bool) -> None:
    """What of a run that goes on is there already, and which of its cases are not chosen now."""
    if not (path / record.RUN).exists():
        return
    there = {(r["sha256"], r["repeat"]) for r in record.read_records(path)}
    done = sum((case.sha256, at) in there for case in wanted for at in range(repeats))
    output.note(
        f"{path} is resumed: {done} of {how_many(len(wanted) * repeats, 'diagnosis', 'diagnoses')} are there", quiet
    )
    others = {c["id"] for c in record.read_run(path)["cases"]} - {case.id for case in wanted}
    if others:
        words = (
            "is not chosen now and stays as it is" if len(others) == 1 else "are not chosen now and stay as they are"
        )
        output.note(f"{how_many(len(others), 'other case')} of this run {words}", quiet)


def _kept(path: Path, planned: int) -> str:
    """What an interruption leaves, and how to go on."""
    done = len(record.read_records(path)) if path.exists() else 0
    command = unfinished.go_on(["triage", *sys.argv[1:]], path)
    if not done:
        return f"nothing was done yet; to begin again: {command}"
    return f"{done} of {how_many(planned, 'diagnosis', 'diagnoses')} are kept; to go on: {command}"


def _cpus() -> int:
    """That this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _load(folders: Sequence[Path]) -> list[Case]:
    found: dict[str, Case] = {}
    for folder in folders:
        for case in cases.load_cases(folder):
            if case.id in found and not found[case.id].folder.samefile(case.folder):
                raise UsageError(f"the id {case.id} stands in {found[case.id].folder} and in {case.folder}")
            found[case.id] = case
    return list(found.values())


def _select(known: Sequence[Case], choice: Choice) -> list[Case]:
    ids = {case.id for case in known}
    names = _only(choice.only, ids) if choice.only is not None else ids
    if strange := names - ids:
        raise UsageError(f"--only: no case has the id {', '.join(sorted(strange))}")
    if choice.split is not None and choice.split not in cases.SPLITS:
        raise UsageError(f"--split {choice.split!r} is not known", f"use {' or '.join(cases.SPLITS)}")
    if choice.tag is not None and choice.tag not in cases.TAGS:
        raise UsageError(f"--tag {choice.tag!r} is not known", f"use one of {', '.join(cases.TAGS)}")
    wanted = [
        case
        for case in known
        if case.id in names and choice.split in (None, case.split) and (choice.tag is None or choice.tag in case.tags)
    ]
    if not wanted:
        raise UsageError("no case is left by --only, --split and --tag")
    return wanted


def _only(text: str, ids: set[str]) -> set[str]:
    """The ids of --only: one, which may hold a comma, or several between commas."""
    names = {text} if text in ids else {name.strip() for name in text.split(",")} - {""}
    if not names:
        raise UsageError(f"--only {text!r} names no case", "give ids of cases, with commas between them")
    return names


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
