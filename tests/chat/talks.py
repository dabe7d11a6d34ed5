"""Conversations over real diagnoses of logs that ship with the project."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import REPO
from tests.openai_server import OpenAIServer
from triage import config, kb, pipeline
from triage.agents.tools.kit import Tool
from triage.agents.tools.on_facts import FactTools
from triage.agents.tools.on_log import LogTools
from triage.chat.conversation import Conversation
from triage.chat.desk import Desk
from triage.chat.talker import Options, Talker
from triage.chat.values import Cited, Done, Event, Note, OpenedLog, Subject, Text
from triage.cli import wiring
from triage.errors import InputError
from triage.ingest.again import raw_lines
from triage.llm.private import Private
from triage.runbooks import runbooks
from triage.store.values import IncidentSummary, StoredIncident, Verdict

LOST_GPU = (str(REPO / "examples" / "lost-gpu"),)


def case(name: str) -> tuple[str, ...]:
    """The inputs of a shipped case."""
    folder = REPO / "eval" / "cases" / name
    document = yaml.safe_load((folder / "case.yaml").read_text("utf-8"))
    return tuple(str(folder / item) for item in document["inputs"])


def subject(paths: Sequence[str] = LOST_GPU, log: bool = True, **changes: Any) -> Subject:
    """Of these files, diagnosed by the rules. log: whether it can be read again."""
    result, opened = _diagnosed(tuple(paths))
    return Subject({**result, **changes}, (lambda: opened) if log else _gone)


def refuted() -> Subject:
    """The shipped example, whose diagnosis a person rejected."""
    of = subject()
    told = {
        k: str(of.result[k]) for k in ("outcome", "failure_type", "category", "root_cause_class", "status", "action")
    }
    summary = IncidentSummary(7, datetime(2026, 1, 1, tzinfo=UTC), "GPU fell off the bus", **told)
    verdict = Verdict("rejected", "ada", cause="somebody pulled the cable")
    return replace(of, stored=StoredIncident(summary, of.result, verdicts=(verdict,)))


def fresh(paths: Sequence[Path | str]) -> Subject:
    """Of files that a test wrote."""
    result, opened = _diagnosed.__wrapped__(tuple(map(str, paths)))
    return Subject(result, lambda: opened)


@functools.cache
def _diagnosed(paths: tuple[str, ...]) -> tuple[dict[str, Any], OpenedLog]:
    parts = replace(wiring.evaluation_parts(config.load({"llm": "off"}), similar=False))
    kept: list[OpenedLog] = []

    def keep(log: Any, _folded: Any, rules: Any) -> Any:
        kept.append(OpenedLog(log, rules, raw_lines))
        return rules

    _, document = pipeline.diagnose(paths, replace(parts, explain=keep))
    return document, kept[0]


def _gone() -> OpenedLog:
    raise InputError("job.out is not there any more")


def desk(**fields: Any) -> Desk:
    return Desk(lambda: wiring.knowledge().matcher, kb.taxonomy(), fields.pop("open_incident", _none), "ada", **fields)


def _none(number: int) -> Subject:
    raise AssertionError(number)


def talk(about: Subject | None = None, **fields: Any) -> Conversation:
    return Conversation(desk(**fields), about)


def said(events: Sequence[Event]) -> str:
    return "".join(e.text for e in events if isinstance(e, Text))


def cited(events: Sequence[Event]) -> list[Cited]:
    return [e for e in events if isinstance(e, Cited)]


def notes(events: Sequence[Event]) -> str:
    return "\n".join(e.text for e in events if isinstance(e, Note))


def done(events: Sequence[Event]) -> Done:
    (end,) = [e for e in events if isinstance(e, Done)]
    assert events[-1] is end
    return end


def asker(conversation: Conversation) -> Callable[[str], list[Event]]:
    return lambda question: list(conversation.ask(question))


def talker(server: OpenAIServer, **options: Any) -> Talker:
    """A model that asks this server, with the tools of the diagnosis."""

    def tools(log: OpenedLog | None) -> Sequence[Tool]:
        if log is None:
            return ()
        facts = FactTools(log.log, log.rules, kb.taxonomy(), wiring.knowledge().matcher, runbooks().of)
        return (*LogTools(log.log, log.rules, log.read).all(), *facts.all())

    return Talker(Private(server.model()), tools, Options(**{"timeout": 20.0, **options}))
