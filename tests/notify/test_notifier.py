from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.notify.servers import Hook, hook
from triage.notify import Delivery, Message, Notifier, channels

HUNG = Message("incident-7", "hung: rank 3", "hung", "Rank 3 waits for 31 minutes.")


def notifier(home: Path, *servers: Hook) -> Notifier:
    return Notifier(channels([server.url for server in servers]), home, Delivery(seconds=2.0))


def test_once_of_each_incident_whatever_its_words_and_again_when_it_changes(tmp_path: Path) -> None:
    with hook() as server:
        for message in (
            HUNG,
            HUNG,
            replace(HUNG, summary="Rank 3 waits for 32 minutes."),
            replace(HUNG, title="goes on", state="running"),
            HUNG,
            replace(HUNG, key="incident-8"),
        ):
            notifier(tmp_path, server).send(message)  # each time anew, as after a restart
    told = [(m["key"], m["state"], m["is_update"]) for m in server.came]
    assert told == [
        ("incident-7", "hung", False),
        ("incident-7", "running", True),
        ("incident-7", "hung", True),
        ("incident-8", "hung", False),
    ]


def test_a_channel_that_failed_is_tried_with_the_next_message_and_the_others_are_not_told_twice(tmp_path: Path) -> None:
    with hook() as good, hook() as bad:
        bad.answers = [(403, {}, "no"), (200, {}, "ok")]
        first = notifier(tmp_path, good, bad).send(HUNG)
        second = notifier(tmp_path, good, bad).send(HUNG)
    assert [bool(sent.problem) for sent in first] == [False, True]
    assert [sent.problem for sent in second] == [""]
    assert (len(good.came), len(bad.came)) == (1, 2)
    assert bad.came[1]["is_update"] is False


MANY = """
import sys
from pathlib import Path
from triage.notify import Delivery, Message, Notifier, channels
url, home = sys.argv[1:]
sys.stdin.readline()
Notifier(channels([url]), Path(home), Delivery()).send(Message("incident-7", "hung: rank 3", "hung"))
"""


def test_the_tasks_of_an_array_give_one_message(tmp_path: Path) -> None:
    with hook() as server:
        server.wait = 0.2
        ran = [
            subprocess.Popen(
                [sys.executable, "-c", MANY, server.url, str(tmp_path)],
                stdin=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": str(REPO)},
            )
            for _ in range(5)
        ]
        for process in ran:
            process.communicate(b"\n", timeout=120)
    assert [process.returncode for process in ran] == [0] * 5
    assert len(server.came) == 1


def test_who_died_while_sending_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with hook() as server:
        notifier(tmp_path, server).send(HUNG)
        file = tmp_path / "notified.json"
        told = json.loads(file.read_text())
        (entry,) = told.values()
        for age, comes in ((1, 0), (3600, 1)):
            entry.update(digest="", sending=HUNG.digest, at=time.time() - age)
            file.write_text(json.dumps(told))
            before = len(server.came)
            notifier(tmp_path, server).send(HUNG)
            assert len(server.came) - before == comes


def test_after_a_month_it_is_told_anew_and_the_file_does_not_grow(tmp_path: Path) -> None:
    with hook() as server:
        for n in range(3):
            notifier(tmp_path, server).send(replace(HUNG, key=f"k{n}"))
        file = tmp_path / "notified.json"
        told = json.loads(file.read_text())
        assert len(told) == 3
        for entry in told.values():
            entry["at"] -= 31 * 86400
        file.write_text(json.dumps(told))
        notifier(tmp_path, server).send(replace(HUNG, key="k0"))
    assert len(json.loads(file.read_text())) == 1
    assert len(server.came) == 4


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"a": 1}', '{"a": {"digest": 1, "at": "x", "sending": null}}', "\x00\xff"]
)
def test_a_damaged_state_file_is_begun_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "notified.json").write_text(text)
    with hook() as server:
        of = notifier(tmp_path, server)
        assert [sent.problem for sent in of.send(HUNG)] == [""]
        assert of.send(HUNG) == ()
    assert of.problem == ""


def test_without_a_place_for_its_state_messages_go_out_and_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with hook() as server:
        of = notifier(tmp_path / "home", server)
        assert [sent.problem for sent in of.send(HUNG)] == [""]
    assert "messages may come twice" in of.problem


def test_the_state_file_holds_no_token_and_is_its_owner_s_alone(tmp_path: Path) -> None:
    with hook() as server:
        notifier(tmp_path, server).send(HUNG)
        text = (tmp_path / "notified.json").read_text()
    assert "Secret" not in text
    assert (tmp_path / "notified.json").stat().st_mode & 0o077 == 0
