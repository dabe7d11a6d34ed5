"""Recorded incidents in the answers of the real command, and the index that follows the database."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

from tests.cli.conftest import Run
from tests.conftest import REPO

LOG = (REPO / "eval" / "cases" / "s003" / "stdout.log").read_text("utf-8")


def diagnose(triage: Run, folder: Path, text: str, *args: str) -> dict[str, object]:
    log = folder / "job.log"
    log.write_text(text, "utf-8")
    done = triage("diagnose", str(log), "--format", "json", "--quiet", *args)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def names(result: dict[str, object]) -> list[str]:
    return [similar["incident"] for similar in result["similar"]]  # type: ignore[index, attr-defined]


def test_what_fixed_it_last_time_is_said_the_next_time(triage: Run, tmp_path: Path) -> None:
    first = diagnose(triage, tmp_path, LOG)
    assert first["incident"] == 1 and "1" not in names(first)
    again = diagnose(triage, tmp_path, LOG, "--no-record")
    assert "1" not in names(again), "the same log read again is not its own similar incident"
    resolved = triage(
        "incidents", "resolve", "1", "--verdict", "confirmed", "--fix", "swapped GPU 3 of that host", "--worked", "yes"
    )
    assert resolved.returncode == 0, resolved.stderr

    later = diagnose(triage, tmp_path, "one more line at the begin\n" + LOG)
    similar = later["similar"][0]  # type: ignore[index]
    assert (similar["incident"], similar["outcome"], similar["fix"], similar["worked"]) == (
        "1", "confirmed", "swapped GPU 3 of that host", "yes",
    )  # fmt: skip
    assert "same fingerprint" in similar["why"] and "the fix worked on " in similar["why"]
    steps = [step for step in later["remediation"] if step["incidents"] == ["1"]]  # type: ignore[attr-defined]
    assert "Do what fixed it last time: swapped GPU 3 of that host" in [step["step"] for step in steps]

    found = triage("kb", "search", "uncorrectable ECC error", "--format", "json")
    by_name = {s["incident"]: s for s in json.loads(found.stdout)["similar"]}
    assert by_name["1"]["times"] == 2 and by_name["1"]["told_at"]


def test_a_restart_of_the_same_job_is_not_its_own_similar_incident(triage: Run, tmp_path: Path) -> None:
    assert diagnose(triage, tmp_path, LOG)["incident"] == 1
    again = diagnose(triage, tmp_path, "one more line at the begin\n" + LOG)
    assert again["incident"] == 1 and "1" not in names(again)
    other = diagnose(triage, tmp_path, LOG.replace("20117", "20118"))
    assert other["incident"] == 2 and names(other)[0] == "1"


def test_an_index_that_lags_is_said_and_built_anew(triage: Run, tmp_path: Path) -> None:
    diagnose(triage, tmp_path, LOG)
    diagnose(triage, tmp_path, LOG.replace("20117", "20118"))
    assert "ok (holds all 2 recorded incidents)" in triage("config", "check").stdout
    database = sqlite3.connect(Path(os.environ["TRIAGE_HOME"]) / "triage.db")
    database.execute("PRAGMA foreign_keys=ON")
    database.execute("DELETE FROM incident WHERE id = 1")
    database.commit()
    database.close()
    said = triage("config", "check").stdout
    assert "holds 1 that the database does not; the next question mends a few, `triage kb reindex` all" in said
    found = json.loads(triage("kb", "search", "uncorrectable ECC error", "--format", "json").stdout)
    assert {"1", "2"} & {s["incident"] for s in found["similar"]} == {"2"}

    done = triage("kb", "reindex", "--quiet")
    assert done.returncode == 0 and done.stdout.endswith("entries of the knowledge base, 1 recorded incidents\n")
    assert "ok (holds all 1 recorded incidents)" in triage("config", "check").stdout


def test_without_a_database_none_is_made(triage: Run) -> None:
    done = triage("kb", "search", "NCCL timeout")
    assert done.returncode == 0
    assert triage("kb", "reindex", "--quiet").stdout.endswith(" 0 recorded incidents\n")
    assert not (Path(os.environ["TRIAGE_HOME"]) / "triage.db").exists()
