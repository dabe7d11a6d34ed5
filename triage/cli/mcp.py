"""`triage mcp`: the tools of triage for other assistants."""

from __future__ import annotations

import sys

import typer

from triage.cli import output
from triage.errors import UsageError

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def mcp(
    root: list[str] | None = typer.Option(
        None, "--root", metavar="DIR", help="Logs below it may be read; several may be given.", show_default="here"
    ),
    allow_write: bool | None = typer.Option(
        None, "--allow-write/--read-only", help="Record diagnoses and outcomes; default: TRIAGE_MCP_WRITE."
    ),
    http: int | None = typer.Option(
        None,
        "--http",
        metavar="PORT",
        min=0,
        max=65535,
        help="Over HTTP on this machine, for who has TRIAGE_MCP_TOKEN; 0: any port that is free.",
    ),
) -> int:
    """Serve diagnoses, logs, incidents and the knowledge base to an assistant, over MCP on stdin and stdout, until stdin ends."""
    try:
        from triage.cli import mcp_parts
    except ModuleNotFoundError as error:
        raise UsageError(
            f"triage mcp needs the package {error.name}, which is not installed", "pip install 'hpc-triage[mcp]'"
        ) from None
    if http is None and sys.stdin.isatty():
        output.note("an assistant speaks with this over stdin; docs/mcp.md has the settings for one. Ctrl-C ends it")
    return mcp_parts.run(root or ["."], allow_write, http)
