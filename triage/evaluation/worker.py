"""A worker process: diagnoses one staged job after another. It is told where the files lie, and nothing of the case.

It starts in a process of its own with a clean environment, so that neither the labels nor the names of cases are in it.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from triage import pipeline
from triage.config import Settings
from triage.domain import Folded
from triage.errors import TriageError
from triage.evaluation import lines
from triage.evaluation.memory import Peak
from triage.ingest import sources
from triage.llm.limits import Prices
from triage.llm.values import ChatModel
from triage.parts import Parts

MakeParts = Callable[[Settings], Parts]  # must be importable, for it goes to another process
MakeModel = Callable[[Settings], ChatModel | None]
Prepare = Callable[[Settings], None]


@dataclass(frozen=True, slots=True)
class Setup:
    """What all workers share. scratch: a folder that goes when the run ends; make_model: whom the baselines may ask;
    preload: modules that are imported once, by the process that workers are forked from."""

    settings: Settings
    make_parts: MakeParts
    scratch: Path
    prepare: Prepare | None = None  # done once, by the first worker
    baselines: bool = True
    make_model: MakeModel | None = None
    preload: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """Diagnose `inputs` of the folder `job`. files: the names of all input files there."""

    job: Path
    inputs: tuple[str, ...]
    files: tuple[str, ...]


@dataclass(slots=True)
class Done:
    """What came of a task. shown: each line of the compressed log as file, number, text, and how many it stands for."""

    result: dict[str, Any] | None = None
    problem: str = ""
    seconds: float = 0.0
    peak_mb: float = 0.0
    shown: list[tuple[str, int, str, int]] = field(default_factory=list)
    citations: dict[str, int] = field(default_factory=lambda: {"cited": 0, "valid": 0})
    baselines: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    gone: bool = False  # the worker is dead or must go


@dataclass(frozen=True, slots=True)
class Ready:
    """The worker has started, or could not: problem."""

    memory: str = ""
    problem: str = ""


def serve(link: Connection, setup: Setup, first: bool, folders: Sequence[Path]) -> None:
    """Answers tasks until it is killed. When the other side is gone, removes the folders that it left."""
    sys.argv = ["triage"]
    for name in [n for n in os.environ if n.startswith("TRIAGE_") and n != "TRIAGE_DEBUG"]:
        del os.environ[name]
    os.environ["TRIAGE_HOME"] = str(setup.settings.home)
    peak = Peak()
    try:
        if first and setup.prepare is not None:
            setup.prepare(setup.settings)
        parts = setup.make_parts(setup.settings)
        model = setup.make_model(setup.settings) if setup.make_model else None
    except TriageError as error:
        link.send(Ready(problem=str(error)))
        return
    try:
        link.send(Ready(memory=peak.source))
        while True:
            task = link.recv()
            done = _do(task, parts, peak)
            if setup.baselines:
                _baselines(task, done, model, setup.settings)
            link.send(done)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os.chdir("/")
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def _do(task: Task, parts: Parts, peak: Peak) -> Done:
    os.chdir(task.job)
    done = Done()
    _diagnose(task, parts, peak, done)
    if done.result is not None:
        done.citations = _citations(done.result, task)
    return done


def _diagnose(task: Task, parts: Parts, peak: Peak, done: Done) -> None:
    folded: list[Folded] = []
    peak.start()
    started = time.perf_counter()
    try:
        inputs = ["./-" if name == "-" else name for name in task.inputs]  # a file of this name, not stdin
        _, done.result = pipeline.diagnose(inputs, replace(parts, folded=folded.append))
    except TriageError as error:
        done.problem = f"error: {error}"
    except Exception as error:  # noqa: BLE001 - one case that crashes is a figure of the evaluation, not its end
        done.problem = f"crash: {_crash(error)}"
    done.seconds = time.perf_counter() - started
    done.peak_mb = peak.mb()
    done.shown = [(x.file, x.number, x.text, x.repeats) for log in folded for x in log.lines]


def _crash(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def _citations(result: dict[str, Any], task: Task) -> dict[str, int]:
    """How many lines the diagnosis cites, and how many of these stand in the file as cited."""
    wanted: dict[str, set[int]] = {}
    for e in result["evidence"]:
        wanted.setdefault(e["file"], set()).add(e["line"])
    names = {sources.shown(Path(name)): name for name in task.files}  # as an answer calls them
    there = {
        (file, number): line
        for file, numbers in wanted.items()
        if file in names
        for number, line in lines.pick(task.job / names[file], numbers).items()
    }
    cited = [((e["file"], e["line"]), e["text"]) for e in result["evidence"]]
    return {"cited": len(cited), "valid": sum(at in there and lines.shows(there[at], text) for at, text in cited)}


def _baselines(task: Task, done: Done, model: ChatModel | None, settings: Settings) -> None:
    from triage.evaluation import baseline_llm, baselines

    files = {name: task.job / name for name in task.files}
    try:
        done.baselines = baselines.answer_all(files)
        if model is not None:
            prices = Prices(settings.llm_price_in, settings.llm_price_out)
            answers, notes = baseline_llm.answer_all(files, model, prices)
            done.baselines |= answers
            done.notes += notes
    except Exception as error:  # noqa: BLE001 - a baseline that crashes must not cost the tool's own answer
        done.notes.append(f"baselines: {_crash(error)}")
