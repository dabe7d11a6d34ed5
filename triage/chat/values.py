"""What comes out of a conversation, event by event, and what it is about. Pure; no face's types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from triage.domain import Diagnosis, JobLog, RawLine
from triage.store.values import StoredIncident

CODE = "code"  # who answered, where no model did


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer; line ends are in it."""

    text: str


@dataclass(frozen=True, slots=True)
class Cited:
    """A line of the log that the text before it rests on. id: of the evidence, "" for another line; note: what it means."""

    file: str
    line: int
    text: str
    id: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """A tool that a model uses, in words; problem: why it did not work."""

    name: str
    words: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Asks:
    """A question to the user, who answers it with the next turn. choices: what may be said; () for anything."""

    text: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """What should be known of the answer besides: what could not be done, what did not hold."""

    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a turn. produced_by: code or llm:MODEL; unsupported: sentences of a model that were dropped or marked.

    turn: its number in the session, None where none is kept; quit: the user wants no further turn.
    """

    produced_by: str = CODE
    unsupported: int = 0
    prompts: tuple[Mapping[str, Any], ...] = ()
    turn: int | None = None
    quit: bool = False


Event = Text | Cited | ToolUsed | Asks | Note | Done
Events = Iterator[Event]


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """The log of an incident, read again. read: the lines of one of its files from a number on."""

    log: JobLog
    rules: Diagnosis
    read: Callable[[str, int], Iterator[RawLine]]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is talked about: a diagnosis. result: its `triage.diagnosis/1` object.

    open_log: reads its log again, once; Errors of it: InputError that says why it cannot be.
    """

    result: Mapping[str, Any]
    open_log: Callable[[], OpenedLog]
    incident: int | None = None
    stored: StoredIncident | None = None

    @property
    def evidence(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self.result.get("evidence", ())
        return found

    @property
    def name(self) -> str:
        return f"incident {self.incident}" if self.incident is not None else "this diagnosis"


@dataclass(slots=True)
class Answered:
    """An answer as it grew, for the record."""

    text: list[str] = field(default_factory=list)
    citations: list[Cited] = field(default_factory=list)
    tools: list[ToolUsed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, event: Event) -> None:
        match event:
            case Text():
                self.text.append(event.text)
            case Cited():
                self.citations.append(event)
            case ToolUsed():
                self.tools.append(event)
            case Note():
                self.notes.append(event.text)
            case Asks():
                self.text.append(f"{event.text}\n")
