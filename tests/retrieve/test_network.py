"""Nothing leaves the machine: indexing and searching open no connection and ask no name server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.retrieve.conftest import REPO

LINGER = 12  # seconds; left alone, onnxruntime looks up hosts some 9 s after it was loaded
WORK = """
import sys, time
from pathlib import Path
from triage import kb
from triage.retrieve.embedding import MINILM
from triage.retrieve.rank import Query
from triage.retrieve.retriever import open_retriever

asked = []
sys.addaudithook(lambda event, args: asked.append((event, args)) if event.startswith(("socket.connect", "socket.get", "socket.send")) else None)
retriever = open_retriever(Path(sys.argv[1]), "", MINILM, kb.known_incidents()[:5])
assert retriever.sync() > 0
assert retriever.similar(Query("GPU died with an unknown CUDA error"), min_score=0)
assert not asked, asked
time.sleep(float(sys.argv[2]))
print("worked")
"""


def work(home: Path, *tracer: str, linger: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    return subprocess.run(
        [*tracer, sys.executable, "-c", WORK, str(home), str(linger)],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )


def test_python_opens_no_connection(tmp_path: Path) -> None:
    found = work(tmp_path)
    assert found.stdout == "worked\n", found.stderr


def test_native_code_opens_no_connection_either(tmp_path: Path) -> None:
    """The audit hook above does not see what C++ and Rust do; the kernel does."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    trace = tmp_path / "trace"
    watch = [strace, "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", str(trace)]
    found = work(tmp_path / "home", *watch, linger=LINGER)
    if "ptrace" in found.stderr.lower():
        pytest.skip("this machine does not allow tracing")
    assert found.stdout == "worked\n", found.stderr
    outside = [line for line in trace.read_text("utf-8", "replace").splitlines() if re.search(r"AF_INET6?\b", line)]
    assert outside == []
