"""Commands on the nodes of a job: srun, ssh and kubectl are stand-ins on PATH that run what they are given."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from triage import reach
from triage.errors import UsageError

# Each notes how it was called, then runs what stands behind "--" as the real one would: ssh through a shell.
AFTER_DASHES = 'while [ "$1" != -- ]; do shift; done; shift\n'
STAND_INS = {
    "srun": AFTER_DASHES + 'exec "$@"\n',
    "kubectl": AFTER_DASHES + 'exec "$@"\n',
    "ssh": AFTER_DASHES + 'shift; exec sh -c "$*"\n',
}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, body in STAND_INS.items():
        install(folder, name, body)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def install(folder: Path, name: str, body: str) -> None:
    program = folder / name
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{shlex.quote(str(folder))}/{name}.called\n{body}')
    program.chmod(0o755)


def called(path: Path, name: str) -> list[str]:
    return (path / f"{name}.called").read_text().splitlines()


WAYS = {
    "local": reach.local,
    "srun": lambda: reach.srun("4711", ["gpu-01"]),
    "ssh": lambda: reach.ssh(["ada@gpu-01"]),
    "kubectl": lambda: reach.kubectl(["train-0"], "ml", "pytorch"),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_command_gets_its_arguments_and_its_input_as_they_are(path: Path, way: str) -> None:
    at = WAYS[way]()
    odd = ["a b", "$(id)", "'", '"', ";", "*", "", "--", "é\n"]
    answer = at.run(at.nodes[0], ["python3", "-c", "import sys; print(sys.argv[1:], sys.stdin.read())", *odd], b"fed")
    assert (answer.code, answer.problem) == (0, "")
    assert answer.out.decode() == f"{odd} fed\n"


@pytest.mark.parametrize("way", WAYS)
def test_the_command_s_own_failure_is_its_answer(path: Path, way: str) -> None:
    at = WAYS[way]()
    answer = at.run(at.nodes[0], ["sh", "-c", "echo out; echo bad luck >&2; exit 3"])
    assert (answer.code, answer.out, answer.err, answer.problem) == (3, b"out\n", b"bad luck\n", "")


def test_a_step_of_slurm_waits_for_no_gpu(path: Path) -> None:
    reach.srun("4711", ["gpu-01"]).run("gpu-01", ["true"])
    assert {"--jobid=4711", "--overlap", "--gres=gpu:0", "-N1", "-n1", "-w", "gpu-01"} <= set(called(path, "srun"))


def test_ssh_asks_for_no_password(path: Path) -> None:
    reach.ssh(["gpu-01"], ["-p", "2222"]).run("gpu-01", ["true"])
    told = " ".join(called(path, "ssh"))
    assert "-o BatchMode=yes -o ConnectTimeout=10 -p 2222 -- gpu-01 true" in told


def test_a_pod_is_named_with_its_namespace_and_container(path: Path) -> None:
    reach.kubectl(["train-0"], "ml", "pytorch").run("train-0", ["true"])
    assert " ".join(called(path, "kubectl")) == "exec -i -n ml train-0 -c pytorch -- true"


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("ssh", "echo 'ssh: connect to host gpu-01 port 22: No route to host' >&2; exit 255", "No route to host"),
        ("ssh", "exit 255", "ssh could not reach it"),
        (
            "srun",
            "echo 'srun: error: Unable to create step for job 4711: Invalid job id' >&2; exit 1",
            "Invalid job id",
        ),
        ("kubectl", "echo 'Error from server (NotFound): pods \"train-0\" not found' >&2; exit 1", "not found"),
        ("srun", "kill -9 $$", "was ended by SIGKILL"),
        ("srun", "kill -40 $$", "was ended by signal 40"),
    ],
)
def test_a_node_that_is_not_reached_is_told_from_a_command_that_failed(
    path: Path, name: str, body: str, said: str
) -> None:
    install(path, name, body)
    at = WAYS[name]()
    assert said in at.run(at.nodes[0], ["true"]).problem


def test_a_task_that_failed_was_reached(path: Path) -> None:
    install(path, "srun", "echo 'srun: error: gpu-01: task 0: Exited with exit code 3' >&2; exit 3")
    answer = reach.srun("4711", ["gpu-01"]).run("gpu-01", ["false"])
    assert (answer.code, answer.problem) == (3, "")


def test_a_way_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = reach.srun("4711", ["gpu-01"]).run("gpu-01", ["true"])
    assert answer.problem == "there is no srun on this machine"


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()


def wait_for_end(pid: int) -> bool:
    ends = time.monotonic() + 20
    while not is_gone(pid) and time.monotonic() < ends:
        time.sleep(0.05)
    return is_gone(pid)


@pytest.mark.parametrize("ignores", ["", "trap '' TERM; "])
def test_at_the_end_of_its_time_the_whole_group_is_ended_and_what_it_said_is_kept(path: Path, ignores: str) -> None:
    at = reach.ssh(["gpu-01"])
    answer = at.run("gpu-01", ["sh", "-c", f"{ignores}sleep 600 & echo $! $$; wait; sleep 600"], timeout=1)
    assert (answer.code, answer.problem) == (None, "no answer within 1 s")
    assert answer.seconds < 30
    pids = [int(word) for word in answer.out.split()]
    assert len(pids) == 2
    assert all(map(wait_for_end, pids))


def test_a_child_that_keeps_the_pipes_open_holds_nobody_up() -> None:
    at = reach.local()
    answer = at.run(at.nodes[0], [sys.executable, "-c", LEAVES_A_CHILD], timeout=60)
    try:
        assert (answer.code, answer.problem) == (0, "")
        assert answer.seconds < 30
    finally:
        os.kill(int(answer.out), signal.SIGKILL)


LEAVES_A_CHILD = """
import subprocess
print(subprocess.Popen(["sleep", "600"], start_new_session=True).pid, flush=True)
"""


def test_a_command_that_closed_its_pipes_is_waited_for() -> None:
    at = reach.local()
    answer = at.run(at.nodes[0], ["sh", "-c", "exec >&- 2>&- <&-; sleep 0.5; exit 7"])
    assert (answer.code, answer.problem) == (7, "")


def test_a_flood_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "MOST_OUT", 1 << 20)
    at = reach.local()
    answer = at.run(at.nodes[0], ["yes"], timeout=60)
    assert len(answer.out) == 1 << 20
    assert answer.problem == "printed more than 1 MiB and was ended"


def test_much_input_and_much_output_pass_each_other() -> None:
    at = reach.local()
    data = os.urandom(8 << 20)
    assert at.run(at.nodes[0], ["cat"], data, timeout=60).out == data


def test_input_that_nobody_reads_is_no_problem() -> None:
    at = reach.local()
    answer = at.run(at.nodes[0], ["true"], b"x" * (1 << 20))
    assert (answer.code, answer.problem) == (0, "")


BAD = ["-oProxyCommand=id", "a;reboot", "a b", "$(id)", "a\n", "", "..", "a/b", "ada@-x", "@a", "a" * 300, "é"]


@pytest.mark.parametrize("name", BAD)
def test_a_name_that_would_be_more_than_a_name_is_refused(name: str) -> None:
    for make in (
        lambda: reach.srun("4711", [name]),
        lambda: reach.ssh([name]),
        lambda: reach.kubectl([name]),
        lambda: reach.srun(name, ["gpu-01"]),
    ):
        with pytest.raises(UsageError):
            make()


@pytest.mark.parametrize("name", ["-n", "a b", "kube;id"])
def test_so_are_a_namespace_and_a_container(name: str) -> None:
    with pytest.raises(UsageError):
        reach.kubectl(["train-0"], name)
    with pytest.raises(UsageError):
        reach.kubectl(["train-0"], "", name)


def test_a_node_of_another_job_is_not_asked(path: Path) -> None:
    assert reach.ssh(["gpu-01"]).run("gpu-02", ["true"]).problem == "is none of the nodes of this job"
    assert not (path / "ssh.called").exists()


def test_every_node_answers_for_itself(path: Path) -> None:
    """gpu-02 hangs, gpu-03 is away; the others do not wait for them longer than their time."""
    body = 'while [ "$1" != -- ]; do shift; done; case $2 in gpu-02) sleep 600;; gpu-03) exit 255;; esac; shift 2; exec sh -c "$*"'
    install(path, "ssh", body)
    nodes = [f"gpu-{n:02}" for n in range(1, 21)]
    began = time.monotonic()
    answers = reach.everywhere(reach.ssh(nodes), ["cat"], b"hello", timeout=5, at_once=4)
    assert time.monotonic() - began < 60
    assert list(answers) == nodes
    assert {node for node, answer in answers.items() if answer.problem} == {"gpu-02", "gpu-03"}
    assert {answer.out for answer in answers.values() if not answer.problem} == {b"hello"}
    assert answers["gpu-02"].problem == "no answer within 5 s"


def test_no_nodes_no_answers() -> None:
    assert reach.everywhere(reach.ssh([]), ["true"]) == {}


def test_interrupted_it_ends_what_it_began(tmp_path: Path) -> None:
    """As Ctrl-C does: the exception comes to who waits, and no command goes on."""
    noted = tmp_path / "pid"
    at = reach.local()
    command = ["sh", "-c", f"echo $$ >{shlex.quote(str(noted))}.new && mv {noted}.new {noted}; sleep 600"]

    def interrupt() -> None:
        ends = time.monotonic() + 30
        while not noted.exists() and time.monotonic() < ends:
            time.sleep(0.05)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        reach.everywhere(at, command, timeout=60)
    assert wait_for_end(int(noted.read_text()))
