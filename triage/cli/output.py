"""Printing: results on stdout, progress and notes on stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

from triage.errors import UsageError


class ClosedPipe(Exception):  # noqa: N818 - no error: the reader has seen enough
    """Nobody reads stdout any more."""


FORMATS = ("text", "json", "markdown")


def check_format(value: str | None, allowed: tuple[str, ...] = FORMATS) -> str:
    """The chosen format; text when none is given."""
    if value is None:
        return "text"
    if value not in allowed:
        raise UsageError(f"--format {value!r} is not known", f"use {', '.join(allowed)}")
    return value


def width() -> int:
    """Columns of the terminal; 80 in a CI log or a pipe."""
    return min(shutil.get_terminal_size((80, 24)).columns, 120) if sys.stdout.isatty() else 80


def print_result(result: dict[str, Any], chosen: str, details: bool = False) -> None:
    """details: of the text, as JSON and markdown hold all."""
    from triage import report

    if chosen == "json":
        write_last(json.dumps(result, ensure_ascii=False))
    elif chosen == "markdown":
        write_last(report.render_markdown(result))
    else:
        write_last(report.render_text(result, width(), details))


def write(text: str) -> None:
    """To stdout as UTF-8 whatever the locale says; a character that cannot be written is replaced."""
    data = (text if text.endswith("\n") else text + "\n").encode("utf-8", "replace")
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:
        sys.stdout.write(data.decode("utf-8"))
    else:
        try:
            sys.stdout.flush()
            stream.write(data)
            stream.flush()
        except BrokenPipeError:
            raise ClosedPipe from None  # not an OSError, which typer would turn into exit code 1


def write_last(text: str) -> None:
    """What a command ends with. That nobody reads it does not change the exit code, which may be a verdict."""
    try:
        write(text)
    except ClosedPipe:
        mute()


def mute() -> None:
    """Stdout leads nowhere from now on, so that the interpreter's own flush is silent too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def teller(quiet: bool) -> Callable[[str], None]:
    """Progress on stderr: one line that is rewritten on a terminal, nothing in a pipe."""
    if quiet or not sys.stderr.isatty():
        return lambda _text: None

    def tell(text: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{text[: width() - 1]}")
        sys.stderr.flush()

    return tell


def clear_progress(quiet: bool) -> None:
    if not quiet and sys.stderr.isatty():
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()


def note(text: str, quiet: bool = False) -> None:
    if not quiet:
        from triage.report import visible

        sys.stderr.write(f"triage: {visible(text)}\n")


def tell_failure(error: Exception) -> None:
    """Where something broke that did not end the command, on stderr, without secrets."""
    import traceback

    from triage.redact import redact

    for line in redact("".join(traceback.format_exception(error))).splitlines():
        note(line)
