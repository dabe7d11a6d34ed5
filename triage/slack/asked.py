"""What people write in Slack, as triage understands it. Pure."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from triage.chat import commands
from triage.errors import UsageError

HELP = (
    "/triage PATH... diagnoses a log, /triage 12 shows incident 12, /triage --job 771204 the newest incident of a job, else "
    "its logs. Then ask in the thread: why? is it the node or my code? show me rank 3 around the failure; what fixed it last "
    "time? write the handover. A question ends with ? or begins as one; !timeline, !evidence E3, !log 3, !hypotheses, "
    "!similar, !remedy are commands; resolve confirmed fix=... worked=yes records how it turned out, after a button."
)
_MENTION = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
_LINK = re.compile(r"<(?:[a-z]+:[^<>|]*)\|([^<>]*)>|<([a-z]+:[^<>|]*)>")
_TYPED = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "\u00a0": " "})
_DASHES = re.compile(r"(?:(?<=\s)|^)[—–](?=\w)")  # what some keyboards make of two
_QUESTION = re.compile(
    r"(?i)^(?:why|what|which|who|whose|when|where|how|is|are|was|were|did|do|does|could|can|should|has|have|show|write|"
    r"give|list|explain|print|help)\b"
)
_PLACE = re.compile(r"(?i)^(?:e\d{1,4}|\S+:\d{1,9})$")


@dataclass(frozen=True, slots=True)
class Asked:
    """One of them."""

    incident: int | None = None
    job: str = ""
    paths: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        if self.incident is not None:
            return f"incident {self.incident}"
        return f"job {self.job}" if self.job else ", ".join(self.paths)


def command(text: str) -> Asked | None:
    """What follows /triage; None: help. Errors: UsageError."""
    try:
        words = shlex.split(_DASHES.sub("--", typed(text)))
    except ValueError as error:
        raise UsageError(f"that cannot be read: {error}", "quote names as in a shell") from None
    if not words or words == ["help"]:
        return None
    first, _, value = words[0].partition("=")
    if first == "--job":
        given = [value, *words[1:]] if value else words[1:]
        if len(given) != 1:
            raise UsageError("--job takes one id, and stands beside no path", "/triage --job 771204")
        return Asked(job=given[0])
    if first.startswith("-"):
        raise UsageError(f"there is no {first[:40]}", "there is --job ID")
    number = words[0].removeprefix("#")
    if len(words) == 1 and number.isascii() and number.isdigit() and len(number) < 10:
        return Asked(incident=int(number))
    return Asked(paths=tuple(words))


def question(text: str, me: str) -> str:
    """A message of a thread as a turn of the conversation; "" where it is not meant for us. me: the bot's id.

    People talk to each other there too: meant are questions, commands, places of the log, and what names the bot.
    """
    named = _MENTION.findall(text)
    said = typed(_MENTION.sub(" ", text)).strip()
    if named and me not in named:
        return ""
    if said.startswith("!"):
        turn = f"/{said[1:].lstrip()}"
        return "" if commands.split(turn)[0] == "/quit" else turn
    if said.lower().split(maxsplit=1)[:1] == ["resolve"]:
        return f"/{said}"
    meant = me in named or said.endswith("?") or _QUESTION.match(said) or _PLACE.match(said)
    return (said or "/help") if meant else ""


def typed(text: str) -> str:
    """As it was typed, before Slack escaped it and a keyboard improved it."""
    plain = _LINK.sub(lambda found: found[1] or found[2], text).translate(_TYPED)
    return plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
