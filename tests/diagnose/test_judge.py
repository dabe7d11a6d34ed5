"""The judge on small jobs: first cause and not the loudest, statuses, outcomes, suspects, unknown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.helpers import job, log_file
from triage import kb
from triage.diagnose.judge import Knowledge, judge
from triage.domain import Diagnosis, JobLog, LogFile, LogLine
from triage.evidence.match import Matcher
from triage.runbooks import runbooks

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


def steps(first: int, last: int) -> str:
    return "\n".join(
        f"iteration {i}/ 1000 | lm loss: 2.{i} | elapsed time per iteration (ms): 500.1" for i in range(first, last)
    )


OOM = """[rank3]: Traceback (most recent call last):
[rank3]:   File "/w/train.py", line 9, in step
[rank3]:     y = layer(x)
[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.11 GiB"""
WATCHDOG = "\n".join(
    f"[rank{r}]:[E1118 10:00:07.{r} ProcessGroupNCCL.cpp:616] [Rank {r}] Watchdog caught collective operation timeout: "
    f"WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600{r:03d} milliseconds before timing out."
    for r in (0, 1, 2)
)


def cited(d: Diagnosis, role: str) -> list[int]:
    return [e.line for e in d.evidence if e.role == role]


def test_the_rank_that_died_first_is_the_cause_and_the_watchdogs_are_consequence(knowledge: Knowledge) -> None:
    d = judge(job(steps(1, 20) + "\n" + OOM + "\n" + WATCHDOG), knowledge)
    assert (d.outcome, d.failure_type, d.action) == ("failed", "out-of-memory", "fix-and-resubmit")
    assert cited(d, "root") == [23]
    assert 24 in cited(d, "cascade")
    assert d.chain[0] == "E1"
    assert d.status == "established"


def test_watchdogs_alone_are_a_hypothesis_and_the_silent_rank_is_the_suspect(knowledge: Knowledge) -> None:
    lines = [LogLine("job.log", r + 1, f"rank {r} ready", rank=r) for r in range(4)]
    lines += [LogLine("job.log", 5 + i, t, rank=i, hot=True) for i, t in enumerate(WATCHDOG.split("\n"))]
    d = judge(JobLog((LogFile("job.log", "job", tuple(lines), 1, 7),)), knowledge)
    assert (d.failure_type, d.status, d.suspects.ranks) == ("nccl-timeout", "hypothesis", (3,))
    assert any("did not report" in note for note in d.missing)


def test_an_error_that_work_went_on_after_is_no_failure(knowledge: Knowledge) -> None:
    text = steps(1, 10) + "\n" + OOM + "\n" + steps(10, 400)
    d = judge(job(text), knowledge)
    assert (d.outcome, d.failure_type) == ("healthy", "healthy")


def test_an_error_before_a_cancel_is_the_cause_one_after_it_is_not(knowledge: Knowledge) -> None:
    cancel = "slurmstepd: error: *** JOB 77 ON n1 CANCELLED AT 2026-01-01T12:00:00 ***"
    error = "Traceback (most recent call last):\n  File \"t.py\", line 1, in f\n    x\nKeyError: 'text'"
    before = judge(job(f"{steps(1, 20)}\n{error}\nwaiting\nwaiting\nwaiting\nwaiting\n{cancel}"), knowledge)
    after = judge(job(f"{steps(1, 20)}\n{cancel}\n{error.replace('KeyError: ', 'RuntimeError: ')}"), knowledge)
    assert (before.failure_type, before.outcome) == ("key-error", "failed")
    assert (after.failure_type, after.outcome) == ("cancelled", "interrupted")


def test_the_time_limit_after_a_long_silence_is_a_hang(knowledge: Knowledge) -> None:
    def line(number: int, minutes: float, text: str) -> LogLine:
        return LogLine("job.log", number, text, time=T0 + timedelta(minutes=minutes), hot=True)

    work = [
        line(i, i, f"iteration {i}/ 900 | lm loss: 2.5 | elapsed time per iteration (ms): 60000") for i in range(1, 9)
    ]
    limit = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-02T12:00:00 DUE TO TIME LIMIT ***"

    def outcome(after: float) -> str:
        return judge(JobLog((LogFile("job.log", "job", (*work, line(9, after, limit)), 1, 9),)), knowledge).outcome

    assert outcome(9) == "interrupted"
    assert outcome(600) == "hung"


def test_the_same_error_on_all_ranks_suspects_no_rank(knowledge: Knowledge) -> None:
    lines = [LogLine("job.log", r + 1, f"[rank{r}]: KeyError: 'text'", rank=r, hot=True) for r in range(8)]
    d = judge(JobLog((LogFile("job.log", "job", tuple(lines), 1, 8),)), knowledge)
    assert (d.failure_type, d.suspects.ranks, d.action) == ("key-error", (), "fix-and-resubmit")


def test_a_kernel_line_on_one_node_explains_the_cuda_error_of_the_job_log(knowledge: Knowledge) -> None:
    dmesg = log_file(
        "[1.0] NVRM: Xid (PCI:0000:4a:00): 79, pid=21011, name=python3, GPU has fallen off the bus.",
        "gpu-042.dmesg",
        "kernel",
        node="gpu-042",
    )
    d = judge(
        job(
            log_file(f"{steps(1, 9)}\n[rank11]: RuntimeError: CUDA error: unspecified launch failure\n{WATCHDOG}"),
            dmesg,
        ),
        knowledge,
    )
    assert (d.failure_type, d.suspects.nodes, d.action) == ("gpu-lost", ("gpu-042",), "restart-excluding")
    assert d.evidence[0].file == "gpu-042.dmesg"
    assert any("gpu-042" in (r.command or "") for r in d.remediation)


@pytest.mark.parametrize("text", ["hello\nworld", steps(1, 30)])
def test_a_log_without_failure_is_healthy(knowledge: Knowledge, text: str) -> None:
    d = judge(job(text), knowledge)
    assert (d.outcome, d.failure_type, d.action) == ("healthy", "healthy", "none")


def test_an_unknown_error_at_the_end_is_unknown_and_says_what_to_fetch(knowledge: Knowledge) -> None:
    d = judge(job(f"{steps(1, 9)}\nflux capacitor failed to reach 88 mph, aborting"), knowledge)
    assert (d.outcome, d.failure_type, d.status) == ("failed", "unknown", "unknown")
    assert d.evidence[0].line == 9
    assert any("fetch" in note for note in d.missing)


def test_nothing_to_read_is_unknown(knowledge: Knowledge) -> None:
    d = judge(JobLog((LogFile("a.log", "empty", (), 0, 0, problems=("the file is empty",)),)), knowledge)
    assert (d.outcome, d.status) == ("unknown", "unknown")
    assert "a.log: the file is empty" in d.missing


def test_the_job_id_of_a_line_or_a_file_name_stands_in_what_to_fetch(knowledge: Knowledge) -> None:
    text = "slurmstepd: error: *** JOB 4711 ON n1 CANCELLED AT 2026-01-01T12:00:00 ***"
    d = judge(
        job(f"{WATCHDOG}\nsrun: error: n1: task 3: Exited with exit code 1", log_file(text, "slurmd.log", "slurm")),
        knowledge,
    )
    named = judge(job(log_file(WATCHDOG, "logs/slurm-815_2.out")), knowledge)
    assert (d.job, named.job) == ("4711", "815_2")
    nothing = judge(job("SLURM_NNODES=2\nthe frobnicator failed"), knowledge)
    assert nothing.job == ""
    assert any("`sacct -j <job> " in note for note in nothing.missing)


def test_the_host_that_only_reports_a_dead_node_is_no_suspect(knowledge: Knowledge) -> None:
    text = """srun: error: Node failure on n37
slurmstepd: error: *** STEP 19.0 ON n17 CANCELLED AT 2023-03-06T03:17:51 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"""
    lines = tuple(replace(line, node="n17" if "STEP" in line.text else None) for line in log_file(text).lines)
    d = judge(JobLog((LogFile("job.log", "job", lines, 1, 2),)), knowledge)
    assert (d.failure_type, d.suspects.nodes) == ("node-failure", ("n37",))
    assert not any("n17" in step.command for step in d.remediation)


def test_lines_that_go_on_for_hours_after_the_last_step_are_a_hang_not_health(knowledge: Knowledge) -> None:
    work = [LogLine("j", i, f"iteration {i}/ 900 | lm loss: 2.5", time=T0 + timedelta(minutes=i)) for i in range(1, 9)]
    beats = [LogLine("j", 9 + i, "heartbeat ok", time=T0 + timedelta(hours=i)) for i in range(1, 9)]
    d = judge(JobLog((LogFile("j", "job", (*work, *beats), 1, 17),)), knowledge)
    assert (d.outcome, d.failure_type, d.status, d.action) == ("hung", "hang", "unknown", "kill-and-restart")
    assert "7 h 52 min" in d.root_cause


def test_a_task_that_failed_before_the_cancel_makes_the_cancel_a_consequence(knowledge: Knowledge) -> None:
    text = (
        steps(1, 20)
        + """
srun: error: r319: task 37: Exited with exit code 1
srun: launch/slurm: _step_signal: Terminating StepId=118204.0
slurmstepd: error: *** STEP 118204.0 ON r310 CANCELLED AT 2022-12-08T22:09:35 ***"""
    )
    d = judge(job(text), knowledge)
    assert (d.outcome, d.failure_type, d.status) == ("failed", "unknown", "unknown")
    assert d.evidence[0].line == 20
    assert any(step.step.startswith("Fetch") for step in d.remediation)


def test_commands_can_be_typed_as_they_are(knowledge: Knowledge) -> None:
    from triage.diagnose.checks import is_command

    assert is_command("lspci -d 10de:; dmesg -T | grep -E 'AER|Xid'")
    assert not is_command("the source line above the exception")
    assert not is_command("pip show of the package")
    assert not is_command("ls -l of that path from the job's working directory")
    assert not is_command("which rank runs at that address, and its last lines")
    assert not is_command("python -c 'import MODULE'")
    assert not is_command("py-spy dump --pid <pid>")
    assert is_command("which python")


def test_stacks_beside_a_log_without_end_mean_a_hang(knowledge: Knowledge) -> None:
    stacks = log_file(
        'Thread 0x1 (idle): "MainThread"\n    synchronize (torch/cuda/__init__.py:783)', "rank_3.txt", "stacks"
    )
    d = judge(job(steps(1, 20), stacks), knowledge)
    assert (d.outcome, d.failure_type, d.action) == ("hung", "hang", "kill-and-restart")
    ended = judge(job(steps(1, 20) + "\nexit code: 0", stacks), knowledge)
    assert ended.outcome == "healthy"


TRACEBACK = 'Traceback (most recent call last):\n  File "t.py", line 3, in f\n    g()\n'


@pytest.mark.parametrize("echo", ["wandb: Run summary:", "exit code: 0", "Training completed", "+ exit 0"])
def test_an_echo_of_a_good_end_does_not_undo_a_crash(knowledge: Knowledge, echo: str) -> None:
    d = judge(job(f"{steps(1, 50)}\n{TRACEBACK}KeyError: 3\n{echo}"), knowledge)
    assert (d.outcome, d.failure_type) == ("failed", "key-error")


def test_a_traceback_that_python_ignores_is_no_failure(knowledge: Knowledge) -> None:
    text = f"{steps(1, 50)}\nTraining completed\nException ignored in: <function X.__del__ at 0x7f>\n{TRACEBACK}AttributeError: x"
    assert judge(job(text), knowledge).outcome == "healthy"


def test_another_jobs_line_in_a_scheduler_file_is_no_cause(knowledge: Knowledge) -> None:
    mine = log_file(f"SLURM_JOB_ID=1001\n{steps(1, 50)}\nTraining completed", "job.out")
    others = log_file("[2024-05-01T03:00:59.000] Time limit exhausted for JobId=999", "slurmctld.log", "slurm")
    assert judge(job(mine, others), knowledge).outcome == "healthy"


def test_what_could_not_be_read_keeps_a_log_from_being_called_healthy(knowledge: Knowledge) -> None:
    cut = log_file(steps(1, 50), "c.gz", problems=("the gzip stream ends early after line 49",))
    d = judge(job(cut), knowledge)
    assert (d.outcome, d.status) == ("unknown", "unknown")


@pytest.mark.parametrize(
    "last", ["thread main panicked at src/main.rs:3", "Process finished with exit code 139", "段错误 (核心已转储)"]
)
def test_a_log_that_ends_on_trouble_in_any_words_is_not_healthy(knowledge: Knowledge, last: str) -> None:
    assert judge(job(f"{steps(1, 50)}\n{last}"), knowledge).outcome != "healthy"


def test_storage_that_keeps_processes_from_ending_explains_the_step_that_does_not_end(knowledge: Knowledge) -> None:
    ends = [f"slurmstepd: error: *** STEP 55.0 STEPD TERMINATED ON n{n} AT 2024-12-03T01:13:17 DUE TO JOB NOT ENDING WITH SIGNALS ***" for n in (1, 3)]  # fmt: skip
    text = "\n".join([*steps(1, 9).splitlines(), *ends])
    stuck = "INFO: task python:26585 blocked for more than 120 seconds.\n cl_sync_io_wait+0x1c5/0x400 [obdclass]"
    kernels = [log_file(stuck, f"n{n}.log", "kernel", node=f"n{n}") for n in (1, 3)]
    d = judge(job(text, *kernels), knowledge)
    assert (d.failure_type, d.suspects.nodes, d.action == "restart-excluding") == ("storage-error", (), False)
    assert judge(job(text), knowledge).failure_type == "node-failure"


def test_a_column_of_errors_is_none(knowledge: Knowledge) -> None:
    columns = "\n".join(f" step {n} of 90 t 0.5 s max|u| 5.5E+00 energy error {n}.19E+00" for n in range(1, 9))
    d = judge(job(columns, log_file("STOP 0", "job.err")), knowledge)
    assert d.outcome == "healthy"


def test_a_container_of_a_failed_pod_tells_only_its_code(knowledge: Knowledge) -> None:
    describe = "Name:    sft-0\nStatus:           {}\n    State:          Terminated\n      Reason:       Error\n      Exit Code:    137"
    failed = judge(job(steps(1, 30), log_file(describe.format("Failed"), "describe.txt", "kubernetes")), knowledge)
    assert (failed.outcome, failed.failure_type, failed.status) == ("failed", "unknown", "unknown")
    runs = judge(job(steps(1, 30), log_file(describe.format("Running"), "describe.txt", "kubernetes")), knowledge)
    assert runs.outcome == "healthy"


def test_a_launcher_that_reports_a_failed_collective_is_no_cause(knowledge: Knowledge) -> None:
    text = "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:784, unhandled system error, NCCL version 2.7.8\nsubprocess.CalledProcessError: Command '['python', 'main.py']' returned non-zero exit status 1."
    assert judge(job(text), knowledge).failure_type == "nccl-remote-error"


def test_processes_on_the_gpus_beside_a_log_that_says_nothing_are_no_health(knowledge: Knowledge) -> None:
    seen = log_file("|    0   N/A  N/A      5100      C   python                  70990MiB |", "smi-n1.txt")
    quiet = "\n".join(f"08:06:5{n} w{n} ok" for n in range(9))
    assert judge(job(quiet, seen), knowledge).outcome == "unknown"
    assert judge(job(quiet), knowledge).outcome == "healthy"
    assert judge(job(steps(1, 9), seen), knowledge).outcome == "healthy"


NINES = "9" * 5000
LONG = (
    f"process rank {NINES} with PID {NINES} on node n1 exited on signal {NINES}",
    f"failed (exitcode: -{NINES}) local_rank: {NINES} (pid: {NINES}) of binary",
    f"  rank      : {NINES} (local_rank: {NINES})",
    "  rank      : \u00b20 (local_rank: 0)",
    WATCHDOG.splitlines()[0].replace("SeqNum=9", f"SeqNum={NINES}").replace("=600000", f"={NINES}"),
    f"last enqueued NCCL work: {NINES}, last completed NCCL work: -1",
    f"[rank 3] NaN in gradients on rank {NINES} at iteration {NINES}",
)


@pytest.mark.parametrize("line", LONG, ids=lambda line: line[:20])
def test_a_number_that_is_none_of_ours_ends_no_diagnosis(line: str, knowledge: Knowledge) -> None:
    assert judge(job(f"{steps(1, 4)}\n{line}\n{OOM}"), knowledge).failure_type == "out-of-memory"
