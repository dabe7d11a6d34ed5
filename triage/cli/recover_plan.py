"""`triage recover INCIDENT`: the plan, and with --yes what of it the settings allow."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from triage.chat.said import refuted
from triage.cli import output, recover_view, wiring
from triage.cli.who import user
from triage.errors import UsageError
from triage.hostlist import expand
from triage.recover.hosts import named
from triage.recover.plan import Case, plan, scheduler_of
from triage.recover.resume import Resume, resuming
from triage.recover.skipping import Skip
from triage.recover.step import Plan, Step
from triage.text import printable

if TYPE_CHECKING:
    from triage.config import Settings
    from triage.store.actions import Action, ActionStore
    from triage.store.values import StoredIncident

_UNDONE = frozenset({"failed", "held back"})
_ANSWERED = re.compile(
    r"(?<![\w.])(?:\d{1,12}(?:\.[A-Za-z][\w.-]{0,60})?|f[0-9A-Za-z]{6,20})(?![\w])"
)  # sbatch, qsub; flux
SCHEDULERS = ("slurm", "kubernetes", "pbs", "lsf", "sge", "flux")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line says besides the incident."""

    checkpoints: Path | None = None
    logs: Sequence[str] = ()
    script: str = ""
    kill_switch: str = ""
    scheduler: str = ""
    without: str = ""


def show(incident: int, asked: Asked, yes: bool, chosen: str) -> int:
    """1 where a step failed or was held back, or the job is to stay down. Errors: NotFoundError, UsageError, InputError, StoreError."""
    if asked.scheduler and asked.scheduler not in SCHEDULERS:
        raise UsageError(f"--scheduler {printable(asked.scheduler)!r} is not known", f"use {', '.join(SCHEDULERS)}")
    settings = wiring.settings()
    with wiring.store(settings) as store:
        found = store.get(incident)
    from triage.store.actions import ActionStore

    with ActionStore.open(settings.database_url) as actions:
        earlier = actions.of(incident)
        made = plan(_case(found, asked, submitted(earlier)))
        if not yes:
            output.write_last(recover_view.render(found, made, earlier, None, chosen))
            output.note("nothing was run; --yes runs what only reads, and what TRIAGE_RECOVER_ALLOW names")
            return 0 if made.restart else 1
        return _run(found, made, actions, settings, chosen)


def submitted(earlier: Sequence[Action]) -> tuple[str, ...]:
    """The jobs that were submitted anew for an incident, by what the scheduler answered."""
    answers = [one.output for one in earlier if one.kind == "resubmit" and one.exit_code == 0]
    return tuple(found[0] for text in answers if (found := _ANSWERED.search(text)))


def _case(found: StoredIncident, asked: Asked, submitted: tuple[str, ...]) -> Case:
    known = found.job.scheduler if found.job else ""
    resume, skip, notes = _looked_at(asked, found)
    return Case(
        incident=found.id,
        result=found.result,
        scheduler=asked.scheduler or scheduler_of(found.result, known if known in SCHEDULERS else ""),
        nodes=expand(str(found.result.get("job_nodes") or "")) or found.summary.nodes,
        steps=tuple(attempt.last_step for attempt in found.attempts),
        triage=(sys.executable, "-m", "triage"),
        script=_file(asked.script, "--script"),
        kill_switch=_file(asked.kill_switch, "--kill-switch", there=False),
        resume=resume,
        skip=skip,
        notes=tuple(notes),
        without=named(asked.without) if asked.without else (),
        submitted=submitted,
        known=found.attempts[-1].recorded_at.timestamp() if found.attempts else None,
        refuted=refuted(found),
    )


def _file(text: str, option: str, there: bool = True) -> str:
    """The whole path: it stands in a command that may be run elsewhere later."""
    if not text:
        return ""
    path = Path(text).absolute()
    if there and not path.is_file():
        raise UsageError(f"{option} {printable(text)!r} is no file", "name the batch script of the job")
    return str(path)


def _looked_at(asked: Asked, found: StoredIncident) -> tuple[Resume | None, Skip | None, list[str]]:
    """The checkpoint to go on from and what to leave out of the data, as far as the disk and the logs are given."""
    resume: Resume | None = None
    skip: Skip | None = None
    notes: list[str] = []
    saved: list[int] = []
    if asked.checkpoints:
        from triage.cli.recover_checkpoints import lost
        from triage.recover.checkpoints.judging import step_of, survey
        from triage.recovering.disk import Disk

        disk = Disk(asked.checkpoints)
        there = survey(disk.files(), disk, time.time())
        saved = [step for one in there.found if not one.problems and (step := step_of(one.unit, disk)) is not None]
        notes += there.notes
        if there.chosen:
            path = str(disk.path(there.chosen.unit.name))
            reached = found.result.get("progress", {}).get("last_step")
            resume = Resume(
                path, step_of(there.chosen.unit, disk), resuming(there.chosen, path), lost(there, disk, reached)
            )
        else:
            notes.append(f"no checkpoint in {asked.checkpoints} is complete")
    logs = asked.logs or _recorded_logs(found)
    if logs:
        from triage.cli import recover_interval, recover_spikes
        from triage.recovering import records

        files = records.read(logs)
        told, _ = recover_spikes.of_files(files, saved)
        notes += filter(None, [recover_interval.note(files, found)])
        notes += [line for one in told for line in recover_spikes.lines([one], 1)[:1]]
        skip = next((one.skip for one in reversed(told) if one.skip), None)
    return resume, skip, notes


def _recorded_logs(found: StoredIncident) -> list[str]:
    """Of an incident whose loss left its level: the files that its last attempt was read from, as far as they are still there."""
    if found.result.get("failure_type") != "loss-spike":
        return []
    files = found.attempts[-1].files if found.attempts else ()
    return [file.path for file in files if file.path and Path(file.path).is_file()]


class _Book:
    """Writes down what is done for one incident."""

    def __init__(self, store: ActionStore, incident: int) -> None:
        self._store, self._incident = store, incident

    def begin(self, step: Step) -> int:
        from triage.store.actions import Action

        return self._store.begin(Action(step.kind, step.what, step.risk, step.argv, user(), step.undo, self._incident))

    def end(self, number: int, code: int | None, text: str) -> None:
        self._store.end(number, code, text)


def _run(found: StoredIncident, made: Plan, actions: ActionStore, settings: Settings, chosen: str) -> int:
    from triage.recovering import steps

    allowed = settings.recover_allow.split(", ")
    tell = output.teller(False)
    done = list(steps.run(made, allowed, _Book(actions, found.id), tell))
    output.clear_progress(False)
    output.write_last(recover_view.render(found, made, actions.of(found.id), done, chosen))
    left = sorted({one.step.kind for one in done if one.state == "not allowed"})
    if left:
        output.note(
            f"not run, as the settings do not allow it: {', '.join(left)}; TRIAGE_RECOVER_ALLOW={','.join(left)} would"
        )
    undone = any(one.state in _UNDONE and one.step.risk != "read-only" for one in done)
    return 1 if undone or not made.restart else 0
