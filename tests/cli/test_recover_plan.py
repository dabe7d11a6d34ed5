"""`triage recover INCIDENT` as a user sees it, and what it starts: nothing without --yes."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Forks, Run
from tests.conftest import REPO
from tests.evidence.test_spikes import curve, megatron, with_losses
from tests.recovering.test_checkpoints import megatron as saved
from tests.slurm.programs import FakePrograms, row
from tests.slurm.shapes import table
from triage.risk import of_command

PROGRAM = """#!/bin/sh
echo "$(basename $0) $*" >> "$CALLS"
case "$(basename $0) $*" in *"NodeName=gpu-042 State=DRAIN"*) echo "token=hunter2secret123"; exit ${DRAIN_CODE:-0} ;; esac
"""
PROGRAMS = ("scontrol", "sacct", "squeue", "sbatch", "scancel", "srun", "kubectl")


@pytest.fixture(scope="module")
def recorded(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("recorded")
    env = {"TRIAGE_HOME": str(home), "PYTHONPATH": str(REPO), "PATH": "/usr/bin:/bin", "HOME": str(home)}
    code, _, err = forks.run(["diagnose", str(REPO / "examples" / "lost-gpu")], b"", home, env)
    assert code == 0, err
    return home


@pytest.fixture
def site(recorded: Path, tmp_path: Path) -> dict[str, str]:
    """A home with the incident of the shipped example, and programs that only write down that they were called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).write_text(PROGRAM)
        (programs / name).chmod(0o755)
    shutil.copytree(recorded, tmp_path / "home")
    return {
        "TRIAGE_HOME": str(tmp_path / "home"),
        "PATH": f"{programs}:/usr/bin:/bin",
        "CALLS": str(tmp_path / "calls"),
    }


NAN = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/user/run/core/training.py", line 72, in train_step
[rank1]:     assert not torch.isnan(loss), (
[rank1]: AssertionError: Rank 1: found NaN in local forward loss calculation. Device: cpu, node: cn-112
"""


def calls(site: dict[str, str]) -> list[str]:
    path = Path(site["CALLS"])
    return path.read_text().splitlines() if path.exists() else []


def test_the_plan_is_shown_and_nothing_runs(triage: Run, site: dict[str, str]) -> None:
    done = triage("recover", "1", **site, TRIAGE_RECOVER_ALLOW="drain,resubmit")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Recovery of incident 1\n  Restart: the fault is of gpu-042")
    assert "$ scontrol update NodeName=gpu-042 State=DRAIN Reason=triage:gpu-lost:1" in done.stdout
    assert "undo: scontrol update NodeName=gpu-042 State=RESUME" in done.stdout
    assert "failed: gpu-lost (established), GPU fell off the bus" in done.stdout
    assert "gpu-042.dmesg:6\n     | [Wed Nov 18 01:53:50 2026] NVRM: Xid (PCI:0000:4a:00): 79" in done.stdout
    assert "nothing was run" in done.stderr
    assert calls(site) == []
    told = json.loads(triage("recover", "1", "--format", "json", **site).stdout)
    assert (told["schema"], told["dry_run"], told["restart"]) == ("triage.recovery/1", True, True)
    assert all(step["why"] and step["risk"] for step in told["steps"])
    assert {name for step in told["steps"] for name in step["evidence"]} == {one["id"] for one in told["cited"]}
    assert triage("recover", "1", "--format", "markdown", **site).stdout.startswith("# Recovery of incident 1\n")


def test_with_yes_only_what_reads_runs_until_the_settings_allow_more(triage: Run, site: dict[str, str]) -> None:
    done = triage("recover", "1", "--yes", **site)
    assert done.returncode == 0, done.stderr
    assert [call.split()[0] for call in calls(site)] == ["sacct", "scontrol"]
    assert all(of_command(call.split()) == "read-only" for call in calls(site))
    assert "NOT ALLOWED: Keep new jobs off gpu-042" in done.stdout
    assert "TRIAGE_RECOVER_ALLOW=drain would" in done.stderr


def test_all_that_ran_is_recorded_without_secrets_and_shown_next_time(
    triage: Run, site: dict[str, str], tmp_path: Path
) -> None:
    saved(tmp_path / "run", 9500)
    done = triage("recover", "1", "--yes", "--checkpoints", "run", **site, TRIAGE_RECOVER_ALLOW="drain resubmit")
    assert done.returncode == 0, done.stderr
    assert "hunter2secret123" not in done.stdout
    ran = calls(site)
    assert [call for call in ran[2:] if not call.startswith("squeue")] == [
        "scontrol update NodeName=gpu-042 State=DRAIN Reason=triage:gpu-lost:1",
        "scontrol requeuehold 771204",
        "scontrol update JobId=771204 ExcNodeList=gpu-042",
        "scontrol release 771204",
    ]
    with sqlite3.connect(Path(site["TRIAGE_HOME"]) / "triage.db") as database:
        rows = database.execute(
            "SELECT incident_id, argv, exit_code, output, ended_at, who FROM recovery_action ORDER BY id"
        ).fetchall()
    assert [" ".join(json.loads(row[1])) for row in rows] == ran
    assert {(row[0], row[2]) for row in rows} == {(1, 0)}
    assert all(row[4] and row[5] for row in rows)
    assert "hunter2secret123" not in str(rows)
    before = triage("recover", "1", **site).stdout.partition("Done before")[2]
    assert "undo: scontrol update NodeName=gpu-042 State=RESUME" in before


def test_no_job_is_submitted_before_a_person_saw_to_the_checkpoint(triage: Run, site: dict[str, str]) -> None:
    done = triage("recover", "1", "--yes", **site, TRIAGE_RECOVER_ALLOW="drain resubmit")
    assert "FOR YOU: See which checkpoint is complete" in done.stdout
    assert "NOT REACHED: Queue job 771204 again, held" in done.stdout
    assert not [call for call in calls(site) if "requeue" in call or "release" in call]


def test_what_was_submitted_before_is_asked_after_before_it_is_submitted_again(
    triage: Run, site: dict[str, str], tmp_path: Path
) -> None:
    saved(tmp_path / "run", 9500)
    (tmp_path / "job.sh").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "sbatch").write_text("#!/bin/sh\necho sbatch $* >> $CALLS\necho Submitted batch job 5001\n")
    asked = ("recover", "1", "--yes", "--checkpoints", "run", "--script", "job.sh")
    for _ in range(2):
        triage(*asked, **site, TRIAGE_RECOVER_ALLOW="drain resubmit")
    first, second = [call for call in calls(site) if call.startswith("squeue")]
    assert " -j 771204 " in first and " -j 771204,5001 " in second
    (tmp_path / "bin" / "squeue").write_text("#!/bin/sh\necho 5001 is PENDING\n")
    held = triage(*asked, **site, TRIAGE_RECOVER_ALLOW="drain resubmit")
    assert held.returncode == 1 and "HELD BACK: Submit the job again" in held.stdout
    assert "5001 is PENDING" in held.stdout
    assert len([call for call in calls(site) if call.startswith("sbatch")]) == 2


def test_a_step_that_fails_stops_the_rest(triage: Run, site: dict[str, str]) -> None:
    done = triage("recover", "1", "--yes", **site, TRIAGE_RECOVER_ALLOW="drain,resubmit", DRAIN_CODE="5")
    assert done.returncode == 1
    assert "FAILED: Keep new jobs off gpu-042" in done.stdout
    assert "exit code 5" in done.stdout
    assert "NOT REACHED: Queue job 771204" in done.stdout
    assert not any("requeue" in call for call in calls(site))


def test_checkpoints_logs_and_script_make_the_plan_complete(triage: Run, site: dict[str, str], tmp_path: Path) -> None:
    for step in (9000, 9400, 9500):
        saved(tmp_path / "run", step)
    (tmp_path / "job.sh").write_text("#!/bin/sh\n")
    plain = triage("recover", "1", "--checkpoints", "run", "--script", "job.sh", **site)
    assert f"sbatch --exclude=gpu-042 {tmp_path}/job.sh" in plain.stdout
    assert "--ckpt-step 9500" in plain.stdout
    rows = with_losses(curve(700, start=9000), 500, [9.0] * 200)
    (tmp_path / "job.log").write_text("\n".join(map(megatron, rows)) + "\n")
    done = triage("recover", "1", "--checkpoints", "run", "--log", "job.log", "--script", "job.sh", **site)
    assert done.returncode == 0, done.stderr
    assert "Go back to step 9400 and leave out steps 9401 to 9600" in " ".join(done.stdout.split())
    assert "Submit the job again with these settings without gpu-042" in " ".join(done.stdout.split())
    assert "loss spike from step 9500" in " ".join(done.stdout.split())


def test_of_a_loss_that_left_its_level_the_recorded_log_is_read_again(triage: Run, tmp_path: Path) -> None:
    rows = with_losses(curve(700, start=9000), 500, [float("nan")] * 200)
    saves = {row.step: f"saved checkpoint at iteration {row.step} to /c\n" for row in rows if row.step % 100 == 0}
    (tmp_path / "job.log").write_text("".join(f"{megatron(row)}\n{saves.get(row.step, '')}" for row in rows) + NAN)
    home = {"TRIAGE_HOME": str(tmp_path / "home")}
    assert "loss-spike" in triage("diagnose", "job.log", **home).stdout
    text = " ".join(triage("recover", "1", **home).stdout.split())
    assert "Go back to step 9400 and leave out steps 9401 to 9600 (409,600 samples)" in text
    assert "Submit the job again with these settings" in text
    (tmp_path / "job.log").unlink()
    assert "Find a checkpoint from well before" in triage("recover", "1", **home).stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("99",), "no incident 99"),
        (("x",), "INCIDENT"),
        (("1", "--scheduler", "cron"), "--scheduler 'cron' is not known"),
        (("1", "--script", "nowhere.sh"), "is no file"),
        (("1", "--checkpoints", "nowhere"), "is no folder"),
        (("1", "--without", "a;b"), "no list of nodes"),
        (("1", "--format", "yaml"), "--format 'yaml' is not known"),
    ],
)
def test_bad_input_is_said_in_one_line(triage: Run, site: dict[str, str], args: tuple[str, ...], said: str) -> None:
    done = triage("recover", *args, **site)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert triage("recover", "1", **site, TRIAGE_RECOVER_ALLOW="all").returncode == 2


AUDIT = """
import json, os, sys
started = []
def hook(event, args):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.forkpty", "pty.spawn"):
        words = args[1] if event in ("subprocess.Popen", "os.exec", "os.posix_spawn") else args[:1]
        started.append([event, [os.fsdecode(w) if isinstance(w, (bytes, str)) else str(w) for w in words or ()]])
sys.addaudithook(hook)
from triage.cli import main
for command in json.loads(sys.stdin.read()):
    sys.argv = ["triage", *command]
    try:
        main.main()
    except SystemExit as left:
        assert left.code in (0, 1, None), (command, left.code)
json.dump(started, open(os.environ["STARTED"], "w"))
"""


@pytest.mark.parametrize("yes", [False, True])
def test_no_process_that_changes_anything_is_started_without_yes_and_leave(
    site: dict[str, str], tmp_path: Path, yes: bool
) -> None:
    """Every process that Python starts is recorded, over all commands: none without --yes, and with it only what reads."""
    saved(tmp_path / "run", 100)
    (tmp_path / "job.log").write_text("\n".join(map(megatron, curve(100))) + "\n")
    with sqlite3.connect(Path(site["TRIAGE_HOME"]) / "triage.db") as database:
        (text,) = database.execute("SELECT result FROM diagnosis").fetchone()
        database.execute("UPDATE diagnosis SET result = ?", (json.dumps(json.loads(text) | {"outcome": "hung"}),))
    started = tmp_path / "started"
    environment = {**site, "STARTED": str(started), "PYTHONPATH": str(REPO), "HOME": str(tmp_path)}
    if not yes:
        environment["TRIAGE_RECOVER_ALLOW"] = "node-test,drain,kill-switch,cancel,resubmit"
    commands = [
        ["recover", "1", "--checkpoints", "run", "--log", "job.log", "--kill-switch", "stop"],
        ["recover", "1", "--format", "json"],
        ["recover", "1", "--scheduler", "kubernetes"],
        ["recover", "node-test", "--nodes", "n[1-5]"],
        ["recover", "node-test", "--nodes", "n[1-5]", "--by", "ssh", "--check", "dcgm", "--format", "json"],
        ["recover", "node-test", "--nodes", "n[1-5]", "--print"],
        ["recover", "checkpoints", "run"],
        ["recover", "spikes", "job.log"],
        ["recover", "interval", "--save", "40", "--mtbf", "100"],
    ]
    if yes:
        commands = [[*commands[0], "--yes"], [*commands[2], "--yes"]]
    done = subprocess.run(
        [sys.executable, "-c", AUDIT],
        cwd=tmp_path,
        env=environment,
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    events = json.loads(started.read_text())
    if not yes:
        assert events == []
        assert calls(site) == []
    else:
        assert events
        assert all(event == "subprocess.Popen" and of_command(words) == "read-only" for event, words in events), events
    assert not (tmp_path / "stop").exists()


def test_a_job_that_hung_is_ended_once_and_its_next_run_is_let_run(
    triage: Run, site: dict[str, str], tmp_path: Path
) -> None:
    with sqlite3.connect(Path(site["TRIAGE_HOME"]) / "triage.db") as database:
        (text,) = database.execute("SELECT result FROM diagnosis").fetchone()
        database.execute("UPDATE diagnosis SET result = ?", (json.dumps(json.loads(text) | {"outcome": "hung"}),))
    began = tmp_path / "began"
    (tmp_path / "bin" / "squeue").write_text(
        '#!/bin/sh\ncase "$*" in *-o\\ %S*) cat $BEGAN ;; *RUNNING,COMPLETING*) echo RUNNING ;; esac\n'
    )
    (tmp_path / "bin" / "scancel").write_text('#!/bin/sh\necho "scancel $*" >> "$CALLS"\nexit 7\n')
    env = site | {"BEGAN": str(began), "TRIAGE_RECOVER_ALLOW": "cancel"}
    began.write_text("1000\n")
    assert "FAILED: Ask the batch script to save and leave" in triage("recover", "1", "--yes", **env).stdout
    assert len(calls(site)) == 3  # sacct, scontrol show and one scancel, whose failure stops the rest
    began.write_text(f"{int(time.time()) + 60}\n")
    again = triage("recover", "1", "--yes", **env)
    assert again.returncode == 1 and "the job began anew at" in " ".join(again.stdout.split())
    assert len([call for call in calls(site) if call.startswith("scancel")]) == 1


def test_what_a_person_said_instead_of_the_diagnosis_holds_the_plan_back(triage: Run, site: dict[str, str]) -> None:
    said = ("--verdict", "rejected", "--cause", "somebody pulled the cable")
    assert triage("incidents", "resolve", "1", *said, **site).returncode == 0
    done = triage("recover", "1", "--yes", **site, TRIAGE_RECOVER_ALLOW="drain,resubmit")
    assert done.returncode == 1 and "somebody pulled the cable" in " ".join(done.stdout.split())
    assert all(of_command(call.split()) == "read-only" for call in calls(site))


def test_a_node_that_only_the_log_names_is_not_drained_where_slurm_said_which_are_the_jobs(
    triage: Run, site: dict[str, str], tmp_path: Path
) -> None:
    """Whoever submits a job writes its log, and the plan may be run by an administrator."""
    fake = FakePrograms(tmp_path / "slurm")
    fake.sacct(table("24.05", row(tmp_path, JobID="4711", JobIDRaw="4711", NodeList="gpu[001-004]")))
    for own, node in ((False, "gpu-999"), (True, "gpu004")):
        (tmp_path / "4711.out").write_text(f"step 1 loss 2.0\nsrun: error: Node failure on {node}\n")
        env = site | {"PATH": f"{fake.folder}:{site['PATH']}", "TRIAGE_HOME": str(tmp_path / f"home-{own}")}
        diagnosed = triage("diagnose", "--job", "4711", **env)
        assert diagnosed.returncode == 0
        told = triage("recover", "1", **env).stdout
        assert (f"NodeName={node} State=DRAIN" in diagnosed.stdout) == (f"NodeName={node} State=DRAIN" in told) == own
        assert "gpu-999" not in told.partition("\n1. ")[2]
