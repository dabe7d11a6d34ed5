"""A run folder as the report sees it: one Row a record, with its marks, and the figures of metrics.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from triage.evaluation import record, unfinished
from triage.evaluation.answers import Answer, of_baseline, of_tool
from triage.evaluation.diagnosed import DIAGNOSED
from triage.evaluation.figures import Metric, by_strength, rank, with_interval
from triage.evaluation.measures import LABELLED
from triage.evaluation.metrics import splits
from triage.markup import slug

MARKS = {m.name: m for m in (*LABELLED, *DIAGNOSED)}
# What costs most, first: name of a measure that is 1 when it went wrong, how it is told.
COSTLY = ("missed_failure", "false_alarm", "must_not", "false_stop", "false_restart", "false_cordon")
# What else goes wrong: the answer itself, where to look, what to do, and what it rests on.
OTHER = (
    "type_accepted",
    "outcome",
    "node_top1",
    "rank_top1",
    "action",
    "cause_class_accepted",
    "any_hit",
    "root_hit",
    "must_mention",
)


@dataclass(frozen=True)
class Row:
    """One record. anchor: id of its place in the page; title: case and, with several repeats, which; sets: the splits of metrics.json
    that hold it, without tags."""

    answer: Answer
    anchor: str
    title: str
    sets: tuple[str, ...] = ()

    @property
    def record(self) -> Mapping[str, Any]:
        return self.answer.record

    @cached_property
    def marks(self) -> dict[str, float | None]:
        """Each measure on this record; None where it is not labelled for it."""
        return {name: m(self.answer) for name, m in MARKS.items()}

    @property
    def want(self) -> str:
        return self.answer.want_type or self.answer.accepted_outcomes[0] or "not labelled"

    @property
    def got(self) -> str:
        return self.answer.failure_type or "no answer"

    @property
    def problem(self) -> str:
        return str(self.record.get("problem") or "")

    @property
    def tags(self) -> list[str]:
        return [str(t) for t in self.record.get("tags") or ()]

    @property
    def split(self) -> str:
        return str(self.record.get("split") or "")

    @property
    def seconds(self) -> float:
        return float(self.record.get("seconds") or 0)

    @property
    def peak_mb(self) -> float:
        return float(self.record.get("peak_mb") or 0)

    @property
    def verdict(self) -> str:
        """exact, accepted or wrong, by failure type; by outcome where no type is labelled."""
        if self.marks["type_exact"] or (self.marks["type_exact"] is None and self.marks["outcome"] == 1):
            return "exact"
        return "accepted" if self.marks["type_accepted"] else "wrong"

    @property
    def right(self) -> bool:
        """Type and outcome are the labelled ones, or accepted."""
        return self.verdict != "wrong" and self.marks["outcome"] != 0

    def bad(self, name: str) -> bool:
        """Went wrong by this measure."""
        return self.marks[name] == (1 if MARKS[name].better == "lower" else 0)

    @property
    def faults(self) -> list[str]:
        """What went wrong, by name of measure, the costly first."""
        return (["problem"] if self.problem else []) + [n for n in (*COSTLY, *OTHER) if self.bad(n)]

    @property
    def grave(self) -> bool:
        """Wrong, or right with a costly mistake."""
        return not self.right or any(self.bad(n) for n in COSTLY)

    @property
    def weight(self) -> tuple[Any, ...]:
        """Orders rows: the costliest mistakes first, what is right last."""
        worst = next((i for i, name in enumerate(COSTLY) if self.bad(name)), len(COSTLY))
        return (not self.problem, self.right, worst, self.verdict == "accepted", self.title)


@dataclass(frozen=True)
class Report:
    """What a page is made from. metrics: the object of metrics.json."""

    run: Mapping[str, Any]
    rows: Sequence[Row]
    metrics: Mapping[str, Any]

    @property
    def all(self) -> Mapping[str, Metric]:
        return self.split("all")

    def split(self, name: str) -> Mapping[str, Metric]:
        found = self.metrics.get("splits", {}).get(name)
        return found if isinstance(found, Mapping) else {}

    @property
    def baselines(self) -> Mapping[str, Mapping[str, Metric]]:
        found = self.metrics.get("baselines")
        return found if isinstance(found, Mapping) else {}

    @property
    def order(self) -> list[str]:
        """The baselines, as they are shown everywhere."""
        return by_strength(self.baselines)

    def best_baseline(self, name: str, better: str) -> str:
        """The baseline that does best by this metric; "" where none was measured."""
        known = [b for b, metrics in self.baselines.items() if metrics.get(name)]
        return max(known, key=lambda b: rank(self.baselines[b][name], better), default="")

    @property
    def model(self) -> str:
        name = str(self.run.get("model") or "off")
        return "" if name == "off" else name

    @property
    def cases(self) -> int:
        return len({r.answer.case for r in self.rows})

    @property
    def repeats(self) -> int:
        return max((r.answer.repeat for r in self.rows), default=0) + 1

    @property
    def unfinished(self) -> str:
        """Says it where records are still to come; "" of a finished run."""
        lacks = unfinished.missing(self.run, (r.record for r in self.rows))
        return f"This run is not finished: {lacks}." if lacks else ""

    @property
    def seen(self) -> str:
        """What the splits say about how far the figures carry; "" where nothing was seen before."""
        dev = len({r.answer.case for r in self.rows if r.split == "dev"})
        if not dev:
            return ""
        if dev == self.cases:
            return "All cases are of the split dev, which may be looked at while rules are written: on unseen logs expect less."
        test, known = (with_interval(self.split(name).get("type_accepted")) for name in ("test", "dev"))
        return (
            f"The failure type is right in {known} of the split dev ({dev} of {self.cases} cases), which may be looked at while rules are "
            f"written, and in {test} of the split test. On unseen logs expect the latter at best, and less if test cases were looked at."
        )

    def worst_first(self) -> list[Row]:
        return sorted(self.rows, key=lambda r: r.weight)

    def having(self, fault: str) -> list[Row]:
        return [r for r in self.rows if fault in r.faults]


@dataclass(frozen=True, slots=True)
class TypeRow:
    """One failure type: the rows that are labelled with it, and how often it was answered and rightly so."""

    name: str
    rows: tuple[Row, ...]
    answered: int
    answered_right: int

    @property
    def accepted(self) -> int:
        return sum(r.verdict != "wrong" for r in self.rows)

    @property
    def exact(self) -> int:
        return sum(r.verdict == "exact" for r in self.rows)


def by_type(rows: Iterable[Row]) -> list[TypeRow]:
    """Types that are labelled or answered: the worst first, of equals the most frequent first."""
    rows = list(rows)
    said = Counter(r.got for r in rows)
    well = Counter(r.got for r in rows if r.verdict != "wrong")
    names = {r.want for r in rows} | {r.got for r in rows if r.answer.answered}
    found = [TypeRow(n, tuple(r for r in rows if r.want == n), said[n], well[n]) for n in names]
    return sorted(found, key=lambda t: (t.accepted / len(t.rows) if t.rows else 2, -len(t.rows), t.name))


def confusion(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """(labelled, answered) -> rows."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.want, row.got), []).append(row)
    return found


def outcome_pair(row: Row) -> str:
    """Labelled and answered outcome."""
    return f"{row.answer.accepted_outcomes[0] or 'not labelled'} → {row.answer.outcome or 'no answer'}"


def baseline_answers(row: Row, names: Iterable[str]) -> list[tuple[str, Answer]]:
    """What each baseline answered in this case."""
    answers = ((name, of_baseline(row.record, name)) for name in names)
    return [(name, answer) for name, answer in answers if answer is not None]


def load(run: Path, metrics: Mapping[str, Any] | None = None) -> Report:
    """The run folder. metrics: instead of its metrics.json. Errors: InputError."""
    records = record.read_records(run)
    return report(record.read_run(run), records, record.read_metrics(run) if metrics is None else metrics)


def report(run: Mapping[str, Any], records: Sequence[Mapping[str, Any]], metrics: Mapping[str, Any]) -> Report:
    answers = [of_tool(r) for r in records]
    several = any(a.repeat for a in answers)
    sets = {
        name: set(map(id, part))
        for name, part in splits(answers).items()
        if name != "all" and not name.startswith("tag:")
    }
    rows: dict[str, Row] = {}
    for a in answers:
        title = f"{a.case} #{a.repeat + 1}" if several else a.case
        anchor = f"case-{slug(title)}"
        while anchor in rows:
            anchor += "-"
        rows[anchor] = Row(a, anchor, title, tuple(name for name, ids in sets.items() if id(a) in ids))
    return Report(run, list(rows.values()), metrics)
