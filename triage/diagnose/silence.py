"""What the end of a log tells when no signature names a cause: healthy, cut off, ended badly; and long silences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from triage.diagnose import flight, hang_story, meaning
from triage.diagnose.candidates import Candidate
from triage.diagnose.facts import Facts
from triage.domain import LogLine, Outcome, Signature, Status
from triage.evidence.cost import span
from triage.evidence.match import Finding
from triage.heads import split

# Ended from outside after this much silence, and far longer than a step takes: the job was hung before it was ended.
HANG_SILENCE = timedelta(minutes=45)
HANG_STEPS = 20
_WORD = re.compile(r"(?<![^\W_])[^\W\d_]{2,40}(?![^\W_])")
_READ = 2000  # characters of a line
_UNREAD = re.compile(
    r"ermission|no such file|ends? early|was read|cannot be read|truncated|damaged|corrupt|vanished", re.IGNORECASE
)
TAIL = 40  # lines at the end of a file in which a line of error level still counts as how it ended
_OWN_END = 20  # weight from which a marker of a good end is the program's own
_POD_FAILED = re.compile(r"Status:\s{1,40}Failed\s*$")
_PROBED = (
    " Its liveness probe had failed, and for that the kubelet ends a container; why it did not answer, no line says."
)
GIVEN_UP = "k8s.backoff-limit"
_BY_CODE = {
    "134": " A SIGABRT: the program or a library of it aborted; no line says why.",
    "137": " A SIGKILL; no line says that memory ran out, or who sent it.",
    "139": " A SIGSEGV: native code crashed; no line says where.",
    "143": " A SIGTERM: it was told to stop; no line says by whom.",
}
LAST_WORDS = 6  # lines at the end in which a bad word alone does

_BAD_WORD = re.compile(
    r"\b(?:\w+error|\w+exception|error|errors|fatal|failed|failure|aborted|abort|panic|exception|cannot|unable to|killed|core dumped|traceback|panicked|"
    r"died unexpectedly|sigterm|sigkill|sigsegv|fallen off)\b|(?:exit(?:ed with)?(?: exit)? ?code|returncode|exit status)[=: ]{1,3}-?[1-9]"
    r"|Speicherzugriffsfehler|Get\u00f6tet|Kein Speicherplatz|\u6bb5\u9519\u8bef|\u5df2\u6740\u6b7b|\u9519\u8bef|\u81f4\u547d|\u30a8\u30e9\u30fc",
    re.IGNORECASE,
)
# A line that says of itself that it is an error, at its start.
_SAYS_ERROR = re.compile(
    r"^(?:\[?[EF]\d{4} |\W{0,3}(?:[\w./-]{1,60}: ?){0,3}\W{0,3}(?:error|fatal|critical|panic|abort|failed|failure)\w*\b)",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"exception ignored|\b(?:0 (?:errors?|failures?|failed)|errors?\s*[:=]?\s*0\b|no (?:[\w-]+ ){0,3}(?:errors?|exceptions?|failures?|failed|killed)|zero \w+|without errors?|successfully \w+ed|error[_ ]?rate|ignor\w+|warning|retry|retrying|"
    r"errors?\s*[:=]?\s*[-+]?\d*\.\d+(?:e[-+]?\d+)?|mean|rel(?:ative)? error|abs(?:olute)? error|squared error|l[12] error|error bars?|failed\s*[:=]\s*0)\b",
    re.IGNORECASE,
)

UNNAMED = Signature(
    id="end.unnamed-error",
    title="the log ends on an error that no signature knows",
    patterns=(),
    failure_type="unknown",
    root_cause_class="unknown",
    role="context",
    remedy="",
)


STILL = Signature(
    id="end.stood-still",
    title="where the job stood still",
    patterns=(),
    failure_type="hang",
    root_cause_class="unknown",
    role="context",
    remedy="",
)


@dataclass(frozen=True, slots=True)
class Ending:
    outcome: Outcome
    status: Status
    sentence: str
    line: Finding | None = None


def ending(facts: Facts, cascade: Sequence[Candidate]) -> Ending:
    """How the job ended as far as its last lines tell."""
    dumps = any(f.kind == "flight-recorder" for f in facts.log.files)
    if not dumps and not any(line.text.strip() for f in facts.log.files for line in f.lines):
        said = "The log is empty: the job wrote nothing before it ended, or its output went elsewhere."
        return Ending("unknown", "unknown", said)
    told = [c for c in cascade if c.first.line.file not in facts.node_files]
    ended = _container_failed(facts)
    if told and not (ended is not None and all(c.signature.id == GIVEN_UP for c in told)):
        # Of what is only consequence, an exit code says most; of several, the first.
        exits = [c for c in told if c.failure_type == "unknown" and c.signature.weight >= 8]
        last = min(exits or told, key=lambda c: (c.first.line.file, c.first.line.number))
        where = f"{last.first.line.file}:{last.first.line.number}"
        sentence = f"The job failed, and this log does not show why: {last.signature.title} ({where})."
        return Ending("failed", "unknown", sentence, last.first)
    bad = None if _stopped_with_zero(facts) else _bad_end(facts)
    if bad is not None:
        return _unnamed(bad)
    if ended is not None:
        code, where = ended.groups.get("code", "?"), f"{ended.line.file}:{ended.line.number}"
        said = f"The job failed, and this log does not show why: its container ended with exit code {code} ({where})."
        probed = code in ("137", "143") and any(f.signature.id == "k8s.probe" for f in facts.findings)
        return Ending("failed", "unknown", said + (_PROBED if probed else _BY_CODE.get(code, "")), ended)
    if dumps:
        said = (
            "Flight-recorder dumps are here, which PyTorch writes when a collective times out; none tells a rank that held "
            f"the others up, and no text log says more. {flight.unread(facts.flight)}"
        )
        return Ending("unknown", "unknown", said.rstrip())
    still = _stood_still(facts)
    if still is not None:
        return still
    unread = [
        note for note in (*facts.log.missing, *(p for f in facts.log.files for p in f.problems)) if _UNREAD.search(note)
    ]
    if unread:
        said = f"No failure in what could be read, but not all of it could: {unread[0]}."
        return Ending("unknown", "unknown", said)
    if facts.ends:
        end = list(facts.ends.values())[-1]
        return Ending(
            "healthy",
            "established",
            f"No failure in this log; {end.signature.title} ({end.line.file}:{end.line.number}).",
            end,
        )
    worked = _last_step(facts)
    if worked is not None:
        said = (
            f"No failure is seen, and neither is the end of the run: work goes on to the end of the log ({worked.file}:{worked.number}), "
            "and nothing follows. A job that runs on looks like this, and so does one that hangs, lost its node or was killed from outside."
        )
        return Ending("healthy", "hypothesis", said)
    at = _still_on_gpus(facts)
    if at is not None:
        said = (
            f"Processes are still on the GPUs ({at.file}:{at.number}), and no line tells whether they make progress: no steps, no "
            "end of run, no error. Stacks of all ranks (py-spy) or a flight-recorder dump would."
        )
        return Ending("unknown", "unknown", said)
    if not any(_WORD.search(line.text[:_READ]) for f in facts.log.files for line in f.lines):
        return Ending("unknown", "unknown", "Nothing here reads as a log: no line of it holds a word.")
    said = "No failure is seen, and neither is the end of the run: as far as it goes, this log shows no error, no steps and no end."
    return Ending("healthy", "hypothesis", said)


def _unnamed(bad: Finding) -> Ending:
    """The log ends on words that no signature knows; they may tell the kind of failure all the same."""
    where = f"{bad.line.file}:{bad.line.number}"
    signature = meaning.refined(bad.signature, bad.line.text)
    if signature is bad.signature:
        said = f"The log ends on an error of no known kind ({where}); it does not tell the cause."
        return Ending("failed", "unknown", said, bad)
    said = f"The log ends on an error that no signature knows; by its words it is of the kind {signature.failure_type} ({where})."
    return Ending("failed", "hypothesis", said, replace(bad, signature=signature))


def _last_step(facts: Facts) -> LogLine | None:
    found = [f[-1].line for f in facts.steps.values() if f]
    return max(found, key=lambda line: (line.time.timestamp() if line.time else 0.0, line.number), default=None)


def _still_on_gpus(facts: Facts) -> LogLine | None:
    """A process in a list that nvidia-smi printed beside the job's own log; nobody looks at the GPUs of a job that is well."""
    own = max((f for f in facts.log.files if f.kind == "job"), key=lambda f: f.last_line, default=None)
    listed = (f.line for f in facts.findings if f.signature.id == "gpu.process-listed")
    return next((line for line in listed if own is not None and line.file != own.name), None)


def _stopped_with_zero(facts: Facts) -> bool:
    """Do the accounting and the program itself both say that all went well?"""
    told = {end.signature.component for end in facts.ends.values()}
    return "slurm" in told and any(
        end.signature.component != "slurm" and end.signature.weight >= _OWN_END for end in facts.ends.values()
    )


def _container_failed(facts: Facts) -> Finding | None:
    """The exit code of a container of a pod whose phase is Failed; where the job was asked for, of any that is told."""
    failed = {
        f.name
        for f in facts.log.files
        if f.kind == "kubernetes" and (facts.log.job_ids or any(_POD_FAILED.match(x.text) for x in f.lines))
    }
    codes = (f for f in facts.findings if f.line.file in failed and f.signature.id == "k8s.exit-code")
    return next(codes, None)


def _stood_still(facts: Facts) -> Ending | None:
    """Lines went on for long after the last step, or stacks were taken: the job was alive and did no work."""
    stacks = [f for f in facts.log.files if f.kind == "stacks" and f.lines]
    if facts.hang.told.written:
        return _collected(facts, stacks[0].lines[0] if stacks else None)
    if facts.ends:
        return None
    if stacks:
        return _stacks_taken(facts, stacks[0].lines[0])
    for file in facts.log.files:
        timed = [s.line for s in facts.steps.get(file.name, ()) if s.line.time]
        after = [line.time for line in file.lines if line.time]
        if len(timed) < 3 or not after:
            continue
        still, pace = silence(timed, after[-1])
        if still > HANG_SILENCE and still > pace * HANG_STEPS:
            last = timed[-1]
            said = (
                f"No step for {span(still)} while lines went on to the end: the last is {file.name}:{last.number}. "
                "No line says why."
            )
            return Ending("hung", "unknown", said, Finding(last, STILL))
    return None


def _collected(facts: Facts, first: LogLine | None) -> Ending:
    """Somebody had all this collected of a job that did not get on, and nothing of it names who holds it up."""
    hang = facts.hang
    stacks, at = hang.scene.stacks, Finding(first, STILL) if first else None
    if stacks and hang_story.moves(hang):
        said = (
            f"{stacks.moving} of {stacks.moving + stacks.again} processes that were looked at again stood elsewhere: they compute, or what they "
            "waited for came. A job that computes without input and output looks like this too: look once more before anything is killed."
        )
        return Ending("unknown", "unknown", said, at)
    said = " ".join(hang_story.nobody(hang))
    return Ending("hung" if hang_story.all_wait(hang) else "unknown", "unknown", said, at)


def _stacks_taken(facts: Facts, first: LogLine) -> Ending:
    """Stacks are here, and none of them names who holds the others up."""
    where = f"{first.file}:{first.number}"
    seen = facts.hang.scene.seen
    stacks = facts.hang.scene.stacks
    if stacks and hang_story.moves(facts.hang):
        said = (
            f"Stacks were taken more than once ({where} and others), and {stacks.moving} of {stacks.moving + stacks.again} processes "
            "stood elsewhere the next time: the job makes progress. No failure is seen."
        )
        return Ending("healthy", "hypothesis", said, Finding(first, STILL))
    taken = f"Stacks of {len(seen) or 'some'} processes were taken ({where} and others)"
    if seen and all(s.doing == "code" for s in seen) and not stacks_again(facts):
        said = (
            f"{taken}. None of them waits for another, and each was looked at once, which does not tell whether they move: take the "
            "stacks again after a minute."
        )
        return Ending("unknown", "unknown", said, Finding(first, STILL))
    said = f"{taken}, as is done when a job hangs; no line says that it ended or why it stood still. {' '.join(hang_story.groups(facts.hang))}".rstrip()
    return Ending("hung", "unknown", said, Finding(first, STILL))


def stacks_again(facts: Facts) -> bool:
    """Did processes stand in the same place when they were looked at again?"""
    stacks = facts.hang.scene.stacks
    return stacks is not None and stacks.again > 0


def silence(timed: Sequence[LogLine], end: datetime) -> tuple[timedelta, timedelta]:
    """(time since the last step, usual time between the kept steps)."""
    times = [line.time for line in timed if line.time]
    return end - times[-1], (times[-1] - times[0]) / (len(times) - 1)


def _bad_end(facts: Facts) -> Finding | None:
    """The first error-looking line in the tail of a file after which no work went on."""
    found: Finding | None = None
    known = {(f.line.file, f.line.number) for f in facts.findings}
    known |= facts.quoted
    known |= {(end.line.file, end.line.number) for end in facts.ends.values()}
    known |= {(x.file, x.number) for t in facts.tracebacks for x in (t.start, t.end)}
    for file in facts.log.files:
        if file.kind in ("binary", "flight-recorder", "stacks", "processes") or file.name in facts.system_files:
            continue
        for i, line in enumerate(reversed(file.lines[-TAIL:])):
            if (line.file, line.number) in known:
                continue  # a signature knows it, and it was judged with the rest
            if _looks_bad(line, i < LAST_WORDS) and not facts.handled(Finding(line, UNNAMED)):
                found = Finding(line, UNNAMED)
    return found


def _looks_bad(line: LogLine, last: bool) -> bool:
    if line.rule is not None or line.level in ("info", "debug", "warning"):
        return False
    text = line.text[-400:]
    if _HARMLESS.search(text):
        return False
    return bool(_SAYS_ERROR.search(split(line.text)[1][:200]) or (last and _BAD_WORD.search(text)))
