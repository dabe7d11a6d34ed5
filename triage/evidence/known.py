"""Which nodes and ranks a job's log names at all. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from triage.domain import JobLog

_DIGITS = re.compile(r"\d+")
_SPOKEN_BY = re.compile(r"^([A-Za-z][\w.-]{0,80}\d): ")
_NONE: Mapping[int, str] = MappingProxyType({})


def known_ranks(log: JobLog) -> set[int]:
    seen = {line.rank for f in log.files for line in f.lines if line.rank is not None}
    seen |= {r for f in log.files for line in f.lines for r in line.ranks}
    return seen | {f.rank for f in log.files if f.rank is not None}


def known_nodes(log: JobLog, of_ranks: Mapping[int, str] = _NONE) -> set[str]:
    """of_ranks: where ranks ran, as far as it was found out."""
    seen = {line.node for f in log.files for line in f.lines if line.node}
    seen |= {f.node for f in log.files if f.node} | set(of_ranks.values())
    alike = {_DIGITS.sub("#", node) for node in seen}
    spoken = {found[1] for f in log.files for line in f.lines if (found := _SPOKEN_BY.match(line.text))}
    return seen | {name for name in spoken if _DIGITS.sub("#", name) in alike}  # `n117: ...`, as pdsh labels lines
