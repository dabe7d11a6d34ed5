"""Wires the bot: what it reads, what it records, who may ask."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from triage.chat.values import Subject
from triage.cli import output, served_log, wiring
from triage.cli.alone import alone
from triage.cli.chat_open import Opened
from triage.cli.stopping import Stop
from triage.config import Settings
from triage.errors import UsageError
from triage.redact import redact
from triage.roots import roots_of, within
from triage.slack import access, app
from triage.slack.asked import Asked
from triage.slack.bot import Bot, Parts

FOLDER = "slack"  # under the home
QUICKLY = 5.0  # seconds that what is under way is given at the end
_TOKENS = (("slack_bot_token", "xoxb-"), ("slack_app_token", "xapp-"))


def run(root: Sequence[str], llm: str | None, base_url: str = WebClient.BASE_URL) -> int:
    """Until a signal; returns the exit code. base_url: of Slack's API. Errors: UsageError."""
    chosen = wiring.settings(llm)
    served_log.to_stderr({"triage.slack": logging.WARNING})
    with connected(chosen, root, base_url) as bot:
        stop = Stop()
        output.note("connected to Slack; Ctrl-C ends it")
        while not stop():
            time.sleep(0.2)
        ended = bot.close(QUICKLY)
    code = 130 if stop.signal == signal.SIGINT else 0
    if not ended:
        sys.stderr.flush()
        os._exit(code)  # a thread that diagnoses cannot be ended otherwise
    return code


@contextmanager
def connected(chosen: Settings, root: Sequence[str], base_url: str = WebClient.BASE_URL) -> Iterator[Bot]:
    """base_url: of Slack's API. Errors: UsageError for settings that do not do, and where Slack refuses them."""
    _check(chosen)
    allowed, roots = access.parse(chosen.slack_channels, chosen.slack_users), roots_of(root)
    folder = chosen.home / FOLDER
    with (
        alone(folder, "triage slack"),  # Slack spreads what it sends over all connections: of two each knew half
        Opened(chosen, quiet=True, make=True, allowed=lambda paths: within(paths, roots)) as opened,
    ):
        web = app.web(chosen.slack_bot_token, base_url)
        with _refusals():
            me = str(web.auth_test()["user_id"])
        desk = replace(opened.desk(keep=True), via="slack", save=None)
        bot = Bot(Parts(allowed, _opener(opened), lambda who: replace(desk, who=who), folder, me), web)
        with _refusals():
            handler = app.connected(bot, web, chosen.slack_app_token)
        try:
            yield bot
        finally:
            app.close(handler)
            bot.close(QUICKLY)


def _opener(opened: Opened) -> Callable[[Asked, Callable[[str], None]], Subject]:
    quiet = opened.tell

    def open_(wanted: Asked, tell: Callable[[str], None]) -> Subject:
        if wanted.incident is not None:
            return opened.incident(wanted.incident)
        opened.tell = tell
        try:
            return opened.job(wanted.job, record=True) if wanted.job else opened.paths(wanted.paths, record=True)
        finally:
            opened.tell = quiet

    return open_


def _check(chosen: Settings) -> None:
    if chosen.offline:
        raise UsageError("TRIAGE_OFFLINE=1 bars every connection, Slack's too", "set TRIAGE_OFFLINE=0")
    for name, begins in _TOKENS:
        token = getattr(chosen, name)
        if not token:
            raise UsageError(f"TRIAGE_{name.upper()} is not set", "docs/slack.md says how to get one")
        if not token.startswith(begins) or not token.isascii() or not token.isprintable():
            raise UsageError(f"TRIAGE_{name.upper()} does not begin with {begins}", "is it another token?")


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except SlackApiError as error:
        told = redact(str(error.response.get("error", "no reason given")))
        raise UsageError(f"Slack refuses the tokens: {told}", "docs/slack.md lists what they need") from None
    except OSError as error:
        reason = getattr(error, "reason", None) or error
        raise UsageError(f"Slack cannot be reached: {reason}", "is a proxy needed (HTTPS_PROXY)?") from None
