"""Names of nodes: which may stand in a command, and how they are taken out of service and put back. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from triage.errors import UsageError
from triage.hostlist import expand
from triage.text import HOST, closing, host_list, printable

_LIST = re.compile(r"(?:[\w.,-]|\[[\d,-]+\])+", re.ASCII)


def is_name(text: str) -> bool:
    """No option, no path, no word of a shell."""
    return HOST.fullmatch(text) is not None


def named(text: str) -> tuple[str, ...]:
    """The nodes of `nid[001-003],login1`, also with blanks or line ends between, each once. Errors: UsageError for what is no list of nodes."""
    words = re.sub(r"\[[^\]]*\]", lambda spans: re.sub(r"\s", "", spans[0]), text).split()
    parts = [expand(word) if _LIST.fullmatch(word) else () for word in (word.strip(",") for word in words) if word]
    found = tuple(dict.fromkeys(node for part in parts for node in part))
    if not parts or not all(parts) or not all(map(is_name, found)):
        raise UsageError(
            f"{printable(text[:80])!r} is no list of nodes", "write names as Slurm does, such as gpu[001-004,007]"
        )
    return found


def draining(scheduler: str, nodes: Sequence[str], reason: str) -> tuple[tuple[str, ...], str]:
    """(the command, word by word, that keeps new jobs off the nodes; the one that takes it back); ((), "") where none is known.

    reason: one word, such as triage:ecc-error.
    """
    command = closing(scheduler, nodes, reason)
    return (tuple(shlex.split(command)), _opening(scheduler, nodes)) if command else ((), "")


def _opening(scheduler: str, nodes: Sequence[str]) -> str:
    apart, folded = shlex.join(nodes), shlex.quote(host_list(nodes))
    return {
        "slurm": f"scontrol update NodeName={folded} State=RESUME",
        "kubernetes": f"kubectl uncordon {apart}",
        "pbs": f"pbsnodes -r {apart}",
        "lsf": f"badmin hopen {apart}",
        "sge": "qmod -e " + " ".join(f"'*@{node}'" for node in nodes),
        "flux": f"flux resource undrain {folded}",
    }[scheduler]
