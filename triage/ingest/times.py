"""Time stamps of log lines. Pure. A stamp without a zone is taken as UTC.

A stamp without a year or a date is completed from what is known of the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

_MONTHS = {m: i for i, m in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}  # noqa: SIM905
_CLOCK = r"(\d{2}):(\d{2}):(\d{2})(?:[.,:](\d{1,9}))?"
_MONTH = r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_ISO = re.compile(
    r"(\d{4})([-/.])(\d{2})\2(\d{2})(?:[T_ ]| - |, ?)"
    + _CLOCK
    + r"(?: ?(Z|UTC|[+-]\d{2}:?\d{2})(?![\w:]))?(?: ?([AP]M)\b)?"
)
_SPARK = re.compile(r"(\d{2})/(\d{2})/(\d{2}) " + _CLOCK)
_RICH = re.compile(r"(\d{2})[/-](\d{2}) \[?" + _CLOCK + r"\]?")
_US = re.compile(r"(\d{1,2})/(\d{1,2})/(20\d\d),? " + _CLOCK + r"(?: ([AP]M)\b)?")
_SYSLOG = re.compile(_MONTH + r" {1,2}(\d{1,2}) (?:(\d{4}) )?" + _CLOCK)
_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? "
_CTIME = re.compile(
    _WEEKDAY + _MONTH + r" {1,2}(\d{1,2}) " + _CLOCK + r"(?: ?([AP]M))?(?: ([A-Z]{3,5}|[+-]\d{4}))? (\d{4})\b"
)
_DATE = re.compile(
    rf"(?:{_WEEKDAY})?"
    + r"(\d{1,2})[ /-]"
    + _MONTH
    + r"[ /-](\d{4})[ :,]{1,2}"
    + _CLOCK
    + r"(?: ([AP]M))?(?: ([+-]\d{4}|[A-Z]{3,5})\b)?"
)
_GLOG = re.compile(r"([IWEFDC])(\d{1,2})(\d{2}) " + _CLOCK)
_GLOG_EPOCH = re.compile(r"([IWEF])0000 00:00:(\d{10})\.(\d{1,6})")
_EPOCH = re.compile(r"(\d{10})\.(\d{3,9})(?!\d)")
_CLOCK_ONLY = re.compile(_CLOCK + r"(?![\d:])")
_Parts = tuple[str | None, ...]  # hour, minute, second, fraction
_DAY = timedelta(days=1)
_HALF_HOUR = timedelta(minutes=30)
_JUMP = timedelta(minutes=20)
_NEAR = timedelta(minutes=5)


class Clock:
    """Reads stamps of one file and completes those without a year or a date from the dated lines around them.

    `reference`: the time nearest to the file's lines that is known from outside (its modification time), or None.
    """

    def __init__(self, reference: datetime | None = None) -> None:
        self._reference = reference
        self._last: datetime | None = None
        self._counted: datetime | None = None  # the last stamp, if it was in seconds since 1970
        self._shift: timedelta | None = None
        self.anchor: datetime | None = None  # the first full date of the file, wherever it stands

    @property
    def last(self) -> datetime | None:
        return self._last

    def read(self, text: str, at: int = 0) -> tuple[datetime | None, int]:
        """The stamp that starts at `at`, and its end; (None, at): there is none; (None, end): it cannot be dated."""
        first = text[at : at + 1]
        for pattern, build in _READERS.get(first, ()) if not first.isdecimal() else _DIGITS:
            if match := pattern.match(text, at):
                try:
                    found = build(self, match)
                except (ValueError, OverflowError):
                    continue
                if found is not None:
                    if self._counted is not None and found != self._counted:
                        self._check_zone(found)
                    self._last = found
                return found, match.end()
        return None, at

    def from_epoch(self, seconds: float) -> datetime:
        """A stamp in seconds since 1970, brought to the zone in which the other stamps of the file are written.

        They name none and stand for UTC, so the two must not lie hours apart on lines that follow each other. Only a
        jump back in time proves a zone, as a log may well be silent for hours. Errors: OverflowError, ValueError.
        """
        found = datetime.fromtimestamp(seconds, UTC)
        if self._shift is None and self._last is not None and found < self._last - _JUMP:
            self._shift = _whole_zone(self._last - found)
        found += self._shift or timedelta()
        self._counted = found
        return found

    def _check_zone(self, found: datetime) -> None:
        """The other direction: a stamp of the clock on the wall lies hours before the counted one on the line above."""
        if self._shift is None and self._counted is not None and found < self._counted - _JUMP:
            shift = _whole_zone(self._counted - found)
            self._shift = -shift if shift else None
        self._counted = None

    def near(self, month: int, day: int, clock: _Parts) -> datetime | None:
        """The date of a stamp without a year: the one nearest to what is known; None if nothing is known."""
        known = self._last or self.anchor or self._reference
        if known is None:
            return None
        found: list[datetime] = []
        for year in (known.year - 1, known.year, known.year + 1):
            try:
                found.append(_at((year, month, day), clock))
            except ValueError:  # 29 February
                continue
        if known is self._reference:  # the file was last written at the reference, so its lines are older
            found = [f for f in found if f <= known + _DAY] or found
        return min(found, key=lambda f: abs(f - known)) if found else None

    def today(self, clock: _Parts) -> datetime | None:
        """The date of a mere time of day: goes on from the last dated line, over midnight if need be."""
        known = self._last or self.anchor
        if known is None:
            return None
        found = _at((known.year, known.month, known.day), clock).replace(tzinfo=known.tzinfo)
        if known - found > _DAY / 2:
            found += _DAY
        elif found - known > _DAY * 0.75:
            found -= _DAY
        return found


def _at(date: tuple[int, int, int], clock: _Parts, half: str | None = None, zone: str | None = None) -> datetime:
    hour = int(clock[0] or 0)
    if half:
        hour = hour % 12 + (12 if half == "PM" else 0)
    micro = int((clock[3] or "0")[:6].ljust(6, "0"))
    year, month, day = date
    return datetime(year, month, day, hour, int(clock[1] or 0), int(clock[2] or 0), micro, tzinfo=_zone(zone))


def _zone(name: str | None) -> timezone:
    if not name:
        return UTC
    if name[0] in "+-":
        sign = -1 if name[0] == "-" else 1
        minutes = sign * (int(name[1:3]) * 60 + int(name[-2:]))
        return timezone(timedelta(minutes=minutes)) if minutes else UTC
    return UTC  # CET, CST ...: the other stamps of that machine carry none, and must stay comparable with this one


def _iso(_: Clock, m: re.Match[str]) -> datetime:
    year, _sep, month, day, *clock, zone, half = m.groups()
    return _at((int(year), int(month), int(day)), tuple(clock), half, zone)


def _spark(_: Clock, m: re.Match[str]) -> datetime:
    """yy/mm/dd, or mm/dd/yy where the first cannot be a year of this sort."""
    a, b, c, *clock = m.groups()
    try:
        return _at((2000 + int(a), int(b), int(c)), tuple(clock))
    except ValueError:
        return _at((2000 + int(c), int(a), int(b)), tuple(clock))


def _us(_: Clock, m: re.Match[str]) -> datetime:
    """mm/dd/yyyy as Python's strftime habits have it; dd/mm/yyyy where no month is so high."""
    a, b, year, h, mi, s, f, half = m.groups()
    month, day = (int(a), int(b)) if int(a) <= 12 else (int(b), int(a))
    return _at((int(year), month, day), (h, mi, s, f), half)


def _month_day(clock: Clock, m: re.Match[str]) -> datetime | None:
    month, day, *rest = m.groups()
    return clock.near(int(month), int(day), tuple(rest))


def _syslog(clock: Clock, m: re.Match[str]) -> datetime | None:
    month, day, year, *rest = m.groups()
    if year:
        return _at((int(year), _MONTHS[month], int(day)), tuple(rest))
    return clock.near(_MONTHS[month], int(day), tuple(rest))


def _ctime(_: Clock, m: re.Match[str]) -> datetime:
    month, day, h, mi, s, f, half, zone, year = m.groups()
    return _at((int(year), _MONTHS[month], int(day)), (h, mi, s, f), half, zone)


def _date(_: Clock, m: re.Match[str]) -> datetime:
    day, month, year, h, mi, s, f, half, zone = m.groups()
    return _at((int(year), _MONTHS[month], int(day)), (h, mi, s, f), half, zone)


def _glog(clock: Clock, m: re.Match[str]) -> datetime | None:
    _level, month, day, *rest = m.groups()
    return clock.near(int(month), int(day), tuple(rest))


def _whole_zone(difference: timedelta) -> timedelta | None:
    """The offset of a time zone that two clocks differ by, if they differ by one."""
    halves = round(difference / _HALF_HOUR)
    return halves * _HALF_HOUR if 1 <= halves <= 28 and abs(difference - halves * _HALF_HOUR) < _NEAR else None


def _glog_epoch(clock: Clock, m: re.Match[str]) -> datetime:
    return clock.from_epoch(float(f"{m[2]}.{m[3]}"))


def _unix(clock: Clock, m: re.Match[str]) -> datetime:
    return clock.from_epoch(float(f"{m[1]}.{m[2]}"))


def _of_day(clock: Clock, m: re.Match[str]) -> datetime | None:
    return clock.today(m.groups())


_Reader = tuple[re.Pattern[str], Callable[[Clock, re.Match[str]], datetime | None]]
_DIGITS: tuple[_Reader, ...] = (
    (_ISO, _iso),
    (_SPARK, _spark),
    (_US, _us),
    (_RICH, _month_day),
    (_EPOCH, _unix),
    (_CLOCK_ONLY, _of_day),
    (_DATE, _date),
)
_READERS: dict[str, tuple[_Reader, ...]] = {
    **dict.fromkeys("JFMASOND", ((_SYSLOG, _syslog), (_CTIME, _ctime), (_DATE, _date))),
    **dict.fromkeys("MTWFS", ((_CTIME, _ctime), (_SYSLOG, _syslog), (_DATE, _date))),
    "I": ((_GLOG_EPOCH, _glog_epoch), (_GLOG, _glog)),
    "E": ((_GLOG_EPOCH, _glog_epoch), (_GLOG, _glog)),
    "C": ((_GLOG, _glog),),
}
for _letter in "WFD":
    _READERS[_letter] = ((_GLOG_EPOCH, _glog_epoch), (_GLOG, _glog), *_READERS[_letter])
