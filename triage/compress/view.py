"""The compressed log: routine lines out, repetitions folded, a token budget kept, and an account of the rest. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from triage.compress import budget, prose
from triage.compress.folding import Entry, Folder, Weight, entries, press
from triage.compress.landmarks import Landmarks
from triage.domain import Compression, Folded, JobLog, LogFile, LogLine
from triage.text import rank_ranges

__all__ = ["fold", "rank_ranges"]


def fold(job: JobLog, budget_tokens: int, protect: Collection[tuple[str, int]] = ()) -> Folded:
    """The job's log within about budget_tokens tokens. protect: (file, line) that must be shown as they are."""
    wanted: dict[str, set[int]] = {}
    for name, number in protect:
        wanted.setdefault(name, set()).add(number)
    folder, landmarks = Folder(), Landmarks()
    folded = [folder.fold(entries(file, wanted.get(file.name, ()), landmarks)) for file in job.files]
    if budget.cost(folded) > budget_tokens:
        prose.calm(folded)
        folded = press(folded)
    chosen = budget.choose(folded, budget_tokens)
    shown = [[_short(entry) for entry in found] for found in chosen]
    lines = tuple(line for found in shown for line in found)
    account = _account(job.files, lines)
    ends = tuple((file.name, max((x.number for x in file.lines if x.text.strip()), default=0)) for file in job.files)
    notes = _notes(job.files, folded, chosen, budget_tokens, account.cut)
    return Folded(lines, account, notes, ends, _missing(job))


def _short(entry: Entry) -> LogLine:
    line = entry.folded()
    if entry.protected:
        return line
    return replace(line, text=budget.short(line.text))


def _account(files: Sequence[LogFile], lines: Sequence[LogLine]) -> Compression:
    dropped: Counter[str] = Counter()
    for file in files:
        dropped.update(file.dropped)
    for line in lines:
        if line.rule is not None:
            dropped[line.rule] -= line.repeats
    folded = sum(line.repeats - 1 for line in lines)
    of_runs = sum(file.last_line - file.first_line + 1 + len(file.earlier) for file in files)
    return Compression(
        bytes_in=sum(file.bytes_in for file in files),
        lines_in=sum(file.lines_in for file in files),
        lines_kept=len(lines),
        bytes_kept=sum(len(line.text.encode()) + 1 for line in lines),
        tokens_kept=sum(budget.tokens(line) for line in lines),
        dropped={rule: count for rule, count in dropped.most_common() if count > 0},
        folded=folded,
        cut=max(0, of_runs - len(lines) - folded - sum(dropped.values())),
    )


def _notes(
    files: Sequence[LogFile],
    folded: Sequence[Sequence[Entry]],
    chosen: Sequence[Sequence[Entry]],
    room: int,
    cut: int,
) -> tuple[str, ...]:
    """What was left out besides routine lines. cut: how many lines were, which the notes explain."""
    notes = [
        f"{file.name}: lines 1-{file.first_line - 1} belong to earlier runs"
        + (", of which only what ended them is shown" if file.earlier else "")
        for file in files
        if file.first_line > 1
    ]
    before, after = _lines_by_weight(folded), _lines_by_weight(chosen)
    gone = before - after
    parts = [f"{gone[name]:,} of {before[name]:,} {word}" for name, word in _WORDS if gone[name]]
    if parts:
        notes.append(f"left out to fit {room:,} tokens: " + ", ".join(parts) + _novel(folded, chosen))
    if 0 < gone.total() < cut:
        notes.append(f"only counted by the scan: {cut - gone.total():,} lines")
    notes += [f"{file.name}: {problem}" for file in files for problem in file.problems if _BOUNDED in problem]
    return tuple(notes)


def _lines_by_weight(files: Sequence[Sequence[Entry]]) -> Counter[Weight]:
    """Lines, those folded into another included."""
    found: Counter[Weight] = Counter()
    for file in files:
        for entry in file:
            found[entry.weight] += entry.repeats
    return found


def _novel(folded: Sequence[Sequence[Entry]], chosen: Sequence[Sequence[Entry]]) -> str:
    """Says that so much is left of a log because its text does not repeat itself."""
    unlike, shown = (
        sum(entry.weight == "other" and entry.repeats == 1 for file in files for entry in file)
        for files in (folded, chosen)
    )
    if unlike < _NOVEL or shown == unlike:
        return ""
    return f"; text of no repeating kind: {unlike:,} lines unlike each other, {shown:,} shown"


def _missing(job: JobLog) -> tuple[str, ...]:
    problems = (f"{file.name}: {problem}" for file in job.files for problem in file.problems if _BOUNDED not in problem)
    return (*job.missing, *problems)


_BOUNDED = "to bound memory"  # in the problem of a file of which the scan did not keep all
_NOVEL = 300  # lines
_WORDS: tuple[tuple[Weight, str], ...] = (
    ("error", "error lines"),
    ("warning", "warning lines"),
    ("other", "other lines"),
)
