"""`triage hang` as a user runs it: a folder of what was collected, whole output and exit codes."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

SHARED = Path(os.environ.get("TRIAGE_SHARED", Path(__file__).parents[2].parent / "shared")) / "logs"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="needs the real logs beside the repository")

# Ranks that meet in a collective of their own; one sleeps. Stacks are printed on SIGUSR1.
JOB = """
import faulthandler, os, signal, sys, threading, time
faulthandler.register(signal.SIGUSR1, file=open(sys.argv[2], "w"), all_threads=True)
from torch.distributed.distributed_c10d import barrier
def evaluate():
    time.sleep(600)
def train(rank):
    evaluate() if rank == 2 else barrier()
print("ready", flush=True)
train(int(sys.argv[1]))
"""
BARRIER = "import threading\ndef barrier():\n    threading.Event().wait(600)\n"


def diagnosis(triage: Run, *given: str) -> tuple[int, dict[str, Any]]:
    done = triage("hang", *given, "--format", "json", "--no-record")
    return done.returncode, json.loads(done.stdout)


def test_nothing_given_and_nothing_there_are_told_in_one_line(triage: Run) -> None:
    for given in ([], ["nowhere"], ["--format", "json", "nowhere"]):
        done = triage("hang", *given)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert given or "triage hang DIR" in done.stderr


def test_its_help_tells_of_what_is_read_and_of_the_exit_codes(triage: Run) -> None:
    done = triage("hang", "--help")
    assert done.returncode == 0
    assert all(word in done.stdout for word in ("py-spy", "flight-recorder", "--format", "Exit codes"))


def test_a_log_is_diagnosed_as_diagnose_does(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(
        "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\nKeyError: 'a'\n"
    )
    by_hang, by_diagnose = (
        json.loads(triage(command, "job.log", "--format", "json", "--no-record").stdout)
        for command in ("hang", "diagnose")
    )
    timed = {"timing": None}
    assert {**by_hang, **timed} == {**by_diagnose, **timed}


@pytest.mark.parametrize("tool", ["faulthandler", "py-spy", "gdb"])
def test_real_processes_by_the_tools_that_are_here(tool: str, triage: Run, tmp_path: Path) -> None:
    found = shutil.which(tool, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if tool != "faulthandler" and not found:
        pytest.skip(f"no {tool} here")
    library = tmp_path / "lib" / "torch" / "distributed"
    library.mkdir(parents=True)
    for package in (library, library.parent):  # a whole one, which goes before a torch that is installed
        (package / "__init__.py").touch()
    (library / "distributed_c10d.py").write_text(BARRIER)
    (tmp_path / "train.py").write_text(JOB)
    folder = tmp_path / "collected"
    folder.mkdir()
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "lib")}
    ranks = [
        subprocess.Popen([sys.executable, tmp_path / "train.py", str(rank), folder / f"rank{rank}.txt"], stdout=subprocess.PIPE, env=env)
        for rank in range(4)
    ]  # fmt: skip
    try:
        for rank in ranks:
            assert rank.stdout and rank.stdout.readline() == b"ready\n"
        time.sleep(0.5)
        for number, rank in enumerate(ranks):
            if tool == "faulthandler":
                rank.send_signal(signal.SIGUSR1)
            elif not _taken(str(found), rank.pid, folder / f"{tool.replace('-', '')}-{rank.pid}.txt"):
                pytest.skip(f"{tool} may not attach here")
            else:
                (folder / f"rank{number}.txt").unlink()
        rows = subprocess.run(["ps", "-o", "pid,ppid,stat,wchan:32,args", "-p", ",".join(str(r.pid) for r in ranks)], capture_output=True, check=False)  # fmt: skip
        if rows.returncode == 0 and tool != "faulthandler":
            (folder / "ps.txt").write_bytes(rows.stdout)
        time.sleep(0.5)
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
            assert rank.stdout
            rank.stdout.close()
    code, d = diagnosis(triage, "collected")
    if tool == "gdb":  # native frames alone: it names no function of Python
        assert len(d["stacks"]["classes"]) >= 1
        return
    assert (code, d["outcome"], d["failure_type"]) == (0, "hung", "hang")
    (apart,) = [c for c in d["stacks"]["classes"] if c["apart"]]
    assert "evaluate (train.py)" in [frame.replace(f"{tmp_path}/", "") for frame in apart["frames"]]
    assert d["suspects"]["ranks"] == [2] if tool == "faulthandler" else d["suspects"]["pids"] == [ranks[2].pid]
    shown = triage("hang", "collected", "--no-record").stdout
    assert "Stacks, by rank" in shown and "<- apart" in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if not line.lstrip().startswith("$ "))


def _taken(tool: str, pid: int, file: Path) -> bool:
    args = (
        [tool, "dump", "--pid", str(pid)]
        if "py-spy" in tool
        else [tool, "-p", str(pid), "-batch", "-ex", "thread apply all bt"]
    )
    done = subprocess.run(args, capture_output=True, check=False, timeout=60)
    file.write_bytes(done.stdout)
    return b"Thread" in done.stdout


# ------------------------------------------------------------------------------------------ real hangs
@real
def test_a_frozen_file_system_by_a_write_up_kernel_log_and_gpu_queries(triage: Run) -> None:
    code, d = diagnosis(triage, str(SHARED / "r052"))
    assert (code, d["outcome"], d["failure_type"], d["root_cause_class"]) == (
        0,
        "hung",
        "storage-error",
        "dependency-failure",
    )
    assert d["suspects"] == {"nodes": ["jean-zay-iam06"], "ranks": [0], "gpus": ["0"], "pids": [280058]}
    roots = {Path(e["file"]).name for e in d["evidence"] if e["role"] == "root"}
    assert roots >= {"dmesg.txt", "README.md"}
    assert d["action"] == "escalate"


@real
def test_a_kernel_log_alone(triage: Run) -> None:
    code, d = diagnosis(triage, str(SHARED / "r053" / "job.txt"))
    assert (code, d["outcome"], d["failure_type"]) == (0, "hung", "storage-error")


@real
@pytest.mark.parametrize(("log", "ranks"), [("r015", [12, 14]), ("r016", [9, 14])])
def test_flight_recorders_of_many_ranks_alone_name_those_who_never_came(
    log: str, ranks: list[int], triage: Run, tmp_path: Path
) -> None:
    for dump in (SHARED / log).glob("_dump_*"):
        shutil.copy(dump, tmp_path)
    _, d = diagnosis(triage, str(tmp_path))
    assert (d["outcome"], d["failure_type"]) == ("hung", "hang")
    assert set(d["suspects"]["ranks"]) <= set(ranks) and d["suspects"]["ranks"]


# ------------------------------------------------------------------------------------------ odd input
class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {os.environ['HANG_PROOF']}",)


def stack(rank: int, *frames: str) -> str:
    head = [f"Process {4000 + rank}: python train.py --rank {rank}", "Python v3.11.7 (/usr/bin/python3.11)", ""]
    return "\n".join([*head, f'Thread {4000 + rank} (idle): "MainThread"', *frames, "    main (train.py:104)", ""])


BARRIER_FRAME = "    barrier (torch/distributed/distributed_c10d.py:5356)"


def test_a_dump_that_would_run_something_runs_nothing_and_the_rest_is_diagnosed(
    triage: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = tmp_path / "proof"
    monkeypatch.setenv("HANG_PROOF", str(proof))
    folder = tmp_path / "flight"
    folder.mkdir()
    for rank in range(3):
        body: dict[str, Any] = {"version": "2.5", "pg_config": {}, "entries": [Evil()]}
        (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(body, protocol=4))
    for rank in range(4):
        (tmp_path / f"r{rank}.txt").write_text(stack(rank, "    spin (mine.py:9)" if rank == 3 else BARRIER_FRAME))
    code, d = diagnosis(triage, str(tmp_path))
    assert not proof.exists()
    assert (code, d["outcome"], d["suspects"]["ranks"]) == (0, "hung", [3])
    assert any("nothing of it was run" in note for note in d["missing"])


def test_a_folder_of_no_use(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert triage("hang", "empty").returncode == 2
    binary = tmp_path / "binary"
    binary.mkdir()
    (binary / "core.4711").write_bytes(bytes(range(256)) * 64)
    done = triage("hang", "binary")
    assert (done.returncode, "binary" in done.stderr) == (2, True)
    (binary / "ps.txt").write_text("")
    (binary / "pyspy-1.txt").write_text("Error: No such process (os error 3)\n")
    (binary / "nvidia-smi.txt").write_text(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
    )
    assert triage("hang", "binary", "--no-record").returncode in (0, 1)


def test_many_ranks_are_merged_in_time(triage: Run, tmp_path: Path) -> None:
    """Processes have the same numbers on each node, and the manifest says which rank each is."""
    processes = []
    for rank in range(512):
        frames = (
            ("    spin (mine.py:9)",)
            if rank == 307
            else ("    wait (torch/_utils.py:9)", BARRIER_FRAME, "    save (ckpt.py:4)")
        )
        node, pid = f"gpu{rank // 8:03d}", 4000 + rank % 8
        (tmp_path / "collected" / node).mkdir(parents=True, exist_ok=True)
        text = stack(rank % 8, *frames).replace(f" --rank {rank % 8}", "")
        (tmp_path / "collected" / node / f"pyspy-{pid}.txt").write_text(text)
        processes.append(
            {"node": node, "pid": pid, "ppid": 3, "state": "S", "comm": "python", "rank": rank, "started": 1.0}
        )
    manifest = {"schema": "triage.collected/1", "job": "1", "nodes": [], "processes": processes, "commands": []}
    (tmp_path / "collected" / "manifest.json").write_text(json.dumps(manifest, indent=1))
    code, d = diagnosis(triage, "collected")
    assert (code, d["suspects"]["ranks"], d["suspects"]["pids"]) == (0, [307], [4003])
    assert [len(c["ranks"]) for c in d["stacks"]["classes"]] == [511, 1]
    assert sum(d["timing"].values()) < 20


def test_it_is_recorded_as_an_incident_with_its_stacks(triage: Run, tmp_path: Path) -> None:
    for rank in range(4):
        (tmp_path / f"r{rank}.txt").write_text(stack(rank, "    spin (mine.py:9)" if rank == 1 else BARRIER_FRAME))
    done = triage("hang", str(tmp_path), "--format", "json")
    d = json.loads(done.stdout)
    shown = json.loads(triage("incidents", "show", str(d["incident"]), "--format", "json").stdout)
    assert shown["stacks"] == d["stacks"]
    markdown = triage("hang", str(tmp_path), "--format", "markdown", "--no-record").stdout
    assert "### Stacks, by rank" in markdown
