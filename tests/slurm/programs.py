"""Programs that answer as Slurm's do."""

from __future__ import annotations

import os
from pathlib import Path

from tests.slurm.shapes import JOB, columns, table

GONE = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"


class FakePrograms:
    """sacct, scontrol and sinfo of this folder, and what they were called with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.sacct("")
        self.program("scontrol", GONE)
        self.program("sinfo", "exit 0")

    def program(self, name: str, body: str) -> None:
        path = self.folder / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> "{self.folder}/calls"\n{body}\n')
        path.chmod(0o755)

    def sacct(self, text: str, version: str = "24.05") -> None:
        (self.folder / "rows").write_text(text or table(version))
        fields = " ".join(columns(version))
        self.program(
            "sacct",
            f'case "$*" in *helpformat*) echo "{fields}";; *batch-script*) ;; *) cat "{self.folder}/rows";; esac',
        )

    def scontrol(self, text: str) -> None:
        (self.folder / "shown").write_text(text)
        self.program("scontrol", f'cat "{self.folder}/shown"')

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": f"{self.folder}:{os.environ['PATH']}"}


def row(folder: Path, **told: str) -> dict[str, str]:
    """A job that ended now; its log lies in the folder."""
    return (
        JOB
        | {
            "WorkDir": str(folder),
            "StdOut": "%j.out",
            "Start": "2020-01-01T00:00:00+0000",
            "End": "2099-01-01T00:00:00+0000",
        }
        | told
    )
