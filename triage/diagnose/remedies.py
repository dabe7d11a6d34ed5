"""Steps to take, each with its reason, its risk and the lines it rests on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triage.diagnose.candidates import Candidate
from triage.domain import Advice, Evidence, Remedy, Status, Suspects

_RESTARTS = {
    "restart": ("Restart from the last complete checkpoint", "the failure is not the code's own; a restart can succeed"),
    "restart-excluding": ("Drain the suspect node for test and restart without it", "the machine named in the evidence is at fault"),
    "rollback-and-skip": ("Restart from an earlier healthy checkpoint and skip the data that followed", "going on from the last one repeats the divergence"),
    "kill-and-restart": ("Collect stacks, then kill the job and restart it", "a hung job does not end by itself"),
    "escalate": ("Hand over to the cluster or storage team before any restart", "a restart meets the same fault"),
}  # fmt: skip


def remediation(
    root: Candidate,
    evidence: Sequence[Evidence],
    advice: Advice,
    action: str,
    found: Suspects,
    status: Status,
    job: str = "",
) -> tuple[Remedy, ...]:
    """Confirm (read-only), act on the cause, then restart if the action says so."""
    cited = tuple(e.id for e in evidence if e.role == "root")[:2]
    names = {
        "{node}": found.nodes[0] if found.nodes else "NODE",
        "{job}": job or "JOBID",
        "{rank}": str(found.ranks[0]) if found.ranks else "RANK",
    }
    steps = []
    check = fill(root.signature.check or advice.confirm, names)
    if check and (status != "established" or root.signature.node_fault):
        why = "a read-only check that tells this cause from its rivals"
        if is_command(check):
            steps.append(Remedy("Confirm the cause", why, "read-only", check, cited))
        else:
            steps.append(Remedy(f"Confirm the cause: look at {check}", why, "read-only", "", cited))
    if root.signature.remedy:
        steps.append(Remedy(root.signature.remedy, root.signature.title, "reversible", evidence=cited))
    if action == "restart-excluding" and found.nodes:
        return (*steps, *_leave_out(root, found, cited))
    if action in _RESTARTS:
        step, why = _RESTARTS[action]
        steps.append(Remedy(step, why, "reversible", evidence=cited))
    return tuple(steps)


def _leave_out(root: Candidate, found: Suspects, cited: tuple[str, ...]) -> tuple[Remedy, ...]:
    nodes = ",".join(found.nodes)
    drain = f'scontrol update NodeName={nodes} State=DRAIN Reason="triage: {root.failure_type} ({root.signature.id})"'
    return (
        Remedy(f"Drain {nodes} for test", "the machine named in the evidence is at fault", "reversible", drain, cited),
        Remedy(
            "Restart from the last complete checkpoint without it",
            "the other nodes are not suspected",
            "reversible",
            f"sbatch --exclude={nodes} JOBSCRIPT",
            cited,
        ),
    )


def to_fetch(advice: Advice, names: dict[str, str]) -> tuple[Remedy, ...]:
    """What to do first when the log does not tell: fetch what would."""
    return tuple(
        Remedy(
            f"Fetch {fill(text, {'{node}': 'the node', '{rank}': 'the rank', **names})}",
            "this log does not show the cause",
            "read-only",
        )
        for text in advice.fetch
    )


# What `check` texts begin with when they are commands; the others are things to look at.
_PROGRAMS = frozenset(
    [
        "amd-smi",
        "coredumpctl",
        "dcgmi",
        "df",
        "dmesg",
        "du",
        "find",
        "free",
        "getfacl",
        "grep",
        "hccn_tool",
        "head",
        "ibstat",
        "ibdiagnet",
        "iptables",
        "ip",
        "journalctl",
        "kubectl",
        "ldd",
        "lfs",
        "ls",
        "lsof",
        "lspci",
        "lscpu",
        "mlxlink",
        "mmlsmount",
        "mount",
        "nc",
        "nfsstat",
        "npu-smi",
        "numactl",
        "nvidia-smi",
        "nvcc",
        "perfquery",
        "ping",
        "pip",
        "ps",
        "py-spy",
        "python",
        "python3",
        "ray",
        "rdma",
        "readelf",
        "rocm-smi",
        "sacct",
        "scontrol",
        "sinfo",
        "squeue",
        "ss",
        "stat",
        "strings",
        "tail",
        "torchrun",
        "ulimit",
        "uname",
        "wc",
        "which",
        "file",
        "curl",
        "git",
        "md5sum",
        "sha256sum",
        "nm",
    ]
)
_PROSE = re.compile(r"\b(?:of the|on the|in the|does it|is it|are the|whether|should|and the)\b|\(\w+ \w+ \w+")


def is_command(text: str) -> bool:
    """Can the text be typed into a shell as it is?"""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "X", text)
    return all(
        part.split()[0] in _PROGRAMS for part in re.split(r"[;|&]+", bare) if part.split()
    ) and not _PROSE.search(text)


def fill(text: str, names: dict[str, str]) -> str:
    for key, value in names.items():
        text = text.replace(key, value)
    return text
