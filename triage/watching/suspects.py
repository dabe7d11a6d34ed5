"""Which rank or process holds the others up, by what its process does while nothing moves. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from triage.probing.values import Process
from triage.watching.activity import Activity
from triage.watching.looks import Looks, Pattern
from triage.watching.members import Members, Roster, Who, label, merely_waits, several
from triage.watching.values import Cause, Suspect
from triage.watching.words import ended

_FEW = 6  # suspects that are named
_GENERATION = 500  # ticks within which the ranks of one run are started
_LONG = 5  # looks that a process lived through which is missed though it ended well


@dataclass(slots=True)
class Ranks:
    """Remembers the last looks at each process, who of them computes, and who is gone."""

    unreadable: bool = False
    _roster: Roster = field(default_factory=Roster)
    _looks: Looks = field(default_factory=Looks)
    _alive: dict[Who, Process] = field(default_factory=dict)
    _members: Members = field(default_factory=Members)
    _gone: dict[Who, Process] = field(default_factory=dict)
    _seen: dict[Who, int] = field(default_factory=dict)  # looks
    _ends: dict[Who, int] = field(default_factory=dict)  # how those that are gone ended, where that is known
    _all_seen: bool = True

    def take(self, activity: Activity, hidden: Iterable[str], touched: bool = False) -> None:
        """hidden: nodes that were not seen, whose ranks are not gone; touched: a debugger that we sent may hold processes."""
        away = set(hidden)
        self._all_seen = not away
        everyone = activity.everyone
        self.unreadable = any(process.ranks is None and process.state not in "ZX" for process in everyone)
        self._looks.take(activity, touched)
        self._members = self._roster.members(everyone)
        if self._alive and self._members.by and self._members.numbered != isinstance(next(iter(self._alive)), int):
            self._alive.clear()
            self._seen.clear()
        for who, process in self._members.by.items():
            self._alive[who] = process
            self._seen[who] = self._seen.get(who, 0) + 1
        self._gone = {who: p for who, p in self._alive.items() if self._is_gone(who, p, away)}
        for who in list(self._alive):
            is_missed = who in self._gone or self._alive[who].node in away
            if who not in self._members.by and not is_missed:  # of another generation, or no member any more
                del self._alive[who]
                self._seen.pop(who, None)
        keys = {process.key: who for who, process in self._alive.items()}
        told = {**activity.ended, **{process.key: process.exit for process in everyone if process.exit is not None}}
        self._ends.update({keys[key]: status for key, status in told.items() if key in keys})
        self._ends = {who: status for who, status in self._ends.items() if who in self._gone}

    def _is_gone(self, who: Who, process: Process, away: set[str]) -> bool:
        now = self._members.by.get(who)
        if process.node in away or (now is not None and now.state != "Z"):
            return False
        living = [p for p in self._members.by.values() if p.node == process.node and p.state != "Z"]
        starts = [p.start for p in living]
        if isinstance(who, int):  # not of a run before: a launcher that starts again may start fewer
            return not starts or min(starts) <= process.start + _GENERATION
        is_alike = any(p.comm == process.comm and p.ppid == process.ppid for p in living)
        return is_alike and min(starts) <= process.start + _GENERATION and process.start <= max(starts) + _GENERATION

    @property
    def alive(self) -> dict[Who, Process]:
        return {who: process for who, process in self._alive.items() if who not in self._gone}

    @property
    def numbered(self) -> bool:
        return self._members.numbered

    @property
    def known(self) -> dict[Who, Process]:
        """Those that are alive, and those that are missed."""
        return dict(self._alive)

    def is_stopped(self, process: Process) -> bool:
        return self._looks.is_stopped(process)

    def stopped(self, above: bool = False) -> dict[Who, Process]:
        """Those that compute; above: and who started them, where they have no ranks."""
        found = {who: process for who, process in self.alive.items() if self.is_stopped(process)}
        more = self._members.above if above and not self.numbered else ()
        return found | {process.key: process for process in more if self.is_stopped(process)}

    def besides(self, processes: Iterable[Process]) -> tuple[Who, ...]:
        """Those that compute, without these."""
        without = {process.key for process in processes}
        return tuple(who for who, process in self.alive.items() if process.key not in without)

    # ------------------------------------------------------------------------------------------ who
    def suspects(self, steps: Mapping[int, int]) -> tuple[Suspect, ...]:
        """The surest first. steps: the last step of each rank by the logs."""
        found = [*self.dead(), *self._blocked()]
        if not found:
            odd, late = self._odd(), list(self._behind(steps))
            both = [one for one in odd if one.rank is not None and one.rank in {other.rank for other in late}]
            does = [one for one in odd if one.cause != "waits"]
            found = both or ([*does, *late] if does else late or odd)
        return tuple(found[:_FEW])

    def alike(self) -> str:
        """What all of them do, where they do the same; "" else."""
        alive = self.alive
        patterns = [found for process in alive.values() if (found := self._looks.pattern(process))]
        if len({found.word for found in patterns}) != 1:
            return ""
        if len(alive) == 1:
            ((who, process),) = alive.items()
            return f"{label(who, process)} {patterns[0].told}"
        group = "ranks" if self.numbered else f"{len(alive)} processes"
        whose = several(alive) if self._gone else f"all {group}"  # those that are gone do nothing any more
        return f"{whose} alike: each {patterns[0].told}" if len(patterns) > 1 else ""

    def above(self) -> list[str]:
        """What those do that started the others, where they do not merely wait for them to end."""
        found = [
            (process, self._looks.pattern(process)) for process in self._members.above if not merely_waits(process)
        ]
        return [f"above them {process.told} {pattern.told}" for process, pattern in found if pattern]

    def working(self) -> list[str]:
        """Those on a CPU, by number and program."""
        by_key = {process.key: who for who, process in self.alive.items()}
        return [label(by_key.get(p.key, p.key), p).rstrip(",") for p in self._looks.on_a_cpu()]

    def defunct(self) -> list[str]:
        """Those that have ended, which nobody took note of, beside those that are suspected."""
        members = {process.key for process in self._gone.values()}
        return [
            f"{p.told} has ended{_how(p.exit)} and is defunct" for p in self._looks.zombies() if p.key not in members
        ]

    def dead(self) -> Iterable[Suspect]:
        """Ranks that have ended or never came while others live, and their workers that ended with an error."""
        alive = self.alive
        if not alive:
            return
        living = f"while {several(alive)} still {'live' if len(alive) > 1 else 'lives'}"
        for who, process in sorted(self._gone.items()):
            status = self._ends.get(who, process.exit)
            if (
                isinstance(who, tuple)
                and status == 0
                and who not in self._members.by
                and self._seen.get(who, 0) < _LONG
            ):
                continue
            name = f"rank {who} ({process.name}, pid {process.pid})" if isinstance(who, int) else process.told
            yield _suspect("dead", f"{name} has ended{_how(status)} {living}", who, process)
        for rank in self._missing(alive):
            yield Suspect("dead", f"rank {rank} is not there, {living.replace(' still', '')}", rank)
        for process in self._looks.zombies():
            if process.exit and process.key not in {gone.key for gone in self._gone.values()}:
                yield _suspect(
                    "dead", f"{self._below(process)} has ended{_how(process.exit)} and is defunct", process.key, process
                )

    def _missing(self, alive: Iterable[Who]) -> list[int]:
        """Numbers between those of the ranks that nobody ever had; a node that is not seen may have them."""
        numbers = {who for who in alive if isinstance(who, int)} if self._all_seen else set()
        between = range(min(numbers), max(numbers)) if numbers else ()
        return sorted(set(between) - numbers - self._gone.keys())

    def _blocked(self) -> Iterable[Suspect]:
        alive = self.alive
        found = [self._held(who, process, label(who, process)) for who, process in sorted(alive.items())]
        members = {process.key for process in alive.values()}
        others = [process for process in self._looks.processes() if process.key not in members]
        found += [self._held(process.key, process, self._below(process)) for process in others]
        return filter(None, found)

    def _held(self, who: Who, process: Process, name: str) -> Suspect | None:
        if self._looks.is_stopped(process):
            by = "a debugger" if process.state == "t" else "a signal (SIGSTOP)"
            return _suspect("stopped", f"{name} is stopped by {by}", who, process)
        if process.frozen:
            return _suspect("stopped", f"{name} is frozen by its control group", who, process)
        if self._looks.is_blocked(process):
            where = f" in {process.wchan}" if process.wchan else ""
            why = f"{name} is blocked in the kernel (state D){where}: no signal reaches it; a file system, a driver or a device does not answer"
            return _suspect("blocked", why, who, process)
        return None

    def _below(self, process: Process) -> str:
        """Its name, with the rank that it is a worker of."""
        for who, parent in self.alive.items():
            if isinstance(who, int) and (parent.node, parent.pid) == (process.node, process.ppid):
                return f"a worker of rank {who}, {process.told},"
        return process.told

    def _behind(self, steps: Mapping[int, int]) -> Iterable[Suspect]:
        told = {rank: step for rank, step in steps.items() if rank >= 0}
        if len(told) < 2 or min(told.values()) == max(told.values()):
            return
        least, most = min(told.values()), max(told.values())
        late = [rank for rank, step in told.items() if step == least]
        is_beside = most - least == 1 and len(late) > 1  # neighbours of one that stands still come a step less far
        if len(late) * 2 > len(told) or is_beside:
            return
        for rank in late:
            process = self._alive.get(rank)
            why = f"the log of rank {rank} ends at step {least}, that of others at {most}"
            yield Suspect("behind", why, rank, process.node if process else "", process.pid if process else None)

    def _odd(self) -> list[Suspect]:
        alive = self.alive
        patterns = {who: found for who, process in alive.items() if (found := self._looks.pattern(process))}
        if len(patterns) < 2:
            return [self._told(who, found, {}) for who, found in patterns.items() if found.cause in ("asleep", "busy")]
        counted = Counter(found.word for found in patterns.values())
        usual, many = counted.most_common(1)[0]
        if many == len(patterns):
            return list(self._busy_above(patterns))
        if many * 2 > len(patterns):
            odd = [who for who, found in patterns.items() if found.word != usual]
        else:
            odd = [who for who, found in patterns.items() if found.cause not in ("waits", "workers")]
            if not 0 < len(odd) * 2 <= len(patterns):
                return []
        others = {who: found for who, found in patterns.items() if who not in odd}
        if not self.numbered and self._take_turns([patterns[who] for who in odd], others.values()):
            return list(self._busy_above(patterns))
        return [self._told(who, patterns[who], others) for who in sorted(odd)]

    @staticmethod
    def _take_turns(odd: Iterable[Pattern], others: Iterable[Pattern]) -> bool:
        """Workers that wait for work at one queue: who has its lock reads, the others wait for the lock."""
        return all(one.word in ("pipe", "poll", "unix_stream") for one in odd) and all(
            o.word == "futex" for o in others
        )

    def _busy_above(self, patterns: Mapping[Who, Pattern]) -> Iterable[Suspect]:
        """Who started those that all wait alike, if it computes: one that merely waits for them, by sleep or poll, holds nobody up."""
        for process in self._members.above:
            found = self._looks.pattern(process)
            if found and found.cause == "busy" and all(other.cause == "waits" for other in patterns.values()):
                why = f"{process.told} {found.told}, while the {several(patterns)} that it started wait"
                yield _suspect("busy", why, process.key, process)

    def _told(self, who: Who, found: Pattern, others: Mapping[Who, Pattern]) -> Suspect:
        process = self._alive[who]
        peers = ""
        if others:
            told = Counter(other.told for other in others.values()).most_common(1)[0][0]
            verb = told.replace("waits", "wait", 1) if len(others) > 1 and told.startswith("waits") else told
            peers = f", while {several(others)} {verb}"
        return _suspect(found.cause, f"{label(who, process)} {found.told}{peers}", who, process)


def _suspect(cause: Cause, why: str, who: Who, process: Process) -> Suspect:
    return Suspect(cause, why, who if isinstance(who, int) else None, process.node, process.pid)


def _how(status: int | None) -> str:
    return "" if status is None else f" ({ended(status)})"
