"""Messages to people, as the settings and options name their channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from triage.cli import output
from triage.errors import UsageError

if TYPE_CHECKING:
    from triage.config import Settings
    from triage.domain import Diagnosis
    from triage.notify import Notifier, Sent

SETTINGS = "settings"  # in place of a channel: those of TRIAGE_NOTIFY
OPTION = "Tell the result: slack:URL, URL, command:PROGRAM ARGS, mailto:a@b, or settings for those of TRIAGE_NOTIFY."


def notifier(settings: Settings, given: Sequence[str]) -> Notifier:
    """given: as the options have them. Errors: UsageError, which repeats no secret."""
    from triage.notify import Delivery, Notifier, channels

    texts = [settings.notify if text == SETTINGS else text for text in given]
    found = channels(texts)
    if not found:
        raise UsageError("no channel is set", "set TRIAGE_NOTIFY, or name one: slack:https://..., mailto:a@b")
    delivery = Delivery(settings.smtp_url, settings.mail_from, settings.offline)
    return Notifier(found, settings.home, delivery)


def tell(of: Notifier, results: Sequence[tuple[Diagnosis, dict[str, Any]]], quiet: bool = False) -> None:
    """Each failure, with its JSON object; what was not sent is said on stderr, and changes no exit code."""
    from triage import report
    from triage.notify import of_diagnosis

    for result, document in results:
        sent = of.send(of_diagnosis(result, report.render_markdown(document)))
        say(sent, quiet)
        if not sent:
            output.note("the channels were told of this incident before, and it has not changed", quiet)
    if of.problem:
        output.note(of.problem)


def say(sent: Sequence[Sent], quiet: bool = False) -> None:
    for one in sent:
        if one.problem:
            output.note(f"not sent to {one.channel}: {one.problem}")
        else:
            output.note(f"sent to {one.channel}", quiet)


def named(text: str) -> str:
    """The channels of a setting without what is secret of them."""
    from triage.notify import channels

    try:
        return "; ".join(channel.name for channel in channels([text]))
    except UsageError:
        return "(cannot be read)"


def checked(settings: Settings) -> str:
    """In words; nothing is sent. Errors: UsageError."""
    from triage.notify import channels

    found = channels([settings.notify])
    return f"{'; '.join(channel.name for channel in found)} (triage notify test sends a message)" if found else "off"
