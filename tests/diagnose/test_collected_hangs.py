"""Hangs of jobs whose processes have no rank, by the folder that `triage hang collect` writes: who it is, by pid and command."""

from __future__ import annotations

import json

import pytest

from tests.helpers import job, log_file
from triage.cli import wiring
from triage.diagnose.judge import Knowledge, judge
from triage.domain import Diagnosis, LogFile

HEAD = "    PID    PPID USER STAT WCHAN                          ELAPSED COMMAND"
LAUNCHER = ["    wait4 (libc.so.6)", "    Popen.wait (multiprocessing/popen_fork.py:43)", "    BaseProcess.join (multiprocessing/process.py:149)", "    <module> (ring.py:44)"]  # fmt: skip
RECEIVES = ["    sock_recv (socketmodule.c:3567)", "    rank (ring.py:33)", "    BaseProcess._bootstrap (multiprocessing/process.py:314)", "    <module> (ring.py:43)"]  # fmt: skip


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return wiring.knowledge()


def collected(
    *rows: str,
    stacks: dict[int, list[str]] | None = None,
    absent: str = "",
    ended: int | None = None,
    ranks: dict[int, int] | None = None,
) -> list[LogFile]:
    """rows: pid, parent, state, kernel's function and command; of the second look the same but what a `>` in them changes."""
    cells = [row.split(None, 4) for row in rows]
    members = [
        {"node": "n1", "pid": int(pid), "ppid": int(parent), "state": state, "comm": _comm(command), "rank": (ranks or {}).get(int(pid)), "ended": ended if state == "Z" else None}
        for pid, parent, state, _, command in cells
    ]  # fmt: skip
    commands = [{"node": "n1", "pid": None, "tool": absent, "problem": f"there is no {absent} here"}] if absent else []
    told = {
        "schema": "triage.collected/1",
        "nodes": [{"node": "n1", "problem": ""}],
        "processes": members,
        "commands": commands,
    }
    files = [log_file(json.dumps(told, indent=1), "c/manifest.json", "processes")]
    ps = [f"{pid:>7} {parent:>7} root {_first(state):<4} {_first(wchan):<30} 02:10:11 {command}" for pid, parent, state, wchan, command in cells]  # fmt: skip
    files.append(log_file("\n".join([HEAD, *ps]), "c/n1/ps.txt", "processes", node="n1"))
    for pid, parent, state, wchan, _ in cells:
        text = f"== /proc/{pid}/status\nState:\t{state[-1]} (x)\nPid:\t{pid}\nPPid:\t{parent}\n== /proc/{pid}/wchan\n{wchan.rpartition('>')[2]}"
        files.append(log_file(text, f"c/n1/wchan-{pid}.2.txt", "processes", node="n1"))
    for look in ("", ".2"):
        files += [_stack(pid, frames, look) for pid, frames in (stacks or {}).items()]
    return files


def _comm(command: str) -> str:
    return command.strip("[]").split(" ")[0].rpartition("/")[2].removesuffix("]")


def _first(cell: str) -> str:
    return cell.partition(">")[0]


def _stack(pid: int, frames: list[str], look: str) -> LogFile:
    text = "\n".join([f"Process {pid}: python ring.py", "", f'Thread {pid} (idle): "MainThread"', *frames])
    return log_file(text, f"c/n1/pyspy-{pid}{look}.txt", "stacks", node="n1")


def found(d: Diagnosis) -> tuple[str, str, tuple[int, ...]]:
    return d.outcome, d.failure_type, d.suspects.pids


RING = ["10 1 S do_wait python ring.py", "11 10 S sk_wait_data python ring.py", "13 10 S sk_wait_data python ring.py"]
STACKS = {10: LAUNCHER, 11: RECEIVES, 13: RECEIVES}


@pytest.mark.parametrize(
    ("program", "waits"),
    [("timeout 500 python ring.py", "sigsuspend"), ("bash train.sh", "do_wait"), ("/bin/sh -c python", "do_wait")],
)
def test_what_srun_starts_a_rank_in_is_not_the_rank(knowledge: Knowledge, program: str, waits: str) -> None:
    """Both have its variables."""
    rows, stacks = [], {}
    for rank in range(4):
        place = ("hrtimer_nanosleep", ["    time_sleep (timemodule.c:1)", "    load (ring.py:9)", *RECEIVES[2:]])
        wchan, stack = place if rank == 2 else ("sk_wait_data", RECEIVES)
        rows += [f"{20 + rank} 1 S {waits} {program}", f"{30 + rank} {20 + rank} S {wchan} python ring.py"]
        stacks[30 + rank] = stack
    ranks = {pid + rank: rank for rank in range(4) for pid in (20, 30)}
    d = judge(job(*collected(*rows, stacks=stacks, ranks=ranks)), knowledge)
    assert (found(d), d.suspects.ranks) == (("hung", "hang", (32,)), (2,))


def test_a_stopped_process_is_named_and_not_its_launcher(knowledge: Knowledge) -> None:
    spins = ["    rank (ring.py:13)", *RECEIVES[2:]]
    d = judge(job(*collected(*RING, "12 10 T do_signal_stop python ring.py", stacks={**STACKS, 12: spins})), knowledge)
    assert (found(d), d.status, d.root_cause_class) == (("hung", "hang", (12,)), "established", "operator-action")
    assert "process 12 (`python ring.py`, n1)" in d.root_cause
    assert [step.risk for step in d.remediation if "`kill -CONT 12`" in step.step] == ["reversible"]
    assert d.action == "wait"


def test_stacks_that_are_here_are_not_asked_for_again(knowledge: Knowledge) -> None:
    whole = collected(
        *RING, "12 10 R - python ring.py", stacks={**STACKS, 12: ["    spin (other.py:3)", *RECEIVES[2:]]}
    )
    d = judge(job(*whole), knowledge)
    said = " ".join(step.step for step in d.remediation)
    assert (d.suspects.pids, d.action) == ((12,), "kill-and-restart")
    assert "Kill the job" in said
    assert "stacks of every rank" not in said
    assert "Take the stack" not in said
    none = judge(job(*collected(*RING, "12 10 R - python ring.py")), knowledge)
    assert any("Take the stack of every rank" in step.step for step in none.remediation)


def test_one_that_was_stopped_and_goes_on_at_the_second_look_is_not(knowledge: Knowledge) -> None:
    d = judge(job(*collected(*RING, "12 10 T>S do_signal_stop>sk_wait_data python ring.py", stacks={**STACKS, 12: RECEIVES})), knowledge)  # fmt: skip
    assert d.suspects.pids == ()


def test_a_killed_process_that_nobody_waited_for_is_named_with_its_end(knowledge: Knowledge) -> None:
    d = judge(job(*collected(*RING, "12 10 Z - [python] <defunct>", stacks=STACKS, ended=9)), knowledge)
    assert found(d) == ("hung", "hang", (12,))
    assert "SIGKILL ended" in d.root_cause


def test_a_zombie_of_another_program_is_no_suspect(knowledge: Knowledge) -> None:
    d = judge(job(*collected(*RING, "12 10 S sk_wait_data python ring.py", "14 11 Z - [nvidia-smi] <defunct>", stacks={**STACKS, 12: RECEIVES})), knowledge)  # fmt: skip
    assert (d.outcome, d.suspects.pids) == ("hung", ())


def test_a_launcher_is_no_suspect_where_nobody_stands_out(knowledge: Knowledge) -> None:
    d = judge(job(*collected(*RING, "12 10 S sk_wait_data python ring.py", stacks={**STACKS, 12: RECEIVES})), knowledge)
    assert (d.outcome, d.status, d.suspects.pids) == ("hung", "unknown", ())


@pytest.mark.parametrize("wchan", ["anon_pipe_read", "futex_wait_queue", "ep_poll"])
def test_of_a_program_without_stacks_the_one_that_spins_is_named_as_a_guess(knowledge: Knowledge, wchan: str) -> None:
    rows = ["20 1 S do_wait ./ring", *(f"{pid} 20 S {wchan} ./ring" for pid in (21, 22, 24)), "23 20 R - ./ring"]
    d = judge(job(*collected(*rows)), knowledge)
    assert (found(d), d.status) == (("hung", "hang", (23,)), "hypothesis")
    assert "`./ring`" in d.root_cause
    assert "keeps a CPU busy" in d.root_cause


def test_one_that_waits_for_something_else_is_named_as_a_guess(knowledge: Knowledge) -> None:
    rows = ["20 1 S do_wait ./ring", *(f"{pid} 20 S anon_pipe_read ./ring" for pid in (21, 22, 24)), "23 20 S wait_for_partner ./ring"]  # fmt: skip
    d = judge(job(*collected(*rows)), knowledge)
    assert (found(d), d.status) == (("hung", "hang", (23,)), "hypothesis")


def test_one_that_waits_for_a_lock_in_the_function_that_all_are_in_is_named_by_its_stack(knowledge: Knowledge) -> None:
    joins = ["    Thread.join (threading.py:1112)", "    rank (ring.py:25)", *RECEIVES[2:]]
    d = judge(job(*collected(*RING, "12 10 S futex_do_wait python ring.py", stacks={**STACKS, 12: joins})), knowledge)
    assert (found(d), d.status, d.root_cause_class) == (("hung", "hang", (12,)), "supported", "software-bug")
    assert "waits for a lock or another thread" in d.root_cause


def test_where_all_wait_alike_it_is_unknown_and_says_what_to_fetch(knowledge: Knowledge) -> None:
    rows = ["20 1 S do_wait ./ring", *(f"{pid} 20 S anon_pipe_read ./ring" for pid in range(21, 25))]
    d = judge(job(*collected(*rows, absent="gdb")), knowledge)
    assert (d.outcome, d.status, d.suspects.pids) == ("hung", "unknown", ())
    assert "All 4 processes of the job wait for a pipe (anon_pipe_read)" in d.root_cause
    assert "there is no gdb" in d.root_cause


@pytest.mark.parametrize(
    "rows",
    [
        ["20 1 S do_wait bash run.sh", "21 20 R - ./a", "22 20 S pipe_read tee log", "23 20 R - ./b"],
        ["20 1 R>S ->futex_wait ./solver"],
        [],
    ],
)
def test_what_was_collected_of_a_hang_is_never_called_healthy(knowledge: Knowledge, rows: list[str]) -> None:
    d = judge(job(*collected(*rows), log_file("step 1 loss 2.0\nTraining completed successfully")), knowledge)
    assert (d.outcome == "healthy", d.failure_type == "healthy", d.action == "none") == (False, False, False)


def test_a_job_that_moved_between_the_looks_is_not_called_hung_and_not_healthy(knowledge: Knowledge) -> None:
    files = collected("20 1 R - python a.py", "21 1 R - python a.py")
    for look, name in (("", "load"), (".2", "compute")):
        files += [_stack(pid, [f"    {name} (a.py:7)"], look) for pid in (20, 21)]
    d = judge(job(*files), knowledge)
    assert (d.outcome, d.status, d.suspects.pids) == ("unknown", "unknown", ())
    assert "2 of 2 processes" in d.root_cause


def test_the_one_process_for_whose_end_a_shell_waits_is_named_as_a_guess(knowledge: Knowledge) -> None:
    rows = ["20 1 S do_wait bash run.sh", "21 20 S hrtimer_nanosleep sleep 9999", "22 20 S pipe_read tee log"]
    d = judge(job(*collected(*rows)), knowledge)
    assert (found(d), d.status) == (("hung", "hang", (21,)), "hypothesis")
    assert "`sleep 9999`" in d.root_cause


def test_a_rank_that_waits_for_what_it_started_is_named_with_its_child_s_trouble(knowledge: Knowledge) -> None:
    """The ranks are known here, and one of them runs a copy that stands in a file system."""
    copies = [
        "    wait4 (libc.so.6)",
        "    Popen._wait (subprocess.py:2011)",
        "    save (ckpt.py:9)",
        "    <module> (t.py:1)",
    ]
    waits = ["    barrier (torch/distributed/distributed_c10d.py:1)", "    <module> (t.py:2)"]
    rows = ["31 30 S do_wait python t.py --rank 0", "32 30 S futex_wait python t.py --rank 1", "33 30 S futex_wait python t.py --rank 2"]  # fmt: skip
    plain = judge(job(*collected(*rows, stacks={31: copies, 32: waits, 33: waits})), knowledge)
    assert (found(plain), plain.suspects.ranks) == (("hung", "hang", (31,)), (0,))
    assert "a process that it started" in plain.root_cause
    stuck = collected(*rows, "34 31 D nfs_wait_bit_killable cp a b", stacks={31: copies, 32: waits, 33: waits})
    d = judge(job(*stuck), knowledge)
    assert (d.failure_type, d.suspects.ranks) == ("storage-error", (0,))


@pytest.mark.parametrize(
    ("environment", "type_"),
    [("OMP_NUM_THREADS=1", "hang"), ("SLURM_JOB_ID=7", "hang"), ("SLURM_JOB_ID=59130", "host-out-of-memory")],
)
def test_an_oom_kill_in_another_job_s_control_group_is_no_cause(
    environment: str, type_: str, knowledge: Knowledge
) -> None:
    """Nothing explains the hang here, and the program is one that a script may have started: the control group tells whose it is."""
    group = "/slurm_n1/uid_0/job_59130"
    kernel = [
        f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg={group},task_memcg={group}/step_0/task_0,task=python3,pid=999,uid=0",
        "Memory cgroup out of memory: Killed process 999 (python3) total-vm:1000kB, anon-rss:900kB, file-rss:0kB, shmem-rss:0kB, UID:0",
    ]
    files = collected("20 1 S do_wait bash wait.sh", "21 20 S wait_for_partner cat fifo")
    files += [log_file(environment, f"c/n1/env-{pid}.txt", "processes", node="n1") for pid in (20, 21)]
    said = "\n".join(f"[12345.{i}] {line}" for i, line in enumerate(kernel))
    d = judge(job(*files, log_file(said, "c/n1/dmesg.txt", "kernel", node="n1")), knowledge)
    assert d.failure_type == type_
    assert any(e.role == "root" for e in d.evidence if e.file == "c/n1/dmesg.txt") == (type_ != "hang")


def test_a_rank_that_is_gone_is_named_and_not_the_store_that_sleeps_until_it_comes(knowledge: Knowledge) -> None:
    """Rank 0 serves the store, and sleeps between its looks at who has come; its clients wait at their sockets."""
    called = ["    c10d::TCPStore::TCPStore (libtorch_cpu.so)", "    <module> (dead.py:5)"]
    serves = ["    clock_nanosleep (libc.so.6)", "    c10d::TCPStore::waitForWorkers (libtorch_cpu.so)", *called]
    asks = ["    __poll (libc.so.6)", "    c10d::TCPStore::wait (libtorch_cpu.so)", *called]
    rows = ["31 30 S hrtimer_nanosleep python t.py --rank 0", "32 30 S poll_schedule_timeout python t.py --rank 1", "34 30 S poll_schedule_timeout python t.py --rank 3"]  # fmt: skip
    d = judge(job(*collected(*rows, stacks={31: serves, 32: asks, 34: asks})), knowledge)
    assert (d.outcome, d.failure_type, d.suspects.ranks, d.suspects.pids) == ("hung", "hang", (2,), ())
    assert "no process and no stack" in d.root_cause


def test_without_py_spy_the_first_step_is_to_install_it_and_a_tracker_is_no_rank(knowledge: Knowledge) -> None:
    native = ["#0  0x7f in __futex_wait () from libc.so.6", "#1  0x7f in method_vectorcall_O () from libpython3.11.so"]
    rows = ["20 1 S do_wait python spawn.py"]
    rows += [f"{pid} 20 S futex_wait python -c from multiprocessing.spawn import spawn_main" for pid in (22, 23, 24)]
    rows.append("21 20 S pipe_read python -c from multiprocessing.resource_tracker import main;main(3)")

    def looked_at(absent: str) -> Diagnosis:
        files = collected(*rows, absent=absent)
        text = "\n".join(['Thread 1 (Thread 0x7f (LWP 22) "python"):', *native])
        return judge(job(*files, log_file(text, "c/n1/gdb-22.txt", "stacks", node="n1")), knowledge)

    d = looked_at("py-spy")
    assert "Install py-spy" in d.remediation[0].step
    assert "py-spy" in d.root_cause
    assert "All 3 processes" in d.root_cause
    assert not any("Install py-spy" in step.step for step in looked_at("nvidia-smi").remediation)


def test_the_collector_is_none_of_the_job_though_the_same_shell_started_both(knowledge: Knowledge) -> None:
    """A parent that works too, its children, one of which is stopped, and our own command, which ps shows beside them."""
    rows = ["10 9 S pipe_read python mp.py", "11 10 S pipe_read python mp.py", "12 10 T do_signal_stop python mp.py"]
    files = collected(*rows, stacks={10: RECEIVES, 11: RECEIVES, 12: RECEIVES})
    ours = "     77       9 root S    futex_do_wait                  00:00:02 python -m triage hang collect --pid 10"
    text = "\n".join([*(line.text for line in files[1].lines), ours])
    d = judge(job(files[0], log_file(text, "c/n1/ps.txt", "processes", node="n1"), *files[2:]), knowledge)
    assert (d.suspects.pids, d.root_cause_class) == ((12,), "operator-action")


@pytest.mark.parametrize(
    "said",
    [
        "python3[999]: segfault at 0 ip 00007f2b0d18c0ba sp 00007ffd62258ee8 error 4 in libc.so.6[7f2b0d000000+1000]",
        "NVRM: Xid (PCI:0000:07:00): 31, pid=999, name=python3, Ch 00000010, intr 00000000. MMU Fault: ENGINE GRAPHICS",
    ],
)
def test_what_the_kernel_says_of_a_process_that_is_none_of_the_job_s_is_no_cause(
    said: str, knowledge: Knowledge
) -> None:
    rows = ["11 10 S futex_wait python t.py --rank 0", "12 10 S hrtimer_nanosleep python t.py --rank 1", "13 10 S futex_wait python t.py --rank 2"]  # fmt: skip
    kernel = log_file(f"[12345.1] {said}", "c/n1/dmesg.txt", "kernel", node="n1")
    d = judge(job(*collected(*rows), kernel), knowledge)
    assert (found(d), d.suspects.ranks) == (("hung", "hang", (12,)), (1,))
    ours = judge(job(*collected(*rows), log_file(kernel.lines[0].text.replace("999", "12"), "c/n1/dmesg.txt", "kernel", node="n1")), knowledge)  # fmt: skip
    assert ours.failure_type != "hang"
