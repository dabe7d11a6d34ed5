"""The sentences of a diagnosis: built from evidence, nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence

from triage.diagnose import memory
from triage.diagnose.candidates import Candidate
from triage.diagnose.facts import Facts, node_of, own_frame, rank_of
from triage.domain import Evidence, Suspects
from triage.evidence.collectives import Collectives
from triage.evidence.match import Finding
from triage.regex import compile_pattern
from triage.structured import readings
from triage.text import middle_cut, rank_ranges

QUOTE = 240
_READ = 4000  # characters of a line
_BARE = 6  # words: a line with fewer gives no reason
_FULL = 40
_LOOKED_AT = 6


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
    """The telling part of a line: from where the signature matched, at most QUOTE characters; cut in the middle."""
    patterns = [compile_pattern(p) for p in finding.signature.patterns]
    wrapped = (text for text in readings(finding.line.text) if any(p.search(text) for p in patterns))
    text = next(wrapped, finding.line.text)
    start = next((m.start() for p in patterns if (m := p.search(text))), 0)
    if len(text) - start < QUOTE // 2:
        start = max(0, min(start, len(text) - QUOTE))
    short = middle_cut(re.sub(r"\s+", " ", text[start : start + _READ]).strip(), QUOTE)
    return "`" + short.replace("`", "'") + "`"


def headline(roots: Sequence[Candidate]) -> Finding:
    """The line that says most of the cause: the first one, unless that is bare and another of the same event gives the reason."""
    first = roots[0].first
    if len(_words(first.line.text)) >= _BARE:
        return first
    others = [f for root in roots for f in root.findings[:_LOOKED_AT]]
    best = max(others, key=lambda f: min(len(_words(f.line.text)), _FULL), default=first)
    return best if len(_words(best.line.text)) >= 2 * len(_words(first.line.text)) else first


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Za-z]{3,}", text)


def root_sentence(
    root: Candidate, evidence: Sequence[Evidence], consequences: Sequence[str], said: Finding | None = None
) -> str:
    """What happened, where, in the words of the line, and what followed. said: the line to quote, one of the evidence."""
    where = who(root.findings)
    place = "," + where if where and ("," in root.signature.title or ";" in root.signature.title) else where
    chosen = said or root.first
    cited = next((e for e in evidence if (e.file, e.line) == (chosen.line.file, chosen.line.number)), None)
    if cited is None:
        chosen, cited = root.first, evidence[0]
    first = f"{_upper(_title(root))}{place}: {quote(chosen)} ({cited.file}:{cited.line})."
    return " ".join([first, *consequences])


def _title(root: Candidate) -> str:
    """The signature's; where that speaks of a RuntimeError and the line names another exception, that one."""
    raised = re.search(r"\b([A-Z]\w{2,60}(?:Error|Exception))\b", root.first.line.text)
    if raised and root.signature.id == "py.runtime-error" and raised[1] != "RuntimeError":
        return f"Python raised {raised[1]}, whose message names no better kind"
    return root.signature.title


def of_memory(root: Candidate) -> list[str]:
    """What the figures of an exhausted memory mean."""
    found = memory.read(root.first.line.text)
    said = memory.told(found) if found else ""
    return [said] if said else []


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


def lost(ranks: Sequence[int]) -> list[str]:
    """Of ranks that all others lost, and that say nothing of it themselves."""
    if not ranks:
        return []
    who = f"Rank {ranks[0]} tells" if len(ranks) == 1 else f"Ranks {rank_ranges(ranks)} tell"
    return [
        f"{who} of no lost peer, and of no error: look there, as the others lost {'it' if len(ranks) == 1 else 'them'}."
    ]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
