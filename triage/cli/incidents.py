"""`triage incidents`: the record of what was diagnosed."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import typer

from triage.cli import output
from triage.cli.incident_filters import filtered
from triage.errors import UsageError
from triage.store.values import Filters, Sort, Verdict
from triage.text import how_many, printable

if TYPE_CHECKING:
    from triage.store.incidents import IncidentStore

HELP = "The record of incidents: what was diagnosed, when, and what it was."

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True, help=HELP)

_ID = typer.Argument(metavar="ID", help="The number that `triage incidents list` shows.")
_FORMAT = typer.Option(None, "--format", help="text, json or markdown.", show_default="text")
_NONE = "no incident is recorded yet; `triage diagnose PATH...` records one"
_NONE_FITS = "no incident fits these filters; leave one out, or go further back with --since"
_JSON_OR_TEXT = typer.Option(None, "--format", help="text or json.", show_default="text")


@app.command("list")
@filtered
def list_incidents(
    filters: Filters,
    sort: str = typer.Option("created", help=f"What stands first: {', '.join(get_args(Sort))}."),
    limit: int = typer.Option(20, min=1, max=100_000, help="At most so many."),
    format: str = _FORMAT,  # noqa: A002
) -> None:
    """List incidents, the newest first."""
    chosen = output.check_format(format)
    if sort not in get_args(Sort):
        raise UsageError(f"--sort {sort!r} is not known", f"use {', '.join(get_args(Sort))}")
    with _open() as store:
        found = store.list(filters, sort=cast("Sort", sort), limit=limit + 1)
        empty = not found and not store.list(limit=1)
    from triage.cli import incident_list

    shown = found[:limit]
    if chosen == "json":
        output.write(json.dumps(incident_list.as_json(shown), ensure_ascii=False))
    elif shown:
        width = output.width() if sys.stdout.isatty() else None
        output.write(incident_list.as_text(shown, width) if chosen == "text" else incident_list.as_markdown(shown))
    if empty:
        output.note(_NONE)
    elif not found:
        output.note(_NONE_FITS)
    elif len(found) > limit:
        output.note(f"only the {'newest' if sort == 'created' else 'first'} {limit} are shown; more with --limit")


@app.command()
@filtered
def stats(
    filters: Filters,
    top: int = typer.Option(10, min=1, max=10_000, help="At most so many of each kind in text and markdown."),
    format: str = _FORMAT,  # noqa: A002
) -> None:
    """Count incidents: what fails, where, what it costs, how right the diagnoses were, and which nodes fail too often."""
    chosen = output.check_format(format)
    with _open() as store:
        counted = store.stats(filters)
        empty = not counted.jobs and not store.list(limit=1)
    from triage.cli import incident_stats

    if chosen == "json":
        output.write_last(json.dumps(incident_stats.as_json(counted), ensure_ascii=False))
    elif counted.jobs:
        output.write_last(incident_stats.render(counted, top, markdown=chosen == "markdown"))
    if not counted.jobs:
        output.note(_NONE if empty else _NONE_FITS)


@app.command()
def show(
    incident: int = _ID,
    version: int = typer.Option(None, metavar="N", help="This diagnosis of it.", show_default="the latest"),
    format: str = _FORMAT,  # noqa: A002
) -> None:
    """Show the diagnosis of an incident as it was recorded, and how it turned out."""
    chosen = output.check_format(format)
    with _open() as store:
        found = store.get(incident, version)
    from triage.cli import incident_view as view

    if chosen == "json":
        output.write_last(json.dumps(view.as_json(found), ensure_ascii=False))
        return
    markdown = chosen == "markdown"
    width = output.width()
    before = (
        view.heading(found, markdown) + view.outcomes(found, width, markdown) + view.history(found, width, markdown)
    )
    output.write(before)
    output.print_result(dict(found.result), chosen)


@app.command()
def resolve(
    incident: int = _ID,
    verdict: str = typer.Option(None, help="Was the diagnosis right? confirmed, corrected or rejected."),
    cause: str = typer.Option(None, help="What the cause was, in words."),
    fix: str = typer.Option(None, help="What was done about it, in words."),
    worked: str = typer.Option(None, help="Did the fix work? yes, no or unknown.", show_default="unknown"),
    note: str = typer.Option(None, help="Anything else."),
    failure_type: str = typer.Option(None, "--type", metavar="TYPE", help="The failure type that it was instead."),
    root_cause_class: str = typer.Option(None, "--class", metavar="CLASS", help="The class of the cause instead."),
    llm: str = typer.Option(None, "--llm", metavar="MODEL|off", help="The model that may write a signature."),
    format: str = _JSON_OR_TEXT,  # noqa: A002
) -> None:
    """Record how an incident turned out. Nothing is overwritten: what triage said stays, and so do earlier outcomes.

    A failure that no signature covers gives a candidate signature. At a terminal what is missing is asked.
    """
    chosen = output.check_format(format, ("text", "json"))
    from triage import kb, outcomes
    from triage.cli import resolving, rules_signatures
    from triage.cli.who import user

    given = resolving.Given(verdict, cause, fix, worked, note, failure_type, root_cause_class)
    given.check()
    with _open() as store:
        found = store.get(incident)
        if not given.complete and sys.stdin.isatty() and sys.stderr.isatty():
            given = resolving.ask(given, found)

        def learn(verdict: Verdict, said: str) -> dict[str, Any] | None:
            if chosen == "text":
                output.write_last(resolving.told(incident, verdict, said))
            return rules_signatures.after_outcome(incident, llm, verdict.who, say=chosen == "text")

        # Another diagnosis may come while it is asked: the verdict is of the one that was seen.
        told = replace(given.as_verdict(user()), version=found.version)
        kept = outcomes.resolve(store, incident, told, kb.taxonomy(), learn)
    if chosen == "json":
        document = resolving.as_json(incident, kept.verdict) | {"learned": kept.learnt}
        output.write_last(json.dumps(document, ensure_ascii=False))


@app.command()
def forget(
    incident: int = _ID,
    yes: bool = typer.Option(False, "--yes", help="Without asking."),
) -> None:
    """Delete an incident and all that hangs on it: diagnoses, cited lines, outcomes, conversations. It cannot be undone."""
    from triage import config
    from triage.cli import recalling

    with _open() as store:
        found = store.get(incident).summary
        if not yes:
            if not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise UsageError("nothing was forgotten: nobody can be asked here", "--yes forgets without asking")
            output.note(
                f"incident {incident}: {printable(found.title)}, recorded {found.created_at:%Y-%m-%d %H:%M} UTC"
            )
            if not typer.confirm("Forget it, with its diagnoses, outcomes and conversations?", err=True):
                raise UsageError("nothing was forgotten")
        stay = store.forget(incident)
    recalling.keep(config.load())
    output.write_last(f"incident {incident} is forgotten")
    if stay:
        output.note(
            f"{', '.join(stay)} was learned from it and stays, its line and fix too: triage rules show {stay[0]}"
        )


@app.command()
def export(
    incident: int = _ID,
    case: Path = typer.Option(
        ..., "--case", metavar="DIR", help="The case is made in a folder of its own under this one."
    ),
    logs: list[Path] = typer.Option(
        None, "--logs", metavar="PATH", help="Its logs; without it those read, if the same."
    ),
) -> None:
    """Make a labelled case of an incident that was confirmed or corrected, secrets removed, for `triage eval run`."""
    from triage.cli import incident_export

    with _open() as store:
        latest = store.get(incident)
        said = latest.verdicts[-1].version if latest.verdicts else None
        found = store.get(incident, said)
    made, notes = incident_export.export(found, case, logs or ())
    output.write_last(str(made))
    for note in notes:
        output.note(note)


@app.command()
def backup(file: Path = typer.Argument(metavar="FILE", help="The copy to make: one SQLite file.")) -> None:
    """Copy the whole database to a file, while others may write to it."""
    from triage import config
    from triage.store.backup import Backup

    with Backup.open(config.load().database_url) as store:
        count = store.write(file)
    output.write_last(f"{file}: {how_many(count, 'incident')}, {file.stat().st_size:,} bytes")


@app.command()
def restore(
    file: Path = typer.Argument(metavar="FILE", help="A copy that `triage incidents backup` made."),
    replace: bool = typer.Option(False, "--replace", help="Although the database holds something: it is lost."),
) -> None:
    """Put a copy in the place of the database, all of it or nothing."""
    from triage import config
    from triage.store.backup import Backup, set_aside

    url = config.load().database_url
    if aside := set_aside(url, file, replace):
        output.note(f"the database was damaged; it is kept as {aside}")
    with Backup.open(url) as store:
        count = store.restore(file, replace)
    output.write_last(f"{how_many(count, 'incident')} restored from {file}")


def _open() -> IncidentStore:
    """Not by way of wiring, which would load the whole pipeline to read one table."""
    from triage import config
    from triage.store.incidents import IncidentStore

    return IncidentStore.open(config.load().database_url)
