"""Findings of a node's own log against that node's failure in the job's log: cause, lone sign, or context. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from triage.diagnose.candidates import Candidate, Explained
from triage.diagnose.facts import Facts, node_of
from triage.domain import Diagnosis, Evidence, Status
from triage.evidence.match import Finding
from triage.evidence.timeline import Failure, Join, host_of, join, joined, same_host

TOO_LATE = timedelta(seconds=90)  # after all that it is said to have brought about
_RAISED: dict[Status, Status] = {"supported": "established", "hypothesis": "supported"}


@dataclass(frozen=True, slots=True)
class Joined:
    """said: what the join means, which `place` begins."""

    kind: Join
    said: str = ""
    place: str = ""


def outside_last(facts: Facts, ranked: Sequence[Candidate], pairs: Sequence[Explained]) -> list[Candidate]:
    """Causes from the likeliest down, those of a node's own log behind the job's own errors where these came at another
    time and are no consequence of them."""
    later = [c for c in ranked if _is_context(facts, c, ranked, pairs)]
    return [*(c for c in ranked if c not in later), *later]


def _is_context(facts: Facts, candidate: Candidate, ranked: Sequence[Candidate], pairs: Sequence[Explained]) -> bool:
    if not all(f.line.file in facts.node_files for f in candidate.findings):
        return False
    led = {e.effect.signature.id for e in pairs if e.by is candidate}
    own = [c for c in ranked if c.signature.id not in led and c.first.line.file not in facts.system_files]
    return bool(own) and all(_of(facts, f).kind == "outside" for f in candidate.findings)


def too_late(facts: Facts, pair: Explained) -> bool:
    """Does a node's own log report the cause only when the effect was long there? Then it did not bring it about."""
    times = [f.line.time for f in pair.by.findings]
    seen = [f.line.time for f in pair.effect.findings if f.line.file not in facts.node_files]
    if not all(f.line.file in facts.node_files for f in pair.by.findings) or not seen:
        return False
    told, effects = [t for t in times if t], [t for t in seen if t]
    return len(told) == len(times) and len(effects) == len(seen) and min(told) - max(effects) > TOO_LATE


def apply(result: Diagnosis, facts: Facts, guessed: Mapping[str, str]) -> tuple[Diagnosis, tuple[str, ...]]:
    """The status that the join gives, and each join in words. guessed: files whose time zone is only a guess, with what is said of it."""
    roots = [e for e in result.evidence if e.role == "root" and e.file in facts.node_files]
    found = [_of(facts, f, e.id) for e in roots if (f := _finding(facts, e)) is not None]
    if not found or result.evidence[0].file not in facts.node_files:
        return result, _said(found)
    kinds = {j.kind for j in found}
    status = result.status
    if "cause" in kinds:
        status = _RAISED.get(status, status)
    elif kinds <= {"alone", "outside"} and status == "established":
        status = "supported"
    if (said := guessed.get(result.evidence[0].file)) is not None:
        status = "supported" if status == "established" else status
        result = replace(result, root_cause=f"{result.root_cause} {said[:1].upper()}{said[1:]}.")
    return _with_status(result, status), _said(found)


def _said(found: Sequence[Joined]) -> tuple[str, ...]:
    """Each sentence once, with all the places that it holds for."""
    places: dict[str, list[str]] = {}
    for one in found:
        if one.said:
            places.setdefault(one.said.removeprefix(one.place), []).append(one.place)
    return tuple(f"{', '.join(named)}{rest}" for rest, named in places.items())


def _with_status(result: Diagnosis, status: Status) -> Diagnosis:
    first = tuple(replace(h, status=status) for h in result.hypotheses[:1])
    return replace(result, status=status, hypotheses=(*first, *result.hypotheses[1:]))


def _finding(facts: Facts, evidence: Evidence) -> Finding | None:
    place = (evidence.file, evidence.line)
    return next((f for f in facts.findings if (f.line.file, f.line.number) == place), None)


def _of(facts: Facts, finding: Finding, name: str = "") -> Joined:
    files = {f.name: f for f in facts.log.files}
    file = files[finding.line.file]
    host = host_of(finding.line, file, {}) or node_of(finding, file)
    failures = _failures(facts)
    nodes = {f.host for f in failures if f.host} | set(facts.nodes_of_ranks.values())
    kind = join(finding.line.time, host, failures, facts.collectives.began, len(nodes))
    here = [f for f in failures if same_host(f.host, host) or f.host is None]
    place = name or "a line"
    return Joined(kind, joined(kind, place, file, min(here, key=lambda f: f.time, default=None)), place)


def _failures(facts: Facts) -> list[Failure]:
    """The dated lines of the job's own log in which something failed."""
    files = {f.name: f for f in facts.log.files}
    return [
        Failure(
            f.line.time, node_of(f, None) or host_of(f.line, files[f.line.file], dict(facts.nodes_of_ranks)), f.line
        )
        for f in facts.findings
        if f.line.time
        and f.signature.role in ("root", "cascade")
        and f.line.file not in facts.system_files
        and not facts.handled(f)
    ]
