"""What `triage watch` is asked to watch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from triage import reach
from triage.config import Settings
from triage.errors import InputError, UsageError
from triage.probing.probe import LocalProbe, Whose
from triage.watching.loop import Target
from triage.watching.tails import Logs


def find(pids: Sequence[int], logs: Sequence[str], settings: Settings) -> Target:
    """Errors: UsageError, InputError: there is nothing to watch."""
    for name in logs:
        if Path(name).is_dir():
            raise UsageError(f"{name} is a folder", f"name the files: --logs {name.rstrip('/')}/rank_0.log --logs ...")
    if pids:
        return _processes(pids, logs, settings)
    if logs:
        if not any(Path(name).exists() for name in logs):
            raise InputError(f"{logs[0]}: no such file", "give a log that is there, or --pid")
        return Target(", ".join(map(str, logs[:2])) + (", ..." if len(logs) > 2 else ""), None, Logs(logs))
    raise UsageError("nothing to watch", "give --pid PID, --job ID, --pod NAME or --logs FILE")


def _processes(pids: Sequence[int], logs: Sequence[str], settings: Settings) -> Target:
    gone = [pid for pid in pids if not Path(f"/proc/{pid}").exists()]
    if gone:
        raise InputError(f"there is no process {gone[0]} on this machine", "see `ps`, or give --logs")
    name = f"pid {', '.join(map(str, pids))}"
    probe = LocalProbe(reach.local(), Whose(tuple(pids), url=settings.gpu_metrics_url))
    return Target(name, probe, Logs(logs), outputs=not logs)
