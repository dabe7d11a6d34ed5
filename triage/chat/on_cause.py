"""Why it failed, whose fault it is, how sure that is, when it began, what else it might be: from the evidence. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from triage.chat.said import (
    STATUS,
    cause,
    cite,
    failed,
    names,
    of_ids,
    of_role,
    ranks_of,
    said_instead,
    say,
    sentence,
    unquoted,
)
from triage.chat.values import Event, Subject
from triage.report import course
from triage.taxonomy import Taxonomy
from triage.text import how_many, rank_ranges

_HARD = ("hardware-failure", "network-failure")
_SIDES = {
    "hardware-failure": "The node: {how} hardware failed.",
    "network-failure": "Neither your code nor one broken node for sure: {how} the network between nodes failed.",
    "dependency-failure": "Neither: {how} something that the job depends on failed (storage, a service, another job).",
    "config-error": "Your side: {how} the job's configuration, arguments or environment is wrong.",
    "software-bug": "The code: {how} a program failed by itself, yours or a library's.",
    "resource-exhaustion": "Your side rather than the node: {how} the job needed more than it had (memory, disk, quota).",
    "data-error": "The data: {how} what was read is bad or does not fit.",
    "operator-action": "Neither: {how} it was ended from outside, by a person, a limit or the scheduler.",
}
_HOW = {"established": "the lines say that", "supported": "the lines suggest that", "hypothesis": "a guess is that"}


def why(subject: Subject) -> Iterator[Event]:
    """The cause, then the lines from it to the last consequence."""
    r = subject.result
    if not failed(r):
        yield from healthy(subject)
        return
    yield from said_instead(subject)
    yield say(f"{r['failure_type']}, {STATUS[r['status']]}.")
    yield say(cause(subject, whole=True))
    chain = of_ids(subject, r.get("chain", ())) or of_role(subject, "root", "cascade")
    roots = [e for e in chain if e["role"] == "root"]
    yield from cite(roots or chain)
    followed = [e for e in chain if e["role"] == "cascade"]
    if roots and followed:
        yield say("What followed from it:")
        yield from cite(followed, 3)
    if not chain:
        yield say("No line of the log says why.")
        yield from _to_settle(r)
    told = subject.stored.verdicts[-1] if subject.stored and subject.stored.verdicts else None
    if told and told.verdict == "confirmed":
        yield say(
            f"{told.who} said later that this was {told.verdict}" + (f": {sentence(told.cause)}" if told.cause else ".")
        )


def whose_fault(subject: Subject) -> Iterator[Event]:
    """The node or the code? By the class of the cause, where its lines come from, and what speaks against."""
    r = subject.result
    side = _SIDES.get(r["root_cause_class"])
    if not failed(r):
        yield from healthy(subject)
        return
    yield from said_instead(subject)
    if side is None or r["status"] == "unknown":
        yield say(f"Unknown: the evidence does not tell the node from the code. {cause(subject)}")
    else:
        yield say(side.format(how=_HOW[r["status"]]) + f" {cause(subject)}")
    roots = of_role(subject, "root")
    yield from cite(roots, 3)
    yield from _spread(subject, roots)
    if nodes := r["suspects"]["nodes"]:
        yield say(f"Suspected: {names(nodes)}.")
    elif r["root_cause_class"] in _HARD:
        yield say("Which node it was, no line says.")
    if again := course.recurrence_text(r):
        yield say(sentence(again))
    yield from _rivals(subject, r["root_cause_class"])
    if r["status"] != "established":
        yield from _to_settle(r)


def _spread(subject: Subject, roots: list[Mapping[str, Any]]) -> Iterator[Event]:
    """One rank or one node speaks for that machine or its data, all of them for what they share."""
    ranks = {rank for e in roots for rank in ranks_of(e)}
    nodes = {e["node"] for e in roots if e.get("node")}
    world = subject.result["progress"].get("world_size")
    of = f" of {world}" if world else ""
    if len(nodes) == 1:
        yield say(f"All lines of the cause that name a node name {next(iter(nodes))}.")
    elif nodes:
        yield say(f"The lines of the cause come from {how_many(len(nodes), 'node')}: {names(sorted(nodes))}.")
    if len(ranks) == 1:
        yield say(f"Only rank {next(iter(ranks))}{of} says it: its own node or data, or it was just the first.")
    elif ranks:
        yield say(
            f"{how_many(len(ranks), 'rank')}{of} say it ({rank_ranges(ranks)}): what they share is the likelier place."
        )


def _rivals(subject: Subject, but: str) -> Iterator[Event]:
    others = [h for h in subject.result.get("hypotheses", ())[1:] if h["root_cause_class"] != but]
    if others:
        h = others[0]
        marks = f" (for it {', '.join(h['for'])})" if h["for"] else ""
        yield say(
            f"Not ruled out: {h['failure_type']}, {h['root_cause_class']}{marks}: {sentence(unquoted(subject, h['root_cause']))}"
        )


def _to_settle(r: Mapping[str, Any]) -> Iterator[Event]:
    checks = [h["check"] for h in r.get("hypotheses", ()) if h.get("check")]
    notes = [note for note in r.get("missing", ()) if note.startswith("to settle it")]
    for check in dict.fromkeys([*notes, *(f"to check: {c}" for c in checks)][:3]):
        yield say(f"- {sentence(check)}")


def how_sure(subject: Subject) -> Iterator[Event]:
    r = subject.result
    yield from said_instead(subject)
    yield say(f"{r['failure_type']} is {STATUS[r['status']]}.")
    roots, followed = of_role(subject, "root"), of_role(subject, "cascade")
    yield say(
        f"{how_many(len(roots), 'line')} of the cause and {how_many(len(followed), 'line')} of what followed "
        f"{'is' if len(roots) + len(followed) == 1 else 'are'} cited; it was found by {_by(r)}."
    )
    yield from cite(roots, 3)
    against = [e for h in r.get("hypotheses", ())[:1] for e in of_ids(subject, h["against"])]
    if against:
        yield say("Against it:")
        yield from cite(against, 3)
    yield from _others(subject)
    for verdict in subject.stored.verdicts if subject.stored else ():
        yield say(
            f"{verdict.who} recorded that it was {verdict.verdict}" + (f": {verdict.cause}" if verdict.cause else "")
        )
    if r["status"] != "established":
        yield from _to_settle(r)


def _by(r: Mapping[str, Any]) -> str:
    return "the rules" if r["produced_by"] == "rules" else f"the rules and {r['produced_by']}"


def _others(subject: Subject) -> Iterator[Event]:
    others = subject.result.get("hypotheses", ())[1:]
    if not others:
        yield say("No other cause was found that fits the lines.")
        return
    yield say("Other causes that were considered:")
    for h in others[:4]:
        marks = [f"{name} {', '.join(h[name])}" for name in ("for", "against") if h[name]]
        yield say(
            f"- {h['failure_type']} ({h['status']}{', ' + '; '.join(marks) if marks else ''}): {sentence(unquoted(subject, h['root_cause']))}"
        )


def hypotheses(subject: Subject) -> Iterator[Event]:
    r = subject.result
    if not r.get("hypotheses"):
        yield say("No hypotheses: " + ("the job went well." if not failed(r) else "no line points anywhere."))
        return
    for n, h in enumerate(r["hypotheses"], 1):
        yield say(
            f"{n}. {h['failure_type']}, {h['root_cause_class']} ({h['status']}): {sentence(unquoted(subject, h['root_cause']))}"
        )
        for name in ("for", "against"):
            found = of_ids(subject, h[name])
            if found:
                yield say(f"   {name}:")
                yield from cite(found, 3)
        if h.get("check"):
            yield say(f"   to check: {sentence(h['check'])}")


def could_it_be(subject: Subject, labels: Taxonomy, said: str) -> Iterator[Event]:
    """Whether a kind of failure that was named was considered. said: names or means one."""
    r = subject.result
    wanted = _named_types(labels, said)
    known = {h["failure_type"]: h for h in reversed(r.get("hypotheses", ()))}
    seen = {e["failure_type"] for e in subject.evidence}
    for kind in wanted:
        if kind == r["failure_type"]:
            yield say(f"Yes: {kind} is what was found, {STATUS[r['status']]}.")
            yield from cite(of_role(subject, "root"), 3)
        elif kind in known:
            h = known[kind]
            yield say(f"{kind} was considered ({h['status']}): {sentence(unquoted(subject, h['root_cause']))}")
            yield from cite(of_ids(subject, (*h["for"], *h["against"])), 3)
        elif kind in seen:
            yield say(f"Lines of {kind} are there, but not as the cause:")
            yield from cite([e for e in subject.evidence if e["failure_type"] == kind], 3)
        else:
            yield say(f"No line that was cited speaks of {kind} ({labels.types[kind].means}). {_none_seen(r)}")
    if not wanted:
        yield from _others(subject)


def _none_seen(r: Mapping[str, Any]) -> str:
    return f"What was found is {r['failure_type']} ({r['status']})."


_ALIASES = {
    "oom": ("out-of-memory", "host-out-of-memory"),
    "memory": ("out-of-memory", "host-out-of-memory"),
    "nccl": ("nccl-timeout", "nccl-remote-error"),
    "network": ("network-error",),
    "infiniband": ("network-error",),
    "ib": ("network-error",),
    "fabric": ("network-error",),
    "ecc": ("ecc-error",),
    "nvlink": ("nvlink-error",),
    "disk": ("disk-full", "storage-error"),
    "storage": ("storage-error",),
    "filesystem": ("storage-error",),
    "preempted": ("preempted",),
    "preemption": ("preempted",),
    "timeout": ("time-limit", "nccl-timeout"),
    "walltime": ("time-limit",),
    "segfault": ("native-crash",),
    "cancelled": ("cancelled",),
    "scancel": ("cancelled",),
    "nan": ("loss-spike",),
    "dataloader": ("dataloader-killed",),
    "checkpoint": ("checkpoint-corrupt",),
    "hang": ("hang",),
    "hung": ("hang",),
}


def _named_types(labels: Taxonomy, said: str) -> tuple[str, ...]:
    words = _words(said)
    found = [kind for kind in labels.types if kind in words or kind.replace("-", " ") in " ".join(words)]
    found += [kind for word in words for kind in _ALIASES.get(word, ())]
    return tuple(dict.fromkeys(found))[:3]


def names_a_type(labels: Taxonomy, said: str, by_id: bool = False) -> bool:
    """by_id: only where it stands there as the labels write it."""
    return any(word in labels.types for word in _words(said)) if by_id else bool(_named_types(labels, said))


def _words(said: str) -> list[str]:
    return said.lower().replace("?", " ").replace(",", " ").split()


def healthy(subject: Subject) -> Iterator[Event]:
    yield say(f"Nothing failed: {sentence(subject.result['root_cause'])}")
    yield from cite(subject.evidence, 2)
