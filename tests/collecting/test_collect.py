"""A real job of processes on this machine is looked at; tools that this machine lacks are stand-ins on PATH that really run."""

from __future__ import annotations

import ast
import base64
import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from triage import collecting, reach
from triage.collecting import Collected, Wanted
from triage.collecting.ask import script
from triage.collecting.folder import MOST_FILE, Folder
from triage.collecting.on_node import native
from triage.errors import InputError, UsageError
from triage.reach import Answer

SECRET = "hunter22-correct-horse"
# A rank with a log, a deleted file and a worker; says when it is there.
RANK = """
import os, subprocess, sys, tempfile, time
log = open(sys.argv[1], "a")
log.write("step 1 loss 2.0\\nexport AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\\n")
log.flush()
gone = tempfile.TemporaryFile()
worker = subprocess.Popen([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"], stdout=subprocess.PIPE)
worker.stdout.readline()
print(worker.pid, flush=True)
time.sleep(600)
"""
# Waits in the kernel until its child, which has its memory, ends: state D, as one that waits for a file system.
STUCK = "import ctypes, os, time; os.write(1, b'1\\n'); ctypes.CDLL(None).vfork(); time.sleep(600)"

PY_SPY = """
echo "$@" >>"$0.called"
case "$*" in
  *--native*) echo "Error: Failed to suspend process" >&2; echo "Reason: EPERM: Operation not permitted" >&2; exit 1;;
  *--nonblocking*) ;;
  *) [ "$RANK_HANGS" ] && sleep 600; echo "Error: no luck" >&2; exit 1;;
esac
printf 'Process %s: python train.py\\nPython v3.11.2\\n\\nThread %s (idle): "MainThread"\\n    step (train.py:7)\\n' "$4" "$4"
"""
SMI = 'echo "GPU 0: 0 % $*"'


@contextlib.contextmanager
def started(*args: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", *args],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout
        process.stdout.readline()
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)


def install(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def tools(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder.mkdir()
    install(folder, "nvidia-smi", SMI)
    install(folder, "py-spy", PY_SPY)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return tools(tmp_path / "bin", monkeypatch)


ENV = {"RANK": "3", "WORLD_SIZE": "8", "NCCL_DEBUG": "INFO", "WANDB_API_KEY": SECRET, "NCCL_RAS_ADDR": "localhost:1"}


@pytest.fixture
def rank(tmp_path: Path, path: Path) -> Iterator[subprocess.Popen[str]]:
    with started(RANK, str(tmp_path / "rank3.log"), **ENV) as process:
        yield process


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Collected, int]:
    """What was collected of one rank, of which py-spy hangs when it stops it, and its pid; the rank goes on."""
    folder = tmp_path_factory.mktemp("looked")
    with pytest.MonkeyPatch.context() as patch, started(RANK, str(folder / "rank3.log"), **ENV) as process:
        tools(folder / "bin", patch)
        patch.setenv("RANK_HANGS", "1")
        before = group(process.pid)
        found = look(folder, process.pid)
        assert (group(process.pid), process.poll()) == (before, None)
    return found, process.pid


def group(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().split()[4]


def look(tmp_path: Path, pid: int, **wanted: Any) -> Collected:
    return collecting.collect(reach.local(), Wanted(pid=pid, **{"seconds": 12, **wanted}), tmp_path / "out")


def read(found: Collected, name: str) -> str:
    (file,) = found.folder.glob(f"*/{name}")
    return file.read_text("utf-8")


def manifest(found: Collected) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((found.folder / "manifest.json").read_text("utf-8"))
    return document


def attempts(found: Collected, tool: str) -> list[dict[str, Any]]:
    return [told for told in manifest(found)["commands"] if told["tool"].startswith(tool)]


def test_what_a_process_is_and_where_it_waits_is_written(looked: tuple[Collected, int]) -> None:
    found, pid = looked
    assert (found.silent, found.processes, found.stacks) == ({}, 2, 2)
    told = manifest(found)["processes"]
    assert [(p["pid"] == pid, p["rank"], p["is_python"]) for p in told] == [(True, 3, True), (False, 3, True)]
    env = read(found, f"env-{pid}.txt").splitlines()
    assert {"RANK=3", "WORLD_SIZE=8", "NCCL_DEBUG=INFO"} <= set(env)
    waits = read(found, f"wchan-{pid}.txt")
    assert re.search(r"^State:\tS", waits, re.MULTILINE)
    assert re.search(rf"^== threads\n{pid} S ", waits, re.MULTILINE)
    fds = read(found, f"fds-{pid}.txt")
    assert re.search(r"^\d+ w -> \S+/rank3\.log$", fds, re.MULTILINE)
    assert re.search(r"^\d+ rw -> .*\(deleted\)$", fds, re.MULTILINE)
    ps = read(found, "ps.txt").splitlines()
    assert ps[0].split() == ["PID", "PPID", "USER", "STAT", "WCHAN", "ELAPSED", "%CPU", "RSS", "COMMAND"]
    assert any(line.split()[0] == str(pid) for line in ps)
    assert re.search(r"^answers [\d.]+ \S+ / \S+$", read(found, "mounts.txt"), re.MULTILINE)
    assert re.search(r"^unasked 0 proc /proc ", read(found, "mounts.txt"), re.MULTILINE)


def test_the_tools_say_their_word_and_those_that_are_not_there_are_no_problem(looked: tuple[Collected, int]) -> None:
    found, _ = looked
    assert read(found, "nvidia-smi.txt") == "GPU 0: 0 % \n"
    assert read(found, "nvidia-smi-q.txt") == "GPU 0: 0 % -q\n"
    assert [told["problem"] for told in attempts(found, "npu-smi")] == ["there is no npu-smi here"]
    assert [told["problem"] for told in attempts(found, "NCCL RAS")] == ["there is no NCCL RAS here"]
    assert not any("there is no" in problem for problem in found.problems)


def test_secrets_are_not_collected(looked: tuple[Collected, int]) -> None:
    found, _ = looked
    log = read(found, "logs/rank3.log")
    assert "step 1 loss 2.0" in log
    everything = b"".join(file.read_bytes() for file in found.folder.rglob("*") if file.is_file())
    assert SECRET.encode() not in everything
    assert b"EXAMPLEKEY" not in everything


def test_the_folder_is_its_owner_s_alone(looked: tuple[Collected, int]) -> None:
    found, _ = looked
    assert [f for f in (found.folder, *found.folder.rglob("*")) if f.stat().st_mode & 0o077] == []


def test_each_attempt_at_a_stack_is_evidence(looked: tuple[Collected, int]) -> None:
    """Native is refused, the plain one hangs, the third way answers."""
    found, pid = looked
    text = read(found, f"pyspy-{pid}.txt")
    assert "Error: Failed to suspend process\nReason: EPERM: Operation not permitted\n" in text
    assert text.endswith("    step (train.py:7)\n")
    tried = [(t["tool"], t["code"], t["problem"]) for t in attempts(found, "py-spy") if t["pid"] == pid]
    assert tried == [
        (f"py-spy dump --native --pid {pid}", 1, "Reason: EPERM: Operation not permitted"),
        (f"py-spy dump --pid {pid}", None, "no answer within 3 s"),
        (f"py-spy dump --nonblocking --pid {pid}", 0, ""),
    ]


KERNEL = """
[ "$1" ] && exit 1
echo "[    1.000000] of an earlier job"
echo "  more of it"
echo "[ $(cut -d' ' -f1 /proc/uptime)] of this one"
echo "  and more"
"""
ISO_KERNEL = """
echo "2020-01-01T00:00:00,000000+00:00 of an earlier job"
echo "$(date -u -d '1 hour' +%Y-%m-%dT%H:%M:%S),000000+01:00 of this one"
"""


@pytest.mark.parametrize("dmesg", [KERNEL, ISO_KERNEL])
def test_what_the_kernel_said_of_earlier_jobs_is_left_out(tmp_path: Path, path: Path, dmesg: str) -> None:
    install(path, "dmesg", dmesg)
    text = script().replace('SYSTEM_PATH = "', f'SYSTEM_PATH = "{path}:')
    with started("import time; print(1, flush=True); time.sleep(600)") as p:
        options = json.dumps({"pid": p.pid, "seconds": 8, "stack_seconds": 2})
        told = subprocess.run(
            [sys.executable, "-", options], input=text.encode(), capture_output=True, timeout=120, check=True
        )
    folder = Folder.make(tmp_path / "out", "", "local")
    folder.add(Answer("n1", 0, told.stdout))
    said = [
        re.sub(r"^\S*[\[\d]\S* *(?:\S+\] )?", "", line)
        for line in (tmp_path / "out/n1/dmesg.txt").read_text().splitlines()
    ]
    assert said == (["of this one", "  and more"] if dmesg is KERNEL else ["of this one"])


def test_with_nonblocking_no_process_is_stopped(tmp_path: Path, path: Path, rank: subprocess.Popen[str]) -> None:
    look(tmp_path, rank.pid, nonblocking=True)
    assert all("--nonblocking" in line for line in (path / "py-spy.called").read_text().splitlines())


def test_a_second_look(tmp_path: Path, rank: subprocess.Popen[str]) -> None:
    found = look(tmp_path, rank.pid, again=0.5, nonblocking=True, ras=False)
    assert attempts(found, "NCCL RAS") == []
    assert "step (train.py:7)" in read(found, f"pyspy-{rank.pid}.2.txt")
    assert "== threads" in read(found, f"wchan-{rank.pid}.2.txt")


def test_a_process_that_waits_in_the_kernel_is_not_attached_to(tmp_path: Path, path: Path) -> None:
    with started(STUCK, RANK="0") as process:
        wait_for(lambda: state(process.pid) == "D")
        found = look(tmp_path, process.pid)
    assert {told["state"] for told in manifest(found)["processes"] if told["pid"] == process.pid} == {"D"}
    assert re.search(r"^State:\tD", read(found, f"wchan-{process.pid}.txt"), re.MULTILINE)
    called = [line for line in (path / "py-spy.called").read_text().splitlines() if line.endswith(f" {process.pid}")]
    assert called == [f"dump --nonblocking --pid {process.pid}"]


def test_a_process_that_was_stopped_stays_so_and_is_not_attached_to(tmp_path: Path, path: Path) -> None:
    with started("import time; print(1, flush=True); time.sleep(600)") as process:
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: state(process.pid) == "T")
        look(tmp_path, process.pid)
        assert state(process.pid) == "T"
    assert (path / "py-spy.called").read_text() == f"dump --nonblocking --pid {process.pid}\n"


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_for(is_so: Any) -> None:
    ends = time.monotonic() + 30
    while not is_so() and time.monotonic() < ends:
        time.sleep(0.02)
    assert is_so()


def test_a_tool_that_hangs_holds_no_other_up(tmp_path: Path, path: Path, rank: subprocess.Popen[str]) -> None:
    install(path, "nvidia-smi", "echo half; trap '' TERM; sleep 600")
    began = time.monotonic()
    found = look(tmp_path, rank.pid, seconds=8)
    assert time.monotonic() - began < 60
    assert attempts(found, "nvidia-smi")[0]["problem"].startswith("no answer within")
    assert found.stacks == 2


def test_a_file_system_that_hangs_is_named(tmp_path: Path, path: Path) -> None:
    with frozen(tmp_path / "data"):
        found = look(tmp_path, os.getpid(), seconds=8)
    assert re.search(rf"^hangs 5.0 fuse {tmp_path}/data frozen$", read(found, "mounts.txt"), re.MULTILINE)
    assert attempts(found, f"statvfs {tmp_path}/data")[0]["problem"] == "no answer within 5 s"


@contextlib.contextmanager
def frozen(point: Path) -> Iterator[None]:
    """A file system in user space that nobody serves: whoever looks at it waits."""
    point.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        pytest.skip(f"/dev/fuse: {error.strerror}")
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    if libc.mount(b"frozen", str(point).encode(), b"fuse", 0, options.encode()):
        os.close(device)
        pytest.skip(f"mount: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        os.close(device)  # who waits is let go
        libc.umount2(str(point).encode(), 2)


def test_the_real_py_spy_names_the_line(tmp_path: Path) -> None:
    spy = Path(sys.executable).with_name("py-spy")
    if not spy.exists():
        pytest.skip("py-spy is not installed")
    code = "import time\ndef waits_for_ever():\n    print(1, flush=True)\n    time.sleep(600)\nwaits_for_ever()"
    with started(code) as p:
        may = subprocess.run(
            [spy, "dump", "--pid", str(p.pid)], capture_output=True, text=True, timeout=120, check=False
        )
        if may.returncode:
            pytest.skip(f"stacks may not be read here: {may.stderr.strip()[:100]}")
        found = look(tmp_path, p.pid, seconds=60)
    assert "waits_for_ever (<string>:4)" in read(found, f"pyspy-{p.pid}.txt")


@contextlib.contextmanager
def cat() -> Iterator[subprocess.Popen[bytes]]:
    """A program of C that reads from a pipe."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as process:
        try:
            wait_for(lambda: Path(f"/proc/{process.pid}/wchan").read_text() != "" and state(process.pid) == "S")
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_of_a_program_of_c_gdb_tells_where_it_stands_and_lets_it_go_on(tmp_path: Path) -> None:
    if not shutil.which("gdb"):
        pytest.skip("gdb is not installed")
    with cat() as process:
        found = look(tmp_path, process.pid, seconds=120, ras=False)
        (told,) = attempts(found, "gdb")
        if told["problem"]:
            pytest.skip(f"stacks may not be read here: {told['problem']}")
        assert (found.stacks, state(process.pid)) == (1, "S")
    stack = read(found, f"gdb-{process.pid}.txt").splitlines()
    assert stack[0] == f"Process {process.pid}: cat"
    assert any(re.match(r"#\d+ .*read", line) for line in stack)
    assert all(line.startswith(("Process ", "Thread ", "#")) for line in stack)


def test_a_debugger_that_is_not_there_is_said_and_the_next_one_taken(
    monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    monkeypatch.setattr(native, "DEBUGGERS", (["no-gdb", "-p"], ["an-eu-stack", "-p"]))
    install(
        path, "an-eu-stack", "echo PID $2 - process; echo TID $2:; echo '#0  0x1 read - /lib/libc.so.6'; echo noise"
    )
    with cat() as process:
        found = native.native(process.pid, "gdb.txt", time.monotonic(), 20)
    assert [told["problem"] for told in found["attempts"]] == ["there is no no-gdb here", ""]
    lines = found["files"]["gdb.txt"].decode().splitlines()
    assert lines == [f"Process {process.pid}: cat", f"TID {process.pid}:", "#0  0x1 read - /lib/libc.so.6"]


def test_no_debugger_is_let_at_a_program_that_is_stopped(tmp_path: Path) -> None:
    with cat() as process:
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: state(process.pid) == "T")
        found = look(tmp_path, process.pid, ras=False)
        assert state(process.pid) == "T"
    assert [told["problem"] for told in attempts(found, "stack")] == ["left alone, as it is in state T"]


def test_how_a_process_ended_is_told(tmp_path: Path) -> None:
    code = "import os, signal, subprocess, time\nchild = subprocess.Popen(['cat'], stdin=subprocess.PIPE)\nchild.kill()\nos.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)\nprint(child.pid, flush=True)\ntime.sleep(600)"
    with started(code) as process:
        found = look(tmp_path, process.pid, ras=False)
    assert [p["ended"] for p in manifest(found)["processes"] if p["state"] == "Z"] == [signal.SIGKILL]


def test_a_process_that_is_gone_is_said(tmp_path: Path, path: Path) -> None:
    found = look(tmp_path, 4_194_303)
    assert (found.processes, found.silent) == (0, {})


def test_nccl_is_asked_for_what_it_knows(tmp_path: Path, path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer_once, args=(server,)).start()
        with started(
            "import time; print(1, flush=True); time.sleep(600)", NCCL_RAS_ADDR=f"localhost:{server.getsockname()[1]}"
        ) as p:
            found = look(tmp_path, p.pid)
    assert (found.folder / "ncclras.txt").read_text() == "Job summary\n(asked: verbose status)\n"


def answer_once(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        asked = connection.recv(100).decode().strip()
        connection.sendall(f"Job summary\n(asked: {asked})\n".encode())


def test_dumps_of_the_flight_recorder_but_none_of_an_earlier_job(tmp_path: Path, path: Path) -> None:
    prefix = tmp_path / "fr" / "trace_"
    prefix.parent.mkdir()
    for name, data in (("trace_0", b"\x80\x04new"), ("trace_1", b"\x80\x04old"), ("trace_x", b"no rank")):
        (prefix.parent / name).write_bytes(data)
    os.utime(prefix.parent / "trace_1", (1, 1))
    with started("import time; print(1, flush=True); time.sleep(600)", TORCH_FR_DUMP_TEMP_FILE=str(prefix)) as p:
        found = look(tmp_path, p.pid)
    ours = {
        file.name: file.read_bytes() for file in (found.folder / "flight").iterdir() if file.name.startswith("trace_")
    }
    assert ours == {"trace_0": b"\x80\x04new"}
    assert [told["problem"] for told in attempts(found, str(prefix.parent / "trace_1"))] == [
        "older than the processes of the job: left out"
    ]


RECORDER = """
import os, sys
prefix, dump = sys.argv[1:]
os.mkfifo(prefix + "5.pipe")
pipe = os.open(prefix + "5.pipe", os.O_RDWR)
print(1, flush=True)
while True:
    if os.read(pipe, 10):
        open(dump + "5", "w").write("dumped")
"""


@pytest.mark.parametrize("trigger", [True, False])
def test_the_recorder_s_pipe_is_written_to_only_where_that_was_asked_for(
    tmp_path: Path, path: Path, trigger: bool
) -> None:
    pipe, dump = str(tmp_path / "pipe_"), str(tmp_path / "dump_")
    env = {"RANK": "5", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": pipe, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": dump}
    with started(RECORDER, pipe, dump, **env) as p:
        found = look(tmp_path, p.pid, trigger=trigger)
    assert (found.folder / "flight" / "dump_5").exists() == trigger


# ------------------------------------------------------------------------------------------ nothing is changed

HOOK = """
import os as _os, sys as _sys
_into = _os.open({noted!r}, _os.O_WRONLY | _os.O_CREAT | _os.O_APPEND)
def _note(event, args):
    if event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.kill", "os.killpg", "os.remove", "os.rename",
                 "os.mkdir", "os.rmdir", "os.chmod", "os.chown", "os.truncate", "os.link", "os.symlink", "os.utime", "os.putenv",
                 "socket.connect", "socket.bind", "shutil.rmtree", "pty.spawn", "ctypes.dlopen", "os.setxattr", "os.mknod"):
        _os.write(_into, (event + " " + repr(args) + "\\n").encode())
    elif event == "open" and isinstance(args[2], int) and args[2] & (_os.O_WRONLY | _os.O_RDWR | _os.O_CREAT | _os.O_TRUNC):
        _os.write(_into, ("write " + repr(args[0]) + "\\n").encode())
_sys.addaudithook(_note)
"""
READ_ONLY = (
    r"ps -ww -eo [\w,:]+",
    r"dmesg(?: --time-format iso)?",
    r"journalctl -k -o short-iso -n 20000 --no-pager",
    r"nvidia-smi(?: -q)?",
    r"rocm-smi",
    r"npu-smi info",
    r"gdb -nx -batch (?:-iex set [a-z -]+ )+-ex thread apply all bt 64 -p \d+",
    r"eu-stack -m -n 64 -p \d+",
    r"py-spy dump(?: --native| --nonblocking)? --pid \d+",
)


def test_nothing_but_commands_that_read_is_run_and_nothing_is_written(
    tmp_path: Path, rank: subprocess.Popen[str]
) -> None:
    noted = tmp_path / "noted"
    text = HOOK.format(noted=str(noted)) + script()
    options = {"pid": rank.pid, "seconds": 8, "stack_seconds": 2, "ras": True, "again": 0.2}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-", json.dumps(options)],
        input=text.encode(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
    events = noted.read_text().splitlines()
    commands = {
        " ".join(ast.literal_eval(re.search(r"\[.*?\]", line)[0]))  # type: ignore[index]
        for line in events
        if line.startswith("subprocess.Popen")
    }
    assert len(commands) >= 7
    assert [c for c in commands if not any(re.fullmatch(form, c) for form in READ_ONLY)] == []
    rest = [line for line in events if not line.startswith(("subprocess.Popen", "os.exec", "os.posix_spawn"))]
    connects = [line for line in rest if line.startswith("socket.connect")]
    assert all("'127.0.0.1', 1)" in line or "'::1', 1," in line for line in connects)
    killed = [line for line in rest if line.startswith("os.kill")]
    assert str(rank.pid) not in "".join(killed)
    others = [line for line in rest if line not in connects and line not in killed and line != "write '/dev/null'"]
    assert others == []


def test_it_runs_on_the_old_python_of_a_node() -> None:
    tree = ast.parse(script(), feature_version=(3, 6))
    imported = {
        (node.names[0].name if isinstance(node, ast.Import) else node.module or "").partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    assert imported <= sys.stdlib_module_names


def test_no_name_of_one_part_hides_one_of_another() -> None:
    """They are sent as one text."""
    names: list[str] = []
    for node in ast.parse(script()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    assert [name for name in names if names.count(name) > 1] == []


# ------------------------------------------------------------------------------------------ other nodes

SSH = 'while [ "$1" != -- ]; do shift; done; shift; [ "$1" = gpu-02 ] && { echo "ssh: connect to host gpu-02 port 22: No route to host" >&2; exit 255; }\nshift; echo "Welcome {to} gpu-01"; exec sh -c "$*"'


def test_a_node_that_does_not_answer_is_evidence_and_the_others_are_there(
    tmp_path: Path, path: Path, rank: subprocess.Popen[str]
) -> None:
    install(path, "ssh", SSH)
    at = reach.ssh(["ada@gpu-01", "gpu-02"])
    told: list[str] = []
    found = collecting.collect(at, Wanted(job="run 7", seconds=12), tmp_path / "out", told.append)
    assert found.silent == {"gpu-02": "ssh: connect to host gpu-02 port 22: No route to host"}
    assert (found.folder / "gpu-01" / f"pyspy-{rank.pid}.txt").exists()
    document = manifest(found)
    assert (document["schema"], document["job"], document["by"]) == ("triage.collected/1", "run 7", "ssh")
    assert {n["node"]: bool(n["problem"]) for n in document["nodes"]} == {"gpu-01": False, "gpu-02": True}
    assert len(told) == 2


def test_processes_of_a_slurm_job_are_known_by_its_id(tmp_path: Path, path: Path) -> None:
    install(
        path, "srun", 'while [ "$1" != -- ]; do shift; done; shift; export SLURM_JOB_ID=991 SLURM_STEP_ID=7; exec "$@"'
    )
    env = {"SLURM_JOB_ID": "991", "SLURM_STEP_ID": "0", "SLURM_PROCID": "4"}
    with (
        started("import time; print(1, flush=True); time.sleep(600)", **env) as p,
        started(RANK, "/dev/null", SLURM_JOB_ID="992"),
    ):
        found = collecting.collect(reach.srun("991", ["n1"]), Wanted("991", slurm="991", seconds=12), tmp_path / "out")
    assert [(told["pid"], told["rank"]) for told in manifest(found)["processes"]] == [(p.pid, 4)]


# Starts two with numbers of their own.
LAUNCHER = """
import os, subprocess, sys
ranks = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={**os.environ, sys.argv[1]: n}) for n in "45"]
print(1, flush=True)
ranks[0].wait()
"""


@pytest.mark.parametrize(
    ("name", "own"), [("OMPI_COMM_WORLD_RANK", {"SLURM_STEP_ID": "0", "SLURM_PROCID": "1"}), ("RANK", {"RANK": "1"})]
)
def test_the_number_of_a_launcher_is_that_of_no_rank(
    tmp_path: Path, path: Path, name: str, own: dict[str, str]
) -> None:
    """srun numbers the daemons of mpirun, an operator of Kubernetes its pods; what they start carries that number too."""
    with started(LAUNCHER, name, **own) as launcher:
        found = look(tmp_path, launcher.pid)
    told = {process["pid"]: process["rank"] for process in manifest(found)["processes"]}
    assert told.pop(launcher.pid) is None
    assert sorted(told.values()) == [4, 5]


@pytest.fixture
def container() -> Iterator[int]:
    """The number here of a rank that is the first process of a container."""
    program = [sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"]
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *program]
    with subprocess.Popen(command, env={**os.environ, "RANK": "3"}, stdout=subprocess.PIPE) as outside:
        assert outside.stdout
        if not outside.stdout.readline():
            pytest.skip("this user may make no container")
        yield int(Path(f"/proc/{outside.pid}/task/{outside.pid}/children").read_text())
        outside.kill()


def test_the_first_process_of_a_pod_may_be_its_rank(tmp_path: Path, path: Path, container: int) -> None:
    enter = ["nsenter", "--target", str(container), "--pid", "--mount", "--"]
    pod = reach.Reach(("train-0",), lambda _pod, argv: [*enter, *argv])
    found = collecting.collect(pod, Wanted(every=True, seconds=12), tmp_path / "out")
    assert [(told["pid"], told["rank"]) for told in manifest(found)["processes"]] == [(1, 3)]
    assert found.stacks == 1
    assert Path(f"/proc/{container}/task/{container}/children").read_text() == "", "no dead child is left to it"


def test_a_node_without_python_is_said(tmp_path: Path, path: Path) -> None:
    install(path, "ssh", "echo 'sh: 1: python3: not found' >&2; exit 127")
    found = collecting.collect(reach.ssh(["gpu-01"]), Wanted(seconds=8), tmp_path / "out")
    assert found.silent == {"gpu-01": "sh: 1: python3: not found"}


def pack(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


HOSTILE = [
    {
        "files": {
            "../../evil": pack(b"x"),
            "/etc/evil": pack(b"x"),
            "a/b": pack(b"x"),
            "logs/../../evil": pack(b"x"),
            "": pack(b"x"),
        }
    },
    {"files": {"ps.txt": "no base64", "dmesg.txt": 7, "x.txt": None}, "attempts": ["?", None, {"tool": 1}]},
    {"files": ["a"], "attempts": {}, "processes": {"a": 1}, "pid": {}},
    {"files": {"bomb.txt": pack(b"\0" * (64 << 20))}},
    [],
    7,
]


def test_what_a_node_says_cannot_leave_its_folder(tmp_path: Path) -> None:
    folder = Folder.make(tmp_path / "out", "", "ssh")
    lines = [json.dumps(said).encode() for said in HOSTILE]
    folder.add(Answer("gpu-01", 0, b"\n".join([b"motd", b"\xff\xfe{", *lines, b'{"files": {"cut']), b""))
    folder.close()
    files = {f.relative_to(tmp_path).as_posix() for f in tmp_path.rglob("*") if f.is_file()}
    assert files == {"out/manifest.json", "out/gpu-01/bomb.txt"}
    assert (tmp_path / "out/gpu-01/bomb.txt").stat().st_size <= MOST_FILE
    assert folder.silent == {"gpu-01": "ended early with exit code 0"}


def test_logs_of_the_same_name_are_kept_apart(tmp_path: Path) -> None:
    folder = Folder.make(tmp_path / "out", "", "ssh")
    said = [
        {"pid": n, "files": {"logs/stdout.log": pack(b"rank %d%s" % (n, where))}}
        for n, where in ((7, b""), (8, b""), (8, b" eval"), (8, b" test"))
    ]
    folder.add(Answer("gpu-01", 0, b"\n".join(json.dumps(one).encode() for one in said)))
    assert {f.name: f.read_text() for f in (tmp_path / "out/gpu-01/logs").iterdir()} == {
        "stdout.log": "rank 7",
        "8-stdout.log": "rank 8",
        "8.2-stdout.log": "rank 8 eval",
        "8.3-stdout.log": "rank 8 test",
    }


def test_a_name_that_is_no_text_is_no_harm(tmp_path: Path) -> None:
    log = os.fsdecode(bytes(tmp_path) + b"/caf\xe9.log")
    with started("import sys, time; f = open(sys.argv[1], 'w'); print(1, flush=True); time.sleep(600)", log) as p:
        found = look(tmp_path, p.pid)
    assert "caf?.log" in read(found, f"fds-{p.pid}.txt")
    assert f"tail {tmp_path}/caf?.log" in [told["tool"] for told in attempts(found, "tail")]


WATCHED = """
import subprocess, sys, time
look = subprocess.Popen([sys.executable, "-", "triage-look", "{}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
look.stdin.write(b"import subprocess; print(1, flush=True); subprocess.run(['sleep', '600'])")
look.stdin.close()
look.stdout.readline()
print(1, flush=True)
time.sleep(600)
"""


def test_the_look_of_a_watcher_is_none_of_the_job(tmp_path: Path, path: Path) -> None:
    with started(WATCHED, RANK="0") as job:
        found = look(tmp_path, job.pid)
    assert [told["pid"] for told in manifest(found)["processes"]] == [job.pid]


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(UsageError, match="is not empty"):
        collecting.collect(reach.local(), Wanted(), tmp_path)
    with pytest.raises(InputError, match="cannot be made"):
        collecting.collect(reach.local(), Wanted(), tmp_path / "mine" / "x")
