"""What to do, which nodes to drain, whether a restart is safe, what was lost: from the evidence. Pure."""

from __future__ import annotations

import re
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
    refuted,
    said_instead,
    say,
    sentence,
    steps_with_command,
)
from triage.chat.values import Event, Subject
from triage.report import course
from triage.taxonomy import Taxonomy
from triage.text import how_many

_CHANGES = ("reversible", "destructive")
_RESTART = {
    "restart": "Yes: a restart from the last checkpoint as it is.",
    "restart-excluding": "Not on the same nodes: leave out {nodes}, then yes.",
    "rollback-and-skip": "Only from an earlier healthy checkpoint, and without the data that followed it.",
    "fix-and-resubmit": "No: it would fail again. A person has to change code, configuration or data first.",
    "escalate": "Not yet: the cluster or storage team is needed first.",
    "kill-and-restart": "Yes, once the hung job is ended: it will not end by itself.",
    "wait": "Not needed: the job is not hung; wait.",
    "none": "Nothing to restart for: nothing failed.",
}
_ENDED = "Nothing speaks against it: it was ended from outside, and nothing failed by itself."


def what_to_do(subject: Subject, labels: Taxonomy) -> Iterator[Event]:
    r = subject.result
    yield from said_instead(subject)
    yield say(f"{r['action']}: {sentence(labels.actions.get(r['action'], ''))}")
    if r["status"] in ("hypothesis", "unknown") and failed(r):
        yield say(f"The cause is {STATUS[r['status']]}; so look before you change anything.")
    for n, step in enumerate(r.get("remediation", ()), 1):
        yield from _step(n, step)
    if not r.get("remediation"):
        yield say(
            "There are no steps: " + ("nothing failed." if not failed(r) else "too little is known of the cause.")
        )
    yield from cite(of_ids(subject, dict.fromkeys(e for s in r.get("remediation", ()) for e in s["evidence"])), 3)


def _step(n: int, step: Mapping[str, Any]) -> Iterator[Event]:
    yield say(f"{n}. {step['step']}  [{step['risk']}]")
    if step.get("command"):
        yield say(f"   $ {step['command']}")


def next_step(subject: Subject, done: int) -> Iterator[Event]:
    """done: steps told already."""
    steps = subject.result.get("remediation", ())
    if done >= len(steps):
        yield say("No further step." if steps else "There are no steps.")
        return
    step = steps[done]
    yield from said_instead(subject)
    yield from _step(done + 1, step)
    if step.get("why"):
        yield say(f"   why: {sentence(step['why'])}")
    yield from cite(of_ids(subject, step["evidence"]), 2)
    if done + 1 < len(steps):
        yield say(f"{how_many(len(steps) - done - 1, 'more step')}; /next tells the next one.")


def which_nodes(subject: Subject) -> Iterator[Event]:
    """Those to drain: only what a line blames, never a guess."""
    r = subject.result
    nodes = list(r["suspects"]["nodes"])
    if refuted(subject.stored):
        yield from said_instead(subject)
        yield say(f"So none by this diagnosis{f', which suspected {names(nodes)}' if nodes else ''}.")
        return
    if not nodes:
        seen = sorted({e["node"] for e in subject.evidence if e.get("node")})
        where = (
            f" Lines come from {names(seen)}, but none blames it." if seen else " No line that is cited names a node."
        )
        yield say(f"None: no line of the log blames a node ({r['failure_type']}, {r['root_cause_class']}).{where}")
        yield from cite(of_role(subject, "root"), 2)
        return
    hard = r["action"] in ("restart-excluding", "escalate") or r["root_cause_class"] in (
        "hardware-failure",
        "network-failure",
    )
    if hard:
        yield say(f"{names(nodes)}: {STATUS[r['status']]}.")
    else:
        yield say(
            f"{names(nodes)} is where it happened, but the cause is {r['root_cause_class']}: that is no reason to drain."
        )
    about = [e for e in subject.evidence if any(_speaks_of(e, node) for node in nodes)]
    yield from cite(sorted(about, key=lambda e: e["role"] != "root"))
    if not about:
        yield say("No line that is cited names it; where the failing ranks ran tells it.")
    if gpus := r["suspects"]["gpus"]:
        yield say(f"Suspected GPU: {names(gpus)}.")
    for step in steps_with_command(r, nodes)[:3] if hard else ():
        yield say(f"{step['step']}  [{step['risk']}]")
        yield say(f"   $ {step['command']}")


def _speaks_of(e: Mapping[str, Any], node: str) -> bool:
    name = re.compile(rf"(?<![A-Za-z0-9]){re.escape(node)}(?![A-Za-z0-9])")
    return e.get("node") == node or name.search(str(e["text"])) is not None


def restart(subject: Subject) -> Iterator[Event]:
    r = subject.result
    if refuted(subject.stored):
        yield from said_instead(subject)
        yield say("Go by that: this diagnosis does not tell whether a restart is safe.")
        yield from _from_where(r)
        return
    nodes = names(r["suspects"]["nodes"]) or "the suspect nodes (which ones, no line says)"
    ended = r["action"] == "none" and r["outcome"] == "interrupted"
    answer = _ENDED if ended else _RESTART.get(r["action"], f"The action is {r['action']}.")
    yield say(answer.format(nodes=nodes))
    if failed(r) and r["status"] != "established":
        yield say(f"The cause is {STATUS[r['status']]}.")
    yield say(cause(subject))
    yield from cite(of_role(subject, "root"), 2)
    if again := course.recurrence_text(r):
        yield say(sentence(again))
        if (r.get("recurrence") or {}).get("kind") == "same-step":
            yield say("At the same step again: that is deterministic, a restart alone meets it once more.")
    yield from _from_where(r)
    excluding = [s for s in r.get("remediation", ()) if s["risk"] in _CHANGES and s.get("command")]
    for step in excluding[:3]:
        yield say(f"- {step['step']}  [{step['risk']}]")
        yield say(f"   $ {step['command']}")


def _from_where(r: Mapping[str, Any]) -> Iterator[Event]:
    p = r["progress"]
    checkpoint = next((part for part in course.progress_parts(r) if part.startswith("last checkpoint")), "")
    if checkpoint:
        step = f"; the last step was {p['last_step']}" if "last_step" in p else ""
        yield say(f"It would go on from the {checkpoint}{step}.")
    elif failed(r) and r["action"] != "none":
        yield say("The log names no checkpoint: look whether there is one before you count on it.")
    if "restart_cost" in p:
        yield say(f"A restart costs {p['restart_cost']}.")


def lost(subject: Subject) -> Iterator[Event]:
    r, p = subject.result, subject.result["progress"]
    parts = [*course.cost_parts(r), *reversed(course.progress_parts(r))]
    if "lost_gpu_hours" in p or "lost_time" in p:
        yield say(sentence(f"Lost: {', '.join(parts)}"))
    elif not failed(r):
        yield say("Nothing: the job went well.")
    else:
        lacking = [
            what
            for what, name in (("the last checkpoint", "last_checkpoint"), ("the number of ranks", "world_size"))
            if name not in p and f"{name}_step" not in p
        ]
        why = f"the log does not tell {names(lacking)}" if lacking else "its lines carry too few times"
        yield say(f"Unknown: {why}." + (f" Known is: {', '.join(parts)}." if parts else ""))
    if subject.stored and len(subject.stored.attempts) > 1 and subject.stored.summary.gpu_hours:
        hours = subject.stored.summary.gpu_hours
        yield say(f"All {len(subject.stored.attempts)} attempts of it together: {hours:g} GPU-hours.")


def progress(subject: Subject) -> Iterator[Event]:
    parts = course.progress_parts(subject.result)
    yield say(
        sentence(", ".join(parts)[:1].upper() + ", ".join(parts)[1:])
        if parts
        else "Unknown: the log tells no step, checkpoint or stage."
    )
    if any(part.startswith("last checkpoint") for part in parts):
        yield say(
            "Whether that checkpoint is complete the log does not tell: `triage recover checkpoints DIR` looks at it."
        )
