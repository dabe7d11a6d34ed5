"""What was learned at a site: filter rules with the kind of job that they belong to, and failure signatures."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from triage.domain.knowledge import FilterRule, Signature

RuleState = Literal["candidate", "shadow", "active", "retired"]
RuleSource = Literal["model", "judge", "mined", "user"]

SIGNATURE_PREFIX = "learned-signature."  # of the ids of learned signatures


@dataclass(frozen=True, slots=True)
class JobPrint:
    """What kind of job a log comes from: the same for a resubmission; never of host, rank, date or number.

    features: such as "framework:megatron", "script:pretrain_gpt.py", "image:pytorch", "config:ds_config.json".
    """

    key: str  # a short hash of the features
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptUsed:
    name: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class RuleOrigin:
    """Where a rule comes from. lines: those it was written for, secrets replaced; votes: how many of `asked` answers agreed."""

    by: RuleSource
    model: str = ""
    prompts: tuple[PromptUsed, ...] = ()
    sample: str = ""  # sha256 of what was shown to the model
    lines: tuple[str, ...] = ()
    votes: int = 0
    asked: int = 0


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """What verification says of a candidate. check: the test that it failed, "" when it passed them all."""

    accepted: bool
    check: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LearnedRule:
    """A filter rule and its life. shadow: counted, not applied; reason: why it is in this state."""

    rule: FilterRule
    job: str  # key of the JobPrint it belongs to
    state: RuleState
    origin: RuleOrigin
    reason: str = ""
    hits: int = 0  # lines it took, in all runs
    runs: int = 0
    created: datetime | None = None
    last_used: datetime | None = None
    approved_by: str = ""

    @property
    def id(self) -> str:
        return self.rule.id


@dataclass(frozen=True, slots=True)
class LearnedSignature:
    """A signature that a confirmed or corrected incident gave, and its life: candidate, active or retired.

    incident: the one it was learned from, None when that was forgotten; who: said what the incident was; confirmed,
    contradicted: outcomes of incidents that it matches; expires: when a candidate is given up, None of others.
    """

    signature: Signature
    state: RuleState
    origin: RuleOrigin
    incident: int | None = None
    who: str = ""
    reason: str = ""
    confirmed: int = 0
    contradicted: int = 0
    created: datetime | None = None
    expires: datetime | None = None
    approved_by: str = ""

    @property
    def id(self) -> str:
        return self.signature.id

    @property
    def pattern(self) -> str:
        return self.signature.patterns[0]
