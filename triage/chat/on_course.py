"""When it began, in which order things happened, which ranks failed first: from the evidence. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from triage.chat.on_cause import healthy
from triage.chat.said import cite, cited, failed, names, of_role, ranks_of, say, sentence, whose
from triage.chat.values import Event, Note, Subject
from triage.report import course
from triage.text import rank_ranges


def when(subject: Subject) -> Iterator[Event]:
    """The first line of the cause that carries a time, what went before it, and how long it took to end."""
    r, roots = subject.result, of_role(subject, "root")
    if not failed(r):
        yield from healthy(subject)
        return
    dated = sorted((e for e in roots if e.get("time")), key=lambda e: str(e["time"]))
    first = dated[0] if dated else None
    if first is not None:
        who = f", {whose(first)}" if whose(first) else ""
        yield say(f"The first line of the cause is of {_at(first['time'])}{who}:")
        yield cited(first)
    elif roots:
        yield say("The lines of the cause carry no time; the first of them is:")
        yield cited(roots[0])
    else:
        yield say("Unknown: no line of the log was found to be the cause.")
    last = max((str(e["time"]) for e in of_role(subject, "cascade") if e.get("time")), default="")
    if last and first is not None and last > str(first["time"]):
        yield say(f"The last consequence that is cited is of {_at(last)}.")
    p = r["progress"]
    if "last_step" in p:
        yield say(f"The last step before it was {p['last_step']}.")
    if "silence" in p:
        yield say(sentence(f"Silence: {p['silence']}"))
    for clock in (r.get("timeline") or {}).get("clocks", [])[:3]:
        yield Note(str(clock["said"]))


def _at(time: str) -> str:
    return f"{time[:19].replace('T', ' ')} UTC" if time.endswith("+00:00") else time[:25].replace("T", " ")


def timeline(subject: Subject) -> Iterator[Event]:
    rows = course.timeline_rows(subject.result, details=True)
    if rows:
        for row in rows:
            yield say(row)
        return
    dated = sorted((e for e in subject.evidence if e.get("time")), key=lambda e: str(e["time"]))
    if not dated:
        yield say("No line that is cited carries a time; in the order of the log:")
        yield from cite(subject.evidence, 10)
        return
    for e in dated[:16]:
        who = f" {whose(e)}" if whose(e) else ""
        yield say(f"{_at(str(e['time']))}{who}, {e['role']}:")
        yield cited(e)


def first_ranks(subject: Subject) -> Iterator[Event]:
    """Which ranks failed, which first."""
    r, roots = subject.result, of_role(subject, "root")
    spoken = [e for e in roots if ranks_of(e)]
    if not spoken and not r["suspects"]["ranks"]:
        yield say("Unknown: no line of the cause says of which rank it is.")
        yield from cite(roots, 2)
        return
    if r["suspects"]["ranks"]:
        yield say(f"Suspected: rank {names(r['suspects']['ranks'])}.")
    for e in sorted(spoken, key=lambda e: (not e.get("time"), str(e.get("time", "")), e["line"]))[:4]:
        yield say(f"{whose(e)}{', ' + _at(str(e['time'])) if e.get('time') else ''}:")
        yield cited(e)
    after = {rank for e in of_role(subject, "cascade") for rank in ranks_of(e)}
    if after:
        yield say(
            f"Only as a consequence: {rank_ranges(after - {x for e in spoken for x in ranks_of(e)}) or 'no other'}."
        )
