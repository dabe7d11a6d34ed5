"""Starting a job again: from which checkpoint, without which nodes, by which command. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from triage.recover.resume import Resume
from triage.recover.skipping import Skip
from triage.recover.step import Step
from triage.risk import of_command
from triage.text import excluding, host_list, how_many

_SUBMIT = {"slurm": "sbatch", "pbs": "qsub", "sge": "qsub", "flux": "flux"}
# All states of a job that runs or will: asked for by name, as squeue leaves some of them out.
_LIVE = "PENDING,RUNNING,SUSPENDED,STOPPED,COMPLETING,CONFIGURING,RESIZING,REQUEUED,SIGNALING,STAGE_OUT"
_CANCEL = {"slurm": "scancel", "pbs": "qdel", "sge": "qdel", "flux": "flux cancel"}


def going_back(
    resume: Resume | None, skip: Skip | None, result: Mapping[str, Any], cited: tuple[str, ...]
) -> Iterator[Step]:
    """Where to go on from, as a setting of the job's own script; nothing is run for it."""
    if skip is not None:
        samples = f" ({skip.samples:,} samples)" if skip.samples else ""
        what = f"Go back to step {skip.rewind_to} and leave out steps {skip.first} to {skip.last}{samples}: {skip.settings}"
        yield Step(
            "do",
            what,
            "that is the last checkpoint well before the loss left its level",
            "reversible",
            undo="the later checkpoints stay",
            evidence=cited,
        )
    elif result.get("action") == "rollback-and-skip":
        yield Step(
            "do",
            "Find a checkpoint from well before the loss left its level, and leave out the data around that: --checkpoints DIR and --log PATH"
            " name both. Without such a checkpoint start anew, with the learning rate or the data changed",
            "the newest checkpoint may hold the divergence already, and the same data meet the same spike",
            evidence=cited,
        )
    elif resume is not None:
        lost = f"; {how_many(resume.lost, 'step')} lost" if resume.lost else ""
        at = f" of step {resume.step}" if resume.step is not None else ""
        yield Step(
            "do",
            f"Go on from the checkpoint{at}: {resume.how}",
            f"it is the newest one that is complete across ranks{lost}",
            "reversible",
            evidence=cited,
        )
    else:
        named = result.get("progress", {}).get("last_checkpoint")
        known = f"the log names {named}" if named else "the log names none"
        folder = str(named or "").rpartition("/")[0]
        yield Step(
            "do",
            f"See which checkpoint is complete: triage recover checkpoints {shlex.quote(folder) if folder else 'DIR'}",
            f"{known}, and one that was cut by the failure does not load",
            evidence=cited,
            first=True,
        )


def wanted(result: Mapping[str, Any], cited: tuple[str, ...]) -> Iterator[Step]:
    """A job that somebody ended on purpose is not put back behind his back."""
    if result.get("action") == "none" and result.get("outcome") == "interrupted":
        yield Step(
            "do",
            "Ask whoever ended the job whether it is to run again",
            "it was ended from outside and nothing failed, so perhaps nobody wants it back",
            evidence=cited,
            first=True,
        )


def again(
    scheduler: str,
    job: str,
    without: Sequence[str],
    script: str,
    cited: tuple[str, ...],
    changed: bool = False,
    submitted: Sequence[str] = (),
) -> Iterator[Step]:
    """By its script where that is given; else Slurm is told to queue the job again under its id.

    changed: its settings are to be, by hand; submitted: what a plan of this incident submitted before, as the scheduler called it.
    """
    named = f" without {', '.join(without)}" if without else ""
    why = "the other nodes are not accused" if without else "no node is accused"
    asked = ",".join(dict.fromkeys([*([job] if job else []), *submitted]))
    runs = ("squeue", "-h", "-j", asked, "-t", _LIVE, "-o", "%i is %T") if scheduler == "slurm" and asked else ()
    if submitted and scheduler != "slurm":
        yield Step(
            "do",
            f"See what became of {', '.join(submitted)}, which was submitted for this incident before",
            "two jobs that run at once write into one folder of checkpoints",
            evidence=cited,
            first=True,
        )
    if changed:
        yield Step("do", f"Submit the job again with these settings{named}", why, "reversible", evidence=cited)
    elif script and scheduler in _SUBMIT:
        start = (_SUBMIT[scheduler], *(["batch"] if scheduler == "flux" else []))
        argv = (*start, *shlex.split(excluding(scheduler, without)), script)
        undo = f"{_CANCEL[scheduler]} the id that it prints"
        yield Step("resubmit", f"Submit the job again{named}", why, of_command(argv), argv, undo, cited, unless=runs)
    elif scheduler == "slurm" and job and "." not in job:
        hold = (
            ("scontrol", "requeuehold", job),
            f"Queue job {job} again, held",
            "a held job can be changed before it starts",
        )
        free = (("scontrol", "release", job), "Let it start", why)
        less = (
            ("scontrol", "update", f"JobId={job}", f"ExcNodeList={host_list(without)}"),
            f"Keep it off {', '.join(without)}",
            "they are accused",
        )
        for argv, what, because in (hold, *([less] if without else []), free):
            guard = runs if argv[1] == "requeuehold" else ()  # which would end a job that runs again already
            yield Step("resubmit", what, because, of_command(argv), argv, f"scancel {job}", cited, unless=guard)
    else:
        option = excluding(scheduler, without)
        how = (
            f" ({option})"
            if option
            else "; the cordon keeps it off them"
            if without and scheduler == "kubernetes"
            else ""
        )
        yield Step("do", f"Submit the job again{named}{how}", why, "reversible", evidence=cited)


def notes(scheduler: str, script: str, without: bool) -> Iterator[str]:
    if scheduler == "slurm" and not script:
        yield (
            "A job is queued again under its own id only if it was submitted with --requeue (JobRequeue=1) and Slurm still knows it (MinJobAge,"
            " 300 s after its end by default); its script runs from the top with SLURM_RESTART_COUNT set, and its output file is overwritten unless"
            " --open-mode=append was given. With --script FILE the plan submits the script anew."
        )
    if scheduler == "kubernetes" and without:
        yield "The controller of the pods (PyTorchJob, JobSet, Job) starts them again within its own limit of restarts."
