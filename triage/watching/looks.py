"""What each process of a job did at the last looks. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from triage.probing.values import Key, Process
from triage.watching.activity import Activity, Done
from triage.watching.values import Cause

_KEPT = 8  # looks
_JUDGED = 5  # of them that tell what a process does
_BUSY = 0.5  # of a core, of the main thread
_COMPUTES = 0.1  # of a core; a busy machine gives no more
SLEEPS = ("hrtimer_nanosleep", "do_nanosleep", "common_nsleep", "clock_nanosleep")
SLEEP_CALLS = ("35", "230")  # nanosleep, clock_nanosleep of x86-64
_WAITS = ("futex", "poll", "pipe", "unix_stream", "sk_wait", "inet", "wait_woken", "tcp_", "do_select", "skb")


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a process does most of the time. word: to compare by; told: in words."""

    word: str
    told: str
    cause: Cause


@dataclass(slots=True)
class Looks:
    """Remembers the last looks at each process of the tree."""

    _kept: dict[Key, deque[Done]] = field(default_factory=dict)
    _now: dict[Key, Process] = field(default_factory=dict)
    _children: dict[tuple[str, int], list[Done]] = field(default_factory=dict)

    def take(self, activity: Activity, touched: bool) -> None:
        """touched: our own collecting holds processes for moments: that they are traced tells nothing then."""
        self._now = {process.key: process for process in activity.everyone}
        self._children = {}
        for one in activity.done:
            self._children.setdefault((one.process.node, one.process.ppid), []).append(one)
            if not (touched and one.process.state == "t"):
                self._kept.setdefault(one.process.key, deque(maxlen=_KEPT)).append(one)
        for key in [key for key in self._kept if key not in self._now]:
            del self._kept[key]

    def processes(self) -> list[Process]:
        return [process for process in self._now.values() if process.state not in "ZX"]

    def zombies(self) -> list[Process]:
        """Those that were so at the look before too: one that ends is seen so for a moment."""
        return [p for p in self._now.values() if p.state == "Z" and self._lasts(p, "Z")]

    def is_stopped(self, process: Process) -> bool:
        """By a signal; or by a debugger, at two looks: tools hold a process for moments."""
        return process.state == "T" or (process.state == "t" and self._lasts(process, "t"))

    def is_blocked(self, process: Process) -> bool:
        looks = self._kept.get(process.key, ())
        return process.state == "D" and sum(look.process.state == "D" for look in looks) * 2 > len(looks)

    def on_a_cpu(self) -> list[Process]:
        """Those whose main thread computed at most of the looks."""
        found = []
        for process in self.processes():
            cores = [look.main_cores or 0.0 for look in list(self._kept.get(process.key, ()))[-_JUDGED:]]
            if cores and sum(cores) / len(cores) > _COMPUTES:
                found.append(process)
        return found

    def pattern(self, process: Process) -> Pattern | None:
        looks = [look for look in self._kept.get(process.key, ()) if look.process.state not in "Tt"][-_JUDGED:]
        if not looks:
            return None
        cores = [look.main_cores for look in looks if look.main_cores is not None]
        used = sum(cores) / len(cores) if cores else 0.0
        if used > _BUSY or sum(look.process.state == "R" for look in looks) * 2 > len(looks):
            return Pattern("busy", f"computes ({100 * used:.0f} % of a CPU){_still(looks)}", "busy")
        places = Counter(_place(look) for look in looks)
        place = places.most_common(1)[0][0]
        if _sleeps(next(look.process for look in reversed(looks) if _place(look) == place)):
            return Pattern("asleep", f"sleeps in clock_nanosleep{_still(looks)}; that may be meant", "asleep")
        children = self._children.get((process.node, process.pid), [])
        workers = [one for one in children if one.process.name == process.name and one.process.state != "Z"]
        family = next((word for word in _WAITS if place.startswith(word) or word in place), place)
        if workers and family in ("poll", "pipe", "do_select", "unix_stream", "do_wait"):
            return Pattern(f"workers:{family}", _of_workers(place, workers), "workers")
        return Pattern(family, f"waits in {place}", "waits")

    def _lasts(self, process: Process, state: str) -> bool:
        looks = list(self._kept.get(process.key, ()))[-2:]
        return len(looks) == 2 and all(look.process.state == state for look in looks)


def _place(look: Done) -> str:
    return look.process.wchan or f"call {look.process.call}"


def _still(looks: Sequence[Done]) -> str:
    moved = sum((one.main_moved if one.main_moved is not None else one.moved) or 0 for one in looks)
    return "" if moved else " with no input or output"


def _sleeps(process: Process) -> bool:
    return process.wchan in SLEEPS or process.call in SLEEP_CALLS


def _of_workers(place: str, workers: Sequence[Done]) -> str:
    asleep = next((one.process for one in workers if _sleeps(one.process)), None)
    busy = next((one.process for one in workers if (one.main_cores or 0.0) > _BUSY), None)
    told = f"; worker pid {asleep.pid} sleeps in clock_nanosleep" if asleep else ""
    told = told or (f"; worker pid {busy.pid} computes" if busy else "")
    return f"waits in {place} for its {len(workers)} worker process{'es' if len(workers) > 1 else ''}{told}"
