"""Which rank a process of a given number is, by lines that carry both. Pure."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from triage.domain import JobLog, LogFile
from triage.evidence.processes import processes, short
from triage.evidence.whose import pid_in_name, rank_in

_BOTH = re.compile(
    r"\b[Rr]ank[ =:\]]{1,3}(?P<a>\d{1,6})\b.{0,40}?\bpid[ =:]{1,2}(?P<b>\d{2,9})\b|\bpid[ =:]{1,2}(?P<c>\d{2,9})\b.{0,40}?\b[Rr]ank[ =:]{1,2}(?P<d>\d{1,6})\b",
    re.IGNORECASE,
)
# The nearest to the program first: mpirun and torchrun may be tasks of srun, and their ranks carry its number too.
_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK_ID", "SLURM_PROCID")
_VARIABLE = re.compile(rf"^({'|'.join(_VARIABLES)})=(\d{{1,6}})\s*$")
_LOOKED_AT = 20_000  # lines of each file


def ranks_of_pids(log: JobLog) -> dict[tuple[str, int], int]:
    """By node without its domain ("" where none is named) and process number."""
    found: dict[tuple[str, int], int] = {}
    for (node, pid), rank in processes(log, ()).ranks.items():
        if rank is not None:
            found[node, pid] = rank
    for file in log.files:
        if file.kind == "processes" and (told := _of_environment(file)):
            found[short(file.node) if file.node else "", told[0]] = told[1]
        elif file.kind in ("job", "processes"):
            for line in file.lines[:_LOOKED_AT]:
                if "pid" in line.text.lower() and (both := _BOTH.search(line.text[:400])):
                    number, said = both["b"] or both["c"], both["a"] or both["d"]
                    where = line.node or file.node
                    found.setdefault((short(where) if where else "", int(number)), int(said))
    return found


def _of_environment(file: LogFile) -> tuple[int, int] | None:
    """(process, rank) of a file that holds the variables of one process."""
    pid = pid_in_name(file.name)
    if pid is None or not PurePosixPath(file.name).name.startswith("env"):
        return None
    said = {found[1]: int(found[2]) for line in file.lines if (found := _VARIABLE.match(line.text))}
    ranks = [said[name] for name in _VARIABLES if name in said] or [
        rank for line in file.lines if (rank := rank_in(line.text)) is not None
    ]
    return (pid, ranks[0]) if ranks else None
