"""What a synthetic case is made of: files of lines, some of them marked as decisive, a clock and a seeded source of noise.

A case is a function with the decorator `case`; it fills the files of the `Case` it is given. The same function writes the same bytes
each time: all chance comes from `Case.rng`, which is seeded with the case's id. Line numbers of evidence come from the marks.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

Lines = str | Iterable[str]
HEALTHY, STOPPED = ("healthy",), ("time-limit", "preempted", "cancelled")


@dataclass(frozen=True)
class Spec:
    """The labels of one case; "a b" is a list of words, "x|y" in mention are alternatives."""

    id: str
    failure_type: str
    cls: str
    action: str
    source: str
    why: str
    tags: str = ""
    outcome: str = ""
    also: str = ""
    also_outcome: str = ""
    also_cls: str = ""
    status: str = ""
    nodes: str | None = None
    ranks: str | None = None
    mention: Sequence[str] = ()
    must_not: str = ""
    gpus: int = 0
    scheduler: dict[str, Any] | None = None

    def result(self) -> str:
        if self.outcome:
            return self.outcome
        return (
            "healthy" if self.failure_type in HEALTHY else "interrupted" if self.failure_type in STOPPED else "failed"
        )


Build = Callable[["Case"], None]
REGISTRY: dict[str, tuple[Spec, Build]] = {}


def case(name: str, failure_type: str, cls: str, action: str, **labels: Any) -> Callable[[Build], Build]:
    def register(build: Build) -> Build:
        if name in REGISTRY:
            raise ValueError(f"two cases are called {name}")
        REGISTRY[name] = (Spec(name, failure_type, cls, action, **labels), build)
        return build

    return register


class Log:
    """One file. e: True marks each line as decisive, a text marks the lines that hold it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[str] = []
        self.marked: dict[int, str] = {}  # 1-based line -> the text of it

    def add(self, *texts: Lines, e: bool | str = False) -> None:
        hits = 0
        for text in texts:
            for line in [text] if isinstance(text, str) else text:
                for row in line.split("\n"):
                    self.rows.append(row.rstrip(" ") if not row.strip() else row)
                    if e is True or (isinstance(e, str) and e in row):
                        self.marked[len(self.rows)] = row
                        hits += 1
        if e and not hits:
            raise ValueError(f"{self.name}: no line to mark with {e!r}")

    def ranges(self) -> list[list[Any]]:
        found: list[list[Any]] = []
        for line in sorted(self.marked):
            if found and found[-1][2] == line - 1:
                found[-1][2] = line
            else:
                found.append([self.name, line, line])
        return found

    def text(self) -> str:
        return "\n".join(self.rows) + "\n"


@dataclass
class Case:
    spec: Spec
    rng: random.Random = field(init=False)
    files: dict[str, Log] = field(default_factory=dict)
    now: datetime = datetime(2024, 1, 1, tzinfo=UTC)
    begun: datetime | None = None
    site: str = "/opt/conda/lib/python3.10/site-packages"
    root: str = "/workspace"

    def __post_init__(self) -> None:
        self.rng = random.Random(f"synth/{self.spec.id}")

    # files
    def file(self, name: str) -> Log:
        return self.files.setdefault(name, Log(name))

    # clock
    def start(self, when: str) -> None:
        """Set the clock: "2024-03-02 04:11:09"."""
        self.now = datetime.strptime(when, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        self.now += timedelta(microseconds=self.rng.randint(0, 999999))
        if self.begun is None:
            self.begun = self.now

    def tick(self, low: float, high: float | None = None) -> None:
        self.now += timedelta(seconds=low if high is None else self.rng.uniform(low, high))

    def t(self, form: str = "%Y-%m-%d %H:%M:%S", ago: float = 0) -> str:
        """The time now (or some seconds ago); %f3 gives milliseconds."""
        when = self.now - timedelta(seconds=ago)
        return when.strftime(form.replace("%f3", f"{when.microsecond // 1000:03d}"))

    def glog(self, level: str = "I", ago: float = 0) -> str:
        return self.t(f"{level}%m%d %H:%M:%S.%f", ago)

    # chance
    def n(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def f(self, low: float, high: float) -> float:
        return self.rng.uniform(low, high)

    def hex(self, digits: int = 12) -> str:
        return f"{self.rng.getrandbits(digits * 4):0{digits}x}"

    def pids(self, count: int, low: int = 1000, high: int = 90000) -> list[int]:
        first = self.n(low, max(high, low + 9000))
        return [first + i for i in range(count)]

    def jitter(self, value: float, part: float = 0.03) -> float:
        return value * (1 + self.rng.gauss(0, part))

    # result
    def labels(self) -> dict[str, Any]:
        s = self.spec
        expect: dict[str, Any] = {
            "outcome": s.result(),
            "also_outcome": s.also_outcome.split(),
            "failure_type": s.failure_type,
            "also_accept": s.also.split(),
            "root_cause_class": s.cls,
        }
        if s.also_cls:
            expect["root_cause_class_accept"] = s.also_cls.split()
        if s.status:
            expect["status"] = s.status.split()
        expect["evidence"] = [r for name in sorted(self.files) for r in self.files[name].ranges()]
        if s.nodes is not None:
            expect["nodes"] = s.nodes.split()
        if s.ranks is not None:
            expect["ranks"] = [int(r) for r in s.ranks.split()]
        expect["action"] = s.action.split()
        if s.mention:
            expect["must_mention"] = [m.split("|") for m in s.mention]
        expect["must_not"] = s.must_not.split()
        expect["why"] = s.why
        doc: dict[str, Any] = {
            "schema": "triage.case/1",
            "id": s.id,
            "split": "test" if int(s.id[1:]) % 2 == 0 else "dev",
            "synthetic": True,
            "source": s.source,
            "license": "Apache-2.0",
            "tags": sorted({*s.tags.split(), *(["multi-file"] if len(self.files) > 1 else [])}),
            "inputs": sorted({name.split("/")[0] for name in self.files}),
        }
        if s.gpus and self.begun:
            doc["gpu_hours"] = round(s.gpus * (self.now - self.begun).total_seconds() / 3600, 1)
        if s.scheduler:
            doc["scheduler"] = s.scheduler
        doc["expect"] = expect
        return doc

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, log in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(log.text().encode())
        (folder / "case.yaml").write_bytes(
            yaml.safe_dump(self.labels(), sort_keys=False, allow_unicode=True, width=120).encode()
        )


def build(name: str) -> Case:
    spec, fill = REGISTRY[name]
    made = Case(spec)
    fill(made)
    return made


# ---- working with lines


def pre(prefix: str, lines: Lines) -> list[str]:
    rows = lines.split("\n") if isinstance(lines, str) else [r for line in lines for r in line.split("\n")]
    return [prefix + r for r in rows]


def weave(rng: random.Random, streams: Sequence[Iterable[str]], run: int = 3) -> list[str]:
    """Merge the streams as several writers into one file do: each keeps its order, runs of 1..run lines."""
    left = [list(s) for s in streams if s]
    left = [s for s in left if s]
    out: list[str] = []
    while left:
        s = rng.choice(left)
        for _ in range(min(rng.randint(1, run), len(s))):
            out.append(s.pop(0))
        if not s:
            left.remove(s)
    return out


def tb(c: Case, frames: str, error: Lines, head: str = "Traceback (most recent call last):") -> list[str]:
    """A Python traceback from "path:line function | code" rows; $S is the site-packages folder, a relative path is under c.root."""
    out = [head] if head else []
    for row in frames.strip().split("\n"):
        where, _, code = row.strip().partition(" | ")
        place, _, func = where.rpartition(" ")
        path, _, line = place.rpartition(":")
        path = path.replace("$S", c.site)
        path = path if path.startswith(("/", "<")) else f"{c.root}/{path}"
        out.append(f'  File "{path}", line {line}, in {func}')
        if code:
            out.append(f"    {code}")
    return [*out, *([error] if isinstance(error, str) else error)]


class Curve:
    """A training loss: from start towards floor with time constant tau in steps."""

    def __init__(self, c: Case, start: float, floor: float, tau: float, noise: float = 0.012) -> None:
        self.c, self.start, self.floor, self.tau, self.noise = c, start, floor, tau, noise

    def __call__(self, step: int) -> float:
        smooth = self.floor + (self.start - self.floor) / (1 + step / self.tau)
        return self.c.jitter(smooth, self.noise)


def fault(c: Case, frames: str, thread: str = "Thread", tail: str = "(most recent call first):") -> list[str]:
    """A stack as faulthandler prints it; rows as in `tb`, innermost first."""
    out = [f"{thread} 0x00007f{c.hex(10)} {tail}"]
    for row in frames.strip().split("\n"):
        place, _, func = row.strip().rpartition(" ")
        path, _, line = place.rpartition(":")
        path = path.replace("$S", c.site)
        path = path if path.startswith(("/", "<")) else f"{c.root}/{path}"
        out.append(f'  File "{path}", line {line} in {func}')
    return out
