"""What flight-recorder dumps say, as findings of the judge. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from triage.diagnose.made import ABSENT, MISMATCH, STALLED
from triage.evidence.flight import Flight
from triage.evidence.match import Finding
from triage.text import rank_ranges


def findings(flight: Flight) -> Iterator[Finding]:
    """One for each culprit, on the line that shows it."""
    for wait in flight.apart:
        yield Finding(wait.line, MISMATCH, {"rank": str(wait.rank)})
    if flight.apart:
        return
    for rank, wait in flight.shown:
        yield Finding(wait.line, ABSENT if rank in flight.missing else STALLED, {"rank": str(rank)})


def told(flight: Flight) -> list[str]:
    """Who waits for whom, in sentences."""
    out = []
    for rank, wait in flight.shown[:1] if not flight.apart else ():
        name = (flight.groups or {}).get(wait.group, wait.group)
        if rank in flight.missing:
            out.append(
                f"Rank {wait.rank} waits in {wait.op} number {wait.seq} of {name}, which "
                f"{_ranks(flight.missing)} never entered{_undumped(flight)}."
            )
        else:
            out.append(
                f"{_ranks(flight.stalled).capitalize()} did not finish {wait.op} number {wait.seq} of {name}, which others of the group did."
            )
    return [*out, *([unread(flight)] if out and flight.unread else [])]


def unread(flight: Flight) -> str:
    """Of which ranks the dump tells nothing, in a sentence; "" where all were read."""
    of = _ranks(flight.unread)
    return (
        f"The dump{'s' if len(flight.unread) > 1 else ''} of {of} {'are' if len(flight.unread) > 1 else 'is'} cut off or damaged."
        if flight.unread
        else ""
    )


def _ranks(ranks: tuple[int, ...]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {rank_ranges(ranks)}"


def _undumped(flight: Flight) -> str:
    without = tuple(r for r in flight.missing if r in flight.absent)
    return f" (no dump of {_ranks(without)} is here)" if without else ""
