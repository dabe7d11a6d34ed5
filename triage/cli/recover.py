"""`triage recover`: from a diagnosis to a safe restart."""

from __future__ import annotations

from pathlib import Path

import typer
from typer.core import TyperGroup

from triage.cli import output

_PARTS = ("node-test", "checkpoints", "spikes", "interval")


class _OfIncident(TyperGroup):
    """`triage recover 12` is `triage recover plan 12`."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        words = [arg for arg in args if not arg.startswith("-")]
        if words and not set(words[:1]) & {"plan", *_PARTS}:
            args = ["plan", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_OfIncident, add_completion=False, rich_markup_mode=None, no_args_is_help=True)

FORMAT = typer.Option(None, "--format", help="text, json or markdown.", show_default="text")
TEXT_OR_JSON = typer.Option(None, "--format", help="text or json.", show_default="text")
YES = typer.Option(False, "--yes", help="Run what the settings allow; without it everything is only shown.")


@app.callback()
def root() -> None:
    """A plan to get a failed job running again: `triage recover INCIDENT`.

    Nothing is run without --yes, and then only steps that read, or whose kind TRIAGE_RECOVER_ALLOW names.
    """


@app.command("plan")
def plan(
    incident: int = typer.Argument(metavar="INCIDENT", help="The number that `triage incidents list` shows."),
    checkpoints_of: Path = typer.Option(
        None, "--checkpoints", metavar="DIR", help="Where the job saves, to name the checkpoint."
    ),
    log: list[str] = typer.Option([], metavar="PATH", help="The job's log, to look for a loss spike; may be repeated."),
    script: str = typer.Option("", metavar="FILE", help="The batch script, to submit the job anew."),
    kill_switch: str = typer.Option(
        "", metavar="FILE", help="The file whose presence makes the training save and leave."
    ),
    scheduler: str = typer.Option("", help="slurm, kubernetes, pbs, lsf, sge or flux, where the record does not tell."),
    without: str = typer.Option("", metavar="LIST", help="Nodes that a node test named: drained and left out too."),
    yes: bool = YES,
    format: str = FORMAT,  # noqa: A002
) -> int:
    """The plan for an incident; `triage recover INCIDENT` is the same."""
    chosen = output.check_format(format)
    from triage.cli import recover_plan

    asked = recover_plan.Asked(checkpoints_of, log, script, kill_switch, scheduler, without)
    return recover_plan.show(incident, asked, yes, chosen)


@app.command("node-test")
def node_test(
    nodes: str = typer.Option(..., metavar="LIST", help="Nodes to test, as Slurm writes them: gpu[001-016]."),
    known_good: str = typer.Option("", metavar="LIST", help="Nodes that are known to work, to test the others with."),
    check: str = typer.Option("nccl", help="nccl, gloo, dcgm, or a command that ends with 0 on a world that works."),
    by: str = typer.Option("srun", help="How processes get to the nodes: srun or ssh."),
    ranks: int = typer.Option(1, min=1, max=64, help="Processes of each node, one GPU each."),
    timeout: int = typer.Option(60, min=1, max=86_400, help="Seconds for one world."),
    most_rounds: int = typer.Option(24, min=1, max=2000, help="After so many rounds the rest is undecided."),
    python: str = typer.Option("python3", help="The Python on the nodes that has torch."),
    srun_option: list[str] = typer.Option([], metavar="OPTION", help="One more option for srun; may be repeated."),
    print_jobs: bool = typer.Option(
        False, "--print", help="Print the jobs of the next round as a script, and run nothing."
    ),
    results: list[Path] = typer.Option(
        [], metavar="FILE", help="What the printed jobs of earlier rounds left; may be repeated."
    ),
    incident: int = typer.Option(None, help="Record what is run with this incident."),
    yes: bool = YES,
    format: str = TEXT_OR_JSON,  # noqa: A002
) -> int:
    """Find faulty nodes by allgathers in pairs, then of each suspect with nodes that passed."""
    chosen = output.check_format(format, ("text", "json"))
    from triage.cli import recover_nodes as part

    test = part.prepared(
        nodes, known_good, check, by, most_rounds, ranks=ranks, timeout=timeout, python=python, options=srun_option
    )
    if results:
        return part.from_results(test, results, print_jobs, chosen)
    if print_jobs:
        return part.print_round(test, [])
    return part.run(test, incident, yes, chosen)


@app.command()
def checkpoints(
    folder: Path = typer.Argument(metavar="DIR", help="The folder that the job saves to, or one checkpoint."),
    reached: int = typer.Option(
        None,
        min=0,
        max=10**12,
        metavar="STEP",
        help="The last step of the job, for the steps lost.",
        show_default="the newest checkpoint's",
    ),
    format: str = TEXT_OR_JSON,  # noqa: A002
) -> int:
    """The newest complete checkpoint, and what is wrong with those after it."""
    chosen = output.check_format(format, ("text", "json"))
    from triage.cli import recover_checkpoints

    return recover_checkpoints.show(folder, reached, chosen)


@app.command("spikes")
def spikes(
    paths: list[str] = typer.Argument(metavar="PATH...", help="The job's logs: files, folders or - for stdin."),
    format: str = TEXT_OR_JSON,  # noqa: A002
) -> int:
    """Where the loss or the gradient norm jumped or became NaN, whether it came back, and which batches to leave out."""
    chosen = output.check_format(format, ("text", "json"))
    from triage.cli import recover_spikes

    return recover_spikes.show(paths, chosen)


@app.command()
def interval(
    paths: list[str] = typer.Argument(None, metavar="[PATH...]", help="The job's logs, to measure saves and steps."),
    incident: int = typer.Option(
        None, help="Take the failure rate and the number of GPUs from the record of this incident."
    ),
    save: float = typer.Option(None, min=0.001, max=1e6, help="Seconds that a save holds the job up."),
    every: float = typer.Option(None, min=1, max=1e8, help="Seconds between saves now."),
    mtbf: float = typer.Option(None, min=0.001, max=1e6, help="Hours between failures of the job."),
    detect: float = typer.Option(
        600.0, min=0, max=1e8, help="Seconds until a failure is noticed: the watchdog's time."
    ),
    restart: float = typer.Option(600.0, min=0, max=1e8, help="Seconds from there to the first step."),
    gpus: int = typer.Option(None, min=1, help="GPUs of the job, for a guess at its failure rate."),
    format: str = TEXT_OR_JSON,  # noqa: A002
) -> int:
    """How often to save: where saves and lost work cost least, and what they cost now."""
    chosen = output.check_format(format, ("text", "json"))
    from triage.cli import recover_interval

    given = recover_interval.Given(save, every, mtbf, detect, restart, gpus)
    return recover_interval.show(paths or [], incident, given, chosen)
