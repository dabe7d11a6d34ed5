"""What a resolved incident gives to learn from. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from triage.domain import LearnedSignature, Outcome
from triage.errors import UsageError
from triage.regex import compile_pattern
from triage.store.values import SignatureVerdict, StoredIncident, VerdictKind

_FAILED: tuple[Outcome, ...] = ("failed", "hung", "interrupted")


@dataclass(frozen=True, slots=True)
class Cited:
    """A cited line as it was recorded."""

    id: str
    file: str
    line: int
    text: str
    signature: str


@dataclass(frozen=True, slots=True)
class Subject:
    """An incident with its latest outcome.

    said: the failure type of the diagnosis; failure_type, root_cause_class: what it truly was, "" where that is not known;
    roots: lines cited as the cause; beside: the other cited ones; names: of its nodes; cause, fix: in a person's words, which worked or not.
    """

    incident: int
    verdict: VerdictKind
    said: str
    failure_type: str
    root_cause_class: str
    outcome: Outcome
    roots: tuple[Cited, ...]
    beside: tuple[Cited, ...]
    names: frozenset[str]
    cause: str = ""
    fix: str = ""
    who: str = ""
    worked: str = "unknown"

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the lines that show the cause."""
        return tuple(dict.fromkeys(cited.file for cited in self.roots))


def subject(stored: StoredIncident, cites: str = "") -> Subject:
    """cites: the cited line, such as E4, that shows the cause, where it is not one cited as such.

    Errors: UsageError for an incident without an outcome, and for a line that it does not cite.
    """
    if not stored.verdicts:
        raise UsageError(
            f"incident {stored.id} has no outcome yet: what nobody has confirmed is not learned",
            f"triage incidents resolve {stored.id} --verdict confirmed|corrected|rejected",
        )
    result, last = stored.result, stored.verdicts[-1]
    cited = {
        e["id"]: Cited(e["id"], e["file"], e["line"], e["text"], e.get("signature") or "")
        for e in result.get("evidence", ())
    }
    if cites and cites not in cited:
        raise UsageError(f"incident {stored.id} cites no line {cites}", f"it cites {', '.join(cited) or 'none'}")
    roots = [cites] if cites else [e["id"] for e in result.get("evidence", ()) if e["role"] == "root"]
    outcome = result.get("outcome")
    names = {*stored.summary.nodes, *(e.get("node") or "" for e in result.get("evidence", ()))}
    steps = {step["step"] for step in result.get("remediation", ())}
    return Subject(
        incident=stored.id,
        verdict=last.verdict,
        said=result["failure_type"],
        failure_type=last.failure_type or (result["failure_type"] if last.verdict == "confirmed" else ""),
        root_cause_class=last.root_cause_class,
        outcome=outcome if outcome in _FAILED else "failed",
        roots=tuple(cited[name] for name in roots),
        beside=tuple(line for name, line in cited.items() if name not in roots),
        names=frozenset(names - {""}),
        # The answer and the steps of the rules are of that job alone, also where a person took them over.
        cause="" if last.cause == result.get("root_cause") else last.cause,
        fix="" if last.worked == "no" or last.fix in steps else last.fix,
        who=last.who,
        worked=last.worked,
    )


def verdicts(of: Subject, known: Iterable[LearnedSignature]) -> dict[str, SignatureVerdict]:
    """What the outcome says of the signatures that match a line cited as the cause; one that says nothing of it is left out."""
    found: dict[str, SignatureVerdict] = {}
    for learned in known:
        search = compile_pattern(learned.pattern).search
        if learned.state == "retired" or not any(search(cited.text) for cited in of.roots):
            continue
        mine = learned.signature.failure_type
        if of.verdict != "rejected" and of.failure_type == mine:
            found[learned.id] = "confirmed"
        elif of.said == mine or of.verdict != "rejected" or learned.incident == of.incident:
            found[learned.id] = "contradicted"
    return found
