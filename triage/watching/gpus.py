"""Utilisation of GPUs and NPUs over a window, by variance and median. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, pstdev

from triage.probing.values import Device, NodeView

FEWEST = 3  # readings that a window needs
_STEADY = 2.0  # points of standard deviation: less is no change
_IDLE = 5.0  # %
_FULL = 95.0
_Place = tuple[str, str, str]  # node, kind and index of a device


@dataclass(frozen=True, slots=True)
class Window:
    """words: what the readings say; working: whether any changes; enough: whether there are enough to say; slowed: those held back;
    loaded: whether any is not idle."""

    words: tuple[str, ...] = ()
    working: str = ""
    enough: bool = False
    slowed: tuple[str, ...] = ()
    loaded: bool = False


@dataclass(slots=True)
class Readings:
    """The last readings of each device of the job."""

    size: int = 10
    _kept: dict[_Place, deque[tuple[float, Device]]] = field(default_factory=dict)
    _absent: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _read: dict[str, float] = field(default_factory=dict)  # when the devices of a node were asked for last

    def take(self, nodes: Iterable[NodeView], now: float) -> None:
        for view in nodes:
            if view.devices is None or view.problem:
                continue
            self._read[view.node] = now
            self._absent[view.node] = () if view.devices else view.absent
            for device in _of_job(view):
                key = (device.node, device.kind, device.index)
                self._kept.setdefault(key, deque(maxlen=self.size)).append((now, device))

    def window(self, since: float) -> Window:
        """since: from when on nothing else moved; what was before is no witness of what is."""
        told = {
            key: [device.util for at, device in kept if at >= since and device.util is not None]
            for key, kept in self._kept.items()
        }
        enough = any(len(values) >= FEWEST for values in told.values())
        working = next((words for key, values in told.items() if (words := _works(key, values))), "")
        slowed = tuple(
            f"{key[1]} {key[2]} on {key[0]} is held back: {kept[-1][1].throttled}"
            for key, kept in self._kept.items()
            if kept[-1][1].throttled and kept[-1][0] == self._read[key[0]]
        )
        loaded = any(value > _IDLE for values in told.values() for value in values)
        power = {key: kept[-1][1].power for key, kept in self._kept.items()}
        return Window((*_steady(told, power), *self._silent()), working, enough, slowed, loaded)

    def _silent(self) -> Iterable[str]:
        for node, why in self._absent.items():
            if why:
                yield f"no GPU readings on {node}: {'; '.join(why)}"


def _of_job(view: NodeView) -> Iterable[Device]:
    """Those on which the job's processes compute, where that is told; else all."""
    devices = view.devices or ()
    pids = {process.pid for process in view.processes}
    mine = [device for device in devices if device.pids is not None and pids.intersection(device.pids)]
    return mine or devices


def _works(key: _Place, values: list[float]) -> str:
    if len(values) < FEWEST or pstdev(values) <= _STEADY:
        return ""
    return f"{key[1]} {key[2]} on {key[0]} works: {min(values):g} to {max(values):g} %"


def _steady(told: Mapping[_Place, list[float]], power: Mapping[_Place, float | None]) -> Iterable[str]:
    """In groups, as a job may have thousands: those at rest, those that are full without change (what waits may spin, for which
    it draws little), others."""
    groups: dict[str, list[_Place]] = {}
    for place, values in told.items():
        if len(values) >= FEWEST and pstdev(values) <= _STEADY:
            middle = median(values)
            word = (
                "idle"
                if middle <= _IDLE
                else "full without change"
                if middle >= _FULL
                else f"at {middle:g} % without change"
            )
            groups.setdefault(f"{place[1]}|{word}", []).append(place)
    for name, which in groups.items():
        kind, word = name.split("|")
        shown = ", ".join(f"{index} of {node}" for node, _, index in which[:4])
        more = f" and {len(which) - 4} more" if len(which) > 4 else ""
        yield f"{kind} {shown}{more}: {word}{_watts([watts for place in which if (watts := power[place]) is not None])}"


def _watts(drawn: Sequence[float]) -> str:
    if not drawn:
        return ""
    least, most = f"{min(drawn):.0f}", f"{max(drawn):.0f}"
    return f", at {least} W" if least == most else f", at {least} to {most} W"
