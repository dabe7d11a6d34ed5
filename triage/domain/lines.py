"""Lines of logs: as the scan keeps them, and as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath

from triage.domain.filing import InputFile
from triage.domain.labels import FileKind, Outcome
from triage.domain.rules import JobPrint, LearnedRule


@dataclass(frozen=True, slots=True)
class RawLine:
    """A line as the scan kept it: bytes without the newline; a line of megabytes is cut in its middle."""

    number: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Template:
    """All lines of one run that differ only in digits and hex letters.

    first, last: the occurrences kept word for word, in order, disjoint; count: all occurrences.
    rule: id of the filter rule that takes these lines as routine, or None.
    hot: a signature may match lines of this template, so nothing of it may be left out of evidence.
    ranks: the ranks whose prefix these lines carried.
    """

    id: int
    count: int
    first: tuple[RawLine, ...]
    last: tuple[RawLine, ...]
    rule: str | None
    hot: bool
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ScannedRun:
    """One run (attempt, appended job) inside a file, as the scan saw it."""

    first_line: int
    last_line: int
    templates: tuple[Template, ...]
    edges: tuple[RawLine, ...]  # head and tail of the run word for word, whatever rule takes them
    bytes_in: int
    started_by: str = ""  # the text that opened it, "" for the first run of a file


@dataclass(frozen=True, slots=True)
class ScannedFile:
    name: str
    bytes_in: int
    lines_in: int
    runs: tuple[ScannedRun, ...]
    problems: tuple[str, ...] = ()  # e.g. "compressed stream ends early after line 120"


@dataclass(frozen=True, slots=True)
class LogLine:
    """One kept line, decoded, colour codes and control characters gone, secrets replaced, progress bars at their last state.

    repeats: how many lines of the same template this one stands for (1: itself alone); ranks: whose.
    rule: the filter rule that takes it as routine (evidence may still use it, the compressed log leaves it out).
    """

    file: str
    number: int
    text: str
    time: datetime | None = None
    rank: int | None = None
    local_rank: int | None = None
    node: str | None = None
    gpu: str | None = None
    level: str | None = None  # debug|info|warning|error|fatal
    program: str | None = None  # python|slurm|kernel|nccl|torch|...
    template: int = -1
    repeats: int = 1
    ranks: tuple[int, ...] = ()
    rule: str | None = None
    hot: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a file that holds several; outcome as far as its end tells."""

    file: str
    first_line: int
    last_line: int
    outcome: Outcome
    ended_by: str = ""  # the line that says so
    ended_line: int | None = None


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a job: the kept lines of its last run, in order of line number.

    earlier: of the runs before it, the lines that tell how each ended.
    """

    name: str
    kind: FileKind
    lines: tuple[LogLine, ...]
    bytes_in: int
    lines_in: int
    first_line: int = 1
    last_line: int = 0
    rank: int | None = None
    node: str | None = None
    runs: tuple[Run, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)  # rule id -> lines, last run only
    problems: tuple[str, ...] = ()
    earlier: tuple[LogLine, ...] = ()

    @property
    def is_manifest(self) -> bool:
        """Is it what `triage hang collect` writes of its own work?"""
        return self.kind == "processes" and PurePosixPath(self.name).name == "manifest.json"


@dataclass(frozen=True, slots=True)
class JobLog:
    """Everything that is known of one job; missing: what could not be read, in words.

    kind: what the job runs, None when nobody asked; learned: the learned rules in force, active and shadow; notes: what
    besides reading could not be done; inputs: which files they were, where it is to be recorded.
    job_ids: where the job was asked for by its id, all that the scheduler knows it by, the one that people write first;
    job_nodes: then too, those that it ran on.
    """

    files: tuple[LogFile, ...]
    missing: tuple[str, ...] = ()
    kind: JobPrint | None = None
    learned: tuple[LearnedRule, ...] = ()
    notes: tuple[str, ...] = ()
    inputs: tuple[InputFile, ...] = ()
    job_ids: tuple[str, ...] = ()
    job_nodes: tuple[str, ...] = ()
