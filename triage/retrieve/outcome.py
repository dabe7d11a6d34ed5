"""What became of a past incident, as a weight of its likeness and in words. Pure.

A weight w turns a likeness s into 1 - (1 - s)^w: it stays within 0..1, 1 changes nothing, and what is not alike at all
is not made so by any outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from triage.domain import Misled, Recorded

# Weights, chosen on the dev half of eval/retrieval/pairs.yaml; those of one line differ little there.
_WORKED, _CONFIRMED, _CORRECTED, _UNTOLD = 1.25, 1.2, 1.2, 1.0
_DID_NOT_WORK, _REJECTED, _MISLED = 0.9, 0.3, 0.6
OLDEST = 0.6  # of the weight is left to an incident however old it is: a rare failure has no younger precedent
_MOST_WORDS = 160  # characters of a person's own words within a reason


def weighted(score: float, weight: float) -> float:
    return float(1 - (1 - score) ** weight)


def weight(recorded: Recorded, now: datetime, half_life: float, misled: bool = False) -> float:
    """half_life: days after which half of what age takes is gone."""
    return _of_verdict(recorded) * _freshness(recorded.past.at, now, half_life) * (_MISLED if misled else 1.0)


def tells(recorded: Recorded) -> int:
    """How much is known of what became of it, as a rank among incidents of one fingerprint."""
    if recorded.past.verdict in ("none", "rejected"):
        return 0
    return {"yes": 3, "no": 1}.get(recorded.worked, 2)


def weight_known(misled: bool) -> float:
    """Of an incident of the knowledge base, which was chosen because it does not age."""
    return _MISLED if misled else 1.0


def _of_verdict(recorded: Recorded) -> float:
    if recorded.past.verdict == "rejected":
        return _REJECTED
    if recorded.worked == "yes":
        return _WORKED
    if recorded.worked == "no":
        return _DID_NOT_WORK
    return {"confirmed": _CONFIRMED, "corrected": _CORRECTED}.get(recorded.past.verdict, _UNTOLD)


def _freshness(at: datetime, now: datetime, half_life: float) -> float:
    days = max(0.0, (now - at).total_seconds() / 86400)
    return float(OLDEST + (1 - OLDEST) * 0.5 ** (days / half_life))


def warnings(recorded: Recorded) -> Iterator[str]:
    """What keeps the reader from taking it for the same."""
    said = f" ({short(recorded.note)})" if recorded.note else ""
    if recorded.past.verdict == "rejected":
        yield f"looked the same but was not: that diagnosis was rejected{said}"
    elif recorded.past.verdict == "corrected":
        yield _otherwise(recorded)
    failed = (recorded.fix,) if recorded.worked == "no" and recorded.fix else ()
    for fix in (*failed, *recorded.in_vain):
        yield f"the fix tried then did not work: {short(fix)}"


def _otherwise(recorded: Recorded) -> str:
    """What was corrected: the type, the cause, the class, or several of them."""
    if recorded.said_type:
        truly = short(recorded.cause) or recorded.story.failure_type
        return f"was first taken for {recorded.said_type} but turned out to be {truly}"
    truly = short(recorded.cause) or f"of class {recorded.story.root_cause_class}"
    return f"its cause turned out another than was diagnosed: {truly}"


def misled_words(misled: Misled) -> str:
    return (
        f"looked the same but was not: it was shown beside incident {misled.incident}, of which the diagnosis was wrong"
    )


def notes(recorded: Recorded, times: int, last: datetime) -> Iterator[str]:
    """What speaks for it besides its likeness. times, last: of all incidents of its fingerprint."""
    if recorded.worked == "yes" and recorded.told_at:
        yield f"the fix worked on {recorded.told_at:%Y-%m-%d}" + (f": {short(recorded.fix)}" if recorded.fix else "")
    elif recorded.past.verdict == "confirmed" and recorded.told_at:
        yield f"diagnosis confirmed on {recorded.told_at:%Y-%m-%d}"
    yield f"seen {times} times, last on {last:%Y-%m-%d}" if times > 1 else f"seen on {last:%Y-%m-%d}"


def short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_WORDS else line[: _MOST_WORDS - 1].rstrip() + "…"
