"""`triage eval import`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import typer

from triage.cli import output
from triage.text import how_many

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Make cases of labelled logs and of incidents.",
)
_OUT = typer.Option(..., "--out", metavar="CASES", help="The folder to add the cases to.")


@app.command()
def labels(
    table: Path = typer.Argument(
        ..., metavar="CSV", help="One row a job: file, failure_type, outcome, and more labels."
    ),
    logs: Path = typer.Argument(..., metavar="LOGS", help="The folder that the column file counts from."),
    out: Path = _OUT,
) -> None:
    """Make a case of each row of a table.

    Columns: file (a log, or a folder of one job's logs), failure_type, outcome; if you have them evidence, nodes, ranks,
    action, root_cause_class and more: docs/evaluation.md lists all. Columns that begin with _ are left out.
    """
    from triage.evaluation import importers

    _tell(lambda: importers.import_labels(table, logs, out), out)


@app.command()
def incident(
    export: Path = typer.Argument(
        ..., metavar="EXPORT", help="The JSON of an incident with its verdict, logs beside it."
    ),
    out: Path = _OUT,
) -> None:
    """Make a case of an incident with a verdict.

    A person must have confirmed or corrected its cause.
    """
    from triage.evaluation import importers

    _tell(lambda: [importers.import_incident(export, out)], out)


@app.command()
def acme(
    trace: Path = typer.Argument(..., metavar="CSV", help="A job trace in the columns of AcmeTrace; .gz .zst .xz too."),
    format: str | None = typer.Option(None, "--format", help="text or json.", show_default="text"),  # noqa: A002
) -> None:
    """Tell what failures cost by a job trace.

    How jobs end, and the GPU-hours that failed jobs (FAILED, TIMEOUT, NODE_FAIL) of each size had run. Columns: gpu_num, state,
    start_time and end_time (or gpu_time, or duration), type.
    """
    chosen = output.check_format(format, ("text", "json"))
    from triage.evaluation import importers

    found = importers.import_acme(trace)
    output.write(json.dumps(found.as_json()) if chosen == "json" else found.as_text())


def _tell(make: Callable[[], list[Path]], out: Path) -> None:
    before = set(out.glob("*"))
    folders = make()
    output.write("\n".join(map(str, folders)))
    there = sum(folder in before for folder in folders)
    output.note(f"{how_many(len(folders) - there, 'case')} written" + (f", {there} already there" if there else ""))
