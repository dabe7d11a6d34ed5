"""What was caught, retried or outlived is no failure; what ended the run is one, whatever was printed after it."""

from __future__ import annotations

import pytest

from tests.helpers import job, log_file
from triage import kb
from triage.diagnose.judge import Knowledge, judge
from triage.domain import Diagnosis
from triage.evidence.match import Matcher
from triage.runbooks import runbooks


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


def steps(first: int, last: int, loss: str = "2.") -> str:
    return "\n".join(f"iteration {i}/ 1000 | lm loss: {loss}{i} | elapsed time per iteration (ms): 500.1" for i in range(first, last))  # fmt: skip


NO_SPACE = """Traceback (most recent call last):
  File "/w/train.py", line 9, in save
    torch.save(state, name)
OSError: [Errno 28] No space left on device: '/ckpt/8.pt'"""
DONE = "[after training is done] datetime: 2026-11-29 21:11:07"


def told(d: Diagnosis) -> tuple[str, str]:
    return d.outcome, d.failure_type


def test_a_write_that_is_tried_again_and_succeeds_is_no_failure(knowledge: Knowledge) -> None:
    saved = "successfully saved checkpoint from iteration 800 to /ckpt"
    retried = (
        f"{steps(1, 9)}\n{NO_SPACE}\nWARNING: 8.pt could not be written, removing 4.pt and writing it again\n{saved}"
    )
    assert told(judge(job(f"{retried}\n{DONE}"), knowledge)) == ("healthy", "healthy")
    assert told(judge(job(retried), knowledge)) == ("healthy", "healthy")


def test_an_echo_after_a_crash_undoes_nothing(knowledge: Knowledge) -> None:
    crashed = f"{steps(1, 9)}\n{NO_SPACE}\nTraining finished"
    assert told(judge(job(crashed), knowledge)) == ("failed", "disk-full")


def test_a_retry_that_nothing_follows_is_the_failure(knowledge: Knowledge) -> None:
    last = f"{steps(1, 9)}\nERROR save failed, trying again (attempt 3/3)\n{NO_SPACE}"
    assert told(judge(job(last), knowledge)) == ("failed", "disk-full")


def test_a_count_of_skipped_iterations_says_nothing_of_a_crash_beside_it(knowledge: Knowledge) -> None:
    step = "iteration 9/ 1000 | lm loss: 2.1 | elapsed time per iteration (ms): 5.1 | number of skipped iterations: 0"
    d = judge(job(f"{step}\n{NO_SPACE}\n{step}\n{step}"), knowledge)
    assert told(d) == ("failed", "disk-full")


def test_a_run_that_ends_in_good_order_on_nan_has_failed(knowledge: Knowledge) -> None:
    nan = "\n".join(
        f"iteration {i}/ 1000 | lm loss: NAN | elapsed time per iteration (ms): 5.1 | number of nan iterations: 1" for i in range(9, 60)
    )  # fmt: skip
    d = judge(job(f"{steps(1, 9)}\n{nan}\n{DONE}"), knowledge)
    assert told(d) == ("failed", "loss-spike")
    assert d.evidence[0].line == 9


def test_a_nan_that_training_came_back_from_is_no_failure(knowledge: Knowledge) -> None:
    nan = "iteration 9/ 1000 | lm loss: NAN | elapsed time per iteration (ms): 5.1 | number of nan iterations: 1"
    d = judge(job(f"{steps(1, 9)}\n{nan}\n{steps(10, 80)}\n{DONE}"), knowledge)
    assert told(d) == ("healthy", "healthy")


def test_the_last_attempt_of_a_requeued_job_counts(knowledge: Knowledge) -> None:
    head = "JobID JobName Partition State ExitCode Elapsed"
    rows = [
        "61007 gpt low PREEMPTED 0:0 00:00:10",
        "61007.batch batch CANCELLED 0:15 00:00:11",
        "61007 gpt low COMPLETED 0:0 00:00:30",
    ]
    sacct = log_file("\n".join([head, *rows, "61007.batch batch COMPLETED 0:0 00:00:30"]), "sacct.txt", "sacct")
    assert judge(job(f"{steps(1, 9)}\n{DONE}", sacct), knowledge).outcome == "healthy"
    alone = log_file("\n".join([head, *rows[:2]]), "sacct.txt", "sacct")
    assert judge(job(steps(1, 9), alone), knowledge).failure_type == "preempted"


def test_what_a_model_wrote_is_no_line_of_the_log(knowledge: Knowledge) -> None:
    killed = "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2021-03-02T11:20:01 DUE TO TIME LIMIT ***"
    fenced = f"{steps(1, 5)}\n----- sample at step 5 -----\n{killed}\n----- end of sample -----\n{steps(5, 9)}"
    assert judge(job(fenced), knowledge).outcome == "healthy"
    assert judge(job(f"{steps(1, 5)}\n{killed}\n{steps(5, 9)}"), knowledge).failure_type == "time-limit"


def test_what_a_pod_that_succeeded_went_through_before_is_no_failure(knowledge: Knowledge) -> None:
    pod = "Name: a\nStatus: {}\nLast State: Terminated\n  Reason: OOMKilled\n  Exit Code: 137"
    said = {
        phase: judge(job(log_file(pod.format(phase), "describe.txt", "kubernetes")), knowledge).failure_type
        for phase in ("Succeeded", "Failed")
    }
    assert said == {"Succeeded": "healthy", "Failed": "host-out-of-memory"}


def test_a_count_of_no_nan_iterations_is_no_nan(knowledge: Knowledge) -> None:
    said = (
        "WARNING: Unexpected result 3.9 on rank 17 at iteration #9 (message='grad norm above 100 times its average')!"
    )
    later = "\n".join(
        f"iteration {i}/ 1000 | lm loss: 2.{i} | elapsed time per iteration (ms): 5.1 | number of nan iterations: 0 |"
        for i in range(10, 60)
    )
    assert judge(job(f"{steps(1, 9)}\n{said}\n{later}"), knowledge).outcome == "healthy"


IB = "0: n1:4000:4600 [0] NCCL WARN NET/IB : Got completion from peer 10.1.0.2<40001> with status=12 opcode=0 len=0 vendor err 129 (Send)"
UCX = "[c203-015:1001:0:1001] ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)"
ENDS = [
    ("11: [rank11]: KeyError: 'labels'", "key-error"),
    ("11: [rank11]: ValueError: the batch is empty", "value-error"),
    ("11: [rank11]: AssertionError: shapes differ", "assertion-error"),
    ("[c203-014:901  :0:901] Caught signal 11 (Segmentation fault: address not mapped to object)", "native-crash"),
    ("Program received signal SIGFPE: Floating-point exception - erroneous arithmetic operation.", "native-crash"),
]


@pytest.mark.parametrize(("end", "kind"), ENDS)
@pytest.mark.parametrize("silence", [IB, UCX])
def test_a_peer_that_had_died_is_the_cause_and_not_the_card_that_gets_no_answer(
    knowledge: Knowledge, end: str, kind: str, silence: str
) -> None:
    d = judge(job(f"{steps(1, 9)}\n{end}\n{silence}"), knowledge)
    assert (told(d), d.suspects.nodes) == (("failed", kind), ())
    assert next(e.role for e in d.evidence if e.text == silence) == "cascade"
    fabric_first = judge(job(f"{steps(1, 9)}\n{silence}\n{'padding' * 3}\n{end}"), knowledge)
    assert fabric_first.failure_type == "network-error"


def test_what_the_job_worked_on_after_is_not_what_ended_it(knowledge: Knowledge) -> None:
    save = "0: ERROR:ckpt:could not save checkpoint 519: [Errno 28] No space left on device: '/scratch/519.tmp'"
    ecc = "9: [rank9]: RuntimeError: CUDA error: uncorrectable ECC error encountered"
    assert told(judge(job(f"{steps(1, 9)}\n{save}\n{steps(9, 29)}\n{ecc}"), knowledge)) == ("failed", "ecc-error")
    assert told(judge(job(f"{steps(1, 9)}\n{save}\n{ecc}"), knowledge))[0] == "failed"
    assert told(judge(job(f"{steps(1, 9)}\n{save}\n{steps(9, 29)}"), knowledge)) == ("failed", "disk-full")


def test_a_job_that_was_preempted_and_then_could_not_start_is_not_merely_preempted(knowledge: Knowledge) -> None:
    taken = "slurmstepd: error: *** JOB 555 ON n1 CANCELLED AT 2026-03-04T02:03:00 DUE TO PREEMPTION ***"
    missing = "Traceback (most recent call last):\n  File \"/w/t.py\", line 1, in <module>\n    import flash_attn\nImportError: cannot import name 'x' from 'flash_attn'"
    assert told(judge(job(f"{steps(1, 9)}\n{taken}\n{missing}"), knowledge)) == ("failed", "import-error")
    closing = "ImportError: sys.meta_path is None, Python is likely shutting down"
    assert told(judge(job(f"{steps(1, 9)}\n{taken}\n{closing}"), knowledge)) == ("interrupted", "preempted")


TAKEN = "I 05-04 00:52:46 controller.py:100] The cluster is preempted."


def test_a_preempted_job_that_ran_on_elsewhere_was_not_ended_by_it(knowledge: Knowledge) -> None:
    again = f"{steps(1, 9)}\n{TAKEN}\nResuming from checkpoint /ckpt/8\n{steps(8, 20)}"
    assert told(judge(job(f"{again}\n{DONE}"), knowledge)) == ("healthy", "healthy")
    assert told(judge(job(f"{again}\n{NO_SPACE}"), knowledge)) == ("failed", "disk-full")


@pytest.mark.parametrize("after", [steps(9, 20), "Resuming from checkpoint /ckpt/8", ""])
def test_a_notice_that_work_only_goes_on_after_for_a_while_ends_the_job(knowledge: Knowledge, after: str) -> None:
    assert told(judge(job(f"{steps(1, 9)}\n{TAKEN}\n{after}"), knowledge)) == ("interrupted", "preempted")
