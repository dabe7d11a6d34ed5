"""How a job that hangs is ended: the gentle ways first, what each needs, and what is left to who may not end it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from triage.recover.step import Step
from triage.risk import of_command

SAVING = 120  # seconds that a job is given to save and leave
LEAVING = 60  # that Slurm is given for the processes (KillWait is 30 s by default)

NOBODY = (
    "Slurm lets a job be ended by its owner, an operator, or a coordinator of its account (`sacctmgr show account WithCoordinator`);"
    " its own script may always end it. If none of them can be reached, the job holds its nodes until its time limit:"
    " ask the cluster's operators, and name the job and its idle GPU-hours.",
    "For the next run: set TORCH_NCCL_ASYNC_ERROR_HANDLING=1 and start with `srun --kill-on-bad-exit=1 --wait=60`, so that a dead rank ends"
    " the step; let the batch script itself look for a kill-switch file and call `scancel $SLURM_JOB_ID`, as a training loop that hangs"
    " looks for none; and name a second person as coordinator.",
)


def ending(
    scheduler: str, job: str, kill_switch: str, evidence: tuple[str, ...], known: float | None
) -> Iterator[Step]:
    """Steps in their order; kill_switch: the file that the training looks for, "" where none is known; known: when the job was found to
    hang, in seconds since 1970: a run that began later is not the one to end."""
    yield Step(
        "do",
        "Collect stacks of every rank, flight-recorder dumps and the state of the nodes, and let `triage hang DIR` read them",
        "once the job is ended nothing tells where it hung",
        evidence=evidence,
    )
    if kill_switch:
        touch = ("touch", "--", kill_switch)
        why = "a job whose loop still turns saves and leaves by itself; one that hangs in a collective will not see it"
        yield Step(
            "kill-switch",
            "Create the kill-switch file",
            why,
            of_command(touch),
            touch,
            f"rm -- {shlex.quote(kill_switch)}",
            evidence,
        )
    if scheduler != "slurm" or not job:
        words = {
            "kubernetes": "`kubectl delete pod` of its pods",
            "pbs": f"`qdel {job}`",
            "lsf": f"`bkill {job}`",
            "sge": f"`qdel {job}`",
            "flux": f"`flux cancel {job}`",
        }
        yield Step(
            "do",
            f"End the job: {words.get(scheduler, 'in its scheduler, or its processes on each node')}",
            "a hung job does not end by itself",
            "destructive",
            evidence=evidence,
        )
        return
    still = ("squeue", "-h", "-j", job, "-t", "RUNNING,COMPLETING", "-o", "%T")
    # A job that was queued again, by us, by a person or by its own trap for USR1, keeps its id.
    began = ("env", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "-j", job, "-t", "RUNNING,COMPLETING", "-o", "%S")
    ways: tuple[tuple[tuple[str, ...], str, str, int], ...] = (
        (
            ("scancel", "--batch", "--signal=USR1", job),
            "Ask the batch script to save and leave",
            "scripts with a trap for USR1 save first; others end at once",
            SAVING if kill_switch else 0,
        ),
        (("scancel", "--signal=TERM", job), "Tell the processes to end", "a handler for TERM can still save", SAVING),
        (("scancel", job), "Cancel the job", "Slurm sends TERM and, KillWait later, KILL", LEAVING),
        (
            ("scancel", "--full", "--signal=KILL", job),
            "Kill what is left, the batch script included",
            "processes that hang in a driver or on storage ignore TERM",
            LEAVING,
        ),
    )
    for argv, what, why, wait in ways:
        yield Step(
            "cancel", what, why, of_command(argv), argv, "none: submit the job again", evidence,
            while_=still, wait=wait, began=began if known is not None else (), known=known or 0.0,
        )  # fmt: skip
