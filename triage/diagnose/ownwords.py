"""A program that stops itself: what it says of it is the cause; what launchers and transports print after is not. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from triage.diagnose import meaning
from triage.domain import JobLog, LogFile, LogLine, Signature
from triage.evidence.match import Best, Finding
from triage.evidence.progress import Step
from triage.heads import split
from triage.text import excerpt

ABORTS = frozenset({"mpi.abort", "py.system-exit"})  # a program's own decision to stop
_EXITS = frozenset({"slurm.task-exited", "mpi.rank-aborted"})  # its launcher's word that it did
_STOPS = frozenset({"mpi.abort", "program.fatal", "program.own-words", "fortran.runtime-error"})
_TASK_ENDS = frozenset({"slurm.task-exited", "slurm.task-crashed", "slurm.task-signalled"})
_TOLD = re.compile(
    r"Terminated|Killed|Hangup|Interrupt|User defined|First task exited|exit code (?:129|130|137|138|140|143|15|9)\b"
)
_STEP_ENDED = re.compile(r"\*\*\* STEP ")
_STEP: dict[str, Any] = {
    "title": "Slurm ended the step, whose program had stopped itself",
    "failure_type": "unknown",
    "role": "cascade",
    "weight": 5,
}
_BEFORE, _AFTER = 60, 8  # lines around an abort in which the program's words about it stand; buffers mix them
_OWN_WORDS = re.compile(
    r"^[^\w\[]{0,8}(?:\[?\d{1,6}\]?:? ?)?[^\w\[]{0,8}(?:[\w./-]{1,40}: ?){0,2}(?:(?-i:[A-Z][\w/]{1,20} ){1,2}error(?= ?[:(])|(?:fatal )?(?:error|fatal|abort(?:ed|ing)?|erreur|fehler|errore)\b(?!_))",
    re.IGNORECASE,
)
_REPEATS = re.compile(r"^(?:\[\w*\]: )?(?:aborting job:?|Aborting\W{0,3})\s*$")  # said before, or of itself no reason
_INFORMS = re.compile(r"^\s*(?:\d+: ?)?Additional information:\s*$")  # deal.II, some lines below where it was
_WHERE = "An error occurred in line <"
_WHAT = re.compile(r"^\s*(?:\d+: ?)?what\(\):\s+\S")
_REPEATED = re.compile(r"^\s*Command error:\s*$")  # Nextflow
_REPEATED_TO = re.compile(r"^\s*(?:Work dir|Container|Tip):")
_JUST_ABOVE = 5  # lines above an abort in which an error in other words is taken for its reason
_BAD_WORD = re.compile(
    r"\b(?:error|fail(?:ed|ure)|cannot|can't|could not|unable to|must (?:be|have)|invalid|insufficient|not found|no such|missing|exceed(?:s|ed)|nan|diverg\w+)\b(?! ?[:=] ?[\d.+-])",
    re.IGNORECASE,
)
_TOLD_TO_END = re.compile(r"\bsig(?:nal|term|int|usr)|\bterminat|\binterrupt|\bcancel", re.IGNORECASE)
_RANK = re.compile(r"\b(?:rank|proc(?:ess(?:or)?)?|task|PE)[ =:#]{1,3}(\d{1,6})\b", re.IGNORECASE)
# Parts that speak up when their peers go away.
_TRANSPORTS = frozenset({"pmix", "ucx", "infiniband", "nccl", "openmpi"})
_FOLLOWED = 20  # weight of what they say then
_HEADS_ONLY = re.compile(
    r"(?:error|fatal|called|abort|message|routine \w{1,40})\W{0,90}(?:\([\w .-]{1,40}\)\W{0,8}|[\w.-]{1,60}\.(?:f|f90|c|cc|cpp|cu|h)\W{1,20}\d{1,6}\W{0,4})?$",
    re.IGNORECASE,
)
_INFORMS_WITHIN = 20  # lines
_REASON_WITHIN = 6  # lines after such a head
_WORD = re.compile(r"[A-Za-z]{3}")
_PLACE = re.compile(
    r"^\W{0,8}(?:FATAL CALLED FROM|Source (?:code )?file|MPI rank:|Program:|At line \d|MPI_ABORT was invoked|application called MPI_Abort)",
    re.IGNORECASE,
)
_WORDED = frozenset(
    {"program.fatal", "program.own-words", "fortran.runtime-error", "julia.error", "hdf5.error"}
)  # what follows tells more
_RUNTIME = re.compile(
    r"^\s{0,4}(?:\d{1,6}: ?)?forrtl: (?!severe|error|info|warning)"
)  # what the system said, above the code
_READ_ON = 3  # lines that one reason may run over

OWN_WORDS = Signature(
    id="program.own-words",
    title="the program says why it stops",
    patterns=(),
    failure_type="runtime-error",
    root_cause_class="unknown",
    role="root",
    remedy="Read what the program says: it chose to stop there.",
    component="program",
    weight=55,
)


def weigh(best: Best, log: JobLog, steps: Mapping[str, Sequence[Step]]) -> None:
    """Takes what only follows a program's own end for a consequence, and its own words for the cause."""
    _follow(best, log, steps)
    for file in log.files:
        _words_before_abort(best, file)
        _thrown(best, file)
        _by_workflow(best, file)
    _read(best, log)
    _follow(best, log, steps)


def _follow(best: Best, log: JobLog, steps: Mapping[str, Sequence[Step]]) -> None:
    own = {f.name for f in log.files if f.kind == "job"}
    stops = [f.line for f in best.values() if f.signature.id in _STOPS and f.line.file in own]
    tasks = [f.line for f in best.values() if _failed_task(f) and f.line.file in own]
    for key, f in best.items():
        if key[0] not in own or f.signature.role != "root":
            continue
        after = any(_is_before(stop, f.line) for stop in stops)
        if f.signature.id == "slurm.cancelled" and _STEP_ENDED.search(f.line.text):
            if after or any(_is_before(task, f.line) for task in tasks):
                best[key] = replace(f, signature=replace(f.signature, **_STEP))
        elif f.signature.component in _TRANSPORTS and (after or _starts_late(f, steps[key[0]])):
            best[key] = replace(f, signature=replace(f.signature, role="cascade", weight=_FOLLOWED))


def _thrown(best: Best, file: LogFile) -> None:
    """The text of a C++ exception that nobody caught is the cause where it tells its kind."""
    thrown = [n for (name, n), f in best.items() if name == file.name and f.signature.id == "ec.cpp-terminate"]
    for line in file.lines:
        if _WHAT.match(line.text) and (file.name, line.number) not in best and line.number - 1 in thrown:
            signature = meaning.refined(OWN_WORDS, line.text)
            if signature is not OWN_WORDS:
                best[(file.name, line.number)] = Finding(line, signature)


def _by_workflow(best: Best, file: LogFile) -> None:
    """Below its word that a task failed, a workflow engine repeats what the task's command printed."""
    here = {n: f.signature for (name, n), f in best.items() if name == file.name}
    if not any(s.id == "workflow.task-failed" for s in here.values()) or any(s.role == "root" for s in here.values()):
        return
    repeats = False
    for line in file.lines:
        repeats = bool(_REPEATED.match(line.text)) or (repeats and not _REPEATED_TO.match(line.text))
        if repeats and line.number not in here:
            signature = meaning.refined(OWN_WORDS, line.text)
            if signature is not OWN_WORDS:
                best[(file.name, line.number)] = Finding(line, signature)


def _read(best: Best, log: JobLog) -> None:
    """Gives words whose head alone is known the kind that they tell, and takes the line that says why for the cause as well."""
    lines = {f.name: f.lines for f in log.files}
    for name in _WORDED:
        keys = sorted(key for key, f in best.items() if f.signature.id == name and f.signature.role == "root")
        whys = {key: why for key in keys if (why := reason(best[key], lines[key[0]]))}
        said = [text for key in keys for text in _messages(best[key], whys.get(key), lines[key[0]])]
        if not said:
            continue
        signature = meaning.refined(best[keys[0]].signature, *said)
        for key in keys:
            best[key] = replace(best[key], signature=signature)
            if key in whys:
                best.setdefault((key[0], whys[key].number), Finding(whys[key], signature, best[key].groups))


def _messages(finding: Finding, why: LogLine | None, lines: Sequence[LogLine]) -> list[str]:
    """The head, the message in one line, then with those that it runs over into."""
    if why is None:
        above = [line.text for line in lines if line.number == finding.line.number - 1 and _RUNTIME.match(line.text)]
        return [*above, finding.line.text]
    below = [line for line in lines if why.number <= line.number < why.number + _READ_ON]
    return [finding.line.text, why.text, " ".join(line.text.strip() for line in below)]


def _failed_task(finding: Finding) -> bool:
    """Does srun report one that failed or crashed, rather than was told to end?"""
    return finding.signature.id in _TASK_ENDS and not _TOLD.search(finding.line.text)


def _is_before(stop: LogLine, line: LogLine) -> bool:
    if stop.file == line.file:
        return stop.number < line.number
    return bool(stop.time and line.time and stop.time < line.time)


def _starts_late(finding: Finding, worked: Sequence[Step]) -> bool:
    """A launcher that had started the program, which then worked, did not fail to start it."""
    return finding.signature.id == "mpi.pmi" and any(s.line.number < finding.line.number for s in worked)


def _words_before_abort(best: Best, file: LogFile) -> None:
    """Lines in the program's own words beside its call of abort say why; those that a signature knows speak for themselves."""
    here = {key[1]: f for key, f in best.items() if key[0] == file.name}
    known = [n for n, f in here.items() if f.signature.role == "root" and f.signature.failure_type != "cancelled"]
    aborts = [n for n, f in here.items() if f.signature.id in ABORTS]
    if not aborts and not known:
        aborts = [n for n, f in here.items() if f.signature.id in _EXITS or _aborted(f)]
    if not aborts:
        return
    low, high = min(aborts) - _BEFORE, max(aborts) + _AFTER
    if any(low <= number <= high for number in known):
        return
    named = {rank for n in aborts if (rank := here[n].groups.get("rank"))}
    beside = [line for line in file.lines if low <= line.number <= high and line.number not in here]
    said = [line for line in beside if _says_why(line)]
    if not said:
        above = [line for line in beside if -_JUST_ABOVE <= line.number - min(aborts) < 0 and _sounds_bad(line)]
        called = here[min(aborts)].signature.id == "mpi.abort"
        said = (
            above[-1:] if called else [line for line in above if meaning.refined(OWN_WORDS, line.text) is not OWN_WORDS]
        )
    for line in said:
        best[(file.name, line.number)] = Finding(line, OWN_WORDS, _rank(line, named))


def _aborted(finding: Finding) -> bool:
    """Does srun report one that called abort itself?"""
    return finding.signature.id == "slurm.task-signalled" and "Aborted" in finding.line.text


def _rank(line: LogLine, named: set[str]) -> dict[str, str]:
    """The rank that the words name, else the one that called abort."""
    said = _RANK.search(line.text)
    if said or (len(named) == 1 and line.rank is None):
        return {"rank": said[1] if said else next(iter(named))}
    return {}


def _says_why(line: LogLine) -> bool:
    own = line.level in ("error", "fatal") or bool(_OWN_WORDS.match(split(line.text)[1][:200]))
    return (
        own
        and line.rule is None
        and line.program != "slurm"
        and not (_TOLD_TO_END.search(line.text) or _REPEATS.match(line.text))
    )


def _sounds_bad(line: LogLine) -> bool:
    routine = line.rule is not None or line.level in ("info", "debug") or line.program == "slurm"
    return not routine and bool(_BAD_WORD.search(line.text)) and not _REPEATS.match(line.text)


def reason(finding: Finding, lines: Sequence[LogLine]) -> LogLine | None:
    """The line that says why, below one that only says that there is an error. lines: those of its file."""
    if _WHERE in finding.line.text:
        near = [line for line in lines if 0 < line.number - finding.line.number <= _INFORMS_WITHIN]
        told = next((line for line in near if _INFORMS.match(line.text)), None)
        return next(_below(told, lines), None) if told else None
    if finding.signature.component != "program" or not _HEADS_ONLY.search(finding.line.text.rstrip()):
        return None
    return next(_below(finding.line, lines), None)


def _below(head: LogLine, lines: Sequence[LogLine]) -> Iterator[LogLine]:
    for line in lines:
        near = head.number < line.number <= head.number + _REASON_WITHIN
        if near and _WORD.search(split(line.text)[1]) and not _PLACE.match(line.text):
            yield line


def reason_told(finding: Finding, lines: Sequence[LogLine]) -> list[str]:
    """That line as a sentence, or nothing."""
    said = reason(finding, lines)
    if said is None:
        return []
    text = excerpt(said.text.strip(), limit=240).replace("`", "'")
    return [f"It goes on: `{text}` ({said.file}:{said.number})."]
