"""`triage diagnose`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from triage.cli import notifying, output
from triage.errors import UsageError

if TYPE_CHECKING:
    from triage.cli.case import Case
    from triage.config import Settings
    from triage.domain import Diagnosis, Folded, JobLog
    from triage.llm.private import Private
    from triage.parts import Parts

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def diagnose(
    paths: list[str] | None = typer.Argument(
        None, metavar="PATH...", help="Log files, folders of per-rank files, or - for stdin; .gz .zst .xz .bz2 too."
    ),
    job: str | None = typer.Option(
        None, "--job", metavar="ID", help="A Slurm job: its state, nodes and log files by sacct and scontrol."
    ),
    pod: str | None = typer.Option(
        None, "--pod", metavar="[NS/]NAME", help="A pod of Kubernetes: its logs, containers, events and node."
    ),
    k8s_job: str | None = typer.Option(
        None, "--k8s-job", metavar="[NS/]NAME", help="All pods of a Job, PyTorchJob, MPIJob, JobSet or volcano job."
    ),
    namespace: str = typer.Option("", "--namespace", "-n", help="Of the pod or job; default: the context's."),
    context: str = typer.Option("", "--context", help="Of the kubeconfig; default: the current one."),
    format: str | None = typer.Option(None, "--format", help="text, json or markdown.", show_default="text"),  # noqa: A002
    good: list[str] | None = typer.Option(
        None,
        "--good",
        metavar="PATH|none",
        help="A good run to compare with; none: with no run of the database either.",
    ),
    record: bool | None = typer.Option(
        None, "--record/--no-record", help="Write to the incident database; default: yes, but for a replay."
    ),
    new: bool = typer.Option(False, "--new", help="Record a new incident, even if it is one of a known job or log."),
    llm: str | None = typer.Option(None, "--llm", metavar="MODEL|off", help="The model to ask; off: rules only."),
    samples: str | None = typer.Option(
        None, "--samples", metavar="N", help="Answers of the model, at most 10; their agreement counts."
    ),
    critic: bool | None = typer.Option(
        None, "--critic/--no-critic", help="A second pass against the model's answer; default: where it would lead."
    ),
    trace: Path | None = typer.Option(None, "--trace", metavar="FILE", help="Append each exchange with the model."),
    replay: Path | None = typer.Option(None, "--replay", metavar="FILE", help="Answer from a trace, with no model."),
    print_prompt: bool = typer.Option(False, "--print-prompt", help="Print what a model would be asked, and stop."),
    notify: list[str] | None = typer.Option(None, "--notify", metavar="CHANNEL|settings", help=notifying.OPTION),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress and notes."),
    verbose: bool = typer.Option(
        False, "--verbose", "-v", help="All evidence, context, chain and reasons; seconds per stage on stderr."
    ),
) -> int:
    """Name the root cause of a failed job from its logs, citing lines.

    --job 123, 123_4 or 123_[1-4] of an array (its failed tasks), 123+1, 123.0: Slurm is asked; PATHs are read besides.
    --pod and --k8s-job (also KIND/NAME, such as pytorchjob/train) ask the cluster of the kubeconfig.

    Exit codes: 0 a cause was found or the job is healthy, 1 the cause is unknown, 2 the input cannot be read.
    """
    in_cluster = pod is not None or k8s_job is not None
    if not paths and job is None and not in_cluster:
        hint = "give log files, folders, - for stdin, --job of Slurm, --pod or --k8s-job: triage diagnose job.out"
        raise UsageError("no input", hint)
    if in_cluster and job is not None:
        raise UsageError("--job is of Slurm, --pod and --k8s-job of Kubernetes", "give one of them")
    if not in_cluster and (namespace or context):
        raise UsageError("--namespace and --context go with --pod or --k8s-job", "name a pod or a job")
    chosen = output.check_format(format)
    from triage.cli import asking, good_runs, kube_job, tasks, wiring

    settings = wiring.settings(llm, llm_samples=samples, llm_critic=None if critic is None else str(int(critic)))
    told = notifying.notifier(settings, notify) if notify else None
    wanted, record = record is True, replay is None if record is None else record
    rules = wiring.learned_rules(settings, writes=record)
    parts = wiring.parts(settings, output.teller(quiet), record=record, rules=rules, new=new)
    parts = wiring.with_good_runs(parts, settings, writes=record)

    def to_diagnose(home: Path | None) -> AbstractContextManager[list[Case]]:
        if not in_cluster:
            return tasks.cases(job, paths or (), home, output.teller(quiet))
        asked = kube_job.Wanted(pod, k8s_job, namespace, context)
        return kube_job.cases(asked, paths or (), home, settings.offline, output.teller(quiet))

    if print_prompt:
        with to_diagnose(None) as cases:
            output.write(
                _prompt(cases[0].paths, replace(wiring.for_job(parts, settings, cases[0], new), record=None), settings)
            )
        return 0
    if trace or replay:
        model = _traced(settings, trace, replay)
        notes = [f"the answers of the model were replayed from {replay}; no model was asked"] if replay else []
        explain = asking.explain(model, settings, parts.knowledge.matcher, parts.tell, notes)
        parts = replace(parts, explain=explain, identify=True)
    alone = good is not None and "none" in good
    if good and alone and len(good) > 1:
        raise UsageError("--good none stands beside a path", "give the paths of one good run, or none")
    known = good_runs.of_files(good, parts) if good and not alone else None
    parts = replace(parts, failed=output.tell_failure) if verbose else parts
    parts = replace(parts, good=None) if good else parts
    with to_diagnose(settings.home if record else None) as cases:
        groups = tasks.diagnose(cases, parts, settings, known, new=new, live=wanted)
    output.clear_progress(quiet)
    output.print_result(tasks.document(groups), chosen, verbose)
    if chosen != "json" and (beside := tasks.as_text(groups, output.width(), chosen == "markdown")):
        output.write_last(beside)
    result = groups[0][0].result
    if told:
        notifying.tell(told, [(group[0].result, group[0].document) for group in groups], quiet)
    if verbose:
        output.note(", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in result.timing.items()))
    return 1 if result.status == "unknown" else 0


def _prompt(paths: Sequence[str], parts: Parts, settings: Settings) -> str:
    """For those who ask a model of their own by hand: as a model of the settings would get it."""
    from triage import kb, pipeline, prompts
    from triage.agents.case import Case, inputs
    from triage.evidence.known import known_nodes
    from triage.llm.clean import clean_text
    from triage.redact.pseudonyms import Pseudonyms

    asked: list[str] = []

    def keep(log: JobLog, folded: Folded, rules: Diagnosis) -> Diagnosis:
        told = inputs(Case(log, folded, rules), kb.taxonomy(), settings.llm_context)
        text = prompts.load("diagnose").fill(**told)
        asked.append(Pseudonyms(known_nodes(log)).hide(clean_text(text)))
        return rules

    pipeline.diagnose(paths, replace(parts, explain=keep, failed=_raise))
    return asked[0]


def _raise(error: Exception) -> None:
    raise error


def _traced(settings: Settings, trace: Path | None, replay: Path | None) -> Private:
    from triage.cli import wiring
    from triage.llm.private import Private
    from triage.llm.trace import Replayer

    if trace and replay:
        raise UsageError("--trace and --replay exclude each other", "a replay asks no model")
    if replay:
        return Private(Replayer(replay))
    model = wiring.model(settings, trace)
    if model is None:
        raise UsageError("--trace needs a model", "set TRIAGE_LLM or give --llm provider:model")
    return model
