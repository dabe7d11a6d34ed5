"""From what the scan kept of a file to the lines that the later stages read. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from triage.domain import FileKind, LogFile, LogLine, RawLine, Run, ScannedFile, ScannedRun, Stamps, Template
from triage.ingest import names
from triage.ingest.lines import LineParser
from triage.ingest.runs import ended_how, telling
from triage.regex import skeleton

_FEW = 4  # a run of fewer lines than this, none of them telling, is the tail of the one before
_EMPTY = re.compile(
    rb"\s*(?:$|[|+]|[-=*#]{3,}|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b.{0,40}\b20\d\d\s*$)"
)  # dates and tables


def assemble(
    scanned: ScannedFile,
    kind: FileKind = "job",
    problems: Sequence[str] = (),
    reference: datetime | None = None,
    place: names.Place | None = None,
    stamps: Stamps | None = None,
) -> LogFile:
    """The last run of a file that has content, parsed; the earlier ones listed with how each ended.

    problems: what reading it met; reference: when it was last written (Input.modified), dates stamps without a year;
    place: whose lines they are, None for what the name tells; stamps: when they were written, None for what they tell.
    """
    place = place or names.place(scanned.name)
    runs = _with_content(scanned.runs)
    parsed = [
        _parse(
            run, LineParser(scanned.name, kind, reference=reference, rank=place.rank, node=place.node, stamps=stamps)
        )
        for run in runs
    ]
    last, lines = (runs[-1], parsed[-1]) if runs else (None, ())
    ends = [_run(scanned.name, run, found) for run, found in zip(runs, parsed, strict=True)]
    return LogFile(
        name=scanned.name,
        kind=kind,
        lines=lines,
        bytes_in=scanned.bytes_in,
        lines_in=scanned.lines_in,
        first_line=last.first_line if last else 1,
        last_line=last.last_line if last else scanned.lines_in,
        rank=place.rank,
        node=place.node,
        runs=tuple(ends) if len(runs) > 1 else (),
        dropped=_dropped(last.templates) if last else {},
        problems=(*scanned.problems, *problems),
        earlier=tuple(
            line for end, found in zip(ends[:-1], parsed[:-1], strict=True) for line in telling(found, end.ended_line)
        ),
    )


def _run(name: str, run: ScannedRun, lines: Sequence[LogLine]) -> Run:
    outcome, text, number = ended_how(lines)
    return Run(name, run.first_line, run.last_line, outcome, text[:500], number)


def _with_content(runs: Sequence[ScannedRun]) -> tuple[ScannedRun, ...]:
    """A run without substance joins the one before it (the one after, if it is the first)."""
    kept: list[ScannedRun] = []
    for run in runs:
        if kept and (not _substance(run) or not _substance(kept[-1])):
            kept[-1] = _joined(kept[-1], run)
        else:
            kept.append(run)
    return tuple(kept)


def _substance(run: ScannedRun) -> bool:
    lines = sum(t.count for t in run.templates if t.first and not _EMPTY.match(t.first[0].raw))
    return lines >= _FEW or any(t.hot for t in run.templates)


def _joined(a: ScannedRun, b: ScannedRun) -> ScannedRun:
    shift = 1 + max((t.id for t in a.templates), default=-1)
    return replace(
        a,
        last_line=b.last_line,
        templates=a.templates + tuple(replace(t, id=t.id + shift) for t in b.templates),
        edges=a.edges + b.edges,
        bytes_in=a.bytes_in + b.bytes_in,
    )


def _parse(run: ScannedRun, parser: LineParser) -> tuple[LogLine, ...]:
    """Each kept line once, in order of line number."""
    raws: dict[int, tuple[RawLine, Template | None]] = {}
    # Templates of one skeleton differ in kind; a line of an edge that none of them kept is of the one that kept least.
    by_skeleton = {skeleton(t.first[0].raw): t for t in sorted(run.templates, key=_left_out) if t.first}
    for template in run.templates:
        for raw in (*template.first, *template.last):
            raws.setdefault(raw.number, (raw, template))
    for raw in run.edges:
        if raw.number not in raws:
            raws[raw.number] = (raw, by_skeleton.get(skeleton(raw.raw)))
    kept = Counter(template.id for _, template in raws.values() if template)
    order = sorted(raws)
    parser.learn(raws[number][0].raw for number in order)
    lines: list[LogLine] = []
    seen: set[int] = set()
    for number in order:
        raw, of = raws[number]
        if of is None or of.id in seen:
            lines.append(parser.parse(raw, of))
            continue
        seen.add(of.id)
        lines.append(parser.parse(raw, of, max(1, 1 + of.count - kept[of.id]), of.ranks))
    return tuple(lines)


def _left_out(template: Template) -> int:
    return template.count - len(template.first) - len(template.last)


def _dropped(templates: Sequence[Template]) -> dict[str, int]:
    dropped: Counter[str] = Counter()
    for template in templates:
        if template.rule is not None:
            dropped[template.rule] += template.count
    return dict(dropped)
