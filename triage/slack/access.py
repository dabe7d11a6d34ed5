"""Who may ask in Slack, and where. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.errors import UsageError
from triage.text import printable

ALL = "*"
_CHANNEL, _USER = re.compile(r"[CGD][A-Z0-9]{2,20}"), re.compile(r"[UW][A-Z0-9]{2,20}")


@dataclass(frozen=True, slots=True)
class Access:
    """Ids; none: any, where the other is given. A direct message counts as a channel of those who are named alone."""

    channels: frozenset[str]
    users: frozenset[str]

    def may(self, channel: str, user: str) -> bool:
        if self.users and user not in self.users:
            return False
        if channel.startswith("D"):
            return bool(self.users) or channel in self.channels
        return not self.channels or channel in self.channels


def parse(channels: str, users: str) -> Access:
    """Of the settings. Errors: UsageError where nobody is named, or by what is no id."""
    named = _ids("slack_channels", channels, _CHANNEL, "C0123ABCD"), _ids("slack_users", users, _USER, "U0123ABCD")
    if not any(named):
        raise UsageError(
            "TRIAGE_SLACK_CHANNELS and TRIAGE_SLACK_USERS name nobody who may ask",
            "give ids such as C0123ABCD and U0123ABCD with commas between, or * for all",
        )
    found = [frozenset() if ALL in ids else ids for ids in named]
    return Access(*found)


def _ids(name: str, text: str, form: re.Pattern[str], such: str) -> frozenset[str]:
    ids = frozenset(text.replace(",", " ").split())
    for one in ids:
        if one != ALL and not form.fullmatch(one):
            raise UsageError(f"{name} names {printable(one[:40])!r}, which is no id", f"give ids such as {such}, or *")
    return ids
