"""Bolt, in socket mode: what Slack sends, to the bot, acknowledged before the work begins."""

from __future__ import annotations

import logging
import re
from typing import Any

from slack_bolt import App, BoltResponse
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_bolt.error import BoltUnhandledRequestError
from slack_sdk import WebClient
from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler

from triage.slack import blocks
from triage.slack.bot import Bot

_ACTIONS = re.compile("|".join((blocks.OUTCOME, blocks.RECORD, blocks.CANCEL)))
_ANY_COMMAND = re.compile(r"/.+")  # a workspace may call it otherwise


def web(token: str, base_url: str) -> WebClient:
    """Waits where Slack says that it was asked too often."""
    client = WebClient(token, base_url=base_url)
    client.retry_handlers.append(RateLimitErrorRetryHandler(max_retry_count=3))
    return client


def connected(bot: Bot, client: WebClient, app_token: str) -> SocketModeHandler:
    """Connected until it is closed, over breaks of the network. Errors: SlackApiError, URLError."""
    app = App(client=client, raise_error_for_unhandled_request=True, logger=logging.getLogger("triage.slack.bolt"))

    @app.command(_ANY_COMMAND)
    def command(ack: Any, body: dict[str, Any]) -> None:
        ack(bot.command(body))

    @app.event("message")
    def message(event: dict[str, Any]) -> None:
        bot.message(event)

    @app.action(_ACTIONS)
    def pressed(ack: Any, body: dict[str, Any]) -> None:
        ack()
        bot.pressed(body)

    @app.view(blocks.OUTCOME)
    def submitted(ack: Any, body: dict[str, Any]) -> None:
        wrong = bot.submitted(body)
        ack(response_action="errors", errors=wrong) if wrong else ack()

    @app.error
    def failed(error: Exception, logger: logging.Logger) -> BoltResponse | None:
        """What no part of the bot is for is taken all the same, or Slack would send it again."""
        if isinstance(error, BoltUnhandledRequestError):
            return BoltResponse(status=200, body="")
        logger.error("failed: %s", type(error).__name__)
        return None

    handler = SocketModeHandler(app, app_token, web_client=WebClient(base_url=client.base_url))
    try:
        handler.connect()  # type: ignore[no-untyped-call]
    except BaseException:
        close(handler)
        raise
    return handler


def close(handler: SocketModeHandler) -> None:
    handler.close()  # type: ignore[no-untyped-call]
