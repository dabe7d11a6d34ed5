"""The compressed log: routine lines out, repetitions folded, a token budget kept, and an account of the rest. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from triage.compress import budget
from triage.compress.folding import Entry, Folder, Weight, entries, press
from triage.domain import Compression, Folded, JobLog, LogFile, LogLine
from triage.text import rank_ranges

__all__ = ["fold", "rank_ranges"]


def fold(job: JobLog, budget_tokens: int, protect: Collection[tuple[str, int]] = ()) -> Folded:
    """The job's log within about budget_tokens tokens. protect: (file, line) that must be shown as they are."""
    wanted: dict[str, set[int]] = {}
    for name, number in protect:
        wanted.setdefault(name, set()).add(number)
    folder = Folder()
    folded = [folder.fold(entries(file, wanted.get(file.name, ()))) for file in job.files]
    if budget.cost(folded) > budget_tokens:
        folded = press(folded)
    chosen = budget.choose(folded, budget_tokens)
    shown = [[_short(entry) for entry in found] for found in chosen]
    lines = tuple(line for found in shown for line in found)
    account = _account(job.files, lines)
    return Folded(lines, account, _notes(job.files, folded, chosen, budget_tokens))


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
    files: Sequence[LogFile], folded: Sequence[Sequence[Entry]], chosen: Sequence[Sequence[Entry]], room: int
) -> tuple[str, ...]:
    """What was left out besides routine lines."""
    notes = [
        f"{file.name}: lines 1-{file.first_line - 1} belong to earlier runs"
        + (", of which only what ended them is shown" if file.earlier else "")
        for file in files
        if file.first_line > 1
    ]
    before = Counter(entry.weight for found in folded for entry in found)
    after = Counter(entry.weight for found in chosen for entry in found)
    parts = [
        f"{before[name] - after[name]} of {before[name]} {word}" for name, word in _WORDS if after[name] < before[name]
    ]
    if parts:
        notes.append(f"left out to fit {room} tokens: " + ", ".join(parts))
    notes += [f"{file.name}: {problem}" for file in files for problem in file.problems if "to bound memory" in problem]
    return tuple(notes)


_WORDS: tuple[tuple[Weight, str], ...] = (
    ("error", "error lines"),
    ("warning", "warning lines"),
    ("other", "other lines"),
)
