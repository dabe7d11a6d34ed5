"""Steps to take, each with its reason, its risk and the lines it rests on: confirm, act, verify, escalate."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triage.diagnose.candidates import Candidate
from triage.diagnose.checks import as_step, of_scheduler
from triage.diagnose.facts import Facts
from triage.diagnose.merging import left_of, once, only_looks, says
from triage.diagnose.names import fill_command, fill_text, names, seen_on, where_and_when
from triage.diagnose.situation import OF_FAILURE, Situation, situation
from triage.domain import (
    SIGNATURE_PREFIX,
    Evidence,
    Fetch,
    Progress,
    Remedy,
    Risk,
    Runbook,
    Runbooks,
    RunbookStep,
    Status,
    Suspects,
    When,
)
from triage.risk import destroys, destroys_as_typed

MAX_STEPS = 7
MAX_CONFIRM = 2
MAX_ACT = 2
_UNNAMED = re.compile(r" \((?:under \w+, )?`[^`]*<nodes>[^`]*`\)")  # an option is no help without its nodes
# After these the job runs again before anything is repaired; with the others, what is to change comes first.
_AT_ONCE = frozenset({"restart-excluding", "kill-and-restart"})
# What a remedy may say that the action speaks against: no restart before the cluster team has looked, no drain of an unknown node.
_ALSO = frozenset({"out-of-memory"})  # a smaller batch helps whoever holds the memory
_BARRED = {
    "escalate": frozenset({"restart"}),
    "restart": frozenset({"drain", "restart"}),
    "none": frozenset({"restart"}),
}


@dataclass(frozen=True, slots=True)
class _Case:
    """One job to fill a runbook for."""

    book: Runbook
    here: Situation
    known: Mapping[str, str]
    seen_on: str  # a node that may be looked at where none is suspected
    cited: tuple[str, ...]
    elsewhere: Mapping[str, str] = field(default_factory=dict)  # what only looking for more evidence asks for

    @property
    def to_read(self) -> Mapping[str, str]:
        return {"node": self.seen_on, **self.known} if self.seen_on else self.known

    def steps(self, listed: Iterable[RunbookStep]) -> list[Remedy]:
        """Those that apply: first what is said of this very case, last what this log leaves open."""
        fitting = [step for step in listed if self.here.meets(step.when)]
        filled = [(self._remedy(step), step) for step in fitting]
        filled.sort(key=lambda pair: (bool(pair[1].command and not pair[0].command), not _special(pair[1].when)))
        return [remedy for remedy, _ in filled]

    @property
    def shown(self) -> frozenset[str]:
        """Steps that rest on what the log shows of this very failure, as they read."""
        return self._as_they_read(lambda when: bool(OF_FAILURE & set(when.shows)))

    @property
    def special(self) -> frozenset[str]:
        """Steps that are said of some cases only, as they read."""
        return self._as_they_read(_special)

    def _as_they_read(self, chosen: Callable[[When], bool]) -> frozenset[str]:
        return frozenset(fill_text(step.step, self.known) for step in self.book.act if chosen(step.when))

    def fetched(self) -> list[tuple[str, str]]:
        """What would settle it, and the command that shows it; in the text and with <names> where the log does not tell them."""
        known = {**self.elsewhere, **self.to_read}
        return [self._fetched(fetch, known) for fetch in self.book.fetch if self.here.meets(fetch.when)]

    def _fetched(self, fetch: Fetch, known: Mapping[str, str]) -> tuple[str, str]:
        text = fill_text(fetch.text, known)
        filled = [fill_command(way.command, known) for way in fetch.ways if self.here.meets(way.when)]
        if whole := next((command for command, missing in filled if not missing), ""):
            return text, whole
        shortest = min((command for command, _ in filled), key=len, default="")
        return text + (f" (`{shortest}`)" if shortest else ""), ""

    def _remedy(self, step: RunbookStep) -> Remedy:
        known = self.to_read if step.risk == "read-only" else self.known
        text, why = _UNNAMED.sub("", fill_text(step.step, known)), fill_text(step.why, known)
        command, missing = fill_command(step.command, known)
        if missing and step.risk != "destructive":
            text += f" (`{command}`; this log does not name {', '.join(f'<{name}>' for name in missing)})"
        return Remedy(text, why, step.risk, "" if missing else command, self.cited)


def _special(when: When) -> bool:
    return bool(
        when.signature or when.component or when.cause or when.spread or when.seen or when.shows or when.recurrence
    )


def _asked(book: Runbook, doing: Iterable[RunbookStep]) -> frozenset[str]:
    """What its steps, and those of the action, want to know of the log."""
    steps = (*book.confirm, *book.act, *book.verify, *book.escalate, *doing)
    return frozenset(mark for step in steps for mark in step.when.shows)


def remediation(
    facts: Facts,
    root: Candidate,
    evidence: Sequence[Evidence],
    books: Runbooks,
    action: str,
    found: Suspects,
    status: Status,
    progress: Progress,
) -> tuple[Remedy, ...]:
    """Confirm (read-only), act on the cause and restart if the action says so, verify, and whom to ask if that fails."""
    book = books.of[root.failure_type]
    here = situation(facts, root, found, action, progress, _asked(book, books.doing[action]))
    case = _Case(
        book=book,
        here=here,
        known=names(facts, root, found, here.scheduler, progress),
        seen_on=seen_on(facts, root),
        cited=tuple(e.id for e in evidence if e.role == "root")[:2],
    )
    confirm = _confirm(case, root, status)
    after = [*case.steps(case.book.verify)[:1], *case.steps(case.book.escalate)[:1]]
    act = _act(case, root, books)[: MAX_STEPS - len(confirm) - len(after)]
    return tuple(once([*confirm, *act, *after]))


def _confirm(case: _Case, root: Candidate, status: Status) -> list[Remedy]:
    """What the runbook looks at, and the check of the signature where a doubt is left or a node is accused; commands first."""
    steps = case.steps(case.book.confirm)
    if root.signature.check and (status != "established" or root.signature.node_fault):
        on = case.known.get("node", "") if root.signature.node_fault else ""
        check = of_scheduler(root.signature.check, case.here.scheduler)
        text, command = as_step(check, case.to_read, on) if check else ("", "")
        said = any(
            says(text.removeprefix("Confirm the cause"), step.step) or (step.command and _looks(command, step.command))
            for step in steps
        )
        if text and not said:
            why = "a read-only check that tells this cause from its rivals"
            steps = [step for step in steps if not (step.command and _looks(step.command, command))]
            steps.insert(0, Remedy(text, why, "read-only", command, case.cited))
    steps.sort(key=lambda step: not step.command)
    return steps[: 1 if status == "established" else MAX_CONFIRM]


def _looks(command: str, other: str) -> bool:
    """Does the other command look at the same thing? Told by programs and the paths they are given."""
    mine, theirs = (set(re.findall(r"(?:^|[;|] |ssh \S+ )([\w-]+)|(/[\w./-]+)", text)) for text in (command, other))
    return bool(mine) and mine <= theirs


def _act(case: _Case, root: Candidate, books: Runbooks) -> list[Remedy]:
    """What the runbook changes, what the remedy of the signature says beyond it, and how the action is done."""
    doing = case.steps(books.doing[case.here.action])
    remedy = root.signature.remedy
    own = case.steps(case.book.act)
    telling = [step for step in own if step.command]
    shown = [step for step in own if step.step in case.shown]
    said = [step.step for step in (*doing, *telling, *shown)]
    words = left_of(remedy, said, _BARRED.get(case.here.action, frozenset()))
    first = [_remedy_step(words, root, case)] if words and (not shown or root.failure_type in _ALSO) else []
    rest = [step for step in own if step not in shown and (step.command or not says(step.step, remedy))]
    if case.here.action in _AT_ONCE:
        telling += [step for step in rest if step.step in case.special]
        more = sorted(rest, key=lambda step: step not in telling)[:1]
        return (
            [*shown, *doing, *first, *more]
            if case.here.action == "restart-excluding"
            else [*shown, *first, *doing, *more]
        )
    most = MAX_ACT + min(1, sum(step.step in case.special for step in rest))
    return [*shown, *first, *rest[: max(0 if shown else 1, most - len(first) - len(doing) - len(shown))], *doing]


def _remedy_step(words: str, root: Candidate, case: _Case) -> Remedy:
    """What a person typed, in the remedy of a learned signature, stays as it is spelled."""
    typed = root.signature.remedy
    if root.signature.id.startswith(SIGNATURE_PREFIX):
        risk: Risk = "destructive" if destroys_as_typed(typed) else "reversible"
        return Remedy(typed, root.signature.title, risk, evidence=case.cited)
    risk = "destructive" if destroys(words) else "read-only" if only_looks(words) else "reversible"
    return Remedy(fill_text(words, case.known), root.signature.title, risk, evidence=case.cited)


def to_fetch(
    facts: Facts, book: Runbook, books: Runbooks, found: Suspects, progress: Progress
) -> tuple[tuple[Remedy, ...], tuple[str, ...]]:
    """What to do where the log does not tell: fetch what would, then what the runbook says of a failure without a cause; and
    what is to be fetched, as notes."""
    here = situation(facts, None, found, book.action, progress, _asked(book, books.doing[book.action]))
    known = names(facts, None, found, here.scheduler, progress)
    case = _Case(book, here, known, "", (), where_and_when(facts, None, here.scheduler))
    wanted = case.fetched()
    look = [step for step in case.steps(book.confirm) if step.command][:1]
    doing = case.steps(books.doing[book.action]) if book.action in _AT_ONCE else []
    own = case.steps(step for step in book.act if _special(step.when))[:1]
    after = [*doing, *own, *case.steps(book.verify)[:1], *case.steps(book.escalate)[:1]]
    fetch = [
        Remedy(f"Fetch {text}", "this log does not show the cause", "read-only", command)
        for text, command in wanted
        if not any(_looks(command, step.command) for step in look if command)
    ]
    return (*look, *fetch[: MAX_STEPS - len(look) - len(after)], *after), _notes(wanted)


def fetch_notes(facts: Facts, root: Candidate, book: Runbook, found: Suspects, progress: Progress) -> tuple[str, ...]:
    """What would settle a doubtful cause, with the command that shows it where the log names all of it."""
    here = situation(facts, root, found, book.action, progress, ())
    known = names(facts, root, found, here.scheduler, progress)
    case = _Case(book, here, known, seen_on(facts, root), (), where_and_when(facts, root, here.scheduler))
    return _notes(case.fetched())


def _notes(wanted: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"to settle it, fetch {text}" + (f": `{command}`" if command else "") for text, command in wanted)
