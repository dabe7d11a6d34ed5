"""Is a full disk one node's own, or that of a user's quota or a file system that all nodes share? Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from triage.evidence.match import Finding

_QUOTA = "st.quota"
_TOP = re.compile(r"(?:^|[\s'\"=:(])/([\w.@+-]+)(?:/|['\"\s:]|$)")
_ON_NODE = re.compile(r"tmp|var|dev|run|opt|root|raid|ssd|local\w*|nvme\w*")


def everywhere(findings: Iterable[Finding]) -> bool:
    """Would the same write fail on every node? So says a quota, and a path that lies on no disk of the node's own."""
    found = tuple(findings)
    if any(f.signature.id == _QUOTA for f in found):
        return True
    tops = [top for f in found for top in _TOP.findall(f.groups.get("path", "") or f.line.text)]
    return bool(tops) and not any(map(_ON_NODE.fullmatch, tops))
