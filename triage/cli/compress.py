"""`triage compress`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from triage.cli import output
from triage.errors import UsageError

if TYPE_CHECKING:
    from triage.config import Settings

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def compress(
    paths: list[str] | None = typer.Argument(None, metavar="PATH...", help="Log files, folders, or - for stdin."),
    format: str | None = typer.Option(None, "--format", help="text or json.", show_default="text"),  # noqa: A002
    dropped: str | None = typer.Option(
        None, "--dropped", metavar="RULE", help="Print the lines that this filter rule took."
    ),
    context: int = typer.Option(0, "--context", metavar="N", min=0, help="With --dropped: N lines around each."),
    budget: int | None = typer.Option(None, "--budget", metavar="TOKENS", min=200, help="Most tokens of the result."),
    learn: bool | None = typer.Option(
        None, "--learn/--no-learn", help="Learn rules for what is left over first; default: when a model is set."
    ),
    llm: str | None = typer.Option(None, "--llm", metavar="MODEL|off", help="The model that learns."),
    no_record: bool = typer.Option(False, "--no-record", help="Do not count what learned rules take."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress and notes."),
) -> None:
    """Print the log without its routine lines, with original line numbers and an account of what was left out."""
    if not paths:
        raise UsageError("no input", "give log files, folders, or - for stdin: triage compress job.out")
    if context and dropped is None:
        raise UsageError("--context goes with --dropped", "for example --dropped megatron.iteration --context 2")
    chosen = output.check_format(format, ("text", "json"))
    from triage import pipeline, report
    from triage.cli import wiring

    settings = wiring.settings(llm)
    rules = wiring.learned_rules(settings, writes=not no_record)
    parts = wiring.parts(settings, output.teller(quiet), record=False, similar=False, rules=rules)
    if dropped is not None:
        for file, shown in pipeline.taken_by(dropped, paths, parts, context):
            output.write(_line(file, shown.number, shown.text, shown.taken, chosen))
        return
    if learn or (learn is None and settings.llm != "off" and "-" not in paths and not no_record):
        _learn(paths, settings, quiet)
    document = report.folded_json(
        pipeline.compress(paths, replace(parts, token_budget=budget or settings.token_budget))
    )
    output.clear_progress(quiet)
    output.write(json.dumps(document, ensure_ascii=False) if chosen == "json" else report.render_folded(document))


def _learn(paths: list[str], settings: Settings, quiet: bool) -> None:
    """A log of a kind that was learned from before asks no model."""
    from triage.agents.log_agent import Options
    from triage.cli import school

    learnt = school.learn(paths, settings, output.teller(quiet), Options(), "triage compress")
    output.clear_progress(quiet)
    for note in (*learnt.notes, *([school.told(learnt)] if learnt.rules else [])):
        output.note(note, quiet)


def _line(file: str, number: int, text: str, taken: bool, chosen: str) -> str:
    """A line that a rule took (`:`) or one around it (`-`), as grep prints them; or one JSON object."""
    if chosen == "json":
        return json.dumps({"file": file, "line": number, "text": text, "taken": taken}, ensure_ascii=False)
    mark = ":" if taken else "-"
    return f"{file}{mark}{number}{mark}{text}"
