"""The values that stages hand to each other. Frozen, no I/O, no ids of storage.

Line numbers are 1-based and count `\\n` only, in the file as the user has it (decompressed).
Times are timezone-aware; a stamp that names no zone is taken as UTC, and kernel stamps since boot have no time.
"""

from triage.domain.diagnosis import (
    ClockNote,
    Compression,
    Diagnosis,
    Evidence,
    Folded,
    History,
    Hypothesis,
    Moment,
    PastFailure,
    Progress,
    Recurrence,
    Remedy,
    Similar,
    Suspects,
    Timeline,
)
from triage.domain.knowledge import Advice, Cascade, FilterRule, KnownIncident, Signature, Source
from triage.domain.labels import FileKind, Outcome, Risk, Role, Stage, Status
from triage.domain.lines import JobLog, LogFile, LogLine, RawLine, Run, ScannedFile, ScannedRun, Template
from triage.domain.rules import JobPrint, LearnedRule, PromptUsed, RuleCheck, RuleOrigin, RuleSource, RuleState
from triage.domain.stream import LeftOut, StreamEvent, StreamLine, Turn, Turned

__all__ = [
    "Advice",
    "Cascade",
    "ClockNote",
    "Compression",
    "Diagnosis",
    "Evidence",
    "FileKind",
    "FilterRule",
    "Folded",
    "History",
    "Hypothesis",
    "JobLog",
    "JobPrint",
    "KnownIncident",
    "LearnedRule",
    "LeftOut",
    "LogFile",
    "LogLine",
    "Moment",
    "Outcome",
    "PastFailure",
    "Progress",
    "PromptUsed",
    "RawLine",
    "Recurrence",
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
    "Timeline",
    "Turn",
    "Turned",
]
