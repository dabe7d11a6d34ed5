"""The values that stages hand to each other. Frozen, no I/O, no ids of storage.

Line numbers are 1-based and count `\\n` only, in the file as the user has it (decompressed).
Times are timezone-aware; a stamp that names no zone is taken as UTC, and kernel stamps since boot have no time.
"""

from triage.domain.diagnosis import (
    Compression,
    Diagnosis,
    Evidence,
    Folded,
    Hypothesis,
    Progress,
    Remedy,
    Similar,
    Suspects,
)
from triage.domain.knowledge import Advice, Cascade, FilterRule, KnownIncident, Signature, Source
from triage.domain.labels import FileKind, Outcome, Risk, Role, Stage, Status
from triage.domain.lines import JobLog, LogFile, LogLine, RawLine, Run, ScannedFile, ScannedRun, Template
from triage.domain.rules import JobPrint, LearnedRule, PromptUsed, RuleCheck, RuleOrigin, RuleSource, RuleState
from triage.domain.stream import LeftOut, StreamEvent, StreamLine, Turn, Turned

__all__ = [
    "Advice",
    "Cascade",
    "Compression",
    "Diagnosis",
    "Evidence",
    "FileKind",
    "FilterRule",
    "Folded",
    "Hypothesis",
    "JobLog",
    "JobPrint",
    "KnownIncident",
    "LearnedRule",
    "LeftOut",
    "LogFile",
    "LogLine",
    "Outcome",
    "Progress",
    "PromptUsed",
    "RawLine",
    "Remedy",
    "Risk",
    "Role",
    "RuleCheck",
    "RuleOrigin",
    "RuleSource",
    "RuleState",
    "Run",
    "ScannedFile",
    "ScannedRun",
    "Signature",
    "Similar",
    "Source",
    "Stage",
    "Status",
    "StreamEvent",
    "StreamLine",
    "Suspects",
    "Template",
    "Turn",
    "Turned",
]
