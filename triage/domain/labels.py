"""Closed lists of words that several values share; the labels themselves are kb/taxonomy.yaml."""

from typing import Literal

Outcome = Literal["failed", "hung", "interrupted", "healthy", "unknown"]
Role = Literal["root", "cascade", "context", "benign"]
Status = Literal["established", "supported", "hypothesis", "unknown"]
Stage = Literal["launch", "init", "train", "eval", "checkpoint", "teardown", "unknown"]
Risk = Literal["read-only", "reversible", "destructive"]
FileKind = Literal[
    "job",
    "slurm",
    "kernel",
    "sacct",
    "kubernetes",
    "fabric",
    "stacks",
    "processes",
    "flight-recorder",
    "binary",
    "empty",
]
