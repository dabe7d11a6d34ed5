"""What `triage watch` is asked to watch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from triage import reach
from triage.config import Settings
from triage.errors import InputError, UsageError
from triage.kube import names
from triage.probing.probe import LocalProbe, Whose
from triage.watching.loop import Target
from triage.watching.tails import Logs

if TYPE_CHECKING:
    from triage.probing.probe import Probe


@dataclass(frozen=True, slots=True)
class Asked:
    """What the options name. namespace, container: of the pod."""

    pid: int | None = None
    job: str | None = None
    pod: str | None = None
    namespace: str = ""
    container: str = ""
    logs: tuple[str, ...] = ()


def find(asked: Asked, settings: Settings) -> tuple[Target, tuple[str, ...]]:
    """The target, and the options by which `triage hang collect` finds it; () for logs alone.

    Errors: UsageError, InputError: there is nothing to watch.
    """
    named = [
        name for name, given in (("--pid", asked.pid), ("--job", asked.job), ("--pod", asked.pod)) if given is not None
    ]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} exclude each other", "give one of them; --logs goes with each")
    _check(asked.logs)
    if asked.pid is not None:
        return _process(asked.pid, asked.logs, settings), ("--pid", str(asked.pid))
    if asked.job is not None:
        return _slurm(asked.job, asked.logs, settings), ("--job", asked.job)
    if asked.pod is not None:
        pod = names.parse(asked.pod, asked.namespace, pod=True)
        asked = replace(asked, pod=pod.name, namespace=pod.namespace)
        space = ("--namespace", pod.namespace) if pod.namespace else ()
        inside = ("--container", asked.container) if asked.container else ()
        return _pod(asked, settings), ("--pod", pod.name, *space, *inside)
    if not asked.logs:
        raise UsageError("nothing to watch", "give --pid PID, --job ID, --pod NAME or --logs FILE")
    if not any(Path(name).exists() for name in asked.logs):
        raise InputError(f"{asked.logs[0]}: no such file", "give a log that is there, or --pid")
    more = f" and {len(asked.logs) - 2} more" if len(asked.logs) > 2 else ""
    return Target(", ".join(asked.logs[:2]) + more, None, Logs(asked.logs)), ()


def _check(logs: Sequence[str]) -> None:
    for name in logs:
        if name == "-" or (Path(name).exists() and not Path(name).is_file() and not Path(name).is_dir()):
            raise UsageError(f"{name} is no file", "for a pipe: job 2>&1 | tee job.log, and watch job.log")
        if Path(name).is_dir():
            raise UsageError(f"{name} is a folder", f"name its files: --logs {name.rstrip('/')}/rank_0.log --logs ...")


def _process(pid: int, logs: Sequence[str], settings: Settings) -> Target:
    if pid <= 0 or not Path(f"/proc/{pid}").exists():
        raise InputError(f"there is no process {pid} on this machine", "see `ps`, or give --logs")
    probe = LocalProbe(reach.local(), Whose((pid,), url=settings.gpu_metrics_url))
    return Target(f"pid {pid}", probe, Logs(logs), outputs=not logs)


def _slurm(job: str, logs: Sequence[str], settings: Settings) -> Target:
    from triage.cli.watch_slurm import SlurmJob

    found = SlurmJob(job, settings.gpu_metrics_url)
    found.scheduled()
    return Target(f"job {job}", found, Logs(logs or found.logs()), found.scheduled, job=job)


def _pod(asked: Asked, settings: Settings) -> Target:
    from triage.cli.watch_pod import Pod

    assert asked.pod is not None
    pod = Pod(asked.pod, asked.namespace, asked.container, settings.gpu_metrics_url)
    pod.scheduled()
    probe: Probe = pod
    return Target(f"pod {asked.pod}", probe, Logs(asked.logs), pod.scheduled)
