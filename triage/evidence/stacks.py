"""The stacks of all processes as classes of those that stand in the same place, and which of them stand apart. Pure.

Who waits in a collective waits for somebody; who stands in none while others wait is the one waited for. Where all wait,
those whose program has come to another place than most took another way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triage.domain import Doing, LogLine, StackClass
from triage.evidence.dumps import Dump
from triage.evidence.standing_in import WAITING, Standing, is_own, standing

FEWEST = 3  # stacks, for one to be the odd one out by number alone
_MAJORITY = 2  # times as many as the others: with fewer it may as well be they who took another way
_GROUPS = 4  # of ranks that wait for each other crosswise
_STAGES = 3  # of a pipeline so many times more wait for their neighbours than compute, if one holds the others up


@dataclass(frozen=True, slots=True)
class Seen:
    """The last look at one process. rank, node, pid: as far as they are known; again: it stood in the same place before,
    None where it was looked at once; freed: it waited before and stands elsewhere now, so what it waited for came."""

    dump: Dump
    standing: Standing
    rank: int | None
    node: str | None
    pid: int | None
    again: bool | None = None
    freed: bool = False

    @property
    def doing(self) -> Doing:
        return self.standing.doing

    @property
    def waits(self) -> bool:
        return self.doing in WAITING

    @property
    def line(self) -> LogLine:
        """Where its own code stands."""
        return self.standing.seen.line


def look(dump: Dump) -> Standing | None:
    """Where a process stands; None where its dump holds no frame of Python or of its own."""
    thread = dump.main
    return standing(thread) if thread and thread.frames else None


def other_threads(seen: Seen) -> list[LogLine]:
    """Where other threads of the process stand in code of its own, which may hold what the main thread waits for."""
    found = []
    for thread in seen.dump.threads:
        if thread is not seen.dump.main and (at := standing(thread)) and not at.seen.native and is_own(at.seen):
            found.append(at.seen.line)
    return found


def moving(seen: Sequence[Seen]) -> bool:
    """Did what one waited for come, or did most of those that were looked at again stand elsewhere?"""
    if any(s.freed for s in seen):
        return True
    twice = [s.again for s in seen if s.again is not None]
    return twice.count(False) > twice.count(True)


def odd_ones(seen: Sequence[Seen]) -> tuple[Seen, ...]:
    """Those for whom the others wait; () where none stands out."""
    if moving(seen):
        return ()
    seen = whole(seen)
    waiting = [s for s in seen if s.waits]
    rest = [s for s in seen if not s.waits and s.again is not False]
    if waiting and not rest:
        return _elsewhere(waiting)
    if waiting and all(s.doing == "point-to-point" for s in waiting):
        return tuple(rest) if len(rest) * _STAGES <= len(waiting) else ()
    if waiting and len(rest) <= len(waiting):
        return tuple(rest)
    return _minority(seen, _line if waiting else own)


def whole(seen: Sequence[Seen]) -> list[Seen]:
    """Without those whose stack is the beginning of another's, the innermost first: a dump that was cut off says less."""
    stacks = {id(s): _frames(s) for s in seen}
    begun = {stack[:n] for stack in stacks.values() for n in range(1, len(stack))}
    return [s for s in seen if stacks[id(s)] not in begun]


def _frames(seen: Seen) -> tuple[tuple[str, str, int | None], ...]:
    thread = seen.dump.main
    return tuple((frame.function, frame.file, frame.number) for frame in thread.frames) if thread else ()


def _elsewhere(waiting: Sequence[Seen]) -> tuple[Seen, ...]:
    """Of those that all wait, the few that wait elsewhere: in other code of their own, or in another collective of the same."""
    keys = Counter(s.standing.key for s in waiting)
    usual, many = keys.most_common(1)[0]
    if len(waiting) < FEWEST or many < _MAJORITY * (len(waiting) - many):
        return ()
    of_most = next(s for s in waiting if s.standing.key == usual)
    others = [s for s in waiting if s.standing.key != usual and _another_way(s, of_most)]
    return tuple(others)


def crossed(seen: Sequence[Seen]) -> tuple[Seen, ...]:
    """Where all wait in collectives, and no few elsewhere than most: one of each place; () where there is one, or too many."""
    seen = whole(seen)
    if len(seen) < 2 or moving(seen) or any(s.doing != "collective" for s in seen):
        return ()
    places: dict[object, Seen] = {}
    for s in seen:
        places.setdefault((own(s), s.standing.call_name), s)
    return tuple(places.values()) if 1 < len(places) <= _GROUPS else ()


def _another_way(one: Seen, most: Seen) -> bool:
    if "point-to-point" in (one.doing, most.doing):
        return False  # neighbours of a pipeline stand in different ones by design
    if own(one) != own(most):
        return True
    return one.doing == most.doing == "collective" and one.standing.call_name != most.standing.call_name


def own(seen: Seen) -> tuple[tuple[str, str], ...]:
    return tuple((frame.function, frame.file) for frame in seen.standing.own)


def _line(seen: Seen) -> object:
    """Most of them in the very same line wait there, though no frame says for what."""
    return own(seen), seen.standing.own[-1].number


def _minority(seen: Sequence[Seen], place: Callable[[Seen], object]) -> tuple[Seen, ...]:
    counted = Counter(map(place, seen))
    if len(seen) < FEWEST or len(counted) < 2:
        return ()
    usual, many = counted.most_common(1)[0]
    return tuple(s for s in seen if place(s) != usual) if many * 2 > len(seen) else ()


def classes(seen: Sequence[Seen], odd: Sequence[Seen]) -> tuple[StackClass, ...]:
    """The largest first."""
    apart = {id(s) for s in odd}
    found: dict[object, list[Seen]] = {}
    for s in seen:
        found.setdefault((s.standing.key, id(s) in apart), []).append(s)
    return tuple(
        sorted((_class(of, id(of[0]) in apart) for of in found.values()), key=lambda c: (-c.processes, c.ranks))
    )


def _class(of: Sequence[Seen], odd: bool) -> StackClass:
    first = of[0]
    call = first.standing.call
    return StackClass(
        processes=len(of),
        ranks=tuple(sorted({s.rank for s in of if s.rank is not None})),
        nodes=tuple(dict.fromkeys(s.node for s in of if s.node)),
        pids=tuple(s.pid for s in of if s.pid is not None),
        frames=tuple(f"{frame.function} ({frame.file})" for frame in first.standing.own),
        calls=f"{call.function} ({call.file})" if call and call not in first.standing.own else "",
        doing=first.doing,
        file=first.line.file,
        line=first.line.number,
        odd=odd,
    )
