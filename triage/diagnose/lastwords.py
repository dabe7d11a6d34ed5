"""What the rank that the others waited for did last, and files that told nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from triage.diagnose.facts import Facts
from triage.domain import Diagnosis, Evidence, LogFile, LogLine
from triage.evidence.clocks import describe
from triage.evidence.progress import is_other_work
from triage.text import excerpt, how_many

_FEW = 3  # ranks whose last words are looked for
_NAMED = 4  # files that are named
_OWN_WORDS = frozenset({"kernel", "slurm", "fabric", "kubernetes"})  # kinds of files that were given for what they say


def with_last_words(result: Diagnosis, facts: Facts) -> Diagnosis:
    """With the last line of a rank that others waited for, else the other work that still went on, cited as context."""
    waits = [w.line for w in facts.collectives.waits]
    silent = [r for r in result.suspects.ranks if r not in {w.rank for w in facts.collectives.waits}]
    if not waits or not silent or len(silent) > _FEW:
        return result
    said = [(f"the last line of rank {r}, for which the others waited", _last_of(facts, r, waits)) for r in silent]
    work = _at_work(facts, waits)
    if work is not None and not any(line and (line.file != work.file or line.number > work.number) for _, line in said):
        said = [("what was still at work when the others gave up waiting", work)]
    cited = {(e.file, e.line) for e in result.evidence}
    more = [(what, x) for what, x in said if x is not None and (x.file, x.number) not in cited]
    added = tuple(_evidence(len(result.evidence) + i, x, what) for i, (what, x) in enumerate(more, 1))
    told = "".join(f" {e.title[:1].upper()}{e.title[1:]}: `{_quoted(e.text)}` ({e.file}:{e.line})." for e in added)
    return replace(result, evidence=(*result.evidence, *added), root_cause=result.root_cause + told)


def _quoted(text: str) -> str:
    return excerpt(text.strip(), limit=200).replace("`", "'")


def _evidence(number: int, line: LogLine, title: str) -> Evidence:
    return Evidence(
        id=f"E{number}", file=line.file, line=line.number, text=excerpt(line.text), role="context", failure_type="unknown",
        title=title, rank=line.rank, node=line.node, time=line.time,
    )  # fmt: skip


def _last_of(facts: Facts, rank: int, waits: Sequence[LogLine]) -> LogLine | None:
    own = [x for f in facts.log.files if f.kind == "job" for x in _before(f, waits) if rank in (x.rank, f.rank)]
    spoken = [x for x in own if x.text.strip() and x.program not in ("slurm", "nccl")]
    return spoken[-1] if spoken else None


def _at_work(facts: Facts, waits: Sequence[LogLine]) -> LogLine | None:
    found = [
        x for f in facts.log.files if f.kind == "job" for x in _before(f, waits) if x.rank is None and is_other_work(x)
    ]
    return found[-1] if found else None


def _before(file: LogFile, waits: Sequence[LogLine]) -> Iterator[LogLine]:
    """Lines of the file before the first report in it."""
    first = min((w.number for w in waits if w.file == file.name), default=None)
    yield from (x for x in file.lines if first is None or x.number < first)


def told_nothing(result: Diagnosis, facts: Facts) -> tuple[str, ...]:
    """Files that were given beside the job's own and that nothing is cited of, in words."""
    cited = {e.file for e in result.evidence} | {m.file for m in result.timeline.moments}
    silent = [f for f in facts.log.files if f.kind in _OWN_WORDS and f.lines and f.name not in cited]
    shown = [
        f"{describe(f)} tells nothing of this failure: no line of it around the job's time is of a kind that is known"
        for f in silent[:_NAMED]
    ]
    more = len(silent) - len(shown)
    return (*shown, *([f"nor do {how_many(more, 'other file')}"] if more > 0 else []))
