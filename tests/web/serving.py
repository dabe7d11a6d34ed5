"""A real `triage serve` on a free port, with a token of each role."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.conftest import REPO

READ, WRITE = "r" * 32, "w" * 32
PATIENCE = 120.0  # seconds that a diagnosis may take on a busy machine
LOST_GPU = REPO / "examples" / "lost-gpu"


def as_(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@dataclass
class Served:
    process: subprocess.Popen[str]
    url: str
    home: Path

    def client(self, token: str = WRITE, accept: str = "application/json") -> httpx.Client:
        own = as_(token) if token else {}
        return httpx.Client(base_url=self.url, headers={"accept": accept, **own}, timeout=PATIENCE)

    def diagnosed(self, files: dict[str, bytes]) -> int:
        """The incident of these logs."""
        with self.client() as client:
            sent = client.post("/api/v1/jobs", files=[("logs", (name, data)) for name, data in files.items()])
            assert sent.status_code == 202, sent.text
            return self.waited(client, sent.json()["id"])

    def waited(self, client: httpx.Client, job: str) -> int:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = client.get(f"/api/v1/jobs/{job}").json()
            assert found["state"] != "failed", found
            if found["state"] == "done":
                return int(found["incident"])
            time.sleep(0.1)
        raise AssertionError(f"job {job} is not done after {PATIENCE} s")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


def start(home: Path, *flags: str, **env: str) -> Served:
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("TRIAGE_")}
    surroundings |= {
        "TRIAGE_HOME": str(home),
        "TRIAGE_SERVE_TOKENS": f"looker:read:{READ};oncall:write:{WRITE}",
        "PYTHONPATH": str(REPO),
        **env,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "triage", "serve", "--port", "0", *flags],
        env=surroundings, cwd=REPO, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"serving (http://[^/;\s]+)", line):
            threading.Thread(target=process.stderr.read, daemon=True).start()  # a pipe that nobody reads would stop it
            return Served(process, found[1], home)
    raise AssertionError("the server ended")


def kill(served: Served) -> None:
    """It, and what it started."""
    if served.process.poll() is None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            served.end()
    if served.process.poll() is None:
        os.killpg(served.process.pid, signal.SIGKILL)
        served.process.wait()
