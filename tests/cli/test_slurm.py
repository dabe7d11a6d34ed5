"""A real Slurm of three nodes: every way in which its jobs end, diagnosed from the id alone; and the epilog."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.conftest import REPO
from tests.slurm import cluster
from tests.slurm.cluster import Cluster, until
from triage.slurm.epilog import Epilog

pytestmark = [pytest.mark.service, pytest.mark.skipif(bool(cluster.lacking()), reason=cluster.lacking() or "-")]

NOTHING = "#!/bin/sh\n"
MISSING = "echo \"ModuleNotFoundError: No module named 'flash_attn'\" >&2; exit 1"
SCRIPTS = {
    "failed": (
        "srun -n2 -N2 --output=rank-%t-%j.log bash -c '[ $SLURM_PROCID = 0 ] && exit 0;"
        ' printf "Traceback (most recent call last):\\n  File \\"t.py\\", line 3, in <module>\\nValueError: bad shape\\n"; exit 3\'',
        ("-N2", "-n2", "-J", "a job|x"),
    ),
    "oom": ("srun -n1 python3 -c 'x = bytearray(400 << 20); import time; time.sleep(30)'", ("--mem=100M",)),
    "timeout": ("echo step 1; sleep 100", ("-t", "1")),
    "cancelled": ("echo step 1; sleep 100", ()),
    "array": (f"echo task $SLURM_ARRAY_TASK_ID; [ $SLURM_ARRAY_TASK_ID = 1 ] && exit 0; {MISSING}", ("--array=1-3", "-o", "%A_%a.out")),
    "het": (f"srun --het-group=0,1 bash -c '[ $SLURMD_NODENAME = n1 ] && exit 0; {MISSING}'", ("-w", "n1", ":", "-w", "n2")),
    "node_fail": ("echo step 1; srun sleep 100", ("-w", "n3", "--no-requeue")),
    "requeued": ("echo step 1; srun sleep 100", ("-w", "n3", "--requeue")),
    "held": ("exit 0", ("-H",)),
    "well": ("echo step 1; echo Training completed", ()),
}  # fmt: skip


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # sockets need short names
    of_nodes, of_controller = folder / "epilog", folder / "epilog-slurmctld"
    for hook in (of_nodes, of_controller):
        _put(hook, NOTHING)  # one that is not there drains the nodes
    started = None
    try:
        hooks = [f"Epilog={of_nodes}", f"EpilogSlurmctld={of_controller}"]
        started = cluster.start(folder, accounting=True, more=hooks)
        yield started
    finally:
        if started:
            started.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def jobs(slurm: Cluster) -> dict[str, str]:
    """A job that ended in each of the ways, by name."""
    ids = {name: slurm.submit(script, *options, name=f"{name}.sh") for name, (script, options) in SCRIPTS.items()}
    slurm.wait(ids["cancelled"], "RUNNING")
    slurm.run("scancel", ids["cancelled"])
    for name in ("timeout", "node_fail", "requeued"):
        slurm.wait(ids[name], "RUNNING")
    slurm.run("scontrol", "update", f"JobId={ids['timeout']}", "EndTime=now")
    until(lambda: slurm.steps_on(ids["requeued"]) and slurm.steps_on(ids["node_fail"]), "steps")
    slurm.kill_node("n3")
    slurm.wait(ids["requeued"], "PENDING", seconds=90)
    for name in ids.keys() - {"requeued", "held"}:
        slurm.wait(ids[name], seconds=90)
    slurm.start_node("n3")
    return ids


_known: dict[tuple[str, ...], dict[str, Any]] = {}


def diagnose(triage: Run, slurm: Cluster, job: str, **env: str) -> dict[str, Any]:
    """Each job once: nothing of it changes any more."""
    key = (job, *env.values())
    if key not in _known:
        asked = ("--llm", "off", "--no-record", "--format", "json")
        own = {"TRIAGE_HOME": str(slurm.dir / "index")}  # one index for all
        done = triage("diagnose", "--job", job, *asked, **(slurm.env | own | env))
        assert done.stdout, done.stderr
        _known[key] = json.loads(done.stdout)
    return _known[key]


@pytest.mark.parametrize(
    ("job", "outcome", "failure_type"),
    [
        ("failed", "failed", "value-error"),
        ("oom", "failed", "host-out-of-memory"),
        ("timeout", "interrupted", "time-limit"),
        ("cancelled", "interrupted", "cancelled"),
        ("array", "failed", "import-error"),
        ("het", "failed", "import-error"),
        ("node_fail", "failed", "node-failure"),
        ("requeued", "failed", "node-failure"),
        ("well", "healthy", "healthy"),
    ],
)
def test_a_job_is_diagnosed_from_its_id(
    triage: Run, slurm: Cluster, jobs: dict[str, str], job: str, outcome: str, failure_type: str
) -> None:
    result = diagnose(triage, slurm, jobs[job])
    assert (result["outcome"], result["failure_type"], result["missing"]) == (outcome, failure_type, [])
    assert result["job"].partition("_")[0] == jobs[job]
    assert result["job_user"] == "root"


def test_what_only_slurm_knows_is_told(triage: Run, slurm: Cluster, jobs: dict[str, str]) -> None:
    failed = diagnose(triage, slurm, jobs["failed"])
    assert failed["account"][0].startswith(
        f"{jobs['failed']} 'a job|x' of root: FAILED, exit code 3:0, 2 nodes n[1-2], ran 0:00:"
    )
    assert failed["evidence"][0]["file"].endswith(f"/rank-1-{jobs['failed']}.log")
    assert (
        "by the accounting it was root (user id 0)" in diagnose(triage, slurm, jobs["cancelled"])["root_cause"].lower()
    )
    assert diagnose(triage, slurm, jobs["node_fail"])["suspects"]["nodes"] == ["n3"]
    array = diagnose(triage, slurm, jobs["array"])
    assert [task["job"] for task in array["tasks"]] == [f"{jobs['array']}_2", f"{jobs['array']}_3"]
    assert "in the queue again" in diagnose(triage, slurm, jobs["requeued"])["account"][1]


def test_one_task_and_one_component_are_diagnosed_alone(triage: Run, slurm: Cluster, jobs: dict[str, str]) -> None:
    assert diagnose(triage, slurm, f"{jobs['array']}_3")["job"] == f"{jobs['array']}_3"
    assert diagnose(triage, slurm, f"{jobs['array']}_[2-2]")["job"] == f"{jobs['array']}_2"
    assert diagnose(triage, slurm, f"{jobs['het']}+0")["failure_type"] == "import-error"


def test_a_job_that_waits_and_one_that_is_not_there(triage: Run, slurm: Cluster, jobs: dict[str, str]) -> None:
    held = triage("diagnose", "--job", jobs["held"], "--llm", "off", **slurm.env)
    absent = triage("diagnose", "--job", "999999", "--llm", "off", **slurm.env)
    assert (held.returncode, absent.returncode) == (2, 2)
    assert f"job {jobs['held']} has not begun: PENDING, reason JobHeld" in held.stderr
    assert "Slurm does not know job 999999" in absent.stderr


@pytest.mark.parametrize(
    ("job", "failure_type"),
    [("oom", "host-out-of-memory"), ("array", "import-error"), ("het", "import-error"), ("node_fail", "node-failure")],
)
def test_a_cluster_without_accounting_is_enough(
    triage: Run, slurm: Cluster, jobs: dict[str, str], job: str, failure_type: str
) -> None:
    result = diagnose(triage, slurm, jobs[job], SLURM_CONF=str(slurm.without_accounting()))
    assert (result["failure_type"], result["missing"]) == (
        failure_type,
        ["the accounting was not asked: it is off on this cluster"],
    )


def _put(path: Path, text: str) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.chmod(0o755)
    fresh.rename(path)


def _install(slurm: Cluster, hook: str, triage: str, **told: Any) -> Path:
    """The epilog as `triage slurm install-epilog` prints it; what its diagnoses print."""
    log = slurm.dir / f"epilog-{time.monotonic_ns()}.log"
    made = Epilog(triage, str(slurm.dir / "settings"), str(log), **told).script()
    _put(slurm.dir / hook, made.replace("/run/triage-epilog", str(slurm.dir / "locks")))
    return log


def _command(slurm: Cluster) -> str:
    """triage itself for each fifth job, and for the others a program that takes as long as a quick diagnosis."""
    path = slurm.dir / "triage"
    running = slurm.dir / "running"
    _put(
        path,
        f"#!/bin/sh\necho + >> {running}\n"
        f'if [ $(($3 % 5)) = 0 ]; then PYTHONPATH={REPO} {sys.executable} -m triage "$@"; else sleep 0.5; fi\n'
        f"code=$?; echo - >> {running}; exit $code\n",
    )
    return str(path)


def test_twenty_jobs_that_fail_at_once_are_each_diagnosed(slurm: Cluster, jobs: dict[str, str], triage: Run) -> None:
    home = slurm.dir / "home"
    (slurm.dir / "settings").write_text(
        f"TRIAGE_HOME={home}\nSLURM_CONF={slurm.env['SLURM_CONF']}\nTRIAGE_LLM=off\nPATH={slurm.env['PATH']}\n"
    )
    log = _install(slurm, "epilog", _command(slurm), slots=2)
    failing = [slurm.submit(f"echo step {n}; exit {n + 1}", name=f"fail{n}.sh") for n in range(20)]
    well = slurm.submit("exit 0")
    began = time.monotonic()
    for job in [*failing, well]:
        slurm.wait(job)
    assert time.monotonic() - began < 60  # the jobs do not wait for their diagnoses

    until(lambda: log.read_text().count(": ended with ") == 20, "diagnoses", 300)
    _put(slurm.dir / "epilog", NOTHING)
    listed = triage("incidents", "list", "--format", "json", "--limit", "100", TRIAGE_HOME=str(home))
    attempts = sum(incident["attempts"] for incident in json.loads(listed.stdout)["incidents"])
    assert attempts == 4, log.read_text()
    assert all(log.read_text().count(f"diagnose --job {job} ") == 1 for job in failing)
    at_once = accumulate(1 if sign == "+" else -1 for sign in (slurm.dir / "running").read_text().split())
    assert max(at_once) <= 2
    assert well not in log.read_text()
    assert slurm.node_states().count("drained") == 0


def _stub(slurm: Cluster) -> str:
    path = slurm.dir / "stub"
    _put(path, '#!/bin/sh\necho "called: $* as $(id -un) in $HOME"\n')
    return str(path)


def test_the_tasks_of_an_array_are_diagnosed_once(slurm: Cluster, jobs: dict[str, str]) -> None:
    log = _install(slurm, "epilog", _stub(slurm), gather=3)
    array = slurm.submit("exit 3", "--array=1-8")
    slurm.wait(array)
    until(lambda: "ended with 0" in log.read_text(), "a diagnosis", 120)
    _put(slurm.dir / "epilog", NOTHING)
    assert log.read_text().count(f"called: diagnose --job {array} --quiet as root") == 1


def test_the_controller_s_epilog_works_too_and_reads_as_the_job_s_user(slurm: Cluster, jobs: dict[str, str]) -> None:
    (slurm.dir / "settings").write_text(f"TRIAGE_NOTIFY='slack:x y'\nSLURM_CONF={slurm.env['SLURM_CONF']}\n")
    slurm.dir.chmod(0o755)
    log = _install(slurm, "epilog-slurmctld", _stub(slurm))
    job = slurm.submit("exit 3", "--uid=nobody", "--output=/dev/null", "--chdir=/")
    slurm.wait(job)
    until(lambda: "ended with 0" in log.read_text(), "a diagnosis", 120)
    _put(slurm.dir / "epilog-slurmctld", NOTHING)
    home = pwd.getpwnam("nobody").pw_dir
    assert f"called: diagnose --job {job} --quiet --notify settings as nobody in {home}\n" in log.read_text()


@pytest.mark.parametrize(
    "broken", ["triage is missing", "the log cannot be written", "the home cannot be written", "no Slurm", "no job"]
)
def test_the_epilog_ends_at_once_and_well(slurm: Cluster, tmp_path: Path, broken: str) -> None:
    program = tmp_path / "triage"
    program.write_text("#!/bin/sh\nsleep 20\n")
    program.chmod(0o755)
    log = "/proc/none/x.log" if "log" in broken else str(tmp_path / "log")
    script = tmp_path / "epilog.sh"
    made = Epilog(str(tmp_path / "none" if "triage" in broken else program), str(tmp_path / "settings"), log).script()
    script.write_text(made.replace("/run/triage-epilog", "/proc/none" if "home" in broken else str(tmp_path / "locks")))
    script.chmod(0o755)
    env = {
        "PATH": str(tmp_path) if broken == "no Slurm" else slurm.env["PATH"],
        "SLURM_JOB_USER": "root",
        "TMPDIR": str(tmp_path),
    }
    if broken != "no job":
        env["SLURM_JOB_ID"] = "4242"
    began = time.monotonic()
    done = os.spawnve(os.P_WAIT, str(script), [str(script)], env)
    assert done == 0
    assert time.monotonic() - began < 5  # a moment, on a machine that has nothing else to do
