"""`triage recover interval` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from triage.cli.recover_interval import Given, show


def test_the_interval_what_is_lost_and_the_caution(triage: Run) -> None:
    done = triage("recover", "interval", "--save", "40", "--mtbf", "84", "--every", "10800", "--gpus", "384")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "Save every 82 min (Daly; Young says 82 min)"
    assert "now every 3.0 h: 2.6% of the time is lost; then 2.0%" in done.stdout
    assert "caution" not in done.stdout
    assert (
        "caution: a failure is noticed only after 30 min"
        in triage("recover", "interval", "--save", "1", "--mtbf", "3", "--detect", "1800").stdout
    )
    told = json.loads(triage("recover", "interval", "--save", "40", "--gpus", "1024", "--format", "json").stdout)
    assert told["between"] == pytest.approx(7.9 * 3600)
    assert "a guess" in told["failure_rate_from"]


def test_where_no_interval_helps_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    show([], None, Given(save=60, gpus=100_000_000), "text")
    assert capsys.readouterr().out.startswith("No interval helps: a save takes 60 s, and the job fails every 0.291 s")
    show([], None, Given(save=1, mtbf=0.1), "text")
    told = capsys.readouterr().out
    assert "noticing and starting take 20 min, in which it fails again" in told
    assert "cost more" not in told


def test_what_is_not_known_is_asked_for(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text("hello\n")
    done = triage("recover", "interval", "job.log", "--mtbf", "3")
    assert (done.returncode, "give --save SECONDS" in done.stderr) == (2, True)
    done = triage("recover", "interval", "--save", "3")
    assert (done.returncode, "give --mtbf HOURS" in done.stderr) == (2, True)
