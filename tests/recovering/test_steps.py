"""Running a plan: only what is allowed, in order, and everything is written down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import REPO
from triage.recover.step import Plan, Step
from triage.recovering.processes import together
from triage.recovering.steps import run


class Book:
    def __init__(self) -> None:
        self.rows: list[list[object]] = []

    def begin(self, step: Step) -> int:
        self.rows.append([step.kind])
        return len(self.rows) - 1

    def end(self, number: int, code: int | None, output: str) -> None:
        self.rows[number] += [code, output]


def sh(kind: str, text: str, risk: str = "reversible", **more: object) -> Step:
    return Step(kind, text, "why", risk, ("sh", "-c", text), **more)  # type: ignore[arg-type]


def states(*steps: Step, allowed: tuple[str, ...] = ()) -> tuple[list[str], Book]:
    book = Book()
    return [done.state for done in run(Plan("", True, steps), allowed, book)], book


def test_what_only_reads_runs_and_what_follows_a_step_that_is_not_allowed_does_not(tmp_path: Path) -> None:
    look, drain, submit = (
        sh("look", "echo seen", "read-only"),
        sh("drain", f"touch {tmp_path}/d"),
        sh("resubmit", f"touch {tmp_path}/s"),
    )
    found, book = states(look, drain, submit, sh("look", "exit 3", "read-only"), allowed=("resubmit",))
    assert found == ["done", "not allowed", "not reached", "failed"]
    assert book.rows == [["look", 0, "seen\n"], ["look", 3, ""]]
    assert list(tmp_path.iterdir()) == []
    found, _ = states(look, drain, submit, allowed=("resubmit", "drain"))
    assert found == ["done", "done", "done"]


def test_a_failure_stops_the_rest() -> None:
    found, book = states(
        sh("drain", "echo no >&2; exit 1"),
        sh("resubmit", "echo never"),
        Step("do", "by hand", "why"),
        allowed=("drain", "resubmit"),
    )
    assert found == ["failed", "not reached", "for you"]
    assert book.rows == [["drain", 1, "no\n"]]


def test_a_program_that_is_not_there_is_a_failure_that_is_written_down() -> None:
    book = Book()
    step = Step("drain", "x", "why", "reversible", ("no-such-program-here",))
    (done,) = run(Plan("", True, (step,)), ("drain",), book)
    assert done.state == "failed"
    assert "no-such-program-here cannot be run" in done.output
    assert book.rows[0][0] == "drain"


def test_a_gentler_way_that_worked_makes_the_next_one_needless(tmp_path: Path) -> None:
    flag = tmp_path / "running"
    flag.touch()
    still = ("sh", "-c", f"test -e {flag} && echo RUNNING; true")
    gentle = sh("cancel", f"rm {flag}", while_=still)
    hard = sh("cancel", f"touch {tmp_path}/killed", while_=still, wait=1)
    assert states(gentle, hard, allowed=("cancel",))[0] == ["done", "not needed"]
    assert not (tmp_path / "killed").exists()


def test_a_job_that_runs_again_already_is_let_run(tmp_path: Path) -> None:
    runs = sh("resubmit", f"touch {tmp_path}/x", unless=("echo", "4711 is RUNNING"))
    gone = sh("resubmit", f"touch {tmp_path}/y", unless=("sh", "-c", "echo Invalid job id; exit 1"))
    found, book = states(runs, gone, allowed=("resubmit",))
    assert found == ["held back", "not reached"]
    assert book.rows == [["look", 0, "4711 is RUNNING\n"]]  # the question is written down as well
    assert states(gone, allowed=("resubmit",))[0] == ["done"]
    assert [path.name for path in tmp_path.iterdir()] == ["y"]


@pytest.mark.parametrize("failing", ["echo Unable to contact slurm controller >&2; exit 1", "exit 127"])
def test_a_question_without_an_answer_holds_the_step_back(tmp_path: Path, failing: str) -> None:
    asked = sh("resubmit", f"touch {tmp_path}/x", unless=("sh", "-c", failing))
    missing = sh("resubmit", f"touch {tmp_path}/x", unless=("no-such-program-here",))
    for step in (asked, missing):
        assert states(step, sh("resubmit", f"touch {tmp_path}/y"), allowed=("resubmit",))[0] == [
            "held back",
            "not reached",
        ]
    assert list(tmp_path.iterdir()) == []


def test_what_a_person_has_to_do_first_stops_what_changes_after_it(tmp_path: Path) -> None:
    look, submit = sh("look", "echo seen", "read-only"), sh("resubmit", f"touch {tmp_path}/x")
    see = Step("do", "See which checkpoint is complete", "why", first=True)
    assert states(see, look, submit, allowed=("resubmit",))[0] == ["for you", "done", "not reached"]
    assert states(Step("do", "Note it", "why"), submit, allowed=("resubmit",))[0] == ["for you", "done"]


def test_processes_that_run_together_end_together(tmp_path: Path) -> None:
    began = time.monotonic()
    bad, good = together([("sh", "-c", "exit 3"), (sys.executable, "-c", "import time; time.sleep(60)")], 50)
    assert time.monotonic() - began < 30
    assert (bad.code, good.code) == (3, None)
    (late,) = together([("sh", "-c", "echo begun; sleep 60 & sleep 60")], 1)
    assert late.code is None
    assert late.output == "begun\n"


def test_a_node_test_that_is_interrupted_leaves_nothing_running(tmp_path: Path) -> None:
    mark = f"sleep 61{os.getpid()}"
    code = (
        "from triage.recover.node_jobs import Check\n"
        "from triage.recovering.node_test import run\n"
        f"run(('a', 'b', 'c', 'd'), Check('command', ('x',)), lambda *_: (('sh', '-c', '{mark} & {mark}'),))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=REPO, stderr=subprocess.DEVNULL)
    try:
        _until(lambda: _running(mark) > 2)
        process.send_signal(signal.SIGINT)
        process.wait(30)
        _until(lambda: _running(mark) == 0)
    finally:
        process.kill()


def _running(words: str) -> int:
    return (
        subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
        .stdout.splitlines()
        .count(words)
    )


def _until(ready: Callable[[], bool]) -> None:
    end = time.monotonic() + 40
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("began", "state"),
    [("echo 900", "done"), ("true", "done"), ("echo 900 1001", "held back"), ("echo N/A", "held back"), ("exit 1", "held back")],
)  # fmt: skip
def test_a_run_that_began_after_the_job_was_found_to_hang_is_not_ended(tmp_path: Path, began: str, state: str) -> None:
    end = sh("cancel", f"touch {tmp_path}/x", began=("sh", "-c", began), known=1000.0)
    found, book = states(end, sh("resubmit", "true"), allowed=("cancel", "resubmit"))
    assert found == [state, "done" if state == "done" else "not reached"]
    assert (tmp_path / "x").exists() == (state == "done")
    assert book.rows[0][0] == "look"  # the question is written down as well
