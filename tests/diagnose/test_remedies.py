"""What to do: runbooks filled with this job's own names, chosen by what holds for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.helpers import job, lines, log_file
from triage import kb
from triage.diagnose.facts import gather
from triage.diagnose.judge import Knowledge, judge
from triage.diagnose.names import fill_command, fill_text
from triage.diagnose.remedies import MAX_STEPS
from triage.diagnose.situation import Situation, scheduler
from triage.domain import Diagnosis, JobLog, LogFile, Run, RunbookStep, When
from triage.evidence.match import Matcher
from triage.runbooks import runbooks

XID79 = "[1.0] NVRM: Xid (PCI:0000:4a:00): 79, pid=21011, name=python3, GPU has fallen off the bus."
MISSING = "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'"


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(kb.taxonomy(), Matcher(kb.signatures()), kb.cascades(), runbooks())


def with_steps(knowledge: Knowledge, failure_type: str, **sections: Any) -> Knowledge:
    """The knowledge with one runbook exchanged."""
    book = replace(runbooks().of[failure_type], **sections)
    return replace(knowledge, runbooks=replace(runbooks(), of={**runbooks().of, failure_type: book}))


def marked(**when: Any) -> RunbookStep:
    return RunbookStep("the marked step", "why", "read-only", when=When(**{k: (v,) for k, v in when.items()}))


def applies(knowledge: Knowledge, log: JobLog, failure_type: str, **when: Any) -> bool:
    d = judge(log, with_steps(knowledge, failure_type, verify=(marked(**when),)))
    assert d.failure_type == failure_type
    return any(step.step == "the marked step" for step in d.remediation)


def lost_gpu(*nodes: str, **also: str) -> JobLog:
    dmesg = [log_file(XID79, f"{node}.dmesg", "kernel", node=node) for node in nodes]
    return job(*dmesg, *(log_file(text, name.replace("__", ".")) for name, text in also.items()))


def commands(d: Diagnosis) -> list[str]:
    return [step.command for step in d.remediation if step.command]


# ------------------------------------------------------------------------------------------------ filling
def test_a_command_is_filled_with_what_the_log_names() -> None:
    known = {"node": "gpu-042", "gpu": "0000:4a:00.0", "nodes": "gpu[01-02]"}
    assert fill_command("ssh {node} nvidia-smi -i {gpu}", known) == ("ssh gpu-042 nvidia-smi -i 0000:4a:00.0", ())
    assert fill_command("sbatch --exclude={nodes} X", known) == ("sbatch --exclude='gpu[01-02]' X", ())
    assert fill_command("ssh <host> lspci -s <index>", known) == ("ssh gpu-042 lspci -s 0000:4a:00.0", ())
    assert fill_command("awk '{print $2}' {file}", known) == ("awk '{print $2}' <file>", ("file",))


@pytest.mark.parametrize("value", ["n1;reboot", "$(reboot)", "a b", "-rf", "`x`", "a\nb", "a|b", "n1&", ""])
def test_a_value_that_a_shell_would_read_is_not_put_in_a_command(value: str) -> None:
    assert fill_command("ssh {node} uptime", {"node": value}) == ("ssh <node> uptime", ("node",))


def test_a_text_says_in_words_what_the_log_does_not_name() -> None:
    assert fill_text("Read {rank} on {node} (`sacct -j {job}`)", {}) == "Read the rank on the node (`sacct -j <job>`)"
    known = {"rank": "3-5", "node": "n1", "job": "77"}
    assert fill_text("Read {rank} on {node} (`sacct -j {job}`)", known) == "Read rank 3-5 on n1 (`sacct -j 77`)"
    assert fill_text("from {checkpoint}", {"checkpoint": "step 40"}) == "from the checkpoint of step 40"
    assert fill_text("from {checkpoint}", {"checkpoint": "/ckpt/40"}) == "from /ckpt/40"
    assert fill_text("from {checkpoint}", {}) == "from the last complete checkpoint"


def test_what_stays_open_is_prose_and_never_a_command(knowledge: Knowledge) -> None:
    look = RunbookStep("Look at the accounting", "why", "read-only", "sacct -j {job}")
    wipe = RunbookStep("Reset it", "why", "destructive", "reset {gpu}")
    d = judge(job(MISSING), with_steps(knowledge, "file-not-found", confirm=(look,), act=(wipe,)))
    assert not [command for command in commands(d) if "sacct" in command or "reset" in command]
    said = [step.step for step in d.remediation]
    assert "Look at the accounting (`sacct -j <job>`; this log does not name <job>)" in said
    assert "Reset it" in said


def test_no_command_of_any_runbook_is_printed_with_an_open_name(knowledge: Knowledge) -> None:
    for log in (
        job(MISSING),
        lost_gpu("n1"),
        job("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"),
    ):
        for command in commands(judge(log, knowledge)):
            assert "{" not in command and "<" not in command


def test_names_come_from_the_log(knowledge: Knowledge) -> None:
    d = judge(job(log_file(MISSING, "slurm-815.out")), knowledge)
    assert "ls -ld /data/train.bin; df /data/train.bin" in commands(d)
    assert "srun --ntasks-per-node=1 ls -ld /data/train.bin" in commands(d)


# ------------------------------------------------------------------------------------------------ leaving nodes out
def test_nodes_are_left_out_in_slurms_own_syntax(knowledge: Knowledge) -> None:
    log = lost_gpu("gpu01.cluster.example", "gpu02", "gpu03", "gpu07", job__out="srun: job 9 queued")
    found = commands(judge(job(*log.files, log_file("hello", "b.log", node="gpu09")), knowledge))
    assert "sbatch --exclude='gpu[01-03,07]' JOBSCRIPT" in found
    assert "scontrol update NodeName='gpu[01-03,07]' State=DRAIN Reason=triage:gpu-lost" in found


def test_a_node_that_is_not_suspected_may_be_looked_at_but_not_changed(knowledge: Knowledge) -> None:
    d = judge(lost_gpu("n1", "n2"), knowledge)  # the same on every node is no node's own fault
    assert d.suspects.nodes == ()
    assert {step.risk for step in d.remediation if "n1" in step.command} <= {"read-only"}
    look = RunbookStep("Look", "why", "read-only", "ssh {node} nvidia-smi -L")
    wipe = replace(look, step="Reset", risk="destructive")
    d = judge(lost_gpu("n1", "n2"), with_steps(knowledge, "gpu-lost", verify=(look,), act=(wipe,)))
    assert "ssh n1 nvidia-smi -L" in [s.command for s in d.remediation if s.step == "Look"]
    assert [s.command for s in d.remediation if s.step == "Reset"] == [""]


def test_an_address_is_no_name_of_a_node_in_slurm(knowledge: Knowledge) -> None:
    d = judge(lost_gpu("10.4.0.41", job__out="srun: job 9 queued"), knowledge)
    assert d.suspects.nodes == ("10.4.0.41",)
    assert not [command for command in commands(d) if command.startswith(("sbatch", "scontrol"))]


def test_a_node_is_cordoned_in_kubernetes(knowledge: Knowledge) -> None:
    found = commands(judge(lost_gpu("n1", job__out="KUBERNETES_SERVICE_HOST=10.0.0.1"), knowledge))
    assert "kubectl cordon n1" in found and not any("sbatch" in command for command in found)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            "LSB_JOBID=4411",
            ["badmin hclose -C triage:gpu-lost h41n02", "bsub -R \"select[hname!='h41n02']\" < JOBSCRIPT"],
        ),
        ("PBS_JOBID=4411.pbs01", ["pbsnodes -o -C triage:gpu-lost h41n02", "qsub JOBSCRIPT"]),
        ("SGE_ROOT=/opt/sge", ["qmod -d '*@h41n02'", "qsub -l h='!(h41n02)' JOBSCRIPT"]),
        (
            "FLUX_JOB_ID=f12",
            ["flux resource drain h41n02 triage:gpu-lost", "flux batch --requires=-host:h41n02 JOBSCRIPT"],
        ),
    ],
)
def test_a_node_is_left_out_in_the_words_of_the_scheduler_that_runs_the_job(
    knowledge: Knowledge, line: str, wanted: list[str]
) -> None:
    d = judge(lost_gpu("h41n02", job__out=f"{line}\nhello"), knowledge)
    found = commands(d)
    assert [command for command in wanted if command not in found] == []
    assert "sbatch" not in " ".join([*found, *(step.step for step in d.remediation)])


def test_a_job_of_yarn_gets_no_command_of_slurm_or_of_a_fabric_that_it_does_not_use(knowledge: Knowledge) -> None:
    said = (
        "2015-10-18 18:06:26,103 WARN [main] org.apache.hadoop.ipc.Client: Failed to connect: java.net.NoRouteToHostException: "
        "No Route to Host from N-7/127.0.0.1 to msra-sa-41:9000 failed on socket timeout exception: no further information"
    )
    d = judge(job(said), knowledge)
    assert d.failure_type == "network-error"
    assert "getent hosts msra-sa-41; nc -vz msra-sa-41 9000" in commands(d)
    words = " ".join(step.step + step.command for step in d.remediation)
    assert not any(name in words for name in ("sbatch", "sacct", "ibstat", "all_reduce_perf", "rdma"))


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("FileNotFoundError: Unable to find '/datsets/c4/en/*.json.gz'", "ls -ld /datsets/c4/en; df /datsets/c4/en"),
        ("OSError: [Errno 28] No space left on device: '/tmp/pymp-2ntk'", "df -h /tmp; df -i /tmp"),
        (
            "RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed to bind "
            "to [::]:29500 (errno: 98 - Address already in use).",
            "ss -ltnp sport = :29500",
        ),
        ("RuntimeError: TPU is already in use by process with pid 3310.", "ps -o pid,user,lstart,cmd -p 3310"),
    ],
)
def test_what_the_line_names_is_filled_in(knowledge: Knowledge, line: str, command: str) -> None:
    d = judge(job(line), knowledge)
    assert next(step.command for step in d.remediation if step.command) == command
    assert "lfs quota" not in " ".join(commands(d))


def test_a_quota_is_asked_for_where_the_message_says_so(knowledge: Knowledge) -> None:
    d = judge(job("OSError: [Errno 122] Disk quota exceeded: '/lustre/u/a/ckpt.pt'"), knowledge)
    assert any("quota" in command for command in commands(d))


def test_without_a_scheduler_no_command_of_one_is_given(knowledge: Knowledge) -> None:
    d = judge(lost_gpu("n1"), knowledge)
    assert not any(word in command for command in commands(d) for word in ("sbatch", "scontrol", "kubectl"))
    assert any("`sbatch --exclude=n1`" in step.step for step in d.remediation)


# ------------------------------------------------------------------------------------------------ which steps, in which order
@pytest.mark.parametrize(
    ("log", "named"),
    [
        (job(log_file(MISSING, "runs/slurm-815_2.out")), "slurm"),
        (job(log_file(MISSING), log_file("JobID|State", "x", "sacct")), "slurm"),
        (job(f"srun: error: n1: task 3: Exited with exit code 1\n{MISSING}"), "slurm"),
        (job(log_file(MISSING), log_file("Name:  worker-2", "describe.txt", "kubernetes")), "kubernetes"),
        (job(f"KUBERNETES_SERVICE_HOST=10.0.0.1\n{MISSING}"), "kubernetes"),
        (job(MISSING), "none"),
    ],
)
def test_the_scheduler_is_what_files_and_lines_tell(knowledge: Knowledge, log: JobLog, named: str) -> None:
    assert scheduler(gather(log, knowledge.matcher)) == named
    for name in ("slurm", "kubernetes", "none"):
        assert applies(knowledge, log, "file-not-found", scheduler=name) == (name == named)


def test_component_signature_cause_and_action(knowledge: Knowledge) -> None:
    log = lost_gpu("n1")
    for name, right, wrong in (
        ("component", "nvidia-gpu", "amd-gpu"),
        ("signature", "xid.79", "xid.48"),
        ("cause", "hardware-failure", "software-bug"),
        ("action", "restart-excluding", "escalate"),
    ):
        assert applies(knowledge, log, "gpu-lost", **{name: right})
        assert not applies(knowledge, log, "gpu-lost", **{name: wrong})


def test_spread_is_told_only_where_other_nodes_are_known(knowledge: Knowledge) -> None:
    other = {"x": "Running on n2"}
    alone, one, many = lost_gpu("n1"), lost_gpu("n1", **other), lost_gpu("n1", "n3", **other)
    two_files = job(*one.files[:1], log_file("hello", "b.log", node="n2"))
    assert [applies(knowledge, log, "gpu-lost", spread="one-node") for log in (alone, two_files, many)] == [
        False,
        True,
        False,
    ]
    assert [applies(knowledge, log, "gpu-lost", spread="many-nodes") for log in (alone, two_files, many)] == [
        False,
        False,
        True,
    ]


def test_the_same_end_of_an_earlier_run_is_a_recurrence(knowledge: Knowledge) -> None:
    first = job(MISSING)
    earlier = lines(MISSING)[0]
    now = tuple(replace(line, number=9) for line in lines(MISSING))
    for outcome, again in (("failed", True), ("healthy", False)):
        runs = (Run("job.log", 1, 5, outcome), Run("job.log", 6, 9, "failed"))  # type: ignore[arg-type]
        log = job(LogFile("job.log", "job", now, 99, 9, 6, 9, runs=runs, earlier=(earlier,)))
        assert applies(knowledge, log, "file-not-found", recurrence="again") is again
        assert applies(knowledge, log, "file-not-found", recurrence="first") is not again
    assert not applies(knowledge, first, "file-not-found", recurrence="again")


def test_what_a_stack_or_line_shows(knowledge: Knowledge) -> None:
    log = job(log_file(MISSING), log_file("  forward (torch/nn/modules/batchnorm.py) SyncBatchNorm", "stack.txt"))
    assert applies(knowledge, log, "file-not-found", seen="SyncBatchNorm")
    assert not applies(knowledge, log, "file-not-found", seen="GDRDMA")


def test_each_condition_must_hold() -> None:
    here = Situation("slurm", "nccl", "a.b", "unknown", "restart", "", "first")
    assert here.meets(When(scheduler=("none", "slurm"), recurrence=("first",)))
    assert not here.meets(When(scheduler=("slurm",), recurrence=("again",)))
    assert not here.meets(When(spread=("one-node", "many-nodes")))


def test_confirm_act_verify_escalate_and_no_more_than_one_reads_at_three(knowledge: Knowledge) -> None:
    kinds = ("confirm", "act", "verify", "escalate")
    many = {kind: tuple(RunbookStep(f"{kind} {i}", "why", "read-only") for i in range(9)) for kind in kinds}
    for log, failure_type in ((job(MISSING), "file-not-found"), (lost_gpu("n1"), "gpu-lost")):
        d = judge(log, with_steps(knowledge, failure_type, **many))
        ours = [step.step.split()[0] for step in d.remediation if step.step.split()[0] in kinds]
        assert ours == sorted(ours, key=kinds.index)
        assert set(ours) >= {"act", "verify", "escalate"} and ours.count("verify") == ours.count("escalate") == 1
        assert len(d.remediation) <= MAX_STEPS


def test_a_step_that_is_said_of_this_very_case_comes_first(knowledge: Knowledge) -> None:
    plain = RunbookStep("the general one", "why", "read-only")
    d = judge(lost_gpu("n1"), with_steps(knowledge, "gpu-lost", verify=(plain, marked(component="nvidia-gpu"))))
    assert [step.step for step in d.remediation if step.step in ("the general one", "the marked step")] == [
        "the marked step"
    ]


def test_what_the_signature_says_is_not_said_twice(knowledge: Knowledge) -> None:
    remedy = next(s.remedy for s in kb.signatures() if s.id == "py.file-not-found")
    again = RunbookStep(remedy.upper(), "why", "reversible")
    d = judge(job(MISSING), with_steps(knowledge, "file-not-found", act=(again,)))
    assert sum(step.step.lower() == remedy.lower() for step in d.remediation) == 1


def test_a_hang_without_a_cause_is_looked_at_before_it_is_killed(knowledge: Knowledge) -> None:
    stacks = log_file(
        'Thread 0x1 (idle): "MainThread"\n    next (torch/utils/data/dataloader.py:633)', "rank_3.txt", "stacks"
    )
    d = judge(
        job(log_file("iteration 1/ 900 | lm loss: 2.5\niteration 2/ 900 | lm loss: 2.5", "slurm-815.out"), stacks),
        knowledge,
    )
    said = [step.step for step in d.remediation]
    assert (d.failure_type, d.action) == ("hang", "kill-and-restart")
    assert commands(d)[0].startswith("srun --jobid=815 --overlap --gres=gpu:0")
    killed = next(i for i, step in enumerate(d.remediation) if step.command == "scancel 815")
    assert d.remediation[killed].risk == "destructive" and all(
        step.risk == "read-only" for step in d.remediation[:killed]
    )
    assert any("fewer data-loading workers" in step for step in said)
    assert len(said) <= MAX_STEPS
