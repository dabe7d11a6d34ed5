"""The class of a cause from the most specific evidence; the signature's own where nothing says more. Pure."""

from __future__ import annotations

import re

from triage.diagnose.candidates import Candidate
from triage.diagnose.facts import Facts, own_frame
from triage.evidence.known import known_nodes
from triage.evidence.tracebacks import Frame

_LOOK_UPS = frozenset({"key-error", "index-error"})
_LITERAL_INDEX = re.compile(r"\[-?\d{1,4}\]")
_KEY = re.compile(r"KeyError: (['\"])(.{1,80})\1\s*$")
# What signatures say that only know the kind of exception.
_GENERAL = frozenset({"py.other-exception", "python.uncaught", "py.value-error"})
_DATA_CODE = re.compile(
    r"(?:^|/)\w{0,30}(?:data|dataset|datasets|dataloader|data_?loader|collat\w{1,4}|tokeniz\w{1,4}|preprocess\w{0,4})\w{0,20}\.py$"
)


def cause_class(facts: Facts, root: Candidate) -> str:
    """Of the taxonomy's classes of root causes."""
    usual = root.signature.root_cause_class
    frame = own_frame(facts, root.first)
    if frame is not None and root.failure_type in _LOOK_UPS:
        return "software-bug" if _asks_for_a_constant(root, frame) else usual
    if frame is not None and root.signature.id in _GENERAL and _DATA_CODE.search(frame.file):
        return "data-error"
    if common_to_all(facts, root):
        return "config-error"
    if root.failure_type == "nccl-timeout" and facts.collectives.lagging and usual == "unknown":
        return "software-bug"  # a rank made fewer calls than the others, and nothing of the machines failed
    return usual


def common_to_all(facts: Facts, root: Candidate) -> bool:
    """Does every node show a fault of the network before any work was done? Then it is what all have in common, no cable."""
    if root.failure_type != "network-error" or any(facts.steps.values()):
        return False
    nodes = {n for f in root.findings if (n := f.groups.get("node") or f.line.node)}
    return len(nodes) > 1 and nodes >= known_nodes(facts.log, facts.nodes_of_ranks)


def _asks_for_a_constant(root: Candidate, frame: Frame) -> bool:
    """`stats["loss"]`, `groups[1]`: what the program's own text asks for, it should have put there; a variable comes from data."""
    if root.failure_type == "index-error":
        return bool(_LITERAL_INDEX.search(frame.source))
    key = _KEY.search(root.first.line.text)
    return key is not None and (f"'{key[2]}'" in frame.source or f'"{key[2]}"' in frame.source)
