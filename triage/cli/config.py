"""`triage config`."""

from __future__ import annotations

import json

import typer

from triage.cli import output

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="The settings in force and where each came from.",
)


@app.command()
def show(format: str | None = typer.Option(None, "--format", help="text or json.", show_default="text")) -> None:  # noqa: A002
    """Each setting, its value and its source; secrets are not printed."""
    chosen = output.check_format(format, ("text", "json"))
    from triage import config
    from triage.cli import notifying, wiring

    settings = wiring.settings()
    rows = []
    for setting in config.SETTINGS:
        value = getattr(settings, setting.name)
        value = notifying.named(value) if setting.name == "notify" else "" if value is None else str(value)
        rows.append(
            {
                "name": setting.name,
                "value": _hidden(value) if (setting.secret or "://" in value) and setting.name != "notify" else value,
                "source": settings.origin[setting.name],
                "help": setting.help,
            }
        )
    if chosen == "json":
        output.write(json.dumps(rows))
        return
    for row in rows:
        output.write(f"{row['name']:<13} {row['value']}\n{'':<13} from {row['source']}; {row['help']}")


def _hidden(value: str) -> str:
    """A secret is only said to be set; of a URL the password goes."""
    from triage.redact import redact

    if "://" in value:
        return redact(value)
    return "(set)" if value else ""


@app.command()
def check() -> int:
    """Does each part answer? The database, the vector index and its model, and the chat model if one is set. Exit 2 when one does not."""
    from triage.cli import notifying, recalling, wiring
    from triage.errors import TriageError

    settings = wiring.settings()
    failed = False
    for name, step in (
        ("database", lambda: wiring.store(settings)),
        ("index", lambda: recalling.checked(settings)),
        ("knowledge", wiring.knowledge),
        ("model", lambda: wiring.asked(settings)),
        ("notify", lambda: notifying.checked(settings)),
    ):
        try:
            said = step()
            output.write(f"{name:<10} {said if isinstance(said, str) else 'ok'}")
        except TriageError as error:
            failed = True
            output.write(f"{name:<10} {error}")
    return 2 if failed else 0
