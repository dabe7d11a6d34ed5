"""What an interrupted run still lacks, and the command that goes on with it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from triage.text import how_many

_NAMED = 5


def missing(run: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> str:
    """ "11 of 161 cases have no record (c001, ...)"; "" of a whole run.

    run: run.json, whose cases and repeats are what was to be done. A record of a case that changed since is none.
    """
    there = {(r["case"], r["sha256"], r["repeat"]) for r in records}
    tries = range(int(run.get("repeats") or 1))
    planned = run.get("cases") or ()
    lacking = [c["id"] for c in planned if any((c["id"], c["sha256"], at) not in there for at in tries)]
    if not lacking:
        return ""
    names = ", ".join([*lacking[:_NAMED], *(["..."] if len(lacking) > _NAMED else [])])
    less = "no record" if len(tries) == 1 else f"fewer than {len(tries)} records"
    return (
        f"{len(lacking)} of {how_many(len(planned), 'case')} {'has' if len(lacking) == 1 else 'have'} {less} ({names})"
    )


def go_on(command: str | Sequence[str], path: Path) -> str:
    """The command that began a run, with the run folder in it. command: as run.json tells it, or its words."""
    words = shlex.split(command) if isinstance(command, str) else list(command)
    if not any(word == "--out" or word.startswith("--out=") for word in words):
        words += ["--out", str(path)]
    return shlex.join(words)
