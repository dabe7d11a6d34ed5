"""Which lines a diagnosis cites, numbered E1.. in the order of the chain: cause, then consequences, then context."""

from __future__ import annotations

from collections.abc import Sequence

from triage.diagnose.candidates import Candidate
from triage.diagnose.facts import Facts, node_of, rank_of
from triage.diagnose.suspects import telling
from triage.domain import Evidence, Role
from triage.evidence.decode import explain
from triage.evidence.match import Finding
from triage.regex import compile_pattern
from triage.text import excerpt

MAX_ROOT = 6  # lines of the cause itself, one a rank
MAX_CASCADE = 8
MAX_CONTEXT = 6


def cite(
    facts: Facts, roots: Sequence[Candidate], cascade: Sequence[Candidate], context: Sequence[Finding]
) -> list[Evidence]:
    """Evidence in order; ids are E1, E2, ... roots: the cause, and other lines of the same event."""
    files = {f.name: f for f in facts.log.files}
    cited: list[Evidence] = []

    def add(finding: Finding, role: Role, repeats: int, ranks: tuple[int, ...]) -> None:
        if any((e.file, e.line) == (finding.line.file, finding.line.number) for e in cited):
            return
        file = files.get(finding.line.file)
        place = (finding.line.file, finding.line.number)
        rank = rank_of(finding, file)
        cited.append(
            Evidence(
                id=f"E{len(cited) + 1}",
                file=finding.line.file,
                line=finding.line.number,
                text=excerpt(finding.line.text, _span(finding)),
                role=role,
                failure_type=finding.signature.failure_type,
                title=_title(finding),
                signature=finding.signature.id,
                rank=facts.pod_ranks.get(place) if rank is None else rank,
                node=node_of(finding, file) or facts.pods_on.get(place),
                gpu=finding.groups.get("gpu") or finding.line.gpu,
                time=finding.line.time,
                repeats=repeats,
                ranks=ranks,
            )
        )

    for root in roots:
        firsts = telling(root.findings)[:MAX_ROOT]
        for i, finding in enumerate(firsts):
            rest = () if i else root.findings
            add(finding, "root", sum(f.line.repeats for f in rest) or finding.line.repeats, _ranks(rest or (finding,)))
    for candidate in sorted(cascade, key=lambda c: (c.first.line.file, c.first.line.number))[:MAX_CASCADE]:
        add(candidate.first, "cascade", sum(f.line.repeats for f in candidate.findings), _ranks(candidate.findings))
    for finding in context[:MAX_CONTEXT]:
        add(finding, "context", finding.line.repeats, _ranks((finding,)))
    return cited


def _title(finding: Finding) -> str:
    """What the line means, with what its codes stand for."""
    meaning = explain(finding.line.text)
    return f"{finding.signature.title} ({meaning})" if meaning else finding.signature.title


def _ranks(findings: Sequence[Finding]) -> tuple[int, ...]:
    found = {r for f in findings if (r := rank_of(f)) is not None} | {r for f in findings for r in f.line.ranks}
    return tuple(sorted(found))


def _span(finding: Finding) -> tuple[int, int] | None:
    for pattern in finding.signature.patterns:
        match = compile_pattern(pattern).search(finding.line.text)
        if match:
            return (match.start(), match.end())
    return None
