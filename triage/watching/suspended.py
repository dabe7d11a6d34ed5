"""What is said of a job that is suspended: what lets it go on, and who waits meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.probing.values import Process
from triage.watching.members import Who, several
from triage.watching.words import span

_NAMED = 16  # processes of a node


def resume(stopped: Sequence[Process], frozen: Sequence[Process]) -> str:
    """What to do. Nobody lets go on by a signal what a debugger or a freezer holds. "": nothing is stopped or frozen."""
    by_signal = [process for process in stopped if process.state == "T"]
    held = [process for process in stopped if process.state == "t"]
    if len(frozen) > len(by_signal):
        return "see who froze it (scheduler, container runtime, a person); it goes on once its control group is thawed"
    if by_signal:
        return f"see who stopped it (scheduler, a person); {_each_node('kill -CONT', by_signal)} goes on"
    if held:
        first = held[0]
        return f"see whose debugger holds it (on {first.node}: grep TracerPid /proc/{first.pid}/status); it goes on once that detaches"
    return ""


def waiting(others: Sequence[Who], quiet: float) -> tuple[str, ...]:
    """others: those that are not suspended; quiet: seconds without progress."""
    if not others:
        return ()
    return (f"{several(others)} wait{'' if len(others) > 1 else 's'} for it: no progress for {span(quiet)}",)


def _each_node(command: str, processes: Iterable[Process]) -> str:
    by_node: dict[str, list[int]] = {}
    for process in processes:
        by_node.setdefault(process.node, []).append(process.pid)
    return ", ".join(f"on {node}: {command} {_listed(sorted(pids))}" for node, pids in sorted(by_node.items()))


def _listed(pids: Sequence[int]) -> str:
    more = f" and {len(pids) - _NAMED} more in state T" if len(pids) > _NAMED else ""
    return " ".join(map(str, pids[:_NAMED])) + more
