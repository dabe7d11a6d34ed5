"""A candidate signature from an incident that a person has confirmed or corrected, where no signature covers it.

Code writes the pattern from the line that shows the cause, or a model does; code verifies it in either case.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from triage.agents import sample
from triage.compress.mining import own_text
from triage.compress.wording import wording
from triage.domain import JobLog, LearnedSignature, LogFile, LogLine, RuleCheck, RuleOrigin, Signature
from triage.errors import ModelError
from triage.evidence.progress import steps
from triage.llm.values import ChatModel
from triage.signing.pattern import proposals
from triage.signing.subject import Cited, Subject
from triage.signing.verify import WEIGHT, Case, Verifier, alike
from triage.signing.writing import Writer
from triage.text import excerpt

# Found by how lines stand together, not by what one says.
_TOGETHER = frozenset({"end.stood-still", "loss.diverged", "collective.mismatch"})
_NO_TYPE = frozenset({"", "unknown"})
_TITLE = 100  # characters


@dataclass(frozen=True, slots=True)
class Lesson:
    """signature: verified, not yet stored; None with the reason in `check`. covered: there is nothing to learn, as a signature
    knows the failure already, or there was none."""

    check: RuleCheck
    signature: LearnedSignature | None = None
    covered: bool = False
    notes: tuple[str, ...] = ()


def learn(
    of: Subject,
    verifier: Verifier,
    log: Callable[[], JobLog | None] = lambda: None,
    model: ChatModel | None = None,
    pattern: str = "",
) -> Lesson:
    """log: reads the incident's own, where it is at hand; model: asked before code writes; pattern: a person's own instead.

    A model that fails is a note. Never raises ModelError.
    """
    if of.verdict == "rejected" or of.failure_type == "healthy":
        return Lesson(RuleCheck(False, "outcome", "the outcome confirms no failure"), covered=True)
    if of.failure_type in _NO_TYPE:
        reason = "the outcome does not say which failure it was: correct it with a failure type"
        return Lesson(RuleCheck(False, "outcome", reason))
    if of.worked == "no" and not pattern:
        reason = "the fix did not work, so it is open whether this was the cause"
        return Lesson(RuleCheck(False, "outcome", reason))
    if owner := _covering(of, verifier):
        return Lesson(RuleCheck(False, "covered", f"the signature {owner} knows this failure"), covered=True)
    lines = [cited for cited in of.roots if cited.signature not in _TOGETHER and cited.text.strip()]
    if of.roots and not lines:
        reason = "the cause shows in how lines stand together, not in what one of them says"
        return Lesson(RuleCheck(False, "routine", reason))
    notes: list[str] = []
    own = log() if lines else None
    first = RuleCheck(False, "named", "the incident cites no line that shows the cause")
    for at, group in enumerate(_groups(lines)):
        case = _case(of, group, own)
        origins = _written(of, case, pattern, model if not at else None, notes)
        for tried, (proposed, origin) in enumerate(origins):
            result = verifier.check(proposed, case)
            if result.accepted:
                return Lesson(result, _made(of, proposed, origin, verifier.signatures), notes=tuple(notes))
            if origin.by == "model":
                notes.append(f"the pattern of {origin.model} was refused ({result.check}): {result.reason}")
            if not at and (not tried or first.check == "general"):  # what came of the narrower one tells more
                first = result
    return Lesson(first, notes=tuple(notes))


def _covering(of: Subject, verifier: Verifier) -> str:
    """The signature that knows a cited line as the cause that it was.

    One that is general, such as of all errors of a class, leaves room for what a person said of the cause or the fix.
    """
    least = WEIGHT if of.cause or of.fix else 0
    known = (s for cited in of.roots for s in verifier.knows(cited.text))
    mine = (s for s in known if s.role == "root" and s.failure_type == of.failure_type)
    return next((s.id for s in mine if s.weight >= least), "")


def _groups(lines: Sequence[Cited]) -> Iterator[tuple[str, ...]]:
    """Lines that say the same, the first cited first."""
    left = [cited.text for cited in lines]
    while left:
        group = alike(left)
        yield group
        left = [text for text in left if text not in group]


def _written(
    of: Subject, case: Case, pattern: str, model: ChatModel | None, notes: list[str]
) -> Iterator[tuple[str, RuleOrigin]]:
    """Patterns with who wrote them, to be tried in order."""
    if pattern:
        yield pattern, RuleOrigin("user", lines=case.lines)
        return
    if model is not None:
        writer = Writer(model)
        try:
            said = writer.write(of, case.lines)
        except ModelError as error:
            said = ""
            notes.append(f"{writer.model} wrote no pattern: {error}")
        if said:
            yield said, RuleOrigin("model", writer.model, writer.used, sample.digest(writer.shown), case.lines)
    for proposed in proposals(case.lines[0], of.names):
        yield proposed, RuleOrigin("mined", lines=case.lines)


def _case(of: Subject, group: tuple[str, ...], log: JobLog | None) -> Case:
    cited = {cited.file: cited.line for cited in reversed(of.roots)}
    lines: tuple[LogLine, ...] = ()
    worked: Mapping[str, int] = {}
    if log is not None:
        lines = tuple(line for file in log.files for line in file.lines)
        worked = {file.name: _worked(file, cited.get(file.name)) for file in log.files}
    roots, beside = (tuple(cited.text for cited in part) for part in (of.roots, of.beside))
    return Case(of.failure_type, group, roots, beside, lines, worked)


def _worked(file: LogFile, cause: int | None) -> int:
    """The number of the last line, before that of the cause, which shows that the job went on; 0 without one."""
    numbers = [step.line.number for step in steps(file)]
    return max((number for number in numbers if cause is None or number < cause), default=0)


def _made(of: Subject, pattern: str, origin: RuleOrigin, known: Iterable[Signature]) -> LearnedSignature:
    said = " ".join(of.cause.split()) or wording(own_text(origin.lines[0]) or origin.lines[0])
    signature = Signature(
        id="",
        title=f"{excerpt(said, limit=_TITLE).rstrip(' .')} (learned from incident {of.incident})",
        patterns=(pattern,),
        failure_type=of.failure_type,
        root_cause_class=of.root_cause_class or _class_of(of.failure_type, known),
        role="root",
        remedy=_remedy(of),
        outcome=of.outcome,
    )
    return LearnedSignature(signature, "candidate", origin, of.incident, of.who)


def _remedy(of: Subject) -> str:
    """What a person did, said to be of that job: its paths, users and numbers are not those of the next one."""
    if not of.fix.strip() or any(name in of.fix for name in of.names):
        return ""
    return f"as done in incident {of.incident}: {' '.join(of.fix.split())}"


def _class_of(failure_type: str, known: Iterable[Signature]) -> str:
    """The class that most signatures of the type have."""
    classes = Counter(s.root_cause_class for s in known if s.failure_type == failure_type and s.role == "root")
    return classes.most_common(1)[0][0] if classes else "unknown"
