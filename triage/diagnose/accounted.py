"""The node that the accounting names beside a node's failure. Pure."""

from __future__ import annotations

from dataclasses import replace

from triage.domain import JobLog
from triage.evidence.account import rows
from triage.evidence.match import Finding

_OF_NODES = frozenset({"node-failure", "gpu-lost", "ecc-error"})
_NOBODY = frozenset({"", "None", "(null)", "None assigned", "Unknown", "N/A"})


def name_nodes(best: dict[tuple[str, int], Finding], log: JobLog) -> None:
    """FailedNode is the dead one; a NodeList of one node can be no other."""
    for file in log.files:
        for row in rows(file):
            key = (file.name, row.line.number)
            node = row.failed_node if row.failed_node not in _NOBODY else row.nodes
            if node in _NOBODY or any(c in node for c in "[,") or key not in best:
                continue
            if best[key].signature.failure_type in _OF_NODES and "node" not in best[key].groups:
                best[key] = replace(best[key], groups={**best[key].groups, "node": node})
