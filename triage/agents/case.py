"""What a model is told of a job, within the room that it has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from triage.agents.injected import speaks_to_model
from triage.agents.naming import Told
from triage.domain import Diagnosis, Folded, JobLog, LogLine
from triage.evidence.known import known_nodes, known_ranks
from triage.taxonomy import Taxonomy
from triage.text import rank_ranges

CHARS_PER_TOKEN = 2.2  # of a prompt, of which most is log: fewer than any model's own count
LEAST_LOG = 1500  # characters of log below which a prompt is not worth asking
_MOST_LINE = 500
_TROUBLE = frozenset({"error", "fatal"})


@dataclass(frozen=True, slots=True)
class Case:
    """What is known of a job before the model is asked."""

    log: JobLog
    folded: Folded
    rules: Diagnosis


class Ground:
    """What an answer may name and cite: the lines that were shown, whole, and all that was told of this job.

    A line that speaks to who reads it proves nothing, nor does a name that only stands there.
    """

    def __init__(self, case: Case, told: str) -> None:
        """told: sentences about the job beside its lines."""
        rules = case.rules
        shown = {(line.file, line.number) for line in case.folded.lines}
        shown |= {(e.file, e.line) for e in rules.evidence}
        self.lines = {
            (line.file, line.number): line
            for file in case.log.files
            for line in (*file.earlier, *file.lines)
            if (line.file, line.number) in shown
        }
        self.nodes = frozenset(
            {*known_nodes(case.log), *rules.suspects.nodes, *(e.node for e in rules.evidence if e.node)}
        )
        self.ranks = frozenset({*known_ranks(case.log), *rules.suspects.ranks})
        self.told = Told(places=frozenset(self.lines), counted={"rank": set(self.ranks)})
        folded = (f"{line.text}{_many(line)}" for line in case.folded.lines)
        names = (*(file.name for file in case.log.files), *self.nodes)
        self._tell((*folded, *(line.text for line in self.lines.values()), *(e.title for e in rules.evidence), *names))
        self._tell(self.told.without_places(told).split("\n"))

    def add(self, lines: Iterable[LogLine], names: Iterable[str]) -> None:
        """What a tool showed of the job."""
        fresh = {(line.file, line.number): line for line in lines}
        texts = [line.text for place, line in fresh.items() if place not in self.lines]
        self.lines = {**fresh, **self.lines}
        self.told.places = frozenset(self.lines)
        self._tell((*texts, *map(self.told.without_places, names)))

    def _tell(self, texts: Iterable[str]) -> None:
        lines = (line for text in texts for line in text.split("\n"))
        self.told.add("\n".join(line for line in lines if not speaks_to_model(line)))


def inputs(case: Case, labels: Taxonomy, room: int | None = None) -> dict[str, str]:
    """The inputs of the prompt `diagnose`. room: tokens that the model takes for them; None: as many as there are."""
    rules = case.rules
    found = {
        "outcomes": ", ".join(sorted(labels.outcomes)),
        "types": "\n".join(f"{kind.id}: {kind.means}" for kind in labels.types.values()),
        "classes": ", ".join(sorted(labels.root_cause_classes)),
        "actions": ", ".join(labels.actions),
        "evidence": _evidence(rules) or "none",
        "hypotheses": _hypotheses(rules),
        "similar": _similar(rules) or "none",
        "facts": _facts(case),
    }
    left = None if room is None else int(room * CHARS_PER_TOKEN) - sum(map(len, found.values())) - _PROMPT
    if left is not None and left < LEAST_LOG:  # what helps least goes first
        found["similar"] = "left out"
        found["types"] = "\n".join(labels.types)
        found["evidence"] = found["evidence"][: int((room or 0) * CHARS_PER_TOKEN / 4)]
        left = max(LEAST_LOG, int((room or 0) * CHARS_PER_TOKEN) - sum(map(len, found.values())) - _PROMPT)
    return {**found, "log": "\n".join(_fitting(case, left))}


_PROMPT = 1600  # characters of the prompt itself


def _evidence(rules: Diagnosis) -> str:
    return "\n".join(
        f"{e.id} {e.file}:{e.line} [{e.role}] {e.text}" + (f" = {e.title}" if e.title else "") for e in rules.evidence
    )


def _hypotheses(rules: Diagnosis) -> str:
    ranked = [f"- {h.failure_type} ({h.status}), {h.root_cause_class}: {h.root_cause}" for h in rules.hypotheses]
    return "\n".join(ranked) or f"- {rules.failure_type} ({rules.status}): {rules.root_cause}"


def _similar(rules: Diagnosis) -> str:
    return "\n".join(
        f"- {s.incident}: {s.title}; what helped: {'; '.join(s.remediation[:2]) or 'not told'}" for s in rules.similar
    )


def _facts(case: Case) -> str:
    rules, found = case.rules, []
    found.append(f"outcome by the rules: {rules.outcome}")
    if rules.progress.last_step is not None:
        found.append(f"last step: {rules.progress.last_step}")
    found.append(f"stage: {rules.progress.stage}")
    if rules.job:
        found.append(f"job id: {rules.job}")
    found += [f"not seen: {note}" for note in rules.missing[:6]]
    return "\n".join(found)


def _fitting(case: Case, most: int | None) -> Sequence[str]:
    """The compressed log, line by line; of more than there is room for, what tells most, in its order."""
    lines = [_line(line) for line in case.folded.lines]
    if most is None or sum(map(len, lines)) + len(lines) <= most:
        return lines
    cited = {(e.file, e.line) for e in case.rules.evidence}
    weights = [_weight(line, cited) for line in case.folded.lines]
    chosen: set[int] = set()
    for at in sorted(range(len(lines)), key=lambda at: (weights[at], -at)):  # of equals the last of the log
        most -= len(lines[at]) + 1
        if most < 0:
            break
        chosen.add(at)
    return [line for at, line in enumerate(lines) if at in chosen]


def _weight(line: LogLine, cited: set[tuple[str, int]]) -> int:
    if (line.file, line.number) in cited:
        return 0
    if line.level in _TROUBLE:
        return 1
    near = any(file == line.file and abs(number - line.number) <= 5 for file, number in cited)
    return 2 if near else 3


def _line(line: LogLine) -> str:
    return f"{line.file}:{line.number} {line.text[:_MOST_LINE]}{_many(line)}"


def _many(line: LogLine) -> str:
    return f"  (x{line.repeats} ranks {rank_ranges(line.ranks)})" if line.repeats > 1 else ""
