"""A seed set of rules and signatures for the tests of the scan."""

import functools
from collections.abc import Iterable

from triage.compress.engine import ScanLimits, Scanner
from triage.domain import FilterRule, ScannedFile
from triage.regex import erase

RULES = (
    FilterRule("blank", "blank lines", r"^\s*$"),
    FilterRule("metrics", "metric lines", r"^iteration\s+\d+/\s*\d+ \|.*$"),
    FilterRule("nccl-info", "NCCL at INFO", r"^\S+:\d+:\d+ \[\d+\] NCCL INFO .*$"),
    FilterRule("health", "health probes", r'"GET /metrics HTTP/1\.1" 200'),
    FilterRule("bar", "progress bars", r"\d+%\|[^|]*\|\s*\d+/\d+ \["),
    FilterRule("first-worker", "takes what the next rule would, and tells digits apart", r"^worker 1 ready$"),
    FilterRule("worker", "workers that come", r"^worker \d+ (?:added|ready)$"),
    FilterRule("counts", "summaries", r"^\d+ done, errors: \d+$"),
    FilterRule("one-line", "warnings of one line", r"^x\.py:\d: \w+Warning: old$", drops_warnings=True),
    FilterRule("deprecation", "deprecation warnings", r"(?:Future|Deprecation)Warning: ", drops_warnings=True),
)
SIGNATURES = (
    r"exit(?:ed with)? code:? (?:9|137)\b",
    r"^Killed$",
    r"(?i)cuda out of memory",
    r"worker \d+ dead$",
    r"Xid \(PCI:[0-9a-f:]+\): (?:79|48)\b",
    r"lm loss: nan",
)
HOT = tuple(erase(pattern) for pattern in SIGNATURES)
ALL = (10**6, 10**6)
EVERYTHING = ScanLimits(hot=ALL, alarm=ALL, plain=ALL, routine=ALL)


@functools.cache
def scanner(limits: ScanLimits | None = None, signatures: tuple[str, ...] = SIGNATURES, runs=None) -> Scanner:
    return Scanner(RULES, HOT, runs, limits, signatures)


def scan(data: bytes | Iterable[bytes], limits: ScanLimits | None = None, **kwargs) -> ScannedFile:
    return scanner(limits, **kwargs).scan("job.log", [data] if isinstance(data, bytes) else data)


def kept(found: ScannedFile) -> list[tuple[int, bytes, str]]:
    """Every kept occurrence in order: number, text, and rule, "hot" or ""."""
    lines = [
        (line.number, line.raw, "hot" if template.hot else template.rule or "")
        for run in found.runs
        for template in run.templates
        for line in (*template.first, *template.last)
    ]
    return sorted(lines)
