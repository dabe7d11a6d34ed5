"""`triage hang collect`: what a hang needs, from every node of the job, into a folder."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from triage.errors import UsageError

if TYPE_CHECKING:
    from triage.collecting import Collected, Wanted
    from triage.reach import Reach

_SHOWN = 8  # problems on the screen; all of them stand in the manifest


def collect(
    pid: int | None = typer.Option(
        None, "--pid", metavar="P", min=1, help="A process of this machine and all below it."
    ),
    job: str | None = typer.Option(None, "--job", metavar="ID", help="A Slurm job, by srun on each of its nodes."),
    nodes: str | None = typer.Option(None, "--nodes", metavar="A,B", help="With --job: these of its nodes."),
    pods: list[str] | None = typer.Option(None, "--pod", metavar="NAME", help="A pod; may be given several times."),
    namespace: str = typer.Option("", "--namespace", "-n", metavar="NS", help="Of the pods."),
    container: str = typer.Option("", "--container", "-c", metavar="NAME", help="Of the pods."),
    hosts: str | None = typer.Option(None, "--ssh", metavar="A,B", help="Hosts that ssh reaches without a password."),
    out: Path | None = typer.Option(None, "--out", metavar="DIR", help="A new folder.", show_default="hang-JOB-TIME"),
    timeout: float = typer.Option(60.0, "--timeout", metavar="S", min=4, max=3600, help="Seconds for each node."),
    again: float = typer.Option(
        10.0,
        "--again",
        metavar="S",
        min=0,
        max=3600,
        help="Look at the stacks again after S: what moved between does not hang; 0: once.",
    ),
    nonblocking: bool = typer.Option(
        False, "--nonblocking", help="Stop no process for its stack, not even for a moment; stacks may be torn."
    ),
    trigger: bool = typer.Option(
        False,
        "--trigger-dump",
        help="Ask PyTorch's flight recorders for a dump, by their pipes: the one thing that writes.",
    ),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress and notes."),
) -> int:
    """Collect stacks, process states, GPU, kernel and collective state of a job that hangs; nothing is changed.

    Exit codes: 0 every node answered, 1 some did not, or none has a process of the job, 2 none answered.
    """
    chosen = [name for name, given in (("--pid", pid), ("--job", job), ("--pod", pods), ("--ssh", hosts)) if given]
    if len(chosen) != 1:
        raise UsageError(
            " and ".join(chosen) + " exclude each other" if chosen else "nothing to look at",
            "give one of --pid, --job, --pod and --ssh",
        )
    if nodes and not job:
        raise UsageError("--nodes stands alone", "it goes with --job; hosts that ssh reaches are --ssh A,B")
    if pid and not Path(f"/proc/{pid}").exists():
        raise UsageError(
            f"there is no process {pid} on this machine", "name one that runs, or use --job, --pod or --ssh"
        )
    from triage import collecting
    from triage.cli import output, stopping, wiring
    from triage.collecting import Wanted

    raw, at = _slurm(job, nodes) if job else ("", _reach(pods, namespace, container, hosts))
    wanted = Wanted(
        job=job or (f"pid {pid}" if pid else ",".join(pods or [hosts or ""])),
        pid=pid,
        slurm=raw,
        every=bool(pods),
        seconds=timeout,
        again=again,
        nonblocking=nonblocking,
        trigger=trigger,
        ras=not wiring.settings().offline,
    )
    folder = out or Path(f"hang-{_stem(wanted)}-{datetime.now(UTC):%Y%m%dT%H%M%S}")
    try:
        with stopping.cleaned_up():
            found = collecting.collect(at, wanted, folder, output.teller(quiet))
    except typer.Exit:
        output.clear_progress(quiet)
        output.note(f"ended before all nodes had answered: {_kept(folder)}", quiet)
        raise
    output.clear_progress(quiet)
    output.write_last(_told(found))
    if len(found.silent) == len(found.nodes):
        return 2
    return 1 if found.silent or not found.processes else 0


def _reach(pods: list[str] | None, namespace: str, container: str, hosts: str | None) -> Reach:
    from triage import reach

    if pods:
        from triage.kube import names

        named = [names.parse(pod, namespace, pod=True) for pod in pods]
        if len({one.namespace for one in named}) > 1:
            raise UsageError("the pods are of several namespaces", "collect of one after the other")
        return reach.kubectl([one.name for one in named], named[0].namespace, container)
    return reach.ssh(hosts.split(",")) if hosts else reach.local()


def _slurm(job: str, nodes: str | None) -> tuple[str, Reach]:
    """The number that Slurm counts the job by, and the way to its nodes. nodes: given, Slurm is not asked."""
    from triage import reach
    from triage.slurm import ids
    from triage.slurm.client import Slurm

    asked = ids.parse(job)
    if nodes and asked.asked.isdigit():
        return asked.job, reach.srun(asked.job, nodes.split(","))
    found = Slurm().jobs(asked)
    running = [one for one in found.jobs if one.state == "RUNNING"]
    if len(running) > 1:
        raise UsageError(f"{len(running)} tasks of job {asked} run", f"name one of them, such as {running[0].id}")
    if not running:
        unknown = "Slurm does not know it" if found.known else "; ".join(found.missing)
        why = f"it is {found.jobs[0].state}" if found.jobs else unknown
        raise UsageError(
            f"job {asked} does not run: {why}", "a hang is looked at while it lasts; or name its nodes: --nodes A,B"
        )
    one = running[0]
    return one.raw_id or asked.job, reach.srun(one.raw_id or asked.job, nodes.split(",") if nodes else one.nodes)


def _stem(wanted: Wanted) -> str:
    return "".join(c if c.isalnum() else "-" for c in wanted.job)[:40]


def _kept(folder: Path) -> str:
    return f"what others told is in {folder}" if folder.is_dir() else "nothing is kept"


def _told(found: Collected) -> str:
    answered = len(found.nodes) - len(found.silent)
    lines = [
        f"{found.folder}: {answered} of {len(found.nodes)} nodes answered, {found.processes} processes of the job,"
        f" {found.stacks} stacks"
    ]
    lines += [f"  {node}: {why}" for node, why in found.silent.items()]
    lines += [f"  {problem}" for problem in found.problems[:_SHOWN]]
    if len(found.problems) > _SHOWN:
        lines.append(f"  and {len(found.problems) - _SHOWN} more: {found.folder / 'manifest.json'}")
    if answered and not found.processes:
        lines.append("  no process of the job was found: it has ended, or it belongs to another user")
    return "\n".join([*lines, f"next: triage hang {found.folder}"] if found.processes else lines)
