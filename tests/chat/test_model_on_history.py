"""A model that is asked about all incidents: it looks into the database, and code holds it to what was shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.chat.talks import asker, cited, desk, done, notes, said, talker
from tests.openai_server import Answer, OpenAIServer, status
from tests.store.samples import ECC, OOM, as_json
from triage.chat.conversation import Conversation
from triage.chat.values import Event, ToolUsed
from triage.store.incidents import IncidentStore


def ask(
    tmp_path: Path, script: list[str | Answer], question: str = "anything odd lately on gpu-017?"
) -> tuple[list[Event], OpenAIServer]:
    with IncidentStore.open(f"sqlite:///{tmp_path}/t.db") as incidents, OpenAIServer(script) as server:
        for diagnosis in (ECC, OOM, replace(ECC, fingerprint="other")):
            incidents.record(diagnosis, as_json(diagnosis))
        conversation = Conversation(desk(incidents=incidents, talker=talker(server)))
        return asker(conversation)(question), server


def test_it_looks_among_the_incidents_and_cites_them(tmp_path: Path) -> None:
    find = Answer(tool_calls=(("find_incidents", '{"filters": "node=gpu-017"}'), ("count_incidents", "{}")))
    events, server = ask(
        tmp_path, [find, "Node gpu-017 had an ecc-error twice (incident:1) (incident:3). Incident 2 was another."]
    )

    assert [e.name for e in events if isinstance(e, ToolUsed)] == ["find_incidents", "count_incidents"]
    assert [(c.file, c.line) for c in cited(events)] == [("incident", 1), ("incident", 3)]
    assert "ecc-error" in cited(events)[0].text
    assert said(events).startswith("Node gpu-017 had an ecc-error twice")
    assert done(events).produced_by == "llm:openai:scripted"
    assert [p["name"] for p in done(events).prompts] == ["chat-history", "chat-history-question"]
    assert "incident:3 " in server.requests[0].text
    assert "3 incidents among 3 diagnosed jobs" in server.requests[1].text


def test_an_incident_or_a_node_that_is_not_there_is_dropped(tmp_path: Path) -> None:
    events, _ = ask(tmp_path, ["It is gpu-017 (incident:1). See (incident:99). Node gpu-666 fails daily (incident:1)."])

    assert said(events) == "It is gpu-017 (incident:1). \n"
    assert done(events).unsupported == 2
    assert "incident:99 was not shown" in notes(events)


def test_a_model_that_is_down_leaves_the_answer_of_code(tmp_path: Path) -> None:
    events, _ = ask(tmp_path, [status(401)], "what fails most?")

    assert "gave no whole answer" in notes(events)
    assert said(events).startswith("3 incidents among 3 diagnosed jobs")
    assert done(events).produced_by == "code"
