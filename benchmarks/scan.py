"""How fast the scan reads logs, and in how much memory: python -m benchmarks.scan [--megabytes 300] [--only training]

Each log is made by benchmarks.make_log and scanned with the shipped rules and signatures, each time in a fresh process
on one core; the best of three counts. Beside it, in the same run and on the same file: `grep -c` for three words, ripgrep
with the very same rules (where `rg` is installed), and those rules through RE2 line by line.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

REPEATS = 3
PATIENCE = 60  # seconds
WORDS = "CUDA out of memory|Watchdog caught|Traceback"
LOGS = {"training": 1.0, "bars": 0.33, "prose": 0.033}  # part of --megabytes


def chunks(path: str) -> Iterator[bytes]:
    with Path(path).open("rb") as file:
        while data := file.read(1 << 20):
            yield data


def scan(path: str) -> dict[str, float]:
    """One scan in this process."""
    from triage import kb
    from triage.compress.engine import Scanner
    from triage.evidence.match import Matcher

    begin = time.perf_counter()
    matcher = Matcher(kb.signatures())
    scanner = Scanner(kb.filter_rules(), matcher.hot_patterns(), signatures=matcher.patterns)
    ready = time.perf_counter()
    found = scanner.scan("job.log", chunks(path))
    seconds = time.perf_counter() - ready
    dropped = sum(t.count for run in found.runs for t in run.templates if t.rule)
    return {
        "setup": ready - begin,
        "seconds": seconds,
        "lines": found.lines_in,
        "dropped": dropped,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def rules_one_by_one(path: str) -> dict[str, float]:
    """The same rules, line by line through RE2."""
    from triage import kb
    from triage.compress.lineset import LineSet
    from triage.compress.linewise import AFTER_PREFIX

    rules = LineSet([rule.pattern for rule in kb.filter_rules()], AFTER_PREFIX)
    begin = time.perf_counter()
    size = 0
    with Path(path).open("rb") as file:
        for line in file:
            rules.match([line.rstrip(b"\n").decode("utf-8", "replace")])
            size += len(line)
            if size > 20e6:  # enough to know the speed
                break
    return {"seconds": time.perf_counter() - begin, "bytes": size}


def best(command: list[str]) -> float | None:
    """Seconds of the fastest of some runs; None when a run takes more than PATIENCE."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        env = {**os.environ, "LC_ALL": "C"}
        try:
            done = subprocess.run(command, stdout=subprocess.DEVNULL, env=env, check=False, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return None
        times.append(time.perf_counter() - begin)
        if done.returncode > 1:
            sys.exit(f"{command[0]} failed")
    return min(times)


def child(name: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.scan", "--child", name, str(path)]
    runs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(REPEATS)]
    return min(runs, key=lambda run: run["seconds"])


def rule_file(folder: Path) -> Path:
    from triage import kb
    from triage.compress.linewise import AFTER_PREFIX, confine

    path = folder / "rules.txt"
    path.write_text("".join(f"{confine(rule.pattern, AFTER_PREFIX)}\n" for rule in kb.filter_rules()))
    return path


def measure(kind: str, path: Path, folder: Path) -> None:
    size = path.stat().st_size / 1e6
    found = child("scan", path)
    print(
        f"\n{kind}: {size:.0f} MB, {found['lines']:.0f} lines, {found['dropped'] / found['lines']:.1%} taken by rules"
    )

    def row(what: str, seconds: float | None, megabytes: float, more: str = "") -> None:
        if seconds is None:
            print(f"  {what:<44}took more than {PATIENCE} s")
            return
        print(
            f"  {what:<44}{megabytes / seconds:8.0f} MB/s{megabytes / seconds / (size / found['seconds']):9.2f} x  {more}"
        )

    row("triage scan", found["seconds"], size, f"peak {found['peak_mb']:.0f} MB, set-up {found['setup']:.2f} s")
    row("grep -cE, three words", best(["grep", "-acE", WORDS, str(path)]), size)
    if shutil.which("rg"):
        row(
            "ripgrep -vc, the same rules",
            best(["rg", "-avc", "--dfa-size-limit=1G", "-f", str(rule_file(folder)), str(path)]),
            size,
        )
    slow = child("rules_one_by_one", path)
    row("the same rules through RE2, line by line", slow["seconds"], slow["bytes"] / 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=300)
    parser.add_argument("--only", choices=LOGS)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps({"scan": scan, "rules_one_by_one": rules_one_by_one}[args.child[0]](args.child[1])))
        return
    with tempfile.TemporaryDirectory() as tmp:
        for kind in [args.only] if args.only else LOGS:
            path = Path(tmp) / f"{kind}.log"
            with path.open("wb") as out:
                size = str(args.megabytes * LOGS[kind])
                subprocess.run([sys.executable, "-m", "benchmarks.make_log", kind, size], stdout=out, check=True)
            measure(kind, path, Path(tmp))
            path.unlink()


if __name__ == "__main__":
    main()
