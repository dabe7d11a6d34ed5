"""Whether a job is a server that nobody asks anything. Pure."""

from __future__ import annotations

from triage.probing.values import NodeView, Process, Sockets
from triage.watching.members import is_helper, is_wrapper, merely_waits
from triage.watching.values import Round

_PLACES = (
    "inet_csk_accept",
    "unix_accept",
    "__skb_wait",
    "ep_poll",
    "do_epoll_wait",
    "poll_schedule",
    "do_poll",
    "do_sys_poll",
    "do_select",
)
_CALLS = (
    "43",
    "288",
    "232",
    "281",
    "7",
    "271",
    "23",
    "270",
)  # accept, epoll_wait, poll and select of x86-64, and their kin


def waits_for_work(seen: Round) -> str:
    """In words, if all of it listens, nobody is connected, and no step was ever seen; "" else, and where that is not known.

    A rank may listen too, as the one that holds a store does; but it is connected, to itself at least.
    """
    log = seen.log
    if log is not None and (log.trained or log.steps):
        return ""
    ports: set[str] = set()
    for view in seen.nodes:
        if view.problem or view.sockets is None:
            return ""
        for process in view.processes:
            if process.state in "ZX" or is_wrapper(process) or is_helper(process) or _only_waits(process, view):
                continue
            told = view.sockets.get(process.pid, Sockets())
            if not told.listens or told.connected or not _accepts(process):
                return ""
            ports.update(told.listens)
    shown = ", ".join(sorted(ports)[:3])
    return f"it listens at {shown} and nobody is connected: it waits for work" if ports else ""


def _only_waits(process: Process, view: NodeView) -> bool:
    return merely_waits(process) and any(other.ppid == process.pid for other in view.processes)


def _accepts(process: Process) -> bool:
    return process.wchan.startswith(_PLACES) or (not process.wchan and process.call in _CALLS)
