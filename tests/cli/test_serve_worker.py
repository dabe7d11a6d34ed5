"""The process that diagnoses for the server, spoken with as the server does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import REPO


def test_what_cannot_be_recorded_is_told_all_the_same(tmp_path: Path) -> None:
    asked = {
        "folder": str(REPO / "examples" / "lost-gpu"),
        "paths": ["gpu-042.dmesg"],
        "scheduler": "",
        "asked": "",
        "who": "ada",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRIAGE_")}
    env = {
        "TRIAGE_HOME": str(tmp_path / "home"),
        "TRIAGE_DATABASE_URL": f"sqlite:///{tmp_path}",
        "PYTHONPATH": str(REPO),
    }
    done = subprocess.run(
        [sys.executable, "-m", "triage.cli.serve_worker"],
        input=json.dumps(asked) + "\n", env=kept | env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    error = json.loads(done.stdout.splitlines()[-1])["error"]
    assert "the incident was not recorded" in error and f"{tmp_path} is a folder" in error
    assert "What was found: gpu-lost (established): GPU fell off the bus (Xid 79) on gpu-042" in error
