"""The command `triage`. Each command's module is imported only when that command runs."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import re
import sys
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from triage import __version__

# command -> (module, what it does); the help page is printed from here, without importing any of them.
COMMANDS = {
    "diagnose": ("triage.cli.diagnose", "Name the root cause of a failed job from its logs, citing lines."),
    "chat": ("triage.cli.chat", "Talk about an incident: why, whose fault, what to do, what fixed it last time."),
    "compress": (
        "triage.cli.compress",
        "Print the log without its routine lines, with an account of what was left out.",
    ),
    "hang": (
        "triage.cli.hang",
        "Diagnose a hang from what was collected of it: stacks, dumps, ps, nvidia-smi, dmesg, logs.",
    ),
    "recover": (
        "triage.cli.recover",
        "Plan the recovery of a job: node test, checkpoint, spike, restart; acts only with --yes.",
    ),
    "watch": ("triage.cli.watch", "Watch a running job for a hang, and say which rank and why."),
    "incidents": (
        "triage.cli.incidents",
        "The incident database: list, show, resolve, stats, export, backup, restore.",
    ),
    "serve": ("triage.cli.serve", "Serve the API, the web page with incidents and uploads, and the chat in it."),
    "mcp": ("triage.cli.mcp", "Serve the same tools to another assistant, over MCP; read-only unless allowed."),
    "slack": ("triage.cli.slack", "Answer in Slack: /triage, questions in its threads, outcomes after a button."),
    "kb": ("triage.cli.kb", "The knowledge base: list, show, search, import, add, check."),
    "rules": (
        "triage.cli.rules",
        "Learned filter rules and signatures: list, show, learn, approve, retire, rollback, test.",
    ),
    "eval": ("triage.cli.eval", "Batch evaluation against labelled cases: run, compare, report, gate."),
    "notify": ("triage.cli.notify", "Messages to Slack, webhooks, commands and e-mail: test."),
    "slurm": ("triage.cli.slurm", "Slurm: have each failed job diagnosed by itself, by an epilog."),
    "config": ("triage.cli.config", "The settings in force and where each came from."),
}


class _Lazy(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, short = COMMANDS[cmd_name]
        if not _runs(cmd_name):
            return TyperCommand(cmd_name, help=short, short_help=short)
        loaded: Any = importlib.import_module(module)
        command = typer.main.get_command(loaded.app)
        command.name, command.short_help = cmd_name, short
        return command


def _runs(name: str) -> bool:
    return name in sys.argv[1:]


_COLLECT_AFTER = 10_000  # objects: to look through all that was imported every 700 takes 30 ms of each start

# What typer raises for unknown commands, options and values.
_BAD_USAGE: type[Exception] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    cls=_Lazy, no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"triage {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Incident triage for training and HPC jobs: evidence first, every claim cites a line."""


def main() -> None:
    """Run, and turn every error into one line on stderr and an exit code; the only place that does."""
    gc.set_threshold(_COLLECT_AFTER)
    from triage.cli import output
    from triage.errors import TriageError

    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except TriageError as error:
        _fail(str(error), error.exit_code)
    except typer.Exit as error:
        sys.exit(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except _BAD_USAGE as error:
        say = getattr(error, "format_message", error.__str__)
        text = say()
        if text.startswith("Usage:"):  # called without a command: the help is the answer
            sys.stderr.write(text + "\n")
            sys.exit(2)
        if negative := re.fullmatch(r"No such option: (-\d+)", text):  # what was meant for a number
            text = f"{negative[1]} is no number of anything here: numbers begin at 1"
        _fail(f"{text} (see triage --help)", 2)
    except (BrokenPipeError, output.ClosedPipe):
        # The reader closed the pipe: not an error. Point stdout elsewhere so that the interpreter's own flush is silent.
        output.mute()
        sys.exit(0)
    except Exception as error:
        if os.environ.get("TRIAGE_DEBUG"):
            raise
        _fail(f"internal error: {type(error).__name__}: {error}; set TRIAGE_DEBUG=1 to see where, and report it", 2)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    shown = "".join(c if c.isprintable() or c == "\n" else "?" for c in message)
    with contextlib.suppress(OSError, AttributeError):  # stderr may be closed: the exit code tells still
        sys.stderr.write(f"triage: {shown}\n")
        sys.stderr.flush()
    sys.exit(code)
