"""What the collective watchdogs of all ranks say together: who waited for whom, since when, and in which collective.

Rules of the field: the ranks that report a time-out are those that waited. A rank that did not report, or that enqueued
less than the others, never reached the collective. Same sequence number with another operation or size: the ranks run
different code. So do ranks whose numbers differ by two or more in collectives that need every rank's part: none of them
completes before all have begun it. The wait began when the report was made, less the time it says it ran.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from triage.domain import LogLine

_WAIT = re.compile(
    r"(?:\[Rank (?P<rank>\d{1,6})\]|Rank (?P<rank2>\d{1,6})\])?.{0,200}?Watchdog caught collective operation timeout: "
    r"Work(?:NCCL|HCCL|XCCL)?\(SeqNum=(?P<seq>\d{1,20}), OpType=(?P<op>\w+)(?:, NumelIn=(?P<n_in>\d{1,20}), NumelOut=(?P<n_out>\d{1,20}))?"
    r"(?:, TensorShape=(?P<shape>\[[\d, ]*\]))?.{0,60}?Timeout\(ms\)=(?P<limit>\d{1,20})\)(?: ran for (?P<ran>\d{1,20}) milliseconds)?"
)
_GROUP = re.compile(r"PG (?:ID \d{1,20} )?(?:PG )?GUID (?P<guid>\w+)")
_STATUS = re.compile(
    r"last enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,20}), last completed (?:NCCL )?work: (?P<completed>-?\d{1,20})"
)
_RANK = re.compile(r"\[?[Rr]ank\s?(\d{1,6})\]")
_PRINT = re.compile(
    r"Rank (\d{1,6}) is running collective: CollectiveFingerPrint\((?:SequenceNumber=(\d{1,20}),? ?)?OpType=(\w+)(?:, TensorShape=(\[[\d, ]*\]))?"
)
# Their sizes may differ between ranks by design, or their numbers count something else.
_UNEVEN = frozenset({"SEND", "RECV", "COALESCED", "ALLTOALL", "ALLTOALL_BASE", "GATHER", "SCATTER", "UNKNOWN"})
_NEED_ALL = frozenset(
    {"ALLREDUCE", "ALLGATHER", "ALLGATHER_BASE", "REDUCE_SCATTER", "REDUCE_SCATTER_BASE", "BARRIER"}
)  # no rank has their result before every rank has begun
_SURELY_APART = 2  # a rank that is one behind may have begun what the others finished
_ONE_GROUP = 64  # numbers of a group that is not named are farther apart where it is several
MINORITY = 0.5  # at most this share of the ranks may be the odd ones


@dataclass(frozen=True, slots=True)
class Wait:
    """One rank's report that a collective did not finish. limit and ran in milliseconds."""

    line: LogLine
    rank: int | None
    group: str
    seq: int
    op: str
    size: str
    ran: int | None
    resized: bool = False  # of an odd one: it is the operation that most wait in, with another size

    @property
    def began(self) -> datetime | None:
        if self.line.time is None or self.ran is None:
            return None
        return self.line.time - timedelta(milliseconds=self.ran)


@dataclass(frozen=True, slots=True)
class Collectives:
    waits: tuple[Wait, ...]
    began: datetime | None  # the earliest wait
    odd: tuple[Wait, ...]  # waits in another collective than most ranks' at the same place
    lagging: tuple[int, ...]  # ranks that enqueued less than the others, or wait in an earlier collective
    uneven: tuple[Wait, ...] = ()  # waits of the few ranks that made fewer or more calls than the others
    apart: tuple[int, ...] = ()  # ranks whose fingerprints show another collective than most ranks'


def analyse(lines: Iterable[LogLine]) -> Collectives:
    """Of lines that hold a watchdog's text; others are passed over."""
    waits: dict[tuple[int | None, str], Wait] = {}
    status: dict[int, int] = {}
    prints: dict[str, dict[int, tuple[str, str]]] = defaultdict(dict)
    for line in lines:
        if "FingerPrint" in line.text:
            for rank, seq, op, shape in _PRINT.findall(line.text):
                prints[seq][int(rank)] = (op, shape)
        wait = _wait(line)
        if wait is not None:
            waits.setdefault((wait.rank, wait.group), wait)
        state = _STATUS.search(line.text)
        rank = rank_of(line)
        if state and rank is not None:
            status.setdefault(rank, int(state["enqueued"]))
    found = tuple(waits.values())
    starts = [w.began for w in found if w.began]
    behind = _lagging(status) or _behind(found)
    return Collectives(found, min(starts, default=None), _odd(found), behind, _uneven(found), _apart(prints))


def _wait(line: LogLine) -> Wait | None:
    match = _WAIT.search(line.text)
    if match is None:
        return None
    rank = match["rank"] or match["rank2"]
    group = _GROUP.search(line.text)
    return Wait(
        line=line,
        rank=int(rank) if rank else rank_of(line),
        group=group["guid"] if group else "",
        seq=int(match["seq"]),
        op=match["op"],
        size=match["shape"] or f"{match['n_in']}/{match['n_out']}",
        ran=int(match["ran"]) if match["ran"] else None,
    )


def rank_of(line: LogLine) -> int | None:
    if line.rank is not None:
        return line.rank
    named = _RANK.search(line.text)
    return int(named[1]) if named else None


def _odd(waits: Sequence[Wait]) -> tuple[Wait, ...]:
    """Waits that differ in operation or size from what most ranks wait in, at the same number of the same group."""
    places: dict[tuple[str, int], list[Wait]] = defaultdict(list)
    for wait in waits:
        if wait.op not in _UNEVEN:
            places[(wait.group, wait.seq)].append(wait)
    for same in places.values():
        kinds = Counter((w.op, w.size) for w in same)
        if len(kinds) != 2:
            continue  # one kind: no mismatch; many kinds: groups that the text does not tell apart
        (usual, many), (_other, few) = kinds.most_common(2)
        if few <= len(same) * MINORITY and many + few == len(same):
            return tuple(replace(w, resized=w.op == usual[0]) for w in same if (w.op, w.size) != usual)
    return ()


def _lagging(status: dict[int, int]) -> tuple[int, ...]:
    if len(status) < 2:
        return ()
    most = max(status.values())
    behind = tuple(sorted(rank for rank, enqueued in status.items() if enqueued < most))
    return behind if len(behind) <= len(status) * MINORITY else ()


def _behind(waits: Sequence[Wait]) -> tuple[int, ...]:
    """Ranks that wait in an earlier collective of the same group than most."""
    groups: dict[str, dict[int, int]] = defaultdict(dict)
    for wait in waits:
        if wait.rank is not None and wait.op not in _UNEVEN:
            groups[wait.group][wait.rank] = wait.seq
    for seqs in groups.values():
        behind = _lagging(seqs)
        if behind and len(behind) < len(seqs) * MINORITY:
            return behind
    return ()


def _uneven(waits: Sequence[Wait]) -> tuple[Wait, ...]:
    """Waits of the few whose numbers prove that they did not make the calls that the others made."""
    groups: dict[str, list[Wait]] = defaultdict(list)
    for wait in waits:
        groups[wait.group].append(wait)
    for name, same in groups.items():
        numbers = Counter(w.seq for w in same)
        if len(numbers) != 2 or len({w.op for w in same}) != 1 or same[0].op.lstrip("_") not in _NEED_ALL:
            continue
        (usual, _), (other, few) = numbers.most_common(2)
        between = abs(usual - other)
        if few < len(same) * MINORITY and between >= _SURELY_APART and (name or between <= _ONE_GROUP):
            return tuple(w for w in same if w.seq == other)
    return ()


def _apart(prints: Mapping[str, Mapping[int, tuple[str, str]]]) -> tuple[int, ...]:
    """The minority in a mismatch, by its sequence number; of two halves neither is the odd one."""
    same = max(prints.values(), key=len, default={})  # of ranks that have already gone, a report makes up a number
    kinds = Counter(same.values())
    if len(kinds) < 2:
        return ()
    usual, many = kinds.most_common(1)[0]
    return tuple(sorted(r for r, kind in same.items() if kind != usual)) if many * 2 > len(same) else ()
