"""The picture of a failure: a lane for each rank or node, the lines that were cited in order of time, the first failure and
what followed. Pure.

Moments stand evenly, not to scale: a cascade of milliseconds after ten minutes of waiting is seen as both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from triage.markup import Safe, el
from triage.text import how_many, middle_cut, rank_ranges

MOST_LANES, MOST_TIMES = 24, 10
_HEIGHT, _HEAD, _PAD = 34, 30, 4.0  # pixels of a lane and of the scale; percent at either side
_UNTIMED = 100 - _PAD  # percent from the left, where some lines tell no time; then the times end at _TIMED
_TIMED = 74.0
_WORDS = {"root": "cause", "cascade": "consequence", "context": "context"}


@dataclass(frozen=True, slots=True)
class Point:
    """at: None for a line that tells no time."""

    lane: str
    at: datetime | None
    role: str  # root|cascade|context
    what: str
    id: str
    place: str

    @property
    def moment(self) -> datetime | None:
        """Seconds: what stands in one place of the picture."""
        return self.at.replace(microsecond=0) if self.at else None

    @property
    def order(self) -> tuple[str, bool]:
        """What tells no time comes last."""
        return self.at.isoformat() if self.at else "~", self.role != "root"


@dataclass(frozen=True, slots=True)
class Picture:
    """svg: None where there is nothing to see in it; rows: the same as a table; more: lanes that are not drawn;

    led: it has consequences that tell their time.
    """

    svg: Safe | None
    rows: tuple[Point, ...]
    more: int = 0
    note: str = ""
    led: bool = False


def picture(result: Mapping[str, Any]) -> Picture:
    points = sorted(_points(result), key=lambda p: p.order)
    timed = [p for p in points if p.at]
    if len(points) < 2 or not timed:
        return Picture(None, tuple(points) if timed else ())
    lanes = list(dict.fromkeys(p.lane for p in sorted(points, key=lambda p: (p.role != "root", p.order))))
    first = next((p for p in timed if p.role == "root"), timed[0])
    svg = _svg(points, lanes[:MOST_LANES], first)
    led = first.role == "root" and any(p.role == "cascade" for p in timed)
    return Picture(svg, tuple(points), max(0, len(lanes) - MOST_LANES), _told(timed, first), led)


def _points(result: Mapping[str, Any]) -> list[Point]:
    found = []
    for e in result.get("evidence", ()):
        at = _time(e.get("time"))
        if at is not None or e["role"] != "context":
            what = e.get("title") or e["failure_type"]
            found.append(Point(_lane(e), at, e["role"], what, e["id"], f"{e['file']}:{e['line']}"))
    known = {p.id for p in found}
    for m in (result.get("timeline") or {}).get("moments", ()):
        at = _time(m.get("time"))
        if at is not None and m.get("evidence") not in known:
            place = f"{m['file']}:{m['line']}" if m.get("file") else ""
            found.append(Point(m.get("node") or m["source"], at, "context", m["what"], m.get("evidence", ""), place))
    return found


def _lane(e: Mapping[str, Any]) -> str:
    """Ranks that said the same share a lane, so that a thousand of them are one line of the picture."""
    ranks = e.get("ranks") or ([e["rank"]] if e.get("rank") is not None else ())
    node = e.get("node") or ""
    if len(ranks) > 1:
        return f"ranks {middle_cut(rank_ranges(ranks), 40)} ({len(ranks)})"
    return (f"rank {ranks[0]}" + (f" · {node}" if node else "")) if ranks else node or e["file"].rsplit("/", 1)[-1]


def _time(text: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found.astimezone(UTC).replace(tzinfo=None) if found and found.tzinfo else found


def _columns(points: Sequence[Point]) -> dict[datetime | None, float]:
    """Percent from the left of each moment. Where there are too many, neighbours share a place."""
    moments = sorted({p.moment for p in points if p.moment})
    end = _UNTIMED if len(moments) == len({p.moment for p in points}) else _TIMED
    places = min(len(moments), MOST_TIMES)
    step = (end - _PAD) / max(places - 1, 1)
    start = _PAD if places > 1 else (end + _PAD) / 2
    return {None: _UNTIMED, **{t: start + step * (i * places // len(moments)) for i, t in enumerate(moments)}}


def _svg(points: Sequence[Point], lanes: Sequence[str], first: Point) -> Safe:
    height = _HEAD + _HEIGHT * len(lanes) + 6
    y = {lane: _HEAD + _HEIGHT * i + 24 for i, lane in enumerate(lanes)}
    columns = _columns(points)
    marks = _from_cause(points, columns, first, height) if first.role == "root" else []
    marks += _scale(points, columns, first, height)
    for lane, down in y.items():
        marks.append(el("line", class_="rail", x1="0", x2="100%", y1=down, y2=down))
        marks.append(el("text", lane, x="0", y=down - 9, class_="lane"))
    stacked: dict[tuple[str, float], int] = {}
    for p in points:
        if p.lane in y:
            x = columns[p.moment]
            level = stacked[p.lane, x] = stacked.get((p.lane, x), -1) + 1
            if level < 3:
                marks.append(_mark(p, x, y[p.lane], level))
    titles = [
        el("title", "When what failed where", id="picture-title"),
        el("desc", f"{how_many(len(lanes), 'lane')}. {_told(points, first)}", id="picture-desc"),
    ]
    return el(
        "svg", titles, marks, class_="timeline", role="img", height=height, width="100%",
        aria_labelledby="picture-title", aria_describedby="picture-desc",
    )  # fmt: skip


def _scale(points: Sequence[Point], columns: Mapping[datetime | None, float], first: Point, height: int) -> list[Safe]:
    """The times over the lanes, each place once; and where lines stand that tell none."""
    zero = first.moment
    ticks = {x: _since(at, zero) for at, x in reversed(list(columns.items())) if at and zero}
    if zero:
        ticks[columns[zero]] = _since(zero, zero)
    marks = []
    for number, (left, said) in enumerate(sorted(ticks.items())):
        between = (
            " between" if len(ticks) > 5 and number % 2 and left != columns[zero] else ""
        )  # not shown where there is little room
        marks.append(el("text", said, x=f"{left:.2f}%", y=14, text_anchor=_anchor(left), class_=f"tick{between}"))
    if all(p.at for p in points):
        return marks
    x = f"{(_TIMED + _UNTIMED) / 2:.2f}%"
    border = el("line", class_="border", x1=x, x2=x, y1=_HEAD - 8, y2=height)
    return [*marks, border, el("text", "no time", x=f"{_UNTIMED}%", y=14, text_anchor="end", class_="tick")]


def _from_cause(
    points: Sequence[Point], columns: Mapping[datetime | None, float], first: Point, height: int
) -> list[Safe]:
    """The moment of the cause, and what it led to as a shade behind the lanes."""
    start, top = columns[first.moment], _HEAD - 8
    end = max((columns[p.moment] for p in points if p.role == "cascade" and p.at), default=start)
    return [
        el("rect", class_="led", x=f"{start:.2f}%", width=f"{max(end - start, 0):.2f}%", y=top, height=height - top),
        el("line", class_="first", x1=f"{start:.2f}%", x2=f"{start:.2f}%", y1=top, y2=height),
    ]


def _anchor(x: float) -> str:
    """At the edges a label stands inside."""
    return "start" if x < 15 else "end" if x > 85 else "middle"


def _mark(p: Point, x: float, y: int, level: int) -> Safe:
    """A cause is a square that stands on its tip, a consequence a disc, all else a ring: not by colour alone."""
    when = f"{p.at:%H:%M:%S} " if p.at else ""
    title = el("title", f"{when}{p.lane}: {p.what} ({_WORDS.get(p.role, p.role)}{', ' + p.id if p.id else ''})")
    inner = el("svg", _shape(p.role), x=f"{x:.2f}%", y=y - level * 5, overflow="visible")
    return el("g", title, inner, class_=p.role)


def _shape(role: str) -> Safe:
    if role == "root":
        return el("rect", x="-6", y="-6", width="12", height="12", transform="rotate(45)")
    return el("circle", cx="0", cy="0", r="5.5" if role == "cascade" else "4")


def _since(at: datetime, zero: datetime) -> str:
    seconds = int((at - zero).total_seconds())
    if seconds == 0:
        return f"{zero:%H:%M:%S}"
    size, sign = abs(seconds), "+" if seconds > 0 else "−"
    if size < 120:
        return f"{sign}{size} s"
    return f"{sign}{size / 60:.0f} min" if size < 7200 else f"{sign}{size / 3600:.1f} h"


def _told(points: Sequence[Point], first: Point) -> str:
    after = [p.at for p in points if p.role == "cascade" and p.at]
    tail = f" Then {how_many(len(after), 'consequence')}, the last at {max(after):%H:%M:%S}." if after else ""
    head = "First failure" if first.role == "root" else "The first that tells its time"
    return f"{head}: {first.what} on {first.lane} at {first.at:%H:%M:%S}.{tail}"
