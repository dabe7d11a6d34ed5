"""What an Xid, an exit code, a signal, an NCCL error or a signature means, wherever a question names one."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator

from triage.agents.tools.kit import ToolError
from triage.agents.tools.look_up import look_up
from triage.chat.said import cited, say
from triage.chat.values import Event, Subject
from triage.evidence.match import Matcher
from triage.taxonomy import Taxonomy

_XID = re.compile(r"(?i)\bxid[s\s:#=]{0,3}(\d{1,4})\b")
_EXIT = re.compile(
    r"(?i)\b(?:exit(?:ed)?|return|status|rc)[ -]?(?:code|status|value|with)?[\s:=#]{0,3}(?:code )?(-?\d{1,3})\b|\bcode (-?\d{1,3})\b"
)
_SIGNAL = re.compile(r"(?i)\bsig(?:nal)? ?(\d{1,2})\b|\b(SIG[A-Z]{3,8}\d?)\b")
_NCCL = re.compile(r"(?i)\b(?:nccl\w*(?:error|result)\w*|nccl (?:\w+ )?error\b.{0,80}|ncclInvalid\w+|ncclRemote\w+)")
_MEANS = re.compile(
    r"(?i)\bwhat(?:'s| is| are| does| do)?\b(?! (?:the|a|your|my) (?:cause|reason|problem|verdict))|\bmeans?\b|\bmeaning\b|\bexplain\b|\blook ?up\b|\bdefine\b"
)
_WHAT = re.compile(
    r"(?i)\b(?:what(?:'?s| is| are| does| do)|explain|define|look ?up)\s+(?:an? |the )?[`\"']?([\w.:/ -]{2,60}?)[`\"']?\s*(?:means?|stand for|do)?\s*[?.!]*$"
)
_TAIL = re.compile(r"(?i)(?:\s+means?)?[\s?.!]*$")
_LINE = re.compile(r"[`\"'](.{6,400})[`\"']")


def names_a_code(said: str) -> bool:
    """Whether a question is about a code rather than about the incident."""
    return (bool(_MEANS.search(said)) and any(p.search(said) for p in (_XID, _EXIT, _SIGNAL, _NCCL))) or bool(
        re.fullmatch(r"(?i)\s*(?:xid|exit code|signal)[\s:#=]{0,3}-?\d{1,4}\??\s*", said)
    )


def names_a_label(said: str, labels: Taxonomy) -> bool:
    """Whether it asks what a failure type or an action means."""
    found = _WHAT.search(said.strip())
    word = found[1].strip().lower() if found else ""
    return (word in labels.actions and "-" in word) or word in labels.types


def explain(said: str, matcher: Matcher, labels: Taxonomy, subject: Subject | None = None) -> Iterator[Event]:
    """Says nothing where the question names nothing that is known."""
    asked = list(_asked(said))
    for kind, what, shown in asked:
        yield say(_looked_up(matcher, kind, what, shown))
        if subject is not None:
            yield from _here(subject, shown, what)
    if not asked:
        yield from _word(said, matcher, labels)


def _asked(said: str) -> Iterator[tuple[str, str, str]]:
    """Kind and what of a look-up, and how it is called."""
    for found in _XID.finditer(said):
        yield "xid", found[1], f"Xid {int(found[1])}"
    for found in _EXIT.finditer(said):
        number = found[1] or found[2]
        yield "exit-code", number, f"exit code {number}"
    for found in _SIGNAL.finditer(said):
        number = _signal(found[1], found[2])
        if number:
            yield "exit-code", str(-number), f"signal {number}"
    if nccl := _NCCL.search(said):
        words = _TAIL.sub("", nccl[0])
        yield "line", words if ":" in words else f"torch.distributed.DistBackendError: NCCL error: {words}", words
    elif line := _LINE.search(said):
        yield "line", line[1], "that line"


def _signal(number: str | None, name: str | None) -> int:
    if number:
        return int(number)
    known = getattr(signal, (name or "").upper(), None)
    return int(known) if isinstance(known, signal.Signals) else 0


def _looked_up(matcher: Matcher, kind: str, what: str, shown: str) -> str:
    try:
        found = look_up(matcher, kind, what)
    except ToolError as error:
        return f"{shown}: unknown; {error}."
    if kind == "exit-code" and what in ("0", "1"):
        return f"{shown}: " + (
            "success." if what == "0" else "a failure of the program's own; what it printed before tells more."
        )
    return f"{shown}: {found}"


def _here(subject: Subject, shown: str, what: str) -> Iterator[Event]:
    """Whether this log has it."""
    word = re.compile(rf"(?<![\w.]){re.escape(what.removeprefix('-'))}(?![\w.])")
    kind = shown.split(maxsplit=1)[0].lower()
    mine = [
        e
        for e in subject.evidence
        if word.search(e["text"]) and (kind in e["text"].lower() or kind in e.get("title", "").lower())
    ]
    if mine:
        yield say("In this log:")
        yield cited(mine[0])
    elif kind in ("xid", "exit", "signal"):
        yield say(f"No line that is cited here speaks of {shown}.")


def _word(said: str, matcher: Matcher, labels: Taxonomy) -> Iterator[Event]:
    """A failure type, a class, an action or a signature by its name."""
    found = _WHAT.search(said.strip())
    if found is None:
        return
    word = found[1].strip().lower()
    kind = next((k for k in labels.types.values() if word in (k.id, k.id.replace("-", " "))), None)
    if kind is not None:
        yield say(f"{kind.id}: {kind.means} ({kind.category}).")
        return
    if word in labels.actions:
        yield say(f"{word}: {labels.actions[word]}.")
        return
    known = [s for s in matcher.signatures if s.id == word or _holds(f"{s.id} {s.title}", word)]
    for s in known[:3]:
        yield say(look_up(matcher, "signature", s.id))
    if len(known) > 3:
        yield say(f"and {len(known) - 3} more: triage kb search '{word}'")


def _holds(text: str, word: str) -> bool:
    """As words of their own, with something particular in them."""
    return len(word) > 3 and re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text.lower()) is not None
