"""`triage hang` as a user runs it: a folder of what was collected, whole output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run


def test_nothing_given_and_nothing_there_are_told_in_one_line(triage: Run) -> None:
    for given in ([], ["nowhere"], ["--format", "json", "nowhere"]):
        done = triage("hang", *given)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1


def test_its_help_tells_of_what_is_read_and_of_the_exit_codes(triage: Run) -> None:
    done = triage("hang", "--help")
    assert done.returncode == 0
    assert all(word in done.stdout for word in ("py-spy", "flight-recorder", "--format", "Exit codes"))


def test_a_log_is_diagnosed_as_diagnose_does(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(
        "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\nKeyError: 'a'\n"
    )
    by_hang, by_diagnose = (
        json.loads(triage(command, "job.log", "--format", "json", "--no-record").stdout)
        for command in ("hang", "diagnose")
    )
    timed = {"timing": None}
    assert {**by_hang, **timed} == {**by_diagnose, **timed}
