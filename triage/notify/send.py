"""Sends a message to channels. A channel that fails stops nobody: it is said."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from triage.errors import UsageError
from triage.notify.channels import Channel
from triage.notify.message import Message, as_json, clean
from triage.notify.tries import Refused
from triage.redact import redact
from triage.text import printable

SECONDS = 30.0  # for one channel, all attempts
_LATE = 3.0  # seconds more, after which a channel is waited for no longer


@dataclass(frozen=True, slots=True)
class Delivery:
    """smtp_url: the mail server (mail.Server.parse); mail_from: an address; offline: no connection is made."""

    smtp_url: str = field(default="", repr=False)
    mail_from: str = ""
    offline: bool = False
    seconds: float = SECONDS


@dataclass(frozen=True, slots=True)
class Sent:
    """channel: its name; problem: "" where the message was taken."""

    channel: str
    seconds: float = 0.0
    problem: str = ""


def send(channels: Sequence[Channel], message: Message, delivery: Delivery = Delivery()) -> tuple[Sent, ...]:
    """To all of them at once, secrets taken out. Never raises for what a channel does; no longer than delivery.seconds."""
    told = clean(message)
    found: dict[int, Sent] = {}
    began = time.monotonic()

    def one(number: int, channel: Channel) -> None:
        problem = _problem(channel, told, delivery)
        found[number] = Sent(channel.name, round(time.monotonic() - began, 2), problem)

    threads = [threading.Thread(target=one, args=pair, daemon=True) for pair in enumerate(channels)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, began + delivery.seconds + _LATE - time.monotonic()))
    late = f"no answer within {delivery.seconds:g} s"
    return tuple(
        found.get(number, Sent(channel.name, delivery.seconds, late)) for number, channel in enumerate(channels)
    )


def _problem(channel: Channel, message: Message, delivery: Delivery) -> str:
    """Why it was not sent, without secrets; "" when it was."""
    if delivery.offline and channel.kind != "command":
        return "TRIAGE_OFFLINE=1 bars every connection"
    try:
        _send(channel, message, delivery)
    except (Refused, UsageError) as problem:
        return _without(channel, printable(redact(str(problem))))
    except Exception as error:  # noqa: BLE001 - whoever watches a job goes on
        return _without(channel, printable(redact(f"{type(error).__name__}: {error}")))
    return ""


def _without(channel: Channel, text: str) -> str:
    """A server may say the path of its URL back, where a token is."""
    tail = channel.url.partition("://")[2].partition("/")[2]
    for secret in (channel.url, tail, *(part for part in tail.split("/") if len(part) > 7)):
        text = text.replace(secret, "...") if secret else text
    return text[:400]


def _send(channel: Channel, message: Message, delivery: Delivery) -> None:
    if channel.kind == "command":
        return _command(channel.argv, message, delivery.seconds)
    if channel.kind == "mail":
        from triage.notify.mail import Server, mail

        return mail(channel.to, message, Server.parse(delivery.smtp_url), delivery.mail_from, delivery.seconds)
    from triage.notify import http, slack

    document = slack.payload(message) if channel.kind == "slack" else as_json(message)
    return http.post(channel.url, document, delivery.seconds)


def _command(argv: Sequence[str], message: Message, seconds: float) -> None:
    """The message as JSON on its stdin, and in short in variables; no shell but one that argv names. Errors: Refused."""
    told = {"KEY": message.key, "STATE": message.state, "TITLE": message.headline, "SUMMARY": message.summary}
    env = {**os.environ, **{f"TRIAGE_MESSAGE_{name}": value.replace("\0", "") for name, value in told.items()}}
    with tempfile.TemporaryFile() as fed, tempfile.TemporaryFile() as err:
        fed.write(json.dumps(as_json(message), ensure_ascii=False).encode("utf-8", "replace"))
        fed.seek(0)
        try:
            process = subprocess.Popen(
                list(argv), stdin=fed, stdout=subprocess.DEVNULL, stderr=err, env=env, start_new_session=True
            )
        except (OSError, ValueError) as error:
            raise Refused(f"it cannot be run: {getattr(error, 'strerror', '') or error}") from None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Refused(f"it did not end within {seconds:g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code:
            err.seek(max(0, err.seek(0, os.SEEK_END) - 2000))
            lines = err.read().decode("utf-8", "replace").strip().splitlines()
            raise Refused(f"exit code {code}{': ' + lines[-1].strip() if lines else ''}")
