"""What was learned, in a run: filter rules in force, what they took, and which would have hidden evidence; signatures.

A learned rule is applied after those that triage ships. A shadow rule is counted on what the scan kept, and not applied.
No signature can miss a line for a rule's sake: the scan asks signatures first, of every line. What the judge finds
without signatures it looks for on lines as if no learned rule had taken them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from triage.compress import guard
from triage.compress.takes import LineTakers, taker
from triage.diagnose.silence import STILL
from triage.domain import (
    SIGNATURE_PREFIX,
    Diagnosis,
    Evidence,
    FilterRule,
    JobLog,
    JobPrint,
    LearnedRule,
    LearnedSignature,
    LogFile,
    LogLine,
    Signature,
)
from triage.errors import KnowledgeError, NotFoundError, TriageError
from triage.regex import compile_pattern

ROUTINE_SIGNATURES = (STILL.id,)  # their lines are cited because they are the last, and are routine


class Rules(Protocol):
    """Where learned rules are kept. Each method may raise TriageError. writes: whether `settle` may be called."""

    writes: bool

    def in_force(self, job: JobPrint) -> tuple[LearnedRule, ...]:
        """The active and shadow rules of this kind of job and of those alike."""
        ...

    def find(self, rule: str) -> LearnedRule | None:
        """The rule of this id, in whatever state; None when there is none."""
        ...

    def settle(self, hits: Mapping[str, int], retired: Mapping[str, str]) -> None:
        """After a run: the lines that rules took, and rules to retire for an incident's sake, with the reason."""
        ...


@dataclass(frozen=True, slots=True)
class Hider:
    """A rule that takes a line which a diagnosis cites."""

    rule: str
    evidence: Evidence

    def note(self, retired: bool) -> str:
        where = f"{self.evidence.id}, {self.evidence.file}:{self.evidence.line}"
        fate = "was retired" if retired else "stays in force, as nothing is recorded"
        return f"the learned filter rule {self.rule} would have hidden a line that is cited here ({where}): it {fate}"

    def reason(self, incident: int | None) -> str:
        of = "a diagnosis that was not recorded" if incident is None else f"incident {incident}"
        return f"it would have hidden {self.evidence.id} of {of}: {self.evidence.text}"


def in_force(rules: Rules | None, job: JobPrint | None) -> tuple[tuple[LearnedRule, ...], tuple[str, ...]]:
    """The rules for this kind of job, and in words why some are not used."""
    if rules is None or job is None or not job.features:
        return (), ()
    try:
        found = rules.in_force(job)
    except (TriageError, OSError) as error:
        return (), (f"learned filter rules were not used: {error}",)
    sound = tuple(rule for rule in found if _compiles(rule.rule))
    broken = [rule.rule.id for rule in found if rule not in sound]
    return sound, (f"the learned filter rules {', '.join(broken)} do not compile",) if broken else ()


def _compiles(rule: FilterRule) -> bool:
    try:
        _ = taker(rule.pattern).matcher
    except KnowledgeError:
        return False
    return True


def applied(rules: Iterable[LearnedRule]) -> tuple[FilterRule, ...]:
    return tuple(learned.rule for learned in rules if learned.state == "active")


def rule_to_show(rules: Rules | None, rule: str, known: Sequence[FilterRule]) -> tuple[FilterRule, ...]:
    """The rule of this id, if it is a learned one that is not among the known ones."""
    if rules is None or any(rule == other.id for other in known):
        return ()
    try:
        found = rules.find(rule)
    except NotFoundError:
        found = None
    return (found.rule,) if found else ()


def unmarked(log: JobLog) -> JobLog:
    """The log as the judge sees it: no line counts as routine because a learned rule takes it."""
    ids = {learned.rule.id for learned in log.learned}
    if not ids:
        return log

    def bare(lines: Sequence[LogLine]) -> tuple[LogLine, ...]:
        return tuple(replace(line, rule=None) if line.rule in ids else line for line in lines)

    return replace(log, files=tuple(replace(f, lines=bare(f.lines), earlier=bare(f.earlier)) for f in log.files))


def hits(log: JobLog) -> dict[str, int]:
    """The lines that each learned rule took, a shadow one those it would take, as far as the kept lines tell."""
    ids = {learned.rule.id for learned in log.learned}
    found: Counter[str] = Counter()
    for file in log.files:
        found.update({rule: lines for rule, lines in file.dropped.items() if rule in ids})
    shadows = [learned.rule for learned in log.learned if learned.state == "shadow"]
    if shadows:
        left = list(left_over(log.files))
        for rule, places in zip(shadows, LineTakers([line.text for line in left]).of(shadows), strict=True):
            found[rule.id] += sum(left[at].repeats for at in places if not guard.alarm(left[at].text))
    return {rule: lines for rule, lines in found.items() if lines}


def left_over(files: Iterable[LogFile]) -> Iterator[LogLine]:
    """The kept lines that neither a rule takes nor a signature may know; each stands for `repeats` lines."""
    return (line for file in files for line in file.lines if line.rule is None and not line.hot)


def sample(log: JobLog, but: str = "") -> list[tuple[str, int]]:
    """What a rule is verified on: the lines that no rule takes, each with how many it stands for.

    but: the id of a rule that is asked about; its lines count as left over.
    """
    return [
        (line.text, line.repeats) for file in log.files for line in file.lines if line.rule is None or line.rule == but
    ]


def hiders(log: JobLog, result: Diagnosis) -> tuple[Hider, ...]:
    """The learned rules whose pattern takes a line that the diagnosis of a failure cites, each with the first such."""
    if not log.learned or result.outcome == "healthy":
        return ()
    texts = {(line.file, line.number): line.text for file in log.files for line in (*file.earlier, *file.lines)}
    cited = [e for e in result.evidence if e.signature not in ROUTINE_SIGNATURES]
    takers = LineTakers([texts.get((e.file, e.line), e.text) for e in cited])
    rules = [learned.rule for learned in log.learned]
    return tuple(
        Hider(rule.id, cited[min(places)]) for rule, places in zip(rules, takers.of(rules), strict=True) if places
    )


def sound(found: Iterable[LearnedSignature]) -> tuple[tuple[Signature, ...], tuple[str, ...]]:
    """The signatures that compile, and in words which do not."""
    good: list[Signature] = []
    broken: list[str] = []
    for learned in found:
        try:
            compile_pattern(learned.pattern)
            good.append(learned.signature)
        except KnowledgeError:
            broken.append(learned.id)
    return tuple(good), (f"the learned signatures {', '.join(broken)} do not compile",) if broken else ()


def answers(result: Diagnosis) -> bool:
    """Whether a learned signature found the cause: what it is was confirmed before, and needs no model again."""
    return any(e.role == "root" and e.signature.startswith(SIGNATURE_PREFIX) for e in result.evidence)
