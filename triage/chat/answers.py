"""Answers that code gives to plain questions about an incident, by what they ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from triage.chat import codes, intents, on_cause, on_course, on_log, on_past, on_remedy, places
from triage.chat.desk import Desk
from triage.chat.said import say
from triage.chat.values import Event, Subject
from triage.errors import TriageError
from triage.taxonomy import Taxonomy

CODES, LOG, NODE, RESOLVE = "codes", "log", "node", "resolve"
ASKABLE = (
    "why? is it the node or my code? what should I do? is it safe to restart? which nodes do I drain? when did it start? "
    "which ranks failed first? show me rank 3 around the failure; what fixed it last time? has this happened before? "
    "how sure are you? could it be OOM? what did you not look at? how much was lost? what is Xid 79? write the handover"
)
COMMANDS = "/help lists the commands."


def intent_of(said: str, desk: Desk, likeness: bool = True) -> str:
    """What a question about an incident asks for; "" where it is not known. likeness: by the embedding too."""
    if codes.names_a_code(said) or codes.names_a_label(said, desk.labels):
        return CODES
    if places.names_log(said):
        return LOG
    found = intents.of_question(said)
    if found in ("why", "", "lost") and _could_be(said, desk.labels, by_id=found == "lost"):
        return "else"
    return found or (intents.by_likeness(said, desk.embed) if likeness else "")


def _could_be(said: str, labels: Taxonomy, by_id: bool) -> bool:
    begins = said.lower().split()[:1]
    return begins in (["is"], ["was"], ["maybe"], ["perhaps"]) and on_cause.names_a_type(labels, said, by_id)


# Answers from the incident alone, by what is asked for.
_OF_INCIDENT: Mapping[str, Callable[[Subject], Iterator[Event]]] = {
    "why": on_cause.why,
    "whose": on_cause.whose_fault,
    "sure": on_cause.how_sure,
    "when": on_course.when,
    "timeline": on_course.timeline,
    "ranks": on_course.first_ranks,
    "nodes": on_remedy.which_nodes,
    "restart": on_remedy.restart,
    "lost": on_remedy.lost,
    "progress": on_remedy.progress,
    "unseen": on_past.unseen,
    "facts": on_past.facts,
    "handover": on_past.handover,
}


def by_code(subject: Subject, intent: str, said: str, desk: Desk) -> Iterator[Event]:
    """intent: of intent_of, not ""."""
    if answer := _OF_INCIDENT.get(intent):
        yield from answer(subject)
        return
    match intent:
        case "else":
            yield from on_cause.could_it_be(subject, desk.labels, said)
        case "todo":
            yield from on_remedy.what_to_do(subject, desk.labels)
        case "rank":
            yield from on_log.about_rank(subject, said)
        case "node":
            yield from on_log.about_node(subject, said)
        case "log":
            yield from on_log.around_failure(subject, said)
        case "codes":
            yield from codes.explain(said, desk.matcher(), desk.labels, subject)
        case "fixed":
            yield from on_past.what_fixed_it(recalled(subject, desk))
        case "before":
            yield from on_past.before(recalled(subject, desk))
        case "thanks":
            yield say(
                "You're welcome."
                + ("" if subject.incident is None else " Once it is clear how it turned out: /resolve.")
            )
        case _:
            yield from help_of(subject)


def recalled(subject: Subject, desk: Desk) -> Subject:
    """With the past incidents as they are known now: what fixed one may have been recorded since the diagnosis."""
    if desk.similar is None or subject.stored is None:
        return subject
    try:
        return replace(subject, result={**subject.result, "similar": list(desk.similar(subject))})
    except TriageError:
        return subject  # those that were known then


def help_of(subject: Subject | None) -> Iterator[Event]:
    yield say(
        f"Ask, for example: {ASKABLE}."
        if subject
        else "Ask: what fails most? which nodes? what is still open? /open ID talks about one."
    )
    yield say(COMMANDS)


def unknown(subject: Subject | None, model_set: bool) -> Iterator[Event]:
    why = "" if model_set else " and no model is set (TRIAGE_LLM) that could"
    yield say(f"I cannot tell what that asks for{why}.")
    yield from help_of(subject)
