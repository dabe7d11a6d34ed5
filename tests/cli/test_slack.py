"""`triage slack` as a command; the bot is tested in tests/slack."""

from __future__ import annotations

import sys

import pytest

import triage.cli
from tests.cli.conftest import Run
from triage.cli.slack import slack
from triage.errors import UsageError


def test_what_is_not_set_is_one_line(triage: Run) -> None:
    done = triage("slack")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "triage: TRIAGE_SLACK_BOT_TOKEN is not set; docs/slack.md says how to get one\n"


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(triage.cli, "slack_parts", raising=False)
    monkeypatch.delitem(sys.modules, "triage.cli.slack_parts", raising=False)
    monkeypatch.setitem(sys.modules, "slack_sdk", None)
    with pytest.raises(UsageError, match=r"needs the package slack_sdk.*pip install 'hpc-triage\[slack\]'"):
        slack(None, None)
