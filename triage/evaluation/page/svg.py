"""Small plots as inline SVG. Positions are percentages, so that a plot is as wide as its place and text keeps its size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from triage.evaluation.figures import Metric, Unit, interval, written
from triage.markup import Safe, el

Bin = tuple[float, float, int]  # from, to (excluded), how many
CLOSE = 8  # times the least value, up to which steps are even
MOST = 10  # even steps
EDGES = 5  # steps between the edges that are labelled


def track(metric: Metric, label: str, kind: str = "tool", unit: Unit = "share", top: float = 1.0) -> Safe:
    """A dot with its interval on a line from 0 to top. kind: class of the colour (tool, base, bad)."""
    if not metric:
        return el("span", "not labelled", class_="none")
    spoken = f"{label}: {written(metric['value'], unit)}"
    if span := interval(metric, unit):
        spoken += f", interval {span}"
    marks = [_rule("rail", 0, top, top)]
    marks += [el("line", class_="tick", x1=f"{p}%", x2=f"{p}%", y1="30%", y2="70%") for p in (25, 50, 75)]
    if metric.get("low") is not None and metric.get("high") is not None:
        marks.append(_rule("span", metric["low"], metric["high"], top))
    marks.append(el("circle", class_="dot", cx=_x(metric["value"], top), cy="50%", r="5.5"))
    return el("svg", marks, class_=f"track {kind}", role="img", aria_label=spoken)


def axis(unit: Unit = "share") -> Safe:
    """The scale above tracks, from 0 to 1."""
    places = ((0, "start"), (25, "middle"), (50, "middle"), (75, "middle"), (100, "end"))
    labels = [
        el(
            "text",
            f"{p}%" if unit == "share" else f"{p / 100:g}",
            x=f"{p}%",
            y="11",
            text_anchor=at,
            class_="mid" if p in (25, 75) else None,
        )
        for p, at in places
    ]
    return el("svg", labels, class_="axis", aria_hidden="true")


def histogram(bins: Sequence[Bin], label: str, unit: Unit) -> Safe:
    """Counts as bars, the edges below, the count above each bar."""
    highest = max((n for _, _, n in bins), default=0) or 1
    width, marks = 100 / max(1, len(bins)), []
    for i, (low, high, n) in enumerate(bins):
        tall = 78 * n / highest
        about = f"{short(low, unit)} to {short(high, unit)}: {n}"
        bar = el(
            "rect",
            x=f"{i * width + 0.4:.3f}%",
            width=f"{width - 0.8:.3f}%",
            y=f"{92 - tall:.3f}%",
            height=f"{tall:.3f}%",
        )
        marks.append(el("g", el("title", about), bar, class_="bar"))
        if n:
            at = f"{(i + 0.5) * width:.3f}%"
            marks.append(el("text", n, x=at, y=f"{92 - tall:.3f}%", dy="-4", text_anchor="middle"))
    base = el("line", class_="base", x1="0", x2="100%", y1="92%", y2="92%")
    picture = el("svg", marks, base, class_="histogram", role="img", aria_label=label)
    return el("div", picture, _edges(bins, unit), class_="plot")


def _edges(bins: Sequence[Bin], unit: Unit) -> Safe:
    edges = [low for low, _, _ in bins] + [high for _, high, _ in bins[-1:]]
    every = math.ceil((len(edges) - 1) / EDGES) or 1  # more would run into each other on a telephone
    labels = []
    for i, value in enumerate(edges):
        if i % every == 0:
            at = "start" if i == 0 else "end" if i == len(edges) - 1 else "middle"
            x = 100 * i / max(1, len(edges) - 1)
            labels.append(el("text", short(value, unit), x=f"{x:.3f}%", y="12", text_anchor=at))
    return el("svg", labels, class_="edges", aria_hidden="true")


def bins(values: Sequence[float]) -> list[Bin]:
    """Values counted in steps: even ones where they lie close together, 1, 2, 5, 10 ... where the greatest is many times the least."""
    seen = [v for v in values if v > 0 and math.isfinite(v)]
    if not seen:
        return []
    edges = _even(min(seen), max(seen)) if max(seen) < CLOSE * min(seen) else _uneven(min(seen), max(seen))
    return [(a, b, sum(a <= v < b for v in seen)) for a, b in pairwise(edges)]


def _even(low: float, high: float) -> list[float]:
    least = max((high - low) / MOST, low / 50)
    step = min(s for s in _steps(least) if s >= least)
    first, last = math.floor(low / step), math.floor(high / step)
    return [round(i * step, 9) for i in range(first, last + 2)]


def _uneven(low: float, high: float) -> list[float]:
    edges = [max(s for s in _steps(low) if s <= low)]
    while edges[-1] <= high:
        edges.append(min(s for s in _steps(edges[-1]) if s > edges[-1]))
    return edges


def _steps(value: float) -> list[float]:
    power = math.floor(math.log10(value))
    return [float(f"{m}e{p}") for p in (power, power + 1) for m in (1, 2, 5)]


def short(value: float, unit: Unit) -> str:
    """An edge of a step."""
    match unit:
        case "seconds":
            return f"{value * 1000:g} ms" if value < 0.1 else f"{value:g} s"
        case "megabytes":
            return f"{value:g} MB"
    return f"{value:,.10g}"


def _rule(kind: str, low: float, high: float, top: float) -> Safe:
    return el("line", class_=kind, x1=_x(low, top), x2=_x(high, top), y1="50%", y2="50%")


def _x(value: float, top: float) -> str:
    return f"{100 * min(1.0, max(0.0, value / top if top else 0)):.2f}%"
