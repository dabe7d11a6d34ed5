"""`triage notify`."""

from __future__ import annotations

import socket

import typer

from triage.cli import output

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, no_args_is_help=True, help="Messages to people: try a channel."
)


@app.callback()
def notify() -> None:
    """Messages to people."""


@app.command()
def test(
    channels: list[str] | None = typer.Argument(
        None,
        metavar="CHANNEL...",
        help="slack:URL, URL, command:PROGRAM ARGS, mailto:a@b; default: those of TRIAGE_NOTIFY.",
    ),
) -> int:
    """Send a trial message. Exit 2 when a channel does not take it."""
    from triage.cli import notifying, wiring
    from triage.notify import Message

    message = Message(
        key="trial",
        title="A trial message of triage",
        state="trial",
        summary="This channel can be told of incidents: special characters such as & < > * _ ` stand as they are.",
        fields=(("sent from", socket.gethostname()),),
        body_markdown="## A trial message of triage\n\nNothing has happened.\n",
    )
    of = notifying.notifier(wiring.settings(), channels or [notifying.SETTINGS])
    sent = of.send_anyway(message)
    for one in sent:
        output.write(f"{one.channel}: {one.problem or f'sent in {one.seconds:.1f} s'}")
    return 2 if any(one.problem for one in sent) else 0
