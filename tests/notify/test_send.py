"""Channels against real servers and real commands; what goes wrong is said and stops nobody."""

from __future__ import annotations

import json
import socket
import time
from email.utils import formatdate
from pathlib import Path

import pytest

from tests.notify.servers import TOKEN, hook
from triage.notify import Delivery, Message, channels, send

KEY = "AKIAIOSFODNN7EXAMPLE"
MESSAGE = Message(
    "incident-7",
    "hung: collective-timeout",
    "hung",
    "Rank 3 waits.",
    (("job", "4711"), ("log", f"aws {KEY}")),
    (),
    f"## hung\n{KEY}",
)


def one(text: str, **delivery: object) -> str:
    (sent,) = send(channels([text]), MESSAGE, Delivery(**{"seconds": 20.0, **delivery}))  # type: ignore[arg-type]
    return sent.problem


def test_a_webhook_gets_the_whole_message_without_secrets() -> None:
    with hook() as server:
        assert one(server.url) == ""
    (told,) = server.came
    assert (told["schema"], told["key"], told["state"], told["title"]) == (
        "triage.message/1",
        "incident-7",
        "hung",
        MESSAGE.title,
    )
    assert told["fields"]["job"] == "4711"
    assert told["markdown"].startswith("## hung\n[redacted")
    assert KEY not in json.dumps(told)


def test_slack_gets_blocks() -> None:
    with hook() as server:
        assert one(f"slack:{server.url}") == ""
    (told,) = server.came
    assert told["blocks"][0] == {
        "type": "header",
        "text": {"type": "plain_text", "text": MESSAGE.title, "emoji": False},
    }
    assert KEY not in json.dumps(told)


@pytest.mark.parametrize("status", [500, 503, 429])
def test_what_may_go_well_later_is_tried_again(status: int) -> None:
    with hook() as server:
        server.answers = [(status, {}, "busy"), (status, {"Retry-After": "1"}, ""), (200, {}, "ok")]
        began = time.monotonic()
        assert one(server.url) == ""
        assert time.monotonic() - began >= 1.4
    assert len(server.came) == 3


def test_a_date_to_try_again_is_waited_for() -> None:
    with hook() as server:
        server.answers = [(503, {"Retry-After": formatdate(time.time() + 3, usegmt=True)}, ""), (200, {}, "")]
        began = time.monotonic()
        assert one(server.url) == ""
    assert time.monotonic() - began > 1


def test_it_does_not_wait_longer_than_its_time() -> None:
    with hook() as server:
        server.answers = [(429, {"Retry-After": "3600"}, "")]
        began = time.monotonic()
        assert one(server.url) == "HTTP 429; it asks to wait 3600 s, which is longer than we do"
    assert time.monotonic() - began < 10
    assert len(server.came) == 1


@pytest.mark.parametrize(
    "retry", ["-1", "soon", "NaN", "1e999", "99999999999999999999", "\u00b2", "Mon, 01 Jan 0001 00:00:00 GMT"]
)
def test_an_odd_retry_after_is_no_harm(retry: str) -> None:
    with hook() as server:
        server.answers = [(429, {"Retry-After": retry}, ""), (200, {}, "")]
        problem = one(server.url)
    assert problem == "" or "longer than we do" in problem


def test_an_answer_that_breaks_off_is_an_answer() -> None:
    with hook() as server:
        server.answers = [(503, {"Transfer-Encoding": "chunked"}, "no chunk"), (200, {}, "")]
        assert one(server.url) == ""
    assert len(server.came) == 2


def test_a_refusal_is_said_without_the_token_and_not_repeated() -> None:
    with hook() as server:
        server.answers = [(403, {}, f"invalid_token: /services/{TOKEN} {TOKEN} {KEY}")]
        problem = one(f"slack:{server.url}")
    assert problem.startswith("HTTP 403: invalid_token: ")
    assert TOKEN not in problem
    assert KEY not in problem
    assert len(server.came) == 1


def test_no_redirect_is_followed() -> None:
    with hook() as target, hook() as server:
        server.answers = [(307, {"Location": target.url}, "")]
        assert one(server.url) == "HTTP 307"
    assert target.came == []


def test_nobody_there_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert one(f"http://127.0.0.1:{port}/", seconds=1.0).startswith("Connection refused")


def test_a_server_that_never_answers_holds_nobody_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, hook() as server:
        texts = [f"http://127.0.0.1:{silent.getsockname()[1]}/", server.url]
        began = time.monotonic()
        first, second = send(channels(texts), MESSAGE, Delivery(seconds=2.0))
        assert time.monotonic() - began < 15
    assert first.problem
    assert second.problem == ""
    assert second.seconds < 2 or len(server.came) == 1


def test_offline_nothing_is_sent_but_to_commands(tmp_path: Path) -> None:
    with hook() as server:
        texts = [server.url, f"slack:{server.url}", "mailto:a@b.example", f"command:touch {tmp_path}/ran"]
        problems = [sent.problem for sent in send(channels(texts), MESSAGE, Delivery(offline=True))]
    assert problems == ["TRIAGE_OFFLINE=1 bars every connection"] * 3 + [""]
    assert server.came == []
    assert (tmp_path / "ran").exists()


def script(tmp_path: Path, body: str) -> str:
    program = tmp_path / "page on call"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return f"command:'{program}' one 'two three'"


def test_a_command_gets_the_message_and_its_arguments(tmp_path: Path) -> None:
    body = f'cat >"{tmp_path}/in"; printf "%s|" "$@" "$TRIAGE_MESSAGE_KEY" "$TRIAGE_MESSAGE_STATE" "$TRIAGE_MESSAGE_TITLE" >"{tmp_path}/args"'
    assert one(script(tmp_path, body)) == ""
    assert json.loads((tmp_path / "in").read_text())["summary"] == "Rank 3 waits."
    assert (tmp_path / "args").read_text() == "one|two three|incident-7|hung|hung: collective-timeout|"
    assert KEY not in (tmp_path / "in").read_text()


def test_no_shell_reads_what_a_log_says(tmp_path: Path) -> None:
    evil = Message(
        "$(touch evil)", f"`touch {tmp_path}/evil`", "hung", f"$(touch {tmp_path}/evil)\0; touch {tmp_path}/evil"
    )
    (sent,) = send(channels([script(tmp_path, "echo $TRIAGE_MESSAGE_SUMMARY $TRIAGE_MESSAGE_TITLE")]), evil)
    assert sent.problem == ""
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo first >&2; echo 'no pager 5' >&2; exit 5", "exit code 5: no pager 5"),
        (f"echo {KEY} >&2; exit 1", "exit code 1: [redacted"),
        ("kill -9 $$", "exit code -9"),
        ("sleep 600 & wait", "it did not end within 1 s"),
        ("yes >&2", "it did not end within 1 s"),
    ],
)
def test_a_command_that_fails_is_said(tmp_path: Path, body: str, said: str) -> None:
    assert one(script(tmp_path, body), seconds=1.0).startswith(said)


def test_a_command_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert one(f"command:{tmp_path}/none") == "it cannot be run: No such file or directory"
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_does_not_read_is_no_problem(tmp_path: Path) -> None:
    big = Message("k", "t", "s", body_markdown="x" * 60_000)
    (sent,) = send(channels(["command:true"]), big)
    assert sent.problem == ""
