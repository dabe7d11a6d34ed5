"""The steps of a recovery plan."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

from triage.domain.labels import Risk

Kind = Literal["look", "stop", "node-test", "drain", "kill-switch", "cancel", "resubmit", "do"]


@dataclass(frozen=True, slots=True)
class Step:
    """argv: what is run, word by word, with no shell; () for what a person does. undo: how it is taken back, in words or as a command.

    kind: by which the settings allow it; evidence, incidents: ids of what it rests on. while_: a command that only reads; the
    step is left out once that prints nothing, for which `wait` seconds are given. unless: another that only reads; where it prints
    something, or fails for another reason than that it knows no such job, the step and all after it are not run. began: one more, that
    prints when the job began, in seconds since 1970; where that is after `known`, it is another run than the one that the plan is made for,
    and the step and all after it are not run. first: a person's to do before anything after it is changed.
    """

    kind: Kind
    what: str
    why: str
    risk: Risk = "read-only"
    argv: tuple[str, ...] = ()
    undo: str = ""
    evidence: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()
    while_: tuple[str, ...] = ()
    wait: int = 0
    unless: tuple[str, ...] = ()
    began: tuple[str, ...] = ()
    known: float = 0.0
    first: bool = False

    @property
    def command(self) -> str:
        return shlex.join(self.argv)


@dataclass(frozen=True, slots=True)
class Plan:
    """verdict: what is to become of the job, in a sentence; notes: what the reader should know besides."""

    verdict: str
    restart: bool
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
