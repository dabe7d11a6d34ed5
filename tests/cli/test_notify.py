"""`triage notify test` and `triage diagnose --notify`, against a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.evaluation import make
from tests.notify.servers import TOKEN, hook


def test_a_trial_message(triage: Run) -> None:
    with hook() as server:
        done = triage("notify", "test", f"slack:{server.url}")
        again = triage("notify", "test", TRIAGE_NOTIFY=f"slack:{server.url}; command:true")
    assert (done.returncode, again.returncode) == (0, 0), done.stderr + again.stderr
    assert done.stdout.startswith("slack:127.0.0.1:")
    assert ": sent in " in done.stdout
    assert again.stdout.count("sent in") == 2
    assert [told["blocks"][0]["text"]["text"] for told in server.came] == ["A trial message of triage"] * 2


def test_a_channel_that_does_not_take_it_is_said_without_its_token(triage: Run) -> None:
    with hook() as server:
        server.answers = [(404, {}, "no_service")]
        done = triage("notify", "test", server.url)
    assert done.returncode == 2
    assert "HTTP 404: no_service" in done.stdout
    assert TOKEN not in done.stdout + done.stderr


def test_offline_nothing_is_sent(triage: Run) -> None:
    with hook() as server:
        done = triage("notify", "test", server.url, "mailto:a@b.example", TRIAGE_OFFLINE="1")
    assert (done.returncode, server.came) == (2, [])
    assert done.stdout.count("TRIAGE_OFFLINE=1 bars every connection") == 2


@pytest.mark.parametrize(
    ("args", "env", "said"),
    [
        ((), {}, "no channel is set; set TRIAGE_NOTIFY"),
        (("hunter22://x",), {}, "begins no channel of messages"),
        (("mailto:a@b.example",), {"TRIAGE_SMTP_URL": "http://u:hunter22@x"}, "smtp_url is no URL of a mail server"),
    ],
)
def test_wrong_use_is_said(triage: Run, args: tuple[str, ...], env: dict[str, str], said: str) -> None:
    done = triage("notify", "test", *args, **env)
    assert done.returncode == 2
    assert said in done.stdout + done.stderr
    assert "hunter22@" not in done.stdout + done.stderr


def test_the_settings_show_channels_without_their_tokens(triage: Run) -> None:
    secret = f"slack:https://hooks.slack.com/services/{TOKEN}"
    env = {"TRIAGE_NOTIFY": f"{secret}; mailto:a@b.example", "TRIAGE_SMTP_URL": "smtp://ada:hunter22@mail.example"}
    for done in (triage("config", "show", **env), triage("config", "show", "--format", "json", **env)):
        assert "slack:hooks.slack.com; mailto:a@b.example" in done.stdout
        assert TOKEN not in done.stdout
        assert "hunter22" not in done.stdout


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "job.out").write_text("+ srun python train.py\n" + make.KEY_ERROR)
    return tmp_path / "job.out"


def test_the_result_of_a_diagnosis_is_sent_once(triage: Run, log: Path) -> None:
    with hook() as server:
        first = triage("diagnose", "job.out", "--notify", server.url, "--format", "json")
        second = triage("diagnose", "job.out", "--notify", "settings", TRIAGE_NOTIFY=server.url)
        third = triage("diagnose", "job.out", "--notify", server.url, "--no-record")
    document = json.loads(first.stdout)
    assert (first.returncode, second.returncode, third.returncode) == (0, 0, 0), first.stderr
    assert "sent to http://127.0.0.1" in first.stderr
    assert "were told of this incident before" in second.stderr
    told = [(told["key"], told["state"]) for told in server.came]
    assert told[0] == (f"incident-{document['incident']}", "failed")
    assert len(told) == 2
    assert told[1][0].startswith("failure-")
    (markdown, *_) = [told["markdown"] for told in server.came]
    assert markdown.startswith("## failed: ")
    assert "job.out" in markdown


def test_a_channel_that_fails_changes_no_answer(triage: Run, log: Path) -> None:
    with hook() as server:
        server.answers = [(403, {}, "")]
        done = triage("diagnose", "job.out", "--no-record", "--notify", server.url, "--format", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["outcome"] == "failed"
    assert "not sent to http://127.0.0.1" in done.stderr


def test_a_channel_that_is_none_is_refused_before_the_work(triage: Run, log: Path) -> None:
    done = triage("diagnose", "job.out", "--notify", "#alerts")
    assert (done.returncode, done.stdout) == (2, "")


def test_a_command_that_is_told_may_call_triage(triage: Run, log: Path, tmp_path: Path) -> None:
    """What it finds in its environment is taken for no misspelt setting."""
    done = triage("config", "show", TRIAGE_MESSAGE_TITLE="x", TRIAGE_MESSAGE_KEY="y")
    assert "no setting" not in done.stderr
