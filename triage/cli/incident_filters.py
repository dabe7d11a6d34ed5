"""The options by which `triage incidents` chooses incidents, declared once for every command that takes them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, get_args

import typer

from triage.clock import parse_time
from triage.domain import Outcome, Status
from triage.errors import UsageError
from triage.store.values import Filters, VerdictKind

_VERDICTS = (*get_args(VerdictKind), "none")


def _options(
    failure_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Only this failure type, such as ecc-error.")
    ] = None,
    outcome: Annotated[str | None, typer.Option(help=f"Only this outcome: {', '.join(get_args(Outcome))}.")] = None,
    node: Annotated[str | None, typer.Option(help="Only incidents that involve this node.")] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Only of jobs of this user.")] = None,
    job: Annotated[str | None, typer.Option(metavar="JOB", help="Only of this job: its id or name.")] = None,
    verdict: Annotated[str | None, typer.Option(help=f"Only with this latest verdict: {', '.join(_VERDICTS)}.")] = None,
    status: Annotated[
        str | None, typer.Option(help=f"Only diagnoses that are this sure: {', '.join(get_args(Status))}.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Not older than this: 7d, 12h, 2026-01-31 or a full UTC time."),
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Older than this.")] = None,
    text: Annotated[
        str | None, typer.Option(help="Only with these words in the title, the cause or a cited line.")
    ] = None,
) -> Filters:
    """A filter that can match nothing is a slip of the fingers, not an empty answer. Errors: UsageError."""
    given = {
        "type": failure_type,
        "outcome": outcome,
        "node": node,
        "user": user,
        "job": job,
        "verdict": verdict,
        "status": status,
        "since": since,
        "until": until,
        "text": text,
    }
    return chosen({name: value for name, value in given.items() if value is not None})


def chosen(given: Mapping[str, str], dashes: str = "--") -> Filters:
    """The filter by the names of its options; dashes: what stands before a name that is told. Errors: UsageError."""
    for name, value in given.items():
        if not value.strip():
            raise UsageError(
                f"{dashes}{name} is empty", "is a variable of the shell not set? leave the option out to take all"
            )
    for name, known in (("outcome", get_args(Outcome)), ("verdict", _VERDICTS), ("status", get_args(Status))):
        if name in given and given[name] not in known:
            raise UsageError(f"{dashes}{name} {given[name]!r} is not known", f"use {', '.join(known)}")
    if "type" in given:
        _check_type(given["type"], dashes)
    since, until = given.get("since"), given.get("until")
    now = datetime.now(UTC)
    start = None if since is None else parse_time(since, now, f"{dashes}since")
    end = None if until is None else parse_time(until, now, f"{dashes}until")
    if start and end and start >= end:
        raise UsageError(f"{dashes}since {since} is not before {dashes}until {until}", "no time lies between them")
    take = given.get
    return Filters(
        take("outcome"),
        take("type"),
        take("node"),
        take("user"),
        take("job"),
        take("verdict"),
        take("status"),
        start,
        end,
        take("text"),
    )


def filtered(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose first parameter is `filters`, with the options that give them in its place."""
    options = inspect.signature(_options, eval_str=True).parameters
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        command(_options(**{name: given.pop(name) for name in options}), **given)

    run.__signature__ = inspect.Signature([*options.values(), *own])  # type: ignore[attr-defined]
    return run


def _check_type(failure_type: str, dashes: str) -> None:
    from difflib import get_close_matches

    from triage import kb

    known = kb.taxonomy().types
    if failure_type not in known:
        near = get_close_matches(failure_type, known, cutoff=0.4)
        raise UsageError(
            f"{dashes}type {failure_type!r} is not known",
            f"did you mean {' or '.join(near)}?" if near else "see kb/taxonomy.yaml",
        )
