from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from triage.ingest.kinds import classify, detect, is_binary
from triage.ingest.streams import Input

STEP = "[2024-06-02 14:42:27,463] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-5]"
SMI = """Sun Aug 17 00:40:32 2025
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.129.03             Driver Version: 535.129.03   CUDA Version: 12.2     |
|   0  NVIDIA H800                    On  | 00000000:D1:00.0 Off |                    0 |
+---------------------------------------------------------------------------------------+"""
TEXTS = {
    "job": [
        STEP,
        f"{SMI}\n" + "\n".join([STEP] * 20),
        "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: x\n" + "\n".join([STEP] * 10),
        "step 1\nNVRM: Xid (PCI:0000:9b:00): 79 seen by us\n" + "\n".join([STEP] * 9),
        "slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2025-01-01T01:00:00 ***",
        "Fatal Python error: Aborted\n\nThread 0x00007f4 (most recent call first):\n" + "\n".join([STEP] * 9),
    ],
    "kernel": [
        "[Sun Feb 23 16:24:18 2025] NVRM: GPU at PCI:0000:9b:00\n[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:9b:00): 119",
        "<6>[    2.608284] mlx5_core 0000:41:00.1: 63.008 Gb/s\n<0>[ 3098.275469] Kernel panic - not syncing",
        "[12345.678901] Out of memory: Killed process 77",
        "Feb 01 14:25:31 host kernel: NVRM: Xid (PCI:0000:9b:00): 79\nFeb 01 14:25:32 host systemd[1]: Started x.",
        "2024-05-01T12:00:00+0200 n12 kernel: oom-kill\n2024-05-01T12:00:00+0200 n12 sshd[7]: Accepted",
    ],
    "slurm": [
        "[2023-05-01T12:00:00.123] launch task StepId=12.0 request from UID:1\n[2023-05-01T12:00:01.123] error: Node gpu12 not responding\n"
        "[2023-05-01T12:00:02.123] _slurm_rpc_complete: JobId=12",
        "[2023-05-01T12:00:00.123] [12.batch] task/cgroup: x\n[2023-05-01T12:00:00.123] [12.0] done with job",
    ],
    "sacct": [
        "       JobID    JobName      State ExitCode\n------------ ---------- ---------- --------\n12 train FAILED 1:0",
        "JobID|State|ExitCode|Elapsed\n12|NODE_FAIL|1:0|01:00:00",
        "JobId=312155 JobName=train\n   UserId=a(1) GroupId=b\n   JobState=PREEMPTED Reason=None",
        '{"meta": {}, "jobs": [{"job_id": 1, "exit_code": {"return_code": 1}}]}',
        "NodeName=gpu012 Arch=x86_64 CoresPerSocket=32\n   State=DOWN*+DRAIN",
    ],
    "kubernetes": [
        "Name:             train-worker-0\nNamespace:        ml\nPriority:         0\nNode:             gpu-7",
        "LAST SEEN   TYPE      REASON      OBJECT       MESSAGE\n2m  Warning  OOMKilling  node/n1  Memory",
        "42m  Normal   Started  pod/t-0  Started container main\n3m (x2 over 5m)  Warning  Evicted  pod/t-0  The node was low on resource",
        "ml   43m  Warning  FailedMount  pod/t-0  MountVolume.SetUp failed\nml   1m  Normal  Completed  job/t  Job completed",
        "NAME             READY   STATUS      RESTARTS   AGE\ntrain-worker-0   0/1     OOMKilled   0          3m",
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: train-worker-0",
        '{\n    "apiVersion": "v1",\n    "kind": "PodList"',
    ],
    "fabric": [
        "[Dec 18 2024 19:09:50] [INFO] [tid 1579] Received an inband message\n[Dec 18 2024 19:09:50] [ERROR] [tid 1374] detected NVSwitch non-fatal error",
        "==============NVSMI LOG==============\n\nTimestamp                                 : Sat Mar  4\nDriver Version                            : 525.60.13",
        f"{SMI}",
        "CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Disabled\n\t\tBase lid: 5\n\t\tLink layer: InfiniBand",
    ],
    "stacks": [
        "Process 280064: python train.py\nPython v3.8.12 (/x/bin/python3.8)\n\nThread 280064 (active): \"MainThread\"\n"
        "    barrier (torch/distributed/distributed_c10d.py:2784)\n    wait_for_everyone (accelerate/utils/other.py:81)",
        "Thread 2 (Thread 0x7f1 (LWP 12)):\n#0  0x00007f in poll () from /lib64/libc.so.6\n#1  0x00007e in ncclProxyService ()",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in TEXTS.items() for text in texts])
def test_kinds_by_content(kind: str, text: str) -> None:
    assert classify("input.txt", text.encode()) == kind


def test_names_help_where_the_content_is_scarce() -> None:
    scarce = b"hello\nhello\nhello\nFeb 01 14:25:31 host kernel: x\n"
    assert classify("x.log", scarce) == "job"
    assert classify("logs/dmesg-n1.txt", scarce) == "kernel"
    assert classify("fabricmanager.log", b"anything") == "fabric"


def test_the_kernel_s_log_is_known_by_the_stamps_that_dmesg_writes_for_people() -> None:
    text = "[May19 19:57] CMCI storm detected\n[  +0.000127] mce: [Hardware Error]: Machine check events logged\n"
    assert classify("x.txt", text.encode()) == "kernel"
    assert classify("x.txt", b"[Phase1 19:57] starts\n[ +12] more\n") == "job"


def test_the_kernel_s_log_is_known_by_the_stamp_that_dmesg_writes_as_iso() -> None:
    said = "2026-01-07T09:33:54,767483+00:00 {}\n"
    text = said.format("python3 invoked oom-killer: order=0") + said.format("Call Trace:")
    assert classify("x.txt", text.encode()) == "kernel"
    assert classify("x.txt", text.replace(",767483+00:00", ",767").encode()) == "job"  # Python's logging


def test_empty_binary_and_dumps() -> None:
    assert classify("a.log", b" \n\x00\x00\r\n") == "empty"
    assert classify("a.log", b"\x89PNG\r\n\x1a\n") == "binary"
    assert classify("a.log", b"x" * 257 + b"ustar\x0000") == "binary"
    pickle = b"\x80\x02}(X\x07\x00\x00\x00versionq\x00"
    assert classify("_dump_0", pickle) == "flight-recorder"
    assert classify("weights", pickle) == "binary"
    assert classify("fr.json", b'{"version": "2.9", "pg_config": {}, "entries": []}') == "flight-recorder"


def test_text_with_odd_bytes_is_text() -> None:
    assert not is_binary("编码 GBK".encode("gbk") * 50)
    assert not is_binary(b"\x1b[31mred\x1b[0m\r\n" * 50)
    assert not is_binary(b"line\n" * 50 + b"\x00" * 4)
    assert not is_binary("no mark".encode("utf-16-le") * 50)


def test_a_stream_is_told_by_its_first_chunk_and_loses_nothing(tmp_path: Path) -> None:
    chunks = [b"[12345.678901] Out of memory\n", b"more\n"]
    kind, rest = detect(Input("-", None, 0), iter(chunks))
    assert (kind, list(rest)) == ("kernel", chunks)
    kind, rest = detect(Input("-", None, 0), iter([b"\x7fELF" + bytes(99), b"x"]))
    assert (kind, list(rest)) == ("binary", [])
    endless = itertools.repeat(b"x")
    kind, same = detect(Input("a", tmp_path, 1, "slurm"), endless)
    assert kind == "slurm" and same is endless
