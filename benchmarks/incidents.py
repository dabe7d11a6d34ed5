"""`python -m benchmarks.incidents [N]`: list, stats and show over N (100,000) recorded incidents, beside a bare count.

The database is made in a temporary folder, seeded; each command is a process of its own, best of three.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# What it is measured against: what SQLite needs to count and to group, with nothing around it.
BARE = "import sqlite3,sys; d=sqlite3.connect(sys.argv[1]); d.execute('SELECT failure_type,count(*) FROM incident GROUP BY 1').fetchall()"
COMMANDS = (
    ("list", ["list"]),
    ("list of a node", ["list", "--node", "gpu-0007"]),
    ("list of a type, a user, corrected", ["list", "--type", "ecc-error", "--user", "u3", "--verdict", "corrected"]),
    ("list by last seen", ["list", "--sort", "last-seen"]),
    ("list with words in a cited line", ["list", "--text", "pid=77777,"]),
    ("show", ["show", "50000"]),
    ("stats", ["stats"]),
    ("stats of a year", ["stats", "--since", "2025-11-01"]),
)


def main(count: int = 100_000) -> None:
    with tempfile.TemporaryDirectory() as home:
        # In a process of its own: what this one holds would count as the memory of those that it starts.
        subprocess.run([sys.executable, "-m", "benchmarks.incidents_made", home, str(count)], check=True)
        file = Path(home) / "triage.db"
        print(f"{count} incidents, {file.stat().st_size >> 20} MB")
        bare = _best([sys.executable, "-c", BARE, str(file)], home)
        start = _best([sys.executable, "-m", "triage", "incidents", "list", "--limit", "1"], home)
        for name, used in (("sqlite3, one grouped count", bare), ("triage, one incident", start)):
            print(f"{name:34} {used[0]:5.2f} s, CPU {used[1]:5.2f} s, {used[2]:4} MB")
        for name, words in COMMANDS:
            wall, cpu, memory = _best([sys.executable, "-m", "triage", "incidents", *words], home)
            print(f"{name:34} {wall:5.2f} s, CPU {cpu:5.2f} s, {memory:4} MB, {cpu / bare[1]:5.1f} times")


def _best(command: list[str], home: str) -> tuple[float, float, int]:
    """Seconds by the clock and of the CPU, of the best of three each, and most memory in MB."""
    walls, cpus, memory = [], [], 0
    for _ in range(3):
        started = time.perf_counter()
        child = subprocess.Popen(
            command, env={**os.environ, "TRIAGE_HOME": home}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, used = os.wait4(child.pid, 0)
        if status:
            sys.exit(f"{' '.join(command)} failed")
        walls.append(time.perf_counter() - started)
        cpus.append(used.ru_utime + used.ru_stime)
        memory = max(memory, _mb(used))
    return min(walls), min(cpus), memory


def _mb(used: resource.struct_rusage) -> int:
    return used.ru_maxrss >> (20 if sys.platform == "darwin" else 10)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
