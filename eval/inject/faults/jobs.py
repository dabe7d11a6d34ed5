"""Job scripts and a Slurm for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import cluster

HEAD = """#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --output=%x-%j.out
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node={tasks}
#SBATCH --cpus-per-task=1
#SBATCH --mem={mem}
#SBATCH --time={limit}
{more}
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
echo "START TIME: $(date)"
echo "job $SLURM_JOB_ID on $SLURM_JOB_NODELIST, $SLURM_NTASKS tasks"
"""


def script(
    name: str, body: str, nodes: int = 1, tasks: int = 2, mem: str = "6G", limit: str = "30", more: str = ""
) -> str:
    return (
        HEAD.format(name=name, nodes=nodes, tasks=tasks, mem=mem, limit=limit, more=more)
        + body
        + '\necho "END TIME: $(date)"\n'
    )


@contextlib.contextmanager
def slurm(names: list[str], first: int) -> Iterator[cluster.Slurm]:
    made = cluster.start(names, first=first)
    try:
        yield made
    finally:
        cluster.stop(made)
