"""The epilog that has each failed job diagnosed, and the same for users who may not set one. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from importlib import resources

AFTER = """\
# A job of yours that is diagnosed when it fails, with no administrator's help:
job=$(sbatch --parsable train.sh) && job=${{job%%;*}} && sbatch --dependency=afternotok:$job --kill-on-invalid-dep=yes \\
    --job-name=triage-$job --output=triage-$job.txt --time=15 --mem=4G --wrap="{triage} diagnose --job $job"
"""


@dataclass(frozen=True, slots=True)
class Epilog:
    """What the script is made with. triage: the program; slots: diagnoses at a time on one machine; most, gather: seconds,
    for one diagnosis and to wait for more tasks of an array; waiting: jobs that wait for theirs."""

    triage: str
    settings: str = "/etc/triage/epilog.env"
    log: str = "/var/log/triage-epilog.log"
    run_as: str = ""
    slots: int = 2
    most: int = 900
    gather: int = 60
    waiting: int = 200

    def script(self) -> str:
        text = resources.files("triage.slurm").joinpath("epilog.sh").read_text("utf-8")
        told = {
            "TRIAGE": self.triage, "SETTINGS": self.settings, "LOG": self.log, "RUN_AS": self.run_as,
            "SLOTS": self.slots, "MOST": self.most, "GATHER": self.gather, "WAITING": self.waiting,
        }  # fmt: skip
        for name, value in told.items():
            text = text.replace(f"@{name}@", shlex.quote(str(value)))
        return text

    def after(self) -> str:
        """For users: a second job that depends on the failure of the first."""
        return AFTER.format(triage=shlex.quote(self.triage))
