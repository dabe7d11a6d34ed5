"""How a job's processes ended. Pure but for what it remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import WIFSIGNALED, WTERMSIG

from triage.probing.values import Key, NodeView, Process
from triage.watching.members import Who, label
from triage.watching.words import ended

_NAMED = 4
_ENDED_BY_OTHERS = 2
_BY_OTHERS = (1, 2, 15)  # SIGHUP, SIGINT, SIGTERM: sent to those that live on after another failed


@dataclass(slots=True)
class Ends:
    """Remembers who there was at the last look, and how those ended that are no more."""

    _tops: dict[Key, Process] = field(default_factory=dict)
    _members: dict[Who, Process] = field(default_factory=dict)
    _how: dict[Key, int] = field(default_factory=dict)

    def take(self, nodes: Sequence[NodeView], members: Mapping[Who, Process]) -> None:
        """members: at the look before, with those that are missed."""
        everyone = [process for view in nodes for process in view.processes]
        listed = [process for process in everyone if process.state not in "ZX" or not self._tops]
        if listed:
            pids = {(process.node, process.pid) for process in listed}
            self._tops = {process.key: process for process in listed if (process.node, process.ppid) not in pids}
        self._members = dict(members) or self._members
        self._how |= {key: status for view in nodes for key, status in view.ended.items()}
        self._how |= {process.key: process.exit for process in everyone if process.exit is not None}
        kept = {*self._tops, *(process.key for process in self._members.values())}
        self._how = {key: status for key, status in self._how.items() if key in kept}

    def bad(self, counts: bool) -> str:
        """Who ended with an error, those first that were not ended by others; "" for nobody, as far as is known.

        counts: whether it counts how ranks ended if who started them ended well. Workers are ended as their work is done.
        """
        named = {key: process.told for key, process in self._tops.items()}
        failed = [(key, self._how[key]) for key in named if self._how.get(key)]
        if failed or counts:
            named |= {process.key: label(who, process).rstrip(",") for who, process in self._members.items()}
            ended_so = [(key, self._how[key]) for key in named if self._how.get(key) and key not in self._tops]
            failed += [one for one in ended_so if failed or _order(one[1], False)[0] < _ENDED_BY_OTHERS]
        if not failed:
            return ""
        failed.sort(key=lambda item: _order(item[1], item[0] in self._tops))
        told = [f"{named[key]}: {ended(status)}" for key, status in failed[:_NAMED]]
        more = f"; and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
        return f"ended with an error: {'; '.join(told)}{more}"

    def well(self) -> str:
        """That all is well, if the topmost process tells so; "" if nothing is known."""
        told = [self._how.get(key) for key in self._tops]
        return "ended with exit code 0" if told and all(status == 0 for status in told) else ""


def _order(status: int, is_top: bool) -> tuple[int, bool]:
    if not WIFSIGNALED(status):
        return 1, is_top
    return (_ENDED_BY_OTHERS if WTERMSIG(status) in _BY_OTHERS else 0), is_top
