"""Counts over incidents as text, markdown and JSON; which nodes fail more often than their share of jobs explains. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from triage.chances import at_least, holm, wilson
from triage.store.stats import Group, NodeCount, Share, Stats
from triage.text import printable

SCHEMA = "triage.incident-stats/1"
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class Suspicious:
    """expected: failures that its share of the jobs explains; chance: of so many or more, corrected for the number of nodes asked."""

    node: str
    failures: int
    jobs: int
    expected: float
    chance: float


def suspicious(nodes: Sequence[NodeCount]) -> tuple[Suspicious, ...]:
    """Nodes that are suspects more often than chance lets them be, were all failures spread as the jobs are.

    Exact: of all accusations, one falls on a node with the chance of its share of all runs of a job on a node (the test of
    two Poisson rates). Holm's correction over all nodes with an accusation. A node that fails often makes the others look
    better, never worse.
    """
    accused = [n for n in nodes if n.failures]
    failures, runs = sum(n.failures for n in accused), sum(n.jobs for n in nodes)
    chances = holm([at_least(n.failures, failures, n.jobs / runs) for n in accused])
    found = [
        Suspicious(n.node, n.failures, n.jobs, failures * n.jobs / runs, chance)
        for n, chance in zip(accused, chances, strict=True)
        if chance < ALPHA
    ]
    return tuple(sorted(found, key=lambda s: (s.chance, s.node)))


def as_json(s: Stats) -> dict[str, Any]:
    groups = {
        "by_outcome": s.outcomes,
        "by_type": s.types,
        "by_class": s.classes,
        "by_user": s.owners,
        "by_week": s.weeks,
    }
    seconds = {"n": s.timed, "median": s.median, "p95": s.most}
    return {
        "schema": SCHEMA,
        "jobs": s.jobs,
        "incidents": _incidents(s),
        "attempts": s.attempts,
        "gpu_hours_lost": _hours(s),
        **{name: [dataclasses.asdict(g) for g in found] for name, found in groups.items()},
        "by_node": [dataclasses.asdict(n) for n in s.nodes if n.failures],
        "nodes": {
            "jobs_with_nodes": s.named,
            "healthy_with_nodes": s.well_named,
            "unusual": [dataclasses.asdict(n) for n in suspicious(s.nodes)] if s.well_named else None,
        },
        "seconds_to_diagnose": seconds,
        "resolved_with_no_human": _share(s.no_human),
        "accuracy": {
            "confirmed": _share(s.confirmed),
            "failure_type": _share(s.type_right),
            "root_cause_class": _share(s.class_right),
            "confirmed_by_status": {name: _share(share) for name, share in s.by_status.items()},
        },
    }


def _share(share: Share) -> dict[str, Any]:
    """share and interval are null where nothing was counted."""
    if not share.n:
        return {"k": 0, "n": 0, "share": None, "low": None, "high": None}
    low, high = wilson(share.k / share.n, share.n)
    return {"k": share.k, "n": share.n, "share": share.k / share.n, "low": low, "high": high}


def render(s: Stats, top: int, markdown: bool) -> str:
    return "\n".join(_lines(s, top, _Table(markdown))).rstrip() + "\n"


def _lines(s: Stats, top: int, table: _Table) -> Iterator[str]:
    lost = _hours(s)
    told = f", {lost:,.1f} GPU-hours lost" if lost is not None else ""
    yield f"{_incidents(s):,} incidents among {s.jobs:,} diagnosed jobs ({s.attempts:,} runs){told}"
    yield ""
    for title, groups in (
        ("Outcome", s.outcomes),
        ("Failure type", s.types),
        ("Cause class", s.classes),
        ("User", tuple(g for g in s.owners if g.name)),
    ):
        yield from table.of(title, ("incidents", "GPU-hours"), [_row(g) for g in groups], top)
    yield from table.of("Week from", ("incidents", "GPU-hours"), [_row(g) for g in s.weeks[-top:]], top)
    accused = [(n.node, str(n.failures), str(n.jobs)) for n in s.nodes if n.failures]
    yield from table.of("Suspect node", ("incidents", "jobs"), accused, top)
    yield from _unusual(s, table, top)
    yield from table.of("How right", ("", "of", "95 % interval"), list(_rights(s)), top + 9)
    if s.median is not None and s.most is not None:
        yield f"Time to diagnose: {s.median:.1f} s for half, {s.most:.1f} s for 95 % of {s.timed:,} diagnoses"


def _unusual(s: Stats, table: _Table, top: int) -> Iterator[str]:
    if not any(n.failures for n in s.nodes):
        return
    if not s.well_named:
        yield "Which nodes fail too often is not known: no recorded job that went well names its nodes."
        yield ""
        return
    found = suspicious(s.nodes)
    rows = [(n.node, str(n.failures), f"{n.expected:.1f}", str(n.jobs), _chance(n.chance)) for n in found]
    yield from table.of("Fails too often", ("incidents", "expected", "jobs", "chance"), rows, top)
    about = f"{s.named:,} of {s.jobs:,} jobs name their nodes, {s.well_named:,} of them went well"
    if not found:
        yield f"No node fails more often than its jobs explain ({about})."
    else:
        yield f"Expected by the share of jobs that ran there ({about}); chance: of so many by accident, corrected for all nodes."
    yield ""


def _rights(s: Stats) -> Iterator[tuple[str, ...]]:
    """Only what was counted."""
    shares = [
        ("diagnosis confirmed", s.confirmed),
        ("failure type right", s.type_right),
        ("cause class right", s.class_right),
    ]
    shares += [(f"confirmed, of those {name}", share) for name, share in sorted(s.by_status.items())]
    shares += [("fixed with no human, of those fixed", s.no_human)]
    for name, share in shares:
        if share.n:
            low, high = wilson(share.k / share.n, share.n)
            yield name, f"{share.k / share.n:.1%}", f"{share.n:,}", f"{low:.1%} to {high:.1%}"


def _row(g: Group) -> tuple[str, str, str]:
    return g.name, f"{g.incidents:,}", "" if g.gpu_hours is None else f"{g.gpu_hours:,.1f}"


def _incidents(s: Stats) -> int:
    return sum(g.incidents for g in s.outcomes if g.name != "healthy")


def _hours(s: Stats) -> float | None:
    known = [g.gpu_hours for g in s.types if g.gpu_hours is not None]
    return sum(known) if known else None


def _chance(chance: float) -> str:
    return f"{chance:.3f}" if chance >= 0.001 else f"{chance:.0e}"


class _Table:
    """A table with a name column; as markdown or as text."""

    def __init__(self, markdown: bool) -> None:
        self._markdown = markdown

    def of(self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]], top: int) -> Iterator[str]:
        if not rows:
            return
        shown = [[printable(cell) for cell in row] for row in rows[:top]]
        yield from self._marked(title, head, shown) if self._markdown else self._plain(title, head, shown)
        if len(rows) > top:
            yield f"... and {len(rows) - top} more" if not self._markdown else f"\n... and {len(rows) - top} more"
        yield ""

    def _marked(self, title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
        yield f"| {' | '.join((title, *head))} |"
        yield "|---|" + "---:|" * len(head)
        for row in rows:
            yield f"| {' | '.join(''.join(chr(92) + c if c in '|`*_[]<>' + chr(92) else c for c in cell) for cell in row)} |"

    def _plain(self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
        whole = [(title, *head), *rows]
        widths = [max(len(row[i]) for row in whole) for i in range(len(head) + 1)]
        for row in whole:
            cells = (row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True)))
            yield "  ".join(cells).rstrip()
