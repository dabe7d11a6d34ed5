"""Whose process a kernel line is of: the job's, with its rank, or another job's."""

from __future__ import annotations

import pytest

from tests.diagnose.conftest import Diagnose

NCCL = "".join(
    f"{r}: gn{1 + r // 4:02d}:{7000 + r}:{7100 + r} [{r % 4}] NCCL INFO comm 0x5{r} rank {r} nranks 8 cudaDev {r % 4} - Init COMPLETE\n"
    for r in range(8)
)
STEPS = "".join(f"0: 2026-05-01 10:0{i}:00 step {i} loss 2.{i}\n" for i in range(6))
OWN = (
    '1: Traceback (most recent call last):\n1:   File "/w/train.py", line 3, in step\n1:     x = batch["y"]\n'
    "1: KeyError: 'y'\nsrun: error: gn01: task 1: Exited with exit code 1\n"
)
DIED = "srun: error: gn02: task 6: Killed\n"
AT = "[Fri May  1 10:05:20 2026] "


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:4b:00): 79, pid=99231, name=gmx, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:4b:00): 31, pid=99231, name=vasp_std, Ch 00000002, intr 00000000. MMU Fault: ENGINE GRAPHICS faulted @ 0x7f",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/slurm/uid_7/job_4242,"
        "task_memcg=/slurm/uid_7/job_4242/step_0,task=pytest,pid=99231,uid=7",
    ],
)
def test_another_jobs_process_is_context(diagnosed: Diagnose, line: str) -> None:
    d = diagnosed({"out.txt": NCCL + STEPS + OWN, "dmesg-gn02.txt": AT + line + "\n"})
    assert d.failure_type == "key-error"
    assert [e.role for e in d.evidence if e.file.endswith("dmesg-gn02.txt")] == ["context"]


@pytest.mark.parametrize("name", ["python3", "pt_data_worker", "<unknown>"])
def test_the_jobs_own_process_is_the_cause_and_has_its_rank(diagnosed: Diagnose, name: str) -> None:
    line = f"NVRM: Xid (PCI:0000:4b:00): 79, pid=7006, name={name}, GPU has fallen off the bus.\n"
    d = diagnosed({"out.txt": NCCL + STEPS + DIED, "dmesg-gn02.txt": AT + line})
    assert (d.failure_type, d.suspects.nodes, d.suspects.ranks) == ("gpu-lost", ("gn02",), (6,))


def test_a_process_number_of_a_container_is_no_other_jobs(diagnosed: Diagnose) -> None:
    line = "NVRM: Xid (PCI:0000:4b:00): 79, pid=3912006, name=python3, GPU has fallen off the bus.\n"
    d = diagnosed({"out.txt": NCCL + STEPS + DIED, "dmesg-gn02.txt": AT + line})
    assert (d.failure_type, d.suspects.nodes) == ("gpu-lost", ("gn02",))


def test_a_program_that_the_job_names_is_its_own(diagnosed: Diagnose) -> None:
    head = "+ srun -n 8 /opt/gromacs/bin/gmx mdrun -s in.tpr\n"
    line = "NVRM: Xid (PCI:0000:4b:00): 79, pid=3912006, name=gmx, GPU has fallen off the bus.\n"
    d = diagnosed({"out.txt": head + STEPS + "srun: error: gn02: task 6: Killed\n", "dmesg-gn02.txt": AT + line})
    assert d.failure_type == "gpu-lost"


def test_a_neighbour_that_uses_up_the_node_is_named_and_the_node_left_out(diagnosed: Diagnose) -> None:
    kernel = (
        AT + "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,"
        "task_memcg=/user.slice/user-7.slice,task=rsession,pid=910,uid=7\n"
        + AT
        + "Out of memory: Killed process 910 (rsession) total-vm:900000000kB, anon-rss:380000000kB, file-rss:0kB, shmem-rss:0kB, UID:7\n"
        + AT
        + "Out of memory: Killed process 7006 (python3) total-vm:9000000kB, anon-rss:4000000kB, file-rss:0kB, shmem-rss:0kB, UID:1001\n"
    )
    d = diagnosed({"out.txt": NCCL + STEPS + DIED, "dmesg-gn02.txt": kernel})
    assert (d.failure_type, d.action, d.suspects.nodes) == ("host-out-of-memory", "restart-excluding", ("gn02",))
    assert "another user's process" in d.root_cause and "7006" in d.root_cause


def test_a_job_that_used_up_its_node_itself_is_told_so(diagnosed: Diagnose) -> None:
    kernel = (
        AT
        + "Out of memory: Killed process 7006 (python3) total-vm:9kB, anon-rss:380000000kB, file-rss:0kB, shmem-rss:0kB, UID:1001\n"
    )
    d = diagnosed({"out.txt": NCCL + STEPS + DIED, "dmesg-gn02.txt": kernel})
    assert (d.failure_type, d.action, d.suspects.ranks) == ("host-out-of-memory", "fix-and-resubmit", (6,))


def test_a_job_that_does_not_tell_its_processes_clears_no_fault_that_would_explain_it(diagnosed: Diagnose) -> None:
    kernel = AT + "NVRM: Xid (PCI:0000:4b:00): 79, pid=99231, name=trtllm-build, GPU has fallen off the bus.\n"
    own = "Traceback (most recent call last):\nsubprocess.CalledProcessError: Command 'x' returned non-zero exit status 134.\n"
    assert diagnosed({"out.txt": STEPS + own, "dmesg-gn02.txt": kernel}).failure_type == "gpu-lost"
    own = OWN.split("srun", maxsplit=1)[0].replace("1: ", "")
    assert diagnosed({"out.txt": STEPS + own, "dmesg-gn02.txt": kernel}).failure_type == "key-error"
