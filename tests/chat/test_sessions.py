"""A conversation with a database: kept turn by turn, gone on with, and outcomes only after a yes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.chat.talks import asker, desk, done, notes, said, subject
from tests.databases import lay_down
from tests.store.samples import ECC, OOM, as_json
from triage.chat.conversation import Conversation
from triage.chat.values import Asks, Event, Subject
from triage.errors import NotFoundError, UsageError
from triage.store.chats import ChatStore
from triage.store.incidents import IncidentStore
from triage.store.values import Verdict


@dataclass
class Site:
    incidents: IncidentStore
    chats: ChatStore
    incident: int

    def subject(self, number: int | None = None) -> Subject:
        found = self.incidents.get(self.incident if number is None else number)
        return Subject(found.result, subject(log=False).open_log, found.id, found)

    def resolve(self, number: int, verdict: Verdict) -> tuple[str, ...]:
        kept = self.incidents.resolve(number, verdict)
        return (f"incident {number}: {kept.verdict}",)

    def talk(self, about: Subject | None = None, **fields: object) -> Conversation:
        given = {
            "incidents": self.incidents,
            "chats": self.chats,
            "resolve": self.resolve,
            "open_incident": self.subject,
        }
        return Conversation(desk(**(given | fields)), about)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    url = lay_down(f"sqlite:///{tmp_path}/triage.db")
    with IncidentStore.open(url) as incidents, ChatStore.open(url) as chats:
        incidents.record(OOM, as_json(OOM))
        result = dict(subject().result)
        yield Site(incidents, chats, incidents.record(replace(ECC, failure_type="gpu-lost"), result))


def asks(events: list[Event]) -> str:
    return "".join(e.text for e in events if isinstance(e, Asks))


def test_each_turn_is_kept_when_it_ends(site: Site) -> None:
    conversation = site.talk(site.subject())
    events = asker(conversation)("why?")

    (turn,) = site.chats.get(conversation.chat or 0).turns
    assert (turn.asked, turn.state, turn.produced_by, turn.incident) == ("why?", "answered", "code", site.incident)
    assert turn.answer == said(events)
    assert turn.citations[0]["id"] == "E1"
    assert done(events).turn == 1


def test_a_question_is_kept_before_its_answer_comes(site: Site) -> None:
    conversation = site.talk(site.subject())
    events = conversation.ask("why?")
    next(events)  # and then the process is killed

    assert [(t.asked, t.state) for t in site.chats.get(conversation.chat or 0).turns] == [("why?", "asked")]


def test_an_answer_that_is_interrupted_is_kept_as_far_as_it_came(site: Site) -> None:
    conversation = site.talk(site.subject())
    events = conversation.ask("why?")
    first = next(events)
    events.close()
    asker(conversation)("what should I do?")

    one, two = site.chats.get(conversation.chat or 0).turns
    assert (one.state, one.answer) == ("stopped", said([first]))
    assert two.state == "answered"


def test_a_session_goes_on(site: Site) -> None:
    before = site.talk(site.subject())
    asker(before)("why?")
    found = site.chats.get(before.chat or 0)
    after = Conversation(
        desk(chats=site.chats, open_incident=site.subject), site.subject(found.incident), found.id, found.turns
    )
    asker(after)("how sure are you?")

    assert [t.asked for t in site.chats.get(found.id).turns] == ["why?", "how sure are you?"]
    assert [t.asked for t in after.turns] == ["why?", "how sure are you?"]


def test_the_history_is_talked_about_until_an_incident_is_opened(site: Site) -> None:
    conversation = site.talk()
    ask = asker(conversation)

    assert "The newest incidents:" in said(list(conversation.opening()))
    assert "gpu-lost" in said(ask("/incidents"))
    assert "/incidents lists them" in said(ask("/evidence"))
    assert said(ask(f"/open {site.incident}")).startswith(f"Incident {site.incident}, recorded")
    assert said(ask("is it the node or my code?")).startswith("The node:")
    assert [t.incident for t in site.chats.get(conversation.chat or 0).turns][-1] == site.incident


def test_filters_are_those_of_the_list(site: Site) -> None:
    ask = asker(site.talk())

    assert said(ask("/incidents type=out-of-memory")).count("\n") == 2
    assert said(ask("/incidents type=gpu-lost verdict=confirmed")) == "No incident fits.\n"
    assert "failure_type 'gpu-los' is not known" in said(ask("/incidents type=gpu-los"))
    assert "there is no filter 'color'" in said(ask("/incidents color=red"))
    assert "2 incidents among 2 diagnosed jobs" in said(ask("/stats"))
    assert "2 incidents among 2 diagnosed jobs" in said(ask("what fails most?"))


@pytest.mark.parametrize("number", ["99", "0", "x", "99999999999", ""])
def test_an_incident_that_is_not_there_is_said_so(site: Site, number: str) -> None:
    conversation = site.talk()
    answer = said(asker(conversation)(f"/open {number}"))

    assert "no incident" in answer or "takes the number of an incident" in answer
    assert conversation.subject is None


def test_an_outcome_is_recorded_after_a_yes(site: Site) -> None:
    conversation = site.talk(site.subject())
    ask = asker(conversation)
    question = asks(ask("/resolve confirmed fix=drained gpu-042, restarted worked=yes"))

    assert (
        question
        == f"Record for incident {site.incident}: confirmed, fix 'drained gpu-042, restarted', it worked? yes or no"
    )
    assert site.incidents.get(site.incident).verdicts == ()
    assert f"incident {site.incident}: confirmed." in said(ask("yes"))
    (verdict,) = site.incidents.get(site.incident).verdicts
    assert (verdict.verdict, verdict.fix, verdict.worked, verdict.who, verdict.via) == (
        "confirmed", "drained gpu-042, restarted", "yes", "ada", "chat",
    )  # fmt: skip
    assert "drained gpu-042, restarted (it worked)" in said(ask("what fixed it last time?"))


def test_an_outcome_is_asked_field_by_field(site: Site) -> None:
    ask = asker(site.talk(site.subject()))
    questions = [asks(ask(said_)) for said_ in ("/resolve", "corr", "a riser card", "reseated it", "maybe", "yes")]

    assert questions[0].startswith("Was that right? triage said gpu-lost")
    assert questions[1:4] == [
        "What was the cause instead?",
        "What fixed it? (- for nothing)",
        "Did it work? yes, no or unknown",
    ]
    assert questions[4] == "Did it work? yes, no or unknown"
    assert questions[5].startswith("Record for incident")
    ask("y")
    (verdict,) = site.incidents.get(site.incident).verdicts
    assert (verdict.verdict, verdict.cause, verdict.fix, verdict.worked) == (
        "corrected",
        "a riser card",
        "reseated it",
        "yes",
    )


def test_an_outcome_that_is_told_in_words_is_asked_for(site: Site) -> None:
    conversation = site.talk(site.subject())

    assert asks(asker(conversation)("record that we drained it and it works")).startswith("Was that right?")
    assert site.incidents.get(site.incident).verdicts == ()


@pytest.mark.parametrize("asked", ["why?", "is it the network", "write the handover", "help"])
@pytest.mark.parametrize("before", [(), ("corrected",)])
def test_a_question_is_answered_though_an_outcome_is_asked_for(site: Site, before: tuple[str, ...], asked: str) -> None:
    conversation = site.talk(site.subject())
    ask = asker(conversation)
    asked = f"{asked}?" if before and not asked.endswith("?") else asked  # a cause may be told in any words
    plain = said(asker(site.talk(site.subject()))(asked))
    for told in ("/resolve", *before):
        ask(told)

    assert said(ask(asked)) == f"Nothing is recorded; /resolve takes it up again.\n{plain}"
    assert conversation.form is None


def test_what_a_person_said_instead_stands_before_what_the_rules_say(site: Site) -> None:
    ask = asker(site.talk(site.subject()))
    for told in ("/resolve corrected type=out-of-memory cause=a leak fix=less workers worked=yes", "yes"):
        ask(told)

    said_first = "ada corrected this diagnosis: out-of-memory; a leak; fixed by: less workers (it worked).\n"
    assert said(ask("what should I do?")).startswith(said_first)
    assert said(ask("why?")).startswith(said_first)


def test_a_question_is_no_outcome_and_a_yes_to_whether_it_was_right_is(site: Site) -> None:
    conversation = site.talk(site.subject())
    ask = asker(conversation)
    ask("how long until it is fixed?")
    assert conversation.form is None
    ask("it was a bad riser card, we replaced it and it worked")
    assert conversation.form is not None
    assert asks(ask("yes")) == "What fixed it? (- for nothing)"


@pytest.mark.parametrize("answer", ["no", "cancel", "why?", "hmm", "/evidence"])
def test_nothing_is_recorded_without_a_yes(site: Site, answer: str) -> None:
    conversation = site.talk(site.subject())
    ask = asker(conversation)
    ask("/resolve confirmed fix=drained worked=yes")
    events = ask(answer)

    assert "Nothing is recorded" in said(events)
    assert conversation.form is None
    assert ("E1" in str(events)) == (answer in ("why?", "/evidence"))  # which is answered all the same
    ask("yes")
    assert site.incidents.get(site.incident).verdicts == ()


def test_what_cannot_be_recorded_is_said(site: Site) -> None:
    ask = asker(site.talk(site.subject()))

    assert "'fine' is none of confirmed, corrected, rejected" in said(ask("/resolve fine"))
    assert "here you may only read" in said(asker(site.talk(site.subject(), resolve=None))("/resolve confirmed"))
    assert "not recorded" in said(asker(site.talk(subject()))("/resolve confirmed"))

    def refuse(_number: int, _verdict: Verdict) -> tuple[str, ...]:
        raise UsageError("a confirmed diagnosis keeps its labels")

    refused = asker(site.talk(site.subject(), resolve=refuse))
    refused("/resolve confirmed fix=- type=hang worked=no")
    assert "That cannot be done: a confirmed diagnosis keeps its labels" in said(refused("yes"))


def test_a_report_goes_where_it_is_to_be_written(site: Site, tmp_path: Path) -> None:
    written: list[tuple[str, str]] = []

    def save(name: str, text: str) -> str:
        written.append((name, text))
        return name

    assert said(asker(site.talk(site.subject(), save=save))("/report a.md")) == "Written to a.md.\n"
    assert written[0][1].startswith("## failed: gpu-lost")
    assert said(asker(site.talk(site.subject()))("/report")).startswith("## failed: gpu-lost")
    assert "no file can be written" in said(asker(site.talk(site.subject()))("/report a.md"))


def test_commands_are_known_by_their_beginning_and_others_are_not(site: Site) -> None:
    ask = asker(site.talk(site.subject()))

    assert said(ask("/ev 1")) == said(ask("/evidence 1"))
    assert said(ask("/re")) == "/re may be /remedy, /resolve, /report; give more of it.\n"
    assert said(ask("/nonsense")).startswith("There is no /nonsense; there are /evidence")
    assert done(ask("/quit")).quit
    assert all(name in said(ask("/help")) for name in ("/evidence", "/log", "/resolve", "/incidents"))


def test_a_session_of_an_incident_that_is_not_there_cannot_begin(site: Site) -> None:
    with pytest.raises(NotFoundError):
        site.chats.begin("ada", 4711)


def test_a_database_that_fails_costs_the_record_and_no_answer(site: Site) -> None:
    conversation = site.talk(site.subject())
    ask = asker(conversation)
    ask("why?")
    with site.incidents._engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE chat_turn")
    events = ask("which nodes do I drain?")

    assert "this conversation is not kept" in notes(events)
    assert said(events).startswith("gpu-042")
    assert notes(ask("why?")) == ""  # said once
