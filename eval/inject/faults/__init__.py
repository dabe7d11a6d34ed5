"""The faults, by kind; importing this package registers them all."""

from faults import (
    batch,
    data,
    distributed,
    exceptions,
    healthy,
    kills,
    launch,
    memory,
    neighbours,
    network,
    numerics,
    recovered,
    refused,
    restarted,
    storage,
)

__all__ = [
    "batch",
    "data",
    "distributed",
    "exceptions",
    "healthy",
    "kills",
    "launch",
    "memory",
    "neighbours",
    "network",
    "numerics",
    "recovered",
    "refused",
    "restarted",
    "storage",
]
