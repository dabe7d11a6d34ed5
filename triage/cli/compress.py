"""`triage compress`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from triage.cli import output
from triage.errors import StoreError, UsageError

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
    follow: bool = typer.Option(
        False, "--follow", "-f", help="Go on while the files grow; what a rule takes is left out as it comes."
    ),
    out: Path | None = typer.Option(
        None, "--out", metavar="FILE", help="With --follow: append to FILE; started again, go on where it stopped."
    ),
    until_idle: float | None = typer.Option(
        None, "--until-idle", metavar="SECONDS", min=0, help="With --follow: end when nothing came for so long."
    ),
    no_record: bool = typer.Option(False, "--no-record", help="Do not count what learned rules take."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress and notes."),
) -> None:
    """Print the log without its routine lines, with original line numbers and an account of what was left out."""
    if not paths:
        raise UsageError("no input", "give log files, folders, or - for stdin: triage compress job.out")
    if context and dropped is None:
        raise UsageError("--context goes with --dropped", "for example --dropped megatron.iteration --context 2")
    if (out is not None or until_idle is not None) and not follow:
        raise UsageError("--out and --until-idle go with --follow", "for example --follow job.out --out small.out")
    if follow and (dropped is not None or budget is not None):
        raise UsageError("--dropped and --budget do not go with --follow", "ask for them without it, of the same file")
    chosen = output.check_format(format, ("text", "json"))
    from triage import pipeline, report
    from triage.cli import wiring

    settings = wiring.settings(llm)
    rules = wiring.learned_rules(settings, writes=not no_record)
    parts = wiring.parts(settings, output.teller(quiet), record=False, similar=False, rules=rules)
    learns = learn or (learn is None and settings.llm != "off" and "-" not in paths and not no_record)
    if follow:
        from triage.cli.follow import follow as follow_files

        follow_files(paths, parts, chosen, out, until_idle, quiet, settings if learns else None)
        return
    if dropped is not None:
        for file, shown in pipeline.taken_by(dropped, paths, parts, context):
            output.write(_line(file, shown.number, shown.text, shown.taken, chosen))
        return
    if learns:
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

    try:
        learnt = school.learn(paths, settings, output.teller(quiet), Options(), "triage compress")
    except StoreError as error:  # the log is what was asked for
        output.note(f"nothing was learned: {error}", quiet)
        return
    output.clear_progress(quiet)
    for note in (*learnt.notes, *([school.told(learnt)] if learnt.rules or learnt.lesson.failed else [])):
        output.note(note, quiet)


def _line(file: str, number: int, text: str, taken: bool, chosen: str) -> str:
    """A line that a rule took (`:`) or one around it (`-`), as grep prints them; or one JSON object."""
    if chosen == "json":
        return json.dumps({"file": file, "line": number, "text": text, "taken": taken}, ensure_ascii=False)
    mark = ":" if taken else "-"
    return f"{file}{mark}{number}{mark}{text}"
