"""Which rank holds the others up, by what its process does while nothing moves. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triage.probing.values import Process, ranks_of
from triage.text import rank_ranges
from triage.watching.activity import Activity, Done
from triage.watching.values import Cause, Suspect

_KEPT = 8  # looks
_BUSY = 0.5  # of a core, of the main thread
_SLEEPS = ("hrtimer_nanosleep", "do_nanosleep", "common_nsleep", "clock_nanosleep")
_SLEEP_CALLS = ("35", "230")  # nanosleep, clock_nanosleep of x86-64
_WAITS = ("futex", "poll", "pipe", "unix_stream", "sk_wait", "inet", "wait_woken", "tcp_", "do_select", "skb")
_FEW = 6  # suspects that are named
_GENERATION = 500  # ticks within which the ranks of one run are started


@dataclass(frozen=True, slots=True)
class _Pattern:
    """What a process does most of the time. word: to compare by; told: in words."""

    word: str
    told: str
    cause: Cause


@dataclass(slots=True)
class Ranks:
    """Remembers the last looks at each rank's process, and ranks that are gone."""

    _looks: dict[int, deque[Done]] = field(default_factory=dict)
    _alive: dict[int, Process] = field(default_factory=dict)
    _children: dict[int, tuple[Done, ...]] = field(default_factory=dict)
    _gone: dict[int, Process] = field(default_factory=dict)
    unreadable: bool = False

    def take(self, activity: Activity, hidden: Iterable[str]) -> None:
        """hidden: nodes that were not seen, whose ranks are not gone."""
        away = set(hidden)
        everyone = [*(one.process for one in activity.done), *activity.new]
        ranks = ranks_of(everyone)
        self.unreadable = any(process.ranks is None and process.state not in "ZX" for process in everyone)
        by_key = {one.process.key: one for one in activity.done}
        for rank, process in ranks.items():
            if (old := self._alive.get(rank)) is not None and old.key != process.key:
                self._looks.pop(rank, None)  # started again
            self._alive[rank] = process
            if process.key in by_key:
                self._looks.setdefault(rank, deque(maxlen=_KEPT)).append(by_key[process.key])
        self._gone = {
            rank: process
            for rank, process in self._alive.items()
            if process.node not in away and (rank not in ranks or ranks[rank].state == "Z") and _of_now(process, ranks)
        }
        self._children = {
            rank: tuple(
                one for one in activity.done if one.process.ppid == process.pid and one.process.node == process.node
            )
            for rank, process in ranks.items()
        }

    @property
    def alive(self) -> dict[int, Process]:
        return {rank: process for rank, process in self._alive.items() if rank not in self._gone}

    def stopped(self) -> dict[int, Process]:
        return {rank: process for rank, process in self.alive.items() if process.state in "Tt"}

    # ------------------------------------------------------------------------------------------ who
    def suspects(self, steps: Mapping[int, int]) -> tuple[Suspect, ...]:
        """The surest first. steps: the last step of each rank by the logs."""
        found = [
            *self._dead(),
            *self._blocked(),
            *self._behind(steps),
        ]
        found += self._odd() if not found else []
        return tuple(found[:_FEW])

    def alike(self) -> str:
        """What all ranks do, where they do the same; "" else."""
        patterns = [self._pattern(rank) for rank in self.alive]
        told = {found.word: found.told for found in patterns if found}
        return f"all ranks alike: each {next(iter(told.values()))}" if len(told) == 1 and len(patterns) > 1 else ""

    def _dead(self) -> Iterable[Suspect]:
        alive = self.alive
        if not alive:
            return
        for rank, process in sorted(self._gone.items()):
            why = f"rank {rank} ({process.name}, pid {process.pid}) has ended while {_ranks(alive)} still {'live' if len(alive) > 1 else 'lives'}"
            yield Suspect("dead", why, rank, process.node, process.pid)
        for rank in sorted(set(range(min(alive), max(alive))) - set(alive) - set(self._gone)):
            yield Suspect(
                "dead", f"rank {rank} is not there, while {_ranks(alive)} {'live' if len(alive) > 1 else 'lives'}", rank
            )

    def _blocked(self) -> Iterable[Suspect]:
        for rank, process in sorted(self.alive.items()):
            looks = self._looks.get(rank, ())
            if process.state in "Tt":
                who = "a debugger" if process.state == "t" else "a signal (SIGSTOP)"
                yield Suspect(
                    "stopped", f"rank {rank}, pid {process.pid}, is stopped by {who}", rank, process.node, process.pid
                )
            elif process.frozen:
                yield Suspect(
                    "stopped",
                    f"rank {rank}, pid {process.pid}, is frozen by its control group",
                    rank,
                    process.node,
                    process.pid,
                )
            elif process.state == "D" and sum(look.process.state == "D" for look in looks) * 2 > len(looks):
                where = f" in {process.wchan}" if process.wchan else ""
                why = f"rank {rank}, pid {process.pid}, is blocked in the kernel (state D){where}: no signal reaches it; a file system, a driver or a device does not answer"
                yield Suspect("blocked", why, rank, process.node, process.pid)
            else:
                yield from self._blocked_child(rank)

    def _blocked_child(self, rank: int) -> Iterable[Suspect]:
        parent = self._alive[rank]
        for one in self._children.get(rank, ()):
            child = one.process
            if child.state in "TtD" and child.name == parent.name:
                state = (
                    "is stopped"
                    if child.state in "Tt"
                    else f"is blocked in the kernel{f' in {child.wchan}' if child.wchan else ''}"
                )
                cause: Cause = "stopped" if child.state in "Tt" else "blocked"
                yield Suspect(cause, f"a worker of rank {rank}, pid {child.pid}, {state}", rank, child.node, child.pid)

    def _behind(self, steps: Mapping[int, int]) -> Iterable[Suspect]:
        told = {rank: step for rank, step in steps.items() if rank >= 0}
        if len(told) < 2 or min(told.values()) == max(told.values()):
            return
        least, most = min(told.values()), max(told.values())
        late = [rank for rank, step in told.items() if step == least]
        if len(late) * 2 > len(told):
            return
        for rank in late:
            process = self._alive.get(rank)
            why = f"the log of rank {rank} ends at step {least}, that of others at {most}"
            yield Suspect("behind", why, rank, process.node if process else "", process.pid if process else None)

    def _odd(self) -> list[Suspect]:
        patterns = {rank: found for rank in self.alive if (found := self._pattern(rank)) is not None}
        if len(patterns) < 2:
            return [
                self._suspect(rank, found, {}) for rank, found in patterns.items() if found.cause in ("asleep", "busy")
            ]
        counted = Counter(found.word for found in patterns.values())
        usual, many = counted.most_common(1)[0]
        if many == len(patterns):
            return []
        if many * 2 > len(patterns):
            odd = [rank for rank, found in patterns.items() if found.word != usual]
        else:
            odd = [rank for rank, found in patterns.items() if found.cause not in ("waits", "workers")]
            if not 0 < len(odd) * 2 <= len(patterns):
                return []
        others = {rank: found for rank, found in patterns.items() if rank not in odd}
        return [self._suspect(rank, patterns[rank], others) for rank in sorted(odd)]

    def _suspect(self, rank: int, found: _Pattern, others: Mapping[int, _Pattern]) -> Suspect:
        process = self._alive[rank]
        peers = ""
        if others:
            told = Counter(other.told for other in others.values()).most_common(1)[0][0]
            peers = f", while {_ranks(others)} {told.replace('waits', 'wait', 1) if len(others) > 1 and told.startswith('waits') else told}"
        return Suspect(
            found.cause, f"rank {rank}, pid {process.pid}, {found.told}{peers}", rank, process.node, process.pid
        )

    def _pattern(self, rank: int) -> _Pattern | None:
        looks = list(self._looks.get(rank, ()))[-5:]
        if not looks:
            return None
        cores = [look.main_cores for look in looks if look.main_cores is not None]
        used = sum(cores) / len(cores) if cores else 0.0
        if used > _BUSY or sum(look.process.state == "R" for look in looks) * 2 > len(looks):
            return _Pattern("busy", f"keeps a CPU busy ({100 * used:.0f} %) with no input or output", "busy")
        places = Counter(look.process.wchan or f"call {look.process.call}" for look in looks)
        place = places.most_common(1)[0][0]
        calls = {look.process.call for look in looks if (look.process.wchan or f"call {look.process.call}") == place}
        if place in _SLEEPS or calls <= set(_SLEEP_CALLS):
            return _Pattern("asleep", "sleeps in clock_nanosleep with no input or output; that may be meant", "asleep")
        workers = [one for one in self._children.get(rank, ()) if one.process.name == self._alive[rank].name]
        family = next((word for word in _WAITS if place.startswith(word) or word in place), place)
        if workers and family in ("poll", "pipe", "do_select", "unix_stream"):
            return _Pattern(f"workers:{family}", _of_workers(place, workers), "workers")
        return _Pattern(family, f"waits in {place}", "waits")


def _of_now(gone: Process, ranks: Mapping[int, Process]) -> bool:
    """Not of a run before: a launcher that starts again may start fewer."""
    living = [process.start for process in ranks.values() if process.node == gone.node and process.state != "Z"]
    return not living or min(living) <= gone.start + _GENERATION


def _of_workers(place: str, workers: Sequence[Done]) -> str:
    asleep = [one.process for one in workers if one.process.wchan in _SLEEPS or one.process.call in _SLEEP_CALLS]
    told = f"; worker pid {asleep[0].pid} sleeps in clock_nanosleep" if asleep else ""
    return f"waits in {place} for its {len(workers)} worker process{'es' if len(workers) > 1 else ''}{told}"


def _ranks(ranks: Iterable[int]) -> str:
    found = sorted(ranks)
    return f"rank{'s' if len(found) > 1 else ''} {rank_ranges(found)}"
