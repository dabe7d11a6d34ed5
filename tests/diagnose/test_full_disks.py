"""A write that fails on a file system that a `df` in the log shows as full."""

from __future__ import annotations

import pytest

from tests.diagnose.conftest import Diagnose

STEPS = "".join(f"step {i} loss 2.{i} lr 1e-4\n" for i in range(1, 40))
ROW = "nas2:/export/ml  11T    {used}     {free} {use}% {mount}\n"
FULL = ROW.format(used="11T", free=0, use=100, mount="/mnt/nas2")
FAILED = (
    "Saving checkpoint to {path}/g_00040000\nTraceback (most recent call last):\n"
    '  File "/home/y/gan/utils.py", line 51, in save_checkpoint\n    torch.save(obj, filepath)\n'
    "RuntimeError: write(): fd 29 failed with Input/output error\n"
)


@pytest.mark.parametrize("system", ["nas2:/export/ml", "/dev/nvme0n1p1", "fs-1 nfs4"])
def test_the_disk_was_full(diagnosed: Diagnose, system: str) -> None:
    log = STEPS + FULL.replace("nas2:/export/ml", system) + FAILED.format(path="/mnt/nas2/run")
    d = diagnosed({"job.log": log})
    assert (d.failure_type, d.root_cause_class, d.evidence[0].line) == ("disk-full", "resource-exhaustion", 40)
    assert any("df -h /mnt/nas2" in step.command for step in d.remediation)


@pytest.mark.parametrize(
    ("rows", "path"),
    [
        (ROW.format(used="9T", free="2T", use=82, mount="/mnt/nas2"), "/mnt/nas2/run"),
        (FULL, "/scratch/run"),
        (FULL + ROW.format(used="8T", free="3T", use=73, mount="/mnt/nas2"), "/mnt/nas2/run"),
        (FULL + ROW.format(used="8T", free="3T", use=73, mount="/mnt/nas2/run"), "/mnt/nas2/run"),
        ("/dev/loop4  56M  56M  0 100% /snap/core18\n", "/snap/core18"),
        ("progress 100% /mnt/nas2\n", "/mnt/nas2/run"),
        (FULL.replace("     0 100%", " 0.0.0 100%"), "/mnt/nas2/run"),
    ],
)
def test_there_was_room_where_it_wrote(diagnosed: Diagnose, rows: str, path: str) -> None:
    assert diagnosed({"job.log": STEPS + rows + FAILED.format(path=path)}).failure_type == "storage-error"


def test_a_full_disk_that_nothing_failed_to_write_to_is_no_failure(diagnosed: Diagnose) -> None:
    assert diagnosed({"job.log": STEPS + FULL + "Training completed\n"}).outcome == "healthy"
