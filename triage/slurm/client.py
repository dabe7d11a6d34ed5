"""Asks Slurm for a job: its accounting (sacct), its controller (scontrol), its nodes (sinfo). Nothing is ever changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from triage.domain import SlurmJob, SlurmNode
from triage.slurm import accounting, command, controller
from triage.slurm.command import Answer, Run
from triage.slurm.ids import JobId
from triage.text import host_list

_FORGOTTEN = ("Invalid job id", "does not exist", "not found")
_NO_ACCOUNTING = ("accounting storage is disabled", "Slurm accounting is disabled")
_SOONEST = "1970-01-01"  # without it, sacct leaves out jobs that ended before today
_NODES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Found:
    """The jobs of one id: all tasks of an array, all components of a heterogeneous job.

    missing: what Slurm was not able to say, in words; accounted: by the accounting, else by the controller alone;
    known: one of them answered, so a job that is not here does not exist, or is forgotten.
    """

    jobs: tuple[SlurmJob, ...] = ()
    missing: tuple[str, ...] = ()
    accounted: bool = False
    known: bool = True


class Slurm:
    """Slurm's own commands, each with a time limit. run: how a command is run; it gets its words one by one."""

    def __init__(self, run: Run = command.run) -> None:
        self._run = run

    def jobs(self, asked: JobId) -> Found:
        """What Slurm knows of the job. Never fails: what it cannot say stands in `missing`."""
        notes: list[str] = []
        by_accounting = self._accounting(asked, notes)
        by_controller = self._controller(asked, notes)
        merged = _merged(by_accounting or (), by_controller or ())
        wanted = tuple(job for job in merged if asked.names(job.array_task))
        known = by_accounting is not None or by_controller is not None
        return Found(wanted, tuple(notes), bool(by_accounting), known)

    def nodes(self, names: Sequence[str]) -> tuple[tuple[SlurmNode, ...], tuple[str, ...]]:
        """The nodes as they are now, and in words what could not be asked."""
        found: list[SlurmNode] = []
        for at in range(0, len(names), _NODES_AT_ONCE):
            asked = host_list(names[at : at + _NODES_AT_ONCE])
            answer = self._run(["sinfo", "-a", "-N", "-h", "-n", asked, "-o", controller.NODE_FORMAT])
            if answer.problem:
                return tuple(found), (f"the state of the nodes was not asked: {answer.problem}",)
            found += controller.nodes(answer.text)
        return tuple(found), ()

    def script(self, asked: JobId) -> str:
        """The batch script where the accounting keeps it (AccountingStoreFlags=job_script), else ""."""
        answer = self._run(["sacct", "-j", asked.asked, "-S", _SOONEST, "--batch-script"])
        _, mark, script = answer.text.partition("#!")
        return mark + script if mark and not answer.problem else ""

    def _accounting(self, asked: JobId, notes: list[str]) -> tuple[SlurmJob, ...] | None:
        """None where it does not answer."""
        known = self._run(["sacct", "--helpformat"])
        if known.problem:
            notes.append(_unaccounted(known))
            return None
        has = set(known.text.split())
        names = ",".join(name for name in accounting.WANTED if name in has)
        answer = self._run(
            [
                "sacct",
                "-j",
                asked.asked,
                "-S",
                _SOONEST,
                "-D",
                "-P",
                "--noconvert",
                f"--delimiter={accounting.DELIMITER}",
                "-o",
                names,
            ]
        )
        if answer.problem:
            notes.append(_unaccounted(answer))
            return None
        if not accounting.is_table(answer.text):
            notes.append("the answer of sacct cannot be read")
            return None
        return accounting.jobs(answer.text)

    def _controller(self, asked: JobId, notes: list[str]) -> tuple[SlurmJob, ...] | None:
        answer = self._run(["scontrol", "-d", "show", "job", asked.asked])
        if answer.refused and any(words in answer.problem for words in _FORGOTTEN):
            return ()
        if answer.problem:
            notes.append(f"the controller was not asked: {answer.problem}")
            return None
        found = controller.jobs(answer.text)
        if not found:  # a job that it does not know it refuses
            notes.append("the answer of scontrol cannot be read")
            return None
        return found


def _unaccounted(answer: Answer) -> str:
    off = any(words in answer.problem + answer.text for words in _NO_ACCOUNTING)
    return f"the accounting was not asked: {'it is off on this cluster' if off else answer.problem}"


def _merged(accounted: Iterable[SlurmJob], live: Iterable[SlurmJob]) -> tuple[SlurmJob, ...]:
    """By id. The accounting has steps, memory and who cancelled; the controller where the output goes, and it knows first."""
    jobs = {job.id: job for job in accounted}
    for job in live:
        jobs[job.id] = _both(jobs[job.id], job) if job.id in jobs else job
    return tuple(sorted(jobs.values(), key=_order))


def _both(accounted: SlurmJob, live: SlurmJob) -> SlurmJob:
    late = not accounted.ended and live.state != accounted.state  # the accounting hears of an end some seconds later
    of_end = ("state", "exit_code", "signal", "end", "elapsed", "nodes", "node_list", "start") if late else ()
    told = {
        name: getattr(live, name)
        for name in ("work_dir", "stdout", "stderr", "derived_exit_code", "derived_signal", "failed_node", "tres", "req_mem",
                     "account", "qos", "user", "reason", "command", "time_limit", "nodes", "node_list")
        if getattr(live, name) and (not getattr(accounted, name) or name in ("stdout", "stderr", "reason"))
    }  # fmt: skip
    told |= {name: getattr(live, name) for name in of_end}
    return replace(accounted, **told, restarts=max(accounted.restarts, live.restarts), gpus=accounted.gpus or live.gpus)


def _order(job: SlurmJob) -> tuple[int, int, int]:
    number = (job.array_job or job.het_job or job.id).partition("_")[0]
    first = job.array_task.replace("-", ",").partition(",")[0]
    task = int(first) if first.isdecimal() else -1
    return int(number) if number.isdecimal() else 0, task, job.het_offset or 0
