"""`triage slurm`: what a site sets up once."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import typer

from triage.cli import output
from triage.errors import UsageError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.callback()
def slurm() -> None:
    """Slurm: have each failed job diagnosed by itself."""


@app.command("install-epilog")
def install_epilog(
    after: bool = typer.Option(
        False, "--afternotok", help="For users: submit a second job that diagnoses the first when it fails."
    ),
    log: str = typer.Option("/var/log/triage-epilog.log", "--log", metavar="FILE", help="What the diagnoses print."),
    settings: str = typer.Option(
        "/etc/triage/epilog.env", "--settings", metavar="FILE", help="NAME=value lines with settings of triage."
    ),
    run_as: str = typer.Option("", "--run-as", metavar="USER", help="Who reads the logs; default: the job's own user."),
    slots: int = typer.Option(2, "--slots", min=1, max=64, help="Diagnoses at a time on one machine."),
    most: int = typer.Option(900, "--most", min=10, metavar="SECONDS", help="Time for one diagnosis."),
    gather: int = typer.Option(
        60, "--gather", min=0, metavar="SECONDS", help="Wait for more tasks of an array, which are diagnosed together."
    ),
) -> int:
    """Print a script for Epilog= or EpilogSlurmctld= that diagnoses each failed job in the background.

    It ends at once and with 0, whatever happens. To set it up:

    triage slurm install-epilog > /etc/slurm/triage-epilog.sh; chmod 755 /etc/slurm/triage-epilog.sh
    """
    from triage.slurm.epilog import Epilog

    made = Epilog(_program(), settings, log, run_as, slots, most, gather)
    output.write(made.after() if after else made.script())
    return 0


def _program() -> str:
    """The command as it was installed: epilogs and jobs have another PATH than this shell."""
    beside = Path(sys.argv[0])
    found = str(beside.absolute()) if beside.name == "triage" and beside.is_file() else shutil.which("triage")
    if found is None:
        raise UsageError(
            "the command triage is not in PATH",
            "run this by the path that the nodes have it under: /opt/triage/bin/triage",
        )
    return found
