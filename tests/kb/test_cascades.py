"""Every rule of cascades.yaml by one sample: a cause and what it brings about. Without the rule the answer is another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache

import pytest

from tests.helpers import job, log_file
from triage import kb
from triage.cli import wiring
from triage.diagnose.candidates import candidates, explanations
from triage.diagnose.facts import gather
from triage.diagnose.judge import Knowledge, judge
from triage.domain import Diagnosis, FileKind, JobLog


@dataclass(frozen=True)
class Sample:
    """The lines of the cause and of its effect; two files where they are of two kinds."""

    cause: str
    effect: str
    kind: FileKind = "job"  # of the file with the cause
    apart: bool = False  # the cause stands in the file of another rank
    late: bool = False  # the cause is printed after its effect
    at: datetime | None = None  # the time of all lines

    def log(self, turned: bool = False) -> JobLog:
        log = self._log(turned)
        return replace(
            log, files=tuple(replace(f, lines=tuple(replace(x, time=self.at) for x in f.lines)) for f in log.files)
        )

    def _log(self, turned: bool) -> JobLog:
        if self.kind != "job" or self.apart:
            return job(log_file(self.effect, "job.log"), log_file(self.cause, "node.log", self.kind))
        return job(
            "\n".join((self.effect, *[PADDING] * 4, self.cause) if turned or self.late else (self.cause, self.effect))
        )


PADDING = "a line that says nothing"
IN_USE = "RuntimeError: The server socket has failed to listen on any local network address: EADDRINUSE Address already in use"
GLOO_CLOSED = (
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.1.1.7]:5021"
)
GLOO_TIMED_OUT = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete"
SAMPLES = {
    "a-scale-of-nothing-is-divided-by": Sample(
        "\n".join(
            f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {scale}"
            for scale in ("4e-06", "2e-06", "1e-06", "5e-07")
        ),
        'Traceback (most recent call last):\n  File "/w/train.py", line 5, in step\n    1./scale)\nZeroDivisionError: float division by zero',
    ),
    "storage-keeps-processes-from-ending": Sample(
        "[120.1]  cl_sync_io_wait+0x1c5/0x400 [obdclass]",
        "slurmstepd: error: *** STEP 55.0 STEPD TERMINATED ON n1 AT 2024-12-03T01:13:17 DUE TO JOB NOT ENDING WITH SIGNALS ***",
        "kernel",
    ),
    "signal-of-an-invalid-opcode": Sample(
        "[7712.1] traps: lmp[88192] trap invalid opcode ip:b51ec2 sp:7ffc81bf670e error:0 in lmp[400000+a10000]",
        "[n12:88192] Signal: Illegal instruction (4)",
        "kernel",
    ),
    "a-lost-peer-ends-its-launcher": Sample(
        "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:784, unhandled system error, NCCL version 2.7.8",
        "subprocess.CalledProcessError: Command '['python']' returned non-zero exit status 1.",
    ),
    "the-end-of-credentials-was-told-before": Sample(
        "ERROR s3: <Code>ExpiredToken</Code><Message>refused</Message>",
        "assumed role reader, session expires 2025-02-27T07:00:00Z (12h)",
        late=True,
        at=datetime(2025, 2, 27, 7, 0, 3, tzinfo=UTC),
    ),
    "credentials-ended": Sample(
        "assumed role reader, session expires 2025-02-27T07:00:00Z (12h)",
        "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the GetObject operation",
        at=datetime(2025, 2, 27, 7, 0, 3, tzinfo=UTC),
    ),
    "hung-task-and-its-stack": Sample(
        "[120.0] INFO: task python:4711 blocked for more than 120 seconds.\n[120.1]  nfs_lock_and_join_requests+0x1/0x2 [nfs]",
        "",
        "kernel",
    ),
    "ecc-event": Sample(
        "NVRM: Xid (PCI:0000:48:00): 48, pid=1896, name=python, DBE (double bit error) at 0x1.\n"
        "NVRM: Xid (PCI:0000:48:00): 64, pid=1896, name=python, Row Remapper: pending row-remapper",
        "",
        "kernel",
    ),
    "oom-killer-kills": Sample("[9.1] Out of memory: Killed process 4711 (python) total-vm:1kB", IN_USE, "kernel"),
    "disk-full-breaks-writes": Sample(
        "OSError: [Errno 28] No space left on device: '/ckpt/step_9'", "RuntimeError: received 0 items of ancdata"
    ),
    "gpu-lost": Sample("NVRM: Xid (PCI:0000:4a:00): 79, pid=4711, GPU has fallen off the bus.", IN_USE, "kernel"),
    "cuda-error": Sample("RuntimeError: CUDA error: an illegal memory access was encountered", IN_USE),
    "out-of-memory": Sample("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.", IN_USE),
    "node-gone": Sample("srun: error: Node failure on gpu017", IN_USE),
    "fabric": Sample("[12.4] mlx5_core 0000:5e:00.0 ens3f0np0: Link down", IN_USE, "kernel"),
    "storage": Sample("OSError: [Errno 116] Stale file handle", IN_USE),
    "scheduler-end": Sample(
        "slurmstepd: error: *** JOB 173 ON cn2649 CANCELLED AT 2023-11-04T07:28:53 DUE TO TIME LIMIT ***", IN_USE
    ),
    "error-ends-the-launcher": Sample("KeyError: 'tokens'", IN_USE),
    "a-task-failed-and-the-step-was-ended": Sample(
        "failed (exitcode: 1) local_rank: 3 (pid: 76739) of binary: /home/u/bin/python",
        "slurmstepd: error: *** STEP 250.0 ON gpu019 CANCELLED AT 2024-09-22T13:28:49 ***",
    ),
    "the-watchdog-aborts-its-process": Sample(
        "[rank2]:[E516 06:09:16.295666043 ProcessGroupNCCL.cpp:629] [Rank 2] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=49296, OpType=_ALLGATHER_BASE, NumelIn=192, NumelOut=576, Timeout(ms)=1800000) ran for 1800076 milliseconds",
        "failed (exitcode: -6) local_rank: 2 (pid: 2288) of binary: /opt/conda/bin/python",
    ),
    "a-killed-rank-drops-its-connections": Sample(
        "failed (exitcode: -9) local_rank: 0 (pid: 76739) of binary: /home/u/bin/python", GLOO_CLOSED
    ),
    "a-rank-that-gave-up-closes-its-connections": Sample(GLOO_TIMED_OUT, GLOO_CLOSED),
    "a-rank-that-waits-keeps-the-others-waiting": Sample(
        "waiting for /data/cache/val.index.lock (index is being built by another process)", IN_USE, apart=True
    ),
    "the-program-says-why-it-aborts": Sample(
        "ERROR: Unknown command: pair_stile lj/cut",
        "subprocess.CalledProcessError: Command '['solver']' returned non-zero exit status 1.",
        late=True,
    ),
    "an-abort-ends-its-step": Sample(
        "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0",
        "slurmstepd: error: *** JOB 33501 ON cn21 CANCELLED AT 2026-03-12T06:00:00 ***",
    ),
    "a-rank-that-died-fails-the-transfers-to-it": Sample(
        "srun: error: n12: task 44: Segmentation fault (core dumped)",
        "MPIDI_OFI_handle_cq_error(1075): OFI poll failed (ofi_events.c:1077:Input/output error - PTLTE_NOT_FOUND)",
        late=True,
    ),
    "a-link-that-is-down-acknowledges-nothing": Sample(
        "[12.4] mlx5_core 0000:5e:00.0 ens3f0np0: Link down",
        "[n11:33:0:33] ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)",
    ),
    "a-server-without-licences-refuses": Sample(
        "FlexNet Licensing error:-15,10032", "License checkout failed.", late=True
    ),
    "the-silent-peer-had-died": Sample(
        "Traceback (most recent call last):\n  File \"/w/d.py\", line 9, in collate\n    return f(b)\nKeyError: 'labels'",
        "n1:4000:4600 [0] NCCL WARN NET/IB : Got completion from peer 10.1.0.2<40001> with status=12 opcode=0 len=0 vendor err 129 (Send)",
    ),
}
RULES = {rule.id: rule for rule in kb.cascades()}


@cache
def known() -> Knowledge:
    return wiring.knowledge()


def answer(d: Diagnosis) -> tuple[object, ...]:
    """What a reader is told: the cause, how sure, and what each line is."""
    roles = tuple((e.file, e.line, e.role) for e in d.evidence)
    return d.failure_type, d.status, roles, tuple((h.failure_type, h.root_cause) for h in d.hypotheses)


def pairs(log: JobLog) -> Iterator[str]:
    facts = gather(log, known().matcher)
    for found in explanations(candidates(facts, ("root", "cascade")), known().cascades):
        yield found.rule.id


def test_every_rule_has_a_sample() -> None:
    assert set(SAMPLES) == set(RULES)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_without_the_rule_the_answer_is_another(name: str) -> None:
    log = SAMPLES[name].log()
    assert name in set(pairs(log))
    less = replace(known(), cascades=tuple(rule for rule in known().cascades if rule.id != name))
    assert answer(judge(log, known())) != answer(judge(log, less))


@pytest.mark.parametrize("name", sorted(n for n in SAMPLES if RULES.get(n) and RULES[n].order != "any"))
def test_what_comes_first_is_no_effect(name: str) -> None:
    assert name not in set(pairs(SAMPLES[name].log(turned=True)))
