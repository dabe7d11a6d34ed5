"""Names that give the answer away: a log called oom.log is diagnosed by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from triage import kb

_TELLING = frozenset(
    (
        "abort", "bad", "broken", "cancel", "cancelled", "corrupt", "crash", "crashed", "deadlock", "died", "diverged", "ecc", "evicted",
        "fail", "failed", "failure", "fault", "good", "hang", "healthy", "hung", "inf", "kill", "killed", "leak", "mismatch", "nan", "ok",
        "oom", "oomkilled", "outofmemory", "preempted", "preemption", "segfault", "segv", "sigkill", "sigsegv", "spike", "straggler",
        "stuck", "success", "timeout", "timelimit", "xid",
    )
)  # fmt: skip


def warnings(case_id: str, names: Iterable[str]) -> tuple[str, ...]:
    """One line for each name that says something of the answer."""
    found = [f"the id {case_id!r} says {word!r}" for word in _words(case_id)]
    found += [f"the input {name!r} says {word!r}" for name in names for word in _words(name)]
    return tuple(found)


def _words(name: str) -> list[str]:
    parts = [part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)]
    joined = "-".join(parts)
    # A type of one word ("hang") is among the telling words if it tells something; "unknown" does not.
    types = [kind for kind in kb.taxonomy().types if "-" in kind and f"-{kind}-" in f"-{joined}-"]
    return list(dict.fromkeys([*types, *(part for part in parts if part in _TELLING)]))
