"""`triage eval`."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from triage.cli import eval_import, output

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Batch evaluation against labelled cases: run, compare, report, gate.",
)
app.add_typer(eval_import.app, name="import")
_RUN = typer.Argument(..., metavar="RUN", help="The folder of a run.")
_QUIET = typer.Option(False, "--quiet", "-q", help="No progress and notes.")
_FORMAT = typer.Option(None, "--format", help="text or json.", show_default="text")


@app.command()
def run(
    cases: list[Path] = typer.Argument(..., metavar="CASES", help="Folders of cases, each with a case.yaml."),
    out: Path | None = typer.Option(None, "--out", metavar="DIR", help="The run folder; one that is there is resumed."),
    llm: str | None = typer.Option(None, "--llm", metavar="MODEL|off", help="The model to ask; off: rules only."),
    repeats: int = typer.Option(1, "--repeats", min=1, help="How often each case runs; more than once with a model."),
    jobs: int | None = typer.Option(None, "--jobs", "-j", min=1, help="Worker processes.", show_default="one a CPU"),
    timeout: float = typer.Option(
        120.0, "--timeout", min=0.1, max=1e6, metavar="SECONDS", help="The most that a case may take."
    ),
    only: str | None = typer.Option(None, "--only", metavar="ID,...", help="Only these cases."),
    split: str | None = typer.Option(None, "--split", help="Only dev or test cases."),
    tag: str | None = typer.Option(None, "--tag", help="Only cases with this tag."),
    gate: Path | None = typer.Option(None, "--gate", metavar="FILE", help="Floors; exit 1 when one is not reached."),
    seed: int = typer.Option(0, "--seed", min=0, max=2**32 - 1, help="Of the intervals."),
    retry: bool = typer.Option(False, "--retry", help="When resuming, run again what crashed or timed out."),
    no_similar: bool = typer.Option(False, "--no-similar", help="Do not look for similar incidents."),
    no_baselines: bool = typer.Option(False, "--no-baselines", help="Do not run the baselines."),
    format: str | None = _FORMAT,  # noqa: A002
    quiet: bool = _QUIET,
) -> int:
    """Run labelled cases and score them.

    Each goes through the same pipeline as diagnose, with a temporary state; your database is not touched.

    Exit codes: 0 done, 1 a floor of --gate is not reached, 2 the cases or the run folder cannot be used, 130 interrupted.
    """
    from triage.cli import eval_run

    chosen = eval_run.Choice(
        cases, out, llm, repeats, jobs, timeout, only, split, tag, gate, seed, retry, not no_similar, not no_baselines
    )
    return eval_run.run(chosen, output.check_format(format, ("text", "json")), quiet)


@app.command()
def rescore(path: Path = _RUN, format: str | None = _FORMAT, quiet: bool = _QUIET) -> None:  # noqa: A002
    """Score a run anew from its records alone."""
    chosen = output.check_format(format, ("text", "json"))
    from triage.cli import eval_table
    from triage.evaluation import record, runner, unfinished

    metrics, records = runner.rescore(path), record.read_records(path)
    output.write(json.dumps(metrics) if chosen == "json" else eval_table.table(metrics, records))
    if lacks := unfinished.missing(record.read_run(path), records):
        output.note(f"{path} is not finished: {lacks}", quiet)


@app.command()
def compare(
    a: Path = typer.Argument(..., metavar="A", help="The run before."),
    b: Path = typer.Argument(..., metavar="B", help="The run after."),
    format: str | None = _FORMAT,  # noqa: A002
) -> None:
    """Tell what got better and worse between two runs.

    Case by case, with a paired test of each figure.
    """
    chosen = output.check_format(format, ("text", "json"))
    from triage.evaluation import compare, compare_text, record

    runs = record.read_run(a), record.read_run(b)
    found = compare.compare(record.read_records(a), record.read_records(b), runs=runs)
    output.write(json.dumps(found) if chosen == "json" else compare_text.as_text(found, str(a), str(b)))


@app.command()
def gate(
    path: Path = _RUN,
    floors: Path = typer.Argument(Path("eval/gate.yaml"), metavar="FLOORS", help="The gate file."),
) -> int:
    """Hold a run to floors and ceilings.

    Exit codes: 0 all hold, 1 one does not or the run is not finished.
    """
    from triage.evaluation import gate, record, runner, unfinished

    bounds, begun = gate.load_gate(floors), record.read_run(path)
    lacks = unfinished.missing(begun, record.read_records(path))
    verdict = gate.check(runner.figures(path), bounds, lacks)
    output.write_last(gate.as_text(verdict))
    if lacks:
        output.note(f"{path} is not finished; go on with: {unfinished.go_on(str(begun.get('command') or ''), path)}")
    return 0 if verdict.passed else 1


@app.command()
def report(path: Path = _RUN, format: str | None = _FORMAT, quiet: bool = _QUIET) -> None:  # noqa: A002
    """Write a page and a summary of a run.

    report.html, which needs no other file, and summary.md, both in the run folder. --quiet does not print where.
    """
    chosen = output.check_format(format, ("text", "json"))
    from triage.evaluation import html, markdown, runner

    runner.rescore(path)
    page, summary = str(html.write(path)), str(markdown.write(path))
    if chosen == "json":
        output.write(json.dumps({"report": page, "summary": summary}))
    elif not quiet:
        output.write(f"{page}\n{summary}")
