"""Where the loss of a run jumped, became NaN or crept away, and whether it came back. Pure.

A value is held against the level and the noise of the records just before it (median, median deviation). It is a spike when several records
on end stand out, or one does so far. Where the learning rate was raised or an epoch began, a rise must be larger to count.
"""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from triage.evidence.metrics import Point

Kind = Literal["spike", "nan", "drift", "gradient"]

WINDOW = 64  # records that make the level
FEWEST = 16  # for a level to be known
NOISE = 6.0  # deviations above the level
RISE = 0.3  # of the level, at least
RISE_THEN = 0.6  # after the learning rate was raised, and where an epoch begins
PROPORTION = 6.0  # deviations of the logarithm
AT_ONCE = 15.0  # deviations of a single record, which then doubles the level too
AHEAD, OUT_OF = 3, 5  # so many of so many records on end stand out
GAP = 3  # records within the usual that do not end a spike, when its beginning is looked for
BACK = 5  # records whose median is down again
GRADIENT = 20.0  # times its level, for a gradient norm to be told by itself
EDGE = 10  # records after the beginning of an epoch
RAISED = 1.5  # times, of a learning rate
FEWEST_OF_DRIFT = 4 * FEWEST  # records
_REWARD = re.compile(r"(?i)(?<![a-z])(?:rewards?|kl)(?![a-z])")


@dataclass(frozen=True, slots=True)
class Spike:
    """first: the record where it began, by the loss or by the gradient norm before it; shown: the first whose loss stands out; peak: the
    highest value; level: what was usual before; back: the record from which the loss was down again, None where it never was."""

    kind: Kind
    first: Point
    peak: float
    level: float
    last: Point
    back: Point | None
    records: int
    shown: Point | None = None


def spikes(points: Sequence[Point]) -> list[Spike]:
    """In order of their kinds: of the loss, then of gradient norms alone. A restart from an earlier step ends a spike."""
    found = list(_Scan([p for p in points if p.loss is not None]).found())
    if not found or found[-1].back is not None:
        found += _drift([p for p in points if p.loss is not None])
    spans = [(spike.first.line.number, spike.last.line.number + 1) for spike in found]
    return [*found, *(g for g in _gradients(points) if not any(a <= g.first.line.number <= b for a, b in spans))]


class _Scan:
    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points
        self._level: deque[float] = deque(maxlen=WINDOW)
        self._sorted: list[float] = []
        self._start = points[0].step if points else None

    def found(self) -> Iterator[Spike]:
        seen, at = self._points, 0
        while at < len(seen):
            if self._begins_anew(at):
                self._level.clear()
                self._sorted.clear()
            value = self._value(at)
            if not math.isfinite(value):
                end = self._nan_end(at)
                if end - at > 1 or self._settled():
                    yield self._spike("nan", at, end)
                at = end
                continue
            if len(self._level) >= FEWEST and self._stands_out(at):
                first = self._beginning(at)
                end = self._end(at)
                yield self._spike("spike", first, end)
                at = end
                continue
            self._take(value)
            at += 1

    def _value(self, at: int) -> float:
        value = self._points[at].loss
        assert value is not None
        return value

    def _begins_anew(self, at: int) -> bool:
        """Another training in the same log: its steps, or where it tells none its epochs, begin again where the last one began."""
        if not self._restarted(at):
            return False
        step = self._points[at].step
        if step is None or self._start is None or step <= self._start:
            self._start = step
            return True
        return False

    # ------------------------------------------------------------------------------------------------ level
    def _take(self, value: float) -> None:
        if len(self._level) == WINDOW:
            self._sorted.pop(bisect.bisect_left(self._sorted, self._level[0]))
        self._level.append(value)
        bisect.insort(self._sorted, value)

    def _usual(self) -> float:
        return self._sorted[len(self._sorted) // 2]

    def _noise(self) -> float:
        usual = self._usual()
        return max(1.4826 * median(abs(v - usual) for v in self._sorted), 0.005 * abs(usual), 1e-9)

    def _in_proportion(self) -> float:
        """The bound where values scatter in proportion, as small losses of small batches do."""
        usual = self._usual()
        if usual <= 0 or self._sorted[0] <= 0:
            return -math.inf
        return usual * math.exp(PROPORTION * 1.4826 * median(abs(math.log(v / usual)) for v in self._sorted))

    def _settled(self) -> bool:
        """A single NaN counts once there was a level; mixed precision begins with some."""
        return len(self._level) >= FEWEST

    # ------------------------------------------------------------------------------------------------ spikes
    def _stands_out(self, at: int) -> bool:
        usual = self._usual()
        if self._value(at) <= usual + 0.5 * RISE * abs(usual):
            return False
        noise = self._noise()
        bound = usual + max(NOISE * noise, self._rise(at) * abs(usual))
        if self._value(at) <= bound or self._value(at) <= self._in_proportion():
            return False
        ahead = [self._value(i) for i in range(at, min(at + OUT_OF, len(self._points)))]
        if sum(not v <= bound for v in ahead) >= min(AHEAD, len(ahead)) and len(ahead) >= AHEAD:
            return True
        alone = self._value(at) > usual + max(AT_ONCE * noise, (1 + self._rise(at)) * abs(usual))
        return alone and (len(ahead) == 1 or self._gradient_jumped(at) or ahead[1] > usual + 3 * noise)

    def _rise(self, at: int) -> float:
        """What share of the level a rise must have here."""
        here, before = self._points[at], self._points[max(0, at - WINDOW) : at]
        rates = [p.rate for p in before if p.rate]
        if here.rate and rates and here.rate > RAISED * min(rates):
            return RISE_THEN
        epochs = [int(p.epoch) for p in before[-EDGE:] if p.epoch is not None]
        edge = here.epoch is not None and bool(epochs) and int(here.epoch) != epochs[0]
        return RISE_THEN if edge else RISE

    def _gradient_jumped(self, at: int) -> bool:
        norms = [p.norm for p in self._points[max(0, at - WINDOW) : at - 3] if p.norm and math.isfinite(p.norm)]
        near = [p.norm for p in self._points[max(0, at - 3) : at + 2] if p.norm is not None]
        return len(norms) >= FEWEST and any(not n <= GRADIENT / 2 * median(norms) for n in near)

    def _beginning(self, at: int) -> int:
        """Back over records that stood out already, by loss or by gradient norm, with small gaps."""
        norms = [p.norm for p in self._points[max(0, at - WINDOW) : at] if p.norm and math.isfinite(p.norm)]
        high = 4 * median(norms) if len(norms) >= FEWEST else math.inf
        first, gap = at, 0
        for i in range(at - 1, max(-1, at - WINDOW), -1):
            norm = self._points[i].norm
            if self._is_high(i) or (norm is not None and not norm <= high):
                first, gap = i, 0
            elif (gap := gap + 1) > GAP:
                break
        return first

    def _end(self, at: int) -> int:
        """The index from which the median of BACK records is usual again; the end of the run where it never is."""
        bound = self._usual() + max(3 * self._noise(), 0.05 * abs(self._usual()))
        for i in range(at + 1, len(self._points) - BACK + 1):
            values = sorted(self._value(j) if math.isfinite(self._value(j)) else math.inf for j in range(i, i + BACK))
            if values[BACK // 2] <= bound and self._value(i) <= bound:
                return i
            if self._restarted(i):
                return i
        return len(self._points)

    def _restarted(self, at: int) -> bool:
        """Does the step go back here, as after a restart from a checkpoint?"""
        if at == 0:
            return False
        here, before = self._points[at], self._points[at - 1]
        if here.step is not None and before.step is not None:
            return here.step < before.step
        return here.epoch is not None and before.epoch is not None and int(here.epoch) < int(before.epoch)

    def _nan_end(self, at: int) -> int:
        while at < len(self._points) and not math.isfinite(self._value(at)):
            at += 1
        return at

    def _spike(self, kind: Kind, first: int, end: int) -> Spike:
        inside = [self._value(i) for i in range(first, end)]
        finite = [v for v in inside if math.isfinite(v)]
        back = self._points[end] if end < len(self._points) and not self._restarted(end) else None
        peak = math.nan if len(finite) < len(inside) else max(finite)
        level = self._usual() if self._sorted else math.nan
        shown = next((i for i in range(first, end) if self._is_high(i)), first)
        return Spike(
            kind, self._points[first], peak, level, self._points[end - 1], back, end - first, self._points[shown]
        )

    def _is_high(self, at: int) -> bool:
        return not self._sorted or not self._value(at) <= self._usual() + 4 * self._noise()


def _drift(points: Sequence[Point]) -> Iterator[Spike]:
    """A run that ends far above the best level it had, which it left by small steps. A loss about zero has no level to leave: as that of
    learning from rewards, which grows with the distance from the reference and is meant to."""
    values = [p.loss for p in points if p.loss is not None]
    size = 2 * FEWEST
    if len(values) < FEWEST_OF_DRIFT or not all(map(math.isfinite, values)):
        return
    level = [median(values[i : i + size]) for i in range(0, len(values) - size + 1, size // 2)]
    best = min(range(len(level)), key=level.__getitem__)
    noise = 1.4826 * median(abs(a - b) for a, b in itertools.pairwise(values)) / math.sqrt(2)
    low = level[best]
    if (
        low <= NOISE * noise
        or _of_rewards(points)
        or len(level) - best < 3
        or level[-1] <= low + max(NOISE * noise, RISE_THEN * 2 / 3 * low)
    ):
        return
    first = next(i for i in range(best, len(level)) if level[i] > low + max(3 * noise, 0.05 * low)) * (size // 2)
    yield Spike("drift", points[first], max(values[first:]), low, points[-1], None, len(values) - first)


def _of_rewards(points: Sequence[Point]) -> bool:
    return any(_REWARD.search(p.line.text[:4000]) for p in points[:FEWEST])


def _gradients(points: Sequence[Point]) -> Iterator[Spike]:
    """Gradient norms many times over their level: of itself no harm, and often what comes before it."""
    seen = [(p, p.norm) for p in points if p.norm is not None and math.isfinite(p.norm) and p.norm > 0]
    usual: deque[float] = deque(maxlen=WINDOW)
    at = 0
    while at < len(seen):
        before, here = seen[at - 1][0].step, seen[at][0].step
        if at and before is not None and here is not None and here < before:
            usual.clear()  # a training that begins anew begins with large ones
        level = median(usual) if len(usual) >= 2 * FEWEST else math.inf
        if seen[at][1] <= GRADIENT * level:
            usual.append(seen[at][1])
            at += 1
            continue
        end = next((i for i in range(at, len(seen)) if seen[i][1] <= 4 * level), len(seen))
        back = seen[end][0] if end < len(seen) else None
        yield Spike("gradient", seen[at][0], max(n for _, n in seen[at:end]), level, seen[end - 1][0], back, end - at)
        at = end
