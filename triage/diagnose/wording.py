"""The sentences of a diagnosis: built from evidence, nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triage.diagnose.candidates import Candidate
from triage.diagnose.facts import Facts, node_of, own_frame, rank_of
from triage.domain import Evidence, Suspects
from triage.evidence.collectives import Collectives
from triage.evidence.match import Finding
from triage.regex import compile_pattern
from triage.text import excerpt, rank_ranges

QUOTE = 240


def who(findings: Sequence[Finding]) -> str:
    """ " on rank 3 (gpu-12)", " on 8 ranks (0-7)" or ""."""
    ranks = sorted({r for f in findings if (r := rank_of(f)) is not None} | {r for f in findings for r in f.line.ranks})
    named = {f.groups["node"] for f in findings if "node" in f.groups}
    nodes = sorted(named or {n for f in findings if (n := node_of(f))})
    text = (
        f" on rank {ranks[0]}" if len(ranks) == 1 else f" on {len(ranks)} ranks ({rank_ranges(ranks)})" if ranks else ""
    )
    if len(nodes) == 1:
        text += f" ({nodes[0]})" if text else f" on {nodes[0]}"
    elif nodes:
        text += f" on {len(nodes)} nodes"
    return text


def quote(finding: Finding) -> str:
    """The telling part of a line: from where the signature matched, at most QUOTE characters."""
    text = finding.line.text
    start = next((m.start() for p in finding.signature.patterns if (m := compile_pattern(p).search(text))), 0)
    if len(text) - start < QUOTE // 2:
        start = max(0, min(start, len(text) - QUOTE))
    short = re.sub(r"\s+", " ", excerpt(text[start:], limit=QUOTE)).strip()
    return "`" + short.replace("`", "'") + "`"


def root_sentence(root: Candidate, evidence: Evidence, consequences: Sequence[str]) -> str:
    """What happened, where, in the words of the line, and what followed."""
    where = who(root.findings)
    place = "," + where if where and ("," in root.signature.title or ";" in root.signature.title) else where
    first = f"{_upper(root.signature.title)}{place}: {quote(root.first)} ({evidence.file}:{evidence.line})."
    return " ".join([first, *consequences])


def own_code(facts: Facts, root: Candidate) -> list[str]:
    """Which line of the program's own code it was."""
    frame = own_frame(facts, root.first)
    if frame is None:
        return []
    source = f": `{frame.source[:QUOTE]}`" if frame.source else ""
    within = f" in {frame.function}" if frame.function and frame.function != "<module>" else ""
    return [f"It came from {frame.file}, line {frame.line}{within}{source}."]


def hang_story(state: Collectives, found: Suspects) -> list[str]:
    """Since when ranks waited, and for whom."""
    if not state.waits:
        return []
    told = []
    if state.began:
        told.append(f"The wait began about {state.began:%Y-%m-%d %H:%M:%S}: look at that time, not at the report's.")
    waited = {w.rank for w in state.waits if w.rank is not None}
    silent = [r for r in found.ranks if r not in waited]
    if silent:
        told.append(f"Rank {rank_ranges(silent)} did not report a time-out: the others waited for it.")
    return told


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
