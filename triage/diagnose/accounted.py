"""What the accounting adds to a cause: the node of a node's failure, who cancelled. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from triage.domain import JobLog
from triage.evidence.account import rows
from triage.evidence.match import Best

_OF_NODES = frozenset({"node-failure", "gpu-lost", "ecc-error"})
_BY = re.compile(r"CANCELLED by (\d{1,10})")
_NOBODY = frozenset({"", "None", "(null)", "None assigned", "Unknown", "N/A"})


def name_nodes(best: Best, log: JobLog) -> None:
    """FailedNode is the dead one; a NodeList of one node can be no other."""
    for file in log.files:
        for row in rows(file):
            key = (file.name, row.line.number)
            node = row.failed_node if row.failed_node not in _NOBODY else row.nodes
            if node in _NOBODY or any(c in node for c in "[,") or key not in best:
                continue
            if best[key].signature.failure_type in _OF_NODES and "node" not in best[key].groups:
                best[key] = replace(best[key], groups={**best[key].groups, "node": node})


def who_cancelled(failure_type: str, log: JobLog) -> list[str]:
    """Nobody but the accounting knows; what the job's own log says of it is that it does not."""
    if failure_type != "cancelled":
        return []
    said = [found[1] for file in log.files for row in rows(file) if (found := _BY.search(row.state))]
    if not said:
        return []
    return [
        f"By the accounting it was {'root (user id 0)' if int(said[-1]) == 0 else f'user id {said[-1]}'} who cancelled."
    ]
