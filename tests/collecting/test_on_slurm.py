"""A job of a real Slurm is looked at by steps beside its own, which fill its nodes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run, forks, triage  # noqa: F401 - fixtures
from tests.slurm import cluster
from tests.slurm.cluster import Cluster

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if why := cluster.lacking(accounting=False):
        pytest.skip(why)
    started = cluster.start(tmp_path_factory.mktemp("slurm"), accounting=False, nodes=("n1", "n2"))
    yield started
    started.stop()


def test_every_rank_of_a_job_is_found_on_its_node(slurm: Cluster, triage: Run, tmp_path: Path) -> None:  # noqa: F811
    ranks = f"srun -n4 --exclusive {sys.executable} -c 'import time; time.sleep(600)'"
    job = slurm.submit(ranks, "-N2", "-n4", "--exclusive", "--mem=0")
    slurm.wait(job, "RUNNING")
    cluster.until(lambda: f"{job}.0" in slurm.run("squeue", "-s", "-h", "-o", "%i"), "the step of the ranks")
    done = triage("hang", "collect", "--job", job, "--out", "got", "--timeout", "20", **slurm.env)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((tmp_path / "got" / "manifest.json").read_text())
    assert [told["node"] for told in document["nodes"]] == ["n1", "n2"]
    found = [(p["node"], p["rank"]) for p in document["processes"] if p["rank"] is not None]
    assert sorted(rank for _, rank in found) == [0, 1, 2, 3]
    assert {node for node, _ in found} == {"n1", "n2"}
    ended = triage("hang", "collect", "--job", "1", "--out", "none", **slurm.env)
    assert ended.returncode == 2
    assert "job 1 does not run: Slurm does not know it" in ended.stderr
