"""Logs that are not sent: paths that lie where the server may read, and jobs that Slurm knows."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.kube import objects as k
from tests.kube.server import ApiServer
from tests.slurm.programs import FakePrograms, row
from tests.slurm.shapes import BATCH, STEP, table
from tests.web.serving import LOST_GPU, PATIENCE, WRITE, Served

pytestmark = pytest.mark.service
ERROR = "ModuleNotFoundError: No module named 'flash_attn'\n"


@pytest.fixture
def logs(served: Served) -> Path:
    return served.home.parent / "logs"


@pytest.fixture
def slurm(served: Served) -> FakePrograms:
    return FakePrograms(served.home.parent / "bin")


def ended(served: Served, sent: Any) -> dict[str, Any]:
    assert sent.status_code == 202, sent.text
    end = time.monotonic() + PATIENCE
    with served.client() as client:
        while (found := client.get(f"/api/v1/jobs/{sent.json()['id']}").json())["state"] not in ("done", "failed"):
            assert time.monotonic() < end
            time.sleep(0.1)
    return dict(found)


def test_paths_below_the_roots_are_read(served: Served, logs: Path) -> None:
    (logs / "a.dmesg").write_bytes((LOST_GPU / "gpu-042.dmesg").read_bytes())
    (logs / "out").symlink_to("/etc")
    with served.client() as client:
        done = ended(served, client.post("/api/v1/jobs/paths", json={"paths": [str(logs / "a.dmesg")]}))
        assert (done["state"], done["failure_type"]) == ("done", "gpu-lost")
        for path in ("/etc/passwd", str(logs / ".." / "home"), str(logs / "out" / "passwd"), str(logs)):
            refused = client.post("/api/v1/jobs/paths", json={"paths": [path]})
            assert (refused.status_code, "TRIAGE_SERVE_ROOTS" in refused.text or "leads" in refused.text) == (400, True)
    (logs / "out").unlink()


def test_a_job_of_slurm_is_diagnosed_from_its_id(served: Served, slurm: FakePrograms, logs: Path) -> None:
    (logs / "4242.out").write_text(ERROR)
    slurm.sacct(table("24.05", row(logs), BATCH, STEP))
    with served.client() as client:
        done = ended(served, client.post("/api/v1/jobs/slurm", json={"job": "4242"}))
        assert (done["state"], done["scheduler"], done["asked"], done["failure_type"]) == (
            "done",
            "slurm",
            "4242",
            "import-error",
        ), done
        shown = client.get(f"/api/v1/incidents/{done['incident']}").json()
        assert (shown["job"], shown["job_user"]) == ("4242", "ada")
        assert client.post("/api/v1/jobs/slurm", json={"job": "4242; rm -rf /"}).status_code == 400


def test_output_that_lies_elsewhere_is_not_read(served: Served, slurm: FakePrograms, tmp_path: Path) -> None:
    """Whoever submits a job chooses where Slurm says that its output lies."""
    (tmp_path / "4243.out").write_text(ERROR)
    slurm.sacct(table("24.05", row(tmp_path, JobID="4243", JobIDRaw="4243")))
    with served.client() as client:
        done = ended(served, client.post("/api/v1/jobs/slurm", json={"job": "4243"}))
    assert done["state"] == "failed"
    assert "outside of the roots" in done["said"]


def test_a_job_that_slurm_does_not_know_is_said(served: Served, slurm: FakePrograms) -> None:
    slurm.program("sacct", "exit 1")
    with served.client("", "text/html") as client:
        client.post("/login", data={"token": WRITE})
        token = re.search(r'name="csrf" value="(\w+)"', client.get("/upload").text)[1]  # type: ignore[index]
        assert client.post("/upload/slurm", data={"csrf": "", "job": "99"}).status_code == 403
        sent = client.post("/upload/slurm", data={"csrf": token, "job": "99"})
        assert sent.status_code == 303
    with served.client() as client:
        end = time.monotonic() + PATIENCE
        path = f"/api/v1{sent.headers['location']}"
        while (found := client.get(path).json())["state"] != "failed":
            assert time.monotonic() < end
            time.sleep(0.1)
    assert "Slurm" in found["said"]


def test_a_job_of_kubernetes_is_diagnosed_from_its_name(served: Served) -> None:
    pytest.importorskip("kubernetes")
    with ApiServer() as cluster, served.client() as client:
        cluster.kubeconfig(served.home.parent / "kubeconfig")
        job = k.batch_job("train", k.condition("Failed", reason="BackoffLimitExceeded"))
        labels = {"batch.kubernetes.io/job-name": "train"}
        cluster.add(job, k.pod("train-0", k.container("main", k.over(1)), labels=labels, owner=job), k.node("gpu-1"))
        cluster.logs["ml", "train-0", "main", False] = ERROR.encode()
        for name, pod in (("ml/train", False), ("ml/train-0", True)):
            done = ended(served, client.post("/api/v1/jobs/kubernetes", json={"name": name, "pod": pod}))
            assert (done["state"], done["asked"], done["failure_type"]) == ("done", name, "import-error"), done
            lines = client.get(f"/api/v1/incidents/{done['incident']}").json()["evidence"]
            assert any("flash_attn" in e["text"] for e in lines)
        for name in ("train", "kube-system/train", "ml/../train", "other/job/train"):
            assert client.post("/api/v1/jobs/kubernetes", json={"name": name}).status_code == 400, name
