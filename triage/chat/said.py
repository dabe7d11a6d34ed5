"""Small pieces of which answers are made: lines that are cited, names in a row, how sure a diagnosis is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from triage.chat.values import Cited, Event, Subject, Text
from triage.store.values import StoredIncident
from triage.text import rank_ranges

STATUS = {
    "established": "established: the lines say so themselves",
    "supported": "supported: the lines point here, but a rival is not ruled out or the line is a general one",
    "hypothesis": "a hypothesis: a guess that fits the lines, to be checked first",
    "unknown": "unknown: this log does not show why",
}
MOST_CITED = 4
_QUOTED = re.compile(r":? `[^`]*` \(([^()\s]+:\d+)\)")
MOST_NAMES = 8


def say(text: str) -> Text:
    return Text(f"{text}\n")


def cited(e: Mapping[str, Any], note: bool = True) -> Cited:
    return Cited(str(e["file"]), int(e["line"]), str(e["text"]), str(e["id"]), str(e.get("title", "")) if note else "")


def cite(found: Iterable[Mapping[str, Any]], most: int = MOST_CITED) -> Iterator[Event]:
    """The first of them; of lines that mean the same the first two, and what they mean once."""
    times: dict[str, int] = {}
    left = most
    for e in found:
        title = str(e.get("title", ""))
        times[title] = times.get(title, 0) + 1
        if times[title] > 2 and title:
            continue
        if not left:
            return
        left -= 1
        yield cited(e, note=times[title] == 1)


def of_ids(subject: Subject, ids: Iterable[str]) -> list[Mapping[str, Any]]:
    known = {e["id"]: e for e in subject.evidence}
    return [known[name] for name in ids if name in known]


def of_role(subject: Subject, *roles: str) -> list[Mapping[str, Any]]:
    return [e for e in subject.evidence if e["role"] in roles]


def names(found: Iterable[Any], most: int = MOST_NAMES) -> str:
    """ "a, b and c"; of more than there is room for, how many more."""
    words = [str(name) for name in found]
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def ranks_of(e: Mapping[str, Any]) -> tuple[int, ...]:
    if e.get("ranks"):
        return tuple(e["ranks"])
    return () if e.get("rank") is None else (e["rank"],)


def whose(e: Mapping[str, Any]) -> str:
    """ "rank 3 on gpu-017, GPU 2", as far as the line tells."""
    ranks = ranks_of(e)
    parts = [f"rank{'s' if len(ranks) > 1 else ''} {rank_ranges(ranks)}"] if ranks else []
    parts += [f"on {e['node']}"] if e.get("node") else []
    return " ".join(parts) + (f", GPU {e['gpu']}" if e.get("gpu") else "")


def steps_with_command(result: Mapping[str, Any], names: Sequence[str]) -> list[Mapping[str, Any]]:
    """Steps whose command names one of these."""
    return [s for s in result.get("remediation", ()) if any(name in s.get("command", "") for name in names)]


def failed(result: Mapping[str, Any]) -> bool:
    return bool(result["outcome"] != "healthy")


def cause(subject: Subject, whole: bool = False) -> str:
    """The cause in a sentence, or all that is said of it; without lines that are cited beside it."""
    text = unquoted(subject, str(subject.result["root_cause"]))
    return sentence(text if whole else text.partition(". ")[0])


def unquoted(subject: Subject, text: str) -> str:
    """The text without the lines that it quotes, where they are cited as the cause."""
    known = {f"{e['file']}:{e['line']}" for e in of_role(subject, "root")}
    return _QUOTED.sub(lambda m: "" if m[1] in known else m[0], text)


def sentence(text: str) -> str:
    text = " ".join(str(text).split())
    return text if not text or text[-1] in ".!?" else f"{text}."


def refuted(stored: StoredIncident | None) -> str:
    """What a person said instead of the diagnosis, "" where nobody did, or it was confirmed."""
    last = stored.verdicts[-1] if stored and stored.verdicts else None
    if last is None or last.verdict == "confirmed":
        return ""
    how = {"yes": "it worked", "no": "it did not work"}.get(last.worked, "not known whether it worked")
    parts = (last.failure_type, last.cause, f"fixed by: {last.fix} ({how})" if last.fix else "")
    told = "; ".join(filter(None, parts)) if last.verdict == "corrected" else last.cause or last.note
    return sentence(f"{last.who} {last.verdict} this diagnosis" + (f": {told}" if told else ""))


def said_instead(subject: Subject) -> Iterator[Event]:
    """Said first, before anything that rests on the diagnosis."""
    if said := refuted(subject.stored):
        yield say(said)
