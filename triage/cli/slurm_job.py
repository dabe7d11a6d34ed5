"""The job that `triage diagnose --job` names: its files, and what Slurm says of it as files beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from triage.cli.case import Case, folder
from triage.cli.who import user_of
from triage.domain import SlurmJob
from triage.errors import InputError
from triage.ingest.streams import Input
from triage.parts import AskedJob, Tell
from triage.redact import redact
from triage.slurm import account, choose, ids, logs
from triage.slurm.client import Found, Slurm

FOLDER = "slurm"  # under the home, with what it told of jobs whose diagnosis is recorded
_NODES = 1000  # of a job whose nodes are asked for
_ELSEWHERE = "is it of another cluster (SLURM_CLUSTERS), or older than what Slurm keeps? give its log files to have them read all the same"


@contextmanager
def cases(
    text: str, paths: Sequence[str], home: Path | None, slurm: Slurm | None = None, tell: Tell = lambda _text: None
) -> Iterator[list[Case]]:
    """The diagnoses to make for a job id: one, or one for each failed task of an array.

    paths: further files; home: where the texts of Slurm are kept, None to drop them at the end.
    Errors: UsageError for what is no id, InputError when the job is not known, has not begun or left nothing to read.
    """
    asked, slurm = ids.parse(text), slurm or Slurm()
    tell(f"asking Slurm for job {asked}")
    found = slurm.jobs(asked)
    if not found.jobs:
        yield [_unknown(asked, found, paths)]
        return
    chosen = choose.choose(asked, found.jobs)
    if chosen.waiting:
        raise InputError(
            chosen.waiting, f"`triage watch --job {asked.asked}` follows it; a job is diagnosed once it has ended"
        )
    with folder(home, FOLDER) as place:
        made = []
        for group in chosen.groups:
            tell(f"looking for the logs of job {group[0].id}")
            made.append((group, _case(group, paths, slurm, found, place)))
        yield [_told(case, group, chosen, found) for group, case in made]


def _told(case: Case, jobs: Sequence[SlurmJob], chosen: choose.Chosen, found: Found) -> Case:
    asked = case.asked and replace(case.asked, said=(redact(choose.summary(jobs, user_of)), *chosen.notes))
    return replace(
        case,
        asked=asked,
        notes=(*found.missing, *case.notes),
        live=chosen.live,
        state=jobs[0].state,
        gpu_hours=_gpu_hours(jobs),
    )


def _gpu_hours(jobs: Sequence[SlurmJob]) -> float | None:
    """All that was used, by the accounting."""
    used = [hours for job in jobs if (hours := job.gpu_hours) is not None]
    return sum(used) if used else None


def _unknown(asked: ids.JobId, found: Found, paths: Sequence[str]) -> Case:
    """The files that were given, or that lie here under the job's own name."""
    given = tuple(paths) or tuple(str(path) for path in logs.named_after(asked.asked, Path()))
    why = "; ".join(found.missing)
    if not given and not found.known:
        raise InputError(
            f"Slurm cannot be asked for job {asked}: {why}",
            "run this where sacct or scontrol work, or give the log files",
        )
    if not given:
        also = f" ({why})" if why else ""
        raise InputError(f"Slurm does not know job {asked}{also}", _ELSEWHERE)
    told = f"Slurm does not know job {asked}" if found.known else f"Slurm was not asked for job {asked}"
    notes = (f"{told}: only {', '.join(given[:3])} was read", *found.missing)
    return Case(AskedJob((asked.asked,)), given, notes, scheduler="slurm")


def _case(jobs: tuple[SlurmJob, ...], paths: Sequence[str], slurm: Slurm, found: Found, place: Path) -> Case:
    name = jobs[0].het_job or jobs[0].id
    read, notes = _logs(jobs, slurm)
    nodes = tuple(dict.fromkeys(node for job in jobs for node in job.nodes))
    states, unasked = slurm.nodes(nodes[:_NODES]) if nodes else ((), ())
    told = account.nodes(states, jobs)
    source = "sacct" if found.accounted else "scontrol"
    of_slurm = AskedJob(
        ids=tuple(dict.fromkeys((name, *filter(None, (known for job in jobs for known in (job.id, job.raw_id)))))),
        inputs=(_input(place, f"{source}-{name}.txt", account.table(jobs)),),
        now=(_input(place, f"sinfo-{name}.txt", told),) if told else (),
        nodes=nodes,
        name=redact(jobs[0].name),
        user=jobs[0].user,
    )
    return Case(of_slurm, (*read, *paths), (*notes, *unasked), scheduler="slurm")


def _logs(jobs: Sequence[SlurmJob], slurm: Slurm) -> tuple[list[str], list[str]]:
    """Components of a heterogeneous job write where the first one does, unless they were told otherwise."""
    files: list[str] = []
    notes: list[str] = []
    for job in jobs:
        asked = ids.parse(job.id) if "[" not in job.id else ids.JobId(job.array_job)
        found = logs.find(job, lambda asked=asked: slurm.script(asked))  # type: ignore[misc]
        files += [str(path) for path in found.files if str(path) not in files]
        notes += (
            found.notes if not job.het_offset else [note for note in found.notes if found.files and note not in notes]
        )
    return files, notes


def _input(place: Path, name: str, text: str) -> Input:
    path = place / name
    path.write_text(text, "utf-8")
    return Input(name, path, path.stat().st_size, "sacct", datetime.now(UTC))
