"""Priors from a job trace in the columns of AcmeTrace (trace_seren.csv, trace_kalos.csv): how jobs end, what failures cost.

The trace holds no log and no cause, so it cannot score a diagnosis. It says which failures matter: the GPU-hours that a
failed job of a given size burns are weights for cases whose own cost is not known.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from triage.errors import InputError
from triage.evaluation import lines
from triage.ingest import streams

SCHEMA = "triage.trace/1"
NEEDED = ("gpu_num", "state")
FAILED = frozenset(("FAILED", "TIMEOUT", "NODE_FAIL"))  # as the study counts; CANCELLED is a person's choice
ENDED = FAILED | {"COMPLETED", "CANCELLED"}
_CLASSES = ((1, "1"), (8, "2-8"), (64, "9-64"), (512, "65-512"))  # at most so many GPUs
_LARGEST = "513+"
_LONGEST = 100_000  # bytes of a row
_MEANING = (
    "The tables count jobs with GPUs that have ended: COMPLETED, CANCELLED, FAILED,",
    "TIMEOUT, NODE_FAIL. failed: the last three; CANCELLED is a person's choice.",
    "lost: the GPU-hours that failed jobs had run, whatever of it a checkpoint saved.",
)
_NAMED = 3  # bad rows that the summary names


@dataclass(slots=True)
class Tally:
    """Jobs and GPU-hours of a group; lost: those of its failed jobs."""

    jobs: int = 0
    failed: int = 0
    gpu_hours: float = 0.0
    lost: float = 0.0

    def add(self, failed: bool, gpu_hours: float) -> None:
        self.jobs += 1
        self.gpu_hours += gpu_hours
        if failed:
            self.failed += 1
            self.lost += gpu_hours

    def as_json(self) -> dict[str, Any]:
        return {
            "jobs": self.jobs,
            "failed": self.failed,
            "failure_share": _share(self.failed, self.jobs),
            "gpu_hours": round(self.gpu_hours, 3),
            "gpu_hours_lost": round(self.lost, 3),
            "lost_per_failure": round(self.lost / self.failed, 3) if self.failed else None,
        }


@dataclass(slots=True)
class AcmeSummary:
    """What a trace says. Groups count GPU jobs that have ended; states count all jobs.

    timed_by: where the run times came from: "times" (start to end), "gpu_time" or "duration".
    padded: rows whose gpu_time is over 1 % more than start to end explains: it counts the queue as well.
    """

    path: str
    rows: int = 0
    gpu_jobs: int = 0
    states: Counter[str] = field(default_factory=Counter)
    gpu_states: dict[str, Tally] = field(default_factory=dict)
    sizes: dict[str, Tally] = field(default_factory=dict)
    types: dict[str, Tally] = field(default_factory=dict)
    total: Tally = field(default_factory=Tally)
    timed_by: Counter[str] = field(default_factory=Counter)
    padded: int = 0
    skipped: int = 0
    problems: list[str] = field(default_factory=list)

    def weights(self) -> dict[str, float]:
        """Size class -> mean GPU-hours that a failed job of it burnt."""
        return {name: t.lost / t.failed for name, t in self.sizes.items() if t.failed}

    def gpu_hours(self, gpus: int) -> float | None:
        """The weight of a job of so many GPUs, or None where the trace shows no failure of that size."""
        return self.weights().get(size_class(gpus))

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "path": self.path,
            "rows": self.rows,
            "skipped": self.skipped,
            "problems": self.problems,
            "states": {s: {"jobs": n, "share": _share(n, self.rows)} for s, n in self.states.most_common()},
            "gpu_jobs": self.gpu_jobs,
            "total": self.total.as_json(),
            "gpu_states": {name: t.as_json() for name, t in _sorted(self.gpu_states)},
            "sizes": {name: self.sizes[name].as_json() for name in size_classes() if name in self.sizes},
            "types": {name: t.as_json() for name, t in _sorted(self.types)},
            "weights": {name: round(w, 3) for name, w in self.weights().items()},
            "timed_by": dict(self.timed_by),
            "padded": self.padded,
        }

    def as_text(self) -> str:
        """For a terminal, at 80 columns."""
        lines = [f"{self.path}: {self.rows} jobs, {self.gpu_jobs} of them with GPUs"]
        lines += [f"warning: {self.skipped} rows left out"] if self.skipped else []
        lines += [f"warning: {text}" for text in self.problems]
        if self.padded:
            lines.append(f"note: gpu_time counts the queue in {self.padded} rows; start to end was used")
        lines += ["", "All jobs by state:"]
        lines += [f"  {state:<12}{n:>9}{_percent(_share(n, self.rows)):>9}" for state, n in self.states.most_common()]
        for title, groups in (("GPUs", self.sizes), ("Type", dict(_sorted(self.types)))):
            head = f"{title:<14}{'jobs':>9}{'failed':>9}{'share':>8}{'GPU-hours':>13}{'lost':>12}{'per failure':>13}"
            order = size_classes() if title == "GPUs" else groups
            lines += ["", head, *(_row(name, groups[name]) for name in order if name in groups)]
        lines += [_row("all", self.total), "", *_MEANING]
        return "".join(c if c.isprintable() or c == "\n" else "?" for c in "\n".join(lines)) + "\n"


def import_acme(path: Path) -> AcmeSummary:
    """Reads a trace, row by row, compressed or not. A row that makes no sense is counted, named and left out.

    Errors: InputError for a file that cannot be read, lacks a column, or holds no sound row.
    """
    found = AcmeSummary(path.name)
    unread: list[str] = []
    try:
        reader = csv.DictReader(_lines(path, unread))
        _check_columns(path, reader.fieldnames, unread)
        for row in reader:
            _add(found, row, reader.line_num)
    except csv.Error as error:
        raise InputError(f"{path}: is no CSV: {error}", "give a job trace as CSV") from None
    found.problems += unread
    if not found.rows:
        why = f": {found.problems[0]}" if found.problems else ""
        raise InputError(f"{path}: no sound row among {found.skipped}{why}", "give a job trace as CSV")
    return found


def size_class(gpus: int) -> str:
    return next((name for most, name in _CLASSES if gpus <= most), _LARGEST)


def size_classes() -> list[str]:
    return [*(name for _, name in _CLASSES), _LARGEST]


def _lines(path: Path, problems: list[str]) -> Iterator[str]:
    pieces = streams.chunks(streams.Input(path.name, path, 0), problems)
    yield from (line.decode("utf-8", "replace") + "\n" for line in lines.bounded(pieces, _LONGEST))


def _check_columns(path: Path, names: Any, unread: list[str]) -> None:
    if not names and unread:
        raise InputError(
            f"{path}: cannot be read: {unread[0].removeprefix(f'{path.name}: ')}", "give a job trace as CSV"
        )
    if not names:
        raise InputError(f"{path}: is empty", "give a job trace as CSV, with its header")
    missing = [name for name in NEEDED if name not in (names or ())]
    if not {"start_time", "end_time"} <= set(names or ()) and not {"gpu_time", "duration"} & set(names or ()):
        missing.append("start_time and end_time (or gpu_time, or duration)")
    if missing:
        raise InputError(
            f"{path}: lacks the column{'s' if len(missing) > 1 or ' and ' in missing[0] else ''} {'; '.join(missing)}",
            "give a trace in the columns of AcmeTrace, with its header; docs/evaluation.md lists them",
        )


def _add(found: AcmeSummary, row: Mapping[str, str | None], line: int) -> None:
    state = (row.get("state") or "").strip().upper()
    gpus = _number(row.get("gpu_num"))
    if not state or gpus is None or gpus != int(gpus):
        _skip(found, line, "no state" if not state else f"gpu_num is {row.get('gpu_num')!r}")
        return
    if not gpus or state not in ENDED:  # RUNNING, PENDING: nothing to learn but that they are there
        found.rows += 1
        found.states[state] += 1
        found.gpu_jobs += bool(gpus)
        return
    timed = _gpu_seconds(row, gpus)
    if timed is None:
        _skip(found, line, "no run time")
        return
    seconds, source = timed
    found.rows += 1
    found.states[state] += 1
    found.gpu_jobs += 1
    found.timed_by[source] += 1
    claimed = _number(row.get("gpu_time"))
    found.padded += source == "times" and claimed is not None and claimed > 1.01 * seconds + gpus
    for groups, name in ((found.gpu_states, state), (found.sizes, size_class(int(gpus))), (found.types, _type(row))):
        groups.setdefault(name, Tally()).add(state in FAILED, seconds / 3600)
    found.total.add(state in FAILED, seconds / 3600)


def _gpu_seconds(row: Mapping[str, str | None], gpus: float) -> tuple[float, str] | None:
    """GPU-seconds from start to end. The trace's own gpu_time and duration hold the queue too in trace_kalos.csv, so
    they only stand in where the times are missing."""
    start, end = _time(row.get("start_time")), _time(row.get("end_time"))
    if start and end and (start.tzinfo is None) == (end.tzinfo is None) and end >= start:
        return (end - start).total_seconds() * gpus, "times"
    if (claimed := _number(row.get("gpu_time"))) is not None:
        return claimed, "gpu_time"
    if (seconds := _number(row.get("duration"))) is not None:
        return seconds * gpus, "duration"
    return None


def _skip(found: AcmeSummary, line: int, why: str) -> None:
    found.skipped += 1
    if len(found.problems) < _NAMED:
        found.problems.append(f"line {line}: {why}")


def _type(row: Mapping[str, str | None]) -> str:
    return (row.get("type") or "").strip() or "(none)"


def _number(value: str | None) -> float | None:
    """A finite number that is not negative."""
    try:
        found = float(value or "")
    except ValueError:
        return None
    return found if 0 <= found < float("inf") else None


def _time(value: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat((value or "").strip())
    except ValueError:
        return None


def _sorted(groups: Mapping[str, Tally]) -> list[tuple[str, Tally]]:
    """The costliest first."""
    return sorted(groups.items(), key=lambda item: (-item[1].lost, item[0]))


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, 6) if whole else None


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.1f}%"


def _row(name: str, t: Tally) -> str:
    per = _hours(t.lost / t.failed) if t.failed else "-"
    share = _percent(_share(t.failed, t.jobs))
    return f"{name[:13]:<14}{t.jobs:>9}{t.failed:>9}{share:>8}{_hours(t.gpu_hours):>13}{_hours(t.lost):>12}{per:>13}"


def _hours(value: float) -> str:
    return f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
