"""`triage slack`: the bot."""

from __future__ import annotations

import typer

from triage.errors import UsageError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def slack(
    root: list[str] | None = typer.Option(
        None, "--root", metavar="DIR", help="Logs below it may be asked for; several may be given.", show_default="here"
    ),
    llm: str | None = typer.Option(None, "--llm", metavar="MODEL|off", help="The model that answers questions."),
) -> int:
    """Answer in Slack until Ctrl-C or SIGTERM: /triage PATH, INCIDENT or --job ID, and questions in its threads.

    Socket mode: no port is opened. The tokens and who may ask come from the settings TRIAGE_SLACK_*.
    """
    try:
        from triage.cli import slack_parts
    except ModuleNotFoundError as error:
        raise UsageError(
            f"triage slack needs the package {error.name}, which is not installed", "pip install 'hpc-triage[slack]'"
        ) from None
    return slack_parts.run(root or ["."], llm)
