"""A real Slurm: the node test finds the broken node, and a plan drains it and queues the job again without it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.conftest import Run, forks, triage  # noqa: F401 - fixtures
from tests.recovering.test_checkpoints import megatron as saved
from tests.slurm import cluster
from tests.slurm.cluster import Cluster
from tests.store.samples import ECC, as_json
from triage.domain import Suspects
from triage.store.incidents import IncidentStore
from triage.store.values import JobRef

pytestmark = pytest.mark.service
ALLOW = {"TRIAGE_RECOVER_ALLOW": "node-test,drain,cancel,resubmit"}


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if why := cluster.lacking(accounting=False):
        pytest.skip(why)
    started = cluster.start(tmp_path_factory.mktemp("slurm"), accounting=False, nodes=("n1", "n2", "n3"))
    yield started
    started.stop()


def test_the_broken_node_is_named(slurm: Cluster, triage: Run) -> None:  # noqa: F811
    check = """sh -c 'test "$SLURMD_NODENAME" != n2'"""
    done = triage(
        "recover", "node-test", "--nodes", "n[1-3]", "--check", check, "--timeout", "20", "--yes", **slurm.env, **ALLOW
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 good nodes, 1 faulty, 0 undecided" in done.stdout
    assert "faulty     n2: failed with n1, n3" in done.stdout


def test_the_node_is_drained_and_the_job_waits_without_it(slurm: Cluster, triage: Run, tmp_path: Path) -> None:  # noqa: F811
    job = slurm.submit("exit 1", "--requeue")
    slurm.wait(job)
    url = f"sqlite:///{tmp_path}/triage.db"
    told = dataclasses.replace(ECC, job=job, suspects=Suspects(nodes=("n2",)))
    with IncidentStore.open(url) as store:
        store.record(told, as_json(told), JobRef(external_id=job, scheduler="slurm"))
    site = {**slurm.env, **ALLOW, "TRIAGE_DATABASE_URL": url}
    saved(tmp_path / "run", 100)
    done = triage("recover", "1", "--yes", "--checkpoints", "run", **site)
    assert "FAILED: Keep" not in done.stdout and "NOT" not in done.stdout, done.stdout
    assert "drain" in slurm.run("sinfo", "-h", "-n", "n2", "-o", "%T")
    assert "triage:ecc-error:1" in slurm.run("scontrol", "show", "node", "n2")
    assert "ExcNodeList=n2" in slurm.run("scontrol", "show", "job", job)
    slurm.run("scontrol", "update", "NodeName=n2", "State=RESUME")  # the undo of the plan


def test_a_job_that_runs_already_is_let_run(slurm: Cluster, triage: Run, tmp_path: Path) -> None:  # noqa: F811
    job = slurm.submit("sleep 600", "--requeue")
    slurm.wait(job, "RUNNING")
    url = f"sqlite:///{tmp_path}/triage.db"
    told = dataclasses.replace(ECC, job=job, suspects=Suspects(), action="restart")
    with IncidentStore.open(url) as store:
        store.record(told, as_json(told), JobRef(external_id=job, scheduler="slurm"))
    saved(tmp_path / "run", 100)
    done = triage("recover", "1", "--yes", "--checkpoints", "run", **slurm.env, **ALLOW, TRIAGE_DATABASE_URL=url)
    assert done.returncode == 1
    assert f"{job} is RUNNING" in done.stdout
    hung = dataclasses.replace(told, outcome="hung", failure_type="hang")
    with IncidentStore.open(url, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as store:
        number = store.record(hung, as_json(hung), JobRef(external_id=job, scheduler="slurm"))
    done = triage("recover", str(number), "--yes", **slurm.env, **ALLOW, TRIAGE_DATABASE_URL=url)
    assert "HELD BACK: Ask the batch script" in done.stdout and "the job began anew at" in done.stdout
    assert slurm.states(job) == {"RUNNING"}
    slurm.run("scancel", job)
