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
_WORDS = {"root": "cause", "cascade": "consequence", "context": "context"}


@dataclass(frozen=True, slots=True)
class Point:
    lane: str
    at: datetime
    role: str  # root|cascade|context
    what: str
    id: str
    place: str


@dataclass(frozen=True, slots=True)
class Picture:
    """svg: None where fewer than two moments are known; rows: the same as a table; more: lanes that are not drawn;

    led: consequences are among them.
    """

    svg: Safe | None
    rows: tuple[Point, ...]
    more: int = 0
    note: str = ""
    led: bool = False


def picture(result: Mapping[str, Any]) -> Picture:
    points = sorted(_points(result), key=lambda p: (p.at, p.role != "root"))
    times = sorted({p.at.replace(microsecond=0) for p in points})
    if len(points) < 2:
        return Picture(None, tuple(points))
    lanes = list(dict.fromkeys(p.lane for p in sorted(points, key=lambda p: (p.role != "root", p.at))))
    drawn, columns = lanes[:MOST_LANES], _columns(times)
    first = next((p for p in points if p.role == "root"), points[0])
    untimed = sum(_time(e.get("time")) is None for e in result.get("evidence", ()))
    note = _told(points, first) + (
        f" {how_many(untimed, 'cited line tells', 'cited lines tell')} no time." if untimed else ""
    )
    return Picture(
        _svg(points, drawn, columns, first),
        tuple(points),
        len(lanes) - len(drawn),
        note,
        any(p.role == "cascade" for p in points),
    )


def _points(result: Mapping[str, Any]) -> list[Point]:
    found = []
    for e in result.get("evidence", ()):
        at = _time(e.get("time"))
        if at is None:
            continue
        what = e.get("title") or e["failure_type"]
        found.append(Point(_lane(e), at, e["role"], what, e["id"], f"{e['file']}:{e['line']}"))
    known = {(p.id) for p in found}
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


def _columns(times: Sequence[datetime]) -> dict[datetime, float]:
    """Percent from the left. Where there are too many, neighbours share a place."""
    places = min(len(times), MOST_TIMES)
    if places == 1:
        return {times[0]: 50.0}
    column = {t: i * places // len(times) for i, t in enumerate(times)}
    return {t: _PAD + (100 - 2 * _PAD) * c / (places - 1) for t, c in column.items()}


def _svg(points: Sequence[Point], lanes: Sequence[str], columns: Mapping[datetime, float], first: Point) -> Safe:
    height = _HEAD + _HEIGHT * len(lanes) + 6
    y = {lane: _HEAD + _HEIGHT * i + 24 for i, lane in enumerate(lanes)}
    zero = first.at.replace(microsecond=0)
    marks = _from_cause(points, columns, first, height) if first.role == "root" else []
    shown: set[float] = set()
    for at, x in columns.items():
        if x not in shown:
            shown.add(x)
            marks.append(el("text", _since(at, zero), x=f"{x}%", y=14, text_anchor=_anchor(x), class_="tick"))
    for lane, down in y.items():
        marks.append(el("line", class_="rail", x1="0", x2="100%", y1=down, y2=down))
        marks.append(el("text", lane, x="0", y=down - 9, class_="lane"))
    stacked: dict[tuple[str, float], int] = {}
    for p in points:
        if p.lane in y:
            x = columns[p.at.replace(microsecond=0)]
            level = stacked[p.lane, x] = stacked.get((p.lane, x), -1) + 1
            if level < 3:
                marks.append(_mark(p, x, y[p.lane], level))
    about = f"{len(lanes)} lanes, from {points[0].at:%H:%M:%S} to {points[-1].at:%H:%M:%S}. {_told(points, first)}"
    titles = [el("title", "When what failed where", id="picture-title"), el("desc", about, id="picture-desc")]
    return el(
        "svg", titles, marks, class_="timeline", role="img", height=height, width="100%",
        aria_labelledby="picture-title", aria_describedby="picture-desc",
    )  # fmt: skip


def _from_cause(points: Sequence[Point], columns: Mapping[datetime, float], first: Point, height: int) -> list[Safe]:
    """The moment of the cause, and what it led to as a shade behind the lanes."""
    zero, top = first.at.replace(microsecond=0), _HEAD - 8
    last = max((p.at.replace(microsecond=0) for p in points if p.role == "cascade"), default=zero)
    start, wide = columns[zero], columns[max(last, zero)] - columns[zero]
    return [
        el("rect", class_="led", x=f"{start}%", width=f"{wide:.2f}%", y=top, height=height - top),
        el("line", class_="first", x1=f"{start}%", x2=f"{start}%", y1=top, y2=height),
    ]


def _anchor(x: float) -> str:
    """At the edges a label stands inside."""
    return "start" if x < 15 else "end" if x > 85 else "middle"


def _mark(p: Point, x: float, y: int, level: int) -> Safe:
    """A cause is a square that stands on its tip, a consequence a disc, all else a ring: not by colour alone."""
    title = el(
        "title", f"{p.at:%H:%M:%S} {p.lane}: {p.what} ({_WORDS.get(p.role, p.role)}{', ' + p.id if p.id else ''})"
    )
    inner = el("svg", _shape(p.role), x=f"{x}%", y=y - level * 5, overflow="visible")
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
    after = [p for p in points if p.role == "cascade"]
    tail = f" Then {how_many(len(after), 'consequence')}, the last at {after[-1].at:%H:%M:%S}." if after else ""
    head = "First failure" if first.role == "root" else "The first that tells its time"
    return f"{head}: {first.what} on {first.lane} at {first.at:%H:%M:%S}.{tail}"
