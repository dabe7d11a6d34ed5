"""What a conversation may use, given by who wires it: everything with an effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from triage.chat.intents import Embed
from triage.chat.values import Subject
from triage.evidence.match import Matcher
from triage.store.values import Verdict
from triage.taxonomy import Taxonomy

if TYPE_CHECKING:
    from triage.chat.talker import Talker
    from triage.store.chats import ChatStore
    from triage.store.incidents import IncidentStore


@dataclass(frozen=True, slots=True)
class Desk:
    """matcher: of the signatures, built when a code is first asked for; who, via: for the record of outcomes and sessions.

    incidents: None where there is no database yet; chats: None where the conversation is not kept; open_incident: Errors
    NotFoundError, StoreError; resolve: records an outcome and returns in words what came of it, None where this face may not;
    save: writes a report to a file that the user names and returns its place, None where there is no disk to write to;
    similar: past incidents like this one as they are known now, in the form of the result, None where it is not asked anew;
    embed: for questions in unforeseen words; talker: the model, None where none is set.
    """

    matcher: Callable[[], Matcher]
    labels: Taxonomy
    open_incident: Callable[[int], Subject]
    who: str
    via: str = "chat"
    incidents: IncidentStore | None = None
    chats: ChatStore | None = None
    resolve: Callable[[int, Verdict], Sequence[str]] | None = None
    save: Callable[[str, str], str] | None = None
    similar: Callable[[Subject], Sequence[Mapping[str, Any]]] | None = None
    embed: Embed | None = None
    talker: Talker | None = None
