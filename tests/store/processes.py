"""Work for other processes: `python -m tests.store.processes WHAT URL ...`, from the root of the repository."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
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


def killed(url: str, seconds: float) -> list[str]:
    """What a writer said, killed so long after its first word; forked, as an interpreter takes longer to start than it lives."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            _live(url, lambda line: os.write(theirs, f"{line}\n".encode()))
        finally:
            os._exit(1)
    os.close(theirs)
    said = os.read(ours, 1 << 16)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while piece := os.read(ours, 1 << 16):
        said += piece
    os.close(ours)
    return said.decode().split("\n")[:-1]


def _live(url: str, say: Callable[[str], object]) -> None:
    """Files attempts of a few jobs, reads again and resolves, until it is killed; says what is committed."""
    from tests.store.samples import ECC, as_json
    from triage.domain import InputFile
    from triage.store.incidents import IncidentStore
    from triage.store.values import JobRef, Verdict

    with IncidentStore.open(url) as store:
        for n in itertools.count():
            d = replace(ECC, inputs=(InputFile("a", "/a", n, f"{os.getpid()}.{n}", f"{os.getpid()}.{n}"),))
            job = JobRef(f"{(os.getpid() + n) % 5}_{n}", scheduler="slurm")
            filed = store.file(d, as_json(d), job, window=timedelta(days=1)).incident
            say(f"filed {filed}")
            store.revise(filed, ECC, as_json(ECC))
            if n % 30 == 29:
                store.resolve(filed, Verdict("confirmed", "ada"))
                say(f"resolved {filed}")


if __name__ == "__main__":
    main(*sys.argv[1:])
