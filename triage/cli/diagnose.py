"""`triage diagnose`."""

from __future__ import annotations

from dataclasses import replace

import typer

from triage.cli import output
from triage.errors import UsageError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def diagnose(
    paths: list[str] | None = typer.Argument(
        None, metavar="PATH...", help="Log files, folders of per-rank files, or - for stdin; .gz .zst .xz .bz2 too."
    ),
    format: str | None = typer.Option(None, "--format", help="text, json or markdown.", show_default="text"),  # noqa: A002
    no_record: bool = typer.Option(False, "--no-record", help="Do not write to the incident database."),
    llm: str | None = typer.Option(None, "--llm", metavar="MODEL|off", help="The model to ask; off: rules only."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress and notes."),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Seconds per stage on stderr."),
) -> int:
    """Name the root cause of a failed job from its logs, citing lines.

    Exit codes: 0 a cause was found or the job is healthy, 1 the cause is unknown, 2 the input cannot be read.
    """
    if not paths:
        raise UsageError("no input", "give log files, folders, or - for stdin: triage diagnose job.out")
    chosen = output.check_format(format)
    from triage import pipeline
    from triage.cli import wiring

    settings = wiring.settings(llm)
    rules = wiring.learned_rules(settings, writes=not no_record)
    parts = wiring.parts(settings, output.teller(quiet), record=not no_record, rules=rules)
    unasked = wiring.no_model(settings)
    parts = replace(parts, notes=(unasked,) if unasked else ())
    result, document = pipeline.diagnose(paths, parts)
    output.clear_progress(quiet)
    output.print_result(document, chosen)
    if verbose:
        output.note(", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in result.timing.items()))
    return 1 if result.status == "unknown" else 0
