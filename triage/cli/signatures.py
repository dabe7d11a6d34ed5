"""Learned signatures for the command line: from outcomes of incidents, and checked again before they are approved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from triage import kb, pipeline
from triage.cli import wiring
from triage.cli.rules_check import Tried
from triage.cli.rules_signatures import opened
from triage.config import Settings
from triage.diagnose.judge import judge
from triage.domain import JobLog, LearnedSignature, RuleCheck
from triage.errors import InputError, UsageError
from triage.evidence import profile
from triage.evidence.match import Matcher
from triage.regex import compile_pattern
from triage.signing import learn as signing
from triage.signing import shipped
from triage.signing.subject import Subject, subject, verdicts
from triage.signing.verify import Banks, Case, Verifier
from triage.store.values import SignatureVerdict
from triage.text import how_many

if TYPE_CHECKING:
    from triage.store.signatures import SignatureStore

MOST_READ = 64 << 20  # bytes of an incident's own log that are read to verify a signature on it
# No reason of a person outweighs these.
NEVER = frozenset(("empty", "compiles", "size", "secret", "named", "unrelated", "healthy", "shadows", "unshown"))


@dataclass(frozen=True, slots=True)
class Asked:
    """How to learn. paths: the incident's log, where it is elsewhere now; pattern: a person's own; cites: such as E4."""

    paths: Sequence[str] = ()
    pattern: str = ""
    cites: str = ""
    keep: bool = True


@dataclass(frozen=True, slots=True)
class Learnt:
    """What came of an outcome.

    signature: as stored, or as found when nothing is kept; covered: there was nothing to learn; moved: known ones that the
    outcome put in force or retired.
    """

    check: RuleCheck
    signature: LearnedSignature | None = None
    covered: bool = False
    moved: tuple[LearnedSignature, ...] = ()
    notes: tuple[str, ...] = ()


def learn_from_outcome(
    incident: int, chosen: Settings, by: str, tell: Callable[[str], None] = lambda _text: None, asked: Asked = Asked()
) -> Learnt:
    """What the latest outcome of the incident teaches: of signatures that match it, and a new one where none covers it.

    The model of the settings is asked for the pattern, where there is one. Errors: NotFoundError; UsageError for an incident
    that has no outcome; StoreError.
    """
    with wiring.store(chosen) as incidents:
        latest = incidents.get(incident)
        spoken_of = latest.verdicts[-1].version if latest.verdicts else latest.version
        of = subject(incidents.get(incident, spoken_of), asked.cites)
    with opened(chosen.database_url) as store:
        mine = _replaceable(incident, asked, store)
        said = verdicts(of, (known for known in store.list() if known.id not in mine))
        moved = _settled(of, said, store, chosen) if asked.keep else ()
        if knows := next((name for name, verdict in said.items() if verdict == "confirmed"), ""):
            hint = "; retire it first to use a pattern of your own" if asked.pattern else ""
            return Learnt(RuleCheck(False, "covered", f"{knows} knows this failure{hint}"), covered=True, moved=moved)
        checker = Verifier(banks(chosen, store, mine))
        notes: list[str] = []
        model = wiring.model(chosen)
        tell("looking for a signature")
        lesson = signing.learn(
            of,
            checker,
            lambda: _log(of, asked.paths, chosen, notes),
            model.for_job(of.names) if model else None,
            asked.pattern,
        )
        notes += lesson.notes
        if lesson.signature is None or not asked.keep:
            return Learnt(lesson.check, lesson.signature, lesson.covered, moved, tuple(notes))
        expires = store.until(chosen.signature_days)
        stored = store.add(replace(lesson.signature, expires=expires), by)
        gone = (store.move(name, "retired", f"{stored.id} replaces it", by, "retire") for name in mine - {stored.id})
        moved = (*moved, *gone)
        return Learnt(lesson.check, _weighed(stored, of, store, chosen), False, moved, tuple(notes))


def _replaceable(incident: int, asked: Asked, store: SignatureStore) -> frozenset[str]:
    """The candidates of this incident, which a person's own pattern replaces."""
    if not asked.pattern:
        return frozenset()
    return frozenset(known.id for known in store.list(state="candidate") if known.incident == incident)


def _settled(
    of: Subject, said: Mapping[str, SignatureVerdict], store: SignatureStore, chosen: Settings
) -> tuple[LearnedSignature, ...]:
    """Counts what the outcome says of known signatures; those that it put in force or retired."""
    if not said:
        return ()
    store.judge(of.incident, said.items(), store.until(chosen.signature_days))
    moved = []
    for name, verdict in said.items():
        before = store.get(name)
        if verdict == "contradicted":
            reason = f"the outcome of incident {of.incident} contradicts it: {of.verdict}"
            moved.append(store.move(name, "retired", reason, of.who, "incident"))
        elif (after := _in_force(before, store, chosen)).state != before.state:
            moved.append(after)
    return tuple(moved)


def _weighed(signature: LearnedSignature, of: Subject, store: SignatureStore, chosen: Settings) -> LearnedSignature:
    """A new one with the word of its own incident."""
    store.judge(of.incident, [(signature.id, "confirmed")], signature.expires)
    return _in_force(store.get(signature.id), store, chosen)


def _in_force(signature: LearnedSignature, store: SignatureStore, chosen: Settings) -> LearnedSignature:
    """A candidate that enough incidents confirmed, and that verification still accepts, is put in force.

    Not one that a model wrote: what else its pattern matches no outcome tells.
    """
    if signature.state != "candidate" or signature.origin.by == "model":
        return signature
    if signature.confirmed < chosen.signature_confirmations:
        return signature
    if not again(signature, store, chosen).accepted:
        return signature
    named = ", ".join(str(incident) for incident, verdict in store.incidents(signature.id) if verdict == "confirmed")
    reason = f"confirmed by {how_many(signature.confirmed, 'incident')}: {named}"
    return store.move(signature.id, "active", reason, "triage", "confirm")


def again(signature: LearnedSignature, store: SignatureStore, chosen: Settings) -> RuleCheck:
    """Whether the signature may be adopted today: judged on the lines that it was learned from."""
    case = Case(signature.signature.failure_type, signature.origin.lines)
    return Verifier(banks(chosen, store)).check(signature.pattern, case, signature.id)


def demand(signature: LearnedSignature, result: RuleCheck, anyway: bool, reason: str) -> None:
    """Errors: UsageError, when the signature may not be put in force."""
    if result.accepted:
        return
    said = f"{signature.id} is refused: {result.reason}"
    if result.check in NEVER:
        raise UsageError(said, "no reason outweighs that")
    if not anyway or not reason:
        raise UsageError(said, "to use it all the same: --anyway --reason WHY")


def banks(chosen: Settings, store: SignatureStore, but: Collection[str] = ()) -> Banks:
    """All that is known here: what triage ships, and what was recorded. but: ids of learned signatures left out."""
    known = shipped.banks()
    recorded = store.cited_lines(healthy=True, roles=("root", "cascade", "context"))
    return replace(
        known,
        healthy=(*known.healthy, *recorded, *_good_lines(chosen)),
        decided=(*known.decided, *store.cited_lines(healthy=False, roles=("cascade", "context"))),
        causes=store.cited_lines(healthy=False, roles=("root",)),
        learned=tuple(known for known in store.list() if known.id not in but),
    )


def _good_lines(chosen: Settings) -> list[str]:
    """Of each kind of line that a recorded good run printed, one."""
    from triage.store.good_runs import GoodRunStore

    lines: list[str] = []
    with GoodRunStore.open(chosen.database_url) as store:
        for run in store.all():
            try:
                lines += [seen.text for seen in profile.from_json(run.profile).kinds.values()]
            except (ValueError, KeyError, TypeError):
                continue  # of another version
    return lines


def _log(of: Subject, paths: Sequence[str], chosen: Settings, notes: list[str]) -> JobLog | None:
    """The log of the incident, where it is still there and holds the lines that were cited; else why it is not used.

    Errors: InputError, UsageError, for paths that were given.
    """
    wanted = list(paths) or list(of.files)
    missed = "the signature was not tried on it"
    try:
        if not paths and sum(Path(path).stat().st_size for path in wanted) > MOST_READ:
            notes.append(f"the incident's log is large: {missed}; give its path to do so")
            return None
        log = pipeline.read(wanted, wiring.parts(chosen, lambda _text: None, record=False, similar=False))
    except (InputError, OSError):
        if paths:
            raise
        notes.append(f"the incident's log is not there any more: {missed}")
        return None
    texts = [line.text for file in log.files for line in file.lines]
    if all(any(cited.text in text for text in texts) for cited in of.roots):
        return log
    if paths:
        reason = f"{', '.join(paths)} is not the log of incident {of.incident}"
        raise UsageError(reason, "its cited lines are not in it")
    notes.append(f"the incident's log is another one now: {missed}")
    return None


def approve(name: str, reason: str, anyway: bool, by: str) -> LearnedSignature:
    """Puts it in force, verified again. Errors: NotFoundError, UsageError when it may not be."""
    chosen = wiring.settings()
    with opened(chosen.database_url) as store:
        found = store.get(name)
        if found.state == "active" and found.approved_by:
            return found
        if found.state == "retired" and found.reason and not reason:
            raise UsageError(f"{name} is retired: {found.reason}", "say why it is to be used: --reason WHY")
        result = again(found, store, chosen)
        demand(found, result, anyway, reason)
        why = "; ".join(part for part in (reason, "" if result.accepted else f"against: {result.reason}") if part)
        return store.move(name, "active", why or "verified again", by, "approve")


def tried(name: str, paths: Sequence[str], limit: int) -> Tried:
    """Which kept lines of the last run it matches. Errors: NotFoundError, InputError."""
    chosen = wiring.settings()
    with opened(chosen.database_url) as store:
        found = store.get(name)
        parts = wiring.parts(chosen, lambda _text: None, record=False, similar=False)
        known = replace(parts.knowledge, matcher=Matcher((*kb.signatures(), found.signature)))
        log = pipeline.read(paths, replace(parts, knowledge=known))
        search = compile_pattern(found.pattern).search
        taken = [line for file in log.files for line in file.lines if search(line.text)]
        result = again(found, store, chosen)
    if taken and result.accepted and judge(log, parts.knowledge).outcome == "healthy":
        result = RuleCheck(False, "healthy", "it matches lines of this log, of a run that went well")
    shown = tuple((line.file, line.number, line.text) for line in taken[:limit])
    return Tried(name, found.pattern, shown, sum(line.repeats for line in taken), result)
