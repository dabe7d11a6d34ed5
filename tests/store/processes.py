"""Work for other processes: `python -m tests.store.processes WHAT URL ...`, from the root of the repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def start(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.store.processes", *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)


def end(process: subprocess.Popen[str]) -> str:
    """Its output; its error, had it one, is the test's failure."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


def main(what: str, url: str, count: str = "1") -> None:
    from tests.store.samples import ECC, as_json
    from triage.store.incidents import IncidentStore
    from triage.store.values import JobRef

    if what == "record":
        with IncidentStore.open(url) as store:
            for _ in range(int(count)):
                incident = store.record(ECC, as_json(ECC), JobRef(external_id="4711", scheduler="slurm"))
                sys.stdout.write(f"{incident}\n")
                sys.stdout.flush()
    elif what == "count":
        from triage.store.rules import RuleStore

        with RuleStore.open(url) as rules:
            for _ in range(int(count)):
                rules.count({"learned.2": 3, "learned.1": 2})
    elif what == "learn":
        from tests.store.samples import JOB, steps
        from triage.store.rules import RuleStore

        with RuleStore.open(url) as rules:
            for number in range(int(count)):
                rules.add(JOB, [steps(number), steps(number + 1)], "log agent")
    elif what == "open":
        with IncidentStore.open(url) as store:
            sys.stdout.write(f"{len(store.list())}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
