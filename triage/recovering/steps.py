"""Runs the steps of a plan that are allowed, in their order, each written down before and after."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

from triage.errors import InputError
from triage.recover.step import Plan, Step
from triage.recovering.processes import together

TIMEOUT = 120  # seconds of one command
TEST_TIMEOUT = 6 * 3600  # of a whole node test
_POLL = 5.0
_NO_SUCH_JOB = re.compile(r"(?i)invalid job id")
SHOWN = 2000  # characters of the end of what it printed

State = Literal["done", "failed", "held back", "not allowed", "not needed", "not reached", "for you"]


@dataclass(frozen=True, slots=True)
class Done:
    step: Step
    state: State
    code: int | None = None
    output: str = ""


class Book(Protocol):
    """Where what is done is written down."""

    def begin(self, step: Step) -> int: ...

    def end(self, number: int, code: int | None, output: str) -> None: ...


def run(
    plan: Plan, allowed: Collection[str], book: Book, tell: Callable[[str], None] = lambda _text: None
) -> Iterator[Done]:
    """What became of each step. Steps that only read are always allowed, and their failure stops nothing; that of another
    stops the rest, as each relies on the one before. A step that is not allowed is left to a person, and so is all that follows it, and
    all that follows what a person has to do first."""
    stopped = False
    for step in plan.steps:
        if not step.argv:
            stopped = stopped or step.first
            yield Done(step, "for you")
        elif step.risk != "read-only" and stopped:
            yield Done(step, "not reached")
        elif step.risk != "read-only" and step.kind not in allowed:
            stopped = step.kind != "kill-switch"
            yield Done(step, "not allowed")
        elif step.while_ and not _still(step, book):
            yield Done(step, "not needed")
        elif (step.unless and (told := _told(step, book))) or (step.began and (told := _anew(step, book))):
            stopped = True
            yield Done(step, "held back", None, f"it was not run, as {told}")
        else:
            tell(step.what)
            done = _one(step, book)
            stopped = stopped or (done.state == "failed" and step.risk != "read-only")
            yield done


def _one(step: Step, book: Book) -> Done:
    number = book.begin(step)
    try:
        (ended,) = together([step.argv], TEST_TIMEOUT if step.kind == "node-test" else TIMEOUT)
        code, output = ended.code, ended.output
    except InputError as error:
        code, output = None, str(error)
    book.end(number, code, output)
    return Done(step, "done" if code == 0 else "failed", code, output[-SHOWN:])


def _told(step: Step, book: Book) -> str:
    """What speaks against the step; "" where nothing does. A question that found no answer speaks against it too."""
    guard = _one(_guard(step, step.unless), book)
    said = " ".join(guard.output.split())
    gone = not said if guard.state == "done" else _NO_SUCH_JOB.search(said)
    if gone:
        return ""
    return f"`{' '.join(step.unless)}` says: {said or f'no answer (it ended with {guard.code})'}"


def _anew(step: Step, book: Book) -> str:
    """Why what runs is another run than the one that the step is to end, or may be one; "" where it is that one, or nothing runs."""
    guard = _one(_guard(step, step.began), book)
    times = guard.output.split()
    if guard.state != "done" or not all(time.isdigit() for time in times):
        return f"it is not known when the job began: `{' '.join(step.began)}` says: {' '.join(times) or 'no answer'}"
    late = max(map(int, times), default=0)
    if late <= step.known:
        return ""
    return (
        f"the job began anew at {datetime.fromtimestamp(late, UTC):%Y-%m-%d %H:%M} UTC, after it was found to hang:"
        " see how that run does, and diagnose it"
    )


def _guard(step: Step, argv: tuple[str, ...]) -> Step:
    return Step("look", f"Before: {step.what}", "whether it is still right", "read-only", argv)


def _still(step: Step, book: Book) -> bool:
    """Is there something left to do once the step before had its time? Where it cannot be asked, there is. Written down as one look."""
    until = time.monotonic() + step.wait
    number = book.begin(_guard(step, step.while_))
    while True:
        try:
            (ended,) = together([step.while_], TIMEOUT)
            code, output = ended.code, ended.output
        except InputError as error:
            code, output = None, str(error)
        gone = code == 0 and not output.strip()
        if gone or code is None or time.monotonic() >= until:
            book.end(number, code, output)
            return not gone
        time.sleep(min(_POLL, max(0.0, until - time.monotonic())))
