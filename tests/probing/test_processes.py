"""Real processes as a probe sees them, here and as a text that another Python runs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPO
from triage import reach
from triage.probing import probe
from triage.probing.probe import LocalProbe, RemoteProbe, Whose
from triage.probing.processes import Reader
from triage.probing.sockets import read_sockets
from triage.probing.values import NodeView, Process, node_view, ranks_of

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a shell script in a session of its own."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(script: str, **env: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["sh", "-c", script], start_new_session=True, env={**os.environ, **env}))
        return started[-1]

    yield begin
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def until(ready: Callable[[], Any]) -> Any:
    ends = time.monotonic() + 20
    while not (found := ready()):
        assert time.monotonic() < ends
        time.sleep(0.02)
    return found


def view(reader: Reader, pid: int) -> NodeView:
    return node_view("n", {"processes": reader.read([pid]), "devices": None, "absent": [], "sizes": {}})


def test_the_tree_with_ranks_and_states(start: Start) -> None:
    script = "(RANK=3 sleep 50) & (RANK=4 sleep 51) & wait"
    job = start(script)
    reader = Reader()
    comms = ["sleep", "sleep"]
    found = until(
        lambda: (
            (seen := view(reader, job.pid)) and [p.comm for p in ranks_of(seen.processes).values()] == comms and seen
        )
    )
    ranks = ranks_of(found.processes)
    assert list(ranks) == [3, 4]
    assert ranks[3].state == "S"
    assert "nanosleep" in ranks[3].wchan or ranks[3].call in ("35", "230")
    assert ranks[3].io is not None


def test_who_is_above_the_watcher_is_seen_if_it_is_asked_for() -> None:
    """A batch script that starts a watcher of itself."""
    look = f"import sys; sys.path.insert(0, {str(REPO)!r}); from triage.probing.processes import Reader"
    code = f"{look}; print([p['pid'] for p in Reader().read([int(sys.argv[1])])])"
    done = subprocess.run(
        ["sh", "-c", f'sleep 9 & "{sys.executable}" -c "$0" $$; kill $!; echo $$', code],
        capture_output=True,
        text=True,
        check=True,
    )
    seen, pid = done.stdout.splitlines()
    assert int(pid) in json.loads(seen)
    assert len(json.loads(seen)) == 2, "the script and its sleep, and not who looks"


def test_what_is_handed_to_init_stays_of_the_job(start: Start, tmp_path: Path) -> None:
    """A launcher that dies leaves its ranks behind; they have another parent, and the group of the job."""
    job = start(f"(sleep 60 & echo $! > {tmp_path}/pid); sleep 0.7")
    reader = Reader()
    until(lambda: len(reader.read([job.pid])) >= 2)
    job.wait()
    orphan = int((tmp_path / "pid").read_text())
    assert [process["pid"] for process in reader.read([job.pid])] == [orphan]


def test_a_process_whose_main_thread_has_ended_lives_on(start: Start) -> None:
    code = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); ctypes.CDLL(None).pthread_exit(None)"
    job = start(f"exec {sys.executable} -c '{code}'")
    until(lambda: b") Z " in Path(f"/proc/{job.pid}/stat").read_bytes())
    (process,) = view(Reader(), job.pid).processes
    assert (process.state, process.exit) == ("S", None)


def test_how_one_ended_that_nobody_took_note_of(start: Start) -> None:
    job = start("(exit 7) & sleep 60 & exec sleep 61")
    found = until(lambda: [p for p in view(Reader(), job.pid).processes if p.state == "Z"])
    assert found[0].exit == 7 << 8


def test_logs_that_are_held_open_and_sockets(start: Start, tmp_path: Path) -> None:
    code = "import socket, sys, time; log = open(sys.argv[1], 'a'); read = open(sys.argv[2]); s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], file=log, flush=True); time.sleep(60)"
    (tmp_path / "data.txt").write_text("")
    job = start(f'exec {sys.executable} -c "{code}" {tmp_path}/rank_3.log {tmp_path}/data.txt > {tmp_path}/out')
    port = until(lambda: (tmp_path / "rank_3.log").exists() and (tmp_path / "rank_3.log").read_text().strip())
    (process,) = view(Reader(), job.pid).processes
    assert process.outputs[0] == f"{tmp_path}/out"
    assert process.logs == (f"{tmp_path}/rank_3.log",)
    assert read_sockets([job.pid]) == {str(job.pid): ([f"port {port}"], 0)}


def test_secrets_of_command_and_environment_are_not_taken(start: Start, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import time; time.sleep(60)")
    job = start(
        f"exec {sys.executable} {script} --token sk-abcdef0123456789", WANDB_API_KEY="0123456789abcdef", RANK="0"
    )
    reader = Reader()
    found = until(lambda: [p for p in reader.read([job.pid]) if "train.py" in p["name"]])
    assert "sk-abcdef" not in json.dumps(found)
    assert "0123456789abcdef" not in json.dumps(found)
    assert found[0]["ranks"] == {"RANK": 0}


def test_a_process_of_a_slurm_job_by_its_environment(start: Start) -> None:
    job = start("sleep 60 & wait", SLURM_JOB_ID="990017", SLURM_PROCID="2")
    found = until(lambda: Reader().read(job="990017"))
    assert {process["pid"] for process in found} >= {job.pid}
    assert Reader().read(job="99001") == []


def process(pid: int, ppid: int, comm: str, node: str = "n", **ranks: int) -> Process:
    return Process(node, pid, ppid, pid, comm, comm, "S", ranks=ranks)


def test_the_rank_is_below_the_shell_and_the_launcher_that_carry_its_number() -> None:
    tree = [
        process(1, 0, "bash", SLURM_PROCID=0),
        process(2, 1, "torchrun", SLURM_PROCID=0),
        process(3, 2, "python", SLURM_PROCID=0, RANK=0, LOCAL_RANK=0),
        process(4, 2, "python", SLURM_PROCID=0, RANK=1, LOCAL_RANK=1),
        process(5, 4, "python", SLURM_PROCID=0, RANK=1, LOCAL_RANK=1),  # a worker of the dataloader
    ]
    assert {rank: p.pid for rank, p in ranks_of(tree).items()} == {0: 3, 1: 4}
    plain = [process(1, 0, "bash", SLURM_PROCID=7), process(2, 1, "solver", SLURM_PROCID=7)]
    assert {rank: p.pid for rank, p in ranks_of(plain).items()} == {7: 2}


@pytest.mark.parametrize("wrapper", ["timeout", "time", "tini", "sudo", "torchrun"])
def test_what_only_starts_the_rank_is_not_the_rank(wrapper: str) -> None:
    tree = [process(1, 0, wrapper, SLURM_PROCID=3), process(2, 1, "python", SLURM_PROCID=3)]
    assert {rank: p.pid for rank, p in ranks_of(tree).items()} == {3: 2}


def test_what_carries_the_output_of_a_rank_is_not_the_rank() -> None:
    tree = [process(1, 0, "bash", RANK=0), process(2, 1, "python", RANK=0), process(3, 1, "tee", RANK=0)]
    assert {rank: p.pid for rank, p in ranks_of(tree).items()} == {0: 2}


def test_a_launcher_with_the_number_of_its_pod_is_no_rank() -> None:
    """As an operator of Kubernetes numbers it, while what it starts has numbers of its own."""
    tree = [process(1, 0, "python", RANK=1), *(process(10 + n, 1, "python", RANK=8 + n) for n in range(3))]
    assert {rank: p.pid for rank, p in ranks_of(tree).items()} == {8: 10, 9: 11, 10: 12}


def test_processes_with_the_same_numbers_on_two_nodes_are_told_apart() -> None:
    tree = [process(2, 1, "python", "a", RANK=0), process(1, 2, "python", "b", RANK=1)]
    assert {rank: (p.node, p.pid) for rank, p in ranks_of(tree).items()} == {0: ("a", 2), 1: ("b", 1)}
    local = [process(n + 2, 1, "python", node, LOCAL_RANK=n) for node in "ab" for n in range(2)]
    assert ranks_of(local) == {}  # each node counts its own


def test_numbers_that_were_given_anew_while_the_table_was_read_are_no_harm() -> None:
    circle = [process(2, 3, "bash", RANK=0), process(3, 2, "python", RANK=0)]
    assert {rank: p.pid for rank, p in ranks_of(circle).items()} == {0: 3}
    assert ranks_of([process(2, 3, "bash", RANK=0), process(3, 2, "bash", RANK=0)]).keys() == {0}


@pytest.mark.parametrize("name", ["PMIX_RANK", "RANK_ID", "OMPI_COMM_WORLD_RANK"])
def test_ranks_of_mpirun_within_slurm(name: str) -> None:
    """srun starts the daemons of mpirun, whose numbers the ranks carry beside their own."""
    tree = [process(n, 1, "solver", SLURM_PROCID=1, **{name: n}) for n in (4, 5)]
    assert {rank: p.pid for rank, p in ranks_of(tree).items()} == {4: 4, 5: 5}


def test_the_text_of_the_probe_needs_no_triage(start: Start, tmp_path: Path) -> None:
    job = start("sleep 60 & wait", RANK="1")
    (tmp_path / "ckpt").write_bytes(b"0" * 1234)
    request = json.dumps(Whose((job.pid,)).request(True, True, [str(tmp_path / "ckpt"), "/no/such/file"]))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-", "triage-look", request],
        input=probe.source().encode(),
        capture_output=True,
        cwd=tmp_path,
        check=True,
    )
    first, seen = (node_view("n", json.loads(line)) for line in done.stdout.splitlines())
    assert {process.pid for process in seen.processes} >= {job.pid}
    assert (first.processes, first.sizes) == (seen.processes, {})
    assert seen.sizes == {str(tmp_path / "ckpt"): 1234}
    assert seen.devices == ()
    assert seen.absent


def test_who_looks_on_is_none_of_the_job(start: Start) -> None:
    """Another watcher's look within the job, or what collects from it, with all that these start."""
    sleeps = "import subprocess; subprocess.run(['sleep', '60'])"
    looks = [f'echo "{sleeps}" | {sys.executable} {words} {{}} &' for words in ("- triage-look", "-I -S -")]
    job = start(f"{' '.join(looks)} sleep 61 & wait")
    until(lambda: sorted(session(job.pid)).count("sleep") == 3)
    assert [p.comm for p in view(Reader(), job.pid).processes] == ["sh", "sleep"]
    everything = [p["comm"] for p in Reader().read(everything=True) if p["sid"] == job.pid]
    assert everything == ["sh", "sleep"]


def session(number: int) -> list[str]:
    """Programs of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            head, _, tail = stat.read_text().rpartition(")")
            found += [head.partition("(")[2]] if tail.split()[3] == str(number) else []
    return found


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of our own, by which the node `gone` is not reached; the others print a greeting."""
    file = tmp_path / "ssh"
    file.write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\n'
        'if [ "$2" = gone ]; then echo "ssh: connect to host gone port 22: No route to host" >&2; exit 255; fi\n'
        'echo "{ Welcome"; shift 2; exec sh -c "$*"\n'
    )
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


@pytest.mark.usefixtures("ssh")
@pytest.mark.parametrize("kind", [RemoteProbe, LocalProbe])
def test_a_driver_that_hangs_hides_no_process_and_is_asked_once(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[RemoteProbe] | type[LocalProbe]
) -> None:
    (tmp_path / "pynvml.py").write_text(f"import time; open('{tmp_path}/asked', 'a').write('1'); time.sleep(60)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    job = start("sleep 60 & wait")
    at = reach.ssh(["here"]) if kind is RemoteProbe else reach.local()
    made = kind(at, Whose((job.pid,)), timeout=4.0)
    (first,), (second,) = (made.look(True, []) for _ in range(2))
    assert job.pid in {process.pid for process in first.processes} & {process.pid for process in second.processes}
    assert (first.problem, first.devices, first.absent) == ("", (), ("the GPUs did not answer",))
    assert second.devices is None
    assert (tmp_path / "asked").read_text() == "1"


@pytest.mark.usefixtures("ssh")
def test_a_node_that_is_not_reached_is_told() -> None:
    there, gone = RemoteProbe(reach.ssh(["here", "gone"]), Whose((os.getpid(),))).look(False, [])
    assert there.problem == ""
    assert there.node == "here"
    assert "No route to host" in gone.problem


def test_the_probe_of_this_machine(start: Start) -> None:
    job = start("sleep 60 & wait")
    (seen,) = LocalProbe(reach.local(), Whose((job.pid,))).look(True, [])
    assert job.pid in {process.pid for process in seen.processes}
    assert seen.devices is not None
    assert seen.devices or seen.absent
