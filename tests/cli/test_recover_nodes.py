"""`triage recover node-test` as a user sees it; a program in the place of srun knows which node is broken."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Run

SRUN = """#!/bin/sh
for word in "$@"; do
  case "$word" in --nodelist=*) nodes=${word#--nodelist=} ;; esac
done
echo "$nodes" >> "$SRUN_CALLS"
case "$nodes" in *03*|*\\[02-04\\]*) echo "srun: error: n03: task 0: Exited with exit code 7"; exit 7 ;; esac
"""
TEST = ("recover", "node-test", "--nodes", "n[01,03,05,07,09]", "--check", "true")


@pytest.fixture
def srun(tmp_path: Path) -> dict[str, str]:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "srun").write_text(SRUN)
    (programs / "srun").chmod(0o755)
    return {"PATH": f"{programs}:/usr/bin:/bin", "SRUN_CALLS": str(tmp_path / "calls")}


def test_the_faulty_node_is_named_and_everything_that_ran_is_recorded(
    triage: Run, srun: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / "home"
    done = triage(*TEST, "--yes", **srun, TRIAGE_RECOVER_ALLOW="node-test", TRIAGE_HOME=str(home))
    assert done.returncode == 1, done.stderr
    assert "4 good nodes, 1 faulty, 0 undecided" in done.stdout
    assert "faulty     n03: failed with " in done.stdout
    assert "srun: error: n03: task 0" in done.stdout
    assert "--exclude=n03" in done.stdout
    calls = Path(srun["SRUN_CALLS"]).read_text().splitlines()
    with sqlite3.connect(home / "triage.db") as database:
        rows = database.execute("SELECT kind, risk, argv, exit_code, output, ended_at FROM recovery_action").fetchall()
    assert len(rows) == len(calls) > 3
    assert {row[0] for row in rows} == {"node-test"}
    assert {row[3] for row in rows} == {0, 7}
    assert all(row[5] for row in rows)
    assert all(json.loads(row[2])[0] == "srun" for row in rows)


def test_nothing_runs_without_yes_nor_when_the_settings_do_not_allow_it(
    triage: Run, srun: dict[str, str], tmp_path: Path
) -> None:
    shown = triage(*TEST, **srun, TRIAGE_RECOVER_ALLOW="node-test")
    assert shown.returncode == 0
    assert "Round 1 would run 2 worlds" in shown.stdout
    assert "nothing was run" in shown.stderr
    refused = triage(*TEST, "--yes", **srun)
    assert refused.returncode == 2
    assert "TRIAGE_RECOVER_ALLOW=node-test" in refused.stderr
    assert not Path(srun["SRUN_CALLS"]).exists()


def test_the_jobs_are_printed_round_by_round_and_their_results_read(
    triage: Run, srun: dict[str, str], tmp_path: Path
) -> None:
    import subprocess

    for number in range(1, 9):
        results = [f"--results={path}" for path in sorted(tmp_path.glob("triage-node-test-*.out"))]
        printed = triage(*TEST, "--print", *results)
        if not printed.stdout.startswith("#!"):
            break
        assert printed.returncode == 0, printed.stderr
        assert f"round {number}," in printed.stderr
        subprocess.run(["bash", "-c", printed.stdout], cwd=tmp_path, env=srun, check=True)
    assert "faulty     n03" in printed.stdout
    told = json.loads(triage(*TEST, *results, "--format", "json").stdout)
    assert list(told["faulty"]) == ["n03"]
    assert told["exclude"] == "n03"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--nodes", "a;b"), "no list of nodes"),
        (("--nodes", "a"), "one node alone cannot be tested"),
        (("--nodes", "a,b", "--by", "rsh"), "--by 'rsh' is not known"),
        (("--nodes", "a,b", "--check", "'"), "no command"),
        (("--nodes", "a,b", "--results", "nowhere"), "nowhere: No such file"),
        (("--nodes", "a,b", "--srun-option", "x"), "is no option"),
    ],
)
def test_bad_input_is_said_in_one_line(triage: Run, args: tuple[str, ...], said: str) -> None:
    done = triage("recover", "node-test", *args)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_a_launcher_it_says_so(triage: Run) -> None:
    done = triage(*TEST, "--yes", PATH="/nowhere", TRIAGE_RECOVER_ALLOW="node-test")
    assert done.returncode == 2
    assert "srun cannot be run" in done.stderr


@pytest.mark.parametrize(
    ("says", "rounds", "told"),
    [
        ("srun: error: Unable to allocate resources: Invalid account", "1 round", "not tested, as no world began: exit code 1: srun: error: Unable to allocate"),
        ("connection reset", "3 rounds", "exit code 1: connection reset (6 worlds)"),
    ],
)  # fmt: skip
def test_what_keeps_every_world_from_passing_is_said(
    triage: Run, srun: dict[str, str], tmp_path: Path, says: str, rounds: str, told: str
) -> None:
    (tmp_path / "bin" / "srun").write_text(f"#!/bin/sh\necho '{says}' >&2; exit 1\n")
    asked = ("recover", "node-test", "--nodes", "n[1-4]", "--check", "true", "--yes")
    done = triage(*asked, **srun, TRIAGE_RECOVER_ALLOW="node-test")
    assert done.returncode == 1, done.stderr
    assert f"0 faulty, 4 undecided, in {rounds} and" in done.stdout
    assert told in done.stdout
