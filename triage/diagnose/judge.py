"""The deterministic judge: first cause, not loudest. Pure; knowledge comes in, a Diagnosis goes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from triage.diagnose import accounted, ended, flight, hang_story, ownwords, silence, story, wording
from triage.diagnose.candidates import Candidate
from triage.diagnose.cause_class import cause_class, common_to_all
from triage.diagnose.evidence_list import cite
from triage.diagnose.facts import Facts, gather, job_of, own_frame
from triage.diagnose.fingerprint import fingerprint
from triage.diagnose.made import OWN_CODE
from triage.diagnose.remedies import fetch_notes, remediation, to_fetch
from triage.diagnose.suspects import LOCAL_TYPES, NODE_TYPES, lost_by_all, suspects, taken_out
from triage.diagnose.verdict import Verdict, decide
from triage.domain import (
    Cascade,
    Diagnosis,
    Evidence,
    Hypothesis,
    JobLog,
    Run,
    Runbook,
    Runbooks,
    Suspects,
)
from triage.evidence.clocks import align
from triage.evidence.jobname import job_name, job_user
from triage.evidence.match import Finding, Matcher
from triage.evidence.progress import progress
from triage.taxonomy import Taxonomy
from triage.text import FOLLOWED

POINTER_WEIGHT = 5  # context that only points elsewhere
MAX_HYPOTHESES = 4
_OPEN = frozenset({"hypothesis", "unknown"})  # statuses of a cause that is not settled
_AFTER = {"hang": "kill-and-restart", "done": "none"}  # actions, by what came before the end


@dataclass(frozen=True, slots=True)
class Knowledge:
    taxonomy: Taxonomy
    matcher: Matcher
    cascades: tuple[Cascade, ...]
    runbooks: Runbooks


def judge(log: JobLog, knowledge: Knowledge) -> Diagnosis:
    """The rules' answer. Never raises on a log's content; says unknown when the log does not tell."""
    aligned = align(log)
    facts = gather(aligned.log, knowledge.matcher)
    verdict = decide(facts, knowledge.taxonomy, knowledge.cascades)
    result = _answer(facts, verdict, knowledge)
    job = job_of(facts, verdict.root.findings if verdict.root else ())
    result = replace(result, job=job, job_name=job_name(log.files), job_user=job_user(log.files))
    result = replace(result, stacks=facts.hang.scene.stacks)
    if verdict.root and not facts.collectives.waits and (but := hang_story.doubt(facts.hang, verdict.root.signature)):
        result = replace(result, status="hypothesis", root_cause=f"{result.root_cause} {but}")
    return story.complete(hang_story.with_py_spy(result, facts.hang), facts, aligned)


def _answer(facts: Facts, verdict: Verdict, knowledge: Knowledge) -> Diagnosis:
    context = _context(facts)
    if verdict.root is None:
        return _without_cause(facts, verdict, context, knowledge)
    same = verdict.same
    later = [
        e.effect for e in verdict.pairs if e.by is verdict.root and not e.rule.same_event and e.effect in verdict.rivals
    ]
    frame = own_frame(facts, verdict.root.first)
    if frame is not None:
        context = [Finding(frame.log_line, OWN_CODE), *context]
    kin = [c for c in verdict.rivals if _is_kin(c, verdict.root) and c not in (*same, *later)]
    evidence = cite(
        facts, (verdict.root, *same, *kin, *_of_culprits(facts, verdict)), [*later, *verdict.cascade], context
    )
    return _with_cause(facts, verdict, evidence, knowledge)


def _of_culprits(facts: Facts, verdict: Verdict) -> list[Candidate]:
    """What else was seen of the processes that the others wait for."""
    if verdict.root is None or verdict.root.signature.outcome != "hung":
        return []
    found = suspects(facts, verdict.root, (*verdict.cascade, *verdict.rivals))
    return [Candidate(f.signature, (f,)) for f in facts.hang.about(found.pids, found.ranks)]


def _is_kin(other: Candidate, root: Candidate) -> bool:
    """Is it the same failure in the words of another part: the program's beside its kernel's?"""
    return other.failure_type == root.failure_type and other.signature.component != root.signature.component


def _context(facts: Facts) -> list[Finding]:
    """One finding of each context signature, the most telling first; frames of the cause are added by _with_cause."""
    found: dict[str, Finding] = {}
    for f in facts.findings:
        if f.signature.role == "context" and f.signature.weight > POINTER_WEIGHT and not facts.handled(f):
            found.setdefault(f.signature.id, f)
    return sorted(found.values(), key=lambda f: -f.signature.weight)


def _with_cause(facts: Facts, verdict: Verdict, evidence: list[Evidence], knowledge: Knowledge) -> Diagnosis:
    root = verdict.root
    if root is None:
        raise ValueError("no cause")
    chain = tuple(e.id for e in evidence if e.role in ("root", "cascade"))
    signature = root.signature
    found = suspects(facts, root, (*verdict.cascade, *verdict.rivals))
    book = knowledge.runbooks.of[root.failure_type]
    reached = progress(facts.log.files, facts.steps, root.first.line)
    before = ended.before_the_end(facts, root)
    action = _AFTER.get(before.kind if before else "") or _action(facts, root, found, book)
    action = "wait" if hang_story.may_be_meant(facts.hang, signature) and not facts.collectives.waits else action
    quoted = wording.headline((root, *verdict.same))
    own_file = next(f for f in facts.log.files if f.name == quoted.line.file)
    told = [
        *ownwords.reason_told(quoted, own_file.lines),
        *accounted.who_cancelled(root.failure_type, facts.log),
        *wording.of_memory(root),
        *wording.own_code(facts, root),
        *([before.said] if before else []),
        *_consequences(verdict),
        *wording.hang_story(facts.collectives, found),
        *wording.lost(lost_by_all(facts, root)),
        *flight.told(facts.flight),
        *(
            hang_story.told(facts.hang, facts.log, root.signature, _gpu_at_fault(facts))
            if found.pids or root.signature.id in hang_story.SAID
            else []
        ),
    ]
    sentence = wording.root_sentence(root, evidence, told, quoted)
    return Diagnosis(
        outcome=verdict.outcome,
        failure_type=root.failure_type,
        category=knowledge.taxonomy.category(root.failure_type),
        root_cause_class=cause_class(facts, root),
        status=verdict.status,
        root_cause=sentence,
        action=action,
        evidence=tuple(evidence),
        chain=chain,
        hypotheses=_hypotheses(verdict, evidence, sentence),
        suspects=found,
        remediation=remediation(facts, root, evidence, knowledge.runbooks, action, found, verdict.status, reached),
        runs=_runs(facts.log),
        progress=reached,
        missing=(
            *_unread(facts),
            *(fetch_notes(facts, root, book, found, reached) if verdict.status in _OPEN else ()),
        ),
        files=tuple(f.name for f in facts.log.files),
        fingerprint=signature.fingerprint
        or fingerprint(root.failure_type, signature.id, root.first.line.text, (*found.nodes, evidence[0].node or "")),
    )


def _gpu_at_fault(facts: Facts) -> bool:
    return any(
        f.signature.id.startswith(("xid.", "sxid.")) or f.signature.failure_type in NODE_TYPES for f in facts.findings
    )


def _consequences(verdict: Verdict) -> list[str]:
    if verdict.root is None or not verdict.cascade:
        return []
    later = [c for c in verdict.cascade if c is not verdict.root]
    if not later:
        return []
    telling = [c for c in later if c.failure_type != "unknown"] or later[:1]
    titles = list(dict.fromkeys(c.signature.title for c in telling))[:2]
    return [f"{FOLLOWED}{'; '.join(titles)}."]


def _action(facts: Facts, root: Candidate, found: Suspects, book: Runbook) -> str:
    if common_to_all(facts, root):
        return "fix-and-resubmit"
    if found.nodes and taken_out(facts, root, found.ranks) == found.nodes:
        return "restart-excluding"
    if root.signature.action and not root.signature.node_fault:
        return root.signature.action
    if book.action == "restart-excluding" and not found.nodes:
        return "restart" if root.failure_type in ("node-failure", "network-error") else book.action
    if root.signature.node_fault and book.action not in ("restart-excluding", "escalate"):
        return "restart-excluding" if found.nodes else "escalate"
    if found.nodes and root.failure_type in LOCAL_TYPES and root.signature.component == "slurm":
        return "restart-excluding"  # what the job asks for is there on the other nodes
    return root.signature.action or book.action


def _hypotheses(verdict: Verdict, evidence: Sequence[Evidence], sentence: str) -> tuple[Hypothesis, ...]:
    out: list[Hypothesis] = []
    shown: set[str] = set()
    for i, candidate in enumerate((verdict.root, *verdict.rivals)):
        if candidate is None or candidate.failure_type in shown or len(out) == MAX_HYPOTHESES:
            continue
        shown.add(candidate.failure_type)
        by = [e for e in verdict.pairs if e.effect is candidate]
        support = tuple(e.id for e in evidence if e.failure_type == candidate.failure_type)
        against = tuple(e.id for e in evidence if i and e.role == "root" and e.failure_type != candidate.failure_type)
        text = (
            sentence
            if i == 0
            else f"{candidate.signature.title} ({candidate.first.line.file}:{candidate.first.line.number})"
        )
        if i and by:
            text += f"; more likely a consequence: {by[0].why}"
        out.append(
            Hypothesis(
                failure_type=candidate.failure_type,
                root_cause_class=candidate.signature.root_cause_class,
                root_cause=text,
                status=verdict.status if i == 0 else "hypothesis",
                supporting=support,
                against=against,
                check=candidate.signature.check,
            )
        )
    return tuple(out)


def _without_cause(facts: Facts, verdict: Verdict, context: Sequence[Finding], knowledge: Knowledge) -> Diagnosis:
    """No line tells a cause: a healthy job, or one that ended badly and does not say why."""
    end = silence.ending(facts, verdict.cascade)
    kind = "healthy" if end.outcome == "healthy" else "unknown"
    kind = "hang" if end.outcome == "hung" else kind
    if end.outcome == "failed" and end.line is not None and end.status == "hypothesis":
        kind = end.line.signature.failure_type  # told by the words of the line that the log ends on
    book = knowledge.runbooks.of[kind]
    unseen = kind == "healthy" and end.status == "hypothesis"
    if unseen:  # what would show how it ended is what would show a failure
        book = replace(
            book, confirm=knowledge.runbooks.of["unknown"].confirm, fetch=knowledge.runbooks.of["unknown"].fetch
        )
    # The first visible sign of the failure is where reading starts, though it is no cause.
    sign = Candidate(end.line.signature, (end.line,)) if end.line is not None and kind != "healthy" else None
    shown = [*context, end.line] if end.line is not None and sign is None else context
    evidence = cite(facts, (sign,) if sign else (), verdict.cascade, shown)
    found = suspects(facts, None, ()) if end.outcome in ("failed", "hung") else Suspects()
    reached = progress(facts.log.files, facts.steps, None)
    steps, notes = (
        to_fetch(facts, book, knowledge.runbooks, found, reached) if unseen or kind != "healthy" else ((), ())
    )
    return Diagnosis(
        outcome=end.outcome,
        failure_type=kind,
        category=knowledge.taxonomy.category(kind),
        root_cause_class="none"
        if kind == "healthy"
        else end.line.signature.root_cause_class
        if end.line
        else "unknown",
        status=end.status,
        root_cause=end.sentence,
        suspects=found,
        action=book.action,
        evidence=tuple(evidence),
        chain=tuple(e.id for e in evidence if e.role in ("root", "cascade")),
        runs=_runs(facts.log),
        progress=reached,
        missing=(*_unread(facts), *(notes if end.status in _OPEN else ())),
        remediation=steps,
        files=tuple(f.name for f in facts.log.files),
    )


def _unread(facts: Facts) -> tuple[str, ...]:
    return (*facts.log.missing, *(f"{f.name}: {p}" for f in facts.log.files for p in f.problems))


def _runs(log: JobLog) -> tuple[Run, ...]:
    return tuple(run for file in log.files if len(file.runs) > 1 for run in file.runs)
