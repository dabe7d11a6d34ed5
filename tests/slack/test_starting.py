"""Starting the bot: what it needs, and what it knows of before."""

from __future__ import annotations

import json
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.openai_server import OpenAIServer
from tests.slack.fake import APP, BOT, CHANNEL, FakeSlack, until
from tests.slack.test_bot import LOG, opened, reply
from triage import config
from triage.cli import slack_parts
from triage.config import Settings
from triage.errors import UsageError
from triage.slack.threads import FILE


@pytest.fixture
def chosen() -> Settings:
    return replace(config.load(), slack_bot_token=BOT, slack_app_token=APP, slack_channels=CHANNEL)


def test_a_thread_goes_on_after_a_restart(chosen: Settings, tmp_path: Path) -> None:
    (tmp_path / "own.out").write_text(LOG)
    with FakeSlack() as slack:
        for connection, (question, holds) in enumerate((("why?", "flash_attn"), ("!log own.out 3", "own.out:3 ")), 1):
            with slack_parts.connected(chosen, [str(tmp_path)], f"{slack.url}/api/"):
                until(lambda wanted=connection: slack.connections == wanted)
                thread = next(iter(slack.messages), "") or opened(slack, "own.out")
                assert holds in reply(slack, thread, question).shown
    kept = json.loads((chosen.home / "slack" / FILE).read_text())
    assert list(kept.values()) == [[1, 1]]


def test_of_two_bots_with_one_home_the_second_does_not_start(chosen: Settings, tmp_path: Path) -> None:
    with (
        FakeSlack() as slack,
        slack_parts.connected(chosen, [str(tmp_path)], f"{slack.url}/api/"),
        pytest.raises(UsageError, match="another triage slack runs"),
        slack_parts.connected(chosen, [str(tmp_path)], f"{slack.url}/api/"),
    ):
        pass


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"slack_bot_token": ""}, "TRIAGE_SLACK_BOT_TOKEN is not set; docs/slack.md"),
        ({"slack_app_token": "xoxb-1-mixed"}, "TRIAGE_SLACK_APP_TOKEN does not begin with xapp-"),
        ({"slack_channels": ""}, "name nobody who may ask"),
        ({"slack_channels": "#oncall"}, "'#oncall', which is no id"),
        ({"slack_users": "ada"}, "'ada', which is no id"),
        ({"offline": True}, "TRIAGE_OFFLINE=1 bars every connection"),
        ({"slack_bot_token": "xoxb-1-bad"}, "Slack refuses the tokens: invalid_auth"),
        ({"slack_app_token": "xapp-1-bad"}, "Slack refuses the tokens: invalid_auth"),
    ],
)
def test_what_does_not_do_is_one_line_without_the_token(
    chosen: Settings, tmp_path: Path, changed: dict[str, str], says: str
) -> None:
    with (
        FakeSlack() as slack,
        pytest.raises(UsageError) as error,
        slack_parts.connected(replace(chosen, **changed), [str(tmp_path)], f"{slack.url}/api/"),
    ):
        pass
    assert says in str(error.value)
    assert not any(value in str(error.value) for value in ("mixed", "1-bad"))


def test_where_slack_cannot_be_reached_it_says_so(chosen: Settings, tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="Slack cannot be reached"),
        slack_parts.connected(chosen, [str(tmp_path)], "http://127.0.0.1:9/api/"),
    ):
        pass


def test_a_model_answers_where_it_is_waited_for(chosen: Settings, tmp_path: Path) -> None:
    (tmp_path / "own.out").write_text(LOG)
    told = "The module flash_attn is missing (E1)."
    with FakeSlack() as slack, OpenAIServer([told]) as server:
        asks = replace(chosen, llm="openai:scripted", llm_base_url=server.url, llm_api_key="none")
        with slack_parts.connected(asks, [str(tmp_path)], f"{slack.url}/api/"):
            until(lambda: slack.connections)
            answer = reply(slack, opened(slack, "own.out"), "why?")
            until(lambda: answer.changes)
    assert answer.shown.startswith(told)
    assert "own.out:4" in answer.shown
    assert len(server.requests) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it(
    chosen: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    for name in ("slack_bot_token", "slack_app_token", "slack_channels"):
        monkeypatch.setenv(f"TRIAGE_{name.upper()}", getattr(chosen, name))
    before = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    with FakeSlack() as slack:

        def end() -> None:
            until(lambda: signal.getsignal(number) != before[number])
            os.kill(os.getpid(), number)

        threading.Thread(target=end).start()
        try:
            assert slack_parts.run([str(tmp_path)], None, f"{slack.url}/api/") == code
        finally:
            for n, handler in before.items():
                signal.signal(n, handler)
