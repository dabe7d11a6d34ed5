"""`triage watch`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from triage.cli import durations, notifying, output
from triage.errors import UsageError

if TYPE_CHECKING:
    from triage.config import Settings
    from triage.watching.values import Status

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_LOOKS_ONCE = 2  # what moves is seen between two looks
_SENDING, _STOPPING = 70.0, 3.0  # seconds for messages at the end of the job, two one after the other; and at a signal
_AGAIN = 10.0  # seconds between two looks at the stacks: those of a job that hangs stay the same


@app.command()
def watch(
    pid: int | None = typer.Option(None, "--pid", metavar="PID", help="A process of this machine and all below it."),
    job: str | None = typer.Option(None, "--job", metavar="ID", help="A Slurm job, on each of its nodes."),
    pod: str | None = typer.Option(None, "--pod", metavar="NAME", help="A pod of Kubernetes; python3 must be in it."),
    namespace: str = typer.Option("", "--namespace", "-n", metavar="NS", help="Of the pod."),
    container: str = typer.Option("", "--container", "-c", metavar="NAME", help="Of the pod."),
    logs: list[str] | None = typer.Option(
        None, "--logs", metavar="FILE", help="A log of the job; repeatable; alone or beside the others."
    ),
    period: str | None = typer.Option(
        None, "--period", metavar="SPAN", help="Between two looks; a bare number is in seconds.", show_default="30s"
    ),
    hang_time: str | None = typer.Option(
        None,
        "--hang-time",
        metavar="SPAN",
        help="Without progress for so long it is hung; a bare number is in minutes.",
        show_default="30m, or MA_HANG_DETECT_TIME",
    ),
    once: bool = typer.Option(False, "--once", help="Look twice, a period apart, and say what is to be seen."),
    until_hung: bool = typer.Option(False, "--until-hung", help="End at the first hang; default: when the job ends."),
    collect: Path | None = typer.Option(
        None, "--collect", metavar="DIR", help="Where what is collected of a hang goes.", show_default="in the home"
    ),
    no_collect: bool = typer.Option(False, "--no-collect", help="Collect and diagnose nothing."),
    again: str | None = typer.Option(
        None,
        "--again",
        metavar="SPAN",
        help="Until the stacks are collected a second time: what moved between does not hang; 0: once.",
        show_default="10s",
    ),
    notify: list[str] | None = typer.Option(None, "--notify", metavar="CHANNEL|settings", help=notifying.OPTION),
    heartbeat: Path | None = typer.Option(
        None, "--heartbeat", metavar="FILE", help="Written at each look, so that a dead watcher is noticed."
    ),
    check_heartbeat: Path | None = typer.Option(
        None,
        "--check-heartbeat",
        metavar="FILE",
        help="Say whether the watcher that writes FILE lives; 1: it does not.",
    ),
    format: str | None = typer.Option(  # noqa: A002
        None, "--format", help="text, or json: one object a line for each change.", show_default="text"
    ),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No notes."),
) -> int:
    """Watch a running job for a hang; once hung, collect what is needed and say which rank and why.

    Exit codes: 0 the job ended or, with --once, is not hung, 1 it is hung or ended with an error, 2 it cannot be watched.
    """
    chosen = output.check_format(format, ("text", "json"))
    if check_heartbeat is not None:
        return _check(check_heartbeat, chosen)
    for name, given in (("--collect", collect), ("--again", again)):
        if given is not None and no_collect:
            raise UsageError(f"{name} and --no-collect exclude each other", "give one of them")
    from triage.cli import stopping, watch_target
    from triage.cli.watch_messages import Messages
    from triage.cli.watch_teller import Collecting, Teller
    from triage.config import load, unknown_variables
    from triage.watching import loop
    from triage.watching.heartbeat import Heartbeat
    from triage.watching.values import Options

    for words in unknown_variables():
        output.note(words, quiet)
    settings = load()
    options = Options(_hang_time(hang_time, settings), _period(period, settings))
    asked = watch_target.Asked(pid, job, pod, namespace, container, tuple(logs or ()))
    target, found = watch_target.find(asked, settings)
    messages = Messages(notifying.notifier(settings, notify), quiet) if notify else None
    beat = Heartbeat(heartbeat, options.period, target.name) if heartbeat else None
    stop = stopping.Stop()
    collecting = None if no_collect else Collecting(collect or settings.home / "hangs", found, _again(again))
    teller = Teller(target, chosen, beat, collecting, messages, quiet)
    watcher = loop.Watcher(target, options, teller, stop)
    try:
        status = watcher.run(_LOOKS_ONCE if once else None, until_hung)
    finally:
        teller.close(_STOPPING if stop() else _SENDING)
    if beat:
        beat.beat(status, ended=not stop())
    if stop():
        raise typer.Exit(128 + stop.signal)
    return _code(status, target.name, watcher.standing)


def _again(given: str | None) -> float:
    if given is None:
        return _AGAIN
    return 0.0 if given.strip() == "0" else durations.seconds(given, "--again", "s")


def _hang_time(given: str | None, settings: Settings) -> float:
    return durations.seconds(given, "--hang-time", "m") if given else settings.hang_minutes * 60.0


def _period(given: str | None, settings: Settings) -> float:
    return durations.seconds(given, "--period", "s") if given else float(settings.watch_period)


def _code(status: Status, name: str, standing: bool) -> int:
    if status.state == "unseen":
        raise UsageError(f"{name} cannot be watched: {'; '.join(status.words)}", "see what is said of each node")
    return 1 if standing or status.state in ("hung", "failed") else 0


def _check(path: Path, chosen: str) -> int:
    from triage.watching import heartbeat

    pulse = heartbeat.check(path)
    output.write_last(json.dumps({"alive": pulse.alive, "words": pulse.words}) if chosen == "json" else pulse.words)
    return 0 if pulse.alive else 1
