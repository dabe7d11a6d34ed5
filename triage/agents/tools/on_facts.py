"""Tools that look into what is known besides the log: facts that were collected, signatures and codes, incidents, runbooks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.agents.tools.kit import Found, Tool, spec
from triage.agents.tools.look_up import look_up
from triage.domain import Diagnosis, JobLog, LogFile, LogLine, Runbook, RunbookStep, Similar
from triage.evidence import account
from triage.evidence.match import Matcher
from triage.evidence.timeline import same_host
from triage.taxonomy import Taxonomy

MOST_LINES = 40
MOST_FILES = 40
_SYSTEM = ("slurm", "sacct", "kubernetes", "kernel", "fabric")
_WORD = re.compile(r"[a-z0-9]{3,}")

SPECS = (
    spec(
        "job_facts",
        "What was collected of the job, its scheduler and its nodes: files, accounting, lines of kernel and scheduler.",
        node=("string", "only lines of this node", False),
    ),
    spec(
        "look_up",
        "What a signature of the knowledge base, an NVIDIA Xid, an exit code or a whole log line means.",
        kind=("string", "signature, xid, exit-code or line", True),
        what=("string", "the id, the number or the line", True),
    ),
    spec("search_runbooks", "What to do for a kind of failure.", words=("string", "a failure type, or words", True)),
    spec(
        "search_incidents",
        "Past incidents of other jobs that are like these words, with what helped.",
        words=("string", "an error line, or words", True),
    ),
)

Incidents = Callable[[str], Sequence[Similar]]  # past incidents for words, the most alike first


@dataclass(frozen=True, slots=True)
class FactTools:
    """incidents: None where none can be searched."""

    log: JobLog
    rules: Diagnosis
    labels: Taxonomy
    matcher: Matcher
    runbooks: Mapping[str, Runbook]
    incidents: Incidents | None = None

    def all(self) -> tuple[Tool, ...]:
        """As in SPECS; past incidents only where some can be searched."""
        specs = SPECS if self.incidents is not None else SPECS[:-1]
        return tuple(Tool(known, getattr(self, known.name)) for known in specs)

    def job_facts(self, asked: Mapping[str, Any]) -> Found:
        node = asked.get("node")
        files = [f for f in self.log.files if node is None or same_host(f.node, node)]
        said = [f"job {self.rules.job or 'of unknown id'}, outcome by the rules {self.rules.outcome}"]
        said += [_file(f) for f in files[:MOST_FILES]]
        said += [f"and {len(files) - MOST_FILES} more files"] if len(files) > MOST_FILES else []
        said += [row for f in self.log.files for row in _accounted(f)]
        lines = [x for f in self.log.files if f.kind in _SYSTEM for x in f.lines if node is None or _of(x, f, node)]
        if node is not None and not lines:
            lines = [x for f in self.log.files for x in f.lines if same_host(x.node, node)]
        return Found("\n".join(said), lines[-MOST_LINES:], names=said)

    def look_up(self, asked: Mapping[str, Any]) -> Found:
        return Found(look_up(self.matcher, asked["kind"].strip().lower(), asked["what"].strip()))

    def search_incidents(self, asked: Mapping[str, Any]) -> Found:
        assert self.incidents is not None
        return Found(incidents_told(self.incidents(asked["words"])))

    def search_runbooks(self, asked: Mapping[str, Any]) -> Found:
        return Found(runbooks_for(asked["words"], self.runbooks, self.labels))


def incidents_told(found: Sequence[Similar]) -> str:
    said = (
        f"{s.incident} ({s.outcome}): {s.title}; why alike: {s.why}; what helped: {'; '.join(s.remediation[:3]) or 'not told'}"
        for s in found
    )
    return "\n".join(["of other jobs; their nodes and numbers are not this job's", *said]) if found else "none"


def runbooks_for(asked: str, known: Mapping[str, Runbook], labels: Taxonomy) -> str:
    """asked: a failure type, or words."""
    words = set(_WORD.findall(asked.lower()))

    def likeness(book: Runbook) -> int:
        kind = labels.types.get(book.id)
        return len(words & set(_WORD.findall(f"{book.id} {book.title} {kind.means if kind else ''}".lower())))

    exact = known.get(asked.strip())
    books = [exact] if exact else [b for b in sorted(known.values(), key=likeness, reverse=True)[:2] if likeness(b)]
    return "\n".join(line for book in books for line in _book(book)) or "no runbook has such words"


def _file(file: LogFile) -> str:
    where = [f"rank {file.rank}"] if file.rank is not None else []
    where += [f"node {file.node}"] if file.node else []
    last_run = f", last run from line {file.first_line}" if file.first_line > 1 else ""
    return f"{file.name}: {file.kind}, {file.lines_in} lines{last_run}{''.join(f', {w}' for w in where)}"


def _accounted(file: LogFile) -> Iterator[str]:
    for row in account.rows(file):
        times = [f"{name} {at:%Y-%m-%d %H:%M:%S}" for name, at in (("from", row.start), ("to", row.end)) if at]
        parts = [f"{row.job}: {row.state}", f"exit code {row.exit_code}" if row.exit_code else "", *times, row.nodes]
        yield ", ".join(filter(None, parts))


def _of(line: LogLine, file: LogFile, node: str) -> bool:
    return same_host(line.node or file.node, node) or node in line.text


def _book(book: Runbook) -> Iterator[str]:
    yield f"{book.id}: {book.title}; action {book.action}"
    for name, steps in (("confirm", book.confirm), ("act", book.act), ("verify", book.verify)):
        yield from (f"- {name}: {_step(step)}" for step in steps[:4])


def _step(step: RunbookStep) -> str:
    return f"{step.step} ({step.why}; {step.risk})" + (f": {step.command}" if step.command else "")
