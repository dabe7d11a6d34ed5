"""`triage hang collect`: a real process is looked at; what was collected is read by `triage hang`."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.conftest import REPO


@pytest.fixture
def rank() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait(20)


def test_one_command_collects_and_says_what_comes_next(
    triage: Run, tmp_path: Path, rank: subprocess.Popen[bytes]
) -> None:
    done = triage("hang", "collect", "--pid", str(rank.pid), "--out", "got", "--timeout", "20", "--again", "0")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("got: 1 of 1 nodes answered, 1 processes of the job,")
    assert done.stdout.endswith("next: triage hang got\n")
    document = json.loads((tmp_path / "got" / "manifest.json").read_text())
    assert [told["pid"] for told in document["processes"]] == [rank.pid]


def test_without_a_name_the_folder_is_named_after_job_and_time(
    triage: Run, tmp_path: Path, rank: subprocess.Popen[bytes]
) -> None:
    triage("hang", "collect", "--pid", str(rank.pid), "--timeout", "10", "--again", "0")
    assert [f.name.startswith(f"hang-pid-{rank.pid}-2") for f in tmp_path.iterdir()] == [True]


def test_what_was_collected_is_diagnosed(triage: Run, tmp_path: Path, rank: subprocess.Popen[bytes]) -> None:
    triage("hang", "collect", "--pid", str(rank.pid), "--out", "got", "--timeout", "20", "--again", "0")
    for log in tmp_path.glob("got/*/dmesg.txt"):  # other tests crash processes meanwhile
        log.unlink()
    done = triage("hang", "got", "--format", "json", "--no-record")
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["outcome"] in ("hung", "unknown")


def test_nodes_that_did_not_answer_are_told_by_the_exit_code(triage: Run, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    ssh = tmp_path / "bin" / "ssh"
    ssh.write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; [ "$1" = n2 ] && exit 255; shift; exec sh -c "$*"\n'
    )
    ssh.chmod(0o755)
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={"RANK": "0"}) as rank:
        one = triage("hang", "collect", "--ssh", "n1", "--out", "one", "--timeout", "10", "--again", "0", PATH=path)
        rank.kill()
    assert (one.returncode, "next: triage hang one" in one.stdout) == (0, True), one.stdout
    some = triage("hang", "collect", "--ssh", "n1,n2", "--out", "some", "--timeout", "10", "--again", "0", PATH=path)
    assert some.returncode == 1
    assert "  n2: ssh could not reach it\n" in some.stdout
    none = triage("hang", "collect", "--ssh", "n2", "--out", "none", "--timeout", "10", "--again", "0", PATH=path)
    assert (none.returncode, "next:" in none.stdout) == (2, False)


@pytest.mark.parametrize(("nodes", "kept"), [("n1,n2", "what others told is in got"), ("n2", "nothing is kept")])
def test_who_ends_it_early_is_told_what_is_kept(tmp_path: Path, nodes: str, kept: str) -> None:
    told = {"files": {"ps.txt": base64.b64encode(zlib.compress(b"PID")).decode()}, "end": True}
    began, ssh = tmp_path / "began", tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\n'
        f"case $2 in n1) echo '{json.dumps(told)}';; *) touch {began}; exec sleep 600;; esac\n"
    )
    ssh.chmod(0o755)
    command = [sys.executable, "-m", "triage", "hang", "collect", "--ssh", nodes, "--out", "got"]
    env = {**os.environ, "PATH": f"{ssh.parent}:{os.environ['PATH']}", "TRIAGE_HOME": str(tmp_path / "home")}
    env["PYTHONPATH"] = str(REPO)
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        ends = time.monotonic() + 60
        while not (began.exists() and (nodes == "n2" or (tmp_path / "got" / "n1").exists())):
            assert time.monotonic() < ends
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
    assert (run.returncode, out, err) == (130, "", f"triage: ended before all nodes had answered: {kept}\n")
    assert (tmp_path / "got").exists() is (nodes == "n1,n2")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "nothing to look at; give one of --pid, --job, --pod and --ssh"),
        (("--pid", "1", "--ssh", "a"), "--pid and --ssh exclude each other"),
        (("--pid", "4194303"), "there is no process 4194303 on this machine"),
        (("--pid", "1", "--nodes", "a"), "--nodes stands alone"),
        (("--ssh", "a,-oProxyCommand=id"), "'-oProxyCommand=id' is no name of a node"),
        (("--pod", "-w"), "'-w' is no pod of Kubernetes"),
        (("--pod", "ml/a", "--pod", "b/a"), "the pods are of several namespaces"),
        (("--job", "12;id", "--nodes", "a"), "is no job id of Slurm"),
    ],
)
def test_wrong_use_is_one_line(triage: Run, args: tuple[str, ...], said: str) -> None:
    done = triage("hang", "collect", *args)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
