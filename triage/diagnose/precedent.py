"""What fixed it last time: a step from a recorded incident of the same fingerprint whose fix worked. Pure."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

from triage.domain import Diagnosis, Remedy, Similar

# A person wrote the fix; words that tell of what cannot be taken back.
_FINAL = re.compile(
    r"(?i)\b(?:rm|delet\w*|remov\w*|wip\w*|eras\w*|purg\w*|format\w*|mkfs|re-?imag\w*|drop\w*|kill\w*)\b"
)


def with_precedent(result: Diagnosis) -> Diagnosis:
    """After the steps that only look, before those that change something."""
    best = next((s for s in result.similar if _worked(s)), None)
    if best is None:
        return result
    looking = list(itertools.takewhile(lambda step: step.risk == "read-only", result.remediation))
    fix = " ".join(best.fix.split())
    # A signature that was learned from that incident says so too.
    rest = [step for step in result.remediation[len(looking) :] if not step.step.endswith(f": {fix}")]
    return replace(result, remediation=(*looking, _step(result, best), *rest))


def _worked(similar: Similar) -> bool:
    told = similar.worked == "yes" and similar.outcome != "rejected"
    return similar.same_fingerprint and told and bool(similar.fix.strip())


def _step(result: Diagnosis, similar: Similar) -> Remedy:
    on = f" on {similar.told_at:%Y-%m-%d}" if similar.told_at else ""
    return Remedy(
        f"Do what fixed it last time: {' '.join(similar.fix.split())}",
        f"incident {similar.incident} failed in the same way, and this was said to have worked{on}",
        "destructive" if _FINAL.search(similar.fix) else "reversible",
        evidence=result.chain[:1],
        incidents=(similar.incident,),
    )
