"""The scan against ripgrep, with 40 rules, on one core: python -m benchmarks.throughput [--megabytes 300] [--memory 3000]

One log of benchmarks.make_log, one file of 40 anchored rules, and in turn, round after round, each pinned to one core: the
scan as `triage` does it (all shipped signatures, where runs begin, line numbers, counts by rule, folding), ripgrep
(`rg --no-mmap -a -n -v -f RULES LOG`) and a loop over Python's `re`. What counts is the best round, in CPU seconds, which
neighbours on the machine disturb least. Then the scan in one process and in two, not pinned; and with --memory the most
that all processes together hold (PSS) in reading a log of that size.

Targets: at least 0.6 of ripgrep, 5 times `re`, two cores 1.6 times one, less than 300 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

RULES = Path(__file__).with_name("throughput_rules.txt")
SAMPLE = 30_000_000  # bytes that the loop over `re` reads
PINNED = ["taskset", "-c", "0"]


def cpu_seconds() -> list[float]:
    """Of this process and of the workers that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return [usage.ru_utime + usage.ru_stime for usage in used]


def scan(path: str, jobs: int) -> dict[str, Any]:
    """One scan, in this process and its workers; what is compiled before a file is opened does not count."""
    from triage import kb, scanning
    from triage.compress.engine import Scanner
    from triage.domain import FilterRule
    from triage.evidence.match import Matcher
    from triage.ingest import boundaries, sources, streams

    rules = [FilterRule(f"rule-{n}", "", line) for n, line in enumerate(RULES.read_text().splitlines(), 1)]
    matcher = Matcher(kb.signatures())
    scanner = Scanner(rules, matcher.hot_patterns(), boundaries.Boundaries, signatures=matcher.patterns)
    (item,), _ = sources.discover([path])
    content = SimpleNamespace(item=item, problems=[], pieces=streams.chunks(item, []))
    begin, before = time.perf_counter(), cpu_seconds()
    found = scanning.scan(scanner, content, jobs)
    seconds, used = time.perf_counter() - begin, [b - a for a, b in zip(before, cpu_seconds(), strict=True)]
    templates = [template for run in found.runs for template in run.templates]
    left = sum(template.count for template in templates if template.rule is None)
    return {"seconds": seconds, "cpu": sum(used), "bytes": found.bytes_in, "lines": found.lines_in, "left": left} | {
        "parent": used[0], "templates": len(templates),
    }  # fmt: skip


def loop(path: str, _jobs: int) -> dict[str, Any]:
    """What one writes without a scanner: each rule on each line until one matches, counted."""
    rules = [re.compile(line.encode()) for line in RULES.read_text().splitlines()]
    counts = [0] * len(rules)
    begin, before, size = time.perf_counter(), cpu_seconds(), 0
    with Path(path).open("rb") as file:
        for line in file:
            size += len(line)
            for index, rule in enumerate(rules):
                if rule.match(line):
                    counts[index] += 1
                    break
            if size > SAMPLE:
                break
    used = [b - a for a, b in zip(before, cpu_seconds(), strict=True)]
    return {"seconds": time.perf_counter() - begin, "cpu": sum(used), "bytes": size, "left": 0}


CHILDREN = {"scan": scan, "loop": loop}


def child(name: str, path: Path, jobs: int = 1, pinned: bool = True) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.throughput", "--child", name, str(path), str(jobs)]
    done = subprocess.run([*(PINNED if pinned else []), *command], capture_output=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def ripgrep(path: Path, output: Path) -> dict[str, Any]:
    command = [*PINNED, "rg", "--no-mmap", "-a", "-n", "-v", "-f", str(RULES), str(path)]
    begin, before = time.perf_counter(), cpu_seconds()[1]
    with output.open("wb") as out:
        subprocess.run(command, stdout=out, check=True)
    seconds, cpu = time.perf_counter() - begin, cpu_seconds()[1] - before
    return {"seconds": seconds, "cpu": cpu, "bytes": path.stat().st_size, "left": output.read_bytes().count(b"\n")}


def one_core(path: Path, rounds: int) -> None:
    measured: dict[str, list[dict[str, Any]]] = {"triage": [], "ripgrep": [], "re": []}
    for _ in range(rounds):
        measured["triage"].append(child("scan", path))
        if shutil.which("rg"):
            measured["ripgrep"].append(ripgrep(path, path.with_suffix(".left")))
        measured["re"].append(child("loop", path))
    speed = {}
    for name, runs in measured.items():
        if not runs:
            print(f"{name:<10} is not installed")
            continue
        best = min(runs, key=lambda run: run["cpu"])
        speed[name] = best["bytes"] / best["cpu"] / 1e6
        wall = max(run["bytes"] / run["seconds"] for run in runs) / 1e6
        print(f"{name:<10}{speed[name]:8.0f} MB/s of CPU time {wall:8.0f} MB/s of the clock  {best['left']} lines left")
    for name in ("ripgrep", "re"):
        if name in speed:
            print(f"triage / {name}: {speed['triage'] / speed[name]:.2f}")


def two_cores(path: Path, rounds: int) -> None:
    runs = [(child("scan", path, 1, pinned=False), child("scan", path, 2, pinned=False)) for _ in range(rounds)]
    alone, together = (min(side, key=lambda run: run["seconds"]) for side in zip(*runs, strict=True))
    same = all(alone[key] == together[key] for key in ("lines", "left", "templates"))
    print(f"two processes / one, by the clock: {alone['seconds'] / together['seconds']:.2f}; the same result: {same}")
    alone, together = (min(side, key=lambda run: run["cpu"]) for side in zip(*runs, strict=True))
    critical = together["parent"] + (together["cpu"] - together["parent"]) / 2
    print(f"by CPU time, were two cores free for them: at least {alone['cpu'] / critical:.2f}")


def memory(path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.throughput", "--child", "scan", str(path), "2"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(held, [process.pid, *children(process.pid)])))
        time.sleep(0.05)
    print(f"{path.stat().st_size / 1e9:.1f} GB in two processes: at most {peak / 1024:.0f} MB together")


def children(pid: int) -> list[int]:
    try:
        return [int(found) for found in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def held(pid: int) -> int:
    """The process's share of memory in KB; 0 when it has ended."""
    try:
        found = re.search(r"^Pss: +(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def make(path: Path, megabytes: float) -> None:
    with path.open("wb") as out:
        command = [sys.executable, "-m", "benchmarks.make_log", "training", str(megabytes)]
        subprocess.run(command, stdout=out, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", type=float, help="megabytes of a second log, for what memory reading it takes")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        name, path, jobs = args.child
        print(json.dumps(CHILDREN[name](path, int(jobs))))
        return
    with tempfile.TemporaryDirectory() as tmp:
        log = Path(tmp) / "training.log"
        make(log, args.megabytes)
        one_core(log, args.rounds)
        two_cores(log, args.rounds)
        print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
        if args.memory:
            make(log, args.memory)
            memory(log)


if __name__ == "__main__":
    main()
