"""`triage serve`: the HTTP API, the web page and the chat in it."""

from __future__ import annotations

import typer

from triage.cli import output
from triage.errors import UsageError

app = typer.Typer(add_completion=False, rich_markup_mode=None)
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@app.command()
def serve(
    host: str = typer.Option("127.0.0.1", help="The address to listen on. One that others reach needs a token."),
    port: int = typer.Option(8750, min=0, max=65535, help="0: any that is free."),
    name: list[str] | None = typer.Option(
        None, "--name", metavar="HOST", help="A name by which browsers ask for this server, such as that of its proxy."
    ),
    workers: int = typer.Option(1, min=1, max=16, help="Diagnoses at once."),
    llm: str | None = typer.Option(None, "--llm", metavar="MODEL|off", help="The model that explains and answers."),
    new_token: str | None = typer.Option(
        None, "--new-token", metavar="NAME", help="Make a token, print it once, and end."
    ),
    role: str = typer.Option("read", help="Of the new token: read, or write (upload, record outcomes)."),
) -> int:
    """Serve the API, the web page and the chat until Ctrl-C or SIGTERM.

    Without tokens it listens on this machine alone, and prints an address with a token of its own.
    """
    from triage.cli import serve_parts

    if new_token is not None:
        output.write_last(serve_parts.new_token(new_token, role))
        output.note(
            f"token {new_token} may {role}; it is kept as a hash only, so keep it well; a server that runs knows it from its next start on"
        )
        return 0
    chosen = serve_parts.settings(llm)
    tokens = serve_parts.tokens(chosen)
    if host not in LOOPBACK and not tokens:
        raise UsageError(
            f"--host {host} is reached by others, and there is no token",
            "make one: triage serve --new-token NAME --role write",
        )
    return serve_parts.run(chosen, tokens, host, port, tuple(name or ()), workers)
