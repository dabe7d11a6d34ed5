"""`triage hang`: a hang from what was collected of it."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from triage.cli.diagnose import diagnose
from triage.cli.hang_collect import collect
from triage.errors import UsageError

_FOLDER = "DIR"

HELP = """Diagnose a hang from what was collected of it, as `triage diagnose` does a log.

DIR or FILEs: stacks of all ranks (py-spy, faulthandler, gdb, /proc/PID/stack), flight-recorder dumps, ps, nvidia-smi,
dmesg, ncclras, logs of the ranks. The stacks are merged, and the ranks that stand apart or are missing are named.

Exit codes: 0 a cause was found or nothing hangs, 1 the cause is unknown, 2 the input cannot be read.
"""


class _Hang(TyperGroup):
    """`triage hang DIR` beside commands of its own: a first word that is none of these is input."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args:
            raise UsageError("no input", "give the folder of what was collected, or its files: triage hang DIR")
        named = args[0] in self.commands
        rest: list[str] = super().parse_args(ctx, args if named else [_FOLDER, *args])
        return rest


app = typer.Typer(cls=_Hang, add_completion=False, rich_markup_mode=None)


@app.callback()
def hang() -> None:
    """A hang: from what was collected of it."""


app.command(_FOLDER, help=HELP)(diagnose)
app.command("collect")(collect)
