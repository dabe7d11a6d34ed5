"""A program that stops itself: its own words are the cause, and what launchers and transports print after it is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.diagnose.test_outlived import steps, told
from tests.helpers import job, log_file
from triage import kb
from triage.diagnose.judge import Knowledge, judge
from triage.domain import LogFile
from triage.evidence.match import Matcher
from triage.runbooks import runbooks

ABORT = "MPI_ABORT was invoked on rank 17 in communicator MPI_COMM_WORLD\nwith errorcode 1."
STEP = "slurmstepd: error: *** STEP 33501.0 ON cn21 CANCELLED AT 2026-03-12T06:00:00 ***"
WORDS = "ERROR rank 37: negative density in cell (12,88,3) rho=-1.2E-03 -- aborting"


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("[17] --> FOAM FATAL ERROR: (openfoam-2306)\n[17] Maximum number of iterations exceeded: 100", "iterations"),
        ("-----\nFatal error:\nToo many LINCS warnings (1002)", "LINCS"),
        ("ERROR: Lost atoms: original 32000 current 31999 (../thermo.cpp:494)\nLast command: run 100", "Lost atoms"),
        (" * [ABORT]        *\n *  \\___/     CHOLESKY DECOMPOSE FAILED       *", "CHOLESKY"),
        ("-------------- FATAL CALLED ---------------\nFATAL CALLED FROM FILE:  <stdin>  LINE:     88\n no met_em file", "met_em"),
        ("     Error in routine cdiaghg (12):\n     problems computing cholesky", "cholesky"),
        (" *** ERROR ***\n the time step became too small", "too small"),
        (WORDS, "negative density"),
    ],
)  # fmt: skip
def test_a_step_that_slurm_ends_after_an_abort_was_not_cancelled_by_anyone(
    knowledge: Knowledge, words: str, reason: str
) -> None:
    d = judge(job(f"solver starts\n{words}\n{ABORT}\n{STEP}"), knowledge)
    assert (d.outcome, d.failure_type) == ("failed", "runtime-error")
    assert d.evidence[0].role == "root"
    assert reason in d.root_cause
    assert all("scancel" not in e.title for e in d.evidence)
    assert [h.failure_type for h in d.hypotheses] == ["runtime-error"]


def test_the_rank_is_the_one_that_the_words_name(knowledge: Knowledge) -> None:
    assert judge(job(f"solver starts\n{WORDS}\n{ABORT}"), knowledge).suspects.ranks == (37,)
    unnamed = WORDS.replace(" rank 37", "")
    assert judge(job(f"solver starts\n{unnamed}\n{ABORT}"), knowledge).suspects.ranks == (17,)


def test_an_abort_without_words_is_a_failure_all_the_same(knowledge: Knowledge) -> None:
    assert judge(job(f"solver starts\n{ABORT}\n{STEP}"), knowledge).outcome == "failed"


@pytest.mark.parametrize(
    ("ended", "failed"),
    [
        ("srun: error: gpu002: task 3: Aborted (core dumped)", True),
        ("srun: error: gpu002: task 3: Exited with exit code 1", True),
        ("srun: error: gpu002: task 3: Segmentation fault", True),
        ("srun: error: gpu002: task 3: Terminated", False),
        ("srun: error: gpu002: task 3: Killed", False),
    ],
)
def test_a_step_that_slurm_ends_after_a_task_of_it_failed_was_not_cancelled_by_anyone(
    knowledge: Knowledge, ended: str, failed: bool
) -> None:
    late = (
        "[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=55, OpType=ALLREDUCE,"
        " NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds before timing out."
    )
    step = "slurmstepd: error: *** STEP 4712.0 ON gpu001 CANCELLED AT 2026-11-30T09:00:00 ***"
    d = judge(job(f"{late}\n{ended}\n{step}"), knowledge)
    assert (d.failure_type == "cancelled") is not failed


def test_a_program_that_was_told_to_end_was_cancelled(knowledge: Knowledge) -> None:
    d = judge(job(f"{steps(1, 9)}\n{STEP}\nERROR: caught signal SIGTERM, aborting"), knowledge)
    assert told(d) == ("interrupted", "cancelled")


@pytest.mark.parametrize(
    "noise",
    [
        "[cn22:10233] PMIX ERROR: UNREACHABLE in file server/pmix_server.c at line 2193",
        "[c07:1182 :0] ib_mlx5_log.c:179  UCX  ERROR Transport retry count exceeded on mlx5_2:1/RoCE (synd 0x15 vend 0x81 hw_synd 0/65)",
        "n1:7:9 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB: Got completion from peer 10.0.0.1<53> with status=12 opcode=0 len=0 vendor err 129 (Recv)",
    ],
)
def test_what_libraries_say_while_the_job_comes_down_is_no_cause(knowledge: Knowledge, noise: str) -> None:
    d = judge(job(f"solver starts\n{WORDS}\n{ABORT}\n{noise}\n{STEP}"), knowledge)
    assert (d.failure_type, d.suspects.nodes, d.status) == ("runtime-error", (), "supported")
    assert next(e.role for e in d.evidence if e.text == noise) == "cascade"


def test_a_launcher_cannot_fail_to_start_what_worked(knowledge: Knowledge) -> None:
    pmix = "[cn22:10233] PMIX ERROR: UNREACHABLE in file server/pmix_server.c at line 2193"
    assert judge(job(f"starting\n{pmix}"), knowledge).status == "established"
    assert judge(job(f"{steps(1, 9)}\n{pmix}"), knowledge).status == "hypothesis"


def test_a_transport_that_failed_before_the_abort_is_the_cause(knowledge: Knowledge) -> None:
    retry = "[c07:1182 :0] ib_mlx5_log.c:179  UCX  ERROR Transport retry count exceeded on mlx5_2:1/IB (synd 0x15 vend 0x81 hw_synd 0/65)"
    assert judge(job(f"{steps(1, 9)}\n{retry}\n{ABORT}\n{STEP}"), knowledge).failure_type == "network-error"


def test_words_before_a_launchers_report_of_an_exit_are_the_cause(knowledge: Knowledge) -> None:
    d = judge(job(f"solver starts\n{WORDS}\nsrun: error: cn21: task 37: Exited with exit code 3"), knowledge)
    assert (d.failure_type, d.evidence[0].line) == ("runtime-error", 2)


def test_an_abort_of_another_files_rank_comes_before_the_steps_end_by_the_clock(knowledge: Knowledge) -> None:
    at = datetime(2026, 3, 12, 6, tzinfo=UTC)

    def stamped(file_text: str, name: str, seconds: int) -> LogFile:
        file = log_file(file_text, name)
        return replace(file, lines=tuple(replace(x, time=at + timedelta(seconds=seconds)) for x in file.lines))

    d = judge(job(stamped(f"{WORDS}\n{ABORT}", "rank37.log", 0), stamped(STEP, "job.out", 5)), knowledge)
    assert (d.outcome, d.failure_type) == ("failed", "runtime-error")
