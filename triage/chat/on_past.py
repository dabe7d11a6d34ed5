"""What happened before and what helped then; what was not looked at; the handover. From the evidence and the record. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from triage.chat.said import STATUS, cause, cite, failed, names, of_role, refuted, say, sentence
from triage.chat.values import Event, Subject
from triage.report import course
from triage.store.values import Verdict
from triage.text import how_many

_WORKED = {"yes": "it worked", "no": "it did not work", "unknown": "whether it worked, nobody said"}
_NOBODY = "Unknown: nobody recorded what fixed it."


def what_fixed_it(subject: Subject) -> Iterator[Event]:
    """Fixes that people recorded, of this failure and of the like; then what past incidents of others tell."""
    told = [v for v in (subject.stored.verdicts if subject.stored else ()) if v.fix]
    for v in told:
        yield say(f"Of {subject.name} itself {_verdict(v)}")
    similar = list(subject.result.get("similar", ()))
    fixed = [s for s in similar if s.get("fix")]
    for s in fixed:
        same = " (the same failure)" if "same fingerprint" in s["why"] else ""
        worked = _WORKED.get(s.get("worked", "unknown"), _WORKED["unknown"])
        yield say(f"Incident {s['incident']}{same}, {s['outcome']}: {sentence(s['title'])} Fix: {s['fix']} ({worked}).")
    others = [s for s in similar if not s.get("fix") and s.get("remediation")]
    if not told and not fixed:
        yield say(_NOBODY + ("" if others else f" {_how_to_tell(subject)}"))
    for s in others[:3]:
        helped = "; ".join(str(step).rstrip(". ") for step in s["remediation"][:2])
        yield say(f"Past incident {s['incident']}: {sentence(s['title'])} What helped there: {sentence(helped)}")
    yield from _known_steps(subject)


def _known_steps(subject: Subject) -> Iterator[Event]:
    steps = [s for s in subject.result.get("remediation", ()) if s["risk"] != "read-only"]
    if steps and not refuted(subject.stored):
        yield say(f"What is proposed for this one: {sentence(steps[0]['step'])}")


def _how_to_tell(subject: Subject) -> str:
    return "" if subject.incident is None else f"Once you know, /resolve records it for the next time ({subject.name})."


def _verdict(v: Verdict) -> str:
    fix = f" Fix: {v.fix} ({_WORKED[v.worked]})." if v.fix else ""
    cause = f" Cause: {sentence(v.cause)}" if v.cause else ""
    day = f" on {v.at:%Y-%m-%d}" if v.at else ""
    return f"{v.who} said{day} that the diagnosis was {v.verdict}.{cause}{fix}"


def before(subject: Subject) -> Iterator[Event]:
    """Whether this failure was seen before, in this job and in others."""
    r = subject.result
    again, seen = course.recurrence_text(r), subject.stored.seen if subject.stored else None
    earlier = (seen.same_job + seen.other_jobs if seen else 0) - (len(subject.stored.attempts) if subject.stored else 0)
    if again:
        yield say(sentence(again))
        if found := (r.get("recurrence") or {}).get("incidents"):
            yield say(f"See incident {names(found)}: /open ID.")
    elif seen and earlier > 0:
        yield say(
            f"Yes: the same failure {how_many(seen.same_job, 'time')} in this job and {how_many(seen.other_jobs, 'time')} "
            f"in others, first {seen.first:%Y-%m-%d}, last {seen.last:%Y-%m-%d}."
        )
    else:
        yield say("No: this very failure is recorded for the first time here." if failed(r) else "Nothing failed.")
    yield from similar(subject, none="")


def similar(subject: Subject, none: str = "No past incident is like this one.") -> Iterator[Event]:
    found = subject.result.get("similar", ())
    if not found:
        if none:
            yield say(none)
        return
    yield say("Alike:")
    for s in found:
        told = "" if s["outcome"] == "none" else f" ({s['outcome']})"
        yield say(f"- {s['incident']}{told}: {sentence(s['title'])} {s['why']}")
        if s.get("fix"):
            yield say(f"  fix: {s['fix']} ({_WORKED.get(s.get('worked', 'unknown'), '')})")


def unseen(subject: Subject) -> Iterator[Event]:
    """What could not be read or asked, and what was left out of the compressed log."""
    r = subject.result
    c = r["compression"]
    missing = [note for note in r.get("missing", ()) if not note.startswith("to settle it")]
    files = r.get("files", ())
    if files:
        yield say(f"Read were {how_many(len(files), 'file')}, {c['lines_in']:,} lines: {names(files)}.")
    for note in missing:
        yield say(f"- not seen: {sentence(note)}")
    if not missing:
        yield say("Nothing that was given went unread.")
    if len(r.get("runs", ())) > 1:
        yield say(f"Of {len(r['runs'])} runs in it the last is diagnosed; /runs lists them.")
    dropped = sorted(c["dropped"], key=lambda d: -d["lines"])
    if dropped or c.get("cut"):
        most = ", ".join(f"{d['rule']} {d['lines']:,}" for d in dropped[:4])
        total = sum(d["lines"] for d in dropped)
        yield say(
            f"All lines were searched for what is known; {total:,} routine ones are left out of the compressed log"
            + (f" (most by {most})" if most else "")
            + (f", and {c['cut']:,} more for want of room." if c.get("cut") else ".")
        )
    outside = [h["check"] for h in r.get("hypotheses", ())[:2] if h.get("check")]
    for check in dict.fromkeys(outside):
        yield say(f"- not in this log, and worth a look: {sentence(check)}")
    if r.get("produced_by") == "rules":
        yield say("No model looked at it.")


def runs(subject: Subject) -> Iterator[Event]:
    found = subject.result.get("runs", ())
    if not found:
        yield say("The input holds one run.")
    for run in found:
        ended = f": {run['ended_by']}" if run.get("ended_by") else ""
        yield say(f"{run['file']}:{run['first_line']}-{run['last_line']} {run['outcome']}{ended}")
    attempts = subject.stored.attempts if subject.stored else ()
    for a in attempts if len(attempts) > 1 else ():
        job = f", job {a.external_id}" if a.external_id else ""
        step = f", last step {a.last_step}" if a.last_step is not None else ""
        yield say(f"attempt {a.number}: {a.recorded_at:%Y-%m-%d %H:%M} UTC{job}{step}")


def facts(subject: Subject) -> Iterator[Event]:
    """Which job it is, and what was read of it."""
    r = subject.result
    yield say(f"Job {r['job']}." if r.get("job") else "Which job it was, the log does not say.")
    if subject.stored:
        s = subject.stored.summary
        yield say(f"Recorded {s.created_at:%Y-%m-%d %H:%M} UTC" + (f", of {s.owner}." if s.owner else "."))
        if s.nodes:
            yield say(f"Nodes: {names(s.nodes)}.")
    parts = course.progress_parts(r)
    if r["progress"].get("world_size"):
        parts = [f"{r['progress']['world_size']} ranks", *parts]
    if parts:
        yield say(sentence(", ".join(parts)))
    yield say(f"Files: {names(r.get('files', ())) or 'none named'}.")


def handover(subject: Subject) -> Iterator[Event]:
    """For who takes over: what is known, what is not, what is done and what comes next. Markdown that holds log text as code."""
    r = subject.result
    title = f"Handover: incident {subject.incident}" if subject.incident is not None else "Handover"
    yield say(f"## {title}, {r['outcome']}: {r['failure_type']} ({r['status']})")
    yield say("")
    if wrong := refuted(subject.stored):
        yield say(f"- **Wrong**: {wrong} What follows is that diagnosis.")
    job = f"job {r['job']}; " if r.get("job") else ""
    yield say(f"- **What**: {job}{cause(subject, whole=True)}")
    yield say(f"- **Sure?** {STATUS[r['status']]}; class {r['root_cause_class']}.")
    suspects = [f"{kind} {names(found)}" for kind, found in r["suspects"].items() if found]
    yield say(f"- **Suspects**: {'; '.join(suspects) or 'none that a line names'}.")
    how = [*course.progress_parts(r), *course.cost_parts(r)]
    yield say(f"- **Progress and cost**: {', '.join(how) or 'the log does not tell'}.")
    if again := course.recurrence_text(r):
        yield say(f"- **Before**: {sentence(again)}")
    yield say(f"- **Action**: {r['action']}.")
    for n, step in enumerate(r.get("remediation", ())[:5], 1):
        command = f" `{step['command'].replace('`', '')}`" if step.get("command") else ""
        yield say(f"  {n}. {step['step']} [{step['risk']}]{command}")
    yield from _open_points(r)
    yield from _said(subject)
    yield say("- **Lines**:")
    yield from cite(of_role(subject, "root", "cascade"), 5)


def _open_points(r: Mapping[str, Any]) -> Iterator[Event]:
    points = [f"{h['failure_type']} is not ruled out" for h in r.get("hypotheses", ())[1:3]]
    points += r.get("missing", ())[:3]
    if points:
        yield say("- **Open**:")
        for point in points:
            yield say(f"  - {sentence(point)}")


def _said(subject: Subject) -> Iterator[Event]:
    verdicts = subject.stored.verdicts if subject.stored else ()
    if verdicts:
        yield say("- **What turned out**:")
        for v in verdicts:
            yield say(f"  - {_verdict(v)}")
    else:
        yield say("- **What turned out**: nobody has recorded it yet.")
