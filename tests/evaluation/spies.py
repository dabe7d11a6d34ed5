"""Parts for workers of an evaluation that misbehave or watch. Workers import them by name."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from triage.cli import wiring
from triage.config import Settings
from triage.errors import UsageError
from triage.parts import Parts


def plain(settings: Settings) -> Parts:
    return wiring.evaluation_parts(settings, similar=False)


def obedient(settings: Settings) -> Parts:
    """Does in the middle of a diagnosis what the log says."""

    def obey(_text: str) -> None:
        for word in Path("job.out").read_text().split():
            if word == "@raise":
                raise ZeroDivisionError("the log told so")
            if word == "@die":
                os.kill(os.getpid(), signal.SIGKILL)
            if word == "@exit":
                os._exit(3)
            if word == "@sleep":
                time.sleep(60)

    return replace(plain(settings), tell=obey)


def slow(settings: Settings) -> Parts:
    return replace(plain(settings), tell=lambda _text: time.sleep(0.3))


def unable(settings: Settings) -> Parts:
    raise UsageError("this knowledge base cannot be used")


def dying(settings: Settings) -> Parts:
    os._exit(7)


def dying_once(settings: Settings, mark: Path) -> Parts:
    """The first worker that starts does not."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return plain(settings)
    os._exit(7)


def watched(settings: Settings, notes: Path) -> Parts:
    """Writes down what this process can see and what it asks of the operating system."""
    stream = notes.open("a")

    def note(kind: str, *values: Any) -> None:
        stream.write(json.dumps([kind, *map(repr, values)]) + "\n")
        stream.flush()

    def audit(event: str, args: tuple[Any, ...]) -> None:
        if event.startswith(("open", "os.", "subprocess", "shutil", "glob", "pathlib", "socket")):
            note(event, *args)

    def look(_text: str) -> None:
        here = Path.cwd()
        seen = {str(p): p.lstat().st_mtime for p in here.parent.rglob("*")}
        links = [str(p) for p in here.parent.rglob("*") if p.is_symlink()]
        note("look", str(here), seen, links, sys.argv, dict(os.environ), str(settings.home), settings.database_url)

    made = replace(plain(settings), tell=look)
    sys.addaudithook(audit)
    return made
