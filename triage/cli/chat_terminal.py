"""The line editor of `triage chat`: history, completion, and an answer that can be interrupted."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.output.color_depth import ColorDepth

from triage.chat import commands
from triage.chat.conversation import Conversation
from triage.chat.said import ranks_of
from triage.chat.values import Done, Event
from triage.cli import output
from triage.cli.chat_print import Printer, coloured
from triage.redact import redact

PROMPT = "triage> "
_MOST_RANKS = 64


def talk(conversation: Conversation, history: Path) -> None:
    """Until Ctrl-D or /quit. Errors: StoreError when the session cannot be kept."""
    session: PromptSession[str] = PromptSession(
        history=_history(history),
        completer=_Completer(conversation),
        complete_while_typing=False,
        enable_history_search=True,
        color_depth=None if coloured() else ColorDepth.DEPTH_1_BIT,
    )
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a locale that lacks a character ends no conversation
    _show(conversation.opening())
    while True:
        try:
            said = session.prompt(PROMPT)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if said.strip() and answered(conversation, said).quit:
            return


def answered(conversation: Conversation, said: str) -> Done:
    """Prints the answer as it comes. Ctrl-C ends it, not the session."""
    events = conversation.ask(said)
    try:
        return _show(events)
    except KeyboardInterrupt:
        events.close()
        _write("\n(stopped; what was said is kept)\n")
        return Done()


def _show(events: Iterator[Event]) -> Done:
    printer = Printer(_write, output.width(), coloured())
    done = Done()
    for event in events:
        printer(event)
        if isinstance(event, Done):
            done = event
    printer(done)
    return done


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


class _Private(FileHistory):
    """What was typed before, readable for its owner alone and without secrets."""

    def store_string(self, string: str) -> None:
        super().store_string(redact(string))


def _history(file: Path) -> _Private | None:
    """None where it cannot be written: the conversation goes on without it."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
    except OSError:
        return None
    return _Private(str(file))


class _Completer(Completer):
    """Commands, evidence ids, ranks, nodes and files of what is talked about."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        text = document.text_before_cursor
        word = text.split(" ")[-1]
        for name, about in self._words(text):
            if name.lower().startswith(word.lower()) and name != word:
                yield Completion(name, start_position=-len(word), display_meta=about)

    def _words(self, text: str) -> Iterator[tuple[str, str]]:
        if text.startswith("/") and " " not in text:
            yield from ((name, about) for name, (_, about) in commands.ALL.items())
            return
        yield from _named(self._conversation, text)


def _named(conversation: Conversation, text: str) -> Iterator[tuple[str, str]]:
    subject = conversation.subject
    if subject is None:
        return
    if text.lower().startswith("/log ") or text.lower().endswith("rank "):
        ranks = sorted({r for e in subject.evidence for r in ranks_of(e)} | set(subject.result["suspects"]["ranks"]))
        yield from ((str(rank), "rank") for rank in ranks[:_MOST_RANKS])
    yield from ((e["id"], f"{e['file']}:{e['line']}") for e in subject.evidence)
    yield from ((name, "file") for name in subject.result.get("files", ()))
    nodes = {*subject.result["suspects"]["nodes"], *(e["node"] for e in subject.evidence if e.get("node"))}
    yield from ((node, "node") for node in sorted(nodes))
