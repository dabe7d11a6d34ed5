"""Where a new run begins inside a file: appended jobs, requeues, restarts within one allocation.

Missing a border costs little, a wrong one hides the cause. So a border needs a sign that something begins *and* a sign
that what was before it has ended: a banner alone is also printed by every rank, by each spawned worker and by monitors.
Kernel logs are never split: what a boot follows may be the cause of it.
"""

from __future__ import annotations

import functools
import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from triage.ingest.text import readable
from triage.ingest.times import Clock
from triage.regex import compile_pattern, erase, skeleton

_OPENING = 3  # non-blank lines that a file starts with, and that must come again together
_LOOK_BACK = 40
_LOOK_AHEAD = 12
_SILENCE = timedelta(minutes=20)
_UNDER_ONE_JOB = 50  # so many lines after the last job id, another one is no neighbour that writes into the same file
_MOST_KEYS = 20_000
_SEEN = 2000  # bytes of a line that are looked at
_MOST_JOBS = 100  # a file with more is the log of a scheduler
_MOST_TESTS = 1000  # looks around a line; a banner that comes this often is none

_DATE = re.compile(r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? .{0,40}\d\d:\d\d:\d\d.{0,20}\b\d{4}(?: .{0,8})?$")
_CANCELLED = re.compile(r"\*\*\* JOB \d+ ON \S+ CANCELLED AT ")
_LAUNCH = re.compile(
    r"Setting OMP_NUM_THREADS environment variable for each process|\[(?:runner|launch)\.py:\d+:main\]|NVIDIA-SMI \d"
    r"|torch\.distributed\.launch is deprecated|using world size: \d|^\++ \w|Ray runtime started|Started a local Ray"
    r"|^[Ll]oading (?:module|\S+ version)|have been reloaded with a version change|^nohup: ignoring input"
    r"|wandb: (?:Currently logged in|Tracking run)|^\W{0,20}Start(?:ing)? (?:Evaluation|[Tt]raining|[Jj]ob)\b"
    r"|^(?:[Jj]ob|JOB|SLURM|[Ss]lurm)\b.{0,30}\b[Ss]tart(?:ed|ing)?\b"
)
_JOB_ID = re.compile(
    r"^\W{0,20}(?:export |declare -x |[Mm]y |[Tt]he |[Rr]unning |[Ss]tarting )?"
    r"(?:SLURM_JOB_?ID|PBS_JOBID|LSB_JOBID|(?:[Ss]lurm )?[Jj]ob ?ID|JOB_?ID)[\"']?(?: is)?\s*[=: ]\s*[\"']?(\d{2,12})\b"
)
_RESTART = re.compile(r"\b(?:SLURM_)?(?:RESTART_COUNT|restart_count)[\"']?\s*[=:]\s*[\"']?(\d{1,6})\b")
_ENDED = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*\w*(?:Error|Exception|Interrupt|SystemExit)\b(?::|$)|^\s*exit ?code\s*: -?\d|exitcode: -?[1-9]"
    r"|Root Cause \(first observed|srun: error: .*(?:[Ee]xited|[Kk]illed|[Tt]erminated)|slurmstepd\S* error: .*\*\*\*"
    r"|[Ss]egmentation fault|core dumped|^(?:\S+: line \d+: +\d+ )?(?:Killed|Aborted|Terminated)\b|mpirun noticed"
    r"|return code = -?\d|MPI_ABORT was invoked|wandb: (?:Find logs at|Synced \d|You can sync)|^real\t|^ENDING TIMING RUN"
    r"|^Success rate|^(?:Total|Elapsed|Run) ?time\b"
    r"|\b(?:[Tt]raining|[Jj]ob|[Rr]un|[Ee]valuation|[Ss]cript|[Aa]ll)\b.{0,20}\b(?:completed?|finished|done|ended)\b"
)
_NOT_SPLIT = re.compile(r"\bkernel: |Linux version \d|^(?:<\d+>)?\[ *\d+\.\d{6}\]|Command line: BOOT_IMAGE")
_TABLE = "JobID|"  # how the scheduler's accounting begins: with its columns, once for each attempt
_DATED = b"a line that is a date"
_RULED = re.compile(rb"[-=+|_*# ]{2,}")


class Block(Protocol):
    """Lines in a row. counts: how many lines each outline (the line with a zero for each digit) has."""

    @property
    def counts(self) -> Mapping[bytes, int]: ...
    @property
    def lines(self) -> Sequence[bytes]: ...
    def last(self, count: int) -> Sequence[bytes]: ...
    def places(self, wanted: Collection[bytes]) -> Iterable[int]:
        """The places of the lines of these outlines, ascending."""
        ...


class Boundaries:
    """The borders of one file, asked block after block, in order."""

    def __init__(self) -> None:
        self._opening: list[bytes] = []
        self._split = True
        self._table = ""  # the first line of a table of the accounting
        self._kinds: dict[bytes, str] = {}  # by outline
        self._possible: dict[bytes, bool] = {}  # by skeleton
        self._before: deque[bytes] = deque(maxlen=_LOOK_BACK)
        self._run_start = 1
        self._began: datetime | None = None  # the time on the run's first line
        self._cancelled = False
        self._repeats = False  # the opening came again where nothing had ended: a monitor, or ranks one after another
        self._jobs: dict[str, int] = {}  # id -> the line it was last seen in
        self._restarts = -1
        self._tests = _MOST_TESTS

    def openings(self, block: Block, first_number: int) -> list[int]:
        """The places in this block where a new run begins, ascending. first_number: of the block's first line."""
        if first_number == 1:
            self._learn(block.lines)
        found: list[int] = []
        if self._split:
            for at, kind in self._candidates(block):
                if self._begins(kind, block.lines, at, first_number + at) and first_number + at > 1:
                    found.append(at)
                    self._run_start, self._cancelled = first_number + at, False
                    self._began = _time(readable(block.lines[at][:400]))
        self._before.extend(block.last(_LOOK_BACK))
        return found

    def _learn(self, lines: Sequence[bytes]) -> None:
        head = [line for line in lines[:100] if line.strip()][:_OPENING]
        self._opening = [_shape(line) for line in head]
        first = readable(head[0][:_SEEN]).strip() if head else ""
        self._table = first if first.startswith(_TABLE) else ""
        self._split = not any(_NOT_SPLIT.search(readable(line[:400])) for line in lines[:20])

    def signs(self, block: Block) -> frozenset[str]:
        """What kinds of candidates the block holds, wherever it stands behind the file's first block."""
        return frozenset(self._wanted(block).values()) if self._split else frozenset()

    def heeds(self, signs: Iterable[str]) -> bool:
        """Whether, after all blocks so far, candidates of these kinds could make a difference."""
        opening = self._tests > 0 and (self._cancelled or not self._repeats)
        deaf = {"launch": not self._cancelled, "opening": not opening}
        return self._split and not all(deaf.get(sign, False) for sign in signs)

    def skip(self, last: Sequence[bytes]) -> None:
        """Lines went by that make no difference; these are the last of them."""
        self._before.extend(last[-_LOOK_BACK:])

    def _candidates(self, block: Block) -> list[tuple[int, str]]:
        return sorted((at, kind) for outline, kind in self._wanted(block).items() for at in block.places({outline}))

    def _wanted(self, block: Block) -> dict[bytes, str]:
        """The kinds of the outlines that are candidates."""
        wanted: dict[bytes, str] = {}
        for outline in block.counts:
            kind = self._kinds.get(outline)
            if kind is None:
                if len(self._kinds) > _MOST_KEYS:
                    self._kinds.clear()
                kind = self._kinds[outline] = self._kind(outline) if self._may_open(outline) else ""
            if kind:
                wanted[outline] = kind
        return wanted

    def _may_open(self, outline: bytes) -> bool:
        """Whether a line of this skeleton may open a run; outlines often do not repeat, skeletons do."""
        key = skeleton(outline[:_SEEN])
        known = self._possible.get(key)
        if known is None:
            if len(self._possible) > _MOST_KEYS:
                self._possible.clear()
            text = _outline_text(outline)
            known = self._possible[key] = (
                bool(self._opening and _wording(text) == self._opening[0])
                or _any_opening().search(skeleton(text.strip().encode()).decode()) is not None
            )
        return known

    def _kind(self, outline: bytes) -> str:
        """Of all lines with the outline; what a candidate really says is looked at again."""
        text = _outline_text(outline)
        if self._table and text.strip() == self._table:
            return "table"
        if "CANCELLED" in text and _CANCELLED.search(text):
            return "cancelled"
        if ("id" in text or "ID" in text) and _JOB_ID.search(text):
            return "job"
        if ("RESTART" in text or "restart" in text) and _RESTART.search(text):
            return "restart"
        dated = ":" in text and bool(_DATE.match(text.strip()))
        if self._opening and (_DATED if dated else _wording(text)) == self._opening[0]:
            return "opening"
        return "launch" if dated or _LAUNCH.search(text) else ""

    def _begins(self, kind: str, lines: Sequence[bytes], at: int, number: int) -> bool:
        if kind == "cancelled":
            self._cancelled = True
            return False
        if kind == "table":
            return True
        if kind == "job":
            return self._other_job(lines, at, number)
        if kind == "restart":
            match = _RESTART.search(readable(lines[at][:_SEEN]))
            count = int(match[1]) if match else -1
            risen = count > max(self._restarts, 0)
            self._restarts = max(self._restarts, count)
            return risen
        if number - self._run_start < _OPENING:
            return False
        if kind == "launch":
            return self._cancelled
        if (self._repeats and not self._cancelled) or not self._opens_again(lines, at):
            return False
        if self._cancelled or (not self._repeats and self._ended(lines, at, number)):
            return True
        self._repeats = True
        return False

    def _other_job(self, lines: Sequence[bytes], at: int, number: int) -> bool:
        match = _JOB_ID.search(readable(lines[at][:_SEEN]))
        if not match:
            return False
        last = max(self._jobs.values(), default=None)
        known = match[1] in self._jobs
        if known or len(self._jobs) <= _MOST_JOBS:
            self._jobs[match[1]] = number
        if known or last is None or self._tests <= 0 or len(self._jobs) > _MOST_JOBS:
            return False
        return self._cancelled or number - last >= _UNDER_ONE_JOB or self._ended(lines, at, number)

    def _opens_again(self, lines: Sequence[bytes], at: int) -> bool:
        """Whether the lines from here on are those that the file began with; at the end of a block, as far as it goes."""
        if self._tests <= 0 or sum(map(len, self._opening)) < 12:
            return False
        self._tests -= 1
        ahead = [_shape(line) for line in lines[at : at + _LOOK_AHEAD] if line.strip()][:_OPENING]
        return ahead == self._opening[: len(ahead)]

    def _ended(self, lines: Sequence[bytes], at: int, number: int) -> bool:
        """Whether the lines before say that something ended, or a long time lies between them and this one."""
        self._tests -= 1
        before = [*self._before, *lines[max(0, at - _LOOK_BACK) : at]][-_LOOK_BACK:]
        texts = [readable(line[:4000]) for line in before]
        if any(_ENDED.search(text) for text in texts):
            return True
        now = _time(readable(lines[at][:400]))
        near = self._began if number - self._run_start < 2 * _LOOK_BACK else None
        last = next((time for text in reversed(texts) if (time := _time(text))), near)
        return now is not None and last is not None and now - last > _SILENCE


@functools.cache
def _any_opening() -> Any:
    """What matches the skeleton of every line that is a candidate of any kind but "opening"."""
    patterns = [of.pattern for of in (_CANCELLED, _JOB_ID, _RESTART, _LAUNCH)]
    return compile_pattern(erase("|".join(f"(?:{pattern})" for pattern in (*patterns, f"^(?:{_DATE.pattern})"))))


def _outline_text(outline: bytes) -> str:
    """What lines of the outline say; the digits of spelled escape sequences are put back."""
    return readable(outline[:_SEEN].replace(b"#000[", b"#033[").replace(rb"\u000b[", rb"\u001b["))


def _shape(line: bytes) -> bytes:
    """What a line has in common with the same line of another run: no digits, no dates, tables of any width."""
    text = readable(line[:_SEEN])
    return _DATED if _DATE.match(text.strip()) else _wording(text)


def _wording(text: str) -> bytes:
    return _RULED.sub(b"-", skeleton(text.strip().encode()))


def _time(text: str) -> datetime | None:
    return Clock().read(text.lstrip("[ "))[0]
