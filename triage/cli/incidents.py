"""`triage incidents`: the record of what was diagnosed."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, get_args

import typer

from triage.cli import output
from triage.domain import Outcome
from triage.errors import UsageError

if TYPE_CHECKING:
    from triage.store.incidents import IncidentStore
    from triage.store.values import StoredIncident

HELP = "The record of incidents: what was diagnosed, when, and what it was."
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True, help=HELP)


@app.command("list")
def list_incidents(
    failure_type: str = typer.Option(None, "--type", metavar="TYPE", help="Only this failure type, such as ecc-error."),
    outcome: str = typer.Option(None, help=f"Only this outcome: {', '.join(get_args(Outcome))}."),
    node: str = typer.Option(None, help="Only incidents that involve this node."),
    since: str = typer.Option(
        None, metavar="TIME", help="Not older than this: 7d, 12h, 2026-01-31 or a full UTC time."
    ),
    text: str = typer.Option(None, help="Only with these words in the title, the cause or a cited line."),
    limit: int = typer.Option(20, min=1, max=100_000, help="At most so many."),
    format: str = typer.Option(None, "--format", help="text, json or markdown.", show_default="text"),  # noqa: A002
) -> None:
    """List incidents, the newest first."""
    chosen = output.check_format(format)
    _check(outcome, failure_type)
    start = parse_since(since, datetime.now(UTC)) if since else None
    with _open() as store:
        found = store.list(
            outcome=outcome, failure_type=failure_type, node=node, since=start, text=text, limit=limit + 1
        )
        empty = not found and not store.list(limit=1)
    from triage.cli import incident_list

    shown = found[:limit]
    if chosen == "json":
        output.write(json.dumps(incident_list.as_json(shown), ensure_ascii=False))
    elif shown:
        as_text = chosen == "text"
        output.write(incident_list.as_text(shown, output.width()) if as_text else incident_list.as_markdown(shown))
    if empty:
        output.note("no incident is recorded yet; `triage diagnose PATH...` records one")
    elif not found:
        output.note("no incident fits these filters; leave one out, or go further back with --since")
    elif len(found) > limit:
        output.note(f"only the newest {limit} are shown; more with --limit")


@app.command()
def show(
    incident: int = typer.Argument(metavar="ID", help="The number that `triage incidents list` shows."),
    format: str = typer.Option(None, "--format", help="text, json or markdown.", show_default="text"),  # noqa: A002
) -> None:
    """Show the diagnosis of an incident as it was recorded."""
    chosen = output.check_format(format)
    with _open() as store:
        found = store.get(incident)
    if chosen != "json":
        output.write(_heading(found, chosen))
    output.print_result(dict(found.result), chosen)


def _open() -> IncidentStore:
    """Not by way of wiring, which would load the whole pipeline to read one table."""
    from triage import config
    from triage.store.incidents import IncidentStore

    return IncidentStore.open(config.load().database_url)


def _check(outcome: str | None, failure_type: str | None) -> None:
    """A filter that can match nothing is a slip of the fingers, not an empty answer."""
    if outcome is not None and outcome not in get_args(Outcome):
        raise UsageError(f"--outcome {outcome!r} is not known", f"use {', '.join(get_args(Outcome))}")
    if failure_type is not None:
        from difflib import get_close_matches

        from triage import kb

        known = kb.taxonomy().types
        if failure_type not in known:
            near = get_close_matches(failure_type, known, cutoff=0.4)
            raise UsageError(
                f"--type {failure_type!r} is not known",
                f"did you mean {' or '.join(near)}?" if near else "see kb/taxonomy.yaml",
            )


def parse_since(value: str, now: datetime, option: str = "--since") -> datetime:
    """`7d` before now, or a date or time; without a zone it is UTC. Errors: UsageError."""
    ago = re.fullmatch(r"(\d{1,4})([mhdw])", value.strip())
    if ago:
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        when = datetime.fromisoformat(value.strip())
    except ValueError:
        raise UsageError(
            f"{option} {value!r} is no time", "use 7d, 12h, 2026-01-31 or 2026-01-31T03:00+01:00"
        ) from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _heading(found: StoredIncident, chosen: str) -> str:
    """Which incident this is; the result itself says what it was."""
    from triage.text import printable

    s, job = found.summary, found.job
    parts = [f"Incident {s.id}", f"recorded {s.created_at:%Y-%m-%d %H:%M} UTC by triage {found.tool_version}"]
    if job:
        parts.append("job " + printable(" ".join(p for p in (job.external_id, job.name and f"({job.name})") if p)))
    if found.version > 1:
        parts.append(f"diagnosis {found.version}")
    parts += [f"{v.verdict} by {printable(v.who)}" for v in found.verdicts[-1:]]
    return f"_{', '.join(parts)}_\n\n" if chosen == "markdown" else f"{', '.join(parts)}\n\n"
