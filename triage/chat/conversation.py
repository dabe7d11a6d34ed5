"""A conversation: a turn in, events out. It knows no terminal, browser or protocol."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, replace

from triage.chat import answers, commands, intents, on_history, on_remedy, outcome, places
from triage.chat.desk import Desk
from triage.chat.history_brief import HistoryDesk
from triage.chat.outcome import Form
from triage.chat.said import STATUS, cause, say, sentence
from triage.chat.values import Answered, Asks, Cited, Done, Event, Note, Subject, Text, ToolUsed
from triage.errors import StoreError, TriageError
from triage.llm.clean import sound
from triage.store.chat_values import StoredTurn, TurnState
from triage.text import how_many, seen

MOST_ASKED = 20_000  # characters of a turn


class Conversation:
    """About one incident (subject), or about the history (None) until one is opened.

    chat: the session that goes on; turns: what was said in it so far.
    """

    def __init__(
        self, desk: Desk, subject: Subject | None = None, chat: int | None = None, turns: Sequence[StoredTurn] = ()
    ) -> None:
        self._desk = desk
        self.subject = subject
        self.chat = chat
        self.turns = list(turns)
        self._form: Form | None = None
        self._steps_told = 0
        self._done = Done()
        self._chats = desk.chats
        self._unkept = ""  # why, where that is still to be said

    @property
    def form(self) -> Form | None:
        """The outcome that is being asked for, where one is."""
        return self._form

    def opening(self) -> Iterator[Event]:
        """What is said before the first question."""
        yield from map(_clean, self._opening_of_history() if self.subject is None else _head(self.subject))
        if self._desk.talker is None:
            yield Note("no model is set: commands and plain questions are answered from the evidence by code")

    def _opening_of_history(self) -> Iterator[Event]:
        store = self._desk.incidents
        found = store.list(limit=3) if store else ()
        if not found:
            yield say(on_history.NONE)
            return
        yield say("The newest incidents:")
        for summary in found:
            yield say(on_history.row(summary))
        yield say("/open ID talks about one, /incidents lists more, /stats counts.")

    def ask(self, said: str) -> Generator[Event, None, None]:
        """The answer, event by event, Done at last. Closed before its end, it is kept as stopped, and the session goes on.

        Never fails: what goes wrong is said.
        """
        said = seen(sound(said[:MOST_ASKED])).strip()
        number = self._begin(said)
        if self._unkept:
            yield Note(f"this conversation is not kept: {self._unkept}")
            self._unkept = ""
        answered = Answered()
        state: TurnState = "stopped"
        self._done = Done(turn=number)
        try:
            for event in map(_clean, self._answer(said)):
                answered.add(event)
                yield event
            state = "answered"
        except TriageError as error:
            state = "failed"
            failure = _clean(say(f"That cannot be done: {error}"))
            answered.add(failure)
            yield failure
        except Exception as error:  # noqa: BLE001 - at 3 a.m. the next question can still be asked
            state = "failed"
            failure = _clean(
                say(
                    f"That went wrong inside ({type(error).__name__}); other questions may be asked, and please report it."
                )
            )
            answered.add(failure)
            yield failure
        finally:
            self._keep(said, number, answered, state)
        yield self._done

    # ------------------------------------------------------------------------------------------ the record
    def _begin(self, said: str) -> int | None:
        """The number of the turn; None where it is not kept."""
        if self._chats is None:
            return None
        incident = self.subject.incident if self.subject else None
        try:
            if self.chat is None:
                self.chat = self._chats.begin(self._desk.who, incident)
            return self._chats.ask(self.chat, said, incident)
        except StoreError as error:
            self._chats, self._unkept = None, str(error)
            return None

    def _keep(self, said: str, number: int | None, answered: Answered, state: TurnState) -> None:
        done = self._done
        turn = StoredTurn(
            asked=said,
            answer="".join(answered.text),
            state=state,
            produced_by=done.produced_by,
            tools=tuple(map(asdict, answered.tools)),
            citations=tuple(map(asdict, answered.citations)),
            notes=tuple(answered.notes),
            prompts=done.prompts,
            unsupported=done.unsupported,
            number=number or len(self.turns) + 1,
            incident=self.subject.incident if self.subject else None,
        )
        self.turns.append(turn)
        if self._chats is not None and self.chat is not None and number is not None:
            try:
                self._chats.answer(self.chat, number, turn)
            except StoreError as error:
                self._unkept = str(error)  # said with the next answer

    # ------------------------------------------------------------------------------------------ the answer
    def _answer(self, said: str) -> Iterator[Event]:
        if not said:
            yield from answers.help_of(self.subject)
            return
        name, rest = commands.split(said)
        if self._form is not None:
            taken = yield from self._fill(said, bool(name))
            if taken:
                return
        if name:
            yield from self._command(name, rest)
        elif self.subject is None:
            yield from self._of_history(said)
        else:
            yield from self._of_incident(self.subject, said)

    def _command(self, name: str, rest: str) -> Iterator[Event]:
        if name == "/quit":
            self._done = replace(self._done, quit=True)
        elif name == "/open":
            yield from self._open(rest)
        elif self.subject is not None and name == "/next":
            yield from on_remedy.next_step(self.subject, self._steps_told)
            self._steps_told += 1
        elif self.subject is not None and name == "/resolve":
            yield from self._resolve(self.subject, rest)
        else:
            yield from commands.run(name, rest, self.subject, self._desk)

    def _open(self, rest: str) -> Iterator[Event]:
        number = rest.strip().lstrip("#")
        if not (number.isascii() and number.isdigit() and len(number) < 10):
            yield say("/open takes the number of an incident; /incidents lists them.")
            return
        self.subject = self._desk.open_incident(int(number))
        self._steps_told = 0
        yield from _head(self.subject)

    def _of_history(self, said: str) -> Iterator[Event]:
        opened = said.lower().removeprefix("incident").strip(" #?")
        intent, store, talker = intents.of_history(said), self._desk.incidents, self._desk.talker
        if opened.isdigit():
            yield from self._open(opened)
            return
        if intent in ("help", "thanks"):
            yield from answers.help_of(None)
            return
        known = list(on_history.answer(store, intent, said)) if intent else list[Event]()
        if talker is not None and store is not None:
            desk = HistoryDesk(store, self._desk.labels)
            told = yield from talker.about_history(desk, said, self.turns, known)
            self._done = replace(
                self._done, produced_by=told.produced_by, prompts=told.prompts, unsupported=told.unsupported
            )
            if told.answered:
                return
        yield from known or answers.unknown(None, talker is not None)

    def _of_incident(self, subject: Subject, said: str) -> Iterator[Event]:
        model_set = self._desk.talker is not None
        intent = answers.LOG if places.names_one(subject, said) else ""
        intent = intent or answers.intent_of(said, self._desk, likeness=not model_set)
        intent = intent or (answers.NODE if places.names_node(subject, said) else "")
        if intent == answers.RESOLVE and not model_set:
            yield from self._resolve(subject, "")
        elif model_set and intent not in ("help", "thanks"):
            yield from self._by_model(subject, said, intent)
        elif intent:
            yield from answers.by_code(subject, intent, said, self._desk)
        else:
            found = list(answers.by_code(subject, answers.CODES, said, self._desk))
            yield from found or answers.unknown(subject, model_set)

    def _by_model(self, subject: Subject, said: str, intent: str) -> Iterator[Event]:
        """The model's answer; where it gives none that holds, that of code."""
        assert self._desk.talker is not None
        known: list[Event] = []
        if intent not in ("", answers.RESOLVE):
            known = list(answers.by_code(subject, intent, said, self._desk))
        told = yield from self._desk.talker.answer(subject, said, self.turns, known)
        self._done = replace(
            self._done, produced_by=told.produced_by, prompts=told.prompts, unsupported=told.unsupported
        )
        if not told.answered:
            yield from known or answers.unknown(subject, model_set=False)
        if told.outcome and subject.incident is not None and self._desk.resolve is not None:
            self._form = Form(subject.incident, dict(told.outcome), by_model=True)
            yield self._form.next(subject)

    # ------------------------------------------------------------------------------------------ outcomes
    def _resolve(self, subject: Subject, rest: str) -> Iterator[Event]:
        if subject.incident is None:
            yield say("This diagnosis is not recorded, so no outcome can be kept; diagnose it without --no-record.")
        elif self._desk.resolve is None:
            yield say("Nothing is recorded: here you may only read. In a server, ask for a token with the role write.")
        else:
            given, problem = outcome.parse(rest)
            if problem:
                yield say(f"{sentence(problem)} /resolve {' '.join(commands.OF_INCIDENT['/resolve'][:1])}")
                return
            self._form = Form(subject.incident, given)
            yield self._form.next(subject)

    def _fill(self, said: str, is_command: bool) -> Generator[Event, None, bool]:
        """Takes the turn as the answer to what was asked for an outcome; returns False where it is something else."""
        form, subject = self._form, self.subject
        assert form is not None
        word = said.lower().strip(" .!")
        if subject is None or is_command or (form.asked != "worked" and word in outcome.NO):
            self._form = None
            yield say("Nothing is recorded.")
            return not is_command
        if form.asked == "confirm":
            self._form = None
            if word not in outcome.YES:
                yield say("Nothing is recorded: that was no yes.")
                return False
            yield from self._record(form, subject)
            return True
        if outcome.is_else(form, said):
            self._form = None
            yield say("Nothing is recorded; /resolve takes it up again.")
            return False
        if problem := form.take(said):
            yield say(f"{sentence(problem)} (no: record nothing)")
        yield form.next(subject)
        return True

    def _record(self, form: Form, subject: Subject) -> Iterator[Event]:
        assert self._desk.resolve is not None
        for words in self._desk.resolve(form.incident, form.as_verdict(self._desk.who, self._desk.via)):
            yield say(sentence(words))
        opened = self._desk.open_incident(form.incident)
        self.subject = replace(opened, open_log=subject.open_log)  # which may be read already


def _head(subject: Subject) -> Iterator[Event]:
    r, stored = subject.result, subject.stored
    recorded = f", recorded {stored.summary.created_at:%Y-%m-%d %H:%M} UTC" if stored else ""
    yield say(
        f"{subject.name[:1].upper()}{subject.name[1:]}{recorded}: {r['outcome']}, {r['failure_type']}, {STATUS[r['status']]}."
    )
    yield say(cause(subject))
    if stored and stored.verdicts:
        yield say(f"{stored.verdicts[-1].who} recorded that it was {stored.verdicts[-1].verdict}.")
    lines = how_many(len(subject.evidence), "line")
    yield say(f"{lines} cited; the action is {r['action']}.")


def _clean(event: Event) -> Event:
    """Nothing of it can steer a terminal."""
    match event:
        case Text():
            return Text(seen(event.text))
        case Cited():
            return replace(event, file=seen(event.file), text=_one_line(event.text), note=_one_line(event.note))
        case ToolUsed():
            return replace(event, words=_one_line(event.words), problem=_one_line(event.problem))
        case Note() | Asks():
            return replace(event, text=seen(event.text))
    return event


def _one_line(text: str) -> str:
    return seen(text).replace("\n", " ").replace("\t", " ")
